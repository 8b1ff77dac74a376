//! The two halves of Valiant's way, by node: what a source sends to everywhere and what a
//! destination gets from everywhere.
//!
//! A flow under Valiant load balancing crosses most links of the rack, but its shares are a part
//! that depends on its source alone and one that depends on its destination alone. So the load of
//! any number of such flows is that of at most one part for each source and each destination.

use kernel::Bitmap;
use rack::NodeId;

use super::shares::{change_load, load, quanta_of, whole};
use super::terms::Courses;

/// Most memory for parts that are kept rather than asked for anew: those of 1,024 nodes with eight
/// links each fit (our choice).
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Which half of the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Half {
    Leaving,
    Arriving,
}

/// A node's part of the shares.
#[derive(Clone, Debug)]
struct Leg {
    /// The links that have a share.
    crossed: Bitmap,
    /// The shares by link in quanta, if there is memory to keep them: on a leg a packet crosses a
    /// link at most once, and 2³⁰ quanta fit. Half the memory of floats, and memory is what adding
    /// waits for.
    quanta: Option<Box<[u32]>>,
}

/// The parts of all nodes, each made when it is first needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Legs {
    leaving: Vec<Option<Leg>>,
    arriving: Vec<Option<Leg>>,
}

impl Legs {
    fn side(&mut self, half: Half) -> &mut Vec<Option<Leg>> {
        match half {
            Half::Leaving => &mut self.leaving,
            Half::Arriving => &mut self.arriving,
        }
    }

    /// Makes the part of a node ready.
    pub(super) fn prepare(&mut self, courses: &mut impl Courses, half: Half, node: usize) {
        let (nodes, links) = (courses.nodes(), courses.links());
        let side = self.side(half);
        side.resize(nodes, None);
        if side[node].is_some() {
            return;
        }
        let is_kept = 2 * nodes * links * size_of::<u32>() <= KEPT_BYTES_MAX;
        let mut crossed = Bitmap::new(links);
        let mut quanta = is_kept.then(|| vec![0; links].into_boxed_slice());
        visit(courses, half, node, |link, share| {
            if share > 0 {
                crossed.set(link);
            }
            if let Some(quanta) = &mut quanta {
                quanta[link] = share;
            }
        });
        side[node] = Some(Leg { crossed, quanta });
    }

    /// Whether a flow crosses a link. Its source and its destination must be ready.
    #[inline]
    pub(super) fn crosses(&self, source: usize, destination: usize, link: usize) -> bool {
        let has = |leg: &Option<Leg>| leg.as_ref().expect("it is ready").crossed.get(link);
        has(&self.leaving[source]) || has(&self.arriving[destination])
    }

    /// Adds `change` times the part of a node to the loads of all links. It must be ready.
    pub(super) fn add(
        &self,
        courses: &mut impl Courses,
        half: Half,
        node: usize,
        change: i64,
        loads: &mut [u64],
    ) {
        let side = match half {
            Half::Leaving => &self.leaving,
            Half::Arriving => &self.arriving,
        };
        match &side[node].as_ref().expect("it is ready").quanta {
            Some(quanta) => {
                let weight = change.unsigned_abs() as u32;
                let pairs = loads.iter_mut().zip(quanta);
                // Branches in the loop would keep the compiler from adding several at a time.
                if change < 0 {
                    pairs.for_each(|(sum, &quanta)| *sum -= load(weight, quanta));
                } else {
                    pairs.for_each(|(sum, &quanta)| *sum += load(weight, quanta));
                }
            }
            None => visit(courses, half, node, |link, quanta| {
                change_load(&mut loads[link], change, quanta);
            }),
        }
    }
}

/// Calls `visit` with each link of a node's part and the quanta of its share.
fn visit(courses: &mut impl Courses, half: Half, node: usize, mut visit: impl FnMut(usize, u32)) {
    let node = NodeId::new(node as u32);
    let rounded = |link, share| visit(link, quanta_of(whole(share)));
    match half {
        Half::Leaving => courses.leaving(node, rounded),
        Half::Arriving => courses.arriving(node, rounded),
    }
}
