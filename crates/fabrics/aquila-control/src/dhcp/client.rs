//! The client, in the firmware.

use std::net::{Ipv4Addr, Ipv6Addr};

use aquila::pipeline::plan::EthernetAddress;
use kernel::{Span, Stream, Time};

use super::{FOR_EVER, Kind, Message};
use crate::session::Addresses;

/// First wait for an answer, and the longest (M803, our choice). Unit: s.
const WAIT_MIN: u64 = 1;
const WAIT_MAX: u64 = 64;
/// Requests of one offer before another is looked for (our choice).
const REQUESTS_MAX: u32 = 8;
/// Longer leases are asked for again as if they were of this length (our choice): 11 days. Unit: s.
const LEASE_MAX: u32 = 1_000_000;
/// Between requests to keep an address (RFC 2131 §4.4.5: a minute at least). Unit: s.
const RENEW_WAIT: u64 = 60;

const fn seconds(seconds: u64) -> Span {
    Span::from_us(1_000_000 * seconds)
}

/// Addresses that were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The addresses.
    pub own: Addresses,
    /// When it is to be asked for again; `None`: it is for ever.
    renew: Option<Time>,
    /// When it must not be used any more.
    end: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Asks who would give it an address.
    Looking,
    /// Takes what was offered.
    Taking { address: Ipv4Addr, server: Ipv4Addr },
    /// Has an address.
    Has(Lease),
}

/// A client: asks until it has an address, and keeps it.
///
/// The transaction's number is drawn once for an exchange and kept in what is sent again (RFC 2131 §4.1 allows
/// both), so that an answer to an earlier try counts, too: over a slow link none comes before the next try.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) ethernet: EthernetAddress,
    stream: Stream,
    pub(super) transaction: u32,
    state: State,
    /// How often the same has been asked.
    tries: u32,
    /// When it is asked again.
    next: Time,
}

impl Client {
    /// A client that asks at once. The stream is its own.
    #[must_use]
    pub fn new(now: Time, ethernet: EthernetAddress, mut stream: Stream) -> Self {
        let transaction = stream.below(1 << 32) as u32;
        Self { ethernet, stream, transaction, state: State::Looking, tries: 0, next: now }
    }

    /// A client that knows its address: its chip had it before the processor restarted (M609).
    #[must_use]
    pub fn knowing(now: Time, ethernet: EthernetAddress, stream: Stream, own: Addresses) -> Self {
        let mut client = Self::new(now, ethernet, stream);
        client.state = State::Has(Lease { own, renew: None, end: None });
        client
    }

    /// The addresses, while there are any.
    #[must_use]
    pub fn addresses(&self) -> Option<Addresses> {
        match self.state {
            State::Has(lease) => Some(lease.own),
            _ => None,
        }
    }

    /// When [`Client::on_time`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Has(Lease { renew, end, .. }) => renew.into_iter().chain(end).min(),
            _ => Some(self.next),
        }
    }

    /// Starts over, as when a link has come up that was down; an address that it has stays.
    pub fn hurry(&mut self, now: Time) {
        if self.addresses().is_none() {
            self.look(now);
        }
    }

    /// What is to be said now, to everyone.
    pub fn on_time(&mut self, now: Time) -> Option<Message> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        if let State::Has(lease) = &mut self.state {
            if lease.end.is_none_or(|end| now < end) {
                lease.renew = Some(now + seconds(RENEW_WAIT));
                let mut message = self.message(Kind::Request);
                message.has = self.addresses().expect("it has some").v4;
                return Some(message);
            }
            self.look(now);
        }
        if matches!(self.state, State::Taking { .. }) && self.tries == REQUESTS_MAX {
            self.look(now);
        }
        self.next = now + self.wait();
        self.tries += 1;
        Some(match self.state {
            State::Taking { address, server } => {
                let mut message = self.message(Kind::Request);
                (message.requested, message.server) = (Some(address), Some(server));
                message
            }
            _ => self.message(Kind::Discover),
        })
    }

    /// A message has come; whether it was for this client, and changed something.
    pub fn receive(&mut self, now: Time, message: &Message) -> bool {
        if (message.client, message.transaction) != (self.ethernet, self.transaction) {
            return false;
        }
        let given = message.given;
        let is_one = !given.is_unspecified() && !given.is_broadcast() && !given.is_multicast();
        match (self.state, message.kind) {
            (State::Looking, Kind::Offer) if is_one => {
                let Some(server) = message.server else { return false };
                self.state = State::Taking { address: given, server };
                (self.tries, self.next) = (0, now);
            }
            (State::Taking { .. } | State::Has(_), Kind::Ack) if is_one => {
                // Without a time it is an error of the server's; an hour, to ask again soon.
                let (renew, end) = match message.lease.unwrap_or(3_600) {
                    FOR_EVER => (None, None),
                    lease => {
                        let lease = u64::from(lease.clamp(2, LEASE_MAX));
                        (Some(now + seconds(lease / 2)), Some(now + seconds(lease)))
                    }
                };
                let v6 = message.given_v6.filter(is_unicast);
                self.state = State::Has(Lease { own: Addresses { v4: given, v6 }, renew, end });
            }
            (State::Taking { .. } | State::Has(_), Kind::Nak) => self.look(now),
            _ => return false,
        }
        true
    }

    fn look(&mut self, now: Time) {
        self.transaction = self.stream.below(1 << 32) as u32;
        (self.state, self.tries, self.next) = (State::Looking, 0, now);
    }

    fn message(&self, kind: Kind) -> Message {
        Message::of_client(kind, self.transaction, self.ethernet)
    }

    /// How long until the next try: doubled each time, and up to a tenth more or less, so that not all ask at once.
    fn wait(&mut self) -> Span {
        let wait = (WAIT_MIN << self.tries.min(6)).min(WAIT_MAX);
        let permille = 900 + self.stream.below(201);
        Span::from_us(wait * permille * 1_000)
    }
}

/// Whether an end can have it.
fn is_unicast(address: &Ipv6Addr) -> bool {
    !address.is_unspecified() && !address.is_multicast()
}
