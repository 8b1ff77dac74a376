//! Experiment files: what they may say, what is wrong with them, and what they mean.
//!
//! **Invariant:** knows fabrics by their configuration and by [`rack::Fabric`] alone; knows no
//! report and no command line.

pub mod chakra;
mod check;
mod controller;
pub mod describe;
mod execute;
mod faults;
mod jobs;
pub mod links;
mod problem;
mod quantities;
mod reader;
pub mod registry;
mod run_config;
mod scenario;
pub mod schema;
mod source;
pub mod trace;
mod traced;
mod tree;
mod workload;

pub use check::suggest;
pub use execute::{Job, Sink};
pub use faults::{Drawn, FaultConfig, LeafSpine};
pub use jobs::{JobConfig, JobsConfig, NodeList, TraceFiles};
pub use problem::{BadInput, Located};
pub use registry::Registry;
pub use run_config::{RunConfig, WarmUp};
pub use scenario::{Error, FabricChoice, Scenario};
pub use source::{Argument, Document, Format};
pub use trace::TraceFormat;
pub use traced::TraceChoice;
pub use tree::Place;
pub use workload::{InputFiles, TraceConfig, WorkloadChoice};
