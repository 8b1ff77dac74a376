//! The embedded base's file: every write that was taken, in order. Who reads it again has the same base, version for
//! version.
//!
//! ```text
//! header:  "RLNIB" 5 | format 1 | layout 4
//! write:   length 4 | CRC-32 4 | a WriteRequest of the interface
//! ```
//!
//! A write that was cut short, as the process had ended, was not answered, and is dropped whole (I72).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use aquila_control::nib::LAYOUT;
use prost::Message as _;
use thiserror::Error;

use crate::proto::control::WriteRequest;

const MAGIC: &[u8; 5] = b"RLNIB";
const FORMAT: u8 = 1;
const HEADER_BYTES: usize = 10;
/// No write is longer: what says so is none.
const WRITE_BYTES_MAX: u32 = 256 << 20;

/// Why a file is not taken.
#[derive(Debug, Error)]
pub enum LogError {
    /// It cannot be read or written.
    #[error("{path}: {why}; the base is kept there")]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It does not begin as one.
    #[error(
        "{path}: does not begin as a base does; move it away, or name another folder with --dir"
    )]
    NotOne {
        /// Which.
        path: PathBuf,
    },
    /// Another version of the program has written it.
    #[error(
        "{path}: format {format}, layout {layout}; expected format {FORMAT}, layout {LAYOUT}: another version of the \
         program has written it. Nothing was changed; run that one, or move the file away"
    )]
    Version {
        /// Which.
        path: PathBuf,
        /// Of the file.
        format: u8,
        /// Of its rows.
        layout: u32,
    },
    /// A write in it is damaged.
    #[error(
        "{path}: the write at byte {at} is damaged; move the file away, and the base is made anew"
    )]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Where.
        at: u64,
    },
}

/// The file.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// Bytes at its end that were dropped.
    pub dropped: u64,
}

impl Log {
    /// Opens it, or makes it; `each` is told every write in it, and says whether it could be one.
    pub fn open(path: &Path, each: impl FnMut(WriteRequest) -> bool) -> Result<Self, LogError> {
        let io = |why| LogError::Io { path: path.to_owned(), why };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(io)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let mut end = HEADER_BYTES;
        if bytes.is_empty() {
            let header = [&MAGIC[..], &[FORMAT], &LAYOUT.to_be_bytes()].concat();
            file.write_all(&header).and_then(|()| file.sync_data()).map_err(io)?;
            bytes = header;
        } else {
            end = replay(path, &bytes, each)?;
        }
        let dropped = (bytes.len() - end) as u64;
        file.set_len(end as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok(Self { path: path.to_owned(), file, dropped })
    }

    /// Appends a write. Of leases the disk need not have heard when it is answered: they run out.
    pub fn append(&mut self, write: &WriteRequest) -> Result<(), LogError> {
        let body = write.encode_to_vec();
        let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
        bytes.extend(crc32fast::hash(&body).to_be_bytes());
        bytes.extend(body);
        let written = self.file.write_all(&bytes).and_then(|()| match write.is_lease {
            true => Ok(()),
            false => self.file.sync_data(),
        });
        written.map_err(|why| LogError::Io { path: self.path.clone(), why })
    }
}

/// Where the last whole write ends.
fn replay(
    path: &Path,
    bytes: &[u8],
    mut each: impl FnMut(WriteRequest) -> bool,
) -> Result<usize, LogError> {
    let path = || path.to_owned();
    let header = bytes.first_chunk::<HEADER_BYTES>().and_then(|header| header.strip_prefix(MAGIC));
    let Some(&[format, a, b, c, d]) = header else { return Err(LogError::NotOne { path: path() }) };
    let layout = u32::from_be_bytes([a, b, c, d]);
    if (format, layout) != (FORMAT, LAYOUT) {
        return Err(LogError::Version { path: path(), format, layout });
    }
    let mut at = HEADER_BYTES;
    while let Some((&[a, b, c, d, checksum @ ..], rest)) = bytes[at..].split_first_chunk::<8>() {
        let length = u32::from_be_bytes([a, b, c, d]);
        let damaged = LogError::Damaged { path: path(), at: at as u64 };
        if length > WRITE_BYTES_MAX {
            return Err(damaged);
        }
        let Some(body) = rest.get(..length as usize) else { break };
        let is_whole = crc32fast::hash(body) == u32::from_be_bytes(checksum);
        let write = is_whole.then(|| WriteRequest::decode(body).ok()).flatten();
        if !write.is_some_and(&mut each) {
            return Err(damaged);
        }
        at += 8 + body.len();
    }
    Ok(at)
}
