//! Frames as bytes: what really passes from one node to another.
//!
//! The header is [`Layout`]'s. Who sends and who receives is not in it: the schedule says whose cell arrives
//! on which channel in which slot. The simulator's applications send no data; of their packets' own headers
//! the payload holds what receivers need: the handle of the message and whether the cell is its last, and
//! the cell's full sequence number, whose lower bits are in the header. The top bit of the header's sequence
//! number marks datagrams of the transport, whose payload has the number of the first cell that is missing and
//! a bit for each of those behind it.
//!
//! In cells without data the marks of packets are free, and tell how the pair stands (§3.5, our choice): start
//! and end both clear, it is in use; start, the sender has given the receiver up; both, it has and trusts it
//! again; end, the payload is a [`Notice`]. Of a pair that is not in use the payload says how often the sender
//! has come back.

use rack::{Class, NodeId, Problem};

use crate::cell::{Cell, Frame};
use crate::config::{Config, Plan};
use crate::transport::Ack;

use super::notice::{Notice, decode_notice, encode_notice, notice_words};
use super::{HEADER_BYTES, Header, Layout, WireError};

/// Bytes of a payload that stand for the header of a packet.
const PACKET_HEADER: usize = 8;

/// What a cell says that its frame has no room for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    /// A datagram: what has arrived.
    Ack(Ack),
    /// A cell without data: whom its sender does not reach.
    Notice(Notice),
}

/// Turns frames into cells of bytes and back.
#[derive(Clone, Debug)]
pub(crate) struct Codec {
    layout: Layout,
    /// Bytes of a cell.
    cell: usize,
    /// Kept for its memory.
    bytes: Vec<u8>,
}

/// Why bytes are not a frame; they are counted and dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Malformed {
    /// It has not the length of a cell.
    Length,
    /// The checksum is wrong: bits were flipped on the way (Appendix D).
    Damaged,
    /// A field names what the rack does not have, or a node would not send such a cell.
    Header,
    /// The payload does not belong to the header.
    Payload,
}

impl Codec {
    /// The codec of a rack.
    ///
    /// # Errors
    /// If a cell has no room for what receivers need of the header of a packet.
    pub(crate) fn new(config: &Config) -> Result<Self, Problem> {
        let layout = Layout::new(config.nodes, config.classes)?;
        let (cell, header) = (config.cell.get() as usize, config.header.get() as usize);
        if header < HEADER_BYTES || cell < HEADER_BYTES + PACKET_HEADER {
            let message = format!(
                "a cell of {} with a header of {}; as bytes a header takes 8 B and what receivers need of \
                 a packet's own header 8 B more: expected a header of 8 B and a cell of 16 B or more",
                config.cell, config.header
            );
            return Err(Problem::new("cell", message));
        }
        Ok(Self { layout, cell, bytes: Vec::new() })
    }

    /// The codec of a rack in which parts may fail.
    ///
    /// # Errors
    /// As [`Codec::new`], and if a cell has no room for what nodes tell each other of failures.
    pub(crate) fn of(plan: &Plan) -> Result<Self, Problem> {
        let config = &plan.config;
        if !plan.faults.is_empty() && !Self::has_room_for_notices(config) {
            let message = format!(
                "a cell of {}; as bytes what {} nodes tell each other of failures takes more room: expected                  a cell of 19 B or more, and of 27 B or more beyond 1,024 nodes",
                config.cell, config.nodes
            );
            return Err(Problem::new("cell", message));
        }
        Self::new(config)
    }

    /// Bytes that a cell has for the report of a datagram.
    pub(crate) fn report_bytes(config: &Config) -> usize {
        let room = config.cell.get() as usize;
        room.saturating_sub(HEADER_BYTES + PACKET_HEADER).min(Ack::REPORT)
    }

    fn datagram_bit(&self) -> u32 {
        self.layout.sequence().window()
    }

    /// Whether cells have room for what nodes of such a rack tell each other of failures.
    pub(crate) fn has_room_for_notices(config: &Config) -> bool {
        let payload = (config.cell.get() as usize).saturating_sub(HEADER_BYTES);
        // As many segments as nodes keep account of.
        notice_words(payload) * 16 * 64 >= config.nodes as usize
    }

    /// Writes a frame, and what else it says.
    pub(crate) fn encode(&self, frame: &Frame, said: Option<&Said>, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.resize(self.cell, 0);
        let cell = frame.cell;
        let mut header = Header {
            feedback: self.layout.limit_feedback(u32::from(frame.feedback)),
            last_cell_dropped: frame.flags & Frame::DROPPED != 0,
            ..Header::empty(NodeId::new(u32::from(frame.from)))
        };
        if !cell.is_empty() {
            let low = cell.sequence() & (self.datagram_bit() - 1);
            let kind = if cell.is_datagram() { self.datagram_bit() } else { 0 };
            (header.source, header.destination) =
                (NodeId::new(cell.source()), NodeId::new(cell.destination()));
            header.sequence = low | kind;
            (header.start_of_packet, header.end_of_packet) = cell.boundary();
            header.class = Class::new(cell.class() as u8);
            let payload = &mut bytes[HEADER_BYTES..];
            let life = |said: &Said| if let Said::Ack(ack) = said { ack.life } else { 0 };
            let handle = match cell.is_datagram() {
                true => said.map_or(0, life),
                false => frame.payload,
            };
            payload[..4].copy_from_slice(&handle.to_be_bytes());
            payload[4..8].copy_from_slice(&cell.sequence().to_be_bytes());
            if let Some(Said::Ack(ack)) = said {
                ack.write(&mut payload[PACKET_HEADER..]);
            }
        } else if let Some(Said::Notice(notice)) = said {
            header.end_of_packet = true;
            encode_notice(notice, &mut bytes[HEADER_BYTES..]);
        } else if frame.flags & Frame::PARTED != 0 {
            header.start_of_packet = true;
            header.end_of_packet = frame.flags & Frame::TRUSTS != 0;
            bytes[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&frame.payload.to_be_bytes());
        }
        let (head, payload) = bytes.split_at_mut(HEADER_BYTES);
        head.copy_from_slice(&self.layout.encode(&header, payload));
    }

    /// Reads what `to` hears in the slot in which `from` sends to it.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        (from, to): (u32, u32),
    ) -> Result<(Frame, Option<Box<Said>>), Malformed> {
        let Some((head, payload)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Malformed::Length);
        };
        if bytes.len() != self.cell {
            return Err(Malformed::Length);
        }
        let header = self.layout.decode(*head, payload).map_err(|problem| match problem {
            WireError::Corrupted => Malformed::Damaged,
            WireError::Range { .. } => Malformed::Header,
        })?;
        let mut frame = Frame::empty(from, to);
        frame.feedback = u16::try_from(header.feedback).map_err(|_| Malformed::Header)?;
        frame.flags = if header.last_cell_dropped { Frame::DROPPED } else { 0 };
        if header.is_empty() && header.source.get() != from {
            return Err(Malformed::Header);
        }
        if header.is_empty() {
            return Self::decode_empty(frame, &header, payload);
        }
        let (source, destination) = (header.source.get(), header.destination.get());
        // A relay sends to the destination alone, and takes cells from their sources alone (§3.3.1).
        if source != from && destination != to || destination == from {
            return Err(Malformed::Header);
        }
        let word = |at: usize| {
            let bytes: [u8; 4] = payload[at..at + 4].try_into().expect("four bytes");
            u32::from_be_bytes(bytes)
        };
        let (handle, sequence) = (word(0), word(4));
        let low = self.datagram_bit() - 1;
        if sequence & low != header.sequence & low {
            return Err(Malformed::Payload);
        }
        let cell = Cell::data(source, destination, u32::from(header.class.get()), sequence)
            .with_boundary(header.start_of_packet, header.end_of_packet);
        let is_datagram = header.sequence & self.datagram_bit() != 0;
        if is_datagram {
            frame.cell = cell.as_datagram();
            let ack = Ack { life: handle, ..Ack::read(sequence, &payload[PACKET_HEADER..]) };
            return Ok((frame, Some(Box::new(Said::Ack(ack)))));
        }
        (frame.cell, frame.payload) = (cell, handle);
        Ok((frame, None))
    }

    /// A cell without data: how the pair stands, or a notice.
    fn decode_empty(
        mut frame: Frame,
        header: &Header,
        payload: &[u8],
    ) -> Result<(Frame, Option<Box<Said>>), Malformed> {
        match (header.start_of_packet, header.end_of_packet) {
            (false, false) => {}
            (true, trusts) => {
                frame.flags |= Frame::PARTED | if trusts { Frame::TRUSTS } else { 0 };
                let life = payload.first_chunk().ok_or(Malformed::Length)?;
                frame.payload = u32::from_be_bytes(*life);
            }
            (false, true) => {
                frame.flags |= Frame::NOTICE;
                let notice = decode_notice(payload).map_err(|_| Malformed::Damaged)?;
                return Ok((frame, Some(Box::new(Said::Notice(notice)))));
            }
        }
        Ok((frame, None))
    }

    /// What `to` makes of a cell that was damaged on its way from `from`.
    pub(crate) fn damaged((from, to): (u32, u32)) -> Frame {
        Frame { flags: Frame::CORRUPT, ..Frame::empty(from, to) }
    }

    /// A frame after its way through bytes. What the fabric did to it is not in them.
    pub(crate) fn carry(
        &mut self,
        frame: &Frame,
        said: Option<&Said>,
    ) -> Result<(Frame, Option<Box<Said>>), Malformed> {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.encode(frame, said, &mut bytes);
        let there = self.decode(&bytes, (u32::from(frame.from), u32::from(frame.to)));
        self.bytes = bytes;
        there
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn codec(nodes: u32, classes: u32) -> Codec {
        Codec::new(&Config { nodes, classes, ..Config::default() }).unwrap()
    }

    proptest! {
        #[test]
        fn s20_every_frame_comes_back_from_its_bytes(
            (nodes, from, to, other) in (3_u32..=2048).prop_flat_map(|nodes| {
                (Just(nodes), 0..nodes, 1..nodes, 0..nodes)
            }),
            (sequence, payload, feedback) in (any::<u32>(), any::<u32>(), 0_u16..1024),
            (starts, ends, is_datagram, drops) in any::<(bool, bool, bool, bool)>(),
            kind in 0..5,
        ) {
            let codec = codec(nodes, 1);
            let to = (from + to) % nodes;
            let flags = if drops { Frame::DROPPED } else { 0 };
            let (source, destination) = match kind {
                // From its source, for its destination or a relay; or from a relay.
                0 => (from, if other == from { to } else { other }),
                1 => (if other == to { from } else { other }, to),
                _ => (from, to),
            };
            let mut frame = Frame { feedback, flags, ..Frame::empty(from, to) };
            let mut said = None;
            if kind == 3 {
                frame.flags |= Frame::PARTED | if ends { Frame::TRUSTS } else { 0 };
                frame.payload = payload;
            }
            if kind == 4 {
                frame.flags |= Frame::NOTICE;
                let unreached = vec![u64::from(payload); 6];
                said = Some(Box::new(Said::Notice(Notice { segment: 3, unreached })));
            }
            if kind < 2 {
                let cell = Cell::data(source, destination, 0, sequence).with_boundary(starts, ends);
                frame.cell = if is_datagram { cell.as_datagram() } else { cell };
                frame.payload = if is_datagram { 0 } else { payload };
                let arrived = [u64::from(payload); 6];
                let ack = Ack { next: sequence, arrived, life: payload };
                said = is_datagram.then(|| Box::new(Said::Ack(ack)));
            }
            let mut bytes = Vec::new();
            codec.encode(&frame, said.as_deref(), &mut bytes);
            prop_assert_eq!(bytes.len(), 64);
            prop_assert_eq!(codec.decode(&bytes, (from, to)), Ok((frame, said)));
        }

        #[test]
        fn s25_no_bytes_break_the_codec(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let codec = codec(24, 2);
            if let Ok((frame, _)) = codec.decode(&bytes, (3, 5)) {
                let cell = frame.cell;
                prop_assert!(cell.is_empty() || cell.source() < 24 && cell.destination() < 24);
            }
        }
    }

    #[test]
    fn cells_that_no_node_could_send_are_refused() {
        let codec = codec(16, 1);
        let mut bytes = Vec::new();
        for (source, destination, is_good) in
            [(3, 5, true), (3, 9, true), (9, 5, true), (9, 8, false), (5, 3, false)]
        {
            let cell = Cell::data(source, destination, 0, 7);
            codec.encode(&Frame { cell, ..Frame::empty(3, 5) }, None, &mut bytes);
            let frame = codec.decode(&bytes, (3, 5));
            assert_eq!(frame.is_ok(), is_good, "{source} to {destination}: {frame:?}");
        }
        assert_eq!(codec.decode(&bytes[..63], (3, 5)), Err(Malformed::Length));
        let frame = Frame { cell: Cell::data(3, 5, 0, 7), ..Frame::empty(3, 5) };
        codec.encode(&frame, None, &mut bytes);
        bytes[20] ^= 4;
        assert_eq!(codec.decode(&bytes, (3, 5)), Err(Malformed::Damaged));
    }

    #[test]
    fn cells_without_room_for_the_header_of_a_packet_have_no_bytes() {
        let config = Config { cell: kernel::Bytes::new(15), ..Config::default() };
        let problem = Codec::new(&config).unwrap_err();
        assert_eq!(problem.key, "cell");
        assert!(problem.message.contains("15 B"), "{}", problem.message);
    }
}
