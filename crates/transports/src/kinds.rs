//! What endpoints say to each other besides data. Two transports on one host cannot take each other's
//! packets for their own: packets name the transport that they are of ([`packets::FlowKey::is_seconds`]).

use packets::Kind;

/// Acknowledges data.
pub const ACK: Kind = Kind::of_transport(0);
/// Says what is missing.
pub const NACK: Kind = Kind::of_transport(1);
/// Lets the sender send one more packet (NDP).
pub const PULL: Kind = Kind::of_transport(2);
/// Lets the sender send up to an offset (Homa).
pub const GRANT: Kind = Kind::of_transport(3);
/// Asks for a range again (Homa).
pub const RESEND: Kind = Kind::of_transport(4);
/// The sender lives but has others to serve first (Homa).
pub const BUSY: Kind = Kind::of_transport(5);
/// Congestion notification to the sender (DCQCN).
pub const CNP: Kind = Kind::of_transport(6);
/// Opens a connection (TCP).
pub const SYN: Kind = Kind::of_transport(7);
/// Accepts a connection (TCP).
pub const SYN_ACK: Kind = Kind::of_transport(8);
/// Bytes of a message that came in a segment of its connection ([`packets::Outbox::unpack`]); never on a wire.
pub const PIECE: Kind = Kind::of_transport(9);
