//! From an IP address to a GNet address: the longest prefix, and groups.
//!
//! Models: Aquila §3.3, §4.2 (M404, M405, M722).

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;
use thiserror::Error;

use crate::address::Address;

/// Most slots of a weighted group (our choice, M404).
pub const SLOTS_MAX: u32 = 512;

/// What a prefix leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// One GNet address.
    Address(Address),
    /// A weighted group, by its number.
    Group(u16),
    /// An indexed group, by its number.
    Indexed(u16),
    /// The control processor.
    Punt,
    /// Nothing.
    Drop,
}

/// What was found for an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The route names it.
    Address(Address),
    /// A weighted group's member.
    Group(Address),
    /// An indexed group's member.
    Indexed(Address),
    /// It goes to the control processor.
    Punt,
    /// It goes nowhere.
    Drop,
    /// No prefix has it, or its group has nobody there.
    Nothing,
}

/// GNet addresses among which flows are shared by weight (M404): a table in which each stands as often as its weight
/// says, so that a flow finds the same one each time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    slots: Vec<Address>,
}

/// Why there is no such group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum GroupError {
    /// All weights are zero.
    #[error("no member has a weight; expected one at least")]
    Empty,
    /// There are too many.
    #[error("{0} members; expected at most {SLOTS_MAX}, a slot for each")]
    Members(usize),
}

impl Group {
    /// A group of these, by weight. Weights whose sum, divided by what they have in common, is at most [`SLOTS_MAX`] are
    /// kept exactly; others as nearly as so many slots can, by largest remainders, with one slot at least for each.
    ///
    /// # Errors
    /// Nobody has a weight, or there are more than slots.
    pub fn new(members: &[(Address, u32)]) -> Result<Self, GroupError> {
        let members: Vec<_> = members.iter().filter(|member| member.1 > 0).collect();
        let sum: u64 = members.iter().map(|member| u64::from(member.1)).sum();
        if members.is_empty() {
            return Err(GroupError::Empty);
        }
        if members.len() > SLOTS_MAX as usize {
            return Err(GroupError::Members(members.len()));
        }
        let common = members.iter().fold(0, |common, member| divisor(common, member.1.into()));
        let slots = (sum / common).min(SLOTS_MAX.into());
        // Everyone has one; what is over goes by weight.
        let over = slots - members.len() as u64;
        let is_exact = sum / common == slots;
        let exact = |weight: u64| if is_exact { weight / common } else { 1 + weight * over / sum };
        let mut counts: Vec<u64> = members.iter().map(|member| exact(member.1.into())).collect();
        let mut order: Vec<usize> = (0..members.len()).collect();
        let rest = |member: usize| u64::from(members[member].1) * over % sum;
        order.sort_by_key(|&member| std::cmp::Reverse(rest(member)));
        let missing = slots - counts.iter().sum::<u64>();
        order.iter().take(missing as usize).for_each(|&member| counts[member] += 1);
        let of = |(member, &count): (&&(Address, u32), &u64)| {
            std::iter::repeat_n(member.0, count as usize)
        };
        Ok(Self { slots: members.iter().zip(&counts).flat_map(of).collect() })
    }

    /// The member of a flow.
    #[must_use]
    pub fn member(&self, hash: u64) -> Address {
        self.slots[(hash % self.slots.len() as u64) as usize]
    }

    /// All slots.
    #[must_use]
    pub fn slots(&self) -> &[Address] {
        &self.slots
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// GNet addresses of a subnet's addresses, by place in it (M405, M722).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexedGroup {
    base: IpAddr,
    members: Vec<Option<Address>>,
}

impl IndexedGroup {
    /// A group of the addresses from `base` on; none: nobody is there.
    #[must_use]
    pub fn new(base: IpAddr, members: Vec<Option<Address>>) -> Self {
        Self { base, members }
    }

    /// The member at an address's place.
    #[must_use]
    pub fn member(&self, address: IpAddr) -> Option<Address> {
        let place = usize::try_from(place(self.base, address)?).ok()?;
        *self.members.get(place)?
    }

    /// Sets one member, and no other (M722). False if the group has no such place.
    pub fn set(&mut self, place: usize, member: Option<Address>) -> bool {
        self.members.get_mut(place).map(|slot| *slot = member).is_some()
    }
}

/// How far an address is behind another; `None`: it is before it, or of the other version.
#[must_use]
pub fn place(base: IpAddr, address: IpAddr) -> Option<u128> {
    match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            u32::from(address).checked_sub(u32::from(base)).map(u128::from)
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => {
            u128::from(address).checked_sub(u128::from(base))
        }
        _ => None,
    }
}

/// The address so far behind another.
pub(crate) fn at_place(base: IpAddr, place: u32) -> IpAddr {
    match base {
        IpAddr::V4(base) => IpAddr::V4((u32::from(base) + place).into()),
        IpAddr::V6(base) => IpAddr::V6((u128::from(base) + u128::from(place)).into()),
    }
}

/// The tables of input processing, as the chip holds them.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    v4: PrefixMap<Ipv4Net, Next>,
    v6: PrefixMap<Ipv6Net, Next>,
    groups: Vec<Group>,
    indexed: Vec<IndexedGroup>,
}

impl Routes {
    /// Adds a weighted group; its number.
    pub fn add_group(&mut self, group: Group) -> u16 {
        self.groups.push(group);
        (self.groups.len() - 1) as u16
    }

    /// Adds an indexed group; its number.
    pub fn add_indexed(&mut self, group: IndexedGroup) -> u16 {
        self.indexed.push(group);
        (self.indexed.len() - 1) as u16
    }

    /// An indexed group, to set a member of.
    pub fn indexed_mut(&mut self, number: u16) -> Option<&mut IndexedGroup> {
        self.indexed.get_mut(usize::from(number))
    }

    /// Installs a prefix; what it led to before.
    pub fn insert(&mut self, prefix: IpNet, next: Next) -> Option<Next> {
        match prefix {
            IpNet::V4(prefix) => self.v4.insert(prefix, next),
            IpNet::V6(prefix) => self.v6.insert(prefix, next),
        }
    }

    /// Takes a prefix out; what it led to.
    pub fn remove(&mut self, prefix: IpNet) -> Option<Next> {
        match prefix {
            IpNet::V4(prefix) => self.v4.remove(&prefix),
            IpNet::V6(prefix) => self.v6.remove(&prefix),
        }
    }

    /// Prefixes that are installed: flows, in the paper's words (§4.2).
    #[must_use]
    pub fn flows(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// What the longest prefix of an address leads to.
    #[must_use]
    pub fn next(&self, address: IpAddr) -> Option<Next> {
        match address {
            IpAddr::V4(address) => self.v4.get_lpm(&address.into()).map(|(_, next)| *next),
            IpAddr::V6(address) => self.v6.get_lpm(&address.into()).map(|(_, next)| *next),
        }
    }

    /// The GNet address of an IP address, for a flow of this hash.
    #[must_use]
    pub fn look_up(&self, address: IpAddr, hash: u64) -> Found {
        match self.next(address) {
            None => Found::Nothing,
            Some(Next::Punt) => Found::Punt,
            Some(Next::Drop) => Found::Drop,
            Some(Next::Address(to)) => Found::Address(to),
            Some(Next::Group(group)) => match self.groups.get(usize::from(group)) {
                Some(group) => Found::Group(group.member(hash)),
                None => Found::Nothing,
            },
            Some(Next::Indexed(group)) => {
                let group = self.indexed.get(usize::from(group));
                group.and_then(|group| group.member(address)).map_or(Found::Nothing, Found::Indexed)
            }
        }
    }
}
