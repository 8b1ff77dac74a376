//! Any graph, from a list of its links: `a, b, rate, delay`.

use std::str::FromStr;

use kernel::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Builder, Link, Tier, Topology, Vertex};
use crate::Problem;

/// The columns of the list.
const COLUMNS: [&str; 4] = ["a", "b", "rate", "delay"];
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
}

impl Graph {
    /// The topology.
    ///
    /// # Errors
    /// Every line that cannot be read, with line and column; and as [`Builder::build`].
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        let edges = read(&self.edges)?;
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
}

struct Edge {
    a: u32,
    b: u32,
    link: Link,
}

/// Reads the list. Its fields are numbers and units, which are never quoted.
fn read(text: &str) -> Result<Vec<Edge>, Vec<Problem>> {
    let complain = |message: String| Problem::new("edges", message);
    let mut lines = text.lines().zip(1..).filter(|(line, _)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let (head, number) = lines.next().unwrap_or(("", 1));
    if !head.split(',').map(str::trim).eq(COLUMNS) {
        let expected = COLUMNS.join(",");
        return Err(vec![complain(format!("line {number} is {head:?}; expected {expected:?}"))]);
    }
    let mut problems = Vec::new();
    let mut edges = Vec::new();
    for (line, number) in lines {
        match edge(line, number) {
            Ok(edge) => edges.push(edge),
            Err(message) => problems.push(complain(message)),
        }
    }
    if problems.is_empty() { Ok(edges) } else { Err(problems) }
}

fn edge(line: &str, number: u32) -> Result<Edge, String> {
    let fields: Vec<_> = line.split(',').map(str::trim).collect();
    let Ok([a, b, rate, delay]) = <[&str; 4]>::try_from(fields.as_slice()) else {
        let (count, names) = (fields.len(), COLUMNS.join(", "));
        return Err(format!("line {number} has {count} fields; expected {names}"));
    };
    let at = |column: usize| format!("line {number}, column {}", COLUMNS[column]);
    Ok(Edge {
        a: vertex(a, &at(0))?,
        b: vertex(b, &at(1))?,
        link: Link {
            rate: field::<Rate>(rate, &at(2), "a rate such as \"100 Gbps\"")?,
            delay: field::<Span>(delay, &at(3), "a time such as \"20 ns\"")?,
        },
    })
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
