//! `rackloom aquila`: the control plane of Aquila.

mod bootstrap;
mod control;
mod links;
mod set;
mod upgrade;

use crate::args::{AquilaArguments, AquilaCommand};
use crate::engine::Failure;
use crate::output::Output;

/// Does what was asked for.
pub fn aquila(arguments: &AquilaArguments, output: &mut Output) -> Result<u8, Failure> {
    match &arguments.what {
        AquilaCommand::Bootstrap(arguments) => bootstrap::bootstrap(arguments, output),
        AquilaCommand::Control(arguments) => Ok(control::control(arguments, output)),
        AquilaCommand::Status(arguments) => Ok(control::status(arguments, output)),
        AquilaCommand::Links(arguments) => Ok(links::links(arguments, output)),
        AquilaCommand::Upgrade(arguments) => Ok(upgrade::upgrade(arguments, output)),
        AquilaCommand::Set(arguments) => Ok(set::set(arguments, output)),
        AquilaCommand::Process(arguments) => Ok(control::be(arguments, output)),
    }
}
