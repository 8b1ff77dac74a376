//! The flows of a run as columns of numbers, which the page takes as they are.
//!
//! One answer: the length of a header, as 32 bits, the header in JSON, and each column's numbers, little-endian, at
//! an offset that the header states. A million flows are 49 MB, which a browser reads in a fraction of a second; the same
//! in JSON would be three times as long and would have to be parsed.

use std::path::Path;

use kernel::Span;
use report::{FileError, FlowRow, each_flow};
use serde_json::{Value, json};

/// Flows that are sent (our choice: some 100 MB in the browser). Of more, one in so many.
const FLOWS_MAX: u64 = 2_000_000;
/// Columns lie at multiples of this: those of 64-bit numbers have to.
const ALIGNMENT: usize = 8;

/// The columns of a table of flows.
#[derive(Default)]
struct Columns {
    flow: Vec<f64>,
    start: Vec<f64>,
    fct: Vec<f64>,
    ideal: Vec<f64>,
    slowdown: Vec<f64>,
    size: Vec<f64>,
    seed: Vec<f64>,
    src: Vec<u32>,
    dst: Vec<u32>,
    status: Vec<u8>,
    measured: Vec<u8>,
}

/// The columns of the table at `path`, in the order in which flows ended: all flows, or one in so many.
///
/// # Errors
/// When it cannot be read.
pub fn columns(path: &Path) -> Result<Vec<u8>, FileError> {
    columns_of_at_most(path, FLOWS_MAX)
}

fn columns_of_at_most(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let mut total = 0_u64;
    // What is kept is halved whenever there is too much of it: the number of flows shows at the end alone.
    let mut every = 1;
    let mut columns = Columns::default();
    each_flow(path, &|_| true, &mut |row| {
        if total.is_multiple_of(every) {
            if columns.flow.len() as u64 == most {
                columns.halve();
                every *= 2;
            }
            if total.is_multiple_of(every) {
                columns.push(&row);
            }
        }
        total += 1;
    })?;
    Ok(columns.encode(total, every))
}

/// Every second of them, from the first on.
fn halve<T: Copy>(values: &mut Vec<T>) {
    *values = values.iter().copied().step_by(2).collect();
}

impl Columns {
    fn push(&mut self, row: &FlowRow) {
        let seconds = |span: Option<Span>| span.map_or(f64::NAN, Span::as_seconds);
        let completed = row.end.filter(|_| row.status == "completed");
        self.flow.push(row.flow.get() as f64);
        self.start.push(row.start.as_seconds());
        self.fct.push(seconds(completed.map(|end| end - row.start)));
        self.ideal.push(seconds(row.ideal));
        self.slowdown.push(row.slowdown.unwrap_or(f64::NAN));
        self.size.push(row.size.get() as f64);
        self.seed.push(row.seed as f64);
        self.src.push(row.src.get());
        self.dst.push(row.dst.get());
        self.status.push(match row.status.as_str() {
            "completed" => 0,
            "failed" => 1,
            _ => 2,
        });
        self.measured.push(row.is_measured.into());
    }

    fn halve(&mut self) {
        for column in [
            &mut self.flow,
            &mut self.start,
            &mut self.fct,
            &mut self.ideal,
            &mut self.slowdown,
            &mut self.size,
            &mut self.seed,
        ] {
            halve(column);
        }
        halve(&mut self.src);
        halve(&mut self.dst);
        halve(&mut self.status);
        halve(&mut self.measured);
    }

    fn encode(&self, total: u64, every: u64) -> Vec<u8> {
        let mut body = Vec::new();
        let mut layout: Vec<Value> = Vec::new();
        let mut add = |name: &str, kind: &str, bytes: &mut dyn Iterator<Item = u8>| {
            body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
            layout.push(json!({ "name": name, "kind": kind, "offset": body.len() }));
            body.extend(bytes);
        };
        for (name, column) in [
            ("flow", &self.flow),
            ("start", &self.start),
            ("fct", &self.fct),
            ("ideal", &self.ideal),
            ("slowdown", &self.slowdown),
            ("size", &self.size),
            ("seed", &self.seed),
        ] {
            add(name, "f64", &mut column.iter().flat_map(|value| value.to_le_bytes()));
        }
        for (name, column) in [("src", &self.src), ("dst", &self.dst)] {
            add(name, "u32", &mut column.iter().flat_map(|value| value.to_le_bytes()));
        }
        for (name, column) in [("status", &self.status), ("measured", &self.measured)] {
            add(name, "u8", &mut column.iter().copied());
        }
        let rows = self.flow.len();
        let header = json!({ "rows": rows, "total": total, "every": every, "columns": layout });
        let mut header = header.to_string().into_bytes();
        // The columns begin at a multiple of the alignment, too.
        header.resize((header.len() + 4).next_multiple_of(ALIGNMENT) - 4, b' ');
        let length = u32::try_from(header.len()).expect("a header of some hundred bytes");
        [length.to_le_bytes().to_vec(), header, body].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{Bytes, Time};
    use rack::results::{FlowEnd, FlowRecord, FlowSink};
    use rack::{Class, Flow, FlowId, NodeId};
    use report::{FlowWriter, Provenance};

    /// A table of `count` flows: number i starts at i ns, takes 3 ns and would alone take 2.
    fn table(path: &Path, count: u64) {
        let origin = Provenance {
            version: "0.1.0".into(),
            scenario_hash: String::new(),
            seed: 7,
            scenario: String::new(),
        };
        let mut writer = FlowWriter::create(path, &[], &origin).unwrap();
        for number in 0..count {
            let start = Time::from_ps(number * 1000);
            let (src, dst) = (NodeId::new(1), NodeId::new(2));
            let (id, size) = (FlowId::new(number), Bytes::new(100 + number));
            let flow = Flow { id, src, dst, size, start, class: Class::default() };
            let end = FlowEnd::Completed {
                at: start + Span::from_ns(3),
                ideal: Span::from_ns(2),
                stages: &[],
            };
            writer.record(&FlowRecord { flow: &flow, end, measured: number % 2 == 0 }).unwrap();
        }
        writer.finish().unwrap();
    }

    /// The header, and the 64-bit numbers of a column, as the page reads them.
    fn decoded(bytes: &[u8], name: &str) -> (Value, Vec<f64>) {
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        let columns = header["columns"].as_array().unwrap();
        let column = columns.iter().find(|column| column["name"] == name).unwrap();
        let at = 4 + length + column["offset"].as_u64().unwrap() as usize;
        assert!(at.is_multiple_of(8));
        let rows = header["rows"].as_u64().unwrap() as usize;
        let parts = bytes[at..at + rows * 8].chunks_exact(8);
        let values = parts.map(|part| f64::from_le_bytes(part.try_into().unwrap())).collect();
        (header, values)
    }

    #[test]
    fn all_flows_come_if_they_fit() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("flows.parquet");
        table(&path, 10);
        let bytes = columns(&path).unwrap();
        let (header, slowdown) = decoded(&bytes, "slowdown");
        assert_eq!((header["total"].as_u64(), header["every"].as_u64()), (Some(10), Some(1)));
        assert_eq!(slowdown, [1.5; 10]);
        assert_eq!(decoded(&bytes, "size").1, (100..110).map(f64::from).collect::<Vec<_>>());
        assert_eq!(decoded(&bytes, "seed").1, [7.0; 10]);
    }

    #[test]
    fn of_too_many_flows_one_in_so_many_comes_and_the_header_says_so() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("flows.parquet");
        for (count, every) in [(8, 1), (9, 2), (16, 2), (17, 4), (100, 16)] {
            table(&path, count);
            let (header, flow) = decoded(&columns_of_at_most(&path, 8).unwrap(), "flow");
            assert_eq!((&header["total"], &header["every"]), (&json!(count), &json!(every)));
            let expected: Vec<_> = (0..count).step_by(every).map(|number| number as f64).collect();
            assert_eq!(flow, expected, "{count} flows");
        }
    }
}
