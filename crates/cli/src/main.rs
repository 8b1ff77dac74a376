//! The `rackloom` command: reads arguments, shows progress, prints results, sets the exit code.
//!
//! Results go to stdout, everything else to stderr. What is carried out, is carried out by the
//! library beside it.

mod args;
mod commands;
mod interrupt;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Arguments;
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    interrupt::listen();
    let mut output = Output::new(arguments.format, arguments.quiet);
    let code = match commands::carry_out(arguments.command, &mut output) {
        Ok(code) => code,
        Err(failure) => {
            output.error(&failure.to_string());
            failure.exit_code()
        }
    };
    ExitCode::from(code)
}
