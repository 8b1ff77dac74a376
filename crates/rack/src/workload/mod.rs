//! Who sends how much to whom, and when.
//!
//! A workload is an ordered stream of flows. Most are open loop: the stream does not depend on the
//! network. In the others (request and response, collectives) a flow starts when earlier ones have
//! ended; the list of flows and of what waits for what is still the same for every fabric.

pub mod arrivals;
pub mod bound;
pub mod burst;
pub mod collectives;
pub mod config;
pub mod execution;
pub mod gate;
pub mod jobs;
pub mod limits;
pub mod merge;
pub mod models;
pub mod operation;
pub mod parameter_server;
pub mod patterns;
pub mod pipeline;
pub mod placement;
pub mod poisson;
mod ready;
pub mod requests;
pub mod sizes;
pub mod tables;
#[cfg(test)]
mod testing;
pub mod trace;

use kernel::Time;

pub use bound::{Bound, Bounds};
pub use config::{Kind, Nominal, WorkloadConfig, WorkloadContext, kinds};
pub use jobs::JobState;
pub use tables::catalogue;

use crate::{Flow, FlowId};

/// A stream of flows, in order of their start.
pub trait Workload {
    /// The start of the next flow that can be offered. `None`: there is none now, and there never
    /// will be one unless some flow ends.
    fn next_start(&mut self) -> Option<Time>;

    /// Takes the flow that [`Workload::next_start`] announced.
    fn next_flow(&mut self) -> Option<Flow>;

    /// How many flows there are in all, where that is known: for progress bars.
    fn total(&self) -> Option<u64>;

    /// Whether it ends by itself, after a number of flows or at a time.
    fn is_finite(&self) -> bool {
        self.total().is_some()
    }

    /// Whether flows wait for others to end: if so, the runner reports each end as it happens.
    fn is_reactive(&self) -> bool {
        false
    }

    /// A flow ended, delivered or given up, at `at`.
    fn ended(&mut self, flow: FlowId, at: Time) {
        let _ = (flow, at);
    }

    /// Until when something of it goes on without a flow, as far as flows have ended: a computation
    /// that follows the last of them, say.
    fn busy_until(&self) -> Time {
        Time::ZERO
    }

    /// What bounded its time, from its beginning until all that has happened by now: the parts add up to that. Empty
    /// where nothing waits for anything.
    fn bounds(&self) -> Bounds {
        Bounds::new()
    }

    /// How far its jobs have come; none where it does not consist of jobs.
    fn jobs(&self) -> Vec<JobState> {
        Vec::new()
    }
}

/// A boxed workload is one, so that code over any workload takes it too.
impl<W: Workload + ?Sized> Workload for Box<W> {
    fn next_start(&mut self) -> Option<Time> {
        (**self).next_start()
    }

    fn next_flow(&mut self) -> Option<Flow> {
        (**self).next_flow()
    }

    fn total(&self) -> Option<u64> {
        (**self).total()
    }

    fn is_finite(&self) -> bool {
        (**self).is_finite()
    }

    fn is_reactive(&self) -> bool {
        (**self).is_reactive()
    }

    fn ended(&mut self, flow: FlowId, at: Time) {
        (**self).ended(flow, at);
    }

    fn busy_until(&self) -> Time {
        (**self).busy_until()
    }

    fn bounds(&self) -> Bounds {
        (**self).bounds()
    }

    fn jobs(&self) -> Vec<JobState> {
        (**self).jobs()
    }
}
