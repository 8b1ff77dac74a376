//! Captures of packets, pcap and pcapng: each direction of each conversation is a flow.
//!
//! A flow is the packets of one protocol (TCP or UDP) from one address and port to another. Its size
//! is their payload, each byte of a TCP stream once however often it was sent; its length stands in
//! the headers, so packets may have been cut short. It starts with the SYN that opens a connection or
//! the first packet with payload, and ends with a FIN or RST, or when nothing comes for the time-out.

mod flows;
mod packets;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Read;
use std::net::IpAddr;

use kernel::{Span, Time};
use serde::Serialize;

use super::{At, Draft, Rows};
use flows::Conversations;

/// A flow of UDP, or of a connection whose end was not captured, is over when nothing has come for so
/// long, unless a scenario says otherwise: as NetFlow's inactive timer has it.
pub const TIMEOUT_DEFAULT: Span = Span::from_us(15_000_000);

/// How a capture is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capturing {
    /// The address of each node; what others send is left out. Empty: nodes are given to addresses in the order in
    /// which they appear.
    pub hosts: Vec<IpAddr>,
    /// A flow is over when nothing has come for so long.
    pub timeout: Span,
}

impl Default for Capturing {
    fn default() -> Self {
        Self { hosts: Vec::new(), timeout: TIMEOUT_DEFAULT }
    }
}

/// What of a capture has become flows, and what has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Captured {
    /// Packets in the file.
    pub packets: u64,
    /// Those of protocols that are not IP, such as ARP, or on links of an unknown type.
    pub not_ip: u64,
    /// Those of IP that are neither TCP nor UDP.
    pub not_tcp_udp: u64,
    /// Fragments of packets.
    pub fragments: u64,
    /// Those cut so short that their headers are not there, and those whose headers are wrong.
    pub short: u64,
    /// Those from or to addresses that are not listed.
    pub other_hosts: u64,
    /// Whether the file ends within a packet.
    pub cut_off: bool,
}

impl Captured {
    /// How many packets belong to no flow for what they are.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.not_ip + self.not_tcp_udp + self.fragments + self.short + self.other_hosts
    }
}

impl fmt::Display for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of {} packets {} belong to no flow", self.packets, self.left_out())?;
        let parts = [
            (self.not_ip, "not of IP"),
            (self.not_tcp_udp, "neither of TCP nor of UDP"),
            (self.fragments, "fragments"),
            (self.short, "with headers cut off or damaged"),
            (self.other_hosts, "of hosts that are not listed"),
        ];
        let told: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !told.is_empty() {
            write!(f, " ({})", told.join(", "))?;
        }
        if self.cut_off {
            f.write_str("; the file ends within a packet")?;
        }
        Ok(())
    }
}

/// Reads all flows into `rows`, problems included.
pub(super) fn read(file: impl Read + Send, rows: &mut Rows<'_>) {
    let capturing = rows.capturing().clone();
    let mut conversations = Conversations::new(&capturing);
    let mut room = 0u64;
    let read = packets::each(file, |packet| {
        conversations.take(packet);
        // Flows lie here until their order is known.
        let taken = conversations.memory();
        let more = taken.saturating_sub(room);
        room = room.max(taken);
        rows.have_room(conversations.count(), more)
    });
    match read {
        Ok(is_cut) => conversations.told.cut_off = is_cut,
        Err(message) => return rows.complain_whole(message),
    }
    if rows.is_enough() {
        return;
    }
    let nodes = u64::from(rows.nodes());
    let hosts = conversations.hosts();
    if hosts > nodes {
        let message = format!(
            "holds packets of {hosts} addresses, and the rack has {nodes} nodes; take a larger rack, or list \
             the addresses of its nodes as hosts"
        );
        return rows.complain_whole(message);
    }
    let told = conversations.told;
    let first = u64::from(rows.first_node());
    for (index, flow) in conversations.into_flows().into_iter().enumerate() {
        let draft = Draft {
            start: Time::from_ps(flow.start),
            src: first + u64::from(flow.src),
            dst: first + u64::from(flow.dst),
            bytes: flow.bytes,
            class: 0,
            after: Vec::new(),
        };
        rows.take(At::Row(index), rows.found(), draft);
        if rows.is_enough() {
            return;
        }
    }
    rows.captured = Some(told);
}
