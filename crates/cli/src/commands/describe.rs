//! `rackloom describe`.

use scenario::Registry;

use super::DONE;
use crate::args::DescribeArguments;
use crate::catalogue;
use crate::engine::Failure;
use crate::output::Output;

/// Describes the keys of a table of the scenario file.
pub fn describe(
    arguments: &DescribeArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let name = &arguments.name;
    let found = catalogue::describe(name, registry)?;
    let (place, text) = (&found.place, &found.text);
    output.paged(
        |style| format!("{name}: {text}\n\nKeys of {place}:\n\n{}", found.keys.to_text(style)),
        || found.keys.to_json(),
    );
    Ok(DONE)
}
