//! Helpers of the workload tests: drain a workload, stand in for a network, check what every stream must hold.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use kernel::{Span, Stream, Time};

use super::Workload;
use crate::{Flow, FlowId};

/// Takes every flow of an open-loop workload.
pub fn drain(mut workload: impl Workload) -> Vec<Flow> {
    std::iter::from_fn(|| workload.next_flow()).collect()
}

/// Checks each flow by itself, that starts never decrease and are those announced.
#[track_caller]
fn check_flow(nodes: u32, announced: Time, last: Time, flow: &Flow) {
    assert_ne!(flow.src, flow.dst, "{flow:?}");
    assert!(flow.src.get() < nodes && flow.dst.get() < nodes, "{flow:?} in a rack of {nodes}");
    assert!(flow.size.get() >= 1, "{flow:?}");
    assert_eq!(flow.start, announced, "{flow:?}");
    assert!(flow.start >= last, "{flow:?} after {last}");
}

/// Checks all that an open-loop workload owes, and returns its flows.
#[track_caller]
pub fn check_open_loop(nodes: u32, mut workload: impl Workload) -> Vec<Flow> {
    assert!(!workload.is_reactive());
    let total = workload.total();
    let (mut flows, mut last) = (vec![], Time::ZERO);
    while let Some(announced) = workload.next_start() {
        let flow = workload.next_flow().unwrap();
        check_flow(nodes, announced, last, &flow);
        assert_eq!(flow.id, FlowId::new(flows.len() as u64));
        last = flow.start;
        flows.push(flow);
    }
    assert_eq!(workload.next_flow(), None);
    if let Some(total) = total {
        assert_eq!(flows.len() as u64, total);
    }
    flows
}

/// A flow carried by the pretended network, with when it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// The flow.
    pub flow: Flow,
    /// When it ended.
    pub end: Time,
}

/// Plays a network that carries each flow in a random time of up to `slowest`, out of order, and
/// reports the ends; checks what every workload owes; returns all flows by id.
#[track_caller]
pub fn play(nodes: u32, mut workload: impl Workload, slowest: Span, seed: u64) -> Vec<Carried> {
    let mut delays = Stream::new(seed, "test/network", 0);
    let mut flying: BinaryHeap<Reverse<(Time, FlowId)>> = BinaryHeap::new();
    let (mut all, mut last) = (BTreeMap::new(), Time::ZERO);
    let total = workload.total();
    loop {
        let next = workload.next_start();
        let end = flying.peek().map(|&Reverse((end, _))| end);
        // An end at the instant of a start is reported first: it may release an earlier flow.
        match (next, end) {
            (Some(start), end) if end.is_none_or(|end| start < end) => {
                let flow = workload.next_flow().expect("announced");
                check_flow(nodes, start, last, &flow);
                last = flow.start;
                let end = flow.start + Span::from_ps(1 + delays.below(slowest.as_ps()));
                flying.push(Reverse((end, flow.id)));
                assert!(all.insert(flow.id, Carried { flow, end }).is_none(), "{flow:?} twice");
            }
            (_, Some(end)) => {
                let Reverse((_, id)) = flying.pop().expect("peeked");
                workload.ended(id, end);
            }
            (_, None) => break,
        }
    }
    assert_eq!(workload.next_flow(), None);
    if let Some(total) = total {
        assert_eq!(all.len() as u64, total, "flows released of those announced");
    }
    all.into_values().collect()
}
