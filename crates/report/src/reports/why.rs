//! Where the time of single flows went, of a run that recorded their packets.

use std::path::Path;

use rack::FlowId;
use rack::trace::{Account, Followed, Hop, Part, Queue, Trace, account, critical_way, queues_of};
use serde_json::{Value, json};

use crate::page::{Axis, Block, Plot, PlotSeries, SeriesStyle, TableBlock};
use crate::parquet::FlowRow;
use crate::terminal::{TextStyle, printable_line};
use crate::units::{MISSING, capitalised, grouped};
use crate::{Cell, Column, ResultsTable, Tone, Unit};

/// Where the time of a flow went; `None`: it did not complete, or the record does not hold how.
#[must_use]
pub fn account_of(row: &FlowRow, trace: &Trace) -> Option<Account> {
    let end = row.end.filter(|_| row.status == "completed")?;
    let FlowRow { flow, src, dst, start, .. } = *row;
    account(&Followed { flow, src, dst, start, end }, trace.of(flow))
}

/// What to type to have the packets of `choice` recorded, as `run.trace` has it: the run in the directory `results` once
/// more, with the same results.
#[must_use]
pub fn run_again(results: &Path, choice: &str) -> String {
    let (scenario, results) = (results.join("scenario.toml"), results.display());
    format!("rackloom run {} --set run.trace=\"{choice}\" --out {results}", scenario.display())
}

/// Flows by slowdown, the largest first; those that did not complete before all others.
#[must_use]
pub fn slowest_first(mut rows: Vec<FlowRow>) -> Vec<FlowRow> {
    let key = |row: &FlowRow| row.slowdown.unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.flow.cmp(&b.flow)));
    rows
}

/// Recorded flows in this order, each with what took most of its time.
#[must_use]
pub fn flows_table(rows: &[FlowRow], trace: &Trace) -> ResultsTable {
    let columns = [
        ("flow_id", "Flow"),
        ("src", "From"),
        ("dst", "To"),
        ("size_bytes", "Size"),
        ("fct_seconds", "FCT"),
        ("slowdown", "Slowdown"),
        ("largest_part", "Most of it"),
        ("largest_seconds", "So long"),
        ("largest_share", "Share"),
    ];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).into());
    for row in rows {
        let account = account_of(row, trace);
        let fct = row.end.filter(|_| account.is_some()).map(|end| (end - row.start).as_seconds());
        let largest = account.as_ref().map(|account| {
            let part = account.largest();
            (part, account.total(part).as_seconds())
        });
        let (part, span) = (largest.map(|(part, _)| part), largest.map(|(_, span)| span));
        let part = match part {
            Some(part) => Cell { value: part.as_str().into(), ..Cell::text(part.meaning()) },
            None => Cell::text(row.status.clone()).toned(Tone::Bad),
        };
        let share = span.zip(fct).map(|(span, fct)| span / fct);
        table.push(vec![
            Cell { text: row.flow.get().to_string(), ..Cell::new(row.flow.get(), Unit::Count) },
            Cell::text(row.src.to_string()),
            Cell::text(row.dst.to_string()),
            Cell::new(row.size.get(), Unit::Bytes),
            Cell::new(json!(fct), Unit::Seconds),
            Cell::new(json!(row.slowdown), Unit::Ratio),
            part,
            Cell::new(json!(span), Unit::Seconds),
            Cell::new(json!(share), Unit::Share),
        ]);
    }
    table
}

/// What a completion time is made of, in the order of the way, and the sum.
#[must_use]
pub fn parts_table(account: &Account, trace: &Trace) -> ResultsTable {
    let columns = [
        ("part", "Where the time went"),
        ("at", "At"),
        ("seconds", "Time"),
        ("ps", "ps"),
        ("share", "Share"),
    ];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).into());
    let mut push = |part: Cell, at: Option<String>, span: kernel::Span| {
        let share = span.as_ps() as f64 / account.fct.as_ps().max(1) as f64;
        table.push(vec![
            part,
            at.map_or_else(|| Cell { value: Value::Null, ..Cell::text("") }, Cell::text),
            Cell::new(span.as_seconds(), Unit::Seconds),
            Cell { text: grouped(span.as_ps()), ..Cell::new(span.as_ps(), Unit::Count) },
            Cell::new(share, Unit::Share),
        ]);
    };
    for share in &account.shares {
        let place = share.place.map(|place| trace.places[place as usize].to_string());
        let part = Cell { value: share.part.as_str().into(), ..Cell::text(share.part.meaning()) };
        push(part, place, share.span);
    }
    if account.rest > kernel::Span::ZERO {
        let part = Cell { value: "not_recorded".into(), ..Cell::text("not recorded") };
        push(part.toned(Tone::Bad), None, account.rest);
    }
    let sum = Cell { value: "sum".into(), ..Cell::text("sum: the flow completion time") };
    push(sum, None, account.fct);
    table
}

/// Beside whom: other flows with their bytes.
fn beside(flows: &[(Option<FlowId>, u64)]) -> Cell {
    let one = |&(flow, bytes): &(Option<FlowId>, u64)| match flow {
        Some(flow) => format!("flow {}: {}", flow.get(), Unit::Bytes.format(bytes as f64)),
        None => format!("no flow: {}", Unit::Bytes.format(bytes as f64)),
    };
    let rows = flows
        .iter()
        .map(|&(flow, bytes)| json!({ "flow_id": flow.map(FlowId::get), "bytes": bytes }));
    let text: Vec<_> = flows.iter().take(4).map(one).collect();
    let more = if flows.len() > 4 { ", …" } else { "" };
    let text = if text.is_empty() { MISSING.into() } else { format!("{}{more}", text.join(", ")) };
    Cell { value: rows.collect(), text, tone: Tone::Plain }
}

/// The queues that the flow's data waited in: how long, how deep, beside whom.
#[must_use]
pub fn queues_table(queues: &[Queue], trace: &Trace) -> ResultsTable {
    let columns = [
        ("queue", "Queue"),
        ("packets", "Packets"),
        ("lost", "Lost"),
        ("critical_seconds", "Critical waited"),
        ("mean_seconds", "Mean"),
        ("max_seconds", "Longest"),
        ("deepest_bytes", "Deepest found"),
        ("beside", "Beside whom the critical packet waited"),
    ];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).into());
    for queue in queues {
        let critical = queue.critical.map(kernel::Span::as_seconds);
        table.push(vec![
            Cell::text(trace.places[queue.place as usize].to_string()),
            Cell::new(queue.packets, Unit::Count),
            Cell::new(queue.lost, Unit::Count),
            Cell::new(json!(critical), Unit::Seconds),
            Cell::new(queue.mean.as_seconds(), Unit::Seconds),
            Cell::new(queue.max.as_seconds(), Unit::Seconds),
            Cell::new(queue.deepest, Unit::Bytes),
            beside(&queue.beside),
        ]);
    }
    table
}

/// What each cell on a way waited for, from hop to hop; what was no wait is left out.
#[must_use]
pub fn cells_table(way: &[&Hop], trace: &Trace) -> ResultsTable {
    let columns = [
        ("cell", "Cell"),
        ("at", "Waited for"),
        ("vc", "VC"),
        ("wait_seconds", "Wait"),
        ("fifo_seconds", "Behind in FIFO"),
        ("room_seconds", "Output full"),
        ("crossbar_seconds", "Crossbar"),
        ("line_seconds", "Line busy"),
        ("credit_seconds", "No credit"),
    ];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).into());
    for hop in way {
        let Some(cell) = hop.cell.as_deref().filter(|_| hop.wait() > kernel::Span::ZERO) else {
            continue;
        };
        let seconds = |span: kernel::Span| Cell::new(span.as_seconds(), Unit::Seconds);
        table.push(vec![
            Cell::text(format!("{} {}", cell.kind, cell.number)),
            Cell::text(trace.places[hop.place as usize].to_string()),
            Cell::new(cell.vc, Unit::Count),
            seconds(hop.wait()),
            seconds(cell.fifo),
            seconds(cell.room),
            seconds(cell.crossbar),
            seconds(cell.line),
            seconds(cell.credit),
        ]);
    }
    table
}

/// All that is said of one flow.
pub struct Why<'a> {
    row: &'a FlowRow,
    trace: &'a Trace,
    /// The way of its critical packet.
    way: Vec<&'a Hop>,
    account: Option<Account>,
    queues: Vec<Queue>,
}

impl<'a> Why<'a> {
    /// Of the flow of `row`, whose packets are in `trace`.
    #[must_use]
    pub fn new(row: &'a FlowRow, trace: &'a Trace) -> Self {
        let account = account_of(row, trace);
        let hops: &[Hop] = trace.of(row.flow);
        let queues =
            account.as_ref().map_or_else(|| queues_of(hops), |account| account.queues.clone());
        let end = row.end.filter(|_| account.is_some());
        let way = end.and_then(|end| critical_way(end, hops)).unwrap_or_default();
        Self { row, trace, way, account, queues }
    }

    /// The queues as people are shown them. Cells go by many lines: shown are those that the critical packet met, and how
    /// many there are besides.
    fn queues_text(&self, style: TextStyle) -> String {
        let has_cells = self.way.iter().any(|hop| hop.cell.is_some());
        let is_shown = |queue: &&Queue| !has_cells || queue.critical.is_some();
        let shown: Vec<Queue> = self.queues.iter().filter(is_shown).cloned().collect();
        let mut text = queues_table(&shown, self.trace).to_text(style);
        let rest = self.queues.len() - shown.len();
        if rest > 0 {
            text.push_str(&format!("and {rest} more, which other cells took (--format json)\n"));
        }
        if has_cells {
            let cells = cells_table(&self.way, self.trace).to_text(style);
            text.push_str(&format!("\nWhat the cells on that way waited for:\n\n{cells}"));
        }
        text
    }

    /// For people.
    #[must_use]
    pub fn to_text(&self, style: TextStyle) -> String {
        let row = self.row;
        let size = Unit::Bytes.format(row.size.get() as f64);
        let seconds = |seconds: f64| Unit::Seconds.format(seconds);
        let start = seconds(row.start.as_seconds());
        let mut text = format!(
            "Flow {}: {size} from {} to {}, from {start} on\n",
            row.flow.get(),
            row.src,
            row.dst
        );
        let Some(account) = &self.account else {
            let status = printable_line(&row.status);
            text.push_str(&format!(
                "It did not complete ({status}), so its time has no parts. What its data met:\n\n{}",
                queues_table(&self.queues, self.trace).to_text(style)
            ));
            return text;
        };
        let ratio =
            |value: Option<f64>| value.map_or(MISSING.into(), |value| Unit::Ratio.format(value));
        let (packets, again) = account.packets;
        text.push_str(&format!(
            "FCT {}, ideal {}, slowdown {}. Packets of data: {packets}, of which sent again: {again}; the \
             critical one is packet {}.\n\n{}\n{}",
            seconds(account.fct.as_seconds()),
            row.ideal.map_or(MISSING.into(), |ideal| seconds(ideal.as_seconds())),
            ratio(row.slowdown),
            account.critical,
            parts_table(account, self.trace).to_text(style),
            self.queues_text(style)
        ));
        text
    }

    /// For scripts.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let row = self.row;
        let account = self.account.as_ref();
        let mut why = json!({
            "flow_id": row.flow.get(),
            "src": row.src.get(),
            "dst": row.dst.get(),
            "size_bytes": row.size.get(),
            "status": row.status,
            "start_seconds": row.start.as_seconds(),
            "fct_seconds": account.map(|account| account.fct.as_seconds()),
            "fct_ps": account.map(|account| account.fct.as_ps()),
            "ideal_fct_seconds": row.ideal.map(kernel::Span::as_seconds),
            "slowdown": row.slowdown,
            "critical_packet": account.map(|account| account.critical),
            "data_packets": account.map(|account| account.packets.0),
            "retransmitted_packets": account.map(|account| account.packets.1),
            "parts": account.map(|account| {
                let mut table = parts_table(account, self.trace);
                // The sum is there already.
                table.rows.pop();
                table.to_json()
            }),
            "queues": queues_table(&self.queues, self.trace).to_json(),
        });
        if self.way.iter().any(|hop| hop.cell.is_some()) {
            why["cells"] = cells_table(&self.way, self.trace).to_json();
        }
        why
    }
}

/// Flows in the chart (our choice: bars that can still be told apart).
const CHARTED: usize = 30;

/// What a report says of flows that were recorded, in this order: a bar each, made of its parts, and a table.
#[must_use]
pub fn slow_flows(rows: &[FlowRow], trace: &Trace) -> Vec<Block> {
    let accounts = rows.iter().filter_map(|row| account_of(row, trace));
    let accounts: Vec<Account> = accounts.take(CHARTED).collect();
    let bars = |part: Part| {
        let heights = accounts.iter().map(|account| account.total(part).as_seconds());
        let points: Vec<_> = heights.enumerate().map(|(at, height)| (at as f64, height)).collect();
        let is_there = points.iter().any(|(_, height)| *height > 0.0);
        is_there.then(|| PlotSeries::new(capitalised(part.meaning()), SeriesStyle::Bars, points))
    };
    let names = accounts.iter().map(|account| format!("flow {}", account.flow.get()));
    let plot = Plot {
        title: "What the slowest flows' completion times are made of".into(),
        note: "The way of the packet that brought the last missing bytes; before it was sent, what the \
               source's line did."
            .into(),
        x: Axis::named("", names.collect()),
        y: Axis::linear("Completion time", Unit::Seconds),
        series: Part::ALL.into_iter().filter_map(bars).collect(),
    };
    let note =
        "The packets of these flows are in trace.parquet; `rackloom why` tells more of each.";
    let table = flows_table(rows, trace);
    let block = TableBlock { title: "Recorded flows".into(), note: note.into(), table };
    let plots = if accounts.is_empty() { Vec::new() } else { vec![Block::Plots(vec![plot])] };
    plots.into_iter().chain([Block::FoldedTable(block)]).collect()
}
