//! Flows from a list: `start, src, dst, bytes`, and optionally `class` and `after`.
//!
//! A flow with `after` starts when all the rows that it names have ended, and not before `start`.
//! Rows may be in any order of `start`, but name only earlier rows, so no trace can lock itself up.
//! A flow's number is its row. Reading files is not done here.

use kernel::{Bytes, Span, Time};

use super::gate::{Gate, GateBuilder, Task};
use super::limits::{FLOW_MAX, START_MAX};
use crate::{Class, NodeId, Problem};

/// Problems listed at most: a file with the wrong column order has one in every row (our choice).
const PROBLEMS_LISTED: usize = 20;

/// One row of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceRow {
    /// Earliest start.
    pub start: Time,
    /// Who sends.
    pub src: u32,
    /// Who receives.
    pub dst: u32,
    /// How much.
    pub bytes: u64,
    /// Traffic class.
    pub class: u8,
    /// Rows, from 0, that must have ended.
    pub after: Vec<u64>,
}

impl TraceRow {
    /// What is wrong with this row, as (column, message).
    fn problems(&self, row: usize, nodes: u32) -> Vec<(&'static str, String)> {
        let mut found = vec![];
        for (column, node) in [("src", self.src), ("dst", self.dst)] {
            if node >= nodes {
                found.push((
                    column,
                    format!("node {node} does not exist: the rack has nodes 0 to {}", nodes - 1),
                ));
            }
        }
        if self.src == self.dst {
            found.push((
                "dst",
                format!("node {} sends to itself; remove the row or change one end", self.src),
            ));
        }
        if self.bytes == 0 {
            found.push(("bytes", "a flow carries at least 1 byte".into()));
        } else if Bytes::new(self.bytes) > FLOW_MAX {
            let message = format!("found {} bytes; a flow carries at most 1 TiB", self.bytes);
            found.push(("bytes", message));
        }
        if self.start > START_MAX {
            let message = format!("found {}; a run ends after 30 days at the latest", self.start);
            found.push(("start", message));
        }
        for &earlier in self.after.iter().filter(|&&earlier| earlier >= row as u64) {
            found.push(("after", format!("waits for row {earlier}, which is not an earlier row")));
        }
        found
    }
}

/// The workload of these rows in a rack of `nodes` nodes.
///
/// # Errors
/// What is wrong, row by row; the key is `rows[ROW].COLUMN`. At most twenty are listed, then how
/// many more there are.
pub fn from_rows(rows: &[TraceRow], nodes: u32) -> Result<Gate, Vec<Problem>> {
    let (mut problems, mut more) = (vec![], 0);
    for (at, row) in rows.iter().enumerate() {
        for (column, message) in row.problems(at, nodes) {
            if problems.len() < PROBLEMS_LISTED {
                problems.push(Problem::new(format!("rows[{at}].{column}"), message));
            } else {
                more += 1;
            }
        }
    }
    if rows.is_empty() {
        problems.push(Problem::new("rows", "the trace has no flows"));
    }
    if more > 0 {
        problems.push(Problem::new("rows", format!("and {more} more problems in other rows")));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let (mut list, mut steps) = (GateBuilder::new(), Vec::with_capacity(rows.len()));
    for row in rows {
        let after: Vec<_> = row.after.iter().map(|&earlier| steps[earlier as usize]).collect();
        let task = Task {
            src: NodeId::new(row.src),
            dst: NodeId::new(row.dst),
            size: Bytes::new(row.bytes),
            class: Class::new(row.class),
            not_before: row.start,
            delay: Span::ZERO,
        };
        steps.push(list.flow(task, &after));
    }
    Ok(list.build())
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::super::testing::play;
    use super::*;

    fn row(start: u64, src: u32, dst: u32, after: &[u64]) -> TraceRow {
        let (start, after) = (Time::from_ps(start), after.to_vec());
        TraceRow { start, src, dst, bytes: 100, class: 1, after }
    }

    #[test]
    fn rows_become_flows_with_the_number_of_the_row() {
        let rows = [row(50, 0, 1, &[]), row(10, 1, 2, &[]), row(0, 2, 0, &[0, 1])];
        let flows = play(3, from_rows(&rows, 3).unwrap(), Span::from_ps(40), 1);
        for (at, (row, carried)) in rows.iter().zip(&flows).enumerate() {
            let flow = carried.flow;
            assert_eq!(
                (flow.id.get(), flow.src.get(), flow.dst.get()),
                (at as u64, row.src, row.dst)
            );
            assert_eq!((flow.size.get(), flow.class.get()), (100, 1));
        }
        assert_eq!(flows[0].flow.start, Time::from_ps(50));
        assert_eq!(flows[2].flow.start, flows[0].end.max(flows[1].end));
    }

    #[test]
    fn every_problem_is_listed_with_its_row_and_column() {
        let rows = [
            row(0, 0, 1, &[]),
            row(0, 2, 2, &[]),
            row(0, 0, 9, &[2, 7, 0]),
            TraceRow { bytes: 0, start: Time::NEVER, ..row(0, 0, 1, &[]) },
            TraceRow { bytes: u64::MAX, start: START_MAX, ..row(0, 0, 1, &[]) },
            TraceRow { bytes: 1 << 40, ..row(0, 0, 1, &[]) },
        ];
        let found: Vec<_> =
            from_rows(&rows, 4).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "rows[1].dst: node 2 sends to itself; remove the row or change one end",
                "rows[2].dst: node 9 does not exist: the rack has nodes 0 to 3",
                "rows[2].after: waits for row 2, which is not an earlier row",
                "rows[2].after: waits for row 7, which is not an earlier row",
                "rows[3].bytes: a flow carries at least 1 byte",
                "rows[3].start: found 18446744.073709551615 s; a run ends after 30 days at the latest",
                "rows[4].bytes: found 18446744073709551615 bytes; a flow carries at most 1 TiB",
            ]
        );
    }

    #[test]
    fn a_thoroughly_wrong_trace_does_not_flood_the_terminal() {
        let problems = from_rows(&vec![row(0, 1, 1, &[]); 1_000], 4).unwrap_err();
        assert_eq!(problems.len(), 21);
        assert_eq!(problems[20].message, "and 980 more problems in other rows");
        assert_eq!(from_rows(&[], 4).unwrap_err()[0].message, "the trace has no flows");
    }

    #[test]
    fn without_dependencies_a_trace_is_open_loop() {
        assert!(!from_rows(&[row(0, 0, 1, &[])], 2).unwrap().is_reactive());
    }
}
