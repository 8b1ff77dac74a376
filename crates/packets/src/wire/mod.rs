//! Packets as bytes: real frames, and behind what is real a trailer of the simulator's own.
//!
//! ```text
//! ┌──────────────────────────────────────────────┬───────────────┬─────┐
//! │ the real frame: Ethernet, 802.1Q, and what   │ trailer       │ FCS │
//! │ the transport's standard says, its payload,  │ what the real │     │
//! │ filled up to 60 bytes                        │ has no room for│    │
//! └──────────────────────────────────────────────┴───────────────┴─────┘
//! ```
//!
//! How the real part looks is the transport's [`Codec`]; frames of the link itself are written in `link`. A
//! [`Packet`] has fields that no header has (a stamp in picoseconds, which path switches follow) and others that
//! are wider than a header's (sequence numbers of 64 bits). They ride in the trailer (`trailer`): a writer
//! reads its own real part, and puts there what that does not tell. So each packet comes out as it went in, nothing
//! is said twice, and what a switch changes (ECN, time to live) is in the real header alone.
//!
//! **Our choice** is a trailer and no option of the header: TCP has 40 bytes for options, which time stamps and
//! three blocks of selective acknowledgments fill, and other headers have none. Receivers take what lies behind the
//! length that IPv4 states for padding (IEEE 802.3 §3.2.8), so that a capture of such frames
//! (`LINKTYPE_ETHERNET`) reads well; [`real`] takes the trailer out.
//!
//! Payload is zeros, as many as there would be: the bytes of flows ride apart ([`rack::node::Payload`]). The frame
//! check sequence is Ethernet's CRC-32 over all before it. Nothing of this is counted in [`Packet::wire`], which is
//! the transport's own sum (`docs/wire-formats.md`).

mod datagrams;
mod ether;
mod ip;
mod link;
mod trailer;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::packet::Packet;

pub use datagrams::Datagrams;
pub use ether::{Address, LOCAL, open_ethernet, priority_of, read_ethernet, sequence};
pub use ip::{
    Datagram, Ports, UDP, checksum, read_ip, read_udp, sum_of_pseudo, write_ip, write_udp,
};

/// Bytes of the frame check sequence.
pub const FCS: usize = 4;

/// How packets of a transport look in bytes.
///
/// Neither call may panic, whatever it is given: bytes may come from anywhere.
pub trait Codec: fmt::Debug + Send + Sync {
    /// Appends the real frame of a packet to the empty `frame`, from its destination address to its last byte before
    /// padding.
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>);

    /// What a real frame says of its packet, padding or not; `None`: it is none of this transport's.
    fn read(&self, frame: &[u8]) -> Option<Packet>;
}

/// Why bytes are no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// Too few or too many bytes: how many there are.
    Length(usize),
    /// The frame check sequence is wrong.
    Checksum,
    /// A field holds what means nothing, or no writer writes: its name.
    Field(&'static str),
}

/// The real part of a packet's frame.
fn write_real(codec: &dyn Codec, packet: &Packet) -> Vec<u8> {
    let mut frame = Vec::with_capacity(128 + usize::from(packet.payload));
    match packet.is_link_frame() {
        true => link::write(packet, &mut frame),
        false => codec.write(packet, &mut frame),
    }
    ether::close_real(&mut frame);
    frame
}

/// What a real part tells; of bytes that tell nothing, the empty packet.
fn read_real(codec: &dyn Codec, real: &[u8]) -> Packet {
    let told = if link::is_link(real) { link::read(real) } else { codec.read(real) };
    told.unwrap_or_default()
}

/// The names of the fields of a packet that ride in its trailer, as the real frame has no room for them.
#[must_use]
pub fn rides(codec: &dyn Codec, packet: &Packet) -> Vec<&'static str> {
    trailer::rides(packet, &read_real(codec, &write_real(codec, packet)))
}

/// The bytes of a packet.
#[must_use]
pub fn encode(codec: &dyn Codec, packet: &Packet) -> Vec<u8> {
    let mut frame = write_real(codec, packet);
    let told = read_real(codec, &frame);
    trailer::write(packet, &told, &mut frame);
    ether::seal(&mut frame);
    frame
}

/// The packet whose bytes these are.
///
/// # Errors
/// If [`encode`] writes them for no packet.
pub fn decode(codec: &dyn Codec, bytes: &[u8]) -> Result<Packet, WireError> {
    let (real, rest) = parts(bytes)?;
    let mut packet = read_real(codec, real);
    trailer::read(rest, &mut packet)?;
    // Checksums, reserved bits, padding, and whatever else a reader passes over.
    match encode(codec, &packet) == bytes {
        true => Ok(packet),
        false => Err(WireError::Field("frame")),
    }
}

/// The real frame in these bytes, with a frame check sequence of its own, as hardware would send it.
///
/// # Errors
/// If there is no trailer, or the frame check sequence is wrong.
pub fn real(bytes: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut frame = parts(bytes)?.0.to_vec();
    ether::seal(&mut frame);
    Ok(frame)
}

/// The real part and the trailer of intact bytes.
fn parts(bytes: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (body, found) = bytes.split_last_chunk::<FCS>().ok_or(WireError::Length(bytes.len()))?;
    if sequence(&[body]) != *found {
        return Err(WireError::Checksum);
    }
    let length = trailer::length(body).ok_or(WireError::Field("trailer"))?;
    let at = body.len().checked_sub(length).ok_or(WireError::Length(bytes.len()))?;
    Ok(body.split_at(at))
}
