//! `rackloom why`.

use std::path::{Path, PathBuf};

use rack::FlowId;
use report::export::{write_pcapng, write_perfetto};
use report::{
    FileError, FlowRow, TraceIndex, Why, flows_table, read_flows, read_trace, run_again,
    slowest_first,
};
use scenario::{BadInput, Located};

use super::DONE;
use crate::args::WhyArguments;
use crate::engine::{FLOWS, Failure, TRACE};
use crate::output::Output;

/// What results say of the time of their flows.
pub fn why(arguments: &WhyArguments, output: &mut Output) -> Result<u8, Failure> {
    let path = record_of(&arguments.results)?;
    let flows = arguments.results.join(FLOWS);
    let (rows, trace) = match arguments.flow {
        Some(number) => {
            let rows = read_flows(&flows, &|flow| flow.get() == number).map_err(Failure::Place)?;
            let index = TraceIndex::read(&path).map_err(Failure::Place)?;
            let row = found(arguments, number, &rows, &index)?;
            (vec![row.clone()], index.of(row.flow).map_err(Failure::Place)?)
        }
        None => {
            let trace = read_trace(&path).map_err(Failure::Place)?;
            let recorded = trace.flows();
            let is_recorded = |flow: FlowId| recorded.binary_search(&flow).is_ok();
            let rows = read_flows(&flows, &is_recorded).map_err(Failure::Place)?;
            (slowest_first(rows), trace)
        }
    };
    if let Some(path) = &arguments.perfetto {
        let count = write_perfetto(path, &rows, &trace).map_err(unwritten)?;
        say_written(output, path, (count, rows.len()));
    }
    if let Some(path) = &arguments.pcapng {
        let flows: Vec<FlowId> = rows.iter().map(|row| row.flow).collect();
        let count = write_pcapng(path, &flows, &trace).map_err(unwritten)?;
        output.note(&format!("{} has {count} frames", path.display()));
    }
    if arguments.perfetto.is_some() || arguments.pcapng.is_some() {
        return Ok(DONE);
    }
    match (&rows[..], arguments.flow) {
        ([row], Some(_)) => {
            let why = Why::new(row, &trace);
            output.result(|style| why.to_text(style), || why.to_json());
        }
        _ => output.table(&flows_table(&rows, &trace)),
    }
    if rows.is_empty() {
        output.note(&format!(
            "{} has a record of no flow: none that run.trace asks for was offered, or completed",
            arguments.results.display()
        ));
    }
    Ok(DONE)
}

/// An export that was not written: what is full is no bad input.
fn unwritten(error: FileError) -> Failure {
    match error {
        FileError::Full { .. } => Failure::Write(error),
        other => Failure::Place(other),
    }
}

/// Says what was exported.
fn say_written(output: &Output, path: &Path, (count, all): (usize, usize)) {
    let flows = if count == 1 { "one flow".to_string() } else { format!("{count} flows") };
    let path = path.display();
    match count == all {
        true => output.note(&format!("{path} has {flows}")),
        false => {
            output.note(&format!("{path} has {flows}, the slowest; all {all} would be too much"))
        }
    }
}

/// Where the record in a results directory is.
fn record_of(results: &Path) -> Result<PathBuf, Failure> {
    let path = results.join(TRACE);
    if !results.join(FLOWS).exists() {
        let message = format!("is no directory with the results of a run: it has no {FLOWS}");
        return Err(refused(results, message));
    }
    if !path.exists() {
        let message = format!(
            "holds no {TRACE}: the run recorded no packets. Run it again with run.trace set, which gives the \
             same results: {}",
            run_again(results, "slowest 100")
        );
        return Err(refused(results, message));
    }
    Ok(path)
}

fn refused(results: &Path, message: String) -> Failure {
    BadInput::single(Located::whole(&results.display().to_string(), message)).into()
}

/// The flow that was asked for, if it is recorded.
fn found<'a>(
    arguments: &WhyArguments,
    number: u64,
    rows: &'a [FlowRow],
    recorded: &TraceIndex,
) -> Result<&'a FlowRow, Failure> {
    let results = &arguments.results;
    let Some(row) = rows.first() else {
        return Err(refused(results, format!("has no flow {number}")));
    };
    if recorded.has(row.flow) {
        return Ok(row);
    }
    let again = run_again(results, &format!("flows {number}"));
    let message = format!(
        "has no record of flow {number}; it has of {}, which `rackloom why {}` lists. For this one: {again}",
        match recorded.flows().len() {
            1 => "one flow".to_string(),
            count => format!("{count} flows"),
        },
        results.display()
    );
    Err(refused(results, message))
}
