//! Where a packet goes, by what chips hold.
//!
//! A packet of the control plane crosses the Clique as any other: each chip on the way looks up its own registers. What
//! they do not say goes nowhere.

use std::net::IpAddr;

use aquila::address::{Address, Endpoint};
use aquila::pipeline::routes::place;
use aquila::tables::{NONE, ROUTING_VCS, next_rvc};
use aquila::topology::{PortKind, Shape, Topology};

use crate::firmware::chip::{Chip, prefix};
use crate::registers::file::RegisterFile;
use crate::registers::map::{
    ESCAPE_DOWN, ESCAPE_PORT, GROUP_SIZE, GROUP_SLOT, ID_GNET, INDEXED_MEMBER, INDEXED_SUBNET,
    IP_FLOW, ROUTE, TERMINAL, TRANSIT_ALLOWED,
};

/// What an entry of `ip.flow` leads to, in its byte 24 (our choice).
const TO_ADDRESS: u8 = 1;
const TO_GROUP: u8 = 2;
const TO_INDEXED: u8 = 3;
/// Entries of `ip.flow` that are looked at (our choice): the first, which is more than lead to the controller.
const FLOWS_MAX: u32 = 64;
/// Most links of a way: what is longer goes in circles.
pub const HOPS_MAX: usize = 24;

/// Why a packet was lost on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Lost {
    /// No TiN takes it in, or it is nobody's address.
    NoEntrance,
    /// The chip where it came in has no route for its address.
    NoFlow,
    /// A chip on the way has no port for it.
    NoRoute,
    /// It went to a link or a chip that is dead.
    Dead,
    /// It went in circles.
    Circle,
    /// The chip at the end has nobody for it.
    Nobody,
    /// A chip on the way lets nothing pass yet (M815).
    Transit,
}

impl Lost {
    /// All of them, by number.
    pub const ALL: [Self; 7] = [
        Self::NoEntrance,
        Self::NoFlow,
        Self::NoRoute,
        Self::Dead,
        Self::Circle,
        Self::Nobody,
        Self::Transit,
    ];

    /// For people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoEntrance => "No TiN takes it in",
            Self::NoFlow => "No route for its address where it came in",
            Self::NoRoute => "No port for it on the way",
            Self::Dead => "Sent to a dead link or chip",
            Self::Circle => "Went in circles",
            Self::Nobody => "Nobody for it at the end",
            Self::Transit => "A chip lets nothing pass yet",
        }
    }
}

/// The GNet address that a chip has for an address: of its longest prefix. `hash`: of the flow (M408).
pub fn flow(chip: &Chip, to: IpAddr, hash: u64) -> Option<Address> {
    let entries = (0..FLOWS_MAX).map(|at| chip.registers.get(IP_FLOW, [at]));
    let entries =
        entries.filter_map(|entry: [u8; 32]| prefix(&entry).map(|prefix| (prefix, entry)));
    let fits = entries.filter(|(prefix, _)| prefix.contains(&to));
    let (_, entry) = fits.max_by_key(|(prefix, _)| prefix.prefix_len())?;
    let target = u16::from_be_bytes([entry[20], entry[21]]);
    match entry[18] {
        TO_ADDRESS => Some(Address::from_bits(target)),
        TO_GROUP => {
            let [groups, slots] = *GROUP_SLOT.register().dimensions else { return None };
            let group = Some(u32::from(target)).filter(|&group| group < groups)?;
            let size = u64::from(chip.registers.get(GROUP_SIZE, [group])).min(slots.into());
            let slot = hash.checked_rem(size)? as u32;
            Some(Address::from_bits(chip.registers.get(GROUP_SLOT, [group, slot])))
        }
        TO_INDEXED => {
            let [groups, members] = *INDEXED_MEMBER.register().dimensions else { return None };
            let group = Some(u32::from(target)).filter(|&group| group < groups)?;
            let subnet: [u8; 32] = chip.registers.get(INDEXED_SUBNET, [group]);
            let place = place(prefix(&subnet)?.network(), to)?;
            let place = u32::try_from(place).ok().filter(|&place| place < members)?;
            let member = chip.registers.get(INDEXED_MEMBER, [group, place]);
            (member != u16::MAX).then(|| Address::from_bits(member))
        }
        _ => None,
    }
}

/// Of the addresses and ports of a packet: a flow goes one way (M408).
#[must_use]
pub fn hash(packet: &[u8]) -> u64 {
    // With the ports, which follow at once.
    let fields = if packet.first().is_some_and(|first| first >> 4 == 6) { 8..44 } else { 12..24 };
    packet.get(fields).map_or(0, |bytes| u64::from(crc32fast::hash(bytes)))
}

/// A packet of the control plane on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Travel {
    /// To where.
    pub to: Address,
    /// Of its flow.
    pub hash: u64,
    /// Its routing channel.
    pub rvc: u8,
    /// On the escape channels: whether it has come down.
    pub escapes: Option<bool>,
}

impl Travel {
    /// One that begins.
    #[must_use]
    pub const fn new(to: Address, hash: u64) -> Self {
        Self { to, hash, rvc: 0, escapes: None }
    }

    /// The port by which a chip sends on what has come in at another; `None`: it is for the chip itself.
    ///
    /// # Errors
    /// Why it goes nowhere.
    pub fn hop(
        &mut self,
        shape: &Shape,
        registers: &RegisterFile,
        port: u8,
    ) -> Result<Option<u8>, Lost> {
        let Self { to, hash, .. } = *self;
        let own = registers.get(ID_GNET, []);
        if own == u16::MAX {
            return Err(Lost::NoRoute);
        }
        let own = Address::from_bits(own);
        if (own.pod(), own.tin()) == (to.pod(), to.tin()) {
            let terminal = registers.get(TERMINAL, [to.endpoint().number().into()]);
            return if terminal == u64::MAX { Err(Lost::Nobody) } else { Ok(None) };
        }
        if port < shape.external_ports() && registers.get(TRANSIT_ALLOWED, []) & 1 == 0 {
            return Err(Lost::Transit);
        }
        let place = if own.pod() == to.pod() { 64 + to.tin() } else { to.pod() };
        let row = match self.escapes {
            None if self.rvc < ROUTING_VCS => {
                registers.get(ROUTE, [port.into(), self.rvc.into(), place.into()])
            }
            _ => [NONE; 32],
        };
        let slots = [row[(hash % 8) as usize], row[8 + (hash % 24) as usize]];
        let mut output = slots.into_iter().find(|&slot| slot != NONE).unwrap_or(NONE);
        if output == NONE {
            // No legal way is left: by the escape channels, on which it stays.
            let has_come_down = self.escapes.unwrap_or(false);
            let number = u32::from(to.pod() << 4 | to.tin());
            output = registers.get(ESCAPE_PORT, [has_come_down.into(), number]);
            if output == NONE {
                return Err(Lost::NoRoute);
            }
            let goes_down = registers.get(ESCAPE_DOWN, []).checked_shr(output.into()).unwrap_or(0);
            self.escapes = Some(has_come_down || goes_down & 1 == 1);
        }
        if output >= shape.external_ports() {
            return Err(Lost::NoRoute);
        }
        let from_kind =
            if port < shape.external_ports() { shape.kind(port) } else { PortKind::Terminal };
        self.rvc = next_rvc(from_kind, shape.kind(output), self.rvc);
        Ok(Some(output))
    }
}

/// Follows a packet from an endpoint of a TiN; the TiNs that it passes, the last one included. `crosses` says whether the
/// link at a port of a TiN carries anything.
///
/// # Errors
/// Where it is lost.
pub fn follow(
    topology: &Topology,
    chips: &[Chip],
    (from, by): (u16, Endpoint),
    (to, hash): (Address, u64),
    crosses: impl Fn(u16, u8) -> bool,
) -> Result<Vec<u16>, Lost> {
    let shape = topology.shape();
    let (first, _) = by.terminals().ok_or(Lost::NoRoute)?;
    let (mut tin, mut port) = (from, shape.external_ports() + first);
    let mut travel = Travel::new(to, hash);
    let mut passed = vec![from];
    loop {
        let registers = &chips[usize::from(tin)].registers;
        let Some(output) = travel.hop(shape, registers, port)? else { return Ok(passed) };
        let Some(far) = topology.far(tin, output).filter(|_| crosses(tin, output)) else {
            return Err(Lost::Dead);
        };
        (tin, port) = (far.tin, far.port);
        passed.push(tin);
        if passed.len() > HOPS_MAX {
            return Err(Lost::Circle);
        }
    }
}
