//! Result tables to the terminal, to Parquet and to one self-contained HTML page.
//!
//! **Invariant:** knows no fabric by name. Whatever a fabric counts reaches the reader through
//! summary keys, gauges, stages and tables.

pub mod figures;
pub mod files;
pub mod page;
pub mod parquet;
pub mod reports;
pub mod summary;
pub mod table;
pub mod terminal;
pub mod unfinished;
pub mod units;

pub use files::{FileError, ResultsDir, write_atomically, write_json};
pub use parquet::{FlowWriter, Provenance, TableColumn, write_series, write_table};
pub use reports::{
    Claim, Kind, Tally, Verdict, claims_page, claims_table, comparison_page, published_claims,
    run_page, verdict_of,
};
pub use summary::cell;
pub use table::{Cell, Column, ResultsTable, Tone};
pub use terminal::{Colours, TextStyle, comparison_text, run_text};
pub use units::Unit;
