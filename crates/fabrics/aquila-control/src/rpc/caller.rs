//! The controller's end: one request at a time.

use thiserror::Error;

use super::bytes::FLASH_BYTES;
use super::{Answer, HEADER_BYTES, Item, MESSAGE_BYTES_MAX, MessageError, Outcome, Request};
use crate::registers::{ENTRY_BYTES_MAX, find, map::REGISTERS};

/// The controller's end of a session (I73).
#[derive(Clone, Debug, Default)]
pub struct Caller {
    sequence: u32,
    under_way: Option<UnderWay>,
}

#[derive(Clone, Debug)]
struct UnderWay {
    request: Request,
    bytes: Vec<u8>,
}

/// Why a request was not sent.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NotSent {
    /// One is under way, and only one may be (§4.2).
    #[error("request {0} is under way; expected its answer first")]
    Busy(u32),
    /// It is too large.
    #[error("{0} bytes; expected {MESSAGE_BYTES_MAX} at the most, in several requests")]
    Size(usize),
}

/// Why an answer was not taken; the request is still under way.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Late {
    /// It is no answer.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// It answers another request.
    #[error("an answer to request {found}; expected {expected:?}")]
    Sequence {
        /// To which it is.
        found: u32,
        /// What is under way.
        expected: Option<u32>,
    },
    /// It does not fit what was asked.
    #[error("outcome {0} does not fit its item; expected one for each item, of its kind")]
    Outcome(usize),
}

impl Caller {
    /// A session that has not said anything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of a request; it is under way from now on.
    ///
    /// # Errors
    /// Another one is, or it is too large.
    pub fn send(&mut self, items: Vec<Item>) -> Result<&[u8], NotSent> {
        if let Some(under_way) = &self.under_way {
            return Err(NotSent::Busy(under_way.request.sequence));
        }
        let size = HEADER_BYTES + items.iter().map(Item::size).sum::<usize>();
        if size > MESSAGE_BYTES_MAX {
            return Err(NotSent::Size(size));
        }
        self.sequence = self.sequence.wrapping_add(1);
        let request = Request { sequence: self.sequence, items };
        let bytes = request.encode();
        Ok(&self.under_way.insert(UnderWay { request, bytes }).bytes)
    }

    /// The bytes of the request that is under way, to send them once more.
    #[must_use]
    pub fn under_way(&self) -> Option<&[u8]> {
        self.under_way.as_ref().map(|under_way| &under_way.bytes[..])
    }

    /// An answer has come; what became of the items.
    ///
    /// # Errors
    /// It is not that to the request under way.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<(Item, Outcome)>, Late> {
        let answer = Answer::decode(bytes)?;
        let expected = self.under_way.as_ref().map(|under_way| under_way.request.sequence);
        let Some(under_way) = self.under_way.take_if(|u| u.request.sequence == answer.sequence)
        else {
            return Err(Late::Sequence { found: answer.sequence, expected });
        };
        let (items, outcomes) = (&under_way.request.items, &answer.outcomes);
        let pairs = items.iter().zip(outcomes).position(|(item, outcome)| !fits(item, outcome));
        let is_short = (items.len() != outcomes.len()).then(|| items.len().min(outcomes.len()));
        if let Some(at) = pairs.or(is_short) {
            self.under_way = Some(under_way);
            return Err(Late::Outcome(at));
        }
        Ok(under_way.request.items.into_iter().zip(answer.outcomes).collect())
    }

    /// The session is lost: items that may have been done, or not.
    pub fn end(&mut self) -> Vec<Item> {
        self.under_way.take().map(|under_way| under_way.request.items).unwrap_or_default()
    }
}

/// Whether this can have become of an item.
fn fits(item: &Item, outcome: &Outcome) -> bool {
    match (item, outcome) {
        (_, Outcome::Failed(_)) => true,
        (Item::Read { .. }, Outcome::Entry(_)) => true,
        (Item::Write { .. } | Item::WriteBlock { .. }, Outcome::Written) => true,
        (Item::Stage(_) | Item::Store { .. } | Item::Verify, Outcome::Written) => true,
        (Item::Activate { .. } | Item::Confirm { .. }, Outcome::Written) => true,
        (Item::Flash, Outcome::Flash { .. }) => true,
        (Item::ReadBlock { address, count }, Outcome::Entries(bytes)) => {
            bytes.len() == block_bytes(*address, *count)
        }
        (Item::Digests { count, .. }, Outcome::Digests(digests)) => {
            digests.len() == usize::from(*count)
        }
        _ => false,
    }
}

fn block_bytes(address: u32, count: u16) -> usize {
    let size = find(address).map_or(0, |(register, _)| REGISTERS[register].entry_bytes());
    size as usize * usize::from(count)
}

/// Items in as few requests as hold them in order, so that neither a request nor its answer is too large. An item that
/// is too large by itself has a request of its own, which is refused.
#[must_use]
pub fn pack(items: impl IntoIterator<Item = Item>) -> Vec<Vec<Item>> {
    let mut requests: Vec<Vec<Item>> = Vec::new();
    let (mut asked, mut answered) = (0, 0);
    for item in items {
        let answer = match &item {
            Item::Read { .. } => 3 + ENTRY_BYTES_MAX,
            Item::ReadBlock { address, count } => 3 + block_bytes(*address, *count),
            Item::Digests { count, .. } => 3 + 8 * usize::from(*count),
            Item::Flash => FLASH_BYTES,
            _ => 2,
        };
        (asked, answered) = (asked + item.size(), answered + answer);
        match requests.last_mut() {
            Some(last) if asked.max(answered) <= MESSAGE_BYTES_MAX => last.push(item),
            _ => {
                (asked, answered) = (HEADER_BYTES + item.size(), HEADER_BYTES + answer);
                requests.push(vec![item]);
            }
        }
    }
    requests
}
