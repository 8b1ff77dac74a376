//! The packets of a file, with their time and the kind of link on which they were captured.

use std::io::Read;

use kernel::PS_PER_SECOND;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

/// Bytes that are read at a time.
const PART: usize = 1 << 16;
/// Largest block of a file, in bytes. Our choice: that of tcpdump's largest packets, 256 KiB, many times.
const BLOCK_MAX: usize = 1 << 24;
/// Most interfaces of a section (our choice; each takes memory before any packet comes).
const INTERFACES_MAX: usize = 1 << 16;

/// A packet as it was captured.
pub(super) struct Packet<'a> {
    /// When, from 1970. Unit: ps.
    pub at: i128,
    /// The kind of link: a `LINKTYPE` of tcpdump's list.
    pub link: i32,
    /// What was captured of it.
    pub data: &'a [u8],
    /// How long it was. Unit: bytes.
    pub length: u64,
}

/// What a section says of an interface.
#[derive(Clone, Copy)]
struct Interface {
    link: i32,
    /// Ticks of its clock in a second, and when that begins. Unit of the latter: s.
    resolution: u64,
    offset: i64,
    /// Most bytes of a packet that are captured; none: all.
    snap: u32,
}

/// Hands over each packet until `take` says that it is enough. Whether the file ends within a packet.
///
/// # Errors
/// What is wrong with the file, and at which byte.
pub(super) fn each(
    file: impl Read + Send,
    mut take: impl FnMut(&Packet<'_>) -> bool,
) -> Result<bool, String> {
    let mut reader = match create_reader(PART, file) {
        Ok(reader) => reader,
        Err(PcapError::Eof) => return Err("the file is empty; expected a capture".into()),
        Err(PcapError::ReadError) => return Err("cannot be read".into()),
        Err(_) => {
            let message = "byte 0: found no head of a capture; expected pcap or pcapng, as tcpdump and Wireshark \
                           write them (a file that is packed has to be unpacked)";
            return Err(message.into());
        }
    };
    let (mut size, mut state) = (PART, State::default());
    loop {
        let at = reader.consumed();
        let wrong = |what: &str| format!("byte {at}: {what}");
        match reader.next() {
            Ok((length, block)) => {
                let goes_on = state.block(&block, &mut take).map_err(|what| wrong(&what))?;
                drop(block);
                reader.consume(length);
                if !goes_on {
                    return Ok(false);
                }
            }
            Err(PcapError::Eof) => return Ok(false),
            Err(PcapError::UnexpectedEof) => return Ok(true),
            Err(PcapError::Incomplete(_)) => {
                refill(reader.as_mut()).map_err(|what| wrong(&what))?
            }
            Err(PcapError::BufferTooSmall) => {
                size *= 2;
                if size > BLOCK_MAX || !reader.grow(size) {
                    let what = format!(
                        "found a packet of more than {BLOCK_MAX} bytes: the file is damaged from here on; cut it \
                         off there"
                    );
                    return Err(wrong(&what));
                }
                refill(reader.as_mut()).map_err(|what| wrong(&what))?;
            }
            Err(PcapError::ReadError) => return Err(wrong("cannot be read")),
            Err(_) => {
                let what = "found no packet where one begins: the file is damaged from here on; cut it off there";
                return Err(wrong(what));
            }
        }
    }
}

fn refill(reader: &mut (dyn PcapReaderIterator + Send)) -> Result<(), String> {
    reader.refill().map_err(|_| "cannot be read".into())
}

/// What blocks so far say of those to come.
#[derive(Default)]
struct State {
    /// Of the section.
    interfaces: Vec<Interface>,
    /// When the packet before was captured, for those that do not say.
    last: i128,
}

impl State {
    /// Takes a block; whether more are wanted.
    fn block(
        &mut self,
        block: &PcapBlockOwned<'_>,
        take: &mut impl FnMut(&Packet<'_>) -> bool,
    ) -> Result<bool, String> {
        match block {
            PcapBlockOwned::LegacyHeader(head) => {
                let resolution =
                    if head.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                // The upper bits say how long the check sequences of frames are.
                let link = head.network.0 & 0x0fff_ffff;
                self.interfaces = vec![Interface { link, resolution, offset: 0, snap: 0 }];
                Ok(true)
            }
            PcapBlockOwned::Legacy(packet) => {
                let interface = self.interface(0)?;
                let part = i128::from(packet.ts_usec) * i128::from(PS_PER_SECOND);
                let seconds = i128::from(packet.ts_sec) * i128::from(PS_PER_SECOND);
                self.last = seconds + part / i128::from(interface.resolution);
                Ok(take(&self.packet(interface, packet.data, packet.origlen)))
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(true)
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                if self.interfaces.len() >= INTERFACES_MAX {
                    return Err(format!("found more than {INTERFACES_MAX} interfaces"));
                }
                let resolution = block.ts_resolution().filter(|&ticks| ticks > 0);
                let resolution = resolution
                    .ok_or("found an interface whose clock has more than 2^64 ticks a second")?;
                let (link, offset, snap) = (block.linktype.0, block.if_tsoffset, block.snaplen);
                self.interfaces.push(Interface { link, resolution, offset, snap });
                Ok(true)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.interface(packet.if_id as usize)?;
                let ticks = i128::from(packet.ts_high) << 32 | i128::from(packet.ts_low);
                let since = ticks * i128::from(PS_PER_SECOND) / i128::from(interface.resolution);
                self.last = since + i128::from(interface.offset) * i128::from(PS_PER_SECOND);
                // Blocks are filled up to four bytes.
                let captured = packet.data.len().min(packet.caplen as usize);
                Ok(take(&self.packet(interface, &packet.data[..captured], packet.origlen)))
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let interface = self.interface(0)?;
                let snap = if interface.snap == 0 { u32::MAX } else { interface.snap };
                let captured = packet.data.len().min(packet.origlen.min(snap) as usize);
                Ok(take(&self.packet(interface, &packet.data[..captured], packet.origlen)))
            }
            // Names, statistics and what else is no packet.
            PcapBlockOwned::NG(_) => Ok(true),
        }
    }

    fn interface(&self, number: usize) -> Result<Interface, String> {
        self.interfaces.get(number).copied().ok_or_else(|| {
            format!(
                "found a packet of interface {number}, and the section has {} so far: the file is damaged",
                self.interfaces.len()
            )
        })
    }

    fn packet<'a>(&self, interface: Interface, data: &'a [u8], length: u32) -> Packet<'a> {
        let length = u64::from(length).max(data.len() as u64);
        Packet { at: self.last, link: interface.link, data, length }
    }
}
