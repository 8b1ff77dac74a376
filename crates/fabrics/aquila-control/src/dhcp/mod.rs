//! DHCP: how a control processor learns its address.
//!
//! Models: Aquila §4.4 (M803, M810): firmware asks on its link to the datacenter's network, and on all GNet links by
//! PMOS; a switch of the spine, or the controller, relays to a server that gives addresses by Ethernet address. RFC 2131;
//! the bytes are `smoltcp`'s. **Our choice**: that the server tells a control processor its address of IPv6 beside (M615),
//! in an option that vendors may use as they like (RFC 2132 §8.4); how long is waited for an answer (1, 2, 4 … 64 s ±
//! 10 %), and that leases never end, as an address stands in the controller's records; the client keeps to leases that do.
//!
//! Leaves out: what else DHCP can tell (names, boot files), DECLINE, RELEASE and INFORM.

mod client;
mod frame;
mod relay;
mod server;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

use aquila::pipeline::plan::EthernetAddress;
use smoltcp::wire::{
    DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr, EthernetAddress as Hardware,
};
use thiserror::Error;

pub use client::{Client, Lease};
pub use frame::{from_frame, to_client, to_server};
pub use relay::{Merge, relay};
pub use server::{Counts, Server};

/// A lease that never ends (RFC 2131 §3.3). Unit: s.
pub const FOR_EVER: u32 = u32::MAX;
/// Most bytes of a message that we read: what fits a frame of PMOS.
pub const MESSAGE_BYTES_MAX: usize = crate::pmos::DATA_BYTES_MAX;
/// The address where a relay writes itself, in the message (RFC 2131 §2), and its count of relays.
const HOPS_AT: usize = 3;
/// The option of vendors, and what stands in ours before an address of IPv6: our first item, of 16 bytes.
const VENDOR_OPTION: u8 = 43;
const VENDOR_V6: [u8; 2] = [1, 16];

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A client asks who would give it an address.
    Discover,
    /// A server offers one.
    Offer,
    /// The client takes it, or wants to keep what it has.
    Request,
    /// The server gives it.
    Ack,
    /// The server does not.
    Nak,
}

impl Kind {
    /// Those that we know, with their numbers in `smoltcp`.
    const ALL: [(Self, DhcpMessageType); 5] = [
        (Self::Discover, DhcpMessageType::Discover),
        (Self::Offer, DhcpMessageType::Offer),
        (Self::Request, DhcpMessageType::Request),
        (Self::Ack, DhcpMessageType::Ack),
        (Self::Nak, DhcpMessageType::Nak),
    ];

    /// Whether a client says it.
    #[must_use]
    pub const fn is_of_client(self) -> bool {
        matches!(self, Self::Discover | Self::Request)
    }
}

/// A message, as far as we use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// What it says.
    pub kind: Kind,
    /// Drawn by the client, the same in all messages of an exchange.
    pub transaction: u32,
    /// The client.
    pub client: EthernetAddress,
    /// The address that the client has, or zero.
    pub has: Ipv4Addr,
    /// The address that it is to have, or zero.
    pub given: Ipv4Addr,
    /// The relay that sent it on, or zero.
    pub relay: Ipv4Addr,
    /// The address that the client asks for.
    pub requested: Option<Ipv4Addr>,
    /// The server.
    pub server: Option<Ipv4Addr>,
    /// For how long the address is given. Unit: s.
    pub lease: Option<u32>,
    /// Of the subnet.
    pub mask: Option<Ipv4Addr>,
    /// The address of IPv6 that the client is to have as well.
    pub given_v6: Option<Ipv6Addr>,
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum MessageError {
    /// They are not DHCP over Ethernet.
    #[error("{0} bytes that are no DHCP message; expected RFC 2131 over Ethernet")]
    Malformed(usize),
    /// It says what we have no use for.
    #[error("a DHCP message of another kind; expected DISCOVER, OFFER, REQUEST, ACK or NAK")]
    Kind,
}

impl Message {
    /// What a client says, without an address yet.
    #[must_use]
    pub const fn of_client(kind: Kind, transaction: u32, client: EthernetAddress) -> Self {
        let none = Ipv4Addr::UNSPECIFIED;
        Self {
            kind,
            transaction,
            client,
            has: none,
            given: none,
            relay: none,
            requested: None,
            server: None,
            lease: None,
            mask: None,
            given_v6: None,
        }
    }

    /// Its bytes: the payload of a datagram.
    ///
    /// # Panics
    /// Never: the length is that which `smoltcp` asks for.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (_, message_type) =
            *Kind::ALL.iter().find(|known| known.0 == self.kind).expect("all kinds are listed");
        let client = Hardware(self.client);
        let vendor = self.given_v6.map(|address| [&VENDOR_V6[..], &address.octets()].concat());
        let vendor = vendor.as_ref().map(|data| DhcpOption { kind: VENDOR_OPTION, data });
        let repr = DhcpRepr {
            message_type,
            transaction_id: self.transaction,
            secs: 0,
            client_hardware_address: client,
            client_ip: self.has,
            your_ip: self.given,
            server_ip: Ipv4Addr::UNSPECIFIED,
            router: None,
            subnet_mask: self.mask,
            relay_agent_ip: self.relay,
            broadcast: self.has.is_unspecified(),
            requested_ip: self.requested,
            client_identifier: self.kind.is_of_client().then_some(client),
            server_identifier: self.server,
            parameter_request_list: None,
            dns_servers: None,
            max_size: None,
            lease_duration: self.lease,
            renew_duration: None,
            rebind_duration: None,
            additional_options: vendor.as_slice(),
        };
        let mut bytes = vec![0; repr.buffer_len()];
        let mut packet = DhcpPacket::new_unchecked(&mut bytes[..]);
        repr.emit(&mut packet).expect("the buffer is as long as it asks for");
        bytes
    }

    /// The message of these bytes.
    ///
    /// # Errors
    /// It is none, or none that we use.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let malformed = MessageError::Malformed(bytes.len());
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(malformed);
        }
        let packet = DhcpPacket::new_checked(bytes).map_err(|_| malformed)?;
        let repr = DhcpRepr::parse(&packet).map_err(|_| malformed)?;
        let kind = Kind::ALL.iter().find(|known| known.1 == repr.message_type);
        let &(kind, _) = kind.ok_or(MessageError::Kind)?;
        let vendor = packet.options().find(|option| option.kind == VENDOR_OPTION);
        let v6 = vendor.and_then(|option| option.data.strip_prefix(&VENDOR_V6));
        let v6 = v6.and_then(|octets| <[u8; 16]>::try_from(octets).ok());
        Ok(Self {
            kind,
            transaction: repr.transaction_id,
            client: repr.client_hardware_address.0,
            has: repr.client_ip,
            given: repr.your_ip,
            relay: repr.relay_agent_ip,
            requested: repr.requested_ip,
            server: repr.server_identifier,
            lease: repr.lease_duration,
            mask: repr.subnet_mask,
            given_v6: v6.map(Ipv6Addr::from),
        })
    }
}
