//! The record as a capture, for Wireshark and what else reads pcapng: an interface for each line, and on it the frames
//! as they left, their payload cut off. An interface says what its frames are: Ethernet's, or cells of a fabric.
//!
//! Times are nanoseconds, counted from the run's beginning, and those at which first bits went on the line: of finer
//! ones Wireshark 4.0 computes wrong fractions of a second. Each frame has a comment: flow, packet, the exact time, how
//! long it had waited, what became of it. Packets that were dropped before they left are in no capture.
//!
//! **Our choice** is a writer of our own: there are three kinds of blocks, and `pcap-file`, which is kept best, brings an
//! older `thiserror` along.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use rack::FlowId;
use rack::trace::{Hop, Outcome, Trace};

use crate::files::{AtomicFile, FileError};

/// Kinds of blocks, and of options (draft-ietf-opsawg-pcapng §4).
const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
/// The power of ten of a nanosecond, and how many picoseconds that is.
const NANOSECONDS: u8 = 9;
const PS: u64 = 1_000;

/// Writes the packets of these flows to `path`. How many frames are in it.
///
/// # Errors
/// When it cannot be written.
pub fn write_pcapng(path: &Path, flows: &[FlowId], trace: &Trace) -> Result<usize, FileError> {
    let file = AtomicFile::create(path)?;
    let out = BufWriter::new(file.handle()?);
    let count = write(out, flows, trace).map_err(|source| FileError::new(path, source))?;
    file.finish()?;
    Ok(count)
}

fn write(mut out: impl Write, flows: &[FlowId], trace: &Trace) -> io::Result<usize> {
    let program = format!("rackloom {}", env!("CARGO_PKG_VERSION"));
    let mut section = Vec::new();
    section.extend(0x1A2B_3C4D_u32.to_le_bytes());
    section.extend(1u16.to_le_bytes());
    section.extend(0u16.to_le_bytes());
    // How long the section is: not said.
    section.extend(u64::MAX.to_le_bytes());
    options(&mut section, &[(APPLICATION, program.as_bytes())]);
    block(&mut out, SECTION, &section)?;
    for place in &trace.places {
        let mut interface = Vec::new();
        interface.extend(place.link_type.to_le_bytes());
        interface.extend([0; 6]);
        let name = place.to_string();
        options(&mut interface, &[(NAME, name.as_bytes()), (RESOLUTION, &[NANOSECONDS])]);
        block(&mut out, INTERFACE, &interface)?;
    }
    let on_line = |hop: &&Hop| hop.sent > hop.started && !hop.header.is_empty();
    let mut hops: Vec<&Hop> =
        flows.iter().flat_map(|&flow| trace.of(flow)).filter(on_line).collect();
    hops.sort_by_key(|hop| (hop.started, hop.place, hop.flow, hop.packet));
    for hop in &hops {
        block(&mut out, PACKET, &packet(hop))?;
    }
    out.flush()?;
    Ok(hops.len())
}

/// The body of the block of a packet.
fn packet(hop: &Hop) -> Vec<u8> {
    let (at, captured) = (hop.started.as_ps() / PS, hop.header.len() as u32);
    let mut body = Vec::with_capacity(hop.header.len() + 128);
    for word in
        [hop.place, (at >> 32) as u32, at as u32, captured, captured + u32::from(hop.payload)]
    {
        body.extend(word.to_le_bytes());
    }
    body.extend(&hop.header);
    fill(&mut body);
    let fate = match hop.outcome {
        Outcome::Arrived => "",
        Outcome::Absorbed => "; absorbed at the other end",
        Outcome::Lost => "; lost on the line",
        Outcome::DeadLink => "; lost as the link went down",
        Outcome::NoRoom => "; no room for it at the other end",
        Outcome::NoRoute => "; no route from the other end",
        Outcome::Refused => "; refused at the other end",
    };
    let again = if hop.is_again { ", sent again" } else { "" };
    let cell = hop.cell.as_ref().map_or_else(String::new, |cell| {
        format!(", cell {} ({}) on virtual channel {}", cell.number, cell.kind, cell.vc)
    });
    let comment = format!(
        "flow {}, packet {}{cell}{again}; at {} ps, after waiting {}{fate}",
        hop.flow.get(),
        hop.packet,
        hop.started.as_ps(),
        hop.wait()
    );
    options(&mut body, &[(COMMENT, comment.as_bytes())]);
    body
}

/// Fills up to a whole number of words.
fn fill(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Appends options, and the one that ends them.
fn options(body: &mut Vec<u8>, list: &[(u16, &[u8])]) {
    for (code, value) in list {
        body.extend(code.to_le_bytes());
        body.extend((value.len() as u16).to_le_bytes());
        body.extend(*value);
        fill(body);
    }
    body.extend([0; 4]);
}

/// Writes a block: its kind, its length before and behind it.
fn block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = (12 + body.len() as u32).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length)?;
    out.write_all(body)?;
    out.write_all(&length)
}
