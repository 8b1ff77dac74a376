//! The management sideband of a host: past the host, to the controller by which the machine is managed.
//!
//! Models: Aquila App. A (M616): signals beside those of PCIe, in the same cable, carry the machine's independent management
//! interface from its TiN to the server's NC-SI port, so that racks and machines are managed through the Clique, too. The
//! TiN is what DMTF DSP0222 calls a network controller: a port of RMII, 100 Mb/s, to the management controller (BMC), which has
//! its own power and does not need the host. Where a packet leaves for a host, a filter takes out what is for
//! its management controller; what that one sends enters input processing as what its host sends, and is routed by the
//! same tables.
//!
//! **Our choice**: the management controller has its host's addresses, so that a Clique has no more flows than §4.2 counts,
//! and is told apart by the ports of RMCP and secure RMCP (DMTF DSP0136 §3.2, IPMI), for which network controllers have
//! filters; [`BUFFER_BYTES`]; off until the controller turns it on.
//!
//! Leaves out: later fragments, which have no ports and go to the host; and filters for broadcasts: who has an address is
//! answered by the TiN (M612), and DHCP is not for hosts.

use std::collections::VecDeque;

use kernel::{Span, Time};
use packets::wire::UDP;

use super::fields;
use super::plan::EthernetAddress;
use super::rewrite::frame;

/// UDP ports of RMCP and secure RMCP (IANA: asf-rmcp, asf-secure-rmcp).
pub const PORTS: [u16; 2] = [623, 664];
/// The type of NC-SI's control packets (DSP0222 §8.1.2).
pub const NC_SI: u16 = 0x88F8;
/// What waits for the sideband of a host at most (our choice: ten of the largest frames, 1.3 ms). Unit: bytes.
pub const BUFFER_BYTES: u64 = 16 << 10;
/// Of a byte on RMII, at 100 Mb/s. Unit: ps.
const BYTE_PS: u64 = 80_000;
/// Of a frame on the wire beside its own bytes: preamble 8, check sequence 4, gap 12 (IEEE 802.3). Unit: bytes.
const FRAMING_BYTES: u64 = 24;
/// Longest frame without its check sequence, with a tag (IEEE 802.3). Unit: bytes.
const FRAME_BYTES_MAX: usize = 1_518;

/// What the chip's registers say of a host's sideband.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The controller wants it.
    pub is_on: bool,
    /// The management controller's channel is enabled: it takes packets.
    pub receives: bool,
    /// Its channel may send to the network.
    pub sends: bool,
    /// Its Ethernet address.
    pub ethernet: EthernetAddress,
}

/// What the host is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// It runs.
    Runs,
    /// It dwells in a low-power state (§5.2), and wakes for what comes by its network interface.
    Dwells,
    /// It has no power.
    Off,
}

/// Where a packet for a host leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// By the host's network interface.
    Host,
    /// By the sideband, past the host.
    Management,
    /// Nowhere: the host is off, or the sideband has no room.
    Nobody,
}

/// Where a frame from the management controller goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// It is a control packet of NC-SI, for the control processor's responder.
    Control,
    /// It enters input processing, as if its host had sent it.
    Pipeline,
    /// Nowhere: the sideband is off, or does not let it pass.
    Nobody,
}

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets to the management controller.
    pub received: u64,
    /// Those that had no room.
    pub dropped: u64,
    /// Packets for a host that was off.
    pub to_nobody: u64,
    /// Frames of the management controller that entered input processing.
    pub sent: u64,
    /// Those that were not let in.
    pub refused: u64,
}

/// The output to a host, with its sideband.
#[derive(Clone, Debug, Default)]
pub struct Sideband {
    settings: Settings,
    /// Frames on their way, and when their last bit has gone.
    queue: VecDeque<(Time, Vec<u8>)>,
    free_at: Time,
    counts: Counts,
}

impl Sideband {
    /// The registers say this now. What is on its way still arrives.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// What has happened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A packet for a host leaves the TiN of this Ethernet address, from its header of IP on. `host`: what it is doing, which
    /// makes no difference to its management controller.
    pub fn leave(&mut self, now: Time, own: EthernetAddress, packet: &[u8], host: Host) -> To {
        let Settings { is_on, receives, ethernet, .. } = self.settings;
        let framed = if is_on && receives { frame(ethernet, own, packet) } else { None };
        if let Some(frame) = framed.filter(|frame| is_for_management(frame)) {
            return self.enqueue(now, frame);
        }
        if host == Host::Off {
            self.counts.to_nobody += 1;
            return To::Nobody;
        }
        To::Host
    }

    fn enqueue(&mut self, now: Time, frame: Vec<u8>) -> To {
        let bytes = frame.len() as u64 + FRAMING_BYTES;
        let begin = self.free_at.max(now);
        let waiting = (begin - now).as_ps().div_ceil(BYTE_PS);
        if waiting + bytes > BUFFER_BYTES {
            self.counts.dropped += 1;
            return To::Nobody;
        }
        self.counts.received += 1;
        self.free_at = begin + Span::from_ps(bytes * BYTE_PS);
        self.queue.push_back((self.free_at, frame));
        To::Management
    }

    /// The next frame that has come to the management controller by now, and when.
    pub fn take(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        let is_there = self.queue.front().is_some_and(|(at, _)| *at <= now);
        if is_there { self.queue.pop_front() } else { None }
    }

    /// A frame of the management controller has come.
    pub fn enter(&mut self, frame: &[u8]) -> From {
        let Settings { is_on, sends, ethernet, .. } = self.settings;
        let is_frame = (14..=FRAME_BYTES_MAX).contains(&frame.len());
        let is_control = is_frame && frame[12..14] == NC_SI.to_be_bytes();
        if is_on && is_control {
            return From::Control;
        }
        if is_on && sends && is_frame && !is_control && frame[6..12] == ethernet {
            self.counts.sent += 1;
            return From::Pipeline;
        }
        self.counts.refused += 1;
        From::Nobody
    }
}

/// Whether a frame holds a packet of RMCP.
fn is_for_management(frame: &[u8]) -> bool {
    let ip = fields::parse(frame).ok().and_then(|fields| fields.ip);
    ip.is_some_and(|ip| ip.protocol == UDP && ip.ports.is_some_and(|(_, to)| PORTS.contains(&to)))
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    const OWN: EthernetAddress = [2, 0, 0, 0, 0, 1];
    const BMC: EthernetAddress = [2, 0, 0, 0, 0, 2];
    const ON: Settings = Settings { is_on: true, receives: true, sends: true, ethernet: BMC };

    fn packet(protocol: u8, port: u16, bytes: usize) -> Vec<u8> {
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
        let (mut packet, payload) = (Vec::new(), vec![0; bytes]);
        match protocol {
            UDP => builder.udp(4_000, port).write(&mut packet, &payload),
            _ => builder.tcp(4_000, port, 1, 1).write(&mut packet, &payload),
        }
        .unwrap();
        packet
    }

    fn sideband(settings: Settings) -> Sideband {
        let mut sideband = Sideband::default();
        sideband.set(settings);
        sideband
    }

    /// M616: RMCP goes to the management controller and nothing else does; whatever the host is doing.
    #[test]
    fn m616_the_filter_takes_rmcp_and_nothing_else() {
        let closed = [
            Settings::default(),
            Settings { is_on: false, ..ON },
            Settings { receives: false, ..ON },
        ];
        for (host, other) in
            [(Host::Runs, To::Host), (Host::Dwells, To::Host), (Host::Off, To::Nobody)]
        {
            for port in [622, 623, 624, 663, 664, 665] {
                let is_rmcp = port == 623 || port == 664;
                let to = if is_rmcp { To::Management } else { other };
                let udp = packet(UDP, port, 8);
                assert_eq!(sideband(ON).leave(Time::ZERO, OWN, &udp, host), to, "{port}");
                let tcp = packet(6, port, 8);
                assert_eq!(sideband(ON).leave(Time::ZERO, OWN, &tcp, host), other);
                for settings in closed {
                    let to = sideband(settings).leave(Time::ZERO, OWN, &udp, host);
                    assert_eq!(to, other, "{settings:?}");
                }
            }
            // A later fragment, and what is no packet, are not its own.
            let mut fragment = packet(UDP, 623, 64);
            fragment[6..8].copy_from_slice(&[0, 1]);
            let sum = packets::wire::checksum([&fragment[..10], &fragment[12..20]]);
            fragment[10..12].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(sideband(ON).leave(Time::ZERO, OWN, &fragment, host), other);
            assert_eq!(sideband(ON).leave(Time::ZERO, OWN, &[0x45], host), other);
        }
    }

    /// 100 Mb/s, and no more waits than the buffer has room for.
    #[test]
    fn m616_the_sideband_is_slow_and_its_buffer_bounded() {
        let mut sideband = sideband(ON);
        // 28 bytes of headers, 14 of Ethernet, 24 of the wire: 1,000 bytes in all.
        let packet = packet(UDP, 623, 934);
        let to: Vec<To> =
            (0..20).map(|_| sideband.leave(Time::ZERO, OWN, &packet, Host::Off)).collect();
        assert_eq!(to[..16], [To::Management; 16]);
        assert_eq!(to[16..], [To::Nobody; 4]);
        let counts = Counts { received: 16, dropped: 4, ..Counts::default() };
        assert_eq!(sideband.counts(), counts);
        for number in 1..=16 {
            let at = Time::ZERO + Span::from_us(80 * number);
            assert_eq!(sideband.take(at - Span::from_ps(1)), None);
            let (gone, frame) = sideband.take(at).unwrap();
            assert_eq!((gone, frame.len()), (at, 976));
            assert_eq!((&frame[..6], &frame[6..12]), (&BMC[..], &OWN[..]));
            assert_eq!(frame[14..], packet[..]);
        }
        // What has gone makes room.
        let now = Time::ZERO + Span::from_us(1_280);
        assert_eq!(sideband.leave(now, OWN, &packet, Host::Off), To::Management);
    }

    /// What the management controller sends is its own, or refused.
    #[test]
    fn m616_frames_of_the_management_controller_enter_if_its_channel_is_open() {
        let mut own = [&OWN[..], &BMC, &[8, 0], &packet(UDP, 9, 8)].concat();
        let control = [&[0xFF; 12][..], &[0x88, 0xF8], &[0; 46]].concat();
        let rows: [(Settings, From, From); 4] = [
            (ON, From::Pipeline, From::Control),
            (Settings { sends: false, ..ON }, From::Nobody, From::Control),
            (Settings { is_on: false, ..ON }, From::Nobody, From::Nobody),
            (Settings::default(), From::Nobody, From::Nobody),
        ];
        for (settings, of_own, of_control) in rows {
            let mut sideband = sideband(settings);
            assert_eq!([sideband.enter(&own), sideband.enter(&control)], [of_own, of_control]);
            assert_eq!(sideband.enter(&own[..13]), From::Nobody);
            assert_eq!(sideband.enter(&[0; 1_519]), From::Nobody);
        }
        own[7] ^= 1;
        assert_eq!(sideband(ON).enter(&own), From::Nobody, "another's address");
    }
}
