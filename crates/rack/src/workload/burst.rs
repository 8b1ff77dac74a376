//! Many flows at one instant, once or at regular intervals: incast, outcast, all-to-all, shuffle,
//! and one flow from each node.
//!
//! An all-to-all is computed as it is taken (unless jitter makes its order random), so in a large
//! rack it costs no memory; other rounds are drawn when they begin and hold their pairs.

use kernel::{Bytes, Span, Stream, Time};

use super::Workload;
use super::patterns::{Map, Pairs};
use crate::{Class, Flow, FlowId, NodeId};

/// In which order an all-to-all lists its flows. They start at one instant; the order is that in
/// which a node's flows enter its queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Step s: node i to i + s, so that each step is a permutation.
    Ring,
    /// As the ring, but nodes and steps in a random order. Holds the two orders.
    Random {
        /// Node at each place of the ring.
        ring: Map,
        /// Steps (from 1) in order.
        steps: Map,
    },
    /// Every node to node 0, then every node to node 1, and so on.
    Ascending,
}

impl Order {
    /// A random order for `nodes` nodes.
    pub fn random(nodes: u32, stream: &mut Stream) -> Self {
        let (mut ring, mut steps): (Map, Map) = ((0..nodes).collect(), (1..nodes).collect());
        stream.shuffle(&mut ring);
        stream.shuffle(&mut steps);
        Self::Random { ring, steps }
    }

    /// The pair of flow `index` of an all-to-all among `nodes` nodes.
    #[must_use]
    pub fn pair(&self, nodes: u32, index: u64) -> (u32, u32) {
        let count = u64::from(nodes);
        let (row, place) = ((index / count) as u32, (index % count) as u32);
        match self {
            Self::Ring => (place, (place + row + 1) % nodes),
            Self::Random { ring, steps } => {
                let to = (place + steps[row as usize]) % nodes;
                (ring[place as usize], ring[to as usize])
            }
            Self::Ascending => {
                let dst = (index / (count - 1)) as u32;
                let src = (index % (count - 1)) as u32;
                (src + u32::from(src >= dst), dst)
            }
        }
    }
}

/// The pairs of one round.
#[derive(Clone, Debug)]
pub enum Round {
    /// Random distinct nodes, as many as `senders`, all to one receiver; drawn anew each round.
    Incast {
        /// How many send.
        senders: u32,
        /// Who receives; `None`: drawn each round.
        receiver: Option<NodeId>,
    },
    /// One sender to random distinct nodes, as many as `receivers`; drawn anew each round.
    Outcast {
        /// How many receive.
        receivers: u32,
        /// Who sends; `None`: drawn each round.
        sender: Option<NodeId>,
    },
    /// Every node to every other.
    AllToAll(Order),
    /// The first `mappers` nodes each to the last `reducers` nodes (the shuffle of MapReduce).
    /// Where the two overlap a node keeps its own part. Each mapper begins at another reducer.
    Shuffle {
        /// How many map.
        mappers: u32,
        /// How many reduce.
        reducers: u32,
    },
    /// One flow from each node that sends under a pattern.
    OneEach(Box<Pairs>),
    /// So many flows of a pattern, sources drawn too.
    Drawn {
        /// The pattern.
        pairs: Box<Pairs>,
        /// How many flows.
        flows: u64,
    },
}

/// When rounds happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounds {
    /// Start of the first.
    pub start: Time,
    /// From the start of one to the start of the next.
    pub period: Span,
    /// How many.
    pub count: u64,
    /// Each flow starts a random time below this after its round; zero: at once.
    pub jitter: Span,
}

/// Rounds of synchronised flows.
#[derive(Clone, Debug)]
pub struct Burst {
    nodes: u32,
    round: Round,
    rounds: Rounds,
    size: Bytes,
    class: Class,
    choices: Stream,
    jitters: Stream,
    /// The pairs of this round, for rounds that draw them.
    drawn: Vec<(u32, u32)>,
    /// With jitter: delay and index of each flow of this round, latest first.
    waiting: Vec<(Span, u64)>,
    /// Rounds that have begun.
    begun: u64,
    /// Flows of this round that were taken.
    taken: u64,
    /// Flows of this round.
    in_round: u64,
    offered: u64,
}

impl Burst {
    /// Rounds of flows of `size` bytes each.
    ///
    /// # Panics
    /// If the jitter is longer than the period of several rounds.
    #[must_use]
    pub fn new(nodes: u32, seed: u64, round: Round, rounds: Rounds, size: Bytes) -> Self {
        let Rounds { count, period, jitter, .. } = rounds;
        assert!(count <= 1 || jitter <= period, "a jitter of {jitter} over a period of {period}");
        Self {
            nodes,
            round,
            rounds,
            size,
            class: Class::default(),
            choices: Stream::new(seed, "workload/rounds", 0),
            jitters: Stream::new(seed, "workload/jitter", 0),
            drawn: vec![],
            waiting: vec![],
            begun: 0,
            taken: 0,
            in_round: 0,
            offered: 0,
        }
    }

    /// The same flows in this class.
    #[must_use]
    pub fn with_class(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// Flows a round.
    #[must_use]
    pub fn flows_a_round(&self) -> u64 {
        match &self.round {
            Round::Incast { senders: count, .. } | Round::Outcast { receivers: count, .. } => {
                u64::from(*count)
            }
            Round::AllToAll(_) => u64::from(self.nodes) * u64::from(self.nodes - 1),
            Round::Shuffle { mappers, reducers } => {
                let own = (mappers + reducers).saturating_sub(self.nodes);
                u64::from(*mappers) * u64::from(*reducers) - u64::from(own)
            }
            Round::OneEach(pairs) => pairs.count_each(),
            Round::Drawn { flows, .. } => *flows,
        }
    }

    /// Begins the next round, if this one is over and there is another.
    fn begin(&mut self) {
        while self.taken == self.in_round && self.begun < self.rounds.count {
            self.drawn = self.draw_pairs();
            self.in_round = match self.round {
                Round::AllToAll(_) => self.flows_a_round(),
                _ => self.drawn.len() as u64,
            };
            self.taken = 0;
            self.begun += 1;
            if self.rounds.jitter > Span::ZERO {
                let jitter = self.rounds.jitter.as_ps();
                let draw = |index| (Span::from_ps(self.jitters.below(jitter)), index);
                self.waiting = (0..self.in_round).map(draw).collect();
                self.waiting.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
    }

    fn draw_pairs(&mut self) -> Vec<(u32, u32)> {
        let numbers = |(src, dst): (NodeId, NodeId)| (src.get(), dst.get());
        match &mut self.round {
            Round::Incast { senders, receiver } => {
                let (one, many) = star(self.nodes, *receiver, *senders, &mut self.choices);
                many.into_iter().map(|src| (src, one)).collect()
            }
            Round::Outcast { receivers, sender } => {
                let (one, many) = star(self.nodes, *sender, *receivers, &mut self.choices);
                many.into_iter().map(|dst| (one, dst)).collect()
            }
            Round::AllToAll(_) => vec![],
            Round::Shuffle { mappers, reducers } => {
                let (mappers, reducers, first) = (*mappers, *reducers, self.nodes - *reducers);
                (0..reducers)
                    .flat_map(|step| {
                        (0..mappers).map(move |src| (src, first + (src + step) % reducers))
                    })
                    .filter(|(src, dst)| src != dst)
                    .collect()
            }
            Round::OneEach(pairs) => pairs.one_each().into_iter().map(numbers).collect(),
            Round::Drawn { pairs, flows } => (0..*flows).map(|_| numbers(pairs.draw())).collect(),
        }
    }

    /// Index in this round of the flow to take next, and how long after the round it starts.
    fn peek(&self) -> (Span, u64) {
        self.waiting.last().copied().unwrap_or((Span::ZERO, self.taken))
    }
}

/// One node, given or drawn, and `count` distinct others, drawn.
fn star(nodes: u32, one: Option<NodeId>, count: u32, stream: &mut Stream) -> (u32, Vec<u32>) {
    let one = one.map_or_else(|| stream.below(u64::from(nodes)) as u32, NodeId::get);
    let mut others: Vec<u32> = (0..nodes).filter(|&node| node != one).collect();
    stream.shuffle(&mut others);
    others.truncate(count as usize);
    (one, others)
}

impl Workload for Burst {
    fn next_start(&mut self) -> Option<Time> {
        self.begin();
        let (delay, _) = self.peek();
        let round = self.rounds.start + self.rounds.period * self.begun.checked_sub(1)?;
        (self.taken < self.in_round).then_some(round + delay)
    }

    fn next_flow(&mut self) -> Option<Flow> {
        let start = self.next_start()?;
        let (_, index) = self.peek();
        let (src, dst) = match &self.round {
            Round::AllToAll(order) => order.pair(self.nodes, index),
            _ => self.drawn[index as usize],
        };
        self.waiting.pop();
        self.taken += 1;
        let id = FlowId::new(self.offered);
        self.offered += 1;
        let (src, dst) = (NodeId::new(src), NodeId::new(dst));
        Some(Flow { id, src, dst, size: self.size, start, class: self.class })
    }

    fn total(&self) -> Option<u64> {
        self.flows_a_round().checked_mul(self.rounds.count)
    }
}

#[cfg(test)]
#[path = "burst_tests.rs"]
mod tests;
