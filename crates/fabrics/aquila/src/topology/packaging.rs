//! Racks, line cards, optical modules, cables and bundles: what fails together.
//!
//! Models: Aquila App. A, A.1 (M920 to M923): a rack has two pods, a pod is one chassis of line cards with two
//! TiNs, a card has optical modules of four channels. Fibres between groups of four pods are shuffled into
//! cables of eight links, and the cables between two groups are a bundle. **Our choice**: which link is in
//! which cable: copies of a pair of pods are in different ones; links inside a group are in none.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::{Length, Shape, Topology};
use crate::tables::Condition;
use crate::tables::condition::State;

/// Pods of a rack (App. A).
pub const PODS_PER_RACK: u16 = 2;
/// TiNs of a line card (App. A).
pub const TINS_PER_CARD: u16 = 2;
/// Channels of an optical module: links (App. A).
pub const LINKS_PER_MODULE: u16 = 4;
/// Pods whose fibres are shuffled together (App. A).
pub const PODS_PER_GROUP: u16 = 4;
/// Links of a cable: two fibres each of 16 (App. A).
pub const LINKS_PER_CABLE: usize = 8;

/// The fibre between two pods on the grid of racks (U11): two rows.
pub(super) fn fibre(pods: u16, from: u16, to: u16) -> Length {
    /// From rack to rack of a row (our choice, U11). Unit: cm.
    const PITCH: u32 = 80;
    /// From row to row: an aisle and a rack (our choice). Unit: cm.
    const ROW: u32 = 240;
    /// Slack at both ends (our choice, U11). Unit: cm.
    const SLACK: u32 = 2 * 1_000;
    let columns = pods.div_ceil(PODS_PER_RACK).div_ceil(2).max(1);
    let place = |pod: u16| (pod / PODS_PER_RACK / columns, pod / PODS_PER_RACK % columns);
    let ((row, column), (other_row, other_column)) = (place(from), place(to));
    let rows = u32::from(row.abs_diff(other_row)) * ROW;
    Length::from_cm(SLACK + rows + u32::from(column.abs_diff(other_column)) * PITCH)
}

/// Something that can fail as a whole (M922).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// A link, by its index.
    Link(u32),
    /// An optical module, by card and place on it: up to four links between pods.
    Module(u32),
    /// A cable: up to eight links between two groups of pods.
    Cable(u32),
    /// All cables between two groups of pods.
    Bundle(u32),
    /// A TiN.
    Tin(u16),
    /// A line card: two TiNs.
    Card(u16),
    /// The chassis of a pod.
    Chassis(u16),
    /// A rack: two pods.
    Rack(u16),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(index) => write!(f, "link {index}"),
            Self::Module(index) => write!(f, "optical module {index}"),
            Self::Cable(index) => write!(f, "cable {index}"),
            Self::Bundle(index) => write!(f, "bundle {index}"),
            Self::Tin(index) => write!(f, "TiN {index}"),
            Self::Card(index) => write!(f, "line card {index}"),
            Self::Chassis(index) => write!(f, "chassis {index}"),
            Self::Rack(index) => write!(f, "rack {index}"),
        }
    }
}

/// What of a Clique is in what.
#[derive(Clone, Debug)]
pub struct Packaging {
    shape: Shape,
    /// By module, cable and bundle: their links.
    modules: Vec<Vec<u32>>,
    cables: Vec<Vec<u32>>,
    bundles: Vec<Vec<u32>>,
}

impl Packaging {
    /// Puts a Clique into its boxes.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let shape = *topology.shape();
        let modules_per_card =
            (TINS_PER_CARD * u16::from(shape.global_ports)).div_ceil(LINKS_PER_MODULE);
        let cards = cards_per_pod(&shape) * shape.pods;
        let mut modules = vec![Vec::new(); usize::from(cards) * usize::from(modules_per_card)];
        let mut bundles = BTreeMap::<(u16, u16), Vec<(u32, u16, u16)>>::new();
        for (index, link) in topology.links().iter().enumerate().filter(|(_, link)| link.is_global)
        {
            for end in [link.low, link.high] {
                let (pod, place) = shape.split(end.tin);
                let card = usize::from(pod * cards_per_pod(&shape) + place / TINS_PER_CARD);
                let port = u16::from(end.port - shape.local_ports);
                let channel = place % TINS_PER_CARD * u16::from(shape.global_ports) + port;
                let module =
                    card * usize::from(modules_per_card) + usize::from(channel / LINKS_PER_MODULE);
                modules[module].push(index as u32);
            }
            let (low, high) = (shape.split(link.low.tin).0, shape.split(link.high.tin).0);
            let groups = (low / PODS_PER_GROUP, high / PODS_PER_GROUP);
            if groups.0 != groups.1 {
                bundles.entry(groups).or_default().push((index as u32, low, high));
            }
        }
        let mut cables = Vec::new();
        let mut all = Vec::new();
        for links in bundles.into_values() {
            let links = shuffle(links);
            cables.extend(links.chunks(LINKS_PER_CABLE).map(<[u32]>::to_vec));
            all.push(links);
        }
        Self { shape, modules, cables, bundles: all }
    }

    /// How many links, modules, cables, bundles, TiNs, cards, chassis and racks there are, as all of them.
    pub fn parts(&self, links: u32) -> impl Iterator<Item = Part> + '_ {
        let racks = self.shape.pods.div_ceil(PODS_PER_RACK);
        let cards = cards_per_pod(&self.shape) * self.shape.pods;
        (0..links)
            .map(Part::Link)
            .chain((0..self.modules.len() as u32).map(Part::Module))
            .chain((0..self.cables.len() as u32).map(Part::Cable))
            .chain((0..self.bundles.len() as u32).map(Part::Bundle))
            .chain((0..self.shape.tins()).map(Part::Tin))
            .chain((0..cards).map(Part::Card))
            .chain((0..self.shape.pods).map(Part::Chassis))
            .chain((0..racks).map(Part::Rack))
    }

    /// Links that fail with a part, those of its TiNs apart; none if there is no such part.
    #[must_use]
    pub fn links(&self, part: Part) -> Vec<u32> {
        let some = |groups: &[Vec<u32>], index: u32| groups.get(index as usize).cloned();
        match part {
            Part::Link(link) => vec![link],
            Part::Module(index) => some(&self.modules, index).unwrap_or_default(),
            Part::Cable(index) => some(&self.cables, index).unwrap_or_default(),
            Part::Bundle(index) => some(&self.bundles, index).unwrap_or_default(),
            Part::Tin(_) | Part::Card(_) | Part::Chassis(_) | Part::Rack(_) => Vec::new(),
        }
    }

    /// TiNs that fail with a part.
    #[must_use]
    pub fn tins(&self, part: Part) -> Range<u16> {
        let each = self.shape.tins_per_pod;
        let pods = |first: u16, count: u16| {
            let last = (first + count).min(self.shape.pods);
            first.min(last) * each..last * each
        };
        match part {
            Part::Tin(tin) => tin..tin + 1,
            Part::Card(card) => {
                let (pod, card) =
                    (card / cards_per_pod(&self.shape), card % cards_per_pod(&self.shape));
                let places = [card, card + 1].map(|card| (card * TINS_PER_CARD).min(each));
                self.shape.tin(pod, places[0])..self.shape.tin(pod, 0) + places[1]
            }
            Part::Chassis(pod) => pods(pod, 1),
            Part::Rack(rack) => pods(rack * PODS_PER_RACK, PODS_PER_RACK),
            _ => 0..0,
        }
    }

    /// Servers that a part takes with it, where TiNs have so many: those of its TiNs (App. A.1).
    #[must_use]
    pub fn servers(&self, part: Part, hosts_per_tin: u16) -> u32 {
        self.tins(part).len() as u32 * u32::from(hosts_per_tin)
    }

    /// Kills a part, with all that is in it.
    pub fn fail(&self, condition: &mut Condition, part: Part) {
        for link in self.links(part) {
            condition.set_link(link, State::Dead);
        }
        for tin in self.tins(part) {
            condition.set_tin(tin, State::Dead);
        }
    }
}

/// Line cards of a pod.
fn cards_per_pod(shape: &Shape) -> u16 {
    shape.tins_per_pod.div_ceil(TINS_PER_CARD)
}

/// The links of a bundle in the order in which they are put into cables: copies of a pair far apart.
fn shuffle(mut links: Vec<(u32, u16, u16)>) -> Vec<u32> {
    let mut copies = BTreeMap::<(u16, u16), u16>::new();
    let mut keyed = Vec::new();
    links.sort_unstable();
    for (link, low, high) in links {
        let copy = copies.entry((low, high)).or_default();
        keyed.push((*copy, (low + high) % 2, low, high, link));
        *copy += 1;
    }
    keyed.sort_unstable();
    keyed.into_iter().map(|(.., link)| link).collect()
}

#[cfg(test)]
#[path = "packaging_tests.rs"]
mod tests;
