//! Result tables to the terminal, to Parquet and to one self-contained HTML page.
//!
//! **Invariant:** knows no fabric by name. Whatever a fabric counts reaches the reader through
//! summary keys, gauges, stages and tables.

pub mod export;
pub mod figures;
pub mod files;
mod narrow;
pub mod page;
pub mod parquet;
pub mod reports;
pub mod summary;
pub mod table;
pub mod terminal;
pub mod underway;
pub mod unfinished;
pub mod units;

pub use files::{FileError, ResultsDir, write_atomically, write_json};
pub use parquet::{
    FlowRow, FlowWriter, GaugeRow, Provenance, Series, TableColumn, TraceIndex, each_flow,
    read_flows, read_links, read_series, read_table, read_trace, write_links, write_series,
    write_table, write_trace,
};
pub use reports::{
    Cause, Claim, Kind, Tally, Verdict, Why, account_of, claims_page, claims_table, claims_to_read,
    comparison_page, flows_table, key_figures, parts_table, published_claims, queues_table,
    run_again, run_page, slow_flows, slowest_first, verdict_of,
};
pub use summary::cell;
pub use table::{Cell, Column, ResultsTable, Tone};
pub use terminal::{Colours, TextStyle, comparison_text, run_text};
pub use units::{Unit, grouped};
