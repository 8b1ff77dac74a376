//! The server: who has which address stands in the plan of the Clique.

use std::net::{IpAddr, Ipv4Addr};

use aquila::pipeline::Interface;
use aquila::pipeline::plan::{Plan, Version};
use ipnet::IpNet;

use super::{FOR_EVER, Kind, Message};

/// What has happened at a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Bytes that were no message of a client.
    pub malformed: u64,
    /// Messages of clients of which the plan knows nothing.
    pub unknown: u64,
    /// Messages for other servers.
    pub others: u64,
    /// Answers, by [`Kind`]: OFFER, ACK, NAK.
    pub answers: [u64; 3],
}

/// A server. It keeps nothing: each answer follows from the question and the plan (§4.4: the address is assigned by the
/// TiN's Ethernet address).
#[derive(Clone, Debug)]
pub struct Server {
    plan: Plan,
    address: Ipv4Addr,
    lease: u32,
    /// Whether it tells addresses of IPv6 as well.
    has_v6: bool,
    /// What has happened.
    pub counts: Counts,
}

impl Server {
    /// A server of a Clique's control processors. `lease`: for how long, in seconds; [`FOR_EVER`] is usual.
    #[must_use]
    pub fn new(plan: &Plan, address: Ipv4Addr, lease: u32) -> Self {
        Self { plan: *plan, address, lease, has_v6: false, counts: Counts::default() }
    }

    /// A server that gives addresses for ever.
    #[must_use]
    pub fn for_ever(plan: &Plan, address: Ipv4Addr) -> Self {
        Self::new(plan, address, FOR_EVER)
    }

    /// The same that tells addresses of IPv6 as well, or does not (M615).
    #[must_use]
    pub const fn telling_v6(mut self, has_v6: bool) -> Self {
        self.has_v6 = has_v6;
        self
    }

    /// The answer to a message, for the relay that is named in it.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let message = Message::decode(bytes).ok().filter(|message| message.kind.is_of_client());
        let Some(message) = message else {
            self.counts.malformed += 1;
            return None;
        };
        let known = self.plan.of_ethernet(message.client);
        let Some((tin, Interface::Control)) = known else {
            self.counts.unknown += 1;
            return None;
        };
        if message.server.is_some_and(|server| server != self.address) {
            self.counts.others += 1;
            return None;
        }
        let IpAddr::V4(right) = self.plan.ip(tin, Interface::Control, Version::V4) else {
            return None;
        };
        let IpNet::V4(subnet) = self.plan.subnet(Interface::Control, Version::V4) else {
            return None;
        };
        let has = Some(message.has).filter(|has| !has.is_unspecified());
        let kind = match message.kind {
            Kind::Discover => Kind::Offer,
            _ if message.requested.or(has) == Some(right) => Kind::Ack,
            _ => Kind::Nak,
        };
        let mut answer = Message {
            kind,
            server: Some(self.address),
            requested: None,
            given_v6: None,
            ..message
        };
        if kind != Kind::Nak {
            answer.given = right;
            (answer.lease, answer.mask) = (Some(self.lease), Some(subnet.netmask()));
            let v6 = self.plan.ip(tin, Interface::Control, Version::V6);
            answer.given_v6 = match v6 {
                IpAddr::V6(v6) if self.has_v6 => Some(v6),
                _ => None,
            };
        }
        let place = match kind {
            Kind::Offer => 0,
            Kind::Ack => 1,
            _ => 2,
        };
        self.counts.answers[place] += 1;
        Some(answer.encode())
    }
}
