//! What the tests are made of.

pub mod bases;
pub mod etcd;
pub mod plane;
pub mod refusals;
pub mod simulated;

use std::path::PathBuf;
use std::process::ExitCode;

use aquila_services::supervisor::FINAL;
use aquila_services::{logs, process, status};

/// Is a process of a control plane, as the command would be.
pub fn process(arguments: &[String]) -> ExitCode {
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).cloned().unwrap_or_default()
    };
    let folder = PathBuf::from(value("--dir"));
    let Some(role) = status::role(&value("--role")) else { return ExitCode::FAILURE };
    let Ok(instance) = value("--instance").parse() else { return ExitCode::FAILURE };
    logs::begin(false);
    match process::run_alone(&folder, (role, instance)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if error.is_final() { FINAL as u8 } else { 1 })
        }
    }
}
