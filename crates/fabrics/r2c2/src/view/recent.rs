//! What nodes have heard of late, where it may come by several ways.
//!
//! A broadcast that goes by all links reaches a node as often as that has links, and copies of it may wait
//! in queues and behind links that are dead for a moment. A node passes each on once. It recognises
//! bytes that it heard up to [`MEMORY`] ago, and none that it heard twice as long ago.
//!
//! Nodes whose memories are held together share what was heard, a bit for each node; what a node recognises
//! does not depend on who shares it.

use kernel::{Lookup, Span, Time};
use rack::NodeId;

/// How long a broadcast is remembered at least (**our choice**: far above any way through the rack and
/// the time in which a dead link is noticed).
pub const MEMORY: Span = Span::from_us(100_000);

/// What was heard in one period of time.
#[derive(Clone, Debug, Default)]
struct Period {
    rows: Lookup,
    /// By row: a bit for each node that has heard it.
    bits: Vec<u64>,
}

/// What each node has heard in the present period and the one before.
#[derive(Clone, Debug)]
pub struct Recent {
    words: usize,
    /// Counts periods from the start of the run.
    period: u64,
    now: Period,
    before: Period,
}

impl Recent {
    /// Nothing was heard by any of `nodes`.
    #[must_use]
    pub fn new(nodes: u32) -> Self {
        let words = nodes.div_ceil(64) as usize;
        Self { words, period: 0, now: Period::default(), before: Period::default() }
    }

    /// A node hears, or says, what has this name: whether that is the first time.
    pub fn is_first(&mut self, node: NodeId, name: [u32; 3], now: Time) -> bool {
        let period = now.as_ps() / MEMORY.as_ps();
        if period != self.period {
            let last = std::mem::take(&mut self.now);
            self.before = if period == self.period + 1 { last } else { Period::default() };
            self.period = period;
        }
        let (word, bit) = (node.index() / 64, 1 << (node.get() % 64));
        let was_before = self
            .before
            .rows
            .get(name)
            .is_some_and(|row| self.before.bits[row as usize * self.words + word] & bit != 0);
        if was_before {
            return false;
        }
        let Period { rows, bits } = &mut self.now;
        let row = rows.get(name).unwrap_or_else(|| {
            let row = (bits.len() / self.words) as u32;
            bits.resize(bits.len() + self.words, 0);
            rows.insert(name, row);
            row
        });
        let heard = &mut bits[row as usize * self.words + word];
        let is_first = *heard & bit == 0;
        *heard |= bit;
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each node for itself, for as long as is said and no longer than twice that.
    #[test]
    fn what_is_heard_twice_is_known_for_a_while() {
        let mut recent = Recent::new(100);
        let (a, b) = (NodeId::new(3), NodeId::new(70));
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let name = [1, 2, 3];
        assert!(recent.is_first(a, name, at(99_000)));
        assert!(!recent.is_first(a, name, at(99_000)));
        assert!(recent.is_first(b, name, at(150_000)));
        assert!(recent.is_first(a, [1, 2, 4], at(150_000)));
        // A period later, and two periods later.
        assert!(!recent.is_first(a, name, at(199_000)));
        assert!(!recent.is_first(b, name, at(250_000)));
        assert!(recent.is_first(a, name, at(250_000)));
        assert!(recent.is_first(b, name, at(1_000_000)));
    }

    /// What a node knows again does not depend on whose memory is held with its own.
    #[test]
    fn nodes_together_remember_as_nodes_apart() {
        let mut draw = kernel::Stream::new(1, "recent", 0);
        let mut together = Recent::new(4);
        let mut apart = vec![Recent::new(4); 4];
        let mut now = Time::ZERO;
        for _ in 0..10_000 {
            now += Span::from_us(draw.below(20_000));
            let node = NodeId::new(draw.below(4) as u32);
            let name = [draw.below(10) as u32, 0, 0];
            let expected = apart[node.index()].is_first(node, name, now);
            assert_eq!(together.is_first(node, name, now), expected);
        }
    }
}
