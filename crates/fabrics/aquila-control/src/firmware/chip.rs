//! What the chip keeps, whatever becomes of its processor.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aquila::pipeline::plan::EthernetAddress;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::flash::Flash;
use crate::registers::file::RegisterFile;
use crate::registers::map::{ID_DESCRIPTION, ID_ETHERNET, LINK_STATE};
use crate::session::Addresses;

/// Ports that registers have.
pub const PORTS: u8 = 64;

/// The port of registers that stands for the Ethernet port (our choice): the last, which no Clique has in use.
pub const ETHERNET_PORT: u8 = PORTS - 1;

/// How far a port's link is (M215).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum LinkState {
    /// Nothing is heard.
    Down = 0,
    /// The port tries.
    Training = 1,
    /// Words are told apart: ordered sets go and come, and so PMOS does.
    Locked = 2,
    /// Cells, too.
    Up = 3,
}

/// A chip: its registers, the rule by which packets reach the control processor, and that processor's flash.
#[derive(Clone, Debug)]
pub struct Chip {
    /// All that the controller can see.
    pub registers: RegisterFile,
    /// Packets to these addresses go to the control processor (M615, M808): a rule of the firmware's own. It is not among
    /// the registers, as the controller has no business there.
    pub trap: Option<Addresses>,
    /// Another number at each cold start.
    pub start: u32,
    /// Images of firmware, which outlive its power (M617).
    pub flash: Flash,
}

impl Chip {
    /// A chip after a cold start, with its own Ethernet address and the number of that start.
    #[must_use]
    pub fn new(ethernet: EthernetAddress, start: u32) -> Self {
        let mut registers = RegisterFile::new();
        let [a, b, c, d, e, f] = ethernet;
        registers.set(ID_ETHERNET, [], u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
        Self { registers, trap: None, start, flash: Flash::default() }
    }

    /// The same after another cold start, of this number: it holds nothing but its firmware.
    #[must_use]
    pub fn cold(self, start: u32) -> Self {
        let mut chip = Self::new(self.ethernet(), start);
        chip.registers.set(ID_DESCRIPTION, [], self.generation().into());
        Self { flash: self.flash, ..chip }
    }

    /// The same of another generation, with its own firmware.
    #[must_use]
    pub fn of_generation(mut self, generation: u8) -> Self {
        self.registers.set(ID_DESCRIPTION, [], generation.into());
        Self { flash: Flash::new(generation), ..self }
    }

    /// Whether a packet to this address goes to the control processor.
    #[must_use]
    pub fn traps(&self, to: IpAddr) -> bool {
        self.trap.is_some_and(|own| own.contains(to))
    }

    /// Which generation it is: the version of the register description that it was built to (§6).
    #[must_use]
    pub fn generation(&self) -> u8 {
        self.registers.get(ID_DESCRIPTION, []) as u8
    }

    /// A chip that has been on for a while, in the cold start of this number, and holds something.
    #[must_use]
    pub fn holding(ethernet: EthernetAddress, start: u32, held: RegisterFile) -> Self {
        let mut chip = Self::new(ethernet, start);
        let own = chip.registers.get(ID_ETHERNET, []);
        chip.registers = held;
        chip.registers.set(ID_ETHERNET, [], own);
        chip
    }

    /// Its Ethernet address.
    #[must_use]
    pub fn ethernet(&self) -> EthernetAddress {
        let [_, _, ethernet @ ..] = self.registers.get(ID_ETHERNET, []).to_be_bytes();
        ethernet
    }

    /// A bit for each port that is up.
    #[must_use]
    pub fn links(&self) -> u64 {
        let is_up =
            |&port: &u8| self.registers.get(LINK_STATE, [port.into()]) == LinkState::Up as u8;
        (0..PORTS).filter(is_up).fold(0, |mask, port| mask | 1 << port)
    }
}

/// The prefix in an entry that begins with an address of 16 bytes (IPv4: the first four), its length and the version of
/// IP; `None`: it is empty, or none.
#[must_use]
pub fn prefix(entry: &[u8; 32]) -> Option<IpNet> {
    let (&address, rest) = entry.split_first_chunk::<16>()?;
    match (rest[1], address) {
        (4, [a, b, c, d, ..]) => {
            Ipv4Net::new(Ipv4Addr::new(a, b, c, d), rest[0]).ok().map(IpNet::V4)
        }
        (6, address) => Ipv6Net::new(Ipv6Addr::from(address), rest[0]).ok().map(IpNet::V6),
        _ => None,
    }
}

/// The beginning of such an entry.
#[must_use]
pub fn prefix_entry(prefix: IpNet) -> [u8; 32] {
    let mut entry = [0; 32];
    match prefix.addr() {
        IpAddr::V4(address) => entry[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => entry[..16].copy_from_slice(&address.octets()),
    }
    entry[16] = prefix.prefix_len();
    entry[17] = if prefix.addr().is_ipv4() { 4 } else { 6 };
    entry
}
