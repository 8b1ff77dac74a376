//! The rack as a whole: exact times, random racks, losses, deaths, and the claims on queues and loss.

mod exact;
mod failures;
mod loads;
mod parts;
mod random;
mod transports;

use std::ops::ControlFlow;

use ::rack::{
    Advance, Class, Completion, Fabric, Failure, Fault, Flow, FlowId, NodeId, Probe, Problem,
};
use kernel::{Bytes, Span, Time};
use packets::config::Failures;
use serde_json::Value;

use crate::config::Jitter;
use crate::transport::Transport;
use crate::{Config, Rack};

/// What ended, as the probe saw it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ends {
    completed: Vec<(Flow, Time)>,
    failed: Vec<Flow>,
}

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.completed.push((*completion.flow, completion.end));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, _: Time, _: Failure) -> ControlFlow<()> {
        self.failed.push(*flow);
        ControlFlow::Continue(())
    }
}

/// A run that came to its end, and the rack after it.
struct Outcome {
    ends: Ends,
    rack: Rack,
}

impl Outcome {
    /// A number of the summary's.
    #[track_caller]
    fn count(&self, key: &str) -> u64 {
        let details = self.rack.details();
        details.get(key).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {key}"))
    }

    /// What is reserved at inputs and outputs.
    fn reserved(&self) -> [&[u32]; 2] {
        let pipeline = self.rack.switch().scheduler().pipeline().expect("it counts");
        [pipeline.input().cells(), pipeline.output().cells()]
    }

    fn last(&self) -> Time {
        self.ends.completed.iter().map(|&(_, end)| end).max().expect("a flow completed")
    }

    /// Application bytes of completed flows over the time to the last of them, in Gbps.
    fn gbps(&self) -> f64 {
        let bytes: u64 = self.ends.completed.iter().map(|(flow, _)| flow.size.get()).sum();
        bytes as f64 * 8.0 / self.last().as_seconds() / 1e9
    }
}

/// Hosts without random delays.
fn steady() -> Config {
    let mut config = Config::default();
    config.host.jitter = Jitter { median: Span::ZERO, ..config.host.jitter };
    config
}

/// Raw sending: packets of 1,458 bytes and headers of 42.
fn raw() -> Transport {
    Transport::Raw(::transports::raw::Config::default())
}

/// Raw sending that repeats what is lost.
fn raw_repeating() -> Transport {
    let losses = ::transports::raw::Losses::Repeat;
    // Above the waits of these tests, and short beside what they carry.
    let patience = Span::from_us(100);
    Transport::Raw(::transports::raw::Config { losses, patience, ..Default::default() })
}

fn flow(id: u64, src: u32, dst: u32, bytes: u64, start: Time) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(bytes),
        start,
        class: Class::new(0),
    }
}

/// Carries flows to their end, and checks that nothing is left: no packet, no burst, no slot.
#[track_caller]
fn carry_with(config: &Config, faults: &[Fault], flows: &[Flow]) -> Outcome {
    let problems = |wrong: Vec<Problem>| panic!("{wrong:?}");
    let plan = config.plan().unwrap_or_else(problems);
    let plan = plan.with_faults(faults).expect("the faults are of this rack");
    let mut rack = Rack::new(plan, 7);
    let mut ends = Ends::default();
    flows.iter().for_each(|flow| rack.offer(flow));
    // Far longer than any of these tests takes, whatever waits double: who asks for ever is found out.
    let limit = Time::ZERO + Span::from_us(1_000_000_000);
    assert_eq!(rack.advance(limit, &mut ends), Advance::Idle);
    rack.check().unwrap();
    assert_eq!(ends.completed.len() + ends.failed.len(), flows.len(), "{:?}", rack.unfinished(3));
    let outcome = Outcome { ends, rack };
    if config.switch.audit > Span::ZERO
        && config.switch.schedule == crate::config::Schedule::Counters
    {
        assert_eq!(outcome.count("slots_left"), 0, "{:?}", outcome.rack.details());
    }
    if outcome.rack.plan().has_pairs() {
        // I03: with or without an audit, outputs count no more than their pairs once all queues are empty.
        let [inputs, outputs] = outcome.reserved();
        let [sum_in, sum_out] = [inputs, outputs].map(|cells| cells.iter().sum::<u32>());
        assert_eq!(sum_in, sum_out, "{:?}", outcome.rack.details());
    }
    outcome
}

/// The same without faults: all flows complete.
#[track_caller]
fn carry(config: &Config, flows: &[Flow]) -> Outcome {
    let outcome = carry_with(config, &[], flows);
    assert_eq!(outcome.ends.failed, []);
    outcome
}

/// The same rack whose hosts find out by themselves that others have died, and whose hosts are told.
fn told_or_not(config: &Config) -> [Config; 2] {
    [Failures::default(), Failures::told()].map(|failures| Config { failures, ..config.clone() })
}

/// `flows` flows of `bytes` from each of `senders`, all at once, to node 0.
fn incast(senders: u32, flows: u64, bytes: u64) -> Vec<Flow> {
    let all = (1..=senders).flat_map(|src| (0..flows).map(move |_| src));
    (0..).zip(all).map(|(id, src)| flow(id, src, 0, bytes, Time::ZERO)).collect()
}
