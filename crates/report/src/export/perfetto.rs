//! The record as a trace for Perfetto (<https://ui.perfetto.dev>) and Chrome: JSON in the Trace Event Format.
//!
//! Three groups of tracks: **flows**, one each, with the way of its critical packet in it; **queues**, what packets
//! found waiting, as a counter, and how long each waited; **links**, what was on each line, packets and cells joined by
//! arrows from hop to hop. Viewers have nanoseconds, so times below one are rounded by them; the file has them whole.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use kernel::Time;
use rack::trace::{Account, Hop, Trace, critical_way};
use serde_json::{Value, json};

use crate::files::{AtomicFile, FileError};
use crate::parquet::FlowRow;
use crate::reports::account_of;

/// Events that a file holds at most (our choice: some 200 MB, which a browser still opens).
pub const EVENTS_MAX: usize = 1_000_000;

/// The groups of tracks.
const FLOWS: u32 = 1;
const QUEUES: u32 = 2;
const LINKS: u32 = 3;

/// Writes the recorded flows of `rows` to `path`, in their order, as long as there is room. How many of them were
/// written.
///
/// # Errors
/// When it cannot be written.
pub fn write_perfetto(path: &Path, rows: &[FlowRow], trace: &Trace) -> Result<usize, FileError> {
    let file = AtomicFile::create(path)?;
    let error = |source| FileError::new(path, source);
    let out = BufWriter::new(file.handle()?);
    let written = write(out, rows, trace, EVENTS_MAX).map_err(error)?;
    file.finish()?;
    Ok(written)
}

fn write(
    mut out: impl Write,
    rows: &[FlowRow],
    trace: &Trace,
    events_max: usize,
) -> io::Result<usize> {
    let mut events = Events { trace, list: tracks(trace) };
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let (mut count, mut written) = (0, 0);
    for row in rows {
        // At most five events a hop, and as many again for the critical packet's way.
        let hops = trace.of(row.flow);
        if count + 10 * hops.len() + 2 > events_max && written > 0 {
            break;
        }
        events.flow(row, account_of(row, trace).as_ref());
        for (at, hop) in hops.iter().enumerate() {
            let is_next = |other: &&Hop| unit(other) == unit(hop);
            let has = [at.checked_sub(1), Some(at + 1)]
                .map(|at| at.and_then(|at| hops.get(at)).filter(is_next).is_some());
            events.hop(hop, has);
        }
        written += 1;
        for event in events.list.drain(..) {
            out.write_all(if count == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut out, &event)?;
            count += 1;
        }
    }
    out.write_all(b"\n]}\n")?;
    out.flush()?;
    Ok(written)
}

/// What a hop is of: a packet, or a cell of it. Hops of one stand side by side.
fn unit(hop: &Hop) -> (u32, Option<u32>) {
    (hop.packet, hop.cell.as_ref().map(|cell| cell.number))
}

/// The same as a word.
fn id(hop: &Hop) -> String {
    let (flow, packet) = (hop.flow.get(), hop.packet);
    let cell = hop.cell.as_ref().map_or_else(String::new, |cell| format!(".cell {}", cell.number));
    format!("{flow}.{packet}{cell}")
}

/// What names the tracks.
fn tracks(trace: &Trace) -> Vec<Value> {
    let name = |what: &str, pid: u32, tid: u64, name: String| json!({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}});
    let order = |pid: u32| json!({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}});
    let groups = [(FLOWS, "Flows"), (QUEUES, "Queues"), (LINKS, "Links")];
    let mut list: Vec<_> = groups
        .iter()
        .flat_map(|&(pid, title)| [name("process_name", pid, 0, title.into()), order(pid)])
        .collect();
    for (place, at) in (0..).zip(&trace.places) {
        list.push(name("thread_name", LINKS, place, at.to_string()));
    }
    for flow in trace.flows() {
        list.push(name("thread_name", FLOWS, flow.get(), format!("flow {}", flow.get())));
    }
    list
}

/// An instant as the format has it: in microseconds.
fn us(time: Time) -> f64 {
    time.as_ps() as f64 / 1e6
}

/// How long from one to another.
fn length(from: Time, to: Time) -> f64 {
    to.as_ps().saturating_sub(from.as_ps()) as f64 / 1e6
}

struct Events<'a> {
    trace: &'a Trace,
    list: Vec<Value>,
}

impl Events<'_> {
    fn slice(&mut self, pid: u32, tid: u64, name: &str, [from, to]: [Time; 2], args: Value) {
        let event = json!({
            "ph": "X", "pid": pid, "tid": tid, "name": name, "ts": us(from), "dur": length(from, to), "args": args
        });
        self.list.push(event);
    }

    /// A flow, and in it the way of its critical packet.
    fn flow(&mut self, row: &FlowRow, account: Option<&Account>) {
        let hops = self.trace.of(row.flow);
        let last = hops.iter().map(|hop| hop.arrived).max().unwrap_or(row.start);
        let end = row.end.unwrap_or(last);
        let tid = row.flow.get();
        let name = format!("flow {tid}: {} to {}", row.src, row.dst);
        let args = json!({
            "size_bytes": row.size.get(), "status": row.status, "slowdown": row.slowdown,
        });
        self.slice(FLOWS, tid, &name, [row.start, end], args);
        let way = row.end.filter(|_| account.is_some()).and_then(|end| critical_way(end, hops));
        let way = way.unwrap_or_default();
        let Some(first) = way.first() else { return };
        self.slice(FLOWS, tid, "at source", [row.start, first.started], json!({}));
        let mut at = first.started;
        for (number, hop) in way.into_iter().enumerate() {
            let place = &self.trace.places[hop.place as usize];
            let kind = hop.cell.as_ref().map_or_else(String::new, |cell| format!("{} ", cell.kind));
            if number > 0 {
                self.slice(
                    FLOWS,
                    tid,
                    &format!("inside {}", place.from),
                    [at, hop.joined],
                    json!({}),
                );
                self.slice(
                    FLOWS,
                    tid,
                    &format!("{kind}queue {place}"),
                    [hop.joined, hop.started],
                    json!({}),
                );
            }
            let there = hop.started + hop.transmission();
            self.slice(FLOWS, tid, &format!("{kind}onto {place}"), [hop.started, there], json!({}));
            self.slice(
                FLOWS,
                tid,
                &format!("{kind}along {place}"),
                [there, hop.arrived],
                json!({}),
            );
            at = hop.arrived;
        }
        self.slice(FLOWS, tid, "at destination", [at, end], json!({}));
        // What takes no time would be a mark without a width.
        self.list.retain(|event| event["ph"] != "X" || event["dur"] != json!(0.0));
    }

    /// A packet, or a cell, at a port; whether it was at another before, and is at another next.
    fn hop(&mut self, hop: &Hop, [has_before, has_next]: [bool; 2]) {
        let place = self.trace.places[hop.place as usize].to_string();
        let (flow, packet) = (hop.flow.get(), hop.packet);
        let mut name = format!("flow {flow} packet {packet}");
        let mut args = json!({
            "flow": flow, "packet": packet, "offset_bytes": hop.offset, "payload_bytes": hop.payload,
            "wire_bytes": hop.bytes, "data": hop.is_data, "retransmission": hop.is_again,
            "marked": hop.is_marked, "trimmed": hop.is_trimmed, "outcome": hop.outcome.as_str(),
            "found_bytes": hop.found_bytes,
        });
        if let Some(cell) = &hop.cell {
            name = format!("{name} {} {}", cell.kind, cell.number);
            let waits = [
                ("wait_fifo_ps", cell.fifo),
                ("wait_room_ps", cell.room),
                ("wait_crossbar_ps", cell.crossbar),
                ("wait_line_ps", cell.line),
                ("wait_credit_ps", cell.credit),
            ];
            args["cell"] = cell.number.into();
            args["vc"] = cell.vc.into();
            waits.iter().for_each(|(key, span)| args[*key] = span.as_ps().into());
        }
        if hop.joined < hop.started && (hop.hop > 0 || hop.cell.is_some()) {
            let depth = json!({"ph": "C", "pid": QUEUES, "tid": 0, "name": place, "ts": us(hop.joined),
                "args": {"bytes found": hop.found_bytes}});
            let id = format!("{}.{}", id(hop), hop.hop);
            let wait = |ph: &str, at: Time| {
                json!({"ph": ph, "cat": "wait", "id": id, "pid": QUEUES, "tid": 0,
                "name": format!("waits for {place}"), "ts": us(at), "args": if ph == "b" { args.clone() } else { json!({}) }})
            };
            let both = [wait("b", hop.joined), wait("e", hop.started)];
            self.list.push(depth);
            self.list.extend(both);
        }
        let tid = u64::from(hop.place);
        if hop.started == hop.sent {
            // It never went on the line.
            let event = json!({"ph": "i", "s": "t", "pid": LINKS, "tid": tid,
                "name": format!("{name}: {}", hop.outcome.as_str()), "ts": us(hop.started), "args": args});
            self.list.push(event);
            return;
        }
        self.slice(LINKS, tid, &name, [hop.started, hop.sent], args);
        if !has_before && !has_next {
            return;
        }
        let is_end = hop.is_last || (hop.cell.is_some() && !has_next);
        let ph = match (hop.hop, is_end) {
            (0, _) => "s",
            (_, true) => "f",
            _ => "t",
        };
        let id = id(hop);
        let mut arrow = json!({"ph": ph, "cat": "packet", "id": id, "pid": LINKS, "tid": tid, "name": "packet", "ts": us(hop.started)});
        if ph == "f" {
            // It ends in the slice that it is in, not in the one after.
            arrow["bp"] = "e".into();
        }
        self.list.push(arrow);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kernel::{Bytes, Span};
    use rack::trace::{ETHERNET, Outcome, Place};
    use rack::{FlowId, NodeId};

    use super::*;

    /// A packet of 1,500 bytes over two lines; it waits 300 ns for the second.
    fn sample(flow: u64) -> (FlowRow, Vec<Hop>) {
        let time = |ns: u64| Time::from_ps(1_000 * ns + flow);
        let hop = |hop: u16, joined: u64, started: u64| Hop {
            flow: FlowId::new(flow),
            packet: 0,
            hop,
            cell: None,
            is_data: true,
            to_source: false,
            is_again: false,
            offset: 0,
            payload: 1_460,
            bytes: 1_500,
            place: hop.into(),
            is_last: hop == 1,
            is_marked: false,
            is_trimmed: false,
            outcome: Outcome::Arrived,
            joined: time(joined),
            started: time(started),
            sent: time(started + 120),
            arrived: time(started + 130),
            propagation: Span::from_ns(10),
            own: Span::ZERO,
            others: Span::from_ns(started - joined),
            found_bytes: 3_000,
            found_packets: 2,
            beside: Vec::new(),
            header: Vec::new(),
        };
        let row = FlowRow {
            flow: FlowId::new(flow),
            src: NodeId::new(0),
            dst: NodeId::new(1),
            size: Bytes::new(1_460),
            start: time(0),
            end: Some(time(560)),
            ideal: Some(Span::from_ns(260)),
            slowdown: Some(560.0 / 260.0),
            status: "completed".into(),
            is_measured: true,
            seed: 1,
        };
        (row, vec![hop(0, 0, 0), hop(1, 130, 430)])
    }

    fn written(count: u64, events_max: usize) -> (usize, Vec<Value>) {
        let (rows, hops): (Vec<_>, Vec<_>) = (0..count).map(sample).unzip();
        let place = |port: u32, from: &str, to: &str| Place {
            port,
            link_type: ETHERNET,
            from: from.into(),
            to: to.into(),
        };
        let trace = Trace {
            places: vec![place(0, "node 0", "leaf 0"), place(1, "leaf 0", "node 1")],
            hops: hops.concat(),
            ..Trace::default()
        };
        let mut bytes = Vec::new();
        let written = write(&mut bytes, &rows, &trace, events_max).unwrap();
        let file: Value = serde_json::from_slice(&bytes).unwrap();
        (written, file["traceEvents"].as_array().unwrap().clone())
    }

    #[test]
    fn a_packet_is_on_its_lines_in_its_queue_and_on_its_flow_s_track() {
        let (count, events) = written(1, EVENTS_MAX);
        assert_eq!(count, 1);
        let on = |pid: u32, ph: &str| -> Vec<(String, f64, f64)> {
            let of = events.iter().filter(|event| event["pid"] == pid && event["ph"] == ph);
            let row = |event: &Value| {
                let number = |key: &str| event[key].as_f64().unwrap_or(0.0);
                (event["name"].as_str().unwrap().to_string(), number("ts"), number("dur"))
            };
            of.map(row).collect()
        };
        let name = || "flow 0 packet 0".to_string();
        assert_eq!(on(LINKS, "X"), [(name(), 0.0, 0.12), (name(), 0.43, 0.12)]);
        let flow = [
            ("flow 0: node 0 to node 1", 0.0, 0.56),
            ("onto node 0 to leaf 0", 0.0, 0.12),
            ("along node 0 to leaf 0", 0.12, 0.01),
            ("queue leaf 0 to node 1", 0.13, 0.3),
            ("onto leaf 0 to node 1", 0.43, 0.12),
            ("along leaf 0 to node 1", 0.55, 0.01),
        ];
        assert_eq!(on(FLOWS, "X"), flow.map(|(name, ts, dur)| (name.to_string(), ts, dur)));
        assert_eq!([on(QUEUES, "b")[0].1, on(QUEUES, "e")[0].1], [0.13, 0.43]);
        assert_eq!(
            (on(QUEUES, "C")[0].1, on(LINKS, "s").len(), on(LINKS, "f").len()),
            (0.13, 1, 1)
        );
    }

    #[test]
    fn a_file_is_no_longer_than_it_may_be_and_says_how_many_flows_are_in_it() {
        let (all, events) = written(50, EVENTS_MAX);
        let (some, fewer) = written(50, events.len() / 2);
        assert_eq!(all, 50);
        assert!((1..50).contains(&some), "{some}");
        assert!(fewer.len() <= events.len() / 2);
        let mut open: BTreeMap<String, i64> = BTreeMap::new();
        for event in &fewer {
            let step = match event["ph"].as_str() {
                Some("b") => 1,
                Some("e") => -1,
                _ => continue,
            };
            *open.entry(event["id"].to_string()).or_default() += step;
        }
        assert!(open.len() == some && open.values().all(|&depth| depth == 0), "{open:?}");
    }
}
