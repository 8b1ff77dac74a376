//! The vocabulary that every rack network shares: who sends what to whom, what fails, what is
//! measured.
//!
//! **Invariant:** knows no fabric. A workload yields the same flows whatever carries them, and a
//! result means the same whatever produced it.

pub mod apart;
pub mod equipment;
pub mod fabric;
pub mod fairness;
pub mod fault;
pub mod flow;
pub mod memory;
pub mod node;
pub mod problem;
pub mod ranges;
pub mod results;
pub mod run;
pub mod shards;
pub mod topology;
pub mod trace;
pub mod vectors;
pub mod workload;

pub use fabric::{
    Advance, Completion, Fabric, Failure, Gauge, GaugeKind, Probe, Stage, Totals, Unfinished,
    WithIdeal,
};
pub use fault::{Component, Fault, Group};
pub use flow::{Class, Flow, FlowId, NodeId};
pub use memory::Estimate;
pub use problem::Problem;
pub use workload::Workload;
