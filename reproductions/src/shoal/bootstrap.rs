//! The start of a rack, step by step over its circuits (§3.4).
//!
//! Every switch holds the circuits of slot 1. The clock master's time goes over them, from node to node: who
//! hears it sets its clock by the time that a hop takes in a rack whose wires are all alike, and passes it on. Then
//! each node tells all that it is ready, the same way. At a time that all know beforehand they send the signal, and a
//! switch that sees it steps through its schedule from then on.
//!
//! Clocks run at one frequency (§3.4), so what is left of their differences is what wires differ in: up to 2 cm
//! each (§3.4), drawn evenly. How the paper's protocols take that out over circuits that lead one way it does not say.

use std::collections::VecDeque;

use kernel::{Span, Stream, Time};
use rack::NodeId;
use report::Unit;
use serde_json::json;
use shoal::Config;
use shoal::clos::hardware::{CYCLE_10G, CYCLE_50G};
use shoal::clos::{Clos, End, PositionMaps, Switch, SwitchSchedules};
use shoal::schedule::{Order, Schedule};
use shoal::sync::bootstrap::Event;
use shoal::sync::protocols::WHITE_RABBIT;
use shoal::sync::{Bootstrap, BootstrapTiming, Phase, WIRE_TOLERANCE_DEFAULT};

use super::SEEDS;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::runs::config_of;
use crate::{Effort, Failure, Findings, Watch};

/// Who has the clock that all follow.
const MASTER: u32 = 0;
/// Cycles in which Shoal's logic takes a cell in and sends it on (§4.2).
const RELAY_CYCLES: u64 = 9;

/// A rack that is about to start.
struct Rack {
    schedule: Schedule,
    schedules: SwitchSchedules,
    /// By plane, leaf and port: by how many picoseconds the cable there is longer than it should be.
    cables: Vec<i64>,
    /// From node to node, and within a node.
    hop: Span,
    relay: Span,
    /// How close clocks are to be.
    wanted: Span,
}

/// What came of a start.
struct Started {
    /// Nodes that the master's time has reached.
    reached: u32,
    /// The largest difference of two clocks.
    difference: Span,
    /// How far the start came, and when.
    phase: Phase,
    /// When the last node knew that all are ready, by what the arithmetic of a ring says.
    agreed: f64,
    /// Cells of the first epoch that come to another node than the schedule's.
    astray: u64,
}

impl Rack {
    fn new(config: &Config, radix: u32, cycle: Span, wanted: Span, seed: u64) -> Self {
        let plan = config.clone().plan().expect("the paper's racks are sound");
        let Config { nodes, channels, .. } = plan.config;
        let schedule = Schedule::new(nodes, channels, plan.config.schedule);
        let clos = Clos::for_rack(nodes, radix, channels).expect("the paper's switches suffice");
        let peer = |from: NodeId, position| schedule.peer(from.get(), position).map(NodeId::new);
        let schedules = SwitchSchedules::new(clos, schedule.positions(), peer);
        let schedules = schedules.expect("the schedule is free of contention");
        let mut draw = Stream::new(seed, "cables", 0);
        let most = WIRE_TOLERANCE_DEFAULT.propagation().as_ps();
        let clos = schedules.clos();
        let cables = clos.planes() * clos.switches_per_plane() * clos.radix();
        let cable = |_| draw.below(2 * most + 1) as i64 - most as i64;
        let cables = (0..cables).map(cable).collect();
        Self { hop: plan.latency, relay: cycle * RELAY_CYCLES, schedule, schedules, cables, wanted }
    }

    /// A cable, by its end at a leaf.
    fn cable(&self, plane: u32, leaf: Switch, port: u32) -> i64 {
        let clos = self.schedules.clos();
        let switch = plane * clos.switches_per_plane() + clos.switch_index(leaf) as u32;
        self.cables[(switch * clos.radix() + port) as usize]
    }

    /// Where what a node sends on a plane comes out, and by how much later than it should, where the plane's
    /// switches are set like this.
    fn follow(&self, from: u32, plane: u32, set: &PositionMaps) -> Option<(u32, i64)> {
        let clos = self.schedules.clos();
        let (mut switch, mut port) = clos.attachment(NodeId::new(from));
        let mut late = self.cable(plane, switch, port);
        loop {
            let egress = set.maps[clos.switch_index(switch)][port as usize]?;
            match clos.wire(switch, egress)? {
                End::Node(node) => {
                    return Some((node.get(), late + self.cable(plane, switch, egress)));
                }
                End::Port(next, entry) => {
                    let at_spine = matches!(switch, Switch::Spine(_));
                    let (leaf, leaf_port) = if at_spine { (next, entry) } else { (switch, egress) };
                    late += self.cable(plane, leaf, leaf_port);
                    (switch, port) = (next, entry);
                }
            }
        }
    }

    /// By node: to whom the circuits of slot 1 lead it, and by how much later than they should.
    fn held(&self) -> Vec<Vec<(u32, i64)>> {
        let planes = self.schedules.clos().planes();
        let set: Vec<PositionMaps> = (0..planes).map(|plane| self.schedules.maps(plane)).collect();
        let of = |node| {
            let planes = (0..planes).zip(&set);
            planes.filter_map(|(plane, set)| self.follow(node, plane, set)).collect()
        };
        (0..self.schedule.nodes()).map(of).collect()
    }

    /// By node: when it first hears what `from` says at the start, and how late that is because of wires; nothing
    /// where it never does.
    fn flood(&self, held: &[Vec<(u32, i64)>], from: u32) -> Vec<Option<(Span, i64)>> {
        let mut heard = vec![None; held.len()];
        heard[from as usize] = Some((Span::ZERO, 0));
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            let (at, late) = heard[node as usize].expect("it has heard");
            for &(peer, more) in &held[node as usize] {
                if heard[peer as usize].is_none() {
                    heard[peer as usize] = Some((at + self.hop + self.relay, late + more));
                    next.push_back(peer);
                }
            }
        }
        heard
    }

    /// Cells of the first epoch that the switches bring elsewhere than the schedule says.
    fn astray(&self) -> u64 {
        let mut astray = 0;
        for position in 0..self.schedule.positions() {
            let (plane, set) = (self.schedules.plane(position), self.schedules.maps(position));
            for node in 0..self.schedule.nodes() {
                let found = self.follow(node, plane, &set).map(|(peer, _)| peer);
                astray += u64::from(found != self.schedule.peer(node, position));
            }
        }
        astray
    }

    fn start(&self) -> Started {
        let (nodes, switches) = (self.schedule.nodes(), self.schedules.clos().switches());
        let held = self.held();
        let mut start = Bootstrap::new(nodes, switches, self.wanted);
        let heard = self.flood(&held, MASTER);
        let mut set: Vec<(Span, u32, i64)> = Vec::new();
        for (node, heard) in (0..).zip(&heard) {
            set.extend(heard.map(|(at, late)| (at, node, late)));
        }
        set.sort_unstable();
        for &(at, node, late) in &set {
            let error = Span::from_ps(late.unsigned_abs());
            start.step(Time::ZERO + at, Event::Precision(NodeId::new(node), error));
        }
        let late = || set.iter().map(|&(_, _, late)| late);
        let [least, most] = [late().min(), late().max()].map(|late| late.expect("the master's"));
        // Each tells all that it is ready, as soon as it is.
        let ready = set.iter().map(|&(at, node, _)| {
            let told = self.flood(&held, node);
            told.into_iter().flatten().map(|(after, _)| at + after).max().expect("itself")
        });
        let ready = ready.max().expect("the master is");
        let timing = BootstrapTiming {
            nodes,
            hop: self.hop,
            relay: self.relay,
            rounds: 1,
            to_last_switch: self.hop,
        };
        if matches!(start.phase(), Phase::Signalling { .. }) {
            let at = Time::ZERO + timing.running();
            (0..switches).for_each(|switch| {
                start.step(at, Event::Signal(switch));
            });
        }
        Started {
            reached: set.len() as u32,
            difference: Span::from_ps(most.abs_diff(least)),
            phase: start.phase(),
            agreed: ready.as_seconds() / timing.agreed().as_seconds(),
            astray: self.astray(),
        }
    }
}

/// The experiment.
pub(super) fn run(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/bootstrap.claims.toml"));
    let prototype = config_of::<Config>(&super::prototype::FIG9.with(&[], 1)?);
    let rack = Config::default();
    let cyclic = Config { schedule: Order::Cyclic, ..rack.clone() };
    let precise = WHITE_RABBIT.allowance(CYCLE_50G, 1);
    // 6 switches of 4 ports, 24 of 64 a plane (§5, §6).
    let cases = [
        ("Prototype, 8 nodes", &prototype, 4, CYCLE_10G, CYCLE_10G),
        ("512 nodes, order of Appendix A", &rack, 64, CYCLE_50G, precise),
        ("512 nodes, order of Fig. 3", &cyclic, 64, CYCLE_50G, precise),
    ];
    let start = |&(_, config, radix, cycle, wanted): &(&str, &Config, u32, Span, Span)| {
        (1..=SEEDS).map(|seed| Rack::new(config, radix, cycle, wanted, seed).start()).collect()
    };
    let found: Vec<Vec<Started>> = cases.iter().map(start).collect();
    let of = |case: usize, get: fn(&Started) -> f64| -> Vec<f64> {
        found[case].iter().map(get).collect()
    };
    let mut put = |word: &str, measured| sheet.measure(&format!("bootstrap.{word}"), measured);
    let reached = |start: &Started| f64::from(start.reached);
    let difference = |start: &Started| start.difference.as_seconds();
    let runs = |start: &Started| f64::from(u8::from(matches!(start.phase, Phase::Running { .. })));
    put("joined-8", Measured::smallest(&of(0, reached)));
    put("joined-512", Measured::smallest(&of(1, reached)));
    put("joined-512-cyclic", Measured::smallest(&of(2, reached)));
    put("precision-8", Measured::largest(&of(0, difference)));
    put("precision-512", Measured::largest(&of(1, difference)));
    put("starts-8", Measured::smallest(&of(0, runs)));
    put("starts-512", Measured::mean(&of(1, runs)));
    put(
        "astray",
        Measured::largest(
            &[of(0, |one| one.astray as f64), of(1, |one| one.astray as f64)].concat(),
        ),
    );
    let columns = [
        ("rack", "", Unit::Count),
        ("reached", "Nodes with the time", Unit::Count),
        ("difference", "Clocks differ by", Unit::Seconds),
        ("wanted", "Wanted", Unit::Seconds),
        ("agreed", "All know that all are ready, by a ring's two rounds", Unit::Ratio),
        ("running", "Seeds that start", Unit::Count),
    ];
    let row = |(case, found): (&(&str, &Config, u32, Span, Span), &Vec<Started>)| {
        let mean =
            |get: fn(&Started) -> f64| Spread::of(&found.iter().map(get).collect::<Vec<_>>()).mean;
        let started = found.iter().filter(|one| matches!(one.phase, Phase::Running { .. })).count();
        vec![
            json!(case.0),
            json!(mean(reached)),
            json!(mean(difference)),
            json!(case.4.as_seconds()),
            json!(mean(|one| one.agreed)),
            json!(started),
        ]
    };
    let rows = cases.iter().zip(&found).map(row).collect();
    let text = "Time goes over the circuits that switches hold before they step, from node to node. Wires are \
                up to 2 cm longer or shorter than they should be.";
    Ok(findings(
        "The start of a rack",
        text,
        vec![table("Means over seeds", &columns, rows)],
        sheet,
    ))
}
