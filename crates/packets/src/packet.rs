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

/// Which flow, in one word, and on which side of it.
///
/// To a host it is a half of a flow: the sender's or the receiver's, by its place in the arrays of the
/// network and of the transport. A place is given out when the half opens, and again once it is closed.
///
/// In a packet on its way it is the flow's number, as its source counts its flows to its destination, and
/// whether the packet goes from the source or from the destination. The network puts one in place of the
/// other where a packet leaves and where it arrives: endpoints never see numbers, switches never see
/// places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowKey(u32);

impl FlowKey {
    /// In place of a flow's key, in what transports of neighbours tell each other
    /// ([`crate::Outbox::tell`]) and what switches say of themselves. Never the key of a flow.
    pub const NEIGHBOURS: Self = Self(Self::PLACES);

    /// Bit of receivers' halves, and of packets that they send.
    const RECEIVERS: u32 = 1 << 31;
    /// Bit of the second of two transports at a host.
    const SECOND: u32 = 1 << 30;
    /// Bit of a flow that is named by its number, at a host that has closed its half.
    const CLOSED: u32 = 1 << 29;
    /// Places and numbers are below it.
    const PLACES: u32 = Self::CLOSED - 1;

    /// The key of a packet on its way that is this word there; `None` if there is no such.
    #[must_use]
    pub(crate) const fn of_word(word: u32) -> Option<Self> {
        if word & Self::CLOSED == 0 { Some(Self(word)) } else { None }
    }

    /// The key of a packet on its way, whose flow has this number, from its destination or its source; `None` if
    /// there is no such.
    #[must_use]
    pub fn of_number(number: u32, is_receivers: bool) -> Option<Self> {
        let word = number | if is_receivers { Self::RECEIVERS } else { 0 };
        (number <= Self::PLACES).then_some(Self(word))
    }

    /// The sender's half at this place.
    #[must_use]
    pub const fn new(place: u32) -> Self {
        Self(place)
    }

    /// The receiver's half at this place.
    #[must_use]
    pub const fn receivers(place: u32) -> Self {
        Self(place | Self::RECEIVERS)
    }

    /// Whether it is the receiver's half, or that of a packet that the receiver sends.
    #[inline]
    #[must_use]
    pub const fn is_receivers(self) -> bool {
        self.0 & Self::RECEIVERS != 0
    }

    /// The same for the second of two transports at a host, by which packets for it can be told.
    #[must_use]
    pub const fn of_second(self) -> Self {
        Self(self.0 | Self::SECOND)
    }

    /// Whether it is marked as the second transport's.
    #[inline]
    #[must_use]
    pub const fn is_seconds(self) -> bool {
        self.0 & Self::SECOND != 0
    }

    /// A flow of this number, in what a host sends whose half of it may be closed: the receiver's half, or
    /// the sender's.
    #[must_use]
    pub const fn label(number: u32, is_receivers: bool) -> Self {
        Self(number | Self::CLOSED | if is_receivers { Self::RECEIVERS } else { 0 })
    }

    /// The same side of a flow of the same transport, by another place or number.
    #[inline]
    #[must_use]
    pub const fn at(self, place: u32) -> Self {
        Self(place | self.0 & (Self::RECEIVERS | Self::SECOND))
    }

    /// Whether it names a flow whose half here may be closed ([`answer`]).
    #[inline]
    #[must_use]
    pub const fn is_closed(self) -> bool {
        self.0 & Self::CLOSED != 0
    }

    /// The same, of the transport that `other` is of.
    #[inline]
    #[must_use]
    pub(crate) const fn like(self, other: Self) -> Self {
        Self(self.0 | other.0 & Self::SECOND)
    }

    /// The whole word.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The place, or the number, as a number of its own.
    #[inline]
    #[must_use]
    pub const fn place(self) -> u32 {
        self.0 & Self::PLACES
    }

    /// The place, for an array of senders or of receivers.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.place() as usize
    }
}

/// What a packet is to the endpoints. Switches look only at [`Kind::DATA`] (which may be trimmed) and at
/// the frames of the link itself; all other kinds are messages between the endpoints of one transport, or of
/// what lies below transports, which number them as they like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Kind(u8);

impl Kind {
    /// Payload of a flow.
    pub const DATA: Self = Self(0);
    /// Link frame: stop or resume a priority (802.1Qbb). Never leaves its link.
    pub(crate) const PAUSE: Self = Self(1);
    /// Link frame: buffer space given back. Never leaves its link.
    pub(crate) const LINK_CREDIT: Self = Self(2);
    /// Link frame: what was sent over it came damaged, or did not come. Never leaves its link.
    pub(crate) const LINK_LOST: Self = Self(3);

    /// Kinds of transports begin here, and those of what lies below them.
    const TRANSPORTS: u8 = 16;
    const BELOW: u8 = 128;

    /// A kind of a transport's own.
    ///
    /// # Panics
    /// From number 112 on; where the kind is a constant, when it is compiled.
    #[must_use]
    pub const fn of_transport(number: u8) -> Self {
        assert!(number < Self::BELOW - Self::TRANSPORTS, "a transport has 112 kinds");
        Self(Self::TRANSPORTS + number)
    }

    /// A kind of a protocol that carries transports, or of a program of switches; never one of theirs.
    ///
    /// # Panics
    /// From number 128 on; where the kind is a constant, when it is compiled.
    #[must_use]
    pub const fn below_transports(number: u8) -> Self {
        assert!(number < Self::BELOW, "there are 128 kinds below transports");
        Self(Self::BELOW + number)
    }

    /// Its number in a header.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The kind of this number in a header; `None` if there is no such kind.
    pub(crate) const fn of_number(number: u8) -> Option<Self> {
        let is_known = number <= Self::LINK_LOST.0 || number >= Self::TRANSPORTS;
        if is_known { Some(Self(number)) } else { None }
    }
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
/// assert_eq!(data.kind, Kind::DATA);
/// assert!(size_of::<Packet>() <= 56);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// Sequence number, as its transport counts: bytes or packets.
    pub seq: u64,
    /// Cumulative acknowledgment, or the offset that a grant or resend names.
    pub ack: u64,
    /// A word of the transport's own: selective acknowledgments as a bitmap, the end of a range.
    pub word: u64,
    /// Data: when the first bit left the source's NIC, stamped by the NIC. Else the transport's, as
    /// a rule the echo of the data's stamp.
    pub stamp: Time,
    /// The flow that it belongs to: at a host the half there.
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
        self.kind == Kind::DATA
    }

    /// Whether it goes to the source of its flow: as an answer, or sent back by a switch.
    #[inline]
    #[must_use]
    pub fn goes_to_source(&self) -> bool {
        self.flow.is_receivers() != self.marks.contains(Marks::RETURNED)
    }

    /// Whether it belongs to its link and goes no further.
    #[inline]
    #[must_use]
    pub(crate) fn is_link_frame(&self) -> bool {
        matches!(self.kind, Kind::PAUSE | Kind::LINK_CREDIT | Kind::LINK_LOST)
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

/// As [`reply`], from a host whose half of the flow is closed, to a packet that came to
/// [`crate::Transport::stray`].
#[must_use]
pub fn answer(packet: &Packet, kind: Kind, wire: u16) -> Packet {
    let flow = FlowKey::label(packet.flow.place(), !packet.flow.is_receivers());
    Packet { flow: flow.like(packet.flow), ..reply(packet, kind, wire) }
}
