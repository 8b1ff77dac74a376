//! From the description of registers to the Rust that both ends use.
//!
//! Refuses what no chip could be built to: registers that overlap, entries that are not aligned.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Deserialize;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    version: u32,
    register: Vec<Entry>,
}

/// A register.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    base: u32,
    width: u32,
    #[serde(default)]
    dimensions: Vec<u32>,
    access: Access,
    reset: Reset,
    meaning: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Access {
    Ro,
    Rw,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Reset {
    Number(u64),
    Word(String),
}

impl Entry {
    fn bytes(&self) -> u32 {
        self.width / 8
    }

    /// One behind its last address.
    fn end(&self) -> Result<u32, String> {
        let entries = self.dimensions.iter().try_fold(1u32, |all, &size| all.checked_mul(size));
        let size = entries.and_then(|entries| entries.checked_mul(self.bytes()));
        let end = size.and_then(|size| self.base.checked_add(size));
        end.ok_or(format!("{}: it ends behind 32 bits of address", self.name))
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if !name.starts_with(|c: char| c.is_ascii_lowercase())
            || !name.chars().all(|c| c.is_ascii_lowercase() || c == '.' || c == '_')
        {
            return Err(format!("{name}: expected a name of lower case letters, dots and _"));
        }
        if ![8, 16, 32, 64, 128, 256].contains(&self.width) {
            let found = self.width;
            return Err(format!("{name}: width {found}; expected 8, 16, 32, 64, 128 or 256"));
        }
        if !self.base.is_multiple_of(self.bytes()) {
            let (base, bytes) = (self.base, self.bytes());
            return Err(format!("{name}: base {base:#x}; expected a multiple of {bytes}"));
        }
        if self.dimensions.len() > 3 || self.dimensions.contains(&0) {
            return Err(format!("{name}: expected up to three dimensions, none of them 0"));
        }
        if self.meaning.is_empty() || self.meaning.contains('\n') {
            return Err(format!("{name}: expected a meaning of one line"));
        }
        Ok(())
    }

    fn reset(&self) -> Result<String, String> {
        match &self.reset {
            Reset::Word(word) if word == "zeros" => Ok("Reset::Zeros".to_owned()),
            Reset::Word(word) if word == "ones" => Ok("Reset::Ones".to_owned()),
            &Reset::Number(number) if self.width >= 64 || number >> self.width == 0 => {
                Ok(format!("Reset::Number({number:#x})"))
            }
            _ => Err(format!("{}: expected reset zeros, ones or a number that fits", self.name)),
        }
    }

    fn constant(&self) -> String {
        self.name.to_uppercase().replace('.', "_")
    }

    fn word(&self) -> String {
        if self.width == 256 { "[u8; 32]".to_owned() } else { format!("u{}", self.width) }
    }
}

/// The module that stands for a description.
///
/// # Errors
/// What is wrong with the description, and where.
pub fn generate(text: &str) -> Result<String, String> {
    let mut found: Description = toml::from_str(text).map_err(|error| error.to_string())?;
    found.register.sort_by_key(|register| register.base);
    let mut names = BTreeSet::new();
    let mut free = 0;
    for register in &found.register {
        register.check()?;
        let (name, base) = (&register.name, register.base);
        if !names.insert(register.constant()) {
            return Err(format!("{name}: a second register of this name"));
        }
        if base < free {
            return Err(format!("{name}: base {base:#x} is in the register before it"));
        }
        free = register.end()?;
    }
    let mut out = String::from(
        "//! Generated from registers.toml; do not edit. After a change of the description:\n//!\n\
         //! ```text\n//! cargo run -p rackloom-aquila-control --example generate_registers\n\
         //! ```\n\n\
         use super::{Access, Handle, Register, Reset};\n\n",
    );
    let version = found.version;
    writeln!(out, "/// Version of the description.\npub const VERSION: u32 = {version};\n")
        .expect("a string takes it");
    write_registers(&mut out, &found.register)?;
    Ok(out)
}

fn write_registers(out: &mut String, registers: &[Entry]) -> Result<(), String> {
    let mut all = String::new();
    for (index, register) in registers.iter().enumerate() {
        let Entry { name, base, width, dimensions, meaning, .. } = register;
        let access = match register.access {
            Access::Ro => "ReadOnly",
            Access::Rw => "ReadWrite",
        };
        let reset = register.reset()?;
        let (constant, word, rank) = (register.constant(), register.word(), dimensions.len());
        write!(
            out,
            "/// {meaning}\npub const {constant}: Handle<{word}, {rank}> = Handle::new({index});\n"
        )
        .expect("a string takes it");
        write!(
            all,
            "    Register {{\n        name: \"{name}\",\n        base: {base:#x},\n        \
             width: {width},\n        dimensions: &{dimensions:?},\n        \
             access: Access::{access},\n        reset: {reset},\n        \
             meaning: {meaning:?},\n    }},\n"
        )
        .expect("a string takes it");
    }
    write!(
        out,
        "\n/// All registers, by address.\npub static REGISTERS: [Register; {}] = [\n{all}];\n",
        registers.len()
    )
    .expect("a string takes it");
    Ok(())
}
