//! `rackloom list`.

use scenario::Registry;

use super::DONE;
use crate::args::ListArguments;
use crate::catalogue;
use crate::engine::Failure;
use crate::output::Output;

/// Lists what there is.
pub fn list(
    arguments: &ListArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    output.table(&catalogue::list(arguments.what, registry));
    Ok(DONE)
}
