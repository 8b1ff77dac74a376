//! Writes `src/registers/map.rs` from `src/registers/registers.toml`; run it in the project's root.

use std::fs;
use std::path::Path;

#[path = "../src/registers/generate.rs"]
mod generate;

fn main() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/registers");
    let text = fs::read_to_string(folder.join("registers.toml")).map_err(|e| e.to_string())?;
    fs::write(folder.join("map.rs"), generate::generate(&text)?).map_err(|e| e.to_string())
}
