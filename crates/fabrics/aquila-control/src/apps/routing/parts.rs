//! Parts of a Clique that is being booted, and the ways out of each.
//!
//! Models: Aquila §4.4 (M815, I82): routes pass only TiNs that are ready. While some are not, those that are may be several
//! parts, each with a way of its own to the datacenter's network. Ways of escape would join them through TiNs that are
//! not ready; so each of these keeps its links to one part alone, and none to others that are not ready.

use std::collections::BTreeMap;

use aquila::tables::Condition;
use aquila::tables::condition::State;
use aquila::topology::Topology;

/// Who reaches whom without passing a TiN that is not ready.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// By TiN: the lowest TiN of its part that is live; `None`: it reaches none.
    parts: Vec<Option<u16>>,
    /// By part: live TiNs by which the datacenter's network is reached.
    exits: BTreeMap<u16, Vec<u16>>,
}

impl Parts {
    /// Parts of a Clique, as the links that work have it; of `exits` those count that are live. Links of TiNs that are not
    /// ready are dead in `condition` afterwards but for those to one part: one that has a way out, if there is one.
    pub fn split(
        topology: &Topology,
        condition: &mut Condition,
        is_unready: impl Fn(u16) -> bool,
        exits: &[u16],
    ) -> Self {
        let tins = topology.shape().tins();
        let mut parts: Vec<Option<u16>> = vec![None; usize::from(tins)];
        let is_live = |condition: &Condition, tin: u16| condition.tin(tin) == State::Live;
        for first in (0..tins).filter(|&tin| is_live(condition, tin)) {
            let mut next = vec![first];
            while let Some(tin) = next.pop() {
                if parts[usize::from(tin)].is_none() {
                    parts[usize::from(tin)] = Some(first);
                    next.extend(
                        neighbours(topology, condition, tin).filter(|&far| is_live(condition, far)),
                    );
                }
            }
        }
        let mut by_part: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for &exit in exits.iter().filter(|&&exit| is_live(condition, exit)) {
            if let Some(part) = parts[usize::from(exit)] {
                by_part.entry(part).or_default().push(exit);
            }
        }
        for tin in (0..tins).filter(|&tin| !is_live(condition, tin)) {
            let fars = neighbours(topology, condition, tin).filter(|&far| is_live(condition, far));
            let mut joined: Vec<u16> = fars.filter_map(|far| parts[usize::from(far)]).collect();
            joined.sort_unstable();
            let with_exit = joined.iter().copied().find(|part| by_part.contains_key(part));
            parts[usize::from(tin)] = with_exit.or(joined.first().copied());
        }
        for tin in 0..tins {
            if is_live(condition, tin) || !is_unready(tin) {
                continue;
            }
            for port in 0..topology.shape().external_ports() {
                let (Some(link), Some(far)) = (topology.link(tin, port), topology.far(tin, port))
                else {
                    continue;
                };
                let is_own = parts[usize::from(far.tin)] == parts[usize::from(tin)];
                if !(is_live(condition, far.tin) && is_own) {
                    condition.set_link(link, State::Dead);
                }
            }
        }
        Self { parts, exits: by_part }
    }

    /// The part of a TiN.
    pub fn of(&self, tin: u16) -> Option<u16> {
        self.parts[usize::from(tin)]
    }

    /// All parts, and nothing for TiNs that are in none.
    pub fn all(&self) -> Vec<Option<u16>> {
        let mut all: Vec<Option<u16>> = self.parts.clone();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Live TiNs of a part by which the datacenter's network is reached.
    pub fn exits(&self, part: Option<u16>) -> &[u16] {
        part.and_then(|part| self.exits.get(&part)).map_or(&[], Vec::as_slice)
    }
}

/// TiNs to which a TiN has links that work.
fn neighbours(topology: &Topology, condition: &Condition, tin: u16) -> impl Iterator<Item = u16> {
    (0..topology.shape().external_ports()).filter_map(move |port| {
        let link = topology.link(tin, port)?;
        (condition.link(link) != State::Dead).then(|| topology.far(tin, port).map(|far| far.tin))?
    })
}
