//! Which turns a cell may take inside a pod, so that its TiNs cannot wait for each other in a circle.
//!
//! Models: Aquila §3.2 (M305, M306): rules similar to the parity-sign scheme of García et al. (ICPP 2013).
//! A hop from TiN i to TiN j of a pod is up or down, and odd or even by j - i. Some ordered pairs of these
//! four types are forbidden, and no virtual channel is spent. Which pairs the chip forbids is not published:
//! the table is data. The four tables here are the only ones that forbid as little as possible and leave
//! every pair of TiNs at least n/2 - 1 ways of two hops (n TiNs; see the tests, which search all tables).

use std::fmt;

use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The type of a hop inside a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum HopType {
    /// To a lower number, an odd distance away: odd-.
    OddDown = 0,
    /// To a higher number, an odd distance away: odd+.
    OddUp = 1,
    /// To a lower number, an even distance away: even-.
    EvenDown = 2,
    /// To a higher number, an even distance away: even+.
    EvenUp = 3,
}

impl HopType {
    /// All four, by number.
    pub const ALL: [Self; 4] = [Self::OddDown, Self::OddUp, Self::EvenDown, Self::EvenUp];

    /// The type of the hop between two places in a pod.
    #[must_use]
    pub const fn of(from: u16, to: u16) -> Self {
        match (from.abs_diff(to) % 2 == 1, to > from) {
            (true, false) => Self::OddDown,
            (true, true) => Self::OddUp,
            (false, false) => Self::EvenDown,
            (false, true) => Self::EvenUp,
        }
    }
}

impl fmt::Display for HopType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OddDown => "odd-",
            Self::OddUp => "odd+",
            Self::EvenDown => "even-",
            Self::EvenUp => "even+",
        })
    }
}

/// Which hop may follow which inside a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnTable {
    /// By type of the hop that arrives: a bit for each type that may follow.
    allowed: [u8; 4],
}

impl TurnTable {
    /// Odd-, then {odd+, even+}, then even- (our choice of default, U12).
    pub const P1: Self = Self::phases([0, 1, 2, 1]);
    /// Even-, then {odd+, even+}, then odd-.
    pub const P2: Self = Self::phases([2, 1, 0, 1]);
    /// Odd+, then {odd-, even-}, then even+.
    pub const P3: Self = Self::phases([1, 0, 1, 2]);
    /// Even+, then {odd-, even-}, then odd+.
    pub const P4: Self = Self::phases([1, 2, 1, 0]);

    /// Hops of one phase go in one direction, and phases never go back: so there is no circle.
    const fn phases(phases: [u8; 4]) -> Self {
        let mut allowed = [0; 4];
        let mut first = 0;
        while first < 4 {
            let mut next = 0;
            while next < 4 {
                if phases[next] >= phases[first] {
                    allowed[first] |= 1 << next;
                }
                next += 1;
            }
            first += 1;
        }
        Self { allowed }
    }

    /// The table of these 16 bits: bit 4 a + b says that type b may follow type a.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        let mut allowed = [0; 4];
        let mut first = 0;
        while first < 4 {
            allowed[first] = (bits >> (4 * first)) as u8 & 0xF;
            first += 1;
        }
        Self { allowed }
    }

    /// The 16 bits of [`TurnTable::from_bits`].
    #[must_use]
    pub const fn bits(&self) -> u16 {
        let [a, b, c, d] = self.allowed;
        a as u16 | (b as u16) << 4 | (c as u16) << 8 | (d as u16) << 12
    }

    /// Whether `next` may follow `first`.
    #[must_use]
    pub const fn allows(&self, first: HopType, next: HopType) -> bool {
        self.allowed[first as usize] >> next as u8 & 1 != 0
    }

    /// How many of the 16 pairs may follow each other.
    #[must_use]
    pub fn pairs(&self) -> u32 {
        self.allowed.iter().map(|row| row.count_ones()).sum()
    }

    /// Ways of two hops between two places of a pod of `tins` TiNs.
    #[must_use]
    pub fn detours(&self, tins: u16, from: u16, to: u16) -> u16 {
        let is_way = |by: &u16| {
            *by != from && *by != to && self.allows(HopType::of(from, *by), HopType::of(*by, to))
        };
        (0..tins).filter(is_way).count() as u16
    }

    /// Links of a pod that can wait for each other in a circle, each as its two ends, in order; `None`: no
    /// such circle exists in a pod of `tins` TiNs. Turns back to where a cell came from count, though no cell
    /// takes them (M725): then what holds in pods of 6 holds in larger ones.
    #[must_use]
    pub fn circle(&self, tins: u16) -> Option<Vec<(u16, u16)>> {
        let hops: Vec<(u16, u16)> = (0..tins)
            .flat_map(|a| (0..tins).filter(move |&b| b != a).map(move |b| (a, b)))
            .collect();
        let index = |(a, b): (u16, u16)| usize::from(a * (tins - 1) + b - u16::from(b > a));
        let next = |hop: usize| {
            let (a, b) = hops[hop];
            (0..tins)
                .filter(move |&c| c != b)
                .filter(move |&c| self.allows(HopType::of(a, b), HopType::of(b, c)))
                .map(move |c| index((b, c)))
        };
        let circle = circle(hops.len(), next)?;
        Some(circle.into_iter().map(|hop| hops[hop]).collect())
    }

    /// Refuses a table that lets TiNs of a pod of `tins` wait for each other in a circle.
    ///
    /// # Errors
    /// The circle, with a remedy.
    pub fn check(&self, tins: u16) -> Result<(), Problem> {
        let Some(circle) = self.circle(tins) else { return Ok(()) };
        let mut names: Vec<String> = Vec::new();
        for &(from, to) in &circle {
            names.push(format!("{from} -> {to} ({})", HopType::of(from, to)));
        }
        let message = format!(
            "lets cells of a pod of {tins} TiNs wait for each other in a circle of links: {}; forbid one of \
             these turns, or take \"p1\"",
            names.join(", ")
        );
        Err(Problem::new("", message))
    }
}

impl Default for TurnTable {
    fn default() -> Self {
        Self::P1
    }
}

/// A circle of a graph, as its nodes in order, found by a walk in depth; `None`: there is none.
pub(crate) fn circle<I: Iterator<Item = usize>>(
    nodes: usize,
    next: impl Fn(usize) -> I,
) -> Option<Vec<usize>> {
    /// Where the walk is with a node.
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; nodes];
    let mut path: Vec<(usize, I)> = Vec::new();
    for start in 0..nodes {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        path.push((start, next(start)));
        while let Some((node, onward)) = path.last_mut() {
            let node = *node;
            match onward.next() {
                Some(to) if marks[to] == Mark::Open => {
                    let from = path.iter().position(|&(node, _)| node == to);
                    let from = from.expect("an open node is on the path");
                    return Some(path[from..].iter().map(|&(node, _)| node).collect());
                }
                Some(to) if marks[to] == Mark::New => {
                    marks[to] = Mark::Open;
                    path.push((to, next(to)));
                }
                Some(_) => {}
                None => {
                    marks[node] = Mark::Done;
                    path.pop();
                }
            }
        }
    }
    None
}

/// The turn rule of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// Odd-, then {odd+, even+}, then even-.
    #[default]
    P1,
    /// Even-, then {odd+, even+}, then odd-.
    P2,
    /// Odd+, then {odd-, even-}, then even+.
    P3,
    /// Even+, then {odd-, even-}, then odd+.
    P4,
    /// A table: rows by the hop that arrives, columns by the one that follows, both in the order odd-, odd+,
    /// even-, even+; `true` where it may.
    Table([[bool; 4]; 4]),
}

impl Turns {
    /// The table.
    #[must_use]
    pub fn table(&self) -> TurnTable {
        match self {
            Self::P1 => TurnTable::P1,
            Self::P2 => TurnTable::P2,
            Self::P3 => TurnTable::P3,
            Self::P4 => TurnTable::P4,
            Self::Table(rows) => {
                let row = |row: &[bool; 4]| {
                    row.iter().enumerate().map(|(next, &may)| u8::from(may) << next).sum()
                };
                TurnTable { allowed: [row(&rows[0]), row(&rows[1]), row(&rows[2]), row(&rows[3])] }
            }
        }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
