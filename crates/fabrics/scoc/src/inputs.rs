//! Request units: what every input has waiting, and what its group asks for.
//!
//! Models: SCOC §2.B. Each input keeps an array of its packets in order of age (M07); a merger for
//! each destination ORs the requests of a group's inputs (M11). Here the merged wires are kept up
//! to date as packets come and go, one word of groups for each output, so a cycle costs a few
//! operations on words for each output that can grant.

use switching::{BitRows, Packet};

use crate::config::{ChipPlan, GROUPS_MAX, Requesting, Transfers};

/// Words in a row of groups.
pub(crate) const ROW_WORDS: usize = GROUPS_MAX / 64;

/// An input's packets that may ask, oldest first: destinations apart, for they are searched.
#[derive(Clone, Debug, Default)]
struct Array {
    destinations: Vec<u16>,
    packets: Vec<(Packet, u64)>,
}

/// The input side of all groups.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    groups: usize,
    per_group: usize,
    window: usize,
    requesting: Requesting,
    arrays: Vec<Array>,
    /// `output * groups + group`: local inputs with a packet for the output inside their window.
    holds: Vec<u16>,
    /// For each place of an output in its group: pairs whose holders have changed since the
    /// weightage wires were last read.
    changed: Vec<Vec<u32>>,
    /// The same as `holds` for the oldest packet alone.
    oldest: Vec<u16>,
    /// For each group its inputs that may start a transfer.
    idle: Vec<u16>,
    /// Row `output`: groups that ask if their route is free.
    real: BitRows,
    /// Row `output`: groups that ask, truly or not, if their route is busy.
    fake: BitRows,
    /// Row `output`: groups of which a busy input asks for its oldest packet.
    blocked: BitRows,
    /// Row `output`: groups whose oldest packet for it has waited too long.
    aged: BitRows,
    any_aged: bool,
    single: bool,
}

impl Inputs {
    pub(crate) fn new(plan: &ChipPlan) -> Self {
        let config = &plan.config;
        let pairs = config.ports * plan.groups;
        let rows = || BitRows::new(config.ports, plan.groups);
        Self {
            groups: plan.groups,
            per_group: config.ports_per_group,
            window: config.window.unwrap_or(usize::MAX),
            requesting: config.requesting,
            arrays: vec![Array::default(); config.ports],
            holds: vec![0; pairs],
            changed: vec![Vec::new(); config.ports_per_group],
            oldest: vec![0; pairs],
            idle: vec![u16::MAX; plan.groups],
            real: rows(),
            fake: rows(),
            blocked: rows(),
            aged: rows(),
            any_aged: false,
            single: config.transfers == Transfers::Single,
        }
    }

    /// Puts a packet at the end of its input's array.
    pub(crate) fn enqueue(&mut self, packet: Packet, cycle: u64) {
        let port = usize::from(packet.source);
        let array = &mut self.arrays[port];
        array.destinations.push(packet.destination);
        array.packets.push((packet, cycle));
        let place = array.packets.len() - 1;
        if place < self.window {
            self.enter_window(port, place);
        }
    }

    /// Whether `port` may start a transfer to `output`, and has a packet for it.
    pub(crate) fn candidates(&self, output: usize, group: usize) -> u16 {
        self.holds[output * self.groups + group] & self.idle[group]
    }

    /// Brings a table of weightage up to date for the outputs at `place` of their groups: how many
    /// inputs of each group hold a packet for the output, less one (M24).
    pub(crate) fn write_weightage(&mut self, place: usize, table: &mut [u8]) {
        for pair in self.changed[place].drain(..) {
            table[pair as usize] = weight(self.holds[pair as usize]);
        }
    }

    /// The weightage of one pair as it is now.
    #[cfg(test)]
    pub(crate) fn weightage(&self, output: usize, group: usize) -> u8 {
        weight(self.holds[output * self.groups + group])
    }

    #[inline]
    fn note_change(&mut self, output: usize, group: usize) {
        self.changed[output % self.per_group].push((output * self.groups + group) as u32);
    }

    /// Of several outputs that grant, the one for which `port` has its oldest packet.
    pub(crate) fn oldest_of(&self, port: usize, outputs: &[u16]) -> Option<u16> {
        let array = &self.arrays[port].destinations;
        array.iter().take(self.window).copied().find(|destination| outputs.contains(destination))
    }

    /// Takes the oldest packet of `port` for `output`.
    pub(crate) fn remove(&mut self, port: usize, output: usize) -> Packet {
        let array = &mut self.arrays[port];
        let place = array.destinations.iter().position(|&to| usize::from(to) == output);
        let place = place.expect("only a port with a packet for an output accepts its grant");
        array.destinations.remove(place);
        let (packet, _) = array.packets.remove(place);
        let more = array.destinations.iter().take(self.window.saturating_sub(1));
        let (group, bit) = (port / self.per_group, 1 << (port % self.per_group));
        if !more.copied().any(|to| usize::from(to) == output) {
            self.holds[output * self.groups + group] &= !bit;
            self.note_change(output, group);
        }
        if place == 0 {
            self.oldest[output * self.groups + group] &= !bit;
            if self.any_aged {
                self.aged.clear(output, group);
            }
            if let Some(&next) = self.arrays[port].destinations.first() {
                self.oldest[usize::from(next) * self.groups + group] |= bit;
                self.refresh(usize::from(next), group);
            }
        }
        self.refresh(output, group);
        if self.arrays[port].packets.len() >= self.window {
            self.enter_window(port, self.window - 1);
        }
        packet
    }

    /// The packet at `place` of a port may ask from now on.
    fn enter_window(&mut self, port: usize, place: usize) {
        let output = usize::from(self.arrays[port].destinations[place]);
        let (group, bit) = (port / self.per_group, 1 << (port % self.per_group));
        self.holds[output * self.groups + group] |= bit;
        self.note_change(output, group);
        if place == 0 {
            self.oldest[output * self.groups + group] |= bit;
        }
        self.refresh(output, group);
    }

    /// Brings the merged wires of one group and output up to date.
    #[inline]
    fn refresh(&mut self, output: usize, group: usize) {
        let pair = output * self.groups + group;
        let idle = self.idle[group];
        let (holds, oldest) = (self.holds[pair], self.oldest[pair]);
        self.real.put(output, group, holds & idle != 0);
        let fake = match self.requesting {
            Requesting::Selective => 0,
            Requesting::OldestFake => oldest,
            Requesting::UnlimitedFakes => holds,
        };
        self.fake.put(output, group, fake != 0);
        if self.single {
            self.blocked.put(output, group, fake & !idle != 0);
        }
    }

    /// Notes whether `port` may start a transfer.
    pub(crate) fn set_idle(&mut self, port: usize, idle: Idle) {
        let (group, bit) = (port / self.per_group, 1 << (port % self.per_group));
        match idle {
            Idle::Yes => self.idle[group] |= bit,
            Idle::No => self.idle[group] &= !bit,
        }
        for place in 0..self.arrays[port].destinations.len().min(self.window) {
            self.refresh(usize::from(self.arrays[port].destinations[place]), group);
        }
    }

    /// The merged requests to `output`; `free`: groups whose route of this colour is free. Gives
    /// whether there is any.
    #[inline]
    pub(crate) fn requests(&self, output: usize, free: &[u64], row: &mut [u64]) -> bool {
        let (real, fake) = (self.real.row(output), self.fake.row(output));
        let blocked = self.blocked.row(output);
        let mut any = 0;
        for (at, wires) in row.iter_mut().enumerate() {
            *wires = real[at] & free[at] | fake[at] & !free[at] | blocked[at];
            any |= *wires;
        }
        if any != 0 && self.any_aged {
            self.prefer_aged(output, row);
        }
        any != 0
    }

    /// Leaves only requests of packets that have waited too long, if there are any.
    fn prefer_aged(&self, output: usize, row: &mut [u64]) {
        let aged = self.aged.row(output);
        if row.iter().zip(aged).any(|(wires, aged)| wires & aged != 0) {
            row.iter_mut().zip(aged).for_each(|(wires, aged)| *wires &= aged);
        }
    }

    /// Looks for heads that have waited longer than `limit`; gives how many are new.
    pub(crate) fn age(&mut self, cycle: u64, limit: u64) -> u64 {
        let mut found = 0;
        for (port, array) in self.arrays.iter().enumerate() {
            let Some((packet, since)) = array.packets.first() else { continue };
            let (output, group) = (usize::from(packet.destination), port / self.per_group);
            if cycle - since > limit && !self.aged.get(output, group) {
                self.aged.set(output, group);
                self.any_aged = true;
                found += 1;
            }
        }
        found
    }

    /// Packets in the arrays.
    pub(crate) fn waiting(&self) -> usize {
        self.arrays.iter().map(|array| array.packets.len()).sum()
    }

    /// Checks the wires against the arrays.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut holds = vec![0u16; self.holds.len()];
        let mut oldest = vec![0u16; self.holds.len()];
        for (port, array) in self.arrays.iter().enumerate() {
            for (place, &to) in array.destinations.iter().take(self.window).enumerate() {
                let pair = usize::from(to) * self.groups + port / self.per_group;
                holds[pair] |= 1 << (port % self.per_group);
                oldest[pair] |= u16::from(place == 0) << (port % self.per_group);
            }
        }
        let wrong = |what, kept: &[u16], true_now: &[u16]| {
            let at = kept.iter().zip(true_now).position(|(kept, now)| kept != now)?;
            let (output, group) = (at / self.groups, at % self.groups);
            Some(format!("{what} of group {group} for output {output}: {:#b}", kept[at]))
        };
        let problem = wrong("holders", &self.holds, &holds);
        problem.or_else(|| wrong("oldest", &self.oldest, &oldest)).map_or(Ok(()), Err)
    }
}

/// What the weightage wires say of these holders.
#[inline]
fn weight(holders: u16) -> u8 {
    holders.count_ones().saturating_sub(1) as u8
}

/// Whether an input may start a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Idle {
    /// It may.
    Yes,
    /// One is under way that leaves no room for another.
    No,
}
