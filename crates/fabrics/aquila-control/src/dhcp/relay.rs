//! Relays: the switches of the spine, and the controller for what comes inside its sessions.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use aquila::pipeline::plan::EthernetAddress;
use kernel::{Span, Time};

use super::{HOPS_AT, Kind, Message, MessageError};

/// Relays that a message may pass (RFC 1542 §4.1.1: at most 16).
const HOPS_MAX: u8 = 16;
/// How long the way of a message is remembered (our choice): longer than a client waits between two tries.
const KEPT: Span = Span::from_us(120_000_000);

/// A client's message as a relay sends it to the server: it writes itself into it.
///
/// # Errors
/// It is no message of a client, or has passed too many relays.
pub fn relay(by: Ipv4Addr, bytes: &[u8]) -> Result<Vec<u8>, MessageError> {
    let mut message = Message::decode(bytes)?;
    let hops = bytes[HOPS_AT];
    if !message.kind.is_of_client() || hops >= HOPS_MAX {
        return Err(MessageError::Kind);
    }
    if message.relay.is_unspecified() {
        message.relay = by;
    }
    let mut bytes = message.encode();
    bytes[HOPS_AT] = hops + 1;
    Ok(bytes)
}

/// What is remembered of a message.
#[derive(Clone, Copy, Debug)]
struct Known<W> {
    way: W,
    at: Time,
}

/// The controller as a relay (M810): a client asks on all its links, so the same message comes by several proxies. The
/// first one is relayed, and its way is that of the answer; those that come by other ways meanwhile are dropped.
#[derive(Clone, Debug)]
pub struct Merge<W> {
    known: BTreeMap<(EthernetAddress, u32, Kind), Known<W>>,
    /// Messages that came by another way, too.
    pub merged: u64,
}

impl<W> Default for Merge<W> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), merged: 0 }
    }
}

impl<W: Copy + PartialEq> Merge<W> {
    /// A client's message has come by a way: whether it is to be relayed. What comes by the same way again was sent again.
    pub fn admit(&mut self, now: Time, message: &Message, way: W) -> bool {
        self.known.retain(|_, known| now < known.at + KEPT);
        let key = (message.client, message.transaction, message.kind);
        let known = self.known.entry(key).or_insert(Known { way, at: now });
        if known.way != way {
            self.merged += 1;
            return false;
        }
        known.at = now;
        true
    }

    /// The way of an answer.
    #[must_use]
    pub fn way(&self, answer: &Message) -> Option<W> {
        let of = |kind| self.known.get(&(answer.client, answer.transaction, kind));
        let asked = match answer.kind {
            Kind::Offer => of(Kind::Discover),
            _ => of(Kind::Request),
        };
        asked.map(|known| known.way)
    }

    /// Ways of which this is true are gone: what comes by others is not taken for the same any more.
    pub fn forget(&mut self, is_gone: impl Fn(W) -> bool) {
        self.known.retain(|_, known| !is_gone(known.way));
    }
}
