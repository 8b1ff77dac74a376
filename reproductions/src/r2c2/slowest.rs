//! Flows that begin together, and how long the slowest of them takes.

use std::ops::ControlFlow;

use kernel::{Bytes, Span, Time};
use rack::{Advance, Completion, Fabric, Flow, FlowId, NodeId, Probe};

use crate::Failure;
use crate::spread::Pulse;

/// Hears how long the slowest flow takes.
struct Slowest<'a, 'b> {
    pulse: &'a mut Pulse<'b>,
    flows: u64,
    ended: u64,
    fct: Span,
}

impl Probe for Slowest<'_, '_> {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.ended += 1;
        self.fct = self.fct.max(completion.end - completion.flow.start);
        self.pulse.at(self.ended as f64 / self.flows as f64)
    }
}

/// Carries a flow of this size from each first node to its second, all from time zero on: how long the slowest takes.
///
/// # Errors
/// When it is stopped.
pub(super) fn carry(
    rack: &mut r2c2::Rack,
    pairs: impl Iterator<Item = (NodeId, NodeId)>,
    size: Bytes,
    pulse: &mut Pulse<'_>,
) -> Result<Span, Failure> {
    let mut flows = 0;
    for (src, dst) in pairs {
        let (id, start, class) = (FlowId::new(flows), Time::ZERO, rack::Class::default());
        rack.offer(&Flow { id, src, dst, size, start, class });
        flows += 1;
    }
    let mut slowest = Slowest { pulse, flows, ended: 0, fct: Span::ZERO };
    match rack.advance(Time::NEVER, &mut slowest) {
        Advance::Paused => Err(Failure::Interrupted),
        _ => Ok(slowest.fct),
    }
}
