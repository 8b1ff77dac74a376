//! What an acknowledgment says besides its number: selective blocks, and two small fields for
//! delay-based control, packed into the two words that a [`Packet`] without payload has free.
//!
//! Models: RFC 2018 §3 and §4, three blocks (as many as fit a TCP header beside timestamps), the
//! most recent first. Blocks are counted in segments from the cumulative acknowledgment, 16 bits an
//! edge; the real header's are 32-bit byte numbers. The fields for delay are Swift's (§3.3, §3.5): how
//! many switches the data crossed, and how long the receiver sat on the acknowledgment.

use kernel::Span;
use packets::{Marks, Packet};

/// Blocks in an acknowledgment (RFC 2018 §3: three where timestamps are in use).
pub(crate) const BLOCKS: usize = 3;

/// Bytes that `count` blocks take in the header: kind and length, padded, and two edges each (RFC
/// 2018 §3).
pub(crate) fn option_size(count: usize) -> u16 {
    if count == 0 { 0 } else { 4 + 8 * count as u16 }
}

/// Segments `from..to` have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Block {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Block {
    pub(crate) fn is_empty(&self) -> bool {
        self.from >= self.to
    }
}

/// All that an acknowledgment says besides its number. Empty blocks are last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Report {
    pub(crate) blocks: [Block; BLOCKS],
    /// Switches that the acknowledged data crossed.
    pub(crate) hops: u8,
    /// From the data's arrival to the acknowledgment; at most [`ENDPOINT_MAX`].
    pub(crate) endpoint: Span,
}

/// The largest delay that the 24-bit field of whole nanoseconds holds: 16.8 ms.
pub(crate) const ENDPOINT_MAX: Span = Span::from_ns((1 << 24) - 1);
const PS_PER_NS: u64 = 1_000;

fn edges(base: u64, block: Block) -> u64 {
    if block.is_empty() {
        return 0;
    }
    let edge = |segment: u64| u16::try_from(segment - base).expect("the window is below 2^16");
    u64::from(edge(block.from)) << 16 | u64::from(edge(block.to))
}

fn block(base: u64, edges: u64) -> Block {
    let [from, to] = [edges >> 16 & 0xffff, edges & 0xffff];
    if from >= to {
        Block::default()
    } else {
        Block { from: base.saturating_add(from), to: base.saturating_add(to) }
    }
}

/// Where the bytes stand by which a flow's last segment falls short of a full one: there is no block then.
const SHORT: u32 = 48;

/// Says in the acknowledgment of a whole flow that it is one, and by how many bytes its last segment falls short of
/// a full one. The sender knows that; the header's number, which is of bytes, is made of it.
pub(crate) fn say_all(packet: &mut Packet, short: u16) {
    packet.marks |= Marks::LAST;
    packet.word |= u64::from(short) << SHORT;
}

/// By how many bytes the flow's last segment falls short, as [`say_all`] said.
pub(crate) fn short_of(packet: &Packet) -> u16 {
    (packet.word >> SHORT) as u16
}

impl Report {
    /// How many blocks are not empty.
    pub(crate) fn count(&self) -> usize {
        self.blocks.iter().filter(|block| !block.is_empty()).count()
    }

    /// Writes itself into the packet, whose `ack` is set.
    pub(crate) fn encode(&self, packet: &mut Packet) {
        let [a, b, c] = self.blocks.map(|block| edges(packet.ack, block));
        packet.seq = a << 32 | b;
        let endpoint = self.endpoint.min(ENDPOINT_MAX).as_ps() / PS_PER_NS;
        packet.word = c << 32 | u64::from(self.hops) << 24 | endpoint;
    }

    /// Reads what [`Report::encode`] wrote.
    pub(crate) fn decode(packet: &Packet) -> Self {
        let words = [packet.seq >> 32, packet.seq & 0xffff_ffff, packet.word >> 32];
        Self {
            blocks: words.map(|edges| block(packet.ack, edges)),
            hops: (packet.word >> 24) as u8,
            endpoint: Span::from_ns(packet.word & 0xff_ffff),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_report_comes_out_as_it_went_in(
            ack in 0u64..1 << 40,
            edges in prop::array::uniform3((1u64..65_000, 1u64..500)),
            count in 0usize..4,
            hops: u8,
            endpoint in 0u64..1 << 24,
        ) {
            let mut blocks = [Block::default(); BLOCKS];
            for (block, (from, length)) in blocks.iter_mut().zip(edges).take(count) {
                *block = Block { from: ack + from, to: ack + from + length };
            }
            let report = Report { blocks, hops, endpoint: Span::from_ns(endpoint) };
            let mut packet = Packet { ack, ..Packet::default() };
            report.encode(&mut packet);
            prop_assert_eq!(Report::decode(&packet), report);
            prop_assert_eq!(report.count(), count);
        }
    }

    #[test]
    fn blocks_take_the_room_of_rfc_2018() {
        assert_eq!([0, 1, 2, 3].map(option_size), [0, 12, 20, 28]);
    }

    #[test]
    fn a_delay_too_long_for_its_field_says_so_at_its_limit() {
        let mut packet = Packet::default();
        Report { endpoint: Span::from_us(50_000), ..Report::default() }.encode(&mut packet);
        assert_eq!(Report::decode(&packet).endpoint, ENDPOINT_MAX);
    }
}
