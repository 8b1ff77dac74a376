//! Rows of the base that applications share, as bytes and back.
//!
//! Models: Aquila §4.1, §4.2 (M702, M722, M724, M731). **Our choice**: every byte. Numbers are big-endian.
//!
//! | table | key | value |
//! | --- | --- | --- |
//! | Node | TiN 2 | what the operator wants: 0 in service, 1 drained, 2 off |
//! | Node | TiN 2, a one | 1: it is drained, and may be taken out |
//! | Port | TiN 2 | 8 bytes, a bit for each port that is up; no row: all are |
//! | Link | link 4 | 0 in service, 1 drained, 2 down |
//! | Link | link 4, a one | 1: it is drained, and may be taken out |
//! | TinSession | TiN 2 | up 1, ready 1, over 1, zero 1, boot 4 |
//! | PortClass | TiN 2 | by port: class 1, or ones |
//! | GnetFlow | TiN 2, class 1, channel 1 | by component: 8 bytes of shortest ways, 8 of others |
//! | GnetFlow | TiN 2, ones 2 | escape: order 4, ports that lead down 8, ports by whether it has come down and TiN |
//! | IpFlow | TiN 2, version 1, prefix 1, address 16 | index 2, what it leads to 1, target 2 |
//! | Group | TiN 2, number 2 | by member: address 2, weight 4 |
//! | IndexedGroup | TiN 2, number 2 | version 1, prefix 1, address 16; by member: address 2, ones: nobody |
//! | ProgrammingResult | table 1, key of the row | version 8, outcome 1 |
//! | ExternalReachability | shard 1, version 1, prefix 1, address 16 | version 8; by member: TiN 2, weight 4 |
//! | Batch | nothing | number 8, is done 1, failed 4, held back 4, unreachable 4 |
//! | Firmware | see [`super::front_end::upgrade`] | |
//! | Lease | application 1 | term 8, holder 1, renewals 8 |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aquila::address::Address;
use aquila::pipeline::routes::Next;
use aquila::tables::flows::Flow;
use ipnet::IpNet;

use crate::nib::{Change, Key, Nib, Table};

/// In the place of a class: nothing comes in there; of class and channel: the row of the escape channels.
pub const NONE: u8 = u8::MAX;
/// The bit of a TiN's Ethernet port in its Port row.
pub const ETHERNET_PORT: u8 = crate::firmware::chip::ETHERNET_PORT;
/// Ports of a PortClass row.
pub const PORTS: usize = 64;

/// What the operator wants of a TiN or link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Admin {
    /// It is to be used.
    #[default]
    InService = 0,
    /// It is to carry nothing, so that it can be taken out (M730).
    Drained = 1,
    /// It is out.
    Off = 2,
}

impl Admin {
    /// From a row's value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        match value {
            [0] => Some(Self::InService),
            [1] => Some(Self::Drained),
            [2] => Some(Self::Off),
            _ => None,
        }
    }
}

/// A TinSession row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionRow {
    /// Whether there is a session.
    pub is_up: bool,
    /// Whether its registers have equalled what was wanted of it since its chip started (M813: READY).
    pub is_ready: bool,
    /// Whether it is reached over the bootstrap channel.
    pub is_over_pmos: bool,
    /// How often its chip has started.
    pub boot: u32,
}

impl SessionRow {
    /// As a row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let flags = [self.is_up, self.is_ready, self.is_over_pmos].map(u8::from);
        [&flags[..], &[0], &self.boot.to_be_bytes()].concat()
    }

    /// From a row's value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let &[up @ 0..=1, ready @ 0..=1, over @ 0..=1, 0, a, b, c, d] = value else { return None };
        let boot = u32::from_be_bytes([a, b, c, d]);
        Some(Self { is_up: up == 1, is_ready: ready == 1, is_over_pmos: over == 1, boot })
    }

    /// That of each TiN that has one.
    #[must_use]
    pub fn all(base: &Nib) -> Vec<(u16, Self)> {
        let row = |change: Change| {
            let tin = u16::from_be_bytes(change.key.1.try_into().ok()?);
            Some((tin, Self::decode(&change.value?)?))
        };
        base.since(0, &[Table::TinSession]).changes.into_iter().filter_map(row).collect()
    }
}

/// The routes of the escape channels at a TiN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EscapeRow {
    /// Its place in the tree; all ones: none.
    pub order: u32,
    /// A bit for each port that leads down.
    pub down: u64,
    /// By whether the cell has come down, and TiN.
    pub ports: Vec<u8>,
}

impl EscapeRow {
    /// As a row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.order.to_be_bytes()[..], &self.down.to_be_bytes(), &self.ports].concat()
    }

    /// From a row's value, in a Clique of so many TiNs.
    #[must_use]
    pub fn decode(value: &[u8], tins: u16) -> Option<Self> {
        let (order, rest) = value.split_first_chunk::<4>()?;
        let (down, ports) = rest.split_first_chunk::<8>()?;
        let (order, down) = (u32::from_be_bytes(*order), u64::from_be_bytes(*down));
        let has_all = ports.len() == 2 * usize::from(tins);
        let are_ports = ports.iter().all(|&port| port == NONE || usize::from(port) < PORTS);
        (has_all && are_ports).then(|| Self { order, down, ports: ports.to_vec() })
    }
}

/// The flows of a class and channel as a row's value.
#[must_use]
pub fn encode_flows(flows: &[Flow]) -> Vec<u8> {
    let bytes = |flow: &Flow| [flow.minimal.to_be_bytes(), flow.others.to_be_bytes()].concat();
    flows.iter().flat_map(bytes).collect()
}

/// From a row's value, in a Clique of so many components.
#[must_use]
pub fn decode_flows(value: &[u8], components: u16) -> Option<Vec<Flow>> {
    let (words, rest) = value.as_chunks::<8>();
    let (pairs, odd) = words.as_chunks::<2>();
    let is_whole = rest.is_empty() && odd.is_empty() && pairs.len() == usize::from(components);
    let flow = |&[minimal, others]: &[[u8; 8]; 2]| Flow {
        minimal: u64::from_be_bytes(minimal),
        others: u64::from_be_bytes(others),
    };
    is_whole.then(|| pairs.iter().map(flow).collect())
}

/// A prefix in 18 bytes: version, length, address from its first byte on.
#[must_use]
pub fn encode_prefix(prefix: IpNet) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[1] = prefix.prefix_len();
    match prefix.network() {
        IpAddr::V4(address) => {
            bytes[0] = 4;
            bytes[2..6].copy_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            bytes[0] = 6;
            bytes[2..].copy_from_slice(&address.octets());
        }
    }
    bytes
}

/// From 18 bytes; `None`: it is no prefix, or has bits behind its length.
#[must_use]
pub fn decode_prefix(bytes: &[u8]) -> Option<IpNet> {
    let (&[version, length], address) = bytes.split_first_chunk::<2>()?;
    let address: [u8; 16] = address.try_into().ok()?;
    let prefix = match version {
        4 => {
            let (four, zeros) = address.split_first_chunk::<4>()?;
            if zeros.iter().any(|&byte| byte != 0) {
                return None;
            }
            IpNet::new(Ipv4Addr::from(*four).into(), length).ok()?
        }
        6 => IpNet::new(Ipv6Addr::from(address).into(), length).ok()?,
        _ => return None,
    };
    (prefix.trunc() == prefix).then_some(prefix)
}

/// A flow of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpFlow {
    /// Its entry of the chip's table.
    pub index: u16,
    /// What it leads to.
    pub next: Next,
}

/// What a prefix leads to, as a number and a target.
#[must_use]
pub fn encode_next(next: Next) -> (u8, u16) {
    match next {
        Next::Address(address) => (1, address.bits()),
        Next::Group(number) => (2, number),
        Next::Indexed(number) => (3, number),
        Next::Punt => (4, 0),
        Next::Drop => (5, 0),
    }
}

/// From a number and a target.
#[must_use]
pub fn decode_next(kind: u8, target: u16) -> Option<Next> {
    match (kind, target) {
        (1, bits) => Some(Next::Address(Address::from_bits(bits))),
        (2, number) => Some(Next::Group(number)),
        (3, number) => Some(Next::Indexed(number)),
        (4, 0) => Some(Next::Punt),
        (5, 0) => Some(Next::Drop),
        _ => None,
    }
}

impl IpFlow {
    /// As a row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, target) = encode_next(self.next);
        [&self.index.to_be_bytes()[..], &[kind], &target.to_be_bytes()].concat()
    }

    /// From a row's value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let &[a, b, kind, c, d] = value else { return None };
        let next = decode_next(kind, u16::from_be_bytes([c, d]))?;
        Some(Self { index: u16::from_be_bytes([a, b]), next })
    }
}

/// Members with weights: six bytes each.
#[must_use]
pub fn encode_members(members: &[(u16, u32)]) -> Vec<u8> {
    let bytes = |&(member, weight): &(u16, u32)| {
        [&member.to_be_bytes()[..], &weight.to_be_bytes()].concat()
    };
    members.iter().flat_map(bytes).collect()
}

/// From six bytes each.
#[must_use]
pub fn decode_members(bytes: &[u8]) -> Option<Vec<(u16, u32)>> {
    let (members, rest) = bytes.as_chunks::<6>();
    let member = |&[a, b, c, d, e, f]: &[u8; 6]| {
        (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
    };
    rest.is_empty().then(|| members.iter().map(member).collect())
}

/// An indexed group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexedRow {
    /// Its subnet.
    pub subnet: IpNet,
    /// By place in the subnet.
    pub members: Vec<Option<Address>>,
}

impl IndexedRow {
    /// As a row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let bits = |member: &Option<Address>| {
            member.map_or(u16::MAX, |address| address.bits()).to_be_bytes()
        };
        let mut bytes = encode_prefix(self.subnet).to_vec();
        bytes.extend(self.members.iter().flat_map(bits));
        bytes
    }

    /// From a row's value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (subnet, members) = value.split_first_chunk::<18>()?;
        let (members, rest) = members.as_chunks::<2>();
        let member = |&bytes: &[u8; 2]| match u16::from_be_bytes(bytes) {
            u16::MAX => None,
            bits => Some(Address::from_bits(bits)),
        };
        let subnet = decode_prefix(subnet)?;
        rest.is_empty().then(|| Self { subnet, members: members.iter().map(member).collect() })
    }
}

/// What became of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Outcome {
    /// The chip holds it.
    Done = 0,
    /// The chip, or the front end, cannot hold it.
    Failed = 1,
    /// The group that it leads to is not there (I70).
    HeldBack = 2,
    /// Nobody knows: the TiN has not answered.
    Unreachable = 3,
}

/// A ProgrammingResult row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultRow {
    /// Of the row that was to be programmed.
    pub version: u64,
    /// What became of it.
    pub outcome: Outcome,
}

impl ResultRow {
    /// As a row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.version.to_be_bytes()[..], &[self.outcome as u8]].concat()
    }

    /// From a row's value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (version, outcome) = value.split_first_chunk::<8>()?;
        let outcome = match outcome {
            [0] => Outcome::Done,
            [1] => Outcome::Failed,
            [2] => Outcome::HeldBack,
            [3] => Outcome::Unreachable,
            _ => return None,
        };
        Some(Self { version: u64::from_be_bytes(*version), outcome })
    }
}

/// The Batch row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BatchRow {
    /// Which batch.
    pub number: u64,
    /// Whether all results are in.
    pub is_done: bool,
    /// Operations that failed, were held back, and were not answered.
    pub failed: [u32; 3],
}

impl BatchRow {
    /// As a row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.number.to_be_bytes().to_vec();
        bytes.push(u8::from(self.is_done));
        bytes.extend(self.failed.iter().flat_map(|count| count.to_be_bytes()));
        bytes
    }

    /// From a row's value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (number, rest) = value.split_first_chunk::<8>()?;
        let (&[done @ 0..=1], counts) = rest.split_first_chunk::<1>()? else { return None };
        let (counts, rest) = counts.as_chunks::<4>();
        let failed: [[u8; 4]; 3] = counts.try_into().ok()?;
        let failed = failed.map(u32::from_be_bytes);
        let number = u64::from_be_bytes(*number);
        rest.is_empty().then_some(Self { number, is_done: done == 1, failed })
    }
}

/// Tables whose rows are programmed at TiNs. Their keys begin with the TiN.
pub const PROGRAMMED: [Table; 5] =
    [Table::PortClass, Table::GnetFlow, Table::IpFlow, Table::Group, Table::IndexedGroup];

/// The TiN of a row that is programmed, and the rest of its key.
#[must_use]
pub fn split_key(key: &[u8]) -> Option<(u16, &[u8])> {
    let (tin, rest) = key.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*tin), rest))
}

/// The number of a group whose row this is.
#[must_use]
pub fn group_of(key: &Key) -> Option<u16> {
    let is_group = matches!(key.0, Table::Group | Table::IndexedGroup);
    let (_, number) = split_key(&key.1).filter(|_| is_group)?;
    Some(u16::from_be_bytes(number.try_into().ok()?))
}

/// A TiN's key, and what follows it.
#[must_use]
pub fn key(tin: u16, rest: &[u8]) -> Vec<u8> {
    [&tin.to_be_bytes()[..], rest].concat()
}
