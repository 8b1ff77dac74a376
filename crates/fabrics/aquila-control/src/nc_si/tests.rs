//! Frames as the standard has them, word by word, and a management controller's hand.

use aquila::pipeline::plan::Plan;
use aquila::pipeline::sideband::Settings;
use aquila::topology::Shape;
use proptest::prelude::*;

use super::*;
use crate::firmware::chip::Chip;
use crate::registers::file::RegisterFile;
use crate::registers::map::{SIDEBAND_ALLOWED, SIDEBAND_CHANNEL};

const BMC: EthernetAddress = [2, 0, 0, 0, 0, 9];
/// Of its notifications.
const CONTROLLER: u8 = 5;

fn packet(instance: u8, kind: u8, channel: u8, payload: &[u8]) -> Packet {
    Packet { controller: 0, instance, kind, channel, payload: payload.to_vec() }
}

/// A frame of these words behind Ethernet's header, to its least length.
fn frame(words: &[u32]) -> Vec<u8> {
    let mut frame = vec![0xFF; 12];
    frame.extend([0x88, 0xF8]);
    frame.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    frame.resize(frame.len().max(60), 0);
    frame
}

/// M616: bit by bit. The sums are made by hand: of the first 0x0001 + 0x0001 = 2, of the second
/// 0x0001 + 0x0002 + 0x011F + 0x0004 + 0x0001 = 0x0127, of the third 0x0001 + 0x0003 + 0x8A00 + 0x0010 + 0x000B = 0x8A1F.
#[test]
fn m616_control_packets_are_as_the_standard_has_them() {
    let clear = packet(1, 0x00, 0, &[]);
    assert_eq!(clear.encode(), frame(&[0x0001_0001, 0, 0, 0, 0xFFFF_FFFE]));
    let select = packet(2, 0x01, 0x1F, &[0, 0, 0, 1]);
    let words = [0x0001_0002, 0x011F_0004, 0, 0, 0x0000_0001, 0xFFFF_FED9];
    assert_eq!(select.encode(), frame(&words));
    let status = packet(3, 0x8A, 0, &[0, 0, 0, 0, 0, 0, 0, 0x0B, 0, 0, 0, 0, 0, 0, 0, 0]);
    let words = [0x0001_0003, 0x8A00_0010, 0, 0, 0, 0x0B, 0, 0, 0xFFFF_75E1];
    assert_eq!(status.encode(), frame(&words));
    for packet in [clear, select, status] {
        let frame = packet.encode();
        assert_eq!(Packet::decode(&frame), Ok(packet.clone()));
        // Without the least length, and without a checksum, which the sender may leave out.
        let end = 30 + packet.payload.len();
        let mut short = frame[..end + 4].to_vec();
        assert_eq!(Packet::decode(&short), Ok(packet.clone()));
        short[end..].fill(0);
        assert_eq!(Packet::decode(&short), Ok(packet));
        short[end + 3] = 9;
        assert!(matches!(Packet::decode(&short), Err(FrameError::Checksum { found: 9, .. })));
        assert!(matches!(Packet::decode(&short[..end + 3]), Err(FrameError::Length(_))));
    }
    let mut other = frame(&[0x0002_0001, 0, 0, 0, 0]);
    assert_eq!(Packet::decode(&other), Err(FrameError::Revision(2)));
    other[13] = 0;
    assert_eq!(Packet::decode(&other), Err(FrameError::Type(0x8800)));
}

proptest! {
    #[test]
    fn m616_packets_come_back_and_no_cut_one_is_taken(
        bytes in any::<[u8; 4]>(),
        payload in prop::collection::vec(any::<u8>(), 0..PAYLOAD_BYTES_MAX),
        cut in any::<prop::sample::Index>(),
        by in 1..=255u8,
    ) {
        let [controller, instance, kind, channel] = bytes;
        let packet = Packet { controller, instance, kind, channel, payload };
        let mut frame = packet.encode();
        prop_assert!(frame.len() <= FRAME_BYTES_MAX);
        prop_assert_eq!(Packet::decode(&frame), Ok(packet.clone()));
        let end = 30 + packet.payload.len().next_multiple_of(4);
        prop_assert!(Packet::decode(&frame[..cut.index(end + 4)]).is_err());
        // Bits that were flipped in a header are found by its sum; with another length there may be zeros in its place,
        // which say that there is none.
        let at = 14 + [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15][cut.index(14)];
        frame[at] ^= by;
        prop_assert!(Packet::decode(&frame).is_err());
    }

    /// Whatever a management controller says: an answer is to its command, and the chip's other registers stay.
    #[test]
    fn m616_whatever_is_said_is_answered_or_not(
        commands in prop::collection::vec(
            (any::<u8>(), 0..32u8, any::<u8>(), prop::collection::vec(any::<u8>(), 0..12)), 0..30,
        ),
    ) {
        let mut registers = RegisterFile::new();
        for (instance, kind, channel, payload) in commands {
            let command = packet(instance, kind, channel, &payload);
            let answer = respond(&mut registers, 1, &command, Link::Up, 1);
            prop_assert_eq!(answer.is_some(), matches!(channel, 0 | 0x1F));
            if let Some(answer) = answer {
                prop_assert_eq!((answer.instance, answer.kind), (instance, kind | 0x80));
                prop_assert_eq!(Packet::decode(&answer.encode()), Ok(answer));
            }
            prop_assert!(!settings(&registers, 1).is_on, "that is the controller's to say");
        }
        registers.set(SIDEBAND_CHANNEL, [1], 0);
        prop_assert!(registers == RegisterFile::new());
    }
}

/// A management controller and its registers.
struct Host {
    registers: RegisterFile,
    instance: u8,
}

impl Host {
    fn new() -> Self {
        let mut registers = RegisterFile::new();
        registers.set(SIDEBAND_ALLOWED, [0], 1);
        Self { registers, instance: 0 }
    }

    /// Response and reason code, and what follows them.
    fn ask(&mut self, kind: u8, payload: &[u8]) -> (u16, u16, Vec<u8>) {
        self.instance += 1;
        let channel = if matches!(kind, 1 | 2) { 0x1F } else { 0 };
        let command = packet(self.instance, kind, channel, payload);
        let answer = respond(&mut self.registers, 0, &command, Link::Up, 7).unwrap();
        assert_eq!((answer.instance, answer.kind), (self.instance, kind | 0x80));
        let &[a, b, c, d, ref rest @ ..] = &answer.payload[..] else { panic!() };
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), rest.to_vec())
    }

    #[track_caller]
    fn does(&mut self, kind: u8, payload: &[u8]) -> Vec<u8> {
        let (response, reason, rest) = self.ask(kind, payload);
        assert_eq!((response, reason), (0, 0), "command {kind:#04x}");
        rest
    }

    fn settings(&self) -> Settings {
        settings(&self.registers, 0)
    }
}

fn set_address(address: EthernetAddress, flags: u8) -> Vec<u8> {
    [&address[..], &[1, flags]].concat()
}

/// M616: a channel is brought up as Linux does it, and each step says so in the chip's register.
#[test]
fn m616_a_channel_comes_up_and_goes_down() {
    let mut host = Host::new();
    // In its initial state a channel does nothing but leave it.
    for kind in [0x03, 0x06, 0x07, 0x0A, 0x15, 0x16] {
        assert_eq!(host.ask(kind, &[]), (1, 1, vec![]));
    }
    host.does(0x01, &[0, 0, 0, 1]);
    host.does(0x00, &[]);
    let version = host.does(0x15, &[]);
    assert_eq!((version.len(), &version[..4]), (36, &[0xF1, 0xF0, 0xF0, 0][..]));
    assert_eq!((&version[8..18], &version[20..24]), (&b"aquila tin"[..], &[0, 0, 0, 7][..]));
    let capabilities = host.does(0x16, &[]);
    assert_eq!(capabilities.len(), 28);
    assert_eq!(capabilities[12..20], [0, 0, 0x40, 0, 0, 0, 0, 1], "16 KiB; one notification");
    assert_eq!(capabilities[20..], [0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(host.does(0x0A, &[])[..4], [0, 0, 0, 0x0B], "up, 100 Mb/s in both directions");
    let is_open = |host: &Host| (host.settings().receives, host.settings().sends);
    host.does(0x0E, &set_address(BMC, 1));
    host.does(0x06, &[]);
    assert_eq!(is_open(&host), (false, true));
    host.does(0x03, &[]);
    let open = Settings { is_on: true, receives: true, sends: true, ethernet: BMC };
    assert_eq!(host.settings(), open);
    // As the controller has it, whatever the channel says.
    host.registers.set(SIDEBAND_ALLOWED, [0], 0);
    assert!(!host.settings().is_on);
    host.registers.set(SIDEBAND_ALLOWED, [0], 1);
    host.does(0x02, &[]);
    assert_eq!(is_open(&host), (false, true), "its package is deselected");
    // A command to a channel selects its package.
    host.does(0x0A, &[]);
    assert_eq!(is_open(&host), (true, true));
    host.does(0x07, &[]);
    host.does(0x04, &[0; 4]);
    assert_eq!(is_open(&host), (false, false));
    host.does(0x03, &[]);
    host.does(0x0E, &set_address(BMC, 0));
    assert_eq!(is_open(&host), (false, false), "without an address nothing is sent to it");
    host.does(0x05, &[0; 4]);
    assert_eq!(host.ask(0x03, &[]), (1, 1, vec![]), "it is as after a cold start");
    assert_eq!(settings(&host.registers, 1), Settings::default(), "the other host's");
}

/// What is none, too long, or nobody's is said to be.
#[test]
fn m616_commands_that_cannot_be_done_say_why() {
    let mut host = Host::new();
    // Set VLAN Filter, Enable Broadcast Filter, OEM command: unsupported, in any state.
    for kind in [0x0B, 0x10, 0x50, 0x7F] {
        assert_eq!(host.ask(kind, &[0; 4]), (3, 0x7FFF, vec![]));
    }
    host.does(0x00, &[]);
    for (kind, payload) in [(0x00, 1), (0x01, 0), (0x02, 4), (0x03, 4), (0x08, 4), (0x0E, 7)] {
        assert_eq!(host.ask(kind, &vec![0; payload]), (1, 5, vec![]), "{kind:#04x}");
    }
    let multicast = [3, 0, 0, 0, 0, 1];
    for (address, flags) in [([0; 6], 1), (multicast, 1), (BMC, 1 << 5 | 1)] {
        assert_eq!(host.ask(0x0E, &set_address(address, flags)), (1, 2, vec![]));
    }
    let registers = &mut host.registers;
    // The package is asked for what its channel does, and the other way round.
    for (kind, channel, payload) in [(0x03, 0x1F, &[][..]), (0x01, 0, &[0; 4])] {
        let command = packet(9, kind, channel, payload);
        let answer = respond(registers, 0, &command, Link::Up, 7).unwrap();
        assert_eq!(answer.payload, [0, 1, 0, 2]);
    }
    // Other packages and channels are not here, and what is no command is not answered.
    for (kind, channel) in [(0, 0x20), (0, 1), (1, 0x3F), (0x80, 0), (0xFF, 0)] {
        assert_eq!(respond(registers, 0, &packet(9, kind, channel, &[]), Link::Up, 7), None);
    }
}

/// Whoever has asked for it hears of the link, and nobody else.
#[test]
fn m616_a_change_of_the_link_is_told_to_whoever_asked() {
    let mut host = Host::new();
    host.does(0x00, &[]);
    assert_eq!(notify(&host.registers, 0, Link::Down), None);
    host.does(0x08, &[0, 0, 0, CONTROLLER, 0, 0, 0, 1]);
    let notice = notify(&host.registers, 0, Link::Down).unwrap();
    let payload = vec![0; 12];
    let expected = Packet { controller: CONTROLLER, instance: 0, kind: 0xFF, channel: 0, payload };
    assert_eq!(notice, expected);
    assert_eq!(notify(&host.registers, 0, Link::Up).unwrap().payload[4..8], [0, 0, 0, 0x0B]);
    assert_eq!(notify(&host.registers, 1, Link::Up), None);
    host.does(0x08, &[0, 0, 0, CONTROLLER, 0, 0, 0, 0]);
    assert_eq!(notify(&host.registers, 0, Link::Up), None);
}

#[test]
fn m616_a_chip_that_starts_cold_has_no_sideband() {
    let ethernet = Plan::new(&Shape::TINY, 2).ethernet(0, aquila::pipeline::Interface::Control);
    let mut chip = Chip::new(ethernet, 1);
    for host in [0, 1] {
        chip.registers.set(SIDEBAND_ALLOWED, [host], 1);
        chip.registers.set(SIDEBAND_CHANNEL, [host], u64::MAX);
    }
    let chip = chip.cold(2);
    for host in [0, 1] {
        assert_eq!(settings(&chip.registers, host), Settings::default());
    }
}
