//! Plain UDP: the codec of a transport that has no header of its own.

use super::Codec;
use super::ip::{Ports, read_udp, write_udp};
use crate::packet::Packet;

/// UDP datagrams with nothing but payload in them: all else that a packet says rides in the trailer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagrams {
    /// Headers that the transport counts on the wire.
    pub header: u16,
}

impl Codec for Datagrams {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        write_udp(packet, Ports::of(packet), &vec![0; packet.payload.into()], frame);
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        let (packet, ports, body) = read_udp(frame)?;
        let payload = body.len() as u16;
        let wire = payload.saturating_add(self.header);
        Some(Packet { flow: ports.flow()?, payload, wire, ..packet })
    }
}
