//! What nodes say to each other besides data.

use packets::Kind;

use crate::wire;

/// To a sender: all has arrived.
pub(super) const ACK: Kind = Kind::of_transport(0);
/// Says what is missing: packets of a flow, or broadcasts that a neighbour sent.
pub(super) const NACK: Kind = Kind::of_transport(1);
/// Tells of flows and failures (R2C2 §3.2).
pub(super) const NOTICE: Kind = Kind::of_transport(2);
/// Tells a neighbour that one lives.
pub(super) const GREETING: Kind = Kind::of_transport(3);
/// Tells which links of a node live.
pub(super) const LINK_STATE: Kind = Kind::of_transport(4);

/// To a central controller, or from it (R2C2 §5.2).
pub(super) const CENTRAL: Kind = Kind::of_transport(5);

/// What these bytes are, of what neighbours tell each other ([`crate::wire`]).
pub(super) fn of_bytes(bytes: &[u8]) -> Option<Kind> {
    use wire::Kind;
    Some(match Kind::of(*bytes.first()?)? {
        Kind::Notice => NACK,
        Kind::Hello => GREETING,
        Kind::LinkState => LINK_STATE,
        Kind::Report | Kind::Rates => CENTRAL,
        Kind::Data => return None,
        _ => NOTICE,
    })
}
