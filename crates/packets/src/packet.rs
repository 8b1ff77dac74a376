//! What travels: one packet, its header fields as plain values, no payload.
//!
//! The fields are those that some transport or switch of this network reads; a transport that needs
//! a field in another sense says so in its own file. 56 bytes, so that a packet and the network's
//! own notes on it share one cache line.

use bitflags::bitflags;
use kernel::{Bytes, Time};
use rack::NodeId;

/// Bits of a hop in a packet that carries its route (R2C2 §4.2).
pub const ROUTE_HOP_BITS: u32 = 3;
/// Most hops of such a route: what 128 bits hold (R2C2 §4.2).
pub const ROUTE_HOPS_MAX: u32 = 128 / ROUTE_HOP_BITS;

/// An open flow's place in the arrays of the network and of the transport. Given out at the flow's
/// start, and again to another flow once this one is closed and none of its packets is left in the
/// network: so a key in a packet is never stale.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowKey(u32);

impl FlowKey {
    /// In place of a flow's key, in what transports of neighbours tell each other
    /// ([`crate::Outbox::tell`]), where they do. Never the key of a flow then.
    pub const NEIGHBOURS: Self = Self(0);

    /// The key of this place.
    #[must_use]
    pub const fn new(place: u32) -> Self {
        Self(place)
    }

    /// The place as a number of its own.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The place, for an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a packet is to the endpoints. Switches look only at [`Kind::Data`] (which may be trimmed)
/// and at the frames of the link itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Kind {
    /// Payload of a flow.
    #[default]
    Data,
    /// Acknowledges data.
    Ack,
    /// Asks for one packet again.
    Nack,
    /// Lets the sender send one more packet (NDP).
    Pull,
    /// Asks for a time to send, or for room (PL2).
    Request,
    /// Lets the sender send up to an offset (Homa), or at a time (PL2).
    Grant,
    /// Asks for a range again (Homa).
    Resend,
    /// The receiver is alive but has nothing to say (Homa).
    Busy,
    /// Congestion notification to the sender (DCQCN).
    Cnp,
    /// Permission to send, paced by the receiver.
    Credit,
    /// Opens a connection.
    Syn,
    /// Accepts a connection.
    SynAck,
    /// Closes a connection.
    Fin,
    /// Tells of flows (R2C2).
    Notice,
    /// Tells a neighbour that one lives (R2C2).
    Greeting,
    /// Tells which links of a host live (R2C2).
    LinkState,
    /// Link frame: stop or resume a priority (802.1Qbb). Never leaves its link.
    Pause,
    /// Link frame: buffer space given back. Never leaves its link.
    LinkCredit,
}

bitflags! {
    /// Bits of the header.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Marks: u8 {
        /// The endpoints understand marks: a switch may set [`Marks::CE`] instead of dropping.
        const ECT = 1;
        /// A switch saw congestion.
        const CE = 1 << 1;
        /// The receiver echoes a mark.
        const ECE = 1 << 2;
        /// The sender has answered an echo.
        const CWR = 1 << 3;
        /// A switch may cut the payload off when its queue is full.
        const MAY_TRIM = 1 << 4;
        /// A switch has cut the payload off.
        const TRIMMED = 1 << 5;
        /// A switch has sent it back to where it came from; source and destination are exchanged.
        const RETURNED = 1 << 6;
        /// The flow's last packet.
        const LAST = 1 << 7;
    }
}

/// The number of priorities; 0 is the most urgent (eight, as in 802.1Q).
pub const PRIORITIES: u8 = 8;

/// One packet.
///
/// ```
/// use packets::{FlowKey, Kind, Packet};
/// use rack::NodeId;
/// let data = Packet {
///     flow: FlowKey::new(3),
///     src: NodeId::new(0),
///     dst: NodeId::new(5),
///     seq: 14_600,
///     payload: 1_460,
///     wire: 1_500,
///     ..Packet::default()
/// };
/// assert_eq!(data.kind, Kind::Data);
/// assert!(size_of::<Packet>() <= 56);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// Sequence number, as its transport counts: bytes or packets.
    pub seq: u64,
    /// Cumulative acknowledgment, or the offset that a grant or resend speaks of.
    pub ack: u64,
    /// A word of the transport's own: selective acknowledgments as a bitmap, the end of a range.
    pub word: u64,
    /// Data: when the first bit left the source's NIC, stamped by the NIC. Else the transport's, as
    /// a rule the echo of the data's stamp.
    pub stamp: Time,
    /// The flow it belongs to.
    pub flow: FlowKey,
    /// Who sends it.
    pub src: NodeId,
    /// Who receives it; never `src`.
    pub dst: NodeId,
    /// What ECMP hashes besides source and destination: stands for the ports of the real header.
    pub entropy: u16,
    /// Path chosen by the sender, where switches follow it (`Routing::SourcePath`): any
    /// number; switches on the way take it modulo their choices, digit by digit.
    pub path: u16,
    /// Bytes on the wire, all headers included; at least 1.
    pub wire: u16,
    /// Application bytes in it. Trimming cuts it to 0; `wire` then is the header's size.
    pub payload: u16,
    /// What it is.
    pub kind: Kind,
    /// Queue to wait in, below [`PRIORITIES`]; 0 is the most urgent.
    pub priority: u8,
    /// Bits of the header.
    pub marks: Marks,
    /// Switches crossed so far; the network counts.
    pub hops: u8,
}

impl Packet {
    /// Size on the wire.
    #[inline]
    #[must_use]
    pub fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.wire))
    }

    /// Writes a route of at most [`ROUTE_HOPS_MAX`] hops into it, for [`crate::Routing::SourceRoute`]:
    /// three bits a hop, which choose the port to leave by among those of the vertex; the first hop,
    /// which is the source's own choice, lowest. It takes the place of `ack` and `word` (R2C2 §4.2: 128
    /// bits).
    #[must_use]
    pub fn with_route(self, route: u128) -> Self {
        Self { ack: route as u64, word: (route >> 64) as u64, ..self }
    }

    /// A hop of the route in it, counted from 0: the port to leave by, among those of the vertex.
    #[inline]
    #[must_use]
    pub fn hop_of_route(&self, hop: u32) -> u8 {
        let route = u128::from(self.word) << 64 | u128::from(self.ack);
        let mask = (1 << ROUTE_HOP_BITS) - 1;
        (route.checked_shr(ROUTE_HOP_BITS * hop).unwrap_or(0) & mask) as u8
    }

    /// Whether it carries, or carried before it was trimmed, application bytes.
    #[inline]
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.kind == Kind::Data
    }

    /// Whether it belongs to its link and goes no further.
    #[inline]
    #[must_use]
    pub(crate) fn is_link_frame(&self) -> bool {
        matches!(self.kind, Kind::Pause | Kind::LinkCredit)
    }
}

/// The packet that answers `packet`: from its destination to its source, same flow, same entropy,
/// same priority, with its stamp echoed.
#[must_use]
pub fn reply(packet: &Packet, kind: Kind, wire: u16) -> Packet {
    Packet {
        flow: packet.flow,
        src: packet.dst,
        dst: packet.src,
        entropy: packet.entropy,
        path: packet.path,
        priority: packet.priority,
        stamp: packet.stamp,
        kind,
        wire,
        ..Packet::default()
    }
}
