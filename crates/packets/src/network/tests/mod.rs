//! The network carrying raw line-rate traffic, against closed forms and invariants. Transports have
//! tests of their own, on this network.

mod adaptive;
mod congestion;
mod faults;
mod flow_control;
mod hosts;
#[cfg(target_os = "linux")]
mod long;
mod neighbours;
mod parts;
mod programmed;
mod queueing;
mod random;
mod sender;
mod shares;
mod timing;
mod traced;

use std::ops::ControlFlow;

use kernel::{Bytes, Rate, Span, Time};
use rack::topology::{Shape, SingleSwitch};
use rack::{Advance, Class, Completion, Fabric, Failure, Fault, Flow, FlowId, NodeId, Probe};

use super::Network;
use crate::config::{Config, Plan, Queues};
use crate::transport::Framing;
use sender::{LineRate, Recovery};

/// Payload and header of the packets of these tests: 1,500 bytes on the wire, as in Shoal §7.3.
pub(super) const FRAMING: Framing = Framing { payload: 1460, header: 40 };

/// Sends again what is missing once nothing has come for longer than any queue here takes.
pub(super) const REPEAT: Recovery = Recovery::Repeat(Span::from_us(1_000));

/// What ended, as the probe saw it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    pub(super) completed: Vec<(Flow, Time, Span, Vec<Span>)>,
    pub(super) failed: Vec<(Flow, Time, Failure)>,
}

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let stages = completion.stages.to_vec();
        self.completed.push((*completion.flow, completion.end, completion.ideal, stages));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.failed.push((*flow, at, why));
        ControlFlow::Continue(())
    }
}

pub(super) fn flow(id: u64, src: u32, dst: u32, size: u64, start: u64) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start: Time::from_ps(start),
        class: Class::new(0),
    }
}

/// One switch of `hosts` ports at 10 Gbps: a packet takes 1.2 µs, a byte 800 ps.
pub(super) fn switch(hosts: u32) -> Config {
    let shape = SingleSwitch { hosts, rate: Rate::from_gbps(10), delay: Span::from_ns(100) };
    Config { topology: Shape::SingleSwitch(shape), ..Config::default() }
}

/// Queues that never drop.
pub(super) fn endless() -> Queues {
    Queues { port_buffer: Bytes::new(u64::from(u32::MAX)), ..Queues::default() }
}

pub(super) fn plan(config: &Config, faults: &[Fault]) -> Plan {
    config.plan().unwrap().with_faults(faults).unwrap()
}

pub(super) fn raw(plan: Plan, recovery: Recovery, seed: u64) -> Network<LineRate> {
    let hosts = plan.topology.hosts();
    Network::new(plan, LineRate::new(hosts, FRAMING, recovery), seed).unwrap()
}

/// Runs `flows` to the end and checks the network's own invariants.
#[track_caller]
pub(super) fn run(network: &mut Network<LineRate>, flows: &[Flow]) -> Ends {
    let mut ends = Ends::default();
    flows.iter().for_each(|flow| network.offer(flow));
    // Far longer than any of these tests takes, though waits that are doubled come to 127 ms; a sender that
    // repeats for ever is found out.
    let limit = network.now() + Span::from_us(400_000);
    assert_eq!(network.advance(limit, &mut ends), Advance::Idle, "not over at {limit}");
    network.check().unwrap();
    ends
}

/// As [`run`], in a network without recovery.
#[track_caller]
pub(super) fn carry(config: &Config, flows: &[Flow]) -> (Network<LineRate>, Ends) {
    let mut network = raw(plan(config, &[]), Recovery::None, 1);
    let ends = run(&mut network, flows);
    (network, ends)
}
