//! Frames of the link itself: they carry no tag and go no further.
//!
//! Models: priority-based flow control (IEEE 802.1Qbb, 802.3 Annex 31D): MAC control frames with operation 0x0101,
//! a bit for each priority and its time in quanta. Credits are no part of Ethernet: what they give back is in a MAC
//! control frame of the kind that is left to organisations (802.3 Annex 31C), **our choice**: an identifier that is
//! locally administered, then operation 1, the priority, and how many bytes. Operation 2 tells of a frame that came
//! damaged or not at all: what it was, and its bytes.

use rack::NodeId;

use super::ether::Address;
use super::priority_of;
use crate::config::PAUSE_FRAME;
use crate::net::LOST_FRAME;
use crate::packet::{FlowKey, Kind, Packet};

/// The type of MAC control frames (802.3 Annex 31A), and two of their operations.
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
const PFC: [u8; 2] = [0x01, 0x01];
const EXTENSION: [u8; 2] = [0xFF, 0xFE];
/// The address of neighbours' MAC control (802.3 Annex 31B), which no bridge passes on.
const NEIGHBOUR: [u8; 6] = [0x01, 0x80, 0xC2, 0, 0, 0x01];
/// Who defines the extension, locally administered, and its operations.
const CREDIT: [u8; 4] = [0x02, b'R', b'L', 1];
const LOST: [u8; 4] = [0x02, b'R', b'L', 2];
/// Where operations begin, and what they say.
const OPERATION: usize = 14;
const SAYS: usize = 16;

/// Whether a frame is one of the link.
pub(super) fn is_link(frame: &[u8]) -> bool {
    frame.get(12..OPERATION) == Some(&MAC_CONTROL)
}

/// Appends a frame of the link.
pub(super) fn write(packet: &Packet, frame: &mut Vec<u8>) {
    frame.extend(NEIGHBOUR);
    frame.extend(Address::of(packet.src).0);
    frame.extend(MAC_CONTROL);
    let class = priority_of(packet.priority);
    if packet.kind == Kind::PAUSE {
        frame.extend(PFC);
        frame.extend([0, 1 << (class & 7)]);
        let quanta = (packet.ack as u16).to_be_bytes();
        (0..8).for_each(|other| frame.extend(if other == class { quanta } else { [0; 2] }));
    } else if packet.kind == Kind::LINK_LOST {
        frame.extend(EXTENSION);
        frame.extend(LOST);
        frame.push(packet.flow.place() as u8);
        frame.extend(packet.payload.to_be_bytes());
    } else {
        frame.extend(EXTENSION);
        frame.extend(CREDIT);
        frame.push(class);
        frame.extend((packet.ack as u32).to_be_bytes());
    }
}

/// What a frame of the link tells.
pub(super) fn read(frame: &[u8]) -> Option<Packet> {
    let source = frame.get(6..)?.first_chunk().copied().map(Address)?;
    let src: NodeId = source.node()?;
    let says = frame.get(SAYS..)?;
    let operation = frame.get(OPERATION..SAYS)?;
    let packet = Packet { src, ..Packet::default() };
    if operation == PFC {
        let (enabled, times) = says.split_first_chunk::<2>()?;
        let class = u16::from_be_bytes(*enabled).checked_ilog2().filter(|&class| class < 8)? as u8;
        let quanta = times.get(2 * usize::from(class)..)?.first_chunk()?;
        let (priority, ack) = (priority_of(class), u16::from_be_bytes(*quanta).into());
        let wire = PAUSE_FRAME.get() as u16;
        return Some(Packet { kind: Kind::PAUSE, priority, ack, wire, ..packet });
    }
    let (extension, says) = says.split_first_chunk::<4>()?;
    if operation == EXTENSION && *extension == LOST {
        let (&kind, bytes) = says.split_first()?;
        let payload = u16::from_be_bytes(*bytes.first_chunk()?);
        let flow = FlowKey::new(kind.into());
        return Some(Packet { kind: Kind::LINK_LOST, flow, payload, wire: LOST_FRAME, ..packet });
    }
    let (&class, bytes) = says.split_first()?;
    let ack = u32::from_be_bytes(*bytes.first_chunk()?).into();
    let is_credit = operation == EXTENSION && *extension == CREDIT;
    let priority = priority_of(class);
    is_credit.then_some(Packet { kind: Kind::LINK_CREDIT, priority, ack, ..packet })
}
