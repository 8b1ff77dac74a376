//! The native part of the Python package `rackloom`: takes plain data, calls the library that the
//! command calls, and hands plain data back.
//!
//! The package over it (`python/rackloom`) has the types and the words that people see. Tables are
//! not passed through here: they are read from the Parquet files, when they are asked for.
//!
//! **Invariant:** Rust knows Python here and nowhere else.

mod cluster;
mod errors;
mod inputs;
mod search;
mod tables;
mod verbs;
mod watch;

use pyo3::prelude::*;

/// The native part; `rackloom` is the package to use.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::cluster::carry_out;
    #[pymodule_export]
    use crate::search::search;
    #[pymodule_export]
    use crate::tables::{command, describe, listing, page, schema, text};
    #[pymodule_export]
    use crate::verbs::{
        compare, estimate, figure, record, reproduce, reproduce_all, resolve, run, sweep, swept,
    };

    /// The version of Rackloom.
    #[pymodule_export]
    const VERSION: &str = cli::VERSION;
}
