//! Commands, and what becomes of them.

use aquila::pipeline::sideband::{BUFFER_BYTES, Settings};

use super::Packet;
use crate::firmware::chip::Chip;
use crate::registers::file::RegisterFile;
use crate::registers::map::{SIDEBAND_ALLOWED, SIDEBAND_CHANNEL};

/// Of a channel's register: the management controller's Ethernet address below these bits.
const INITIALISED: u64 = 1 << 48;
const ENABLED: u64 = 1 << 49;
const SENDS: u64 = 1 << 50;
const NOTIFIES: u64 = 1 << 51;
const SELECTED: u64 = 1 << 52;
const ADDRESS: u64 = (1 << 48) - 1;
/// Who is notified.
const CONTROLLER_AT: u32 = 56;

/// The package itself, in place of a channel.
const PACKAGE: u8 = 0x1F;
/// Of the type of a response.
const RESPONSE: u8 = 0x80;
/// Of a notification.
const NOTIFICATION: u8 = 0xFF;

/// Response and reason codes.
type Codes = (u16, u16);
const DONE: Codes = (0, 0);
const NOT_INITIALISED: Codes = (1, 1);
const BAD_PARAMETER: Codes = (1, 2);
const BAD_LENGTH: Codes = (1, 5);
const UNSUPPORTED: Codes = (3, 0x7FFF);

/// Whether the TiN has a link to anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// It has.
    Up,
    /// It has none.
    Down,
}

impl Link {
    /// That of a chip: any port, to another TiN or to the datacenter's network.
    #[must_use]
    pub fn of(chip: &Chip) -> Self {
        if chip.links() == 0 { Self::Down } else { Self::Up }
    }

    /// Link status: up, 100 Mb/s in both directions, which were not negotiated.
    const fn status(self) -> u32 {
        match self {
            Self::Up => 1 | 5 << 1,
            Self::Down => 0,
        }
    }
}

/// What the registers of a chip say of a host's sideband.
#[must_use]
pub fn settings(registers: &RegisterFile, host: u8) -> Settings {
    let at = [u32::from(host)];
    let channel = registers.get(SIDEBAND_CHANNEL, at);
    let has = |bits: u64| channel & bits == bits;
    let [_, _, ethernet @ ..] = channel.to_be_bytes();
    Settings {
        is_on: registers.get(SIDEBAND_ALLOWED, at) & 1 == 1,
        // Nothing is sent to whoever has no address.
        receives: has(INITIALISED | ENABLED | SELECTED) && channel & ADDRESS != 0,
        sends: has(INITIALISED | SENDS),
        ethernet,
    }
}

/// Does a command of the management controller of a host; its response. `None`: it is for another package or channel,
/// which are not here, or no command.
pub fn respond(
    registers: &mut RegisterFile,
    host: u8,
    command: &Packet,
    link: Link,
    firmware: u16,
) -> Option<Packet> {
    let (package, channel) = (command.channel >> 5, command.channel & 0x1F);
    if package != 0 || !matches!(channel, 0 | PACKAGE) || command.kind >= RESPONSE {
        return None;
    }
    let at = [u32::from(host)];
    let mut state = registers.get(SIDEBAND_CHANNEL, at);
    let (codes, rest) = match check(command, channel, state) {
        Ok(()) => act(&mut state, command, link, firmware),
        Err(codes) => (codes, Vec::new()),
    };
    registers.set(SIDEBAND_CHANNEL, at, state);
    let mut payload = codes.0.to_be_bytes().to_vec();
    payload.extend(codes.1.to_be_bytes());
    payload.extend(rest);
    Some(Packet { kind: command.kind | RESPONSE, payload, ..command.clone() })
}

/// Whether a command can be done by a channel in this state.
fn check(command: &Packet, channel: u8, state: u64) -> Result<(), Codes> {
    let (length, is_of_package) = match command.kind {
        0x01 => (4, true),
        0x02 => (0, true),
        0x00 | 0x03 | 0x06 | 0x07 | 0x0A | 0x15 | 0x16 => (0, false),
        0x04 | 0x05 => (4, false),
        0x08 | 0x0E => (8, false),
        _ => return Err(UNSUPPORTED),
    };
    if is_of_package != (channel == PACKAGE) {
        return Err(BAD_PARAMETER);
    }
    if command.payload.len() != length {
        return Err(BAD_LENGTH);
    }
    // In its initial state a channel does nothing else.
    if !is_of_package && command.kind != 0 && state & INITIALISED == 0 {
        return Err(NOT_INITIALISED);
    }
    Ok(())
}

/// Does it; what follows the codes.
fn act(state: &mut u64, command: &Packet, link: Link, firmware: u16) -> (Codes, Vec<u8>) {
    if command.kind != 0x02 {
        // A command to a channel selects its package.
        *state |= SELECTED;
    }
    let mut rest = Vec::new();
    match command.kind {
        // Clear Initial State, Select and Deselect Package.
        0x00 => *state |= INITIALISED,
        0x01 => {}
        0x02 => *state &= !SELECTED,
        // Enable and Disable Channel, Reset Channel, Enable and Disable Channel Network TX.
        0x03 => *state |= ENABLED,
        0x04 => *state &= !ENABLED,
        0x05 => *state = SELECTED,
        0x06 => *state |= SENDS,
        0x07 => *state &= !SENDS,
        0x08 => enable_notifications(state, &command.payload),
        // Get Link Status: the link, other indications, what is the manufacturer's.
        0x0A => [link.status(), 0, 0].iter().for_each(|word| rest.extend(word.to_be_bytes())),
        0x0E => return (set_address(state, &command.payload), rest),
        0x15 => rest = version(firmware),
        _ => rest = capabilities(),
    }
    (DONE, rest)
}

/// AEN Enable: for whom, and bit 0: of changes of the link.
fn enable_notifications(state: &mut u64, payload: &[u8]) {
    *state &= !(NOTIFIES | 0xFF << CONTROLLER_AT);
    if payload[7] & 1 == 1 {
        *state |= NOTIFIES | u64::from(payload[3]) << CONTROLLER_AT;
    }
}

/// Set MAC Address: six bytes, which of the filters, its type in three bits, and bit 0: it counts.
fn set_address(state: &mut u64, payload: &[u8]) -> Codes {
    let &[a, b, c, d, e, f, number, flags] = payload else { return BAD_LENGTH };
    let address = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let is_multicast = a & 1 == 1;
    // One filter, for an address of its own.
    if number != 1 || flags >> 5 != 0 || is_multicast || address == 0 {
        return BAD_PARAMETER;
    }
    *state &= !ADDRESS;
    if flags & 1 == 1 {
        *state |= address;
    }
    DONE
}

/// Get Version ID: NC-SI 1.0.0 as the standard writes numbers, the firmware's name and version; no PCI, no manufacturer.
fn version(firmware: u16) -> Vec<u8> {
    let mut rest = vec![0xF1, 0xF0, 0xF0, 0, 0, 0, 0, 0];
    rest.extend(*b"aquila tin\0\0");
    rest.extend(u32::from(firmware).to_be_bytes());
    rest.extend([0; 12]);
    rest
}

/// Get Capabilities: no option; the buffer; notifications of the link; one address; one channel.
fn capabilities() -> Vec<u8> {
    let words = [0, 0, 0, BUFFER_BYTES as u32, 1];
    let mut rest: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    // Filters of VLANs, mixed, multicast and unicast; reserved 2; modes of VLANs; channels.
    rest.extend([0, 0, 0, 1, 0, 0, 0, 1]);
    rest
}

/// The notification that the link has changed, if the management controller of a host wants it.
#[must_use]
pub fn notify(registers: &RegisterFile, host: u8, link: Link) -> Option<Packet> {
    let at = [u32::from(host)];
    let state = registers.get(SIDEBAND_CHANNEL, at);
    let wanted = INITIALISED | NOTIFIES | SELECTED;
    if registers.get(SIDEBAND_ALLOWED, at) & 1 == 0 || state & wanted != wanted {
        return None;
    }
    // Reserved 3, type 0: link status change; the link; what is the manufacturer's.
    let mut payload = vec![0; 4];
    payload.extend(link.status().to_be_bytes());
    payload.extend([0; 4]);
    let controller = (state >> CONTROLLER_AT) as u8;
    Some(Packet { controller, instance: 0, kind: NOTIFICATION, channel: 0, payload })
}
