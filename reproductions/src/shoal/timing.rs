//! What is arithmetic: slots and epochs, latency, memory, the empty slot (§3.3.4, §3.4, §4, §6, §7.1,
//! App. A).

use std::ops::ControlFlow;

use kernel::{Bytes, Rate, Slot, Span};
use rack::NodeId;
use report::page::Block;
use shoal::clos::hardware::{CYCLE_10G, CYCLE_50G, SwitchHardware, SwitchLayer};
use shoal::memory::NodeMemory;
use shoal::schedule::{Order, Schedule};
use shoal::sync::{GuardBand, SlotTiming, WIRE_TOLERANCE_DEFAULT, propagation_spread};
use shoal::wire::Layout;
use shoal::{Config, Rack};

use super::throughput;
use crate::claims::{Measured, Sheet};
use crate::drawing::findings;
use crate::runs::{ScenarioFile, config_of};
use crate::steady;
use crate::{Effort, Failure, Findings, Watch};

/// Shoal §7.1: what the guard band allows for all but reconfiguration.
const OTHER_ERRORS: Span = Span::from_ps(250);
/// Shoal §7.1: reconfiguration as the paper rounds it.
const RECONFIGURATION: Span = Span::from_ps(2_500);

/// E01: slots and epochs of the prototype and of the simulated rack.
pub(super) fn timing(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/timing.claims.toml"));
    let mut put = |id: &str, value: f64| sheet.measure(id, Measured::one(value));
    let switch = SwitchHardware::prototype(SwitchLayer::Layer1, CYCLE_10G);
    let rate = Rate::from_gbps(10);
    let slot = SlotTiming::for_cell(Bytes::new(64), switch.reconfiguration(), Bytes::new(24), rate)
        .expect("the prototype's slot holds its cell");
    let share = |part: Span, whole: Span| part.as_ps() as f64 / whole.as_ps() as f64;
    put("timing.cycle", CYCLE_10G.as_seconds());
    put("timing.prototype-slot", slot.slot().as_seconds());
    put("timing.prototype-usable", slot.usable().as_seconds());
    put("timing.prototype-cell", slot.cell().get() as f64);
    put("timing.prototype-guard-share", share(slot.guard(), slot.slot()));
    let epoch = slot.epoch(u64::from(Schedule::new(8, 1, Order::Cyclic).slots()));
    put("timing.prototype-epoch", epoch.as_seconds());

    let faster = SwitchHardware::prototype(SwitchLayer::Layer1, CYCLE_50G);
    put("timing.reconfiguration-50g", faster.reconfiguration().as_seconds());
    let config = Config::default();
    let needed = GuardBand {
        reconfiguration: RECONFIGURATION,
        synchronisation: OTHER_ERRORS,
        ..GuardBand::default()
    };
    put("timing.guard", needed.total().as_seconds());
    put("timing.propagation-spread", propagation_spread(WIRE_TOLERANCE_DEFAULT).as_seconds());
    let channel = config.node_rate / u64::from(config.channels);
    let slot = SlotTiming::new(config.slot, config.guard, config.framing, channel)
        .expect("the paper's slot holds its guard band");
    put("timing.usable", slot.usable().as_seconds());
    put("timing.cell", slot.cell().get() as f64);
    put("timing.guard-share", share(slot.guard(), slot.slot()));
    put("timing.rate-max", config.node_rate.as_bps() as f64 * slot.duty_cycle());
    let slots = Schedule::new(config.nodes, config.channels, config.schedule).slots();
    put("timing.epoch", slot.epoch(u64::from(slots)).as_seconds());
    let text = "From clock cycles to slots and epochs, of the prototype of eight nodes (§6.1) and \
                of the simulated rack of 512 (§7.1). Nothing is left to chance here: times are \
                whole picoseconds.";
    Ok(findings("Slots and epochs", text, Vec::new(), sheet))
}

/// E22: where the time from node to node goes.
pub(super) fn latency(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/latency.claims.toml"));
    let switch = SwitchHardware::prototype(SwitchLayer::Layer1, CYCLE_10G);
    let mut put = |id: &str, value: f64| sheet.measure(id, Measured::one(value));
    put("latency.switch", switch.port_to_port().as_seconds());
    put("latency.end-nodes", (switch.cycle * switch.end_node_cycles).as_seconds());
    put("latency.nic-logic", (switch.transmit_cycles + switch.receive_cycles) as f64);
    let scenario = super::prototype::FIG9.with(&[], 1)?;
    let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
    put("latency.node-to-node", plan.latency.as_seconds());
    let text = "The cycles of switch and interface (§4, §6.2). The latency from node to node is \
                that of the configuration with which Figs 9 and 10 are run.";
    Ok(findings("Latency from node to node", text, Vec::new(), sheet))
}

/// E21: memory of a node's interface.
pub(super) fn memory(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/memory.claims.toml"));
    let of = |nodes| {
        let layout = Layout::new(nodes, 1).expect("the header has room for so many nodes");
        NodeMemory::new(nodes, Config::default().cell, &layout)
    };
    let mut put = |id: &str, value: f64| sheet.measure(id, Measured::one(value));
    put("memory.queues", of(512).queues.get() as f64);
    put("memory.cell-cache", of(512).cell_cache.get() as f64);
    put("memory.feedback", of(1000).feedback_matrix.get() as f64);
    let matrix = |nodes| of(nodes).feedback_matrix.get() as f64;
    put("memory.growth", matrix(2000) / matrix(1000));
    let text = "Cells for the worst incast off the chip, one cell a queue and the feedback of each \
                flow over each node on it (§3.3.4, §4.2).";
    Ok(findings("Memory of a node's interface", text, Vec::new(), sheet))
}

const EMPTY_SLOT: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/empty-slot.toml",
    text: include_str!("../../shoal/empty-slot.toml"),
};

/// E24: the empty slot that an even rack pays.
pub(super) fn empty_slot(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/empty-slot.claims.toml"));
    let lost = |nodes| {
        let schedule = Schedule::new(nodes, 1, Order::PropagationAware);
        let empty = (0..schedule.positions()).filter(|&p| schedule.peer(0, p).is_none()).count();
        empty as f64 / f64::from(schedule.positions())
    };
    let mut put = |id: &str, value: f64| sheet.measure(id, Measured::one(value));
    put("empty-slot.even", lost(512));
    put("empty-slot.odd", lost(511));
    let odd = Schedule::new(511, 1, Order::PropagationAware);
    // From a cell to the answer, in slots of which the answer's own is the last.
    let there = odd.next_slot(0, 1, Slot::new(0));
    let back = odd.next_slot(1, 0, there).get() - there.get();
    put("empty-slot.gap", back as f64);

    let scenario = EMPTY_SLOT.with(&[], 1)?;
    let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
    let steady = throughput::window(&plan, 200, 800);
    let mut rack = Rack::new(plan.clone(), 1);
    let pair = [(NodeId::new(0), NodeId::new(1))];
    let messages = steady::messages(&mut rack, &pair, &steady, &mut |_| ControlFlow::Continue(()))
        .expect("nothing stops it");
    let cells = plan.cells.cells(steady.message) * messages[0];
    let slots = u64::from(plan.schedule.slots()) * steady.window;
    put("empty-slot.rate", cells as f64 / slots as f64);
    let text = "The order of Appendix A leaves half an epoch between a cell and its answer; a rack \
                of an even number of nodes needs one slot more for it.";
    Ok(findings("The empty slot", text, Vec::<Block>::new(), sheet))
}
