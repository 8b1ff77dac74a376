//! The properties. Each runs a small rack in two ways that must give the same results, or checks how one
//! ends in which something fails.

use std::io;
use std::ops::ControlFlow;

use kernel::Span;
use rack::Flow;
use rack::results::{FlowEnd, FlowRecord, FlowSink};
use rack::run::{Options, drive};
use rack::trace::{Followed, Trace, account};
use scenario::{Registry, Sink};
use serde_json::Value;

use crate::loopback;
use crate::racks::{LIGHT, Rack, read};

/// A property of a rack: the error says what does not hold.
pub type Property = fn(&Rack, &Registry) -> Result<(), String>;

/// Whether a property makes sense for a rack; it is reported as ignored otherwise.
pub fn applies(property: &str, rack: &Rack, registry: &Registry) -> bool {
    let run = match property {
        "messages_as_bytes_change_nothing" => "wire = true",
        "the_cut_into_shards_changes_nothing" => "threads = 1",
        "what_is_recorded_adds_up_and_changes_nothing" => "trace",
        "nodes_of_their_own_carry_every_byte" | "what_nodes_do_is_recorded_and_replayed" => "",
        "nodes_of_their_own_outlive_one_of_them" => return loopback::can_outlive(rack, registry),
        _ => return true,
    };
    let keys = if run == "trace" { "" } else { run };
    let scenario = read(&rack.table, keys, LIGHT, "", registry).expect("it was read before");
    let rack = scenario.fabrics[0].plan.rack(&[], 1);
    let mut rack = rack.unwrap_or_else(|why| panic!("{why:?}"));
    match run {
        "" => rack.apart().is_some(),
        "wire = true" => rack.set_wire(true).is_ok(),
        "trace" => rack.can_trace().is_ok(),
        _ => rack.set_shards(2) > 1,
    }
}

/// All of them, by name.
pub const ALL: [(&str, Property); 12] = [
    ("every_flow_completes", completes),
    ("a_run_again_gives_the_same", again),
    ("threads_change_nothing", threads),
    ("the_cut_into_shards_changes_nothing", shards),
    ("messages_as_bytes_change_nothing", wire),
    ("samples_change_nothing", samples),
    ("what_is_recorded_adds_up_and_changes_nothing", traced),
    ("idle_time_costs_nothing", idle),
    ("a_dead_node_is_refused_or_ends_its_flows", dead_node),
    ("nodes_of_their_own_carry_every_byte", loopback::carries),
    ("what_nodes_do_is_recorded_and_replayed", loopback::replays),
    ("nodes_of_their_own_outlive_one_of_them", loopback::outlives),
];

/// Flows that begin when others have ended.
const REACTIVE: &str = "kind = 'shuffle'\nsize = '6 KB'";

/// What a run told of its flows, in order.
#[derive(Clone, Default, PartialEq, Debug)]
struct Flows {
    records: Vec<String>,
    completed: usize,
    failed: usize,
}

impl FlowSink for Flows {
    fn record(&mut self, flow: &FlowRecord<'_>) -> io::Result<()> {
        self.records.push(format!("{flow:?}"));
        self.completed += usize::from(matches!(flow.end, FlowEnd::Completed { .. }));
        self.failed += usize::from(matches!(flow.end, FlowEnd::Failed { .. }));
        Ok(())
    }
}

impl Sink for Flows {}

/// What a run has come to: its flows, its summary, and the events of the engine.
#[derive(Clone, PartialEq, Debug)]
struct Ran {
    flows: Flows,
    summary: Value,
}

fn carry(
    rack: &Rack,
    (run, workload, rest): (&str, &str, &str),
    registry: &Registry,
) -> Result<Ran, String> {
    let scenario = read(&rack.table, run, workload, rest, registry)?;
    let mut flows = Flows::default();
    let result = scenario.execute(0, &mut flows, &mut |_| ControlFlow::Continue(()));
    let mut summary = result.map_err(|bad| bad.to_string())?.summary;
    let table = summary.as_object_mut().ok_or("the summary is no table")?;
    // What the run took of the machine, and what it was asked for.
    for key in ["engine", "scenario", "scenario_hash"] {
        table.remove(key);
    }
    Ok(Ran { flows, summary })
}

/// Says where two runs differ.
fn same(name: &str, ours: &Ran, theirs: &Ran) -> Result<(), String> {
    let (ours_flows, theirs_flows) = (&ours.flows.records, &theirs.flows.records);
    let differ = ours_flows.iter().zip(theirs_flows).find(|(a, b)| a != b);
    if let Some((a, b)) = differ {
        return Err(format!("{name}: {a}\nand {b}"));
    }
    if ours_flows.len() != theirs_flows.len() {
        return Err(format!("{name}: {} flows and {}", ours_flows.len(), theirs_flows.len()));
    }
    let (Some(ours), Some(theirs)) = (ours.summary.as_object(), theirs.summary.as_object()) else {
        return Err("the summary is no table".into());
    };
    match ours.iter().find(|&(key, value)| theirs.get(key) != Some(value)) {
        Some((key, value)) => Err(format!("{name}: {key} is {value} and {:?}", theirs.get(key))),
        None => Ok(()),
    }
}

fn completes(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let Ran { flows, .. } = carry(rack, ("", LIGHT, ""), registry)?;
    match flows.completed == flows.records.len() && flows.completed >= 150 {
        true => Ok(()),
        false => Err(format!("{} of {} flows completed", flows.completed, flows.records.len())),
    }
}

fn again(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let once = || carry(rack, ("", LIGHT, ""), registry);
    same("again", &once()?, &once()?)
}

fn threads(rack: &Rack, registry: &Registry) -> Result<(), String> {
    for workload in [LIGHT, REACTIVE] {
        let plain = carry(rack, ("threads = 1", workload, ""), registry)?;
        let threads = carry(rack, ("threads = 3", workload, ""), registry)?;
        same("on threads", &threads, &plain)?;
    }
    Ok(())
}

/// However little there is to do, with and without a dead node.
fn shards(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let fault = "[[fault]]\nat = '20 us'\nnode = 1\nuntil = '3 ms'\n";
    let can_fail = read(&rack.table, "", LIGHT, fault, registry).is_ok();
    let faults = if can_fail { &["", fault][..] } else { &[""] };
    for (workload, faults) in
        [LIGHT, REACTIVE].into_iter().flat_map(|w| faults.iter().map(move |f| (w, f)))
    {
        let scenario = read(&rack.table, "", workload, faults, registry)?;
        let cut = |shards: usize| {
            let network = scenario.fabrics[0].plan.rack(&scenario.expanded_faults(), 7);
            let mut network = network.map_err(|why| format!("{why:?}"))?;
            let mut flows = Flows::default();
            let mut drawn = scenario.draw().map_err(|bad| bad.to_string())?;
            let options = scenario.options().map_err(|bad| bad.to_string())?;
            // The driver cuts it; this tells whether it can.
            let count = network.set_shards(shards);
            let options = Options { shards, ..options };
            let go_on = &mut |_| ControlFlow::Continue(());
            let result = drive(&mut *network, drawn.as_mut(), &options, &mut flows, go_on);
            let summary = result.map_err(|bad| bad.to_string())?.summary;
            Ok::<_, String>((count, Ran { flows, summary }))
        };
        let (_, whole) = cut(1)?;
        for shards in [2, 3, 8] {
            let (count, parts) = cut(shards)?;
            if count < 2 {
                return Err(format!("it is {count} of {shards} shards"));
            }
            same(&format!("in {count} shards"), &parts, &whole)?;
        }
    }
    Ok(())
}

fn wire(rack: &Rack, registry: &Registry) -> Result<(), String> {
    for workload in [LIGHT, REACTIVE] {
        let plain = carry(rack, ("", workload, ""), registry)?;
        let bytes = carry(rack, ("wire = true\nthreads = 2", workload, ""), registry)?;
        same("as bytes", &bytes, &plain)?;
    }
    Ok(())
}

/// The driver looks at a network at each sample: it pauses there, and goes on.
fn samples(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let plain = carry(rack, ("", LIGHT, ""), registry)?;
    let often = carry(rack, ("sample = '37 ns'", LIGHT, ""), registry)?;
    let Ran { flows, .. } = &often;
    same("sampled often", &Ran { flows: flows.clone(), summary: plain.summary.clone() }, &plain)
}

/// What a run told, and where its packets were.
#[derive(Default)]
struct Recording {
    flows: Flows,
    ended: Vec<Followed>,
    trace: Option<Trace>,
}

impl FlowSink for Recording {
    fn record(&mut self, flow: &FlowRecord<'_>) -> io::Result<()> {
        if let FlowEnd::Completed { at, .. } = flow.end {
            let Flow { id, src, dst, start, .. } = *flow.flow;
            self.ended.push(Followed { flow: id, src, dst, start, end: at });
        }
        self.flows.record(flow)
    }
}

impl Sink for Recording {
    fn wants_trace(&self) -> bool {
        true
    }

    fn trace(&mut self, trace: Trace) -> io::Result<()> {
        self.trace = Some(trace);
        Ok(())
    }
}

/// A run that is recorded goes the same way, and the parts of each flow's time add up to it, for flows that start by
/// themselves and those that start when others end. The record is the same on several threads.
fn traced(rack: &Rack, registry: &Registry) -> Result<(), String> {
    for workload in [LIGHT, REACTIVE] {
        let record = |run: &str| {
            let scenario = read(&rack.table, run, workload, "", registry)?;
            let mut found = Recording::default();
            let go_on = &mut |_| ControlFlow::Continue(());
            scenario.execute(0, &mut found, go_on).map_err(|bad| bad.to_string())?;
            Ok::<_, String>(found)
        };
        let plain = record("")?;
        let found = record("trace = 'slowest 40'")?;
        if found.flows != plain.flows || plain.trace.is_some() {
            return Err("the record has changed the run".into());
        }
        let trace = found.trace.ok_or("nothing was recorded")?;
        let recorded = trace.flows();
        if recorded.len() != 40.min(found.ended.len()) {
            return Err(format!("{} flows are in the record", recorded.len()));
        }
        for flow in found.ended.iter().filter(|flow| recorded.contains(&flow.flow)) {
            let hops = trace.of(flow.flow);
            let parts =
                account(flow, hops).ok_or_else(|| format!("{flow:?} has no end: {hops:#?}"))?;
            let sum: Span = parts.shares.iter().map(|share| share.span).sum();
            if sum != flow.end - flow.start {
                return Err(format!("{flow:?}: {parts:#?} add up to {sum}: {hops:#?}"));
            }
        }
        let threads = record("trace = 'slowest 40'\nthreads = 3")?;
        if threads.trace.as_ref() != Some(&trace) {
            return Err("the record is another on three threads".into());
        }
    }
    Ok(())
}

/// Flows a minute apart take no longer to simulate than flows a millisecond apart.
fn idle(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let events = |apart: u64| {
        let file = tempfile::Builder::new().suffix(".csv").tempfile();
        let file = file.map_err(|bad| bad.to_string())?;
        let rows = (0..6).map(|flow| format!("{},{},{},5000\n", flow * apart, flow, flow + 1));
        let text = format!("start_ns,src,dst,bytes\n{}", rows.collect::<String>());
        std::fs::write(file.path(), text).map_err(|bad| bad.to_string())?;
        let workload = format!("kind = 'trace'\npath = '{}'", file.path().display());
        let scenario = read(&rack.table, "time = '1000 s'", &workload, "", registry)?;
        let mut flows = Flows::default();
        let result = scenario.execute(0, &mut flows, &mut |_| ControlFlow::Continue(()));
        let summary = result.map_err(|bad| bad.to_string())?.summary;
        if flows.completed != 6 {
            return Err(format!("{} of 6 flows completed: {:?}", flows.completed, flows.records));
        }
        let events = summary.pointer("/engine/events").and_then(Value::as_u64);
        events.ok_or_else(|| format!("no events in {:?}", summary.get("engine")))
    };
    let (near, far) = (events(1_000_000)?, events(60_000_000_000)?);
    match far <= 2 * near + 100 {
        true => Ok(()),
        false => Err(format!("{near} events a millisecond apart, {far} a minute apart")),
    }
}

fn dead_node(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let fault = "[[fault]]\nat = '20 us'\nnode = 1\n";
    let scenario = read(&rack.table, "", LIGHT, fault, registry);
    if let Err(why) = scenario {
        // In words, at the fault.
        return if why.contains("fault") {
            Ok(())
        } else {
            Err(format!("refused without a key: {why}"))
        };
    }
    // Hosts may ask in vain for long until they give up.
    let Ran { flows, .. } = carry(rack, ("time = '1000 s'", LIGHT, fault), registry)?;
    let touches = |record: &&String| record.contains("NodeId(1)");
    let touched = flows.records.iter().filter(touches).count();
    let all = flows.records.len();
    match flows.failed {
        0 => Err(format!("no flow failed of {touched} from and to a dead node")),
        failed if failed > touched => Err(format!("{failed} flows failed, {touched} of that node")),
        failed if flows.completed + failed != all => {
            Err(format!("{} of {all} completed, {failed} failed", flows.completed))
        }
        _ => Ok(()),
    }
}
