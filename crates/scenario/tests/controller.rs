//! Aquila's controller beside its fabric, from a scenario's table: what fails while flows are carried is repaired, and said to be.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use aquila::Hardware;
use kernel::{Bytes, Span, Stream, Time};
use rack::{
    Advance, Class, Completion, Component, Failure, Fault, Flow, FlowId, Group, NodeId, Probe,
};
use scenario::Registry;
use serde_json::{Map, Value, json};

/// How many flows completed, and failed; and when each completed.
#[derive(Default)]
struct Ends(usize, usize, Vec<(FlowId, Time)>);

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.0 += 1;
        self.2.push((completion.flow.id, completion.end));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, _: &Flow, _: Time, _: Failure) -> ControlFlow<()> {
        self.1 += 1;
        ControlFlow::Continue(())
    }
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_us(1_000 * ms)
}

/// Flows of 16 KB between hosts at random, 2 us apart, until 14 ms; what the summary says after a minute.
fn carried(fabric: Value, faults: &[(u64, Component)]) -> (Ends, Map<String, Value>) {
    let fault = |&(at, component)| Fault { component, at: ms(at), until: None };
    carried_apart(fabric, &faults.iter().map(fault).collect::<Vec<_>>(), Span::from_us(2))
}

/// The same, so far apart.
fn carried_apart(fabric: Value, faults: &[Fault], apart: Span) -> (Ends, Map<String, Value>) {
    let registry = Registry::standard();
    let kind = registry.fabric("aquila").expect("it is registered");
    let plan = kind.plan(fabric, registry.memory()).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let mut rack = plan.rack(faults, 1).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let (nodes, mut stream) = (u64::from(plan.nodes()), Stream::new(1, "test/controller", 0));
    for id in 0..7_000 {
        let src = stream.below(nodes);
        let dst = (src + 1 + stream.below(nodes - 1)) % nodes;
        let [src, dst] = [src, dst].map(|node| NodeId::new(node as u32));
        let start = Time::ZERO + apart * id;
        let (id, size) = (FlowId::new(id), Bytes::new(16_000));
        rack.offer(&Flow { id, src, dst, size, start, class: Class::new(0) });
    }
    let mut ends = Ends::default();
    while rack.advance(ms(60_000), &mut ends) == Advance::Paused {}
    rack.check().expect("its books balance");
    (ends, rack.details())
}

/// The ports, by TiN, of links that these faults take out.
fn dead_ports(nodes: u32, faults: &[(u64, Component)]) -> BTreeSet<(u16, u8)> {
    let plan =
        aquila::Config { nodes, ..aquila::Config::default() }.plan().expect("it is a Clique");
    let fault = |&(at, component)| Fault { component, at: ms(at), until: None };
    let faults: Vec<Fault> = faults.iter().map(fault).collect();
    let plan = plan.with_faults(&faults).expect("they are in it");
    let links = plan.outages().into_iter().filter_map(|(_, part, _)| match part {
        Hardware::Link(link) => Some(plan.topology.links()[link as usize]),
        Hardware::Tin(_) => None,
    });
    links.flat_map(|link| [link.low, link.high]).map(|end| (end.tin, end.port)).collect()
}

/// M729: three failures, 4 ms apart, with all times as by default. A repair takes longer than that, so that each ends with the
/// last one; none is open, no flow fails, and tracing suspects ends of dead links, and nothing else. (Where whole bundles die most
/// TiNs are at the end of one, and whatever is suspected would be right.)
#[test]
fn m729_three_failures_are_repaired_while_flows_are_carried() {
    let faults = [
        (1, Component::Link { a: 36, b: 39, link: 0 }),
        (5, Component::Group(Group::Cable, 3)),
        (9, Component::Link { a: 46, b: 47, link: 0 }),
    ];
    let trace = json!({ "one_in": 4, "records_per_second": 10_000_000 });
    let fabric = json!({ "nodes": 36, "control": "sdn", "trace": trace });
    let (ends, details) = carried(fabric, &faults);
    assert_eq!((ends.0, ends.1), (7_000, 0));
    assert_eq!(details["control_repairs"], 3);
    assert_eq!(details["control_repairs_open"], 0);
    let longest = details["control_repair_max_us"].as_f64().unwrap();
    assert!((8_000.0..30_000.0).contains(&longest), "{longest} us");
    let dead = dead_ports(36, &faults);
    let suspected = details["trace_suspected"].as_str().unwrap();
    for suspect in suspected.split("; ") {
        let number = |before: &str| -> Option<u16> {
            let rest = suspect.split_once(before)?.1;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let end = number("link out of TiN ").zip(number("port "));
        let (tin, port) = end.unwrap_or_else(|| panic!("{suspect} is no end of a link"));
        assert!(dead.contains(&(tin, port as u8)), "{suspect} of {dead:?}");
    }
}

/// M617, M609: while all TiNs get another version of the firmware, and their control processors restart for it, no flow ends
/// a picosecond later, and nothing is lost. A TiN that loses its power for as long as a restart takes loses flows.
#[test]
fn slow_m617_m609_an_upgrade_is_not_seen_by_traffic() {
    let times = json!({ "message": "20 us", "start_time": "300 ms", "block_time": "1 ms" });
    let upgrade = json!([{ "at": "100 ms", "upgrade": 2, "at_once": 6 }]);
    let fabric = |maintenance: Option<&Value>| {
        let mut sdn = times.clone();
        if let Some(maintenance) = maintenance {
            sdn["maintenance"] = maintenance.clone();
        }
        json!({ "nodes": 36, "control": "sdn", "sdn": sdn })
    };
    // Seven thousand flows in 21 s.
    let apart = Span::from_us(3_000);
    let (quiet, none) = carried_apart(fabric(None), &[], apart);
    let (ends, details) = carried_apart(fabric(Some(&upgrade)), &[], apart);
    assert_eq!((ends.0, ends.1), (7_000, 0));
    assert!(ends.2 == quiet.2, "a flow ends at another time");
    assert_eq!(details["control_upgraded"], 18);
    assert_eq!(details["control_entries"], 0);
    let longest = details["control_restart_max_us"].as_f64().unwrap();
    assert!((400_000.0..3_000_000.0).contains(&longest), "{longest} us");
    assert!(none.get("control_upgraded").is_none());
    let fault = Fault { component: Component::Switch(5), at: ms(3_000), until: Some(ms(3_400)) };
    let (ends, _) = carried_apart(fabric(None), &[fault], apart);
    assert!(ends.2 != quiet.2 && ends.1 > 0, "{} flows failed", ends.1);
}
