//! From the ports of a flow to the slots of a row, of which a switch draws.
//!
//! Models: Aquila §3.2 (M302, M311, M315): eight slots of shortest ways and 24 of others; a port may stand in several.
//! **Our choice** is how often: of the slots of shortest ways to another pod each link between the two pods has as many
//! as any other. A slot for each local port would give a TiN on the same card, to which twice the ports lead, twice what
//! its link carries.

use super::flows::Flow;
use super::{MINIMAL_SLOTS, NONE, OTHER_SLOTS, Row};
use crate::address::TINS_MAX;
use crate::topology::{EXTERNAL_PORTS_MAX, Shape, Topology};

/// Most local ports, and most TiNs of a pod.
const LOCAL_MAX: usize = EXTERNAL_PORTS_MAX as usize;
const PLACES_MAX: usize = TINS_MAX as usize;

/// How the flows of a TiN are put into slots.
#[derive(Clone, Debug)]
pub struct Slots {
    shape: Shape,
    /// By local port: the place that it leads to.
    places: [u8; LOCAL_MAX],
    /// By place and pod: links from there, dead or not.
    links: Vec<u8>,
}

impl Slots {
    /// Of a TiN.
    #[must_use]
    pub fn of(topology: &Topology, tin: u16) -> Self {
        let shape = *topology.shape();
        let pod = shape.split(tin).0;
        let mut places = [NONE; LOCAL_MAX];
        for port in 0..shape.local_ports {
            let far = topology.far(tin, port);
            places[usize::from(port)] = far.map_or(NONE, |far| shape.split(far.tin).1 as u8);
        }
        let pods = usize::from(shape.pods);
        let mut links = vec![0; usize::from(shape.tins_per_pod) * pods];
        for place in 0..shape.tins_per_pod {
            for port in shape.local_ports..shape.external_ports() {
                if let Some(far) = topology.far(shape.tin(pod, place), port) {
                    let to = usize::from(shape.split(far.tin).0);
                    links[usize::from(place) * pods + to] += 1;
                }
            }
        }
        Self { shape, places, links }
    }

    /// The slots of a flow to a component. Which ports of a TiN have none, or one more than others, differs by
    /// component. Of other ways all global ports have a slot first, and local ones what is left.
    #[must_use]
    pub fn row(&self, flow: Flow, component: u16) -> Row {
        // Destinations that are as many apart as a pod has TiNs have the same gateways: they begin apart, too.
        let first = usize::from(component + component / self.shape.tins_per_pod);
        let locals = flow.others & ((1 << self.shape.local_ports) - 1);
        let globals = flow.others & !locals;
        let room = OTHER_SLOTS.saturating_sub(globals.count_ones() as usize);
        let others = globals | pick(locals, room, first);
        Row { minimal: self.shortest(flow.minimal, component, first), others: fill(others, first) }
    }

    /// Slots of shortest ways: of each link behind them one, as far as there are, and ports to the same TiN by turns.
    fn shortest(&self, mask: u64, component: u16, first: usize) -> [u8; MINIMAL_SLOTS] {
        let locals = mask & ((1 << self.shape.local_ports) - 1);
        if locals != mask || mask == 0 {
            return fill(pick(mask, MINIMAL_SLOTS, first), first);
        }
        let mut ports_to = [0_u64; PLACES_MAX];
        for port in ports(locals) {
            ports_to[usize::from(self.places[usize::from(port)])] |= 1 << port;
        }
        let behind: [usize; PLACES_MAX] = std::array::from_fn(|place| match ports_to[place] {
            0 => 0,
            _ => self.behind(place, component),
        });
        let all: usize = behind.iter().sum();
        let each = all.max(MINIMAL_SLOTS);
        let mut next = [first; PLACES_MAX];
        std::array::from_fn(|slot| {
            let link = (slot * each / MINIMAL_SLOTS + first) % all;
            let place = place_of(&behind, link);
            let ports = ports_to[place];
            next[place] += 1;
            nth(ports, (next[place] - 1) as u32 % ports.count_ones())
        })
    }

    /// Links from a place to the pod of a component; one if it is of this pod, or there is none.
    fn behind(&self, place: usize, component: u16) -> usize {
        if component >= self.shape.pods {
            return 1;
        }
        let at = place * usize::from(self.shape.pods) + usize::from(component);
        self.links[at].max(1).into()
    }
}

/// The place that a link is behind, where they are counted place by place.
fn place_of(behind: &[usize; PLACES_MAX], link: usize) -> usize {
    let mut left = link;
    let mut places = behind.iter().enumerate();
    let found = places.find(|&(_, &links)| {
        let is_here = left < links;
        left = left.wrapping_sub(links);
        is_here
    });
    found.expect("a link is behind some place").0
}

/// As many ports of a mask as there is room for, evenly over their order, from one of them on.
fn pick(mask: u64, room: usize, first: usize) -> u64 {
    if mask.count_ones() as usize <= room {
        return mask;
    }
    let mut all = [NONE; 64];
    let count = list(mask, &mut all);
    let chosen = (0..room).map(|slot| all[(slot * count / room + first) % count]);
    chosen.fold(0, |mask, port| mask | 1 << port)
}

/// The port of a mask before which there are so many others.
fn nth(mask: u64, before: u32) -> u8 {
    let left = (0..before).fold(mask, |mask, _| mask & (mask - 1));
    left.trailing_zeros() as u8
}

/// Lists the ports of a mask; how many they are.
fn list(mask: u64, all: &mut [u8; 64]) -> usize {
    let mut count = 0;
    for port in ports(mask) {
        all[count] = port;
        count += 1;
    }
    count
}

/// The ports of a mask, in order.
pub(super) fn ports(mask: u64) -> impl Iterator<Item = u8> {
    switching::ones(mask).map(|port| port as u8)
}

/// Slots that the ports of a mask take turns in, from one of them on; all [`NONE`] if there are none.
pub(super) fn fill<const SLOTS: usize>(mask: u64, first: usize) -> [u8; SLOTS] {
    let mut all = [NONE; 64];
    let count = list(mask, &mut all);
    let mut slots = [NONE; SLOTS];
    let mut next = first % count.max(1);
    for slot in slots.iter_mut().take(if count == 0 { 0 } else { SLOTS }) {
        *slot = all[next];
        next = if next + 1 == count { 0 } else { next + 1 };
    }
    slots
}
