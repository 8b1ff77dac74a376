//! The `[workload]` table: one of the generators, or a trace file.
//!
//! The generators know no files, so the trace is read here and handed to them as rows.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kernel::{Bytes, Rate};
use rack::workload::config::{Nominal, WorkloadConfig, WorkloadContext};
use rack::workload::trace::from_rows;
use rack::{Problem, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{registry, trace};

/// Bytes of a file that are read at a time.
const PART: usize = 1 << 16;

/// The `kind` that stands for a trace file.
pub const TRACE: &str = "trace";

/// What a scenario carries.
#[derive(Clone)]
pub struct WorkloadChoice {
    source: Source,
    /// Memory that a trace may take.
    memory: Bytes,
    /// The node rate that load 1.0 refers to, if the scenario states one.
    pub load_rate: Option<Rate>,
}

#[derive(Clone)]
enum Source {
    Generator(WorkloadConfig),
    Trace(TraceConfig),
}

/// Flows from a file: CSV or Parquet with the columns start, src, dst, bytes and optionally class
/// and after.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceConfig {
    /// The file; a relative path starts at the scenario file. No default.
    pub path: PathBuf,
    /// First 16 hexadecimal digits of the SHA-256 of the file, to be sure that it is still the
    /// same. Default: not checked; a resolved scenario states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl WorkloadChoice {
    /// Reads the `[workload]` table of a scenario that lies in `folder`; a trace may take `memory`.
    ///
    /// # Errors
    /// Every problem, keys below the table.
    pub fn read(table: Value, folder: &Path, memory: Bytes) -> Result<Self, Vec<Problem>> {
        let mut table = match table {
            Value::Object(table) => table,
            _ => Map::new(),
        };
        let load_rate = table.shift_remove("load_rate").map(registry::read).transpose()?;
        if table.get("kind").is_some_and(|kind| kind == TRACE) {
            table.shift_remove("kind");
            let mut trace: TraceConfig = registry::read(Value::Object(table))?;
            trace.path = folder.join(&trace.path);
            trace.pin()?;
            return Ok(Self { source: Source::Trace(trace), memory, load_rate });
        }
        let generator = registry::read(Value::Object(table))?;
        Ok(Self { source: Source::Generator(generator), memory, load_rate })
    }

    /// The table with all defaults filled in.
    #[must_use]
    pub fn to_value(&self, load_rate: Rate) -> Value {
        let mut value = match &self.source {
            Source::Generator(generator) => json!(generator),
            Source::Trace(TraceConfig { path, digest }) => {
                // Absolute, since the resolved scenario will lie in another folder.
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                json!({ "kind": TRACE, "path": path, "digest": digest })
            }
        };
        value["load_rate"] = json!(load_rate);
        value
    }

    /// Takes out of `table` what does not change the flows: the path of a trace.
    pub fn forget_path(&self, table: &mut Value) {
        if let (Source::Trace(_), Value::Object(table)) = (&self.source, table) {
            table.shift_remove("path");
        }
    }

    /// What it offers by its definition; nothing is known of a trace.
    #[must_use]
    pub fn nominal(&self, context: &WorkloadContext) -> Option<Nominal> {
        match &self.source {
            Source::Generator(generator) => generator.nominal(context).ok(),
            Source::Trace(_) => None,
        }
    }

    /// Draws it for a rack.
    ///
    /// # Errors
    /// Every problem, keys below the table.
    pub fn build(&self, context: &WorkloadContext) -> Result<Box<dyn Workload>, Vec<Problem>> {
        match &self.source {
            Source::Generator(generator) => generator.build(context),
            Source::Trace(config) => {
                config.check_digest()?;
                let rows =
                    trace::read(&config.path, context.nodes, self.memory).map_err(|bad| {
                        let message =
                            |p: &crate::problem::Located| Problem::new("path", p.to_string());
                        bad.problems().iter().map(message).collect::<Vec<_>>()
                    })?;
                Ok(Box::new(from_rows(&rows, context.nodes)?))
            }
        }
    }
}

impl TraceConfig {
    fn digest_of_file(&self) -> Result<String, Vec<Problem>> {
        let unreadable = |error: io::Error| {
            let message = format!("{} cannot be read: {error}", self.path.display());
            vec![Problem::new("path", message)]
        };
        let mut file = trace::open(&self.path).map_err(unreadable)?;
        let (mut digest, mut part) = (Sha256::new(), vec![0; PART]);
        loop {
            match file.read(&mut part).map_err(unreadable)? {
                0 => break,
                count => digest.update(&part[..count]),
            }
        }
        let digest = digest.finalize();
        Ok(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Notes which content the path stands for.
    fn pin(&mut self) -> Result<(), Vec<Problem>> {
        self.check_digest()?;
        self.digest = Some(self.digest_of_file()?);
        Ok(())
    }

    fn check_digest(&self) -> Result<(), Vec<Problem>> {
        let Some(expected) = &self.digest else { return Ok(()) };
        let found = self.digest_of_file()?;
        if found == *expected {
            return Ok(());
        }
        let message = format!("found a trace with digest {found}; expected {expected}");
        Err(vec![Problem::new("digest", message)])
    }
}
