//! Whose turn it is to search.
//!
//! Models: R2C2 §3.4 (claim M32): one fixed node, as in the prototype; any node after a random time;
//! or the nodes in turn. All that nodes exchange for it is the published result of a search, which
//! every node hears anyway; it ends a round.

use kernel::{Span, Stream, Time};
use rack::NodeId;

/// How nodes take turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rota {
    /// This node always.
    Fixed(NodeId),
    /// Each node draws when it will search; whoever comes first does, and the others draw again when
    /// they hear of it. The draws are uniform, and such that the first comes after a period on
    /// average.
    Random,
    /// The next node in order. One that does not search within `grace` of its turn is passed over,
    /// so that a dead node does not end it all.
    Token {
        /// How much later each further node takes the turn.
        grace: Span,
    },
}

/// One node's part in it.
#[derive(Clone, Debug)]
pub struct Duty {
    me: NodeId,
    nodes: u32,
    rota: Rota,
    period: Span,
    next: Time,
}

impl Duty {
    /// The part of node `me` of `nodes`, a search every `period` (§3.4: seconds or minutes), the
    /// first of them a period from now.
    #[must_use]
    pub fn new(
        rota: Rota,
        period: Span,
        (me, nodes): (NodeId, u32),
        now: Time,
        draw: &mut Stream,
    ) -> Self {
        let mut duty = Self { me, nodes, rota, period, next: Time::NEVER };
        // As if the node before the first had searched.
        duty.heard(NodeId::new(nodes - 1), now, draw);
        duty
    }

    /// When this node searches, unless it hears of another's search before.
    #[must_use]
    pub fn next(&self) -> Time {
        self.next
    }

    /// A search is over, of another node or its own: the next round begins.
    pub fn heard(&mut self, by: NodeId, now: Time, draw: &mut Stream) {
        self.next = match self.rota {
            Rota::Fixed(node) if node == self.me => now + self.period,
            Rota::Fixed(_) => Time::NEVER,
            Rota::Random => {
                // The least of n uniform draws below w is w / (n + 1) on average.
                let window = self.period * (u64::from(self.nodes) + 1);
                now + Span::from_ps(draw.below(window.as_ps()))
            }
            Rota::Token { grace } => {
                let behind = (self.me.get() + self.nodes - by.get() - 1) % self.nodes;
                now + self.period + grace * u64::from(behind)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Span = Span::from_us(1_000_000);
    const GRACE: Span = Span::from_us(10_000);

    /// Who searches when, in `rounds` rounds, if these nodes are dead.
    fn run(rota: Rota, nodes: u32, dead: &[u32], rounds: u32) -> Vec<(u32, Time)> {
        let mut draw = Stream::new(1, "test/duty", 0);
        let ids = (0..nodes).filter(|node| !dead.contains(node)).map(NodeId::new);
        let mut duties: Vec<Duty> =
            ids.map(|me| Duty::new(rota, PERIOD, (me, nodes), Time::ZERO, &mut draw)).collect();
        let mut searches = Vec::new();
        for _ in 0..rounds {
            let first = duties.iter().min_by_key(|duty| duty.next).expect("somebody lives");
            let (by, at) = (first.me, first.next);
            if at == Time::NEVER {
                break;
            }
            searches.push((by.get(), at));
            duties.iter_mut().for_each(|duty| duty.heard(by, at, &mut draw));
        }
        searches
    }

    #[test]
    fn m32_a_fixed_node_searches_every_period() {
        let expected: Vec<_> = (1..=5).map(|round| (3, Time::ZERO + PERIOD * round)).collect();
        assert_eq!(run(Rota::Fixed(NodeId::new(3)), 8, &[], 5), expected);
        assert_eq!(run(Rota::Fixed(NodeId::new(3)), 8, &[3], 5), []);
    }

    #[test]
    fn m32_a_token_goes_round_and_passes_over_the_dead() {
        let rota = Rota::Token { grace: GRACE };
        let nodes: Vec<u32> = run(rota, 4, &[], 9).into_iter().map(|(node, _)| node).collect();
        assert_eq!(nodes, [0, 1, 2, 3, 0, 1, 2, 3, 0]);
        let searches = run(rota, 4, &[1, 2], 5);
        let nodes: Vec<u32> = searches.iter().map(|&(node, _)| node).collect();
        assert_eq!(nodes, [0, 3, 0, 3, 0]);
        assert_eq!(searches[1].1 - searches[0].1, PERIOD + GRACE * 2);
        assert_eq!(searches[2].1 - searches[1].1, PERIOD);
    }

    #[test]
    fn m32_random_starts_are_a_period_apart_on_average_and_reach_everybody() {
        let (nodes, rounds) = (16, 20_000);
        let searches = run(Rota::Random, nodes, &[], rounds);
        let end = searches.last().expect("they search").1;
        let mean = (end - Time::ZERO).as_seconds() / f64::from(rounds) / PERIOD.as_seconds();
        // The least of n uniform draws has about the deviation of its mean; four standard errors.
        assert!((mean - 1.0).abs() < 4.0 / f64::from(rounds).sqrt(), "{mean}");
        let expected = f64::from(rounds / nodes);
        for node in 0..nodes {
            let count = searches.iter().filter(|&&(by, _)| by == node).count() as f64;
            assert!((count - expected).abs() < 4.0 * expected.sqrt(), "node {node}: {count}");
        }
    }
}
