//! What Rust says of a failure, as exceptions of the package.

use cli::engine::Failure;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use scenario::{BadInput, Located};

/// Where the exceptions are defined.
const MODULE: &str = "rackloom.errors";

/// The exception that stands for `failure`.
pub fn of_failure(py: Python<'_>, failure: Failure) -> PyErr {
    match failure {
        Failure::Input(bad) => of_bad_input(py, &bad),
        Failure::Place(error) => input_error(py, vec![(None, None, None, error.to_string())]),
        Failure::Interrupted => PyKeyboardInterrupt::new_err(failure.to_string()),
        Failure::Broken(_) | Failure::Internal(_) | Failure::Write(_) | Failure::Cluster(_) => {
            raised(py, "RunError", failure.to_string())
        }
    }
}

/// The exception that stands for `bad`.
pub fn of_bad_input(py: Python<'_>, bad: &BadInput) -> PyErr {
    input_error(py, bad.problems().iter().map(parts).collect())
}

/// The failure that stands for an exception of the package.
pub fn failure(py: Python<'_>, error: &PyErr) -> Failure {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return Failure::Interrupted;
    }
    let problems = error.value(py).getattr("problems");
    let problems = problems.and_then(|list| list.try_iter()?.collect::<PyResult<Vec<_>>>());
    let Ok(problems) = problems else {
        return Failure::Cluster(error.value(py).to_string());
    };
    let text = |problem: &Bound<'_, PyAny>, name: &str| {
        problem.getattr(name).and_then(|text| text.extract()).unwrap_or_default()
    };
    let located = |problem: &Bound<'_, PyAny>| {
        let (file, key): (String, String) = (text(problem, "file"), text(problem, "key"));
        Located::whole(if file.is_empty() { &key } else { &file }, text(problem, "message"))
    };
    BadInput::new(problems.iter().map(located).collect()).into()
}

/// File, line, key, message.
type Problem = (Option<String>, Option<usize>, Option<String>, String);

fn parts(problem: &Located) -> Problem {
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let (file, key) = (filled(problem.source()), filled(problem.path()));
    (file, problem.line(), key, problem.message().into())
}

fn input_error(py: Python<'_>, problems: Vec<Problem>) -> PyErr {
    raised(py, "InputError", problems)
}

/// An exception of the package, made of one argument.
fn raised<'py, T: IntoPyObject<'py>>(py: Python<'py>, name: &str, argument: T) -> PyErr {
    let made = py.import(MODULE).and_then(|module| module.getattr(name)?.call1((argument,)));
    made.map_or_else(|error| error, PyErr::from_value)
}
