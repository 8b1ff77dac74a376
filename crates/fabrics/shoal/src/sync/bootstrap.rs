//! The start of a rack.
//!
//! Models: Shoal §3.4 (claims S45, S46). The switches hold the circuits of slot 1. Over these the
//! end nodes run the time protocol; when all are as precise as wanted they send a bootstrap signal,
//! and data after it. A switch that sees the signal starts to step through its schedule.
//!
//! In slot 1 every node is connected to the next, so the circuits are one ring through the rack and
//! no two nodes reach each other both ways: **our choice** is that the protocol's messages travel
//! the ring, so that a node has its answer when its request has gone round the ring. The paper does not say.
//! Leaves out: the form of the signal (not given), and how a time protocol computes.

use kernel::{Span, Time};
use rack::NodeId;

/// How far the start has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The time protocol runs; the switches hold slot 1.
    Synchronising {
        /// Nodes that are not yet precise enough.
        missing: u32,
    },
    /// Every node is precise enough and has sent the signal.
    Signalling {
        /// Switches that have not yet seen it.
        missing: u32,
    },
    /// Every switch steps through its schedule.
    Running {
        /// When the last one saw the signal.
        since: Time,
    },
}

/// What happens to a rack that starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A node's time protocol now knows the time this well.
    Precision(NodeId, Span),
    /// A switch, counted through the rack, sees the signal.
    Signal(u32),
}

/// The start of one rack, as all its parts see it together.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    wanted: Span,
    precise: Vec<bool>,
    signalled: Vec<bool>,
    phase: Phase,
}

impl Bootstrap {
    /// A rack of this many nodes and switches that wants its clocks this close together.
    ///
    /// # Panics
    /// Without nodes or switches.
    #[must_use]
    pub fn new(nodes: u32, switches: u32, wanted: Span) -> Self {
        assert!(nodes > 0, "a rack without nodes starts nothing");
        assert!(switches > 0, "a rack without switches has no circuits");
        Self {
            wanted,
            precise: vec![false; nodes as usize],
            signalled: vec![false; switches as usize],
            phase: Phase::Synchronising { missing: nodes },
        }
    }

    /// How far it has come.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether a switch steps through its schedule; before that it holds slot 1.
    #[must_use]
    pub fn is_stepping(&self, switch: u32) -> bool {
        self.signalled[switch as usize]
    }

    /// Takes the next event. What comes late for its phase changes nothing: a node that reports
    /// worse precision after the signal is the business of [`super::clock`].
    ///
    /// # Panics
    /// If a switch sees a signal that nobody has sent.
    pub fn step(&mut self, now: Time, event: Event) -> Phase {
        self.phase = match (self.phase, event) {
            (Phase::Synchronising { .. }, Event::Precision(node, precision)) => {
                self.precise[node.index()] = precision <= self.wanted;
                match missing(&self.precise) {
                    0 => Phase::Signalling { missing: self.signalled.len() as u32 },
                    missing => Phase::Synchronising { missing },
                }
            }
            (Phase::Synchronising { missing }, Event::Signal(switch)) => {
                panic!("switch {switch} sees the signal while {missing} nodes synchronise");
            }
            (Phase::Signalling { .. }, Event::Signal(switch)) => {
                self.signalled[switch as usize] = true;
                match missing(&self.signalled) {
                    0 => Phase::Running { since: now },
                    missing => Phase::Signalling { missing },
                }
            }
            (later, _) => later,
        };
        self.phase
    }
}

/// How many are not done.
fn missing(done: &[bool]) -> u32 {
    done.iter().filter(|&&done| !done).count() as u32
}

/// How long a start takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BootstrapTiming {
    /// Nodes on the ring.
    pub nodes: u32,
    /// From one node to the next, through the fabric.
    pub hop: Span,
    /// From receiving a message of the time protocol to passing it on.
    pub relay: Span,
    /// Times that each node's question must go round until it is precise enough.
    pub rounds: u32,
    /// From a node to the farthest switch.
    pub to_last_switch: Span,
}

impl BootstrapTiming {
    /// Once round the ring.
    #[must_use]
    pub fn round(&self) -> Span {
        (self.hop + self.relay) * u64::from(self.nodes)
    }

    /// Until every node is precise enough. All questions travel at once, one behind the other.
    #[must_use]
    pub fn synchronised(&self) -> Span {
        self.round() * u64::from(self.rounds)
    }

    /// Until every node knows that every other is: the news goes round once more.
    #[must_use]
    pub fn agreed(&self) -> Span {
        self.synchronised() + self.round()
    }

    /// Until every switch steps through its schedule.
    #[must_use]
    pub fn running(&self) -> Span {
        self.agreed() + self.to_last_switch
    }
}
