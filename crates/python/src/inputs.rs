//! What the package passes in: scenarios as paths or as JSON, settings as keys and JSON.

use std::path::PathBuf;

use cli::engine::{self, sweep::Axis};
use pyo3::prelude::*;
use scenario::{Argument, BadInput, Document, Located, Scenario};
use serde_json::Value;

/// What messages call a scenario that is not in a file.
const UNNAMED: &str = "scenario";

/// Where a scenario comes from.
#[derive(FromPyObject)]
pub enum Source {
    /// A file.
    #[pyo3(transparent, annotation = "Path")]
    File(PathBuf),
    /// A mapping, as JSON in bytes.
    #[pyo3(transparent, annotation = "bytes")]
    Mapping(Vec<u8>),
}

impl Source {
    /// The scenario as it was written.
    pub fn document(&self) -> Result<Document, BadInput> {
        match self {
            Self::File(path) => Document::open(path),
            Self::Mapping(text) => Document::from_value(UNNAMED, &value(text)?),
        }
    }
}

/// Keys to set: path, value as JSON, what messages call it.
pub type Settings = Vec<(String, Vec<u8>, String)>;

/// The settings as the library takes them.
pub fn arguments(settings: &Settings) -> Result<Vec<Argument>, BadInput> {
    let argument = |(path, text, origin): &(String, Vec<u8>, String)| {
        Ok(Argument::value(path, &value(text)?, origin))
    };
    settings.iter().map(argument).collect()
}

/// A checked scenario.
pub fn scenario(source: &Source, settings: &Settings) -> Result<Scenario, BadInput> {
    Scenario::read(source.document()?, &arguments(settings)?, &engine::registry())
}

/// The axes of a sweep: keys and their values as the command line has them.
pub fn axes(grid: Vec<(String, Vec<String>)>) -> Vec<Axis> {
    grid.into_iter().map(|(key, values)| Axis { key, values }).collect()
}

/// The package writes this JSON itself; only a number that JSON lacks can be wrong with it.
fn value(text: &[u8]) -> Result<Value, BadInput> {
    serde_json::from_slice(text)
        .map_err(|error| BadInput::single(Located::whole(UNNAMED, error.to_string())))
}
