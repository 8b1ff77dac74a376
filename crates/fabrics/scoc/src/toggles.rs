//! What is busy: routes and ports, which filter the scheduler's messages (M25, M26).
//!
//! Models: SCOC §2.C, §2.D: a group keeps a bit for each route, `AR`; an output is busy from its
//! grant on, an input group's route from the accept on. Both are free again so early that the next
//! packet's first word follows the last word without a gap.

use switching::BitRows;

use crate::chip_config::{ChipPlan, Seats};

/// The toggles of all groups.
#[derive(Clone, Debug)]
pub(crate) struct Toggles {
    seats: Seats,
    routes: usize,
    /// Row `colour`: input groups whose route may be asked for, `AR_I`.
    inputs: BitRows,
    /// Row `colour`: output groups whose route may be granted, `AR_O`.
    outputs: BitRows,
    /// `group * routes + colour`: the first request that an input group may honour on a route.
    honoured_from: Vec<u64>,
    /// For each group its outputs that may grant.
    idle: Vec<u16>,
    /// Row 0: groups with such an output.
    any_idle: BitRows,
}

impl Toggles {
    pub(crate) fn new(plan: &ChipPlan) -> Self {
        let (per_group, routes) = (plan.config.ports_per_group, plan.config.routes);
        let mut any_idle = BitRows::new(1, plan.groups);
        any_idle.fill(0);
        let mut all = BitRows::new(routes, plan.groups);
        (0..routes).for_each(|colour| all.fill(colour));
        let idle = u16::MAX >> (16 - per_group);
        Self {
            seats: plan.seats.clone(),
            routes,
            inputs: all.clone(),
            outputs: all,
            honoured_from: vec![0; plan.groups * routes],
            idle: vec![idle; plan.groups],
            any_idle,
        }
    }

    /// Input groups whose route of `colour` may be asked for.
    #[inline]
    pub(crate) fn free_inputs(&self, colour: usize) -> &[u64] {
        self.inputs.row(colour)
    }

    /// Of 64 output groups, those with an idle output whose route of `colour` may be granted.
    #[inline]
    pub(crate) fn open(&self, colour: usize, word: usize) -> u64 {
        self.outputs.row(colour)[word] & self.any_idle.row(0)[word]
    }

    /// Outputs of a group that may grant, by their place in it.
    #[inline]
    pub(crate) fn idle(&self, group: usize) -> u16 {
        self.idle[group]
    }

    /// Whether an input group may honour a request of `cycle` on the route of `colour`.
    #[inline]
    pub(crate) fn honours(&self, group: usize, colour: usize, cycle: u64) -> bool {
        cycle >= self.honoured_from[group * self.routes + colour]
    }

    /// An input group's route is taken until the request cycle `from`.
    pub(crate) fn take_input(&mut self, group: usize, colour: usize, from: u64) {
        self.honoured_from[group * self.routes + colour] = from;
        self.inputs.clear(colour, group);
    }

    /// An input group's route is free again.
    pub(crate) fn free_input(&mut self, group: usize, colour: usize) {
        self.inputs.set(colour, group);
    }

    /// An output port is busy.
    #[inline]
    pub(crate) fn take_output(&mut self, output: usize) {
        let (group, bit) = self.seats.bit(output);
        self.idle[group] &= !bit;
        if self.idle[group] == 0 {
            self.any_idle.clear(0, group);
        }
    }

    /// An output group's route is reserved or taken.
    #[inline]
    pub(crate) fn take_output_route(&mut self, group: usize, colour: usize) {
        self.outputs.clear(colour, group);
    }

    /// An output port and its group's route are free again.
    #[inline]
    pub(crate) fn free_output(&mut self, output: usize, colour: usize) {
        let (group, bit) = self.seats.bit(output);
        self.idle[group] |= bit;
        self.any_idle.set(0, group);
        self.outputs.set(colour, group);
    }
}
