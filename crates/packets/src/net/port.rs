//! An output port: its line, and the packets that wait for it.

use kernel::{Bytes, LinkClock, Span, Time};
use rack::topology::{Vertex, framed};

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

/// The changing state of an output port, with what of its wire every packet asks for: in the first
/// cache line all but the queues.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct OutPort {
    /// The line is busy until then.
    pub(crate) free_at: Time,
    /// The time of a byte on the line; zero where it is no whole number of picoseconds, or packets are in frames.
    pub(crate) byte_time: Span,
    /// As [`Wire::delay`] and [`Wire::last_delay`].
    pub(crate) delay: Span,
    pub(crate) last_delay: Span,
    /// As [`Wire::reverse`] and [`Wire::peer`].
    pub(crate) reverse: u32,
    pub(crate) peer: u32,
    /// Bytes that wait, all priorities together.
    pub(crate) bytes: u32,
    /// Packets that wait.
    pub(crate) packets: u32,
    /// Bit `q`: packets wait in queue `q`.
    pub(crate) filled: u16,
    /// Bit `q`: queue `q` may not send: the other end has paused it or has no room.
    pub(crate) held: u16,
    /// Packets of the header queue sent in a row while data waited (trimming).
    pub(crate) headers_run: u16,
    /// How many faults keep the link down.
    pub(crate) faults: u8,
    /// Whether an event for the line's end is in the calendar.
    pub(crate) is_expected: bool,
    /// How often the link has gone down.
    pub(crate) life: u32,
    /// Queue of the last visit, for taking turns (deficit round robin).
    pub(crate) turn: u8,
    /// Whether it is a host's NIC.
    pub(crate) is_nic: bool,
    /// Whether the other end may send a packet on before it is all there.
    pub(crate) cuts_through: bool,
    /// Whether the other end is in another part of the network.
    pub(crate) is_cut: bool,
    pub(crate) queues: [Queue; QUEUES],
    /// The most bytes that ever waited; not kept of a host's NIC.
    pub(crate) peak: u32,
}

const _: () = assert!(std::mem::offset_of!(OutPort, queues) == 64);

impl OutPort {
    pub(crate) fn new(clock: &LinkClock, wire: &Wire) -> Self {
        Self {
            free_at: Time::ZERO,
            byte_time: clock.byte_time().filter(|_| !wire.is_tunnel).unwrap_or(Span::ZERO),
            delay: wire.delay,
            last_delay: wire.last_delay,
            reverse: wire.reverse,
            peer: wire.peer.get(),
            bytes: 0,
            packets: 0,
            filled: 0,
            held: 0,
            headers_run: 0,
            faults: 0,
            is_expected: false,
            life: 0,
            turn: 0,
            is_nic: wire.nic.is_some(),
            cuts_through: wire.cut_through.is_some(),
            is_cut: false,
            queues: [Queue { fifo: Fifo::EMPTY, bytes: 0 }; QUEUES],
            peak: 0,
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
    /// Whether it is a tunnel between racks, in which packets are in Ethernet frames.
    pub(crate) is_tunnel: bool,
}

impl Wire {
    /// What a packet takes of the line.
    #[inline]
    pub(crate) fn on_line(&self, size: Bytes) -> Bytes {
        if self.is_tunnel { framed(size) } else { size }
    }
}
