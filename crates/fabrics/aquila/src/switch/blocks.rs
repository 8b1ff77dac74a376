//! The switches of a whole Clique in sets of pods, which run one after the other through short windows: the state of
//! a set stays in the cache, where that of a full Clique does not fit.

use std::sync::Arc;

use kernel::{Span, Time};

use super::settings::Settings;
use super::{Counts, Endpoints, Posted, Switches};
use crate::tables::Tables;
use crate::topology::Topology;

/// TiNs whose state in use fits a cache of the second level, about (our choice, measured: `perf_cells full uniform 0.9
/// 16 blocks=12`).
pub(crate) const TINS_PER_BLOCK: usize = 48;

/// How many sets a Clique of so many TiNs is best run in on one thread.
#[must_use]
pub const fn best(tins: u16) -> usize {
    let blocks = tins as usize / TINS_PER_BLOCK;
    if blocks == 0 { 1 } else { blocks }
}

/// The sets. What happens does not depend on how many there are.
#[derive(Clone, Debug)]
pub struct Blocks<E> {
    sets: Vec<Switches<E>>,
    /// By pod: its set.
    set_of: Vec<usize>,
    tins_per_pod: u16,
    /// Nothing comes from another set sooner.
    window: Span,
    crossing: Vec<Posted>,
}

impl<E: Endpoints> Blocks<E> {
    /// A Clique in `count` sets of pods, at least one and no more than it has pods, with the endpoints that `endpoints`
    /// makes for each: for all TiNs, of which it is asked about its own.
    pub fn new(
        topology: &Topology,
        tables: &Arc<Tables>,
        settings: &Arc<Settings>,
        count: usize,
        seed: u64,
        mut endpoints: impl FnMut() -> E,
    ) -> Self {
        let shape = topology.shape();
        let pods = usize::from(shape.pods);
        let count = count.clamp(1, pods);
        let set_of: Vec<usize> = (0..pods).map(|pod| pod * count / pods).collect();
        let sets = (0..count)
            .map(|set| {
                let is_own = |tin: &u16| set_of[usize::from(shape.split(*tin).0)] == set;
                let own: Vec<u16> = (0..shape.tins()).filter(is_own).collect();
                let (tables, settings) = (Arc::clone(tables), Arc::clone(settings));
                Switches::new(topology, tables, settings, &own, seed, endpoints())
            })
            .collect();
        let fibres = topology.links().iter().filter(|link| link.is_global);
        let shortest = fibres.map(|link| topology.delay(link.low.tin, link.low.port)).min();
        Self {
            sets,
            set_of,
            tins_per_pod: shape.tins_per_pod,
            window: shortest.unwrap_or(Span::ZERO) + settings.link.fec_delay,
            crossing: Vec::new(),
        }
    }

    /// The set that a TiN is in.
    fn set_of(&self, tin: u16) -> usize {
        self.set_of[usize::from(tin / self.tins_per_pod)]
    }

    /// The switches among which a TiN is.
    pub fn of(&mut self, tin: u16) -> &mut Switches<E> {
        let set = self.set_of(tin);
        &mut self.sets[set]
    }

    /// All sets.
    #[must_use]
    pub fn sets(&self) -> &[Switches<E>] {
        &self.sets
    }

    /// The same, to change them.
    pub fn sets_mut(&mut self) -> &mut [Switches<E>] {
        &mut self.sets
    }

    /// The instant of the next thing to do, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.sets.iter().filter_map(Switches::next).min()
    }

    /// Does everything that is due before `end`.
    pub fn run(&mut self, end: Time) {
        if let [all] = &mut self.sets[..] {
            return all.run(end);
        }
        while let Some(next) = self.next().filter(|&next| next < end) {
            let until = (next + self.window).min(end);
            for set in 0..self.sets.len() {
                self.sets[set].run(until);
                let mut crossing = std::mem::take(&mut self.crossing);
                self.sets[set].exchange_posted(&mut crossing);
                for posted in crossing.drain(..) {
                    let there = self.set_of(posted.tin);
                    self.sets[there].take(&posted);
                }
                self.crossing = crossing;
            }
        }
        if end != Time::NEVER {
            self.sets.iter_mut().for_each(|set| set.run(end));
        }
    }

    /// What has happened so far in all.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.sets.iter().for_each(|set| counts.add(&set.counts()));
        counts
    }

    /// [`Switches::check`] of each set.
    ///
    /// # Errors
    /// What is wrong, where.
    pub fn check(&self) -> Result<(), String> {
        self.sets.iter().try_for_each(Switches::check)
    }
}
