//! What went by while a packet waited, by whose it was.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kernel::{Span, Time};

use super::BESIDE_MAX;

/// What went on a line while something of a flow waited for it. `N` is what whoever records calls a flow.
#[derive(Clone, Debug)]
pub struct Tally<N> {
    /// How long the line carried packets of its own flow.
    pub own: Span,
    /// The same of all else.
    pub others: Span,
    beside: BTreeMap<Option<N>, u64>,
}

impl<N> Default for Tally<N> {
    fn default() -> Self {
        Self { own: Span::ZERO, others: Span::ZERO, beside: BTreeMap::new() }
    }
}

impl<N: Copy + Ord> Tally<N> {
    /// For this long it waited for so many bytes of `whose` (`None`: no flow's); `flow` is its own.
    pub fn add(&mut self, flow: N, whose: Option<N>, span: Span, bytes: u64) {
        if whose == Some(flow) {
            self.own += span;
        } else {
            self.others += span;
            *self.beside.entry(whose).or_default() += bytes;
        }
    }

    /// So many bytes of `whose` were on the line from `start` to `end`, of which the part since `since` counts, if there
    /// is one.
    pub fn add_since(
        &mut self,
        since: Time,
        flow: N,
        whose: Option<N>,
        [start, end]: [Time; 2],
        bytes: u64,
    ) {
        let from = start.max(since);
        if end > from {
            self.add(flow, whose, end - from, bytes);
        }
    }

    /// The other flows with most bytes, at most [`BESIDE_MAX`], those with most first.
    #[must_use]
    pub fn most(self) -> Vec<(Option<N>, u64)> {
        let mut most: Vec<_> = self.beside.into_iter().collect();
        most.sort_by_key(|&(flow, bytes)| (Reverse(bytes), flow));
        most.truncate(BESIDE_MAX);
        most
    }
}
