//! The `rackloom` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cli::command(std::env::args_os(), None))
}
