//! Every word on every wire, recorded: the debug build checks that nothing ever collides.
//!
//! Independent of the toggles: it knows only when words cross. Checks I01, I02 and I20.

use crate::chip_config::{ChipPlan, Crossbars, Transfers};

/// The words of the cycles ahead.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    cycles: usize,
    /// Wires booked in a cycle: inputs and outputs of the crossbars, output ports, input ports.
    wires: usize,
    booked: Vec<bool>,
    lanes: usize,
    groups: usize,
    ports: usize,
    single: bool,
    stride: u64,
}

/// A packet as the wires see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) route: usize,
    /// Cycle of its first word.
    pub(crate) first: u64,
    pub(crate) words: u64,
}

impl Ledger {
    pub(crate) fn new(plan: &ChipPlan, horizon: u64) -> Self {
        let lanes = match plan.config.crossbars {
            Crossbars::Shared => 1,
            Crossbars::Separate => plan.config.routes,
        };
        let (groups, ports) = (plan.groups, plan.config.ports);
        let wires = 2 * groups * lanes + 2 * ports;
        let cycles = horizon as usize + 1;
        Self {
            cycles,
            wires,
            booked: vec![false; cycles * wires],
            lanes,
            groups,
            ports,
            single: plan.config.transfers == Transfers::Single,
            stride: plan.stride(),
        }
    }

    /// Books every word of a packet.
    pub(crate) fn book(&mut self, plan: &ChipPlan, crossing: Crossing) {
        let lane = if self.lanes == 1 { 0 } else { crossing.route };
        let (from, to) = (plan.group(crossing.input), plan.group(crossing.output));
        for word in 0..crossing.words {
            let cycle = crossing.first + word * self.stride;
            self.wire(cycle, from * self.lanes + lane, "crossbar input", crossing);
            let outputs = self.groups * self.lanes;
            self.wire(cycle, outputs + to * self.lanes + lane, "crossbar output", crossing);
            let ports = 2 * self.groups * self.lanes;
            self.wire(cycle, ports + crossing.output, "output port", crossing);
            if self.single {
                self.wire(cycle, ports + self.ports + crossing.input, "input port", crossing);
            }
        }
    }

    fn wire(&mut self, cycle: u64, wire: usize, what: &str, crossing: Crossing) {
        let at = cycle as usize % self.cycles * self.wires + wire;
        assert!(!self.booked[at], "{what} in use twice in cycle {cycle}: {crossing:?}");
        self.booked[at] = true;
    }

    /// With nothing booked.
    pub(crate) fn emptied(mut self) -> Self {
        self.booked.fill(false);
        self
    }

    /// Forgets a cycle that is past.
    pub(crate) fn forget(&mut self, cycle: u64) {
        let row = cycle as usize % self.cycles * self.wires;
        self.booked[row..][..self.wires].fill(false);
    }
}
