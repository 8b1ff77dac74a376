//! Result tables to the terminal, to Parquet and to one self-contained HTML page.
//!
//! **Invariant:** knows no fabric by name. Whatever a fabric counts reaches the reader through
//! summary keys, gauges, stages and tables.

pub mod files;
pub mod page;
pub mod parquet;
pub mod table;
pub mod terminal;
pub mod units;

pub use files::{FileError, ResultsDir, write_atomically, write_json};
pub use parquet::{FlowWriter, Provenance, write_series};
pub use table::{Cell, Column, ResultsTable, Tone};
pub use terminal::{Colours, TextStyle};
pub use units::Unit;
