//! Parquet files: `flows.parquet`, `series.parquet`, `trace.parquet`, `links.parquet`, and any other table.
//!
//! Every column says in the file what it is and in which unit. The same run gives the same bytes:
//! nothing of the writer, the machine or the hour is in the file. Memory is bounded by one row
//! group, however many rows there are.

mod cells;
mod columns;
mod flows;
mod links;
mod read;
mod series;
mod table;
mod trace;

pub use flows::FlowWriter;
pub use links::{read_links, write_links};
pub use read::{
    FlowRow, GaugeRow, Series, TraceIndex, each_flow, read_flows, read_series, read_trace,
};
pub use series::write_series;
pub use table::{TableColumn, read_table, write_table};
pub use trace::write_trace;

/// Where a file's figures come from; stored with them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Provenance {
    /// The version of Rackloom.
    pub version: String,
    /// The hash of the scenario.
    pub scenario_hash: String,
    /// The seed of the run.
    pub seed: u64,
    /// The scenario as resolved, in TOML.
    pub scenario: String,
}

#[cfg(test)]
impl Provenance {
    /// That of figures which come from nowhere.
    fn of_a_test() -> Self {
        let (version, scenario_hash) = ("0.1.0".into(), String::new());
        Self { version, scenario_hash, seed: 0, scenario: String::new() }
    }
}
