//! Each node in a thread of its own, and bytes between them.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use kernel::{Bytes, Span, Stream, Time};
use loopback::Config;
use rack::apart::{self, Outcome};
use rack::node::{Nodes, Stands};
use rack::vectors::{Recording, record};
use rack::workload::Workload;
use rack::{Class, Flow, FlowId, NodeId};
use scenario::Registry;

use crate::racks::{LIGHT, Rack, read};

/// A hundred flows between random nodes, within some microseconds.
fn flows(nodes: u32) -> Vec<Flow> {
    let mut draw = Stream::new(5, "conformance/loopback", 0);
    let flow = |id: u64| {
        let src = draw.below(nodes.into()) as u32;
        let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
        Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            size: Bytes::new(1 + draw.below(9_000)),
            start: Time::from_ps(draw.below(20_000_000)),
            class: Class::new(0),
        }
    };
    (0..100).map(flow).collect()
}

/// These flows, by their start.
struct Listed(VecDeque<Flow>);

impl Listed {
    fn new(mut flows: Vec<Flow>) -> Self {
        flows.sort_by_key(|flow| (flow.start, flow.id));
        Self(flows.into())
    }
}

impl Workload for Listed {
    fn next_start(&mut self) -> Option<Time> {
        self.0.front().map(|flow| flow.start)
    }

    fn next_flow(&mut self) -> Option<Flow> {
        self.0.pop_front()
    }

    fn total(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

/// What makes a fabric expect losses: the first of these that it takes.
const LOSSY: [&str; 3] = ["loss_rate = 1e-9", "bit_error_rate = 1e-12", ""];

/// A hundred flows arrive byte by byte; where what is lost is retransmitted also with a twentieth of the messages
/// lost and a twentieth damaged, and some late, or a tenth damaged, as far as the fabric stands it.
pub fn carries(rack: &Rack, registry: &Registry) -> Result<(), String> {
    carry(&rack.table, false, registry)?;
    let lossy = LOSSY.iter().map(|key| format!("{}{key}\n", rack.table));
    let lossy = lossy.into_iter().find(|table| read(table, "", LIGHT, "", registry).is_ok());
    lossy.map_or(Ok(()), |table| carry(&table, true, registry))
}

/// Whether nodes of a rack run by themselves while one of them dies, and what that loses is retransmitted.
pub fn can_outlive(rack: &Rack, registry: &Registry) -> bool {
    dying(rack, registry).is_some_and(|(_, nodes)| nodes.stands > Stands::Nothing)
}

/// The node that dies, and when.
const DEAD: u32 = 1;
const FAULT: &str = "[[fault]]\nat = '8 us'\nnode = 1\n";

/// How many hosts there are, and the network with them.
fn dying(rack: &Rack, registry: &Registry) -> Option<(u32, Nodes)> {
    let scenario = read(&rack.table, "", LIGHT, FAULT, registry).ok()?;
    let plan = &scenario.fabrics[0].plan;
    let network = plan.rack(&scenario.expanded_faults(), 7).ok()?;
    Some((plan.nodes(), network.apart()?))
}

/// A node dies, and no message tells the others: all flows between them arrive byte by byte. Its own die with it;
/// those to it may fail, or, where nobody finds out without an oracle, not end at all.
pub fn outlives(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let (hosts, nodes) = dying(rack, registry).ok_or("it cannot be taken apart")?;
    let flows = flows(hosts);
    let limit = Span::from_us(1_000_000_000);
    let outcome = loopback::carry(nodes, &flows, Config { limit, ..Config::default() });
    let touches =
        |id: u64| flows[id as usize].src.get() == DEAD || flows[id as usize].dst.get() == DEAD;
    let failed = outcome.ended.iter().filter(|(_, end)| end.1.is_some()).map(|(&id, _)| id);
    let (touched, others): (Vec<_>, Vec<_>) = failed.partition(|&id| touches(id));
    let left = (0..flows.len() as u64).filter(|id| !outcome.ended.contains_key(id));
    let left: Vec<_> = left.filter(|&id| !touches(id)).collect();
    let is_good = left.is_empty()
        && !touched.is_empty()
        && others.is_empty()
        && outcome.incomplete.is_empty()
        && outcome.wrong == 0;
    if is_good {
        return Ok(());
    }
    let ended = outcome.ended.len();
    Err(format!(
        "{ended} of {} flows ended, not {left:?}; {touched:?} and {others:?} failed: {outcome:?}",
        flows.len()
    ))
}

fn carry(table: &str, is_disturbed: bool, registry: &Registry) -> Result<(), String> {
    let plan = &read(table, "", LIGHT, "", registry)?.fabrics[0].plan;
    let network = plan.rack(&[], 7).map_err(|why| format!("{why:?}"))?;
    let nodes = network.apart().ok_or("it cannot be taken apart")?;
    run(nodes, &flows(plan.nodes()), is_disturbed)
}

/// What nodes are given and what they do is recorded, in a run in which much is damaged or lost where they
/// stand it: nodes made anew do the same, given the same, and if they are given something else that is told.
pub fn replays(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let lossy = LOSSY.iter().map(|key| format!("{}{key}\n", rack.table));
    let lossy = lossy.into_iter().find(|table| read(table, "", LIGHT, "", registry).is_ok());
    let table = lossy.unwrap_or_else(|| rack.table.clone());
    let plan = &read(&table, "", LIGHT, "", registry)?.fabrics[0].plan;
    let made = || {
        let network = plan.rack(&[], 7).map_err(|why| format!("{why:?}"))?;
        network.apart().ok_or("it cannot be taken apart".to_owned())
    };
    let (nodes, recordings) = record(made()?, &table.as_str().into(), 7);
    run(nodes, &flows(plan.nodes()), true)?;
    check_recordings(plan.nodes(), &made, &recordings)?;
    // In virtual time, what is recorded is the same each time.
    let in_virtual_time = || {
        let (mut nodes, recordings) = record(made()?, &table.as_str().into(), 7);
        let mut listed = Listed::new(flows(plan.nodes()));
        let go_on = &mut |_: &Outcome| ControlFlow::Continue(());
        let outcome = apart::carry(&mut nodes, &mut listed, 100, Time::NEVER, go_on);
        let Outcome { begun, completed, failed, .. } = outcome;
        if (begun, completed, failed) != (100, 100, 0) {
            return Err(format!("in virtual time: {outcome:?}"));
        }
        Ok(recordings)
    };
    let (first, second) = (in_virtual_time()?, in_virtual_time()?);
    check_recordings(plan.nodes(), &made, &first)?;
    for (ours, theirs) in first.iter().zip(&second) {
        let (ours, theirs) = (ours.lock(), theirs.lock());
        if *ours.map_err(|why| why.to_string())? != *theirs.map_err(|why| why.to_string())? {
            return Err("two runs in virtual time differ".into());
        }
    }
    Ok(())
}

/// What was recorded of each node is done again, and something else is told.
fn check_recordings(
    hosts: u32,
    made: &dyn Fn() -> Result<Nodes, String>,
    recordings: &[Arc<Mutex<Recording>>],
) -> Result<(), String> {
    let again = made()?.nodes.into_iter().zip(made()?.nodes);
    for ((node, other), recording) in again.zip(recordings) {
        let recording = recording.lock().map_err(|why| why.to_string())?;
        let json = serde_json::to_string(&*recording).map_err(|why| why.to_string())?;
        let mut read: Recording = serde_json::from_str(&json).map_err(|why| why.to_string())?;
        let ended = read.steps.iter().any(|step| !step.ends.is_empty());
        let is_host = read.node < hosts as usize;
        if read != *recording || (is_host && !ended) {
            return Err(format!("node {}: {} steps recorded", read.node, read.steps.len()));
        }
        read.replay(node)?;
        let Some(step) = read.steps.iter_mut().find(|step| !step.sends.is_empty()) else {
            match is_host {
                true => return Err(format!("node {} sends nothing", read.node)),
                // A switch may have had nothing to do.
                false => continue,
            }
        };
        let bytes = &mut step.sends[0].bytes;
        let other_digit = if bytes.ends_with('0') { "1" } else { "0" };
        bytes.replace_range(bytes.len() - 1.., other_digit);
        let told = read.replay(other).err().unwrap_or_default();
        if !told.contains("the node did") {
            return Err(format!("node {}: {told:?} of other bytes", read.node));
        }
    }
    Ok(())
}

fn run(nodes: Nodes, flows: &[Flow], is_disturbed: bool) -> Result<(), String> {
    let config = match nodes.stands {
        _ if !is_disturbed => Config::default(),
        Stands::Nothing => Config::default(),
        Stands::Damage => Config { damages_one_in: 10, ..Config::default() },
        Stands::Loss => {
            let ahead = Some(nodes.delay + Span::from_us(1));
            // Time-outs double.
            let limit = Span::from_us(1_000_000_000);
            Config { loses_one_in: 20, damages_one_in: 20, ahead, limit, ..Config::default() }
        }
    };
    let outcome = loopback::carry(nodes, flows, config);
    let failed = outcome.ended.values().filter(|(_, failure)| failure.is_some()).count();
    let is_good = outcome.ended.len() == flows.len()
        && failed == 0
        && outcome.incomplete.is_empty()
        && outcome.wrong == 0
        && (config.loses_one_in == 0 || outcome.lost > 0)
        && (config.damages_one_in == 0 || outcome.damaged > 0);
    if is_good {
        return Ok(());
    }
    let ended = outcome.ended.len();
    Err(format!("{ended} of {} flows ended, {failed} failed: {outcome:?}", flows.len()))
}
