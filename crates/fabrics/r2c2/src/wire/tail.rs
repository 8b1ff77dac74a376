//! What comes behind a broadcast, a notice of one, or a packet to or from a controller, where the plain
//! bytes do not say enough.
//!
//! Models: R2C2 §3.2 (claims M13, M14), which has broadcasts go by trees, nodes that drop one tell its
//! source, and trees follow what fails, and leaves open how a packet says so. **Our choices**, each four
//! bytes, in this order:
//!
//! - The digest of the links that the source takes to be dead, where it takes any to be: by it another
//!   node knows whether it has the same trees. Half a byte, for which the way has room, would confuse one pair of states of a rack in sixteen.
//! - How often the source has begun anew, where it has, behind the news of a flow. Half a byte, for which
//!   the news has room, would wrap around within two milliseconds: sources begin anew at each change that
//!   they hear of, and one failure causes many.
//! - To whom the broadcast is retransmitted: the node that dropped it, which has no need of it itself, and
//!   the neighbour for which it was, as the notice ([`super::Notice`]) told. The copy goes by the
//!   broadcast's own tree to the one, and from there as the broadcast was to the other.
//!
//! The way tells of the first two, the length of the packet of the third. The checksum covers all.

use rack::NodeId;

use super::read::{Reader, node_bytes};
use super::{
    Announcement, Kind, Message, Report, SHORT_BYTES, WireError, batch, central, checksum,
};

/// Bytes of the digest of dead links.
pub const DIGEST_BYTES: usize = 4;
/// Bytes of a round.
pub const ROUND_BYTES: usize = 4;
/// Bytes by which a broadcast that is retransmitted is longer.
pub const AGAIN_BYTES: usize = 4;

/// To whom a broadcast is retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Again {
    /// The node that dropped it.
    pub dropper: NodeId,
    /// The neighbour that got no copy, nor did those behind it.
    pub child: NodeId,
}

/// What comes behind a broadcast or a notice; nothing as a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tail {
    /// The digest of the links that its source takes to be dead; zero if all live, or if it goes by no tree.
    pub dead: u32,
    /// How often the source of the flow has begun anew; zero behind anything but the news of a flow.
    pub round: u32,
    /// To whom it is retransmitted.
    pub again: Option<Again>,
}

impl Tail {
    /// The bytes of a message with this behind it.
    ///
    /// # Panics
    /// If the message's way does not say what is behind it ([`super::way`]), or a node's number is not
    /// below 65,536.
    #[must_use]
    pub fn encode(&self, message: &[u8]) -> Vec<u8> {
        let tells = super::way(0, self.dead, self.round);
        assert_eq!(message[1] & 0xF0, tells, "the way of a message tells what is behind it");
        let mut bytes = message.to_vec();
        for word in [self.dead, self.round].into_iter().filter(|&word| word != 0) {
            bytes.extend(word.to_be_bytes());
        }
        if let Some(Again { dropper, child }) = self.again {
            bytes.extend(node_bytes(dropper));
            bytes.extend(node_bytes(child));
        }
        checksum::seal(&mut bytes);
        bytes
    }
}

/// The broadcast, notice, or packet of a controller that these bytes are, in a rack of `nodes` nodes, and what is behind it.
///
/// # Errors
/// If they are not what [`Tail::encode`] writes.
pub fn decode(bytes: &[u8], nodes: u32) -> Result<(Message<'static>, Tail), WireError> {
    let read = Reader::open(bytes, nodes)?;
    let kind = read.kind();
    let short = match kind {
        Kind::Start | Kind::Finish | Kind::Demand | Kind::Route | Kind::Anew | Kind::Notice => {
            SHORT_BYTES
        }
        Kind::Assignments => batch::length(bytes)?,
        Kind::Report => SHORT_BYTES,
        Kind::Rates => central::length(bytes),
        _ => return Err(WireError::Kind(bytes[0])),
    };
    let found = bytes.len();
    let Some((message, mut rest)) = bytes.split_at_checked(short) else {
        return Err(WireError::Length { expected: short, found });
    };
    let tells = message[1] >> 4;
    let is_news = match kind {
        Kind::Start | Kind::Finish | Kind::Demand | Kind::Route => true,
        // Of a flow, not of a source that begins anew.
        Kind::Report => message[1] & 0x0F != Kind::Anew as u8,
        _ => false,
    };
    if tells > if is_news { 3 } else { 1 } {
        return Err(WireError::Field { field: "way", value: message[1].into() });
    }
    let mut tail = Tail::default();
    for (bit, field) in [(1, "digest"), (2, "round")] {
        if tells & bit == 0 {
            continue;
        }
        let expected = found - rest.len() + DIGEST_BYTES;
        let wrong = WireError::Length { expected, found };
        let (word, more) = rest.split_first_chunk::<DIGEST_BYTES>().ok_or(wrong)?;
        let word = u32::from_be_bytes(*word);
        if word == 0 {
            return Err(WireError::Field { field, value: 0 });
        }
        rest = more;
        if bit == 1 {
            tail.dead = word;
        } else {
            tail.round = word;
        }
    }
    if !rest.is_empty() {
        let expected = found - rest.len() + AGAIN_BYTES;
        let wrong = WireError::Length { expected, found };
        let rest = <[u8; AGAIN_BYTES]>::try_from(rest).map_err(|_| wrong)?;
        if matches!(kind, Kind::Notice | Kind::Report | Kind::Rates) {
            return Err(WireError::Length { expected: found - AGAIN_BYTES, found });
        }
        tail.again = Some(decode_again(rest, nodes)?);
    }
    let mut message = message.to_vec();
    checksum::seal(&mut message);
    let message = match super::decode(&message, nodes)? {
        Message::Announcement(said) => {
            Message::Announcement(Announcement { round: tail.round, ..said })
        }
        Message::Report(Report::Flow(said)) => {
            Message::Report(Report::Flow(Announcement { round: tail.round, ..said }))
        }
        other => other.owned(),
    };
    Ok((message, tail))
}

fn decode_again(bytes: [u8; AGAIN_BYTES], nodes: u32) -> Result<Again, WireError> {
    let node = |field, value: [u8; 2]| {
        let value = u32::from(u16::from_be_bytes(value));
        if value < nodes { Ok(NodeId::new(value)) } else { Err(WireError::Field { field, value }) }
    };
    let dropper = node("dropper", [bytes[0], bytes[1]])?;
    let child = node("child", [bytes[2], bytes[3]])?;
    if dropper == child {
        return Err(WireError::Field { field: "child", value: child.get() });
    }
    Ok(Again { dropper, child })
}
