//! The one interface between a network model and everything around it.
//!
//! Slotted and event-driven models both implement [`Fabric`]. Runners, workloads, results, the
//! command line and Python know only this trait. It is used as a generic parameter; `dyn` stays at
//! the door where a run picks its fabric.

use std::ops::ControlFlow;

use kernel::{Bytes, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::equipment::Bill;
use crate::node::Nodes;
use crate::results::Table;
use crate::trace::{Followed, Trace};
use crate::{Flow, Problem};

/// Why [`Fabric::advance`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advance {
    /// Everything before the wanted instant has happened; `now` is that instant or later.
    Reached,
    /// The probe asked to stop; nothing is lost by calling again.
    Paused,
    /// Nothing is left to do and nothing will happen unless a flow is offered.
    Idle,
}

/// Why a flow will never complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Its source died.
    SourceDied,
    /// Its destination died, or no path to it is left.
    DestinationDied,
    /// Packets of it were lost, and its transport does not retransmit.
    PacketsLost,
}

/// A flow whose last byte has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Completion<'a> {
    /// The flow as it was offered.
    pub flow: &'a Flow,
    /// When its last byte reached the receiving application, in order.
    pub end: Time,
    /// Its completion time alone in the idle network, with headers.
    pub ideal: Span,
    /// How the completion time divides over [`Fabric::stages`]: the mean over the flow's cells or
    /// packets of the time spent in each. The spans sum to `end - start`, up to rounding.
    pub stages: &'a [Span],
}

/// Watches a run from outside. Cannot change a result, except by asking to pause.
pub trait Probe {
    /// A flow completed. `Break` makes [`Fabric::advance`] return after this instant.
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let _ = completion;
        ControlFlow::Continue(())
    }

    /// A flow was given up at `at`. `Break` as in [`Probe::completed`].
    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        let _ = (flow, at, why);
        ControlFlow::Continue(())
    }

    /// Whether the end of a flow may make this probe answer `Break`: then a network of several shards looks
    /// at every end before it goes on, which takes more of its time. An answer is ignored if not.
    fn may_pause(&self) -> bool {
        true
    }

    /// Whether it may be told of ends later than in the call of [`Fabric::advance`] in which they happen, and
    /// see the fabric's totals as they were before: then a network of several shards may let flows that are
    /// offered one by one pile up, so that it has more to do at a time. [`Fabric::sample`] is exact all the
    /// same.
    fn may_wait(&self) -> bool {
        false
    }

    /// Called at least several times a second of computing, also while no flow ends: whether [`Fabric::advance`] is to return to its caller, who may want to stop the run or to
    /// count what piles up. `Break` as in [`Probe::completed`].
    fn poll(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Sees nothing, costs nothing.
impl Probe for () {
    fn may_pause(&self) -> bool {
        false
    }
}

/// A flow that was offered and has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfinished {
    /// The flow as it was offered.
    pub flow: Flow,
    /// Its application bytes that were handed to the receiver so far, once each, in order.
    pub delivered: Bytes,
}

/// A named part of a completion time: where a cell or packet waits or travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Snake case, for columns and keys.
    pub name: &'static str,
    /// One sentence for people.
    pub meaning: &'static str,
}

/// How the samples of a gauge combine when a time series is made coarser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GaugeKind {
    /// A level at the instant of sampling; two samples combine to their mean.
    Level,
    /// The largest value since the last sample; two samples combine to the larger.
    Peak,
    /// How many since the last sample; two samples add.
    Count,
}

/// A number that a model can be asked for at any time, for the time series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gauge {
    /// Column name; ends with its unit where it has one (`queue_max_bytes`).
    pub name: &'static str,
    /// One sentence for people.
    pub meaning: &'static str,
    /// How samples combine.
    pub kind: GaugeKind,
}

/// What every model counts from the start of its run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Payload-carrying cells or packets that crossed one link.
    pub hops: u64,
    /// Steps of the engine: cell slots (empty ones too) in a slotted model, events in another.
    pub events: u64,
    /// Of every hop and completion, whatever their order: equal runs have equal hashes.
    pub event_hash: u64,
    /// Application bytes handed to receivers, once each, in order: of all flows, whether they ended,
    /// failed later or are still open.
    pub delivered: Bytes,
    /// Application bytes of failed flows that were not delivered.
    pub lost: Bytes,
    /// Cells or packets dropped in the network, whether recovered later or not.
    pub drops: u64,
    /// Cells or packets retransmitted.
    pub retransmissions: u64,
    /// The longest single queue seen, in cells or packets.
    pub queue_max_cells: u64,
    /// The longest single queue seen, in wire bytes.
    pub queue_max: Bytes,
    /// The 99th percentile of the queue length found by an arriving cell or packet, in wire bytes.
    pub queue_p99: Bytes,
    /// The most out-of-order data held for one flow, in bytes.
    pub reorder_max: Bytes,
}

/// Tells of completions with a fabric's own ideal times in place of those of the network below it, which knows
/// less of what a flow crosses.
pub struct WithIdeal<'a, I> {
    probe: &'a mut dyn Probe,
    ideal: I,
}

impl<'a, I: Fn(&Flow) -> Span> WithIdeal<'a, I> {
    /// Tells `probe`; `ideal` gives what a flow takes alone.
    pub fn new(probe: &'a mut dyn Probe, ideal: I) -> Self {
        Self { probe, ideal }
    }
}

impl<I: Fn(&Flow) -> Span> Probe for WithIdeal<'_, I> {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let ideal = (self.ideal)(completion.flow);
        self.probe.completed(&Completion { ideal, ..*completion })
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.probe.failed(flow, at, why)
    }

    fn may_pause(&self) -> bool {
        self.probe.may_pause()
    }

    fn may_wait(&self) -> bool {
        self.probe.may_wait()
    }

    fn poll(&mut self) -> ControlFlow<()> {
        self.probe.poll()
    }
}

/// A network that carries flows.
pub trait Fabric {
    /// The name in scenario files and results.
    fn name(&self) -> &'static str;

    /// How many nodes it connects.
    fn nodes(&self) -> u32;

    /// What a node can send at most, over all its links, headers included: of the slowest node. Networks
    /// that are compared need not give their nodes the same.
    fn node_rate(&self) -> Rate;

    /// Whether a flow waits for a round trip (a handshake, a grant) before its first byte is sent.
    fn has_handshake(&self) -> bool {
        false
    }

    /// The instant up to which everything has happened.
    fn now(&self) -> Time;

    /// Told once, before anything else: the sizes of flows that the workload will bring, drawn ahead.
    /// For transports that are set up by them (Homa §3.4).
    fn hint_sizes(&mut self, sizes: &[Bytes]) {
        let _ = sizes;
    }

    /// From now on every message between nodes is written as bytes and read again, or not: results are
    /// the same. To be called before the first flow, and before the next two.
    ///
    /// # Errors
    /// If this fabric has no bytes for some of its messages.
    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        match is_on {
            true => Err(Problem::new("wire", format!("{} has no messages to send", self.name()))),
            false => Ok(()),
        }
    }

    /// Lets it use up to `threads` threads, if it can: results are the same on any number.
    fn set_threads(&mut self, threads: usize) {
        let _ = threads;
    }

    /// Cuts it into up to so many shards, whatever there is to do, before its first flow: results are the same.
    /// How many there are now: one where it cannot be cut.
    fn set_shards(&mut self, shards: usize) -> usize {
        let _ = shards;
        1
    }

    /// Whether it can record where packets are ([`Fabric::set_trace`]).
    ///
    /// # Errors
    /// If it cannot: why.
    fn can_trace(&self) -> Result<(), Problem> {
        Err(Problem::new("trace", format!("{} cannot record its packets yet", self.name())))
    }

    /// From now on the packets of these flows are recorded: results are the same. Called before the first flow, and
    /// after [`Fabric::hint_sizes`], of a fabric that [`Fabric::can_trace`].
    fn set_trace(&mut self, followed: &[Followed]) {
        let _ = followed;
    }

    /// What was recorded; empty where nothing was to be.
    fn take_trace(&mut self) -> Trace {
        Trace::default()
    }

    /// The same network as nodes of their own, idle at time zero, for a driver other than the simulator;
    /// `None` if it cannot be taken apart. To be called before the first flow.
    fn apart(&self) -> Option<Nodes> {
        None
    }

    /// Accepts a flow whose `start` has come. One released by another's end may start a little
    /// before `now`; its time counts from its start all the same.
    fn offer(&mut self, flow: &Flow);

    /// Lets the network run until `until`, or until the probe pauses it. If nothing is left to do it
    /// says so: at once with `Time::NEVER`, otherwise with `now` at `until`.
    ///
    /// The probe is `dyn` so that an engine is compiled in its own crate and not in those that bring a
    /// probe; it is called once an end of a flow, not once an event.
    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance;

    /// The completion time of `flow` alone in the idle network, at best: no flow is ever faster.
    fn ideal_fct(&self, flow: &Flow) -> Span;

    /// Counts since the start.
    fn totals(&self) -> Totals;

    /// The parts into which completion times divide.
    fn stages(&self) -> &'static [Stage];

    /// The columns of the time series.
    fn gauges(&self) -> &'static [Gauge];

    /// Writes one value for each of [`Fabric::gauges`] and starts the next sampling interval.
    fn sample(&mut self, row: &mut [f64]);

    /// Flows that are offered and that the probe has not been told the end of: at most `limit` of them.
    fn unfinished(&self, limit: usize) -> Vec<Unfinished>;

    /// Internal self-checks that take too long for every step; called at the end of a run and by
    /// tests. An error names the broken invariant and its numbers.
    ///
    /// # Errors
    /// When an invariant does not hold.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// What the network is made of, draws and costs; `None` where the model cannot tell.
    fn bill(&self) -> Option<Bill> {
        None
    }

    /// Small tables that this fabric adds to the report.
    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    /// What this fabric adds to the summary under its own name. SI units without prefix, snake
    /// case, deterministic.
    fn details(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// Those methods of [`Fabric`] which a rack of one network among several leaves to it. `each` is the
/// rack's macro that does the same with whichever network there is.
#[macro_export]
macro_rules! leave_to_network {
    ($each:ident, $field:ident) => {
        fn node_rate(&self) -> ::kernel::Rate {
            $each!(&self.$field, network => network.node_rate())
        }

        fn has_handshake(&self) -> bool {
            $each!(&self.$field, network => network.has_handshake())
        }

        fn now(&self) -> ::kernel::Time {
            $each!(&self.$field, network => network.now())
        }

        fn set_wire(&mut self, is_on: bool) -> Result<(), $crate::Problem> {
            $each!(&mut self.$field, network => network.set_wire(is_on))
        }

        fn set_shards(&mut self, shards: usize) -> usize {
            $each!(&mut self.$field, network => network.set_shards(shards))
        }

        fn set_threads(&mut self, threads: usize) {
            $each!(&mut self.$field, network => network.set_threads(threads));
        }

        fn can_trace(&self) -> Result<(), $crate::Problem> {
            $each!(&self.$field, network => network.can_trace())
        }

        fn set_trace(&mut self, followed: &[$crate::trace::Followed]) {
            $each!(&mut self.$field, network => network.set_trace(followed));
        }

        fn take_trace(&mut self) -> $crate::trace::Trace {
            $each!(&mut self.$field, network => network.take_trace())
        }

        fn apart(&self) -> Option<$crate::node::Nodes> {
            $each!(&self.$field, network => network.apart())
        }

        fn offer(&mut self, flow: &$crate::Flow) {
            $each!(&mut self.$field, network => network.offer(flow));
        }

        fn totals(&self) -> $crate::Totals {
            $each!(&self.$field, network => network.totals())
        }

        fn stages(&self) -> &'static [$crate::Stage] {
            $each!(&self.$field, network => network.stages())
        }

        fn gauges(&self) -> &'static [$crate::Gauge] {
            $each!(&self.$field, network => network.gauges())
        }

        fn sample(&mut self, row: &mut [f64]) {
            $each!(&mut self.$field, network => network.sample(row));
        }

        fn unfinished(&self, limit: usize) -> Vec<$crate::Unfinished> {
            $each!(&self.$field, network => network.unfinished(limit))
        }

        fn check(&self) -> Result<(), String> {
            $each!(&self.$field, network => network.check())
        }

        fn tables(&self) -> Vec<$crate::results::Table> {
            $each!(&self.$field, network => network.tables())
        }
    };
}
