//! Scenario in, results directory out: what the `rackloom` command and the Python package share.
//!
//! **Invariant:** what is public here, but for [`command`], prints nothing and reads no terminal. The
//! command does that, in its own files.

mod args;
pub mod catalogue;
mod commands;
pub mod engine;
mod extras;
mod interrupt;
mod output;
mod progress;
pub mod reproduce;

use std::ffi::OsString;

use clap::Parser;

use crate::args::Arguments;
use crate::engine::Failure;
use crate::output::Output;

pub use crate::extras::Extras;

/// The version of Rackloom, as in every result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The `rackloom` command: reads arguments (the first is the name of the program), shows progress,
/// prints results and returns the exit code. Results go to stdout, everything else to stderr.
///
/// Two doors lead here: the binary, and the command that `pip install` puts on the path, which brings
/// `extras` along.
pub fn command(arguments: impl IntoIterator<Item = OsString>, extras: Option<&dyn Extras>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let carried_out = engine::caught(|| match Arguments::try_parse_from(&arguments) {
        Ok(arguments) => carry_out(arguments, extras),
        Err(message) => output::usage(&message),
    });
    carried_out.unwrap_or_else(|panic| {
        let failure = Failure::Internal(panic);
        output::say(&failure.to_string());
        failure.exit_code()
    })
}

fn carry_out(arguments: Arguments, extras: Option<&dyn Extras>) -> u8 {
    interrupt::listen();
    let mut output = Output::new(arguments.format, arguments.quiet);
    let code = match commands::carry_out(arguments.command, extras, &mut output) {
        Ok(code) => code,
        Err(failure) => {
            output.error(&failure.to_string());
            failure.exit_code()
        }
    };
    output.exit_code(code)
}
