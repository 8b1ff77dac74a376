//! Which fabrics there are. Adding one is one line, in `fabrics!` below.
//!
//! `dyn` picks the fabric of a run here; its packets and cells are moved by concrete types.

use std::marker::PhantomData;
use std::sync::Arc;

use kernel::{Bytes, Rate};
use rack::memory::binary;
use rack::{Fabric, Fault, Problem};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use rack::results::RunResult;
use rack::run::RunError;
use rack::trace::Trace;

use crate::execute::Job;

/// What a fabric must offer to be run from a scenario.
pub trait Model: 'static {
    /// The `kind` in scenario files.
    const NAME: &'static str;
    /// One line for `rackloom list fabrics`.
    const SUMMARY: &'static str;
    /// Its `[fabric]` table.
    type Config: Serialize + DeserializeOwned + JsonSchema;
    /// The checked configuration.
    type Plan: Clone + Send + Sync + 'static;
    /// The running network.
    type Rack: Fabric;

    /// What [`Model::plan`] and the running network will take, open flows and what they have under way
    /// apart: an estimate from the configuration alone, before anything is allocated. Unit: bytes.
    fn memory(config: &Self::Config) -> Bytes;

    /// What a run in which something fails will take on top of that, in the same way. Unit: bytes.
    fn failures_memory(config: &Self::Config) -> Bytes {
        let _ = config;
        Bytes::ZERO
    }

    /// Checks a configuration.
    ///
    /// # Errors
    /// Every problem, keys below the `[fabric]` table.
    fn plan(config: &Self::Config) -> Result<Self::Plan, Vec<Problem>>;

    /// The configuration with nothing left open: it gives the same plan.
    fn resolved(plan: &Self::Plan) -> &Self::Config;

    /// How many nodes the rack has.
    fn nodes(plan: &Self::Plan) -> u32;

    /// The node rate that load 1.0 refers to.
    fn load_rate(plan: &Self::Plan) -> Rate;

    /// The plan of a run in which `faults` happen, in this order.
    ///
    /// # Errors
    /// Each of them that this rack cannot have, and why.
    fn with_faults(plan: Self::Plan, faults: &[Fault]) -> Result<Self::Plan, Vec<Problem>>;

    /// Builds the network at time zero.
    fn rack(plan: Self::Plan, seed: u64) -> Self::Rack;
}

/// A fabric as the registry holds it, whatever its types.
pub trait FabricKind: Send + Sync {
    /// The `kind` in scenario files.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// The schema of its `[fabric]` table without `kind` and `label`.
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;

    /// Reads and checks its `[fabric]` table, `kind` and `label` removed. Nothing that would take more
    /// than `memory` is built.
    ///
    /// # Errors
    /// Every problem, keys below the table.
    fn plan(&self, config: Value, memory: Bytes) -> Result<Arc<dyn Planned>, Vec<Problem>>;
}

/// A fabric configured and checked, ready to run any number of times.
pub trait Planned: Send + Sync {
    /// The configuration with all defaults filled in.
    fn config(&self) -> &Value;

    /// How many nodes the rack has.
    fn nodes(&self) -> u32;

    /// What a run of it will take while nothing fails, open flows and what they have under way apart: an
    /// estimate. Unit: bytes.
    fn memory(&self) -> Bytes;

    /// What a run in which something fails will take on top of that. Unit: bytes.
    fn failures_memory(&self) -> Bytes;

    /// The node rate that load 1.0 refers to.
    fn load_rate(&self) -> Rate;

    /// Checks that `faults` can happen in this rack.
    ///
    /// # Errors
    /// Each of them that cannot, and why.
    fn check_faults(&self, faults: &[Fault]) -> Result<(), Vec<Problem>>;

    /// The network at time zero, in which `faults` will happen, in this order.
    ///
    /// # Errors
    /// Each of the faults that it cannot have, and why.
    fn rack(&self, faults: &[Fault], seed: u64) -> Result<Box<dyn Fabric>, Vec<Problem>>;

    /// Runs it once.
    ///
    /// # Errors
    /// When the run breaks: an invariant does not hold, or results cannot be stored.
    fn run(&self, job: Job<'_>) -> Result<RunResult, RunError>;

    /// The same, with the packets of the flows of [`rack::run::Options::trace`] recorded.
    ///
    /// # Errors
    /// As [`Planned::run`].
    fn run_traced(&self, job: Job<'_>) -> Result<(RunResult, Trace), RunError>;
}

/// Makes a [`FabricKind`] of a [`Model`].
pub struct Registered<M>(PhantomData<fn() -> M>);

impl<M> Registered<M> {
    /// The entry of `M`.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<M> Default for Registered<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Model> FabricKind for Registered<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn summary(&self) -> &'static str {
        M::SUMMARY
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        M::Config::json_schema(generator)
    }

    fn plan(&self, config: Value, limit: Bytes) -> Result<Arc<dyn Planned>, Vec<Problem>> {
        let config: M::Config = read(config)?;
        // Those that are given and those that are usual.
        let table = serde_json::to_value(&config).expect("a configuration is plain data");
        let problems = crate::quantities::check(&table);
        if !problems.is_empty() {
            return Err(problems);
        }
        let (memory, failures_memory) = (M::memory(&config), M::failures_memory(&config));
        check_memory(memory, limit).map_err(|problem| vec![problem])?;
        let plan = M::plan(&config)?;
        let config =
            serde_json::to_value(M::resolved(&plan)).expect("a configuration is plain data");
        Ok(Arc::new(PlannedModel::<M> { config, memory, failures_memory, plan }))
    }
}

/// Refuses what would take more memory than there may be.
fn check_memory(memory: Bytes, limit: Bytes) -> Result<(), Problem> {
    if memory <= limit {
        return Ok(());
    }
    let message = format!(
        "a rack of this size takes some {} of memory, and the limit is {}; take fewer nodes",
        binary(memory),
        binary(limit)
    );
    Err(Problem::new("nodes", message))
}

/// Reads a table that has passed the schema. What the schema cannot say ends here.
///
/// # Errors
/// The key that does not fit, and why.
pub fn read<T: DeserializeOwned>(table: Value) -> Result<T, Vec<Problem>> {
    serde_path_to_error::deserialize(table).map_err(|error| {
        let key = error.path().to_string();
        let key = if key == "." { String::new() } else { key };
        vec![Problem::new(key, error.into_inner().to_string())]
    })
}

struct PlannedModel<M: Model> {
    config: Value,
    memory: Bytes,
    failures_memory: Bytes,
    plan: M::Plan,
}

impl<M: Model> Planned for PlannedModel<M> {
    fn config(&self) -> &Value {
        &self.config
    }

    fn nodes(&self) -> u32 {
        M::nodes(&self.plan)
    }

    fn memory(&self) -> Bytes {
        self.memory
    }

    fn failures_memory(&self) -> Bytes {
        self.failures_memory
    }

    fn load_rate(&self) -> Rate {
        M::load_rate(&self.plan)
    }

    fn check_faults(&self, faults: &[Fault]) -> Result<(), Vec<Problem>> {
        M::with_faults(self.plan.clone(), faults).map(drop)
    }

    fn rack(&self, faults: &[Fault], seed: u64) -> Result<Box<dyn Fabric>, Vec<Problem>> {
        let plan = M::with_faults(self.plan.clone(), faults)?;
        Ok(Box::new(M::rack(plan, seed)))
    }

    fn run(&self, job: Job<'_>) -> Result<RunResult, RunError> {
        let plan = M::with_faults(self.plan.clone(), &job.faults);
        let plan = plan.expect("faults were checked when the scenario was read");
        crate::execute::execute(&mut M::rack(plan, job.seed), job)
    }

    fn run_traced(&self, job: Job<'_>) -> Result<(RunResult, Trace), RunError> {
        let plan = M::with_faults(self.plan.clone(), &job.faults);
        let plan = plan.expect("faults were checked when the scenario was read");
        let mut rack = M::rack(plan, job.seed);
        let result = crate::execute::execute(&mut rack, job)?;
        Ok((result, rack.take_trace()))
    }
}

/// The fabrics a scenario may name, and the memory that each may take.
#[derive(Clone, Copy)]
pub struct Registry {
    fabrics: &'static [&'static dyn FabricKind],
    memory: Bytes,
}

/// What a fabric may take where nobody says (our choice: a present workstation).
const MEMORY_MAX: Bytes = Bytes::new(16 << 30);

/// Registers fabric crates that keep to the house's names: `Config` with `nodes`, `load_rate`,
/// `memory()`, `failures_memory()` and `plan()`, `Plan` with `config` and `with_faults()`, `Rack` with
/// `new(plan, seed)`. A module of a crate may keep to them as well: `module in crate`. `with function`: what is added to
/// a plan before a rack of it is built, from what that crate does not know.
macro_rules! fabrics {
    ($($fabric:ident $(in $parent:ident)? $name:literal $(with $complete:path)?: $summary:literal;)*) => {
        $(mod $fabric {
            use super::*;

            pub struct Entry;

            impl Model for Entry {
                const NAME: &'static str = $name;
                const SUMMARY: &'static str = $summary;
                type Config = ::$($parent::)?$fabric::Config;
                type Plan = ::$($parent::)?$fabric::Plan;
                type Rack = ::$($parent::)?$fabric::Rack;

                fn memory(config: &Self::Config) -> Bytes {
                    config.memory()
                }

                fn failures_memory(config: &Self::Config) -> Bytes {
                    config.failures_memory()
                }

                fn plan(config: &Self::Config) -> Result<Self::Plan, Vec<Problem>> {
                    config.plan()
                }

                fn resolved(plan: &Self::Plan) -> &Self::Config {
                    &plan.config
                }

                fn nodes(plan: &Self::Plan) -> u32 {
                    plan.config.nodes
                }

                fn load_rate(plan: &Self::Plan) -> Rate {
                    plan.config.load_rate
                }

                fn with_faults(
                    plan: Self::Plan,
                    faults: &[Fault],
                ) -> Result<Self::Plan, Vec<Problem>> {
                    plan.with_faults(faults)
                }

                fn rack(plan: Self::Plan, seed: u64) -> Self::Rack {
                    $(let plan = $complete(plan, seed);)?
                    ::$($parent::)?$fabric::Rack::new(plan, seed)
                }
            }
        })*

        /// Every fabric of this build.
        static FABRICS: &[&dyn FabricKind] = &[$(&Registered::<$fabric::Entry>::new(),)*];
    };
}

// Every fabric of this build, one line each.
fabrics! {
    aquila "aquila" with crate::controller::complete: "Aquila (NSDI 2022): NIC and switch in one chip, cells, credits, a dragonfly of pods.";
    packet_switched "packet-switched": "Packet switches (Clos, torus, mesh or any graph) and a transport.";
    pl2 "pl2": "PL2 (2021): lossless Ethernet by reservations in the switch, below any transport.";
    r2c2 "r2c2": "R2C2 (SIGCOMM 2015): a direct-connect rack in which every node knows all flows.";
    scoc "scoc": "SCOC (HPCA 2015): one switch chip, clock by clock, or a crossbar beside it.";
    network in scoc "scoc-network": "SCOC (HPCA 2015): a rack of leaves and spines with the chip, or another crossbar, as spine.";
    shoal "shoal": "Shoal (NSDI 2019): nanosecond circuit switches on a static schedule.";
}

impl Registry {
    /// Every fabric of this build.
    #[must_use]
    pub fn standard() -> Self {
        Self::of(FABRICS)
    }

    /// Just these: for tests that bring their own.
    #[must_use]
    pub const fn of(fabrics: &'static [&'static dyn FabricKind]) -> Self {
        Self { fabrics, memory: MEMORY_MAX }
    }

    /// The same, where each fabric may take so much memory. Default 16 GiB.
    #[must_use]
    pub const fn with_memory(self, memory: Bytes) -> Self {
        Self { memory, ..self }
    }

    /// What a fabric may take.
    #[must_use]
    pub const fn memory(&self) -> Bytes {
        self.memory
    }

    /// The fabrics in the order in which they are listed.
    pub fn fabrics(&self) -> impl Iterator<Item = &'static dyn FabricKind> + use<> {
        self.fabrics.iter().copied()
    }

    /// The fabric of this name.
    #[must_use]
    pub fn fabric(&self, name: &str) -> Option<&'static dyn FabricKind> {
        self.fabrics().find(|fabric| fabric.name() == name)
    }
}
