//! Grant units: output arbiters, their weightage, and the choice inside each output group.
//!
//! Models: SCOC §2.B. Every output picks one input group by a round-robin pointer (M12); its group
//! lets one of its outputs grant (M13). The pointer moves on an accept, and with weightage stays
//! on a group for as many grants as the group has ports that ask (M22, M24).

use kernel::Stream;
use switching::arbiters::{OldestLink, RoundRobin, at_random};
use switching::ones;

use crate::chip_config::{ChipPlan, GROUPS_MAX, GrantOrder, OutputChoice, Seats, Shares};
use crate::inputs::Inputs;

/// A grant on its way from an output to an input group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Grant {
    pub(crate) output: u16,
    pub(crate) group: u16,
}

/// What an output group grants from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) group: usize,
    /// Its outputs that may grant, by their place in it.
    pub(crate) idle: u16,
    /// Input groups whose route of the colour is free.
    pub(crate) free: &'a [u64],
    pub(crate) inputs: &'a Inputs,
}

/// An output's arbiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Arbiter {
    turn: RoundRobin,
    /// Group granted last; none at first.
    current: u16,
    /// Further grants that the current group may have in this visit.
    repeat: u8,
    /// Whether one of this visit's grants was accepted.
    accepted: bool,
}

/// Words of the longest row of groups.
pub(crate) const ROW_WORDS: usize = GROUPS_MAX / 64;

/// No group.
const NO_GROUP: u16 = u16::MAX;

/// The output side of all groups, but for the buffers.
#[derive(Clone, Debug)]
pub(crate) struct GrantUnits {
    groups: usize,
    per_group: usize,
    seats: Seats,
    order: GrantOrder,
    choice: OutputChoice,
    shares: Shares,
    arbiters: Vec<Arbiter>,
    /// For each group the turn of X4.
    group_turns: Vec<RoundRobin>,
    /// For each group which of its outputs was accepted least recently.
    links: Vec<OldestLink>,
    /// For each group whose turn it is, if that is how it chooses.
    local_turns: Vec<RoundRobin>,
    streams: Vec<Stream>,
    /// `output * groups + group`: what the weightage wires said last.
    weightage: Vec<u8>,
}

impl GrantUnits {
    pub(crate) fn new(plan: &ChipPlan, seed: u64) -> Self {
        let config = &plan.config;
        let arbiter =
            Arbiter { turn: RoundRobin::default(), current: NO_GROUP, repeat: 0, accepted: false };
        let stream = |group| Stream::new(seed, "scoc/output-group", group as u64);
        Self {
            groups: plan.groups,
            per_group: config.ports_per_group,
            seats: plan.seats.clone(),
            order: config.grant_order,
            choice: config.output_choice,
            shares: config.shares,
            arbiters: vec![arbiter; config.ports],
            group_turns: vec![RoundRobin::default(); plan.groups],
            links: vec![OldestLink::new(config.ports_per_group); plan.groups],
            local_turns: vec![RoundRobin::default(); plan.groups],
            streams: (0..plan.groups).map(stream).collect(),
            weightage: vec![0; config.ports * plan.groups],
        }
    }

    /// Reads the weightage wires of this cycle: every input group says how many of its inputs ask
    /// for the output at `place` of each output group, less one (M24).
    pub(crate) fn read_weightage(&mut self, place: usize, inputs: &mut Inputs) {
        inputs.write_weightage(place, &mut self.weightage);
    }

    /// What the wires said last of one output and group.
    #[cfg(test)]
    pub(crate) fn weightage(&self, output: usize, group: usize) -> u8 {
        self.weightage[output * self.groups + group]
    }

    /// The grant of an output group, if any. `has_room`: whether an output can take one packet more.
    #[inline]
    pub(crate) fn grant(
        &mut self,
        asked: &Asked<'_>,
        has_room: impl FnMut(usize) -> bool,
    ) -> Option<Grant> {
        match self.order {
            GrantOrder::OutputFirst => self.grant_output_first(asked, has_room),
            GrantOrder::GroupFirst => self.grant_group_first(asked, has_room),
        }
    }

    #[inline]
    fn grant_output_first(
        &mut self,
        &Asked { group, idle, free, inputs }: &Asked<'_>,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> Option<Grant> {
        let mut ready = 0u64;
        let mut selected = [0u16; 16];
        for place in ones(u64::from(idle)) {
            let output = group * self.per_group + place;
            let turn = self.arbiters[output].turn.pointer();
            if let Some(input) = inputs.next_request(output, turn, free)
                && has_room(output)
            {
                selected[place] = input as u16;
                ready |= 1 << place;
            }
        }
        let place = self.choose_local(group, ready)?;
        let output = group * self.per_group + place;
        self.note_grant(output, selected[place]);
        Some(Grant { output: output as u16, group: selected[place] })
    }

    /// X4: the group's pointer picks an input group first.
    fn grant_group_first(
        &mut self,
        &Asked { group, idle, free, inputs }: &Asked<'_>,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> Option<Grant> {
        let mut rows = [[0; ROW_WORDS]; 16];
        let mut merged = [0; ROW_WORDS];
        let first = group * self.per_group;
        for place in ones(u64::from(idle)).filter(|place| has_room(first + place)) {
            let row = &mut rows[place][..free.len()];
            inputs.requests(first + place, free, row);
            merged.iter_mut().zip(row.iter()).for_each(|(all, wires)| *all |= wires);
        }
        let input = self.group_turns[group].choose(&merged[..free.len()])?;
        let asks = |place: &usize| rows[*place][input / 64] >> (input % 64) & 1 == 1;
        let ready = ones(u64::from(idle)).filter(asks).fold(0, |ready, place| ready | 1 << place);
        let place = self.choose_local(group, ready)?;
        Some(Grant { output: (first + place) as u16, group: input as u16 })
    }

    /// The output of a group that may speak.
    #[inline]
    fn choose_local(&mut self, group: usize, ready: u64) -> Option<usize> {
        match self.choice {
            OutputChoice::OldestLink => self.links[group].choose(ready),
            OutputChoice::Random => at_random(ready, &mut self.streams[group]),
            OutputChoice::RoundRobin => self.local_turns[group].choose(&[ready]),
        }
    }

    /// Counts a grant that leaves, against its group's quota.
    fn note_grant(&mut self, output: usize, group: u16) {
        let arbiter = &mut self.arbiters[output];
        if arbiter.current != group {
            arbiter.current = group;
            arbiter.repeat = match self.shares {
                Shares::PerPort => self.weightage[output * self.groups + usize::from(group)],
                Shares::PerGroup => 0,
            };
            arbiter.accepted = false;
        } else if arbiter.repeat > 0 {
            arbiter.repeat -= 1;
            if arbiter.repeat == 0 && arbiter.accepted {
                arbiter.turn.point_beyond(usize::from(group), self.groups);
            }
        }
    }

    /// A grant was accepted.
    pub(crate) fn accepted(&mut self, grant: Grant) {
        let (output, input) = (usize::from(grant.output), usize::from(grant.group));
        let (group, place) = (self.seats.group(output), self.seats.place(output));
        match self.choice {
            OutputChoice::OldestLink => self.links[group].chosen(place),
            OutputChoice::RoundRobin => {
                self.local_turns[group].point_beyond(place, self.per_group);
            }
            OutputChoice::Random => {}
        }
        if self.order == GrantOrder::GroupFirst {
            self.group_turns[group].point_beyond(input, self.groups);
            return;
        }
        let arbiter = &mut self.arbiters[output];
        arbiter.accepted = true;
        match arbiter.repeat {
            0 => arbiter.turn.point_beyond(input, self.groups),
            _ => arbiter.turn.point_at(input),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChipConfig;

    fn units() -> GrantUnits {
        let config = ChipConfig { ports: 16, ..ChipConfig::default() };
        GrantUnits::new(&config.plan().unwrap(), 1)
    }

    /// Grants of output 0 among groups that always ask, with their weightage and whether they
    /// accept.
    fn visits(weightage: [u8; 4], accepts: [bool; 4], count: usize) -> Vec<u16> {
        let mut units = units();
        units.weightage[..4].copy_from_slice(&weightage);
        (0..count)
            .map(|_| {
                let group = units.arbiters[0].turn.choose(&[0b1111]).unwrap() as u16;
                units.note_grant(0, group);
                if accepts[usize::from(group)] {
                    units.accepted(Grant { output: 0, group });
                }
                group
            })
            .collect()
    }

    #[test]
    fn m22_the_pointer_moves_beyond_whoever_accepts_and_stays_on_whoever_does_not() {
        assert_eq!(visits([0; 4], [true; 4], 6), [0, 1, 2, 3, 0, 1]);
        assert_eq!(visits([0; 4], [true, true, false, true], 6), [0, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn m24_a_group_has_as_many_grants_in_a_row_as_it_has_ports_that_ask() {
        assert_eq!(visits([2, 0, 3, 0], [true; 4], 10), [0, 0, 0, 1, 2, 2, 2, 2, 3, 0]);
    }

    #[test]
    fn m24_the_quota_falls_with_grants_but_a_visit_does_not_end_before_one_is_accepted() {
        assert_eq!(visits([2, 0, 0, 0], [false, true, true, true], 6), [0; 6]);
        // The last grant of a visit moves the pointer at once if an earlier one was accepted.
        let mut units = units();
        units.weightage[0] = 1;
        units.note_grant(0, 0);
        units.accepted(Grant { output: 0, group: 0 });
        assert_eq!(units.arbiters[0].turn.pointer(), 0);
        units.note_grant(0, 0);
        assert_eq!(units.arbiters[0].turn.pointer(), 1);
    }
}
