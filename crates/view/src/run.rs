//! What the page shows of one run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rack::FlowId;
use rack::trace::{Trace, queues_of};
use report::page::Axis;
use report::summary::{distributions, figures, warnings};
use report::units::label_of_key;
use report::{
    Cell, ResultsTable, Tone, Unit, Why, account_of, flows_table, key_figures, parts_table,
    queues_table, read_flows, read_links, read_series, read_trace, run_again, slowest_first,
};
use serde_json::{Value, json};

use crate::rack_picture::picture;
use crate::refusal::Refusal;

/// The table of flows of a run.
pub const FLOWS: &str = "flows.parquet";
const SERIES: &str = "series.parquet";
const TRACE: &str = "trace.parquet";
const LINKS: &str = "links.parquet";

/// Recorded flows in the table (our choice: a page stays quick); any other opens from the table of all flows.
const RECORDED_MAX: usize = 200;

/// The record that was looked at last: a click on the next flow does not read it again.
#[derive(Default)]
pub struct Traces(Mutex<Option<(PathBuf, SystemTime, Arc<Trace>)>>);

impl Traces {
    /// The record of the run in `directory`; `None`: it kept none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(&self, directory: &Path) -> Result<Option<Arc<Trace>>, Refusal> {
        let path = directory.join(TRACE);
        let Ok(written) = std::fs::metadata(&path).and_then(|file| file.modified()) else {
            return Ok(None);
        };
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, at, trace)) = &*last
            && (of, *at) == (&path, written)
        {
            return Ok(Some(trace.clone()));
        }
        let trace = Arc::new(read_trace(&path)?);
        *last = Some((path, written, trace.clone()));
        Ok(Some(trace))
    }
}

/// The summary in `directory`.
fn summary_of(directory: &Path) -> Result<Value, Refusal> {
    let path = directory.join("summary.json");
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let what = "the run is under way, or was killed; a summary is written at the end of a run";
        Refusal::missing(format!("{}: {error}: {what}", path.display()))
    })?;
    let summary: Value = serde_json::from_str(&text)
        .map_err(|error| Refusal::missing(format!("{}: {error}", path.display())))?;
    match summary.is_object() {
        true => Ok(summary),
        false => {
            Err(Refusal::missing(format!("{}: is of several runs, not of one", path.display())))
        }
    }
}

/// A table as the page draws it: heads, and cells with their texts, values and tones.
pub fn table_json(table: &ResultsTable) -> Value {
    let columns = table.columns.iter().enumerate().map(|(index, column)| {
        json!({ "key": column.key, "title": column.title, "number": table.is_numeric(index) })
    });
    let rows = table.rows.iter().map(|row| row.iter().map(cell_json).collect::<Value>());
    json!({ "columns": columns.collect::<Value>(), "rows": rows.collect::<Value>() })
}

/// A cell.
pub fn cell_json(cell: &Cell) -> Value {
    json!({ "text": cell.text, "value": cell.value, "tone": tone(cell.tone) })
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Muted => "muted",
    }
}

/// The axes of plots of flows.
pub fn axes() -> Value {
    json!({
        "size": Axis::log("Flow size", Unit::Bytes).to_json(),
        "slowdown": Axis::log("Slowdown", Unit::Ratio).to_json(),
        "fct": Axis::log("Completion time", Unit::Seconds).to_json(),
        "share": Axis::linear("Share of flows", Unit::Share).to_json(),
        "start": Axis::linear("Time", Unit::Seconds).to_json(),
        "count": Axis::linear("Flows begun", Unit::Count).to_json(),
    })
}

/// Figures, axes and what else there is of the run in `directory`, which people call `typed`.
///
/// # Errors
/// When it has no summary.
pub fn overview(directory: &Path, typed: &Path) -> Result<Value, Refusal> {
    let summary = summary_of(directory)?;
    let tiles = key_figures(&summary);
    let tiles = tiles.iter().map(|tile| {
        json!({ "label": tile.label, "value": tile.value, "note": tile.note, "tone": tone(tile.tone) })
    });
    let has = |name: &str| directory.join(name).is_file();
    Ok(json!({
        "label": summary["label"],
        "fabric": summary["fabric"],
        "nodes": summary["nodes"],
        "seed": summary["seed"],
        "version": summary["rackloom_version"],
        "warnings": warnings(&summary),
        "tiles": tiles.collect::<Value>(),
        "figures": table_json(&figures(&summary)),
        "distributions": table_json(&distributions(&summary)),
        "axes": axes(),
        "has_trace": has(TRACE),
        "has_report": has("report.html"),
        "has_links": has(LINKS),
        "has_series": has(SERIES),
        "again": run_again(typed, "slowest 100"),
        "scenario": std::fs::read_to_string(directory.join("scenario.toml")).unwrap_or_default(),
    }))
}

/// The gauges of the run over time, each with its axis.
///
/// # Errors
/// When they cannot be read.
pub fn series(directory: &Path) -> Result<Value, Refusal> {
    let series = read_series(&directory.join(SERIES))?;
    let gauges = series.gauges.iter().map(|gauge| {
        let label = label_of_key(&gauge.name);
        json!({
            "name": gauge.name,
            "label": label,
            "meaning": gauge.meaning,
            "axis": Axis::linear(label, Unit::of_key(&gauge.name)).to_json(),
            "values": gauge.values,
        })
    });
    Ok(json!({ "seconds": series.seconds, "gauges": gauges.collect::<Value>() }))
}

/// The network with what its lines carried; null: that was not recorded.
///
/// # Errors
/// When the record cannot be read.
pub fn network(directory: &Path) -> Result<Value, Refusal> {
    let path = directory.join(LINKS);
    Ok(if path.is_file() { picture(&read_links(&path)?) } else { Value::Null })
}

/// The flows whose packets were recorded, the slowest [`RECORDED_MAX`] first, and of how many; null if none were.
///
/// # Errors
/// When files cannot be read.
pub fn recorded(directory: &Path, traces: &Traces) -> Result<Value, Refusal> {
    let Some(trace) = traces.of(directory)? else { return Ok(Value::Null) };
    let flows = trace.flows();
    let wanted = |flow: FlowId| flows.binary_search(&flow).is_ok();
    let mut rows = slowest_first(read_flows(&directory.join(FLOWS), &wanted)?);
    let all = rows.len();
    rows.truncate(RECORDED_MAX);
    let mut table = table_json(&flows_table(&rows, &trace));
    table["all"] = all.into();
    Ok(table)
}

/// Where the time of flow number `flow` went.
///
/// # Errors
/// When there is no such flow, or its packets were not recorded.
pub fn why(directory: &Path, typed: &Path, flow: u64, traces: &Traces) -> Result<Value, Refusal> {
    let number = FlowId::new(flow);
    let trace = traces.of(directory)?;
    let recorded = trace.as_ref().map(|trace| trace.flows()).unwrap_or_default();
    let trace = trace.filter(|_| recorded.binary_search(&number).is_ok());
    let Some(trace) = trace else {
        let command = run_again(typed, &format!("flows {flow}"));
        return Err(Refusal::missing(format!(
            "The packets of flow {flow} were not recorded, so its time cannot be parted. The key run.trace of the \
             scenario records them; this gives the same results and records them, too: {command}"
        )));
    };
    let rows = read_flows(&directory.join(FLOWS), &|one| one == number)?;
    let row = rows.first().ok_or_else(|| Refusal::missing(format!("there is no flow {flow}")))?;
    let account = account_of(row, &trace);
    let queues = match &account {
        Some(account) => account.queues.clone(),
        None => queues_of(trace.of(number)),
    };
    let mut told = Why::new(row, &trace).to_json();
    // As people read it, beside the numbers.
    told["parts_table"] =
        account.map_or(Value::Null, |account| table_json(&parts_table(&account, &trace)));
    told["queues_table"] = table_json(&queues_table(&queues, &trace));
    Ok(told)
}
