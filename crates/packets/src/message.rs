//! What parts of a network send each other, and its bytes.
//!
//! Parts exchange what passes over the links between them: packets, and frames of the link. Besides, the other
//! end of a link is told two things that no frame carries: per-flow backpressure, which belongs to an ideal
//! network, a baseline and no design (R2C2 §2.2.2); and which messages of neighbours were lost on a link that
//! died, which the end that sent them knows, for it sees the link die. Both take as long as a bit takes on the
//! link, and so does what switches' programs tell each other.

use kernel::Time;
use rack::NodeId;

use crate::net::Name;
use crate::packet::Packet;
use crate::program::{NOTE_WORDS, Post};
use crate::wire::{self, Codec, WireError};

/// Something on its way to another part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// When it is there.
    pub(crate) at: Time,
    /// The port at which it comes in.
    pub(crate) port: u32,
    pub(crate) body: Body,
}

/// What it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// A packet, sent in this life of its link; and the host to which it goes first, if it does.
    Packet { packet: Packet, life: u32, first: u32, manner: Manner },
    /// Room for one more packet of a flow, on its first leg or its last.
    Room { name: Name, is_first: bool },
    /// A packet that was sent by this port got lost, for the link has died.
    Unheard { packet: Packet },
    /// A word of a switch's program.
    Word { word: u32 },
    /// Over a link of a switch's program.
    Posted(Post),
}

/// As what a packet comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// It is to go on.
    Through,
    /// It is for the host there.
    There,
    /// It is a frame of the link.
    Frame,
}

/// Bytes before the body: what it is, when and where.
const HEAD: usize = 1 + 8 + 4;

impl Message {
    /// Its bytes; packets look as `codec` says.
    #[must_use]
    pub fn encode(&self, codec: &dyn Codec) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + 12);
        let kind = match self.body {
            Body::Packet { manner: Manner::Through, .. } => 0,
            Body::Packet { manner: Manner::There, .. } => 1,
            Body::Packet { manner: Manner::Frame, .. } => 2,
            Body::Room { is_first: false, .. } => 3,
            Body::Room { is_first: true, .. } => 4,
            Body::Unheard { .. } => 5,
            Body::Word { .. } => 6,
            Body::Posted(Post::Note(_)) => 7,
            Body::Posted(Post::Packet(..)) => 8,
        };
        bytes.push(kind);
        bytes.extend(self.at.as_ps().to_be_bytes());
        bytes.extend(self.port.to_be_bytes());
        match self.body {
            Body::Packet { packet, life, first, .. } => {
                bytes.extend(life.to_be_bytes());
                bytes.extend(first.to_be_bytes());
                bytes.extend(wire::encode(codec, &packet));
            }
            Body::Room { name, .. } => {
                bytes.extend(name.words().into_iter().flat_map(u32::to_be_bytes));
            }
            Body::Unheard { packet } => bytes.extend(wire::encode(codec, &packet)),
            Body::Word { word } => bytes.extend(word.to_be_bytes()),
            Body::Posted(Post::Note(words)) => {
                bytes.extend(words.into_iter().flat_map(u64::to_be_bytes));
            }
            Body::Posted(Post::Packet(packet, word)) => {
                bytes.extend(word.to_be_bytes());
                bytes.extend(wire::encode(codec, &packet));
            }
        }
        bytes
    }

    /// The message whose bytes these are.
    ///
    /// # Errors
    /// If [`Message::encode`] writes them for none.
    pub fn decode(codec: &dyn Codec, bytes: &[u8]) -> Result<Self, WireError> {
        let (head, rest) = bytes.split_at_checked(HEAD).ok_or(WireError::Length(bytes.len()))?;
        let word = |bytes: &[u8], at: usize| -> Result<u32, WireError> {
            let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
            four.map(u32::from_be_bytes).ok_or(WireError::Length(bytes.len()))
        };
        let at = u64::from(word(head, 1)?) << 32 | u64::from(word(head, 5)?);
        let body = match head[0] {
            kind @ 0..=2 => Body::Packet {
                life: word(rest, 0)?,
                first: word(rest, 4)?,
                packet: wire::decode(codec, &rest[8..])?,
                manner: [Manner::Through, Manner::There, Manner::Frame][usize::from(kind)],
            },
            kind @ 3..=4 if rest.len() == 12 => {
                let [src, dst] = [word(rest, 0)?, word(rest, 4)?].map(NodeId::new);
                Body::Room { name: Name { src, dst, number: word(rest, 8)? }, is_first: kind == 4 }
            }
            5 => Body::Unheard { packet: wire::decode(codec, rest)? },
            6 if rest.len() == 4 => Body::Word { word: word(rest, 0)? },
            7 if rest.len() == 8 * NOTE_WORDS => {
                let mut words = [0; NOTE_WORDS];
                for (word, bytes) in words.iter_mut().zip(rest.chunks_exact(8)) {
                    *word = bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
                }
                Body::Posted(Post::Note(words))
            }
            8 => {
                let about = u64::from(word(rest, 0)?) << 32 | u64::from(word(rest, 4)?);
                Body::Posted(Post::Packet(wire::decode(codec, &rest[8..])?, about))
            }
            _ => return Err(WireError::Field("kind of message")),
        };
        Ok(Self { at: Time::from_ps(at), port: word(head, 9)?, body })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Datagrams;

    const CODEC: Datagrams = Datagrams { header: 42 };

    fn messages() -> impl Strategy<Value = Message> {
        let name = any::<[u32; 3]>().prop_map(|[src, dst, number]| Name {
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            number,
        });
        let packet =
            any::<(u64, u16)>().prop_map(|(seq, wire)| Packet { seq, wire, ..Packet::default() });
        let manner = prop_oneof![Just(Manner::Through), Just(Manner::There), Just(Manner::Frame)];
        let body = prop_oneof![
            (packet.clone(), any::<[u32; 2]>(), manner).prop_map(
                |(packet, [life, first], manner)| Body::Packet { packet, life, first, manner }
            ),
            (name, any::<bool>()).prop_map(|(name, is_first)| Body::Room { name, is_first }),
            packet.clone().prop_map(|packet| Body::Unheard { packet }),
            any::<u32>().prop_map(|word| Body::Word { word }),
            any::<[u64; NOTE_WORDS]>().prop_map(|words| Body::Posted(Post::Note(words))),
            (packet, any::<u64>())
                .prop_map(|(packet, word)| Body::Posted(Post::Packet(packet, word))),
        ];
        (any::<u64>(), any::<u32>(), body).prop_map(|(at, port, body)| Message {
            at: Time::from_ps(at),
            port,
            body,
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(message in messages()) {
            prop_assert_eq!(Message::decode(&CODEC, &message.encode(&CODEC)), Ok(message));
        }

        /// What is read without an error is written as it was.
        #[test]
        fn no_bytes_break_the_reader(message in messages(), at in 0usize..90, byte: u8, len in 0usize..90) {
            let mut bytes = message.encode(&CODEC);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(len);
            if let Ok(message) = Message::decode(&CODEC, &bytes) {
                prop_assert_eq!(message.encode(&CODEC), bytes);
            }
        }
    }
}
