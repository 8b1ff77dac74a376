//! Throughput of flows that never end, over a window in which nothing changes.
//!
//! Each flow is kept supplied with messages, so that it always has something to send; what arrives
//! within the window is counted in whole messages.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use kernel::{Bytes, Span, Time};
use rack::{Class, Completion, Fabric, Flow, FlowId, NodeId, Probe};

/// What is measured, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steady {
    /// Size of a message.
    pub message: Bytes,
    /// Messages that each flow has open when it is supplied anew.
    pub ahead: u64,
    /// Time from one supply to the next.
    pub step: Span,
    /// Steps before the window.
    pub warm_up: u64,
    /// Steps in the window.
    pub window: u64,
}

/// Counts the messages of each pair that arrive.
#[derive(Default)]
struct Arrivals {
    pairs: BTreeMap<(NodeId, NodeId), u64>,
}

impl Probe for Arrivals {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let pair = (completion.flow.src, completion.flow.dst);
        *self.pairs.entry(pair).or_default() += 1;
        ControlFlow::Continue(())
    }
}

/// Messages of each of `pairs` that arrive within the window. `each_step` hears the share that is
/// done; `None` if it breaks.
pub fn messages<F: Fabric>(
    fabric: &mut F,
    pairs: &[(NodeId, NodeId)],
    steady: &Steady,
    each_step: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Option<Vec<u64>> {
    let mut arrivals = Arrivals::default();
    let mut offered = vec![0; pairs.len()];
    let mut before = Vec::new();
    let mut next_id = 0;
    let arrived = |arrivals: &Arrivals| -> Vec<u64> {
        pairs.iter().map(|pair| arrivals.pairs.get(pair).copied().unwrap_or(0)).collect()
    };
    let steps = steady.warm_up + steady.window;
    for step in 0..=steps {
        let counts = arrived(&arrivals);
        if step == steady.warm_up {
            before.clone_from(&counts);
        }
        if step == steps {
            return Some(counts.iter().zip(&before).map(|(end, start)| end - start).collect());
        }
        for (index, &(src, dst)) in pairs.iter().enumerate() {
            while offered[index] < counts[index] + steady.ahead {
                let (id, start) = (FlowId::new(next_id), fabric.now());
                let class = Class::default();
                fabric.offer(&Flow { id, src, dst, size: steady.message, start, class });
                offered[index] += 1;
                next_id += 1;
            }
        }
        fabric.advance(Time::ZERO + steady.step * (step + 1), &mut arrivals);
        if each_step((step + 1) as f64 / steps as f64).is_break() {
            return None;
        }
    }
    unreachable!("the last step returns")
}
