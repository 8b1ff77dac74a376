//! Text, line by line, with no more memory than a line may take.

use std::io::{BufRead, BufReader, Read};

use super::{At, Rows};

/// Longest line, in bytes. Our choice: that of a flow takes some hundred.
const LINE_MAX: u64 = 1 << 16;

/// What editors of Windows write at the beginning of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The lines of a file, from 1.
pub(super) struct Lines<R> {
    file: BufReader<R>,
    line: usize,
    buffer: Vec<u8>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(file: R) -> Self {
        Self { file: BufReader::new(file), line: 0, buffer: Vec::new() }
    }

    /// The next line that is neither empty nor a comment, with its number and whether its end is
    /// there. What cannot be read ends the file.
    pub(super) fn next(&mut self, rows: &mut Rows<'_>) -> Option<(usize, &str, bool)> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let at = At::Line(self.line);
            let count = (&mut self.file).take(LINE_MAX + 1).read_until(b'\n', &mut self.buffer);
            match count {
                Ok(0) => return None,
                Ok(count) if count as u64 > LINE_MAX => {
                    let message = format!("cannot be read: a line is longer than {LINE_MAX} bytes");
                    rows.complain(at, "", message);
                    return None;
                }
                Ok(_) if self.line == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) => {
                    self.buffer.drain(..BYTE_ORDER_MARK.len());
                }
                Ok(_) => {}
                Err(error) => {
                    rows.complain(at, "", format!("cannot be read: {error}"));
                    return None;
                }
            }
            let Ok(text) = std::str::from_utf8(&self.buffer) else {
                rows.complain(at, "", "not text in UTF-8");
                return None;
            };
            let text = text.trim();
            if !text.is_empty() && !text.starts_with('#') {
                break;
            }
        }
        let is_ended = self.buffer.ends_with(b"\n");
        // Checked above; asked again because the loop may go on.
        let text = std::str::from_utf8(&self.buffer).unwrap_or("").trim();
        Some((self.line, text, is_ended))
    }
}
