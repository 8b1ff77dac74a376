//! Any graph, from a list of its links: `a, b, rate, delay`.

use std::str::FromStr;

use kernel::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Builder, Link, Tier, Topology, Vertex};
use crate::Problem;

/// The columns of the list.
const COLUMNS: [&str; 4] = ["a", "b", "rate", "delay"];
/// How many of them a list has at least.
const COLUMNS_LEAST: usize = 2;
/// Most vertices of a graph: far beyond any rack, far below what would exhaust memory (our choice).
const VERTICES_MAX: u32 = 1 << 20;

/// A graph given link by link.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Hosts: the vertices 0 up to this number. The others are switches. No default. At least 2.
    #[schemars(range(min = 2))]
    pub hosts: u32,
    /// The links as CSV with the head `a,b,rate,delay`: two vertices, counted from 0, rate and
    /// propagation with units, such as `0,8,100 Gbps,20 ns`. Empty lines and lines that start with #
    /// are left out. In a scenario one line alone is the path of a file that holds them. No default.
    pub edges: String,
    /// Rate of links that state none: whose place is empty, or not there as in a list with the head
    /// `a,b`. Unit: bit/s. Default: none; then each states its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation on links that state none, likewise. Unit: time. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

impl Graph {
    /// The topology.
    ///
    /// # Errors
    /// Every line that cannot be read, with line and column; and as [`Builder::build`].
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        let edges = self.read()?;
        if self.hosts > VERTICES_MAX {
            let message = format!("{} hosts; expected at most {VERTICES_MAX}", self.hosts);
            return Err(vec![Problem::new("hosts", message)]);
        }
        let last = edges.iter().map(|edge| edge.a.max(edge.b)).max().unwrap_or(0);
        let mut build = Builder::new(self.hosts);
        for _ in self.hosts..=last {
            build.switch(Tier::Other);
        }
        for edge in edges {
            build.link(Vertex::new(edge.a), Vertex::new(edge.b), edge.link);
        }
        let in_edges = |problem: Problem| problem.below("edges");
        build.build().map_err(|problems| problems.into_iter().map(in_edges).collect())
    }

    /// Reads the list. Its fields are numbers and units, which are never quoted.
    fn read(&self) -> Result<Vec<Edge>, Vec<Problem>> {
        let complain = |message: String| Problem::new("edges", message);
        let mut lines = self.edges.lines().zip(1..).filter(|(line, _)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let (head, number) = lines.next().unwrap_or(("", 1));
        let columns = head.split(',').count();
        let known = COLUMNS.get(..columns).unwrap_or_default();
        if columns < COLUMNS_LEAST || !head.split(',').map(str::trim).eq(known.iter().copied()) {
            let expected = COLUMNS.join(",");
            return Err(vec![complain(format!(
                "line {number} is {head:?}; expected {expected:?}"
            ))]);
        }
        let mut problems = Vec::new();
        let mut edges = Vec::new();
        for (line, number) in lines {
            match self.edge(line, number, columns) {
                Ok(edge) => edges.push(edge),
                Err(message) => problems.push(complain(message)),
            }
        }
        if problems.is_empty() { Ok(edges) } else { Err(problems) }
    }

    fn edge(&self, line: &str, number: u32, columns: usize) -> Result<Edge, String> {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        if fields.len() != columns {
            let (count, names) = (fields.len(), COLUMNS[..columns].join(", "));
            return Err(format!("line {number} has {count} fields; expected {names}"));
        }
        let at = |column: usize| format!("line {number}, column {}", COLUMNS[column]);
        let (a, b) = (vertex(fields[0], &at(0))?, vertex(fields[1], &at(1))?);
        let stated = |column: usize| fields.get(column).filter(|text| !text.is_empty());
        let missing = |column: usize| {
            let name = COLUMNS[column];
            format!(
                "line {number} has no {name}; write it there, or give {name} for all links without"
            )
        };
        let rate = match (stated(2), self.rate) {
            (Some(text), _) => field(text, &at(2), "a rate such as \"100 Gbps\"")?,
            (None, rate) => rate.ok_or_else(|| missing(2))?,
        };
        let delay = match (stated(3), self.delay) {
            (Some(text), _) => field(text, &at(3), "a time such as \"20 ns\"")?,
            (None, delay) => delay.ok_or_else(|| missing(3))?,
        };
        Ok(Edge { a, b, link: Link { rate, delay } })
    }
}

struct Edge {
    a: u32,
    b: u32,
    link: Link,
}

fn vertex(text: &str, place: &str) -> Result<u32, String> {
    let number: u32 = field(text, place, "the number of a vertex")?;
    if number >= VERTICES_MAX {
        return Err(format!("{place}: vertex {number}; expected less than {VERTICES_MAX}"));
    }
    Ok(number)
}

fn field<T: FromStr>(text: &str, place: &str, expected: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{place}: found {text:?}; expected {expected}"))
}
