//! Runs flows through the real network, for tests of transports against it.

use std::ops::ControlFlow;

use kernel::{Bytes, Rate, Span, Time};
use packets::config::Queues;
use packets::{Config, Network, Plan, Routing, Surroundings, Transport, surroundings};
use rack::topology::{LeafSpine, Shape, SingleSwitch};
use rack::{Advance, Completion, Fabric, Failure, Flow, Probe};

/// What ended, as the probe saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) completed: Vec<(Flow, Time)>,
    pub(crate) failed: Vec<Flow>,
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

    fn may_pause(&self) -> bool {
        false
    }
}

impl Ends {
    /// When the last flow ended.
    pub(crate) fn last(&self) -> Time {
        self.completed.iter().map(|(_, end)| *end).max().expect("a flow has completed")
    }

    /// Application bytes of all completed flows, as a share of what `lines` lines of `rate` carry
    /// until the last has ended.
    pub(crate) fn share(&self, lines: u64, rate: Rate) -> f64 {
        let bytes: u64 = self.completed.iter().map(|(flow, _)| flow.size.get()).sum();
        bytes as f64 * 8.0 / (self.last().as_seconds() * rate.as_bps() as f64 * lines as f64)
    }
}

/// One switch of 10 Gbps ports, 500 ns of wire each.
pub(crate) fn star(hosts: u32, queues: Queues) -> Config {
    let shape = SingleSwitch { hosts, rate: Rate::from_gbps(10), delay: Span::from_ns(500) };
    Config { topology: Shape::SingleSwitch(shape), queues, ..Config::default() }
}

/// Leaves and spines of full bisection, 10 Gbps.
pub(crate) fn leaf_spine(hosts: u32, radix: u32, routing: Routing, queues: Queues) -> Config {
    let shape = LeafSpine { hosts, radix, rate: Rate::from_gbps(10), ..LeafSpine::default() };
    Config { topology: Shape::LeafSpine(shape), routing, queues, ..Config::default() }
}

/// The network of `plan` with the transport that `make` makes for it.
pub(crate) fn network<T: Transport>(
    plan: Plan,
    seed: u64,
    make: impl FnOnce(&Surroundings) -> T,
) -> Network<T> {
    let around = surroundings(&plan, seed);
    Network::new(plan, make(&around), seed).unwrap()
}

/// Carries all `flows`, numbered in order, to their end.
#[track_caller]
pub(crate) fn carry<T: Transport>(network: &mut Network<T>, flows: &[Flow]) -> Ends {
    let mut ends = Ends::default();
    for (number, flow) in (0..).zip(flows) {
        network.offer(&Flow { id: rack::FlowId::new(number), ..*flow });
    }
    assert_eq!(network.advance(Time::NEVER, &mut ends), Advance::Idle);
    network.check().unwrap();
    assert_eq!(ends.completed.len() + ends.failed.len(), flows.len());
    ends
}

/// `bytes` of payload from each host to one other, every host receiving from one: host `h` sends to
/// the host `step` further on.
pub(crate) fn permutation(hosts: u32, step: u32, bytes: u64) -> Vec<Flow> {
    let flow = |src| Flow {
        size: Bytes::new(bytes),
        ..crate::chaos::flow(src, (src + step) % hosts, 1, 0)
    };
    (0..hosts).map(flow).collect()
}
