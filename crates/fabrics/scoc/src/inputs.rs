//! Request units: what every input has waiting, and what its group asks for.
//!
//! Models: SCOC §2.B. Each input keeps an array of its packets in order of age (M07, `arrays.rs`); a
//! merger for each destination ORs the requests of a group's inputs (M11). Here the merged wires
//! are kept up to date as packets come and go, a bit for each group, so a cycle costs a few
//! operations on words for each output that can grant.

use switching::{BitRows, Packet, next_in_turn_by};

use crate::arrays::Arrays;
use crate::chip_config::{ChipPlan, Requesting, Seats, Transfers};

/// Inputs of a group by what they hold for one output, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Holders {
    /// Those with a packet for the output inside their window.
    any: u16,
    /// Those whose oldest packet is for the output.
    oldest: u16,
}

/// What 64 groups ask of one output, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Wires {
    /// Groups that ask if their route is free.
    real: u64,
    /// Groups that ask, truly or not, if their route is busy.
    fake: u64,
    /// Groups of which a busy input asks for its oldest packet.
    blocked: u64,
}

/// The input side of all groups.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    groups: usize,
    seats: Seats,
    /// Words of 64 groups.
    words: usize,
    window: usize,
    requesting: Requesting,
    transfers: Transfers,
    pub(crate) arrays: Arrays,
    /// `output * groups + group`.
    holders: Vec<Holders>,
    /// For each place of an output in its group: pairs whose holders have changed since the
    /// weightage wires were last read.
    changed: Vec<Vec<u32>>,
    /// For each group its inputs that may start a transfer.
    idle: Vec<u16>,
    /// `output * words + word`.
    wires: Vec<Wires>,
    /// For each output how many groups hold a packet for it.
    askers: Vec<u16>,
    /// For each group its outputs for which any group holds a packet.
    wanted: Vec<u16>,
    /// Row 0: groups with such an output.
    any_wanted: BitRows,
    /// Row `output`: groups whose oldest packet for it has waited too long.
    aged: BitRows,
    any_aged: bool,
}

impl Inputs {
    pub(crate) fn new(plan: &ChipPlan) -> Self {
        let config = &plan.config;
        let words = plan.groups.div_ceil(64);
        Self {
            groups: plan.groups,
            seats: plan.seats.clone(),
            words,
            window: config.window.unwrap_or(usize::MAX),
            requesting: config.requesting,
            transfers: config.transfers,
            arrays: Arrays::new(config.ports, config.input_packets),
            holders: vec![Holders::default(); config.ports * plan.groups],
            changed: vec![Vec::new(); config.ports_per_group],
            idle: vec![u16::MAX; plan.groups],
            wires: vec![Wires::default(); config.ports * words],
            askers: vec![0; config.ports],
            wanted: vec![0; plan.groups],
            any_wanted: BitRows::new(1, plan.groups),
            aged: BitRows::new(config.ports, plan.groups),
            any_aged: false,
        }
    }

    /// The packet at `address` of a port may ask from now on.
    pub(crate) fn enlist(&mut self, port: usize, address: u16) {
        let place = self.arrays.list(port, address);
        if place < self.window {
            self.enter_window(port, place);
        }
    }

    /// Inputs of `group` that may start a transfer to `output` and have a packet for it.
    #[inline]
    pub(crate) fn candidates(&self, output: usize, group: usize) -> u16 {
        self.holders[output * self.groups + group].any & self.idle[group]
    }

    /// Brings a table of weightage up to date for the outputs at `place` of their groups: how many
    /// inputs of each group hold a packet for the output, less one (M24).
    pub(crate) fn write_weightage(&mut self, place: usize, table: &mut [u8]) {
        for pair in self.changed[place].drain(..) {
            table[pair as usize] = weight(self.holders[pair as usize]);
        }
    }

    /// The weightage of one pair as it is now.
    #[cfg(test)]
    pub(crate) fn weightage(&self, output: usize, group: usize) -> u8 {
        weight(self.holders[output * self.groups + group])
    }

    #[inline]
    fn note_change(&mut self, output: usize, group: usize) {
        self.changed[self.seats.place(output)].push((output * self.groups + group) as u32);
    }

    /// Of several outputs that grant, the one for which `port` has its oldest packet.
    pub(crate) fn oldest_of(&self, port: usize, outputs: &[u16]) -> Option<u16> {
        let listed = self.arrays.of(port).iter().take(self.window);
        listed.map(|entry| entry.destination).find(|destination| outputs.contains(destination))
    }

    /// Takes the oldest packet of `port` for `output`, and gives its address too.
    pub(crate) fn remove(&mut self, port: usize, output: usize) -> (Packet, u16) {
        let goes_there = |entry: &crate::arrays::Entry| usize::from(entry.destination) == output;
        let place = self.arrays.of(port).iter().position(goes_there);
        let place = place.expect("only a port with a packet for an output accepts its grant");
        let taken = self.arrays.strike(port, place);
        let (group, bit) = self.seats.bit(port);
        let pair = output * self.groups + group;
        let rest = self.arrays.of(port);
        let next = rest.first().map(|entry| usize::from(entry.destination));
        // What was behind it is the only place where another for the output can be.
        let window = rest.len().min(self.window.saturating_sub(1));
        if !rest.get(place..window).is_some_and(|behind| behind.iter().any(goes_there)) {
            self.holders[pair].any &= !bit;
            self.note_change(output, group);
            if self.holders[pair].any == 0 {
                self.lose_asker(output);
            }
        }
        if place == 0 {
            self.holders[pair].oldest &= !bit;
            if self.any_aged {
                self.aged.clear(output, group);
            }
            if let Some(next) = next {
                self.holders[next * self.groups + group].oldest |= bit;
                self.refresh(next, group);
            }
        }
        self.refresh(output, group);
        if self.arrays.of(port).len() >= self.window {
            self.enter_window(port, self.window - 1);
        }
        taken
    }

    /// The packet at `place` of a port may ask from now on.
    fn enter_window(&mut self, port: usize, place: usize) {
        let output = usize::from(self.arrays.of(port)[place].destination);
        let (group, bit) = self.seats.bit(port);
        let holders = &mut self.holders[output * self.groups + group];
        let before = *holders;
        holders.any |= bit;
        if place == 0 {
            holders.oldest |= bit;
        }
        if before.any == 0 {
            self.gain_asker(output);
        }
        if before.any & bit == 0 {
            self.note_change(output, group);
        }
        self.refresh(output, group);
    }

    #[inline]
    fn gain_asker(&mut self, output: usize) {
        let (group, bit) = self.seats.bit(output);
        self.askers[output] += 1;
        self.wanted[group] |= bit;
        self.any_wanted.set(0, group);
    }

    #[inline]
    fn lose_asker(&mut self, output: usize) {
        self.askers[output] -= 1;
        if self.askers[output] == 0 {
            let (group, bit) = self.seats.bit(output);
            self.wanted[group] &= !bit;
            if self.wanted[group] == 0 {
                self.any_wanted.clear(0, group);
            }
        }
    }

    /// Outputs of `group`, by their place in it, for which anybody holds a packet.
    #[inline]
    pub(crate) fn wanted(&self, group: usize) -> u16 {
        self.wanted[group]
    }

    /// Of 64 output groups, those with an output for which anybody holds a packet.
    #[inline]
    pub(crate) fn any_wanted(&self, word: usize) -> u64 {
        self.any_wanted.row(0)[word]
    }

    /// Brings the merged wires of one group and output up to date.
    #[inline]
    fn refresh(&mut self, output: usize, group: usize) {
        let Holders { any, oldest } = self.holders[output * self.groups + group];
        let idle = self.idle[group];
        let fake = match self.requesting {
            Requesting::Selective => 0,
            Requesting::OldestFake => oldest,
            Requesting::UnlimitedFakes => any,
        };
        let wires = &mut self.wires[output * self.words + group / 64];
        let bit = group % 64;
        put(&mut wires.real, bit, any & idle != 0);
        put(&mut wires.fake, bit, fake != 0);
        if self.transfers == Transfers::Single {
            put(&mut wires.blocked, bit, fake & !idle != 0);
        }
    }

    /// Notes whether `port` may start a transfer.
    pub(crate) fn set_idle(&mut self, port: usize, idle: Idle) {
        let (group, bit) = self.seats.bit(port);
        match idle {
            Idle::Yes => self.idle[group] |= bit,
            Idle::No => self.idle[group] &= !bit,
        }
        for place in 0..self.arrays.of(port).len().min(self.window) {
            let output = usize::from(self.arrays.of(port)[place].destination);
            self.refresh(output, group);
        }
    }

    /// The merged requests of 64 groups to `output`; `free`: those whose route of this colour is
    /// free.
    #[inline]
    fn asking(&self, output: usize, word: usize, free: &[u64]) -> u64 {
        let wires = &self.wires[output * self.words + word];
        wires.real & free[word] | wires.fake & !free[word] | wires.blocked
    }

    /// The first group in turn, from `from` on, that asks for `output`. Packets that have waited
    /// too long go before all others.
    #[inline]
    pub(crate) fn next_request(&self, output: usize, from: usize, free: &[u64]) -> Option<usize> {
        if self.any_aged {
            let aged = |word| self.asking(output, word, free) & self.aged.row(output)[word];
            let found = next_in_turn_by(self.words, from, aged);
            if found.is_some() {
                return found;
            }
        }
        next_in_turn_by(self.words, from, |word| self.asking(output, word, free))
    }

    /// Writes the merged requests to `output` into `row`.
    pub(crate) fn requests(&self, output: usize, free: &[u64], row: &mut [u64]) {
        for (word, wires) in row.iter_mut().enumerate() {
            *wires = self.asking(output, word, free);
        }
        let aged = self.aged.row(output);
        if self.any_aged && row.iter().zip(aged).any(|(wires, aged)| wires & aged != 0) {
            row.iter_mut().zip(aged).for_each(|(wires, aged)| *wires &= aged);
        }
    }

    /// Looks for heads that have waited longer than `limit`; gives how many are new.
    pub(crate) fn age(&mut self, cycle: u64, limit: u64) -> u64 {
        let mut found = 0;
        for port in 0..self.askers.len() {
            let Some(&head) = self.arrays.of(port).first() else { continue };
            let (output, group) = (usize::from(head.destination), self.seats.group(port));
            if cycle - self.arrays.since(port, head) > limit && !self.aged.get(output, group) {
                self.aged.set(output, group);
                self.any_aged = true;
                found += 1;
            }
        }
        found
    }

    /// Checks the wires against the arrays.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut true_now = vec![Holders::default(); self.holders.len()];
        for port in 0..self.askers.len() {
            let (group, bit) = self.seats.bit(port);
            for (place, entry) in self.arrays.of(port).iter().take(self.window).enumerate() {
                let pair = usize::from(entry.destination) * self.groups + group;
                true_now[pair].any |= bit;
                true_now[pair].oldest |= if place == 0 { bit } else { 0 };
            }
        }
        for (output, groups) in true_now.chunks(self.groups).enumerate() {
            let askers = groups.iter().filter(|holders| holders.any != 0).count();
            let (group, bit) = self.seats.bit(output);
            let wanted = self.wanted[group] & bit != 0;
            if askers != usize::from(self.askers[output]) || (askers > 0) != wanted {
                let noted = self.askers[output];
                return Err(format!("output {output}: {noted} groups are noted, {askers} ask"));
            }
        }
        let wrong = self.holders.iter().zip(&true_now).position(|(kept, now)| kept != now);
        wrong.map_or(Ok(()), |at| {
            let (output, group) = (at / self.groups, at % self.groups);
            let (kept, now) = (self.holders[at], true_now[at]);
            Err(format!("group {group} for output {output}: {kept:?} are noted, {now:?} hold"))
        })
    }
}

/// Gives a bit of a word this value.
#[inline]
fn put(word: &mut u64, bit: usize, value: bool) {
    *word = *word & !(1 << bit) | u64::from(value) << bit;
}

/// What the weightage wires say of these holders.
#[inline]
fn weight(holders: Holders) -> u8 {
    holders.any.count_ones().saturating_sub(1) as u8
}

/// Whether an input may start a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Idle {
    /// It may.
    Yes,
    /// One is under way that leaves no room for another.
    No,
}
