//! Messages of a file, one after the other, each after its length.

use std::io::{BufReader, Read};

use prost::Message;

use super::messages::{GlobalMetadata, Node};

/// Longest message, in bytes. Our choice: a node takes some hundred, and some kilobytes where it
/// lists the tensors of a fused kernel.
const MESSAGE_MAX: u64 = 1 << 24;
/// The first version of the schema whose fields are those that are read.
const VERSION_MIN: [u64; 3] = [0, 0, 4];

/// Reads a file of a rank.
pub(super) struct Messages<R> {
    name: String,
    bytes: BufReader<R>,
    /// Bytes read so far.
    at: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Messages<R> {
    /// Reads the head and checks that it is of a version that is known.
    pub(super) fn open(name: String, bytes: R) -> Result<Self, String> {
        let bytes = BufReader::new(bytes);
        let mut messages = Self { name, bytes, at: 0, buffer: Vec::new() };
        if messages.next()?.is_none() {
            return Err(format!("{}: the file is empty; {EXPECTED}", messages.name));
        }
        let head = GlobalMetadata::decode(&*messages.buffer);
        let head = head.map_err(|error| messages.complaint(0, &format!("{error}; {EXPECTED}")))?;
        if version(&head.version).is_some_and(|version| version < VERSION_MIN) {
            let message = format!(
                "found version {:?} of the schema; expected 0.0.4 or later: convert it with a current chakra",
                head.version
            );
            return Err(messages.complaint(0, &message));
        }
        Ok(messages)
    }

    /// The next node, and at which byte of the file its message is.
    pub(super) fn next_node(&mut self) -> Result<Option<(u64, Node)>, String> {
        let Some(at) = self.next()? else { return Ok(None) };
        let node = Node::decode(&*self.buffer);
        let node = node.map_err(|error| {
            self.complaint(at, &format!("{error}; expected a node of Chakra's schema"))
        })?;
        Ok(Some((at, node)))
    }

    /// What is wrong with the message at a byte of the file.
    pub(super) fn complaint(&self, at: u64, message: &str) -> String {
        format!("{}: byte {at}: {message}", self.name)
    }

    /// Fills the buffer with the next message; at which byte it begins. `None` at the end of the file.
    fn next(&mut self) -> Result<Option<u64>, String> {
        let begin = self.at;
        let Some(length) = self.length()? else { return Ok(None) };
        let at = self.at;
        if length > MESSAGE_MAX {
            let message = format!(
                "found a message of {length} bytes; expected one of at most {MESSAGE_MAX}: {EXPECTED}"
            );
            return Err(self.complaint(begin, &message));
        }
        self.buffer.clear();
        let found = (&mut self.bytes).take(length).read_to_end(&mut self.buffer);
        let found = found.map_err(|error| self.complaint(at, &unreadable(&error)))? as u64;
        if found < length {
            let message = format!(
                "the file ends after {found} bytes of a message of {length}: it is cut off; copy it again"
            );
            return Err(self.complaint(at, &message));
        }
        self.at += length;
        Ok(Some(at))
    }

    /// A length: seven bits a byte, the least first.
    fn length(&mut self) -> Result<Option<u64>, String> {
        let begin = self.at;
        let mut length = 0u64;
        for place in 0..10 {
            let mut byte = [0];
            let count = loop {
                match self.bytes.read(&mut byte) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(self.complaint(self.at, &unreadable(&error))),
                    Ok(count) => break count,
                }
            };
            if count == 0 && place == 0 {
                return Ok(None);
            }
            if count == 0 {
                let message =
                    "the file ends within the length of a message: it is cut off; copy it again";
                return Err(self.complaint(begin, message));
            }
            self.at += 1;
            length |= u64::from(byte[0] & 0x7f) << (7 * place);
            if byte[0] < 0x80 {
                return Ok(Some(length));
            }
        }
        Err(self.complaint(begin, &format!("found no length of a message; {EXPECTED}")))
    }
}

const EXPECTED: &str = "expected an execution trace of Chakra: a GlobalMetadata, then nodes, each \
                        message after its length";

fn unreadable(error: &std::io::Error) -> String {
    format!("cannot be read: {error}")
}

/// The numbers at the end of a version; `None` where there are none that could be compared.
fn version(text: &str) -> Option<[u64; 3]> {
    let last = text.rsplit_once("chakra.").map_or(text, |(_, last)| last);
    let mut numbers = last.split('.').map(|part| part.parse().ok());
    let version = [numbers.next()??, numbers.next()??, numbers.next()??];
    Some(version)
}
