//! An output port: its line, and the packets that wait for it.

use kernel::{LinkClock, Span, Time};
use rack::topology::Vertex;

use super::arena::Fifo;
use crate::packet::PRIORITIES;

/// The queue of the link's own frames: before every priority, never paused.
pub(crate) const LINK_QUEUE: u8 = PRIORITIES;
/// Queues of a port.
const QUEUES: usize = PRIORITIES as usize + 1;

/// One queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) fifo: Fifo,
    /// Bytes that wait in it.
    pub(crate) bytes: u32,
}

/// The changing state of an output port.
#[derive(Clone, Debug)]
pub(crate) struct OutPort {
    pub(crate) clock: LinkClock,
    /// The line is busy until then.
    pub(crate) free_at: Time,
    /// Bytes that wait, all priorities together.
    pub(crate) bytes: u32,
    /// Packets that wait.
    pub(crate) packets: u32,
    /// Bit `q`: packets wait in queue `q`.
    pub(crate) filled: u16,
    /// Bit `q`: queue `q` may not send, at the wish of the other end.
    pub(crate) held: u16,
    /// Packets of the header queue sent in a row while data waited (trimming).
    pub(crate) headers_run: u16,
    /// How often the link has gone down.
    pub(crate) life: u32,
    /// How many faults keep the link down.
    pub(crate) faults: u8,
    /// Whether an event for the line's end is in the calendar.
    pub(crate) is_expected: bool,
    /// Queue of the last visit, for taking turns (deficit round robin).
    pub(crate) turn: u8,
    pub(crate) queues: [Queue; QUEUES],
}

impl OutPort {
    pub(crate) fn new(clock: LinkClock) -> Self {
        Self {
            clock,
            free_at: Time::ZERO,
            bytes: 0,
            packets: 0,
            filled: 0,
            held: 0,
            headers_run: 0,
            life: 0,
            faults: 0,
            is_expected: false,
            turn: 0,
            queues: [Queue { fifo: Fifo::EMPTY, bytes: 0 }; QUEUES],
        }
    }

    /// A packet that waits at the front of the first filled queue, as a rule the next to go;
    /// [`NONE`](super::NONE) if none waits.
    #[inline]
    pub(crate) fn front(&self) -> u32 {
        let queue = self.filled.trailing_zeros() as usize;
        self.queues.get(queue).map_or(super::NONE, |queue| queue.fifo.head())
    }

    /// Bit `q`: queue `q` has a packet that may be sent.
    #[inline]
    pub(crate) fn eligible(&self) -> u16 {
        if self.faults > 0 { 0 } else { self.filled & !self.held }
    }
}

/// What never changes about an output port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    /// The vertex that it belongs to.
    pub(crate) vertex: Vertex,
    /// The vertex at the other end.
    pub(crate) peer: Vertex,
    /// The port at the other end.
    pub(crate) reverse: u32,
    /// Propagation.
    pub(crate) propagation: Span,
    /// Propagation, and the latency of the switch at the other end.
    pub(crate) delay: Span,
    /// Propagation, and the latency of the host at the other end, for what it receives itself.
    pub(crate) last_delay: Span,
    /// Time of the bytes that the other end waits for before it sends a packet on; `None`: all.
    pub(crate) cut_through: Option<Span>,
    /// The host whose NIC it is; `None`: a switch's.
    pub(crate) nic: Option<u32>,
}
