//! The tables of IP as a chip's registers, and back.
//!
//! Models: Aquila §3.3, §4.2, §4.3 (M404, M405, M612, M706, M722, I75): flows, weighted and indexed groups, and whose
//! address requests are answered. A member of an indexed group is an entry by itself: a change of one rewrites no
//! other. The registers' formats are our choice.

use std::net::IpAddr;

use aquila::address::Address;
use aquila::pipeline::plan::{GATEWAY_ETHERNET, GATEWAY_V4, GATEWAY_V6, Plan};
use aquila::pipeline::routes::{Group, GroupError, IndexedGroup, Routes};
use ipnet::IpNet;
use thiserror::Error;

use crate::apps::rows::{
    IndexedRow, IpFlow, decode_next, decode_prefix, encode_next, encode_prefix,
};
use crate::registers::file::RegisterFile;
use crate::registers::map::{
    GROUP_SIZE, GROUP_SLOT, INDEXED_MEMBER, INDEXED_SUBNET, IP_FLOW, RESPONDER,
};
use crate::registers::{ENTRY_BYTES_MAX, Register};

/// An entry of 32 bytes.
type Entry = [u8; ENTRY_BYTES_MAX];

/// The registers of IP.
#[must_use]
pub fn owned() -> [&'static Register; 6] {
    [
        IP_FLOW.register(),
        GROUP_SIZE.register(),
        GROUP_SLOT.register(),
        INDEXED_SUBNET.register(),
        INDEXED_MEMBER.register(),
        RESPONDER.register(),
    ]
}

/// What the chip has no room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum TooLarge {
    /// Its number is none of the table's.
    #[error("{what} {found}; expected 0 to {max}, the chip has no other")]
    Number {
        /// Of what.
        what: &'static str,
        /// Its number.
        found: u32,
        /// The last.
        max: u32,
    },
    /// No slots have its weights.
    #[error(transparent)]
    Group(#[from] GroupError),
}

fn number(what: &'static str, found: usize, count: u32) -> Result<u32, TooLarge> {
    let number = u32::try_from(found).unwrap_or(u32::MAX);
    if number < count {
        return Ok(number);
    }
    Err(TooLarge::Number { what, found: number, max: count - 1 })
}

/// A prefix in the first 18 bytes as registers have it: address, length, version.
fn prefix_entry(prefix: IpNet) -> Entry {
    let mut entry = [0; ENTRY_BYTES_MAX];
    let row = encode_prefix(prefix);
    entry[..16].copy_from_slice(&row[2..]);
    (entry[16], entry[17]) = (row[1], row[0]);
    entry
}

/// The prefix of an entry; `None`: it is none.
fn entry_prefix(entry: &Entry) -> Option<IpNet> {
    let row = [&[entry[17], entry[16]][..], &entry[..16]].concat();
    decode_prefix(&row)
}

/// Sets a flow.
///
/// # Errors
/// The chip has no such entry.
pub fn set_flow(file: &mut RegisterFile, prefix: IpNet, flow: IpFlow) -> Result<(), TooLarge> {
    let index = number("entry for flows", flow.index.into(), IP_FLOW.register().entries())?;
    let mut entry = prefix_entry(prefix);
    let (kind, target) = encode_next(flow.next);
    entry[18] = kind;
    entry[20..22].copy_from_slice(&target.to_be_bytes());
    file.set(IP_FLOW, [index], entry);
    Ok(())
}

/// Sets a weighted group.
///
/// # Errors
/// The chip has no such group, or not so many slots, or nobody has a weight.
pub fn set_group(
    file: &mut RegisterFile,
    group: u16,
    members: &[(Address, u32)],
) -> Result<(), TooLarge> {
    let at = number("weighted group", group.into(), GROUP_SIZE.register().entries())?;
    let slots = Group::new(members)?;
    for (slot, address) in (0..).zip(slots.slots()) {
        file.set(GROUP_SLOT, [at, slot], address.bits());
    }
    file.set(GROUP_SIZE, [at], slots.slots().len() as u16);
    Ok(())
}

/// Sets an indexed group.
///
/// # Errors
/// The chip has no such group, or not so many places.
pub fn set_indexed(file: &mut RegisterFile, group: u16, row: &IndexedRow) -> Result<(), TooLarge> {
    let register = INDEXED_MEMBER.register();
    let at = number("indexed group", group.into(), register.dimensions[0])?;
    number("place", row.members.len().saturating_sub(1), register.dimensions[1])?;
    for (place, member) in (0..).zip(&row.members) {
        file.set(INDEXED_MEMBER, [at, place], member.map_or(u16::MAX, |member| member.bits()));
    }
    file.set(INDEXED_SUBNET, [at], prefix_entry(row.subnet));
    Ok(())
}

/// Sets whose address requests are answered: those for the gateway, and for all of the Clique with the gateway's
/// Ethernet address (M612).
pub fn set_responder(file: &mut RegisterFile, plan: &Plan) {
    let gateways = [IpAddr::V4(GATEWAY_V4), IpAddr::V6(GATEWAY_V6)].map(IpNet::from);
    let subnets = plan
        .addressed()
        .flat_map(|interface| Plan::VERSIONS.map(|version| plan.subnet(interface, version)));
    for (at, prefix) in (0..).zip(gateways.into_iter().chain(subnets)) {
        let mut entry = prefix_entry(prefix);
        entry[18..24].copy_from_slice(&GATEWAY_ETHERNET);
        file.set(RESPONDER, [at], entry);
    }
}

/// Why registers are no tables of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReadBack {
    /// An entry is none.
    #[error("{register}, entry {at}: no prefix, or it leads to nothing that there is")]
    Entry {
        /// Which.
        register: &'static str,
        /// Its index.
        at: u32,
    },
    /// A flow leads to a group that is not there (I70).
    #[error("flow {at} leads to group {group}, which is not there")]
    Group {
        /// Entry of the flow.
        at: u32,
        /// Which group.
        group: u16,
    },
}

/// The tables that a chip holds.
///
/// # Errors
/// What it holds is none.
pub fn routes(file: &RegisterFile) -> Result<Routes, ReadBack> {
    use aquila::pipeline::routes::Next;

    let mut routes = Routes::default();
    let mut weighted = vec![None; GROUP_SIZE.register().entries() as usize];
    for (group, place) in (0..).zip(&mut weighted) {
        let size = u32::from(file.get(GROUP_SIZE, [group]));
        let bad = ReadBack::Entry { register: "group.size", at: group };
        if size > GROUP_SLOT.register().dimensions[1] {
            return Err(bad);
        }
        if size > 0 {
            let slot = |slot| (Address::from_bits(file.get(GROUP_SLOT, [group, slot])), 1);
            let members: Vec<_> = (0..size).map(slot).collect();
            *place = Some(routes.add_group(Group::new(&members).map_err(|_| bad)?));
        }
    }
    let [groups, places] = *INDEXED_MEMBER.register().dimensions else {
        unreachable!("a register of two dimensions")
    };
    let mut indexed = vec![None; groups as usize];
    for (group, place) in (0..).zip(&mut indexed) {
        let subnet: Entry = file.get(INDEXED_SUBNET, [group]);
        if subnet == [0; ENTRY_BYTES_MAX] {
            continue;
        }
        let prefix = entry_prefix(&subnet);
        let prefix = prefix.ok_or(ReadBack::Entry { register: "indexed.subnet", at: group })?;
        let member = |place| match file.get(INDEXED_MEMBER, [group, place]) {
            u16::MAX => None,
            bits => Some(Address::from_bits(bits)),
        };
        let members = (0..places).map(member).collect();
        *place = Some(routes.add_indexed(IndexedGroup::new(prefix.network(), members)));
    }
    for at in 0..IP_FLOW.register().entries() {
        let entry: Entry = file.get(IP_FLOW, [at]);
        if entry == [0; ENTRY_BYTES_MAX] {
            continue;
        }
        let bad = ReadBack::Entry { register: "ip.flow", at };
        let prefix = entry_prefix(&entry).ok_or(bad)?;
        let target = u16::from_be_bytes([entry[20], entry[21]]);
        let found = |groups: &[Option<u16>], group: u16| {
            let known = groups.get(usize::from(group)).copied().flatten();
            known.ok_or(ReadBack::Group { at, group })
        };
        let next = match decode_next(entry[18], target).ok_or(bad)? {
            Next::Group(group) => Next::Group(found(&weighted, group)?),
            Next::Indexed(group) => Next::Indexed(found(&indexed, group)?),
            next => next,
        };
        if routes.insert(prefix, next).is_some() {
            return Err(bad);
        }
    }
    Ok(routes)
}
