//! Who is connected to whom: the fabric's fixed schedule.
//!
//! Models: Shoal §3.2 and Fig. 3 (an epoch of cyclic permutations, each pair once), §3.4 (several
//! channels in parallel), Appendix A and Fig. 19 (the order that leaves room for propagation).
//! Leaves out: how switches realise it (`clos`).
//!
//! An epoch is a row of *positions*. Position `p` is channel `p % channels` of slot
//! `p / channels`; in it every node `i` (or half of them) is connected to node `i + shift mod N`.

use kernel::Slot;

/// The order of an epoch's permutations.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Shifts 1, 2, … N-1 (Fig. 3).
    Cyclic,
    /// Half an epoch between `i → j` and `j → i`, so that feedback refers to the cell just sent
    /// (Appendix A). An even rack pays one empty slot a node and epoch.
    #[default]
    PropagationAware,
}

/// Which nodes send in a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Senders {
    All,
    /// Nodes below N/2.
    Lower,
    /// Nodes from N/2.
    Upper,
    Nobody,
}

/// One position of the epoch.
#[derive(Clone, Copy, Debug)]
struct Column {
    shift: u32,
    senders: Senders,
}

/// A cyclic, equal-rate schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    nodes: u32,
    channels: u32,
    columns: Vec<Column>,
    /// Position at which a node below N/2 meets the node `shift` further; index `shift`.
    position_lower: Vec<u16>,
    /// The same for a node from N/2.
    position_upper: Vec<u16>,
    /// Which nodes take part, if not all.
    members: Option<Box<Members>>,
    /// First slot of the first epoch.
    origin: u64,
}

/// The nodes of a schedule that leaves some out.
#[derive(Clone, Debug)]
struct Members {
    /// Nodes by rank.
    nodes: Vec<u16>,
    /// Ranks by node; [`ABSENT`] for those left out.
    ranks: Vec<u16>,
}

const ABSENT: u16 = u16::MAX;

impl Schedule {
    /// The schedule of a rack of `nodes` with `channels` in parallel.
    ///
    /// # Panics
    /// If there are fewer than two nodes, more than 4,096, or no channel: the configuration is
    /// checked before.
    #[must_use]
    pub fn new(nodes: u32, channels: u32, order: Order) -> Self {
        assert!((2..=4096).contains(&nodes), "a schedule for {nodes} nodes");
        assert!(channels > 0, "a schedule without channels");
        let mut columns = match order {
            Order::Cyclic => {
                (1..nodes).map(|shift| Column { shift, senders: Senders::All }).collect()
            }
            Order::PropagationAware if nodes % 2 == 1 => odd(nodes),
            Order::PropagationAware => even(nodes),
        };
        while !(columns.len() as u32).is_multiple_of(channels) {
            columns.push(Column { shift: 0, senders: Senders::Nobody });
        }
        let mut position_lower = vec![u16::MAX; nodes as usize];
        let mut position_upper = position_lower.clone();
        for (position, column) in columns.iter().enumerate() {
            let position = position as u16;
            if matches!(column.senders, Senders::All | Senders::Lower) {
                position_lower[column.shift as usize] = position;
            }
            if matches!(column.senders, Senders::All | Senders::Upper) {
                position_upper[column.shift as usize] = position;
            }
        }
        let (members, origin) = (None, 0);
        Self { nodes, channels, columns, position_lower, position_upper, members, origin }
    }

    /// The schedule of those nodes of a rack that are `present`, from slot `origin` on: what nodes
    /// and switches change to after a lasting failure (§7.3 suggests it).
    ///
    /// # Panics
    /// If fewer than two nodes are present.
    #[must_use]
    pub fn of_members(present: &[bool], channels: u32, order: Order, origin: Slot) -> Self {
        let nodes: Vec<_> = (0..present.len()).filter(|&n| present[n]).map(|n| n as u16).collect();
        let mut ranks = vec![ABSENT; present.len()];
        for (rank, &node) in nodes.iter().enumerate() {
            ranks[usize::from(node)] = rank as u16;
        }
        let members = Some(Box::new(Members { ranks, nodes }));
        let whole = Self::new(present.iter().filter(|&&is| is).count() as u32, channels, order);
        Self { members, origin: origin.get(), ..whole }
    }

    /// Nodes that take part.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Whether all nodes of the rack take part.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.members.is_none()
    }

    /// Whether a node takes part.
    #[must_use]
    pub fn contains(&self, node: u32) -> bool {
        match &self.members {
            None => node < self.nodes,
            Some(members) => members.ranks.get(node as usize).is_some_and(|&rank| rank != ABSENT),
        }
    }

    /// First slot of the first epoch.
    #[must_use]
    pub fn origin(&self) -> Slot {
        Slot::new(self.origin)
    }

    /// Channels in parallel.
    #[must_use]
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// Positions in an epoch, a multiple of the channels.
    #[must_use]
    pub fn positions(&self) -> u32 {
        self.columns.len() as u32
    }

    /// Slots in an epoch (§3.4).
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.positions() / self.channels
    }

    /// Slot of the epoch to which a position belongs.
    #[inline]
    #[must_use]
    pub fn slot_of(&self, position: u32) -> u32 {
        position / self.channels
    }

    /// The node that `from` sends to in `position`; `None` in an empty position, and for a node that
    /// does not take part.
    #[inline]
    #[must_use]
    pub fn peer(&self, from: u32, position: u32) -> Option<u32> {
        let Some(members) = &self.members else { return self.peer_rank(from, position) };
        let rank = members.ranks[from as usize];
        let peer = (rank != ABSENT).then(|| self.peer_rank(u32::from(rank), position))??;
        Some(u32::from(members.nodes[peer as usize]))
    }

    #[inline]
    fn peer_rank(&self, from: u32, position: u32) -> Option<u32> {
        let column = self.columns[position as usize];
        let sends = match column.senders {
            Senders::All => true,
            Senders::Lower => from < self.nodes / 2,
            Senders::Upper => from >= self.nodes / 2,
            Senders::Nobody => false,
        };
        sends.then(|| self.wrap(from + column.shift))
    }

    /// The position in which `from` sends to `to`; the two differ and take part.
    #[inline]
    #[must_use]
    pub fn position(&self, from: u32, to: u32) -> u32 {
        match &self.members {
            None => self.position_in_whole(from, to),
            Some(members) => self.position_in_whole(
                u32::from(members.ranks[from as usize]),
                u32::from(members.ranks[to as usize]),
            ),
        }
    }

    /// The same where all nodes take part; otherwise of ranks.
    #[inline]
    pub(crate) fn position_in_whole(&self, from: u32, to: u32) -> u32 {
        debug_assert_ne!(from, to, "a node never meets itself");
        let shift = if to >= from { to - from } else { to + self.nodes - from };
        let table = if from < self.nodes / 2 { &self.position_lower } else { &self.position_upper };
        u32::from(table[shift as usize])
    }

    /// Whether `node` is of the half that the upper positions of an even rack are for.
    #[inline]
    pub(crate) fn is_upper(&self, node: u32) -> bool {
        let rank = self.members.as_ref().map_or(node, |m| u32::from(m.ranks[node as usize]));
        rank >= self.nodes / 2
    }

    /// A node of the lower half and one of the upper: they stand for all, the schedule is cyclic.
    pub(crate) fn examples(&self) -> [u32; 2] {
        let node =
            |rank: u32| self.members.as_ref().map_or(rank, |m| m.nodes[rank as usize].into());
        [node(0), node(self.nodes / 2)]
    }

    /// The shift of a position and the range of nodes that send in it, for the hot loop; only where
    /// all nodes take part.
    #[inline]
    pub(crate) fn column(&self, position: u32) -> (u32, std::ops::Range<u32>) {
        let column = self.columns[position as usize];
        let half = self.nodes / 2;
        let senders = match column.senders {
            Senders::All => 0..self.nodes,
            Senders::Lower => 0..half,
            Senders::Upper => half..self.nodes,
            Senders::Nobody => 0..0,
        };
        (column.shift, senders)
    }

    /// `index` brought below N; it is below 2N.
    #[inline]
    pub(crate) fn wrap(&self, index: u32) -> u32 {
        if index >= self.nodes { index - self.nodes } else { index }
    }

    /// The first slot at or after `from_slot` in which `from` sends to `to`.
    #[must_use]
    pub fn next_slot(&self, from: u32, to: u32, from_slot: Slot) -> Slot {
        let slots = u64::from(self.slots());
        let wanted = u64::from(self.slot_of(self.position(from, to)));
        let since = from_slot.get().saturating_sub(self.origin);
        let (epoch, phase) = (since / slots, since % slots);
        let epoch = if phase <= wanted { epoch } else { epoch + 1 };
        Slot::new(self.origin + epoch * slots + wanted)
    }

    /// The fewest slots from `i → j` to the next `j → i`, over all pairs (Appendix A: feedback is
    /// prompt while propagation takes less).
    #[must_use]
    pub fn feedback_gap(&self) -> u32 {
        let slots = self.slots();
        let gap = |i: u32, j: u32| {
            let (out, back) =
                (self.slot_of(self.position(i, j)), self.slot_of(self.position(j, i)));
            (back + slots - out) % slots
        };
        // The schedule is cyclic: nodes 0 and N/2 stand for all.
        (1..self.nodes)
            .map(|j| gap(0, j).min(gap(self.nodes / 2, (j + self.nodes / 2) % self.nodes)))
            .min()
            .unwrap_or(0)
    }
}

/// Appendix A for odd N: the last (N-1)/2 shifts in inverse order, so that shift `s` stands at
/// `s - 1` and shift `N - s` at `(N - 1)/2 + s - 1`.
fn odd(nodes: u32) -> Vec<Column> {
    let half = (nodes - 1) / 2;
    let shifts = (1..=half).chain((half + 1..nodes).rev());
    shifts.map(|shift| Column { shift, senders: Senders::All }).collect()
}

/// Appendix A for even N: the paper's figure is not reproduced in its text; this order has the
/// properties the text states. Shift `s` at `s - 1`, shift `N - s` at `N/2 + s - 1`; the shift N/2,
/// its own inverse, is split: lower nodes use it at `N/2 - 1`, upper nodes at `N - 1`, and each
/// node is silent in the other of the two.
fn even(nodes: u32) -> Vec<Column> {
    let half = nodes / 2;
    let mut columns: Vec<_> =
        (1..half).map(|shift| Column { shift, senders: Senders::All }).collect();
    columns.push(Column { shift: half, senders: Senders::Lower });
    columns.extend((1..half).map(|s| Column { shift: nodes - s, senders: Senders::All }));
    columns.push(Column { shift: half, senders: Senders::Upper });
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [Order; 2] = [Order::Cyclic, Order::PropagationAware];

    #[track_caller]
    fn check_epoch(nodes: u32, channels: u32, order: Order) {
        let schedule = Schedule::new(nodes, channels, order);
        let mut met = vec![0u8; (nodes * nodes) as usize];
        for position in 0..schedule.positions() {
            let mut receives = vec![false; nodes as usize];
            for from in 0..nodes {
                let Some(to) = schedule.peer(from, position) else { continue };
                assert!(!receives[to as usize], "two senders to {to} in position {position}");
                receives[to as usize] = true;
                met[(from * nodes + to) as usize] += 1;
                assert_eq!(schedule.position(from, to), position, "{from} to {to} of {nodes}");
            }
        }
        for from in 0..nodes {
            for to in 0..nodes {
                let times = met[(from * nodes + to) as usize];
                assert_eq!(times, u8::from(from != to), "{from} to {to} of {nodes}, {order:?}");
            }
        }
    }

    #[test]
    fn s1_each_pair_meets_once_an_epoch() {
        for nodes in 2..=40 {
            for channels in [1, 2, 3, 4, 8] {
                for order in ORDERS {
                    check_epoch(nodes, channels, order);
                }
            }
        }
        check_epoch(512, 4, Order::PropagationAware);
        check_epoch(511, 4, Order::PropagationAware);
    }

    #[test]
    fn s2_propagation_order_leaves_half_an_epoch_both_ways() {
        for nodes in [3, 7, 9, 511] {
            let schedule = Schedule::new(nodes, 1, Order::PropagationAware);
            assert_eq!(schedule.feedback_gap(), (nodes - 1) / 2, "odd rack of {nodes}");
        }
        for nodes in [2, 4, 8, 512] {
            let schedule = Schedule::new(nodes, 1, Order::PropagationAware);
            assert_eq!(schedule.feedback_gap(), nodes / 2, "even rack of {nodes}");
            for i in 0..nodes {
                let silent =
                    (0..schedule.positions()).filter(|&p| schedule.peer(i, p).is_none()).count();
                assert_eq!(silent, 1, "node {i} of {nodes} has one empty slot");
            }
        }
    }

    #[test]
    fn s3_the_paper_s_rack_has_128_slots_of_four_channels() {
        let schedule = Schedule::new(512, 4, Order::PropagationAware);
        assert_eq!((schedule.positions(), schedule.slots()), (512, 128));
        assert_eq!(schedule.feedback_gap(), 64);
        assert_eq!(Schedule::new(512, 4, Order::Cyclic).slots(), 128);
        assert_eq!(Schedule::new(1024, 4, Order::PropagationAware).slots(), 256);
        assert_eq!(Schedule::new(8, 1, Order::Cyclic).slots(), 7);
    }

    #[test]
    fn s97_a_schedule_without_some_nodes_meets_each_pair_of_the_others_once() {
        for (count, absent) in [(9, vec![0]), (9, vec![3, 8]), (16, vec![1, 2, 15]), (6, vec![])] {
            let present: Vec<_> = (0..count).map(|node| !absent.contains(&node)).collect();
            for order in ORDERS {
                let schedule = Schedule::of_members(&present, 2, order, Slot::new(1000));
                let mut met = std::collections::BTreeSet::new();
                for position in 0..schedule.positions() {
                    for from in 0..count {
                        let Some(to) = schedule.peer(from, position) else { continue };
                        assert!(schedule.contains(from) && schedule.contains(to));
                        assert!(met.insert((from, to)), "{from} to {to} twice");
                        assert_eq!(schedule.position(from, to), position);
                        let slot = schedule.next_slot(from, to, Slot::new(1234)).get();
                        let slots = u64::from(schedule.slots());
                        assert_eq!((slot - 1000) % slots, u64::from(schedule.slot_of(position)));
                    }
                }
                let left = (count as usize) - absent.len();
                assert_eq!(met.len(), left * (left - 1));
            }
        }
    }

    #[test]
    fn the_next_slot_of_a_pair_is_found_within_an_epoch() {
        let schedule = Schedule::new(8, 2, Order::PropagationAware);
        let slots = u64::from(schedule.slots());
        for from_slot in 0..3 * slots {
            for (from, to) in [(0, 1), (3, 7), (7, 3), (6, 2)] {
                let found = schedule.next_slot(from, to, Slot::new(from_slot)).get();
                let position = schedule.position(from, to);
                assert!(found >= from_slot && found - from_slot < slots);
                assert_eq!(found % slots, u64::from(schedule.slot_of(position)));
            }
        }
    }
}
