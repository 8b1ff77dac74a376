//! The tables of IP: the same in all TiNs.
//!
//! Models: Aquila §4.1, §4.2 (M708, M721, M722, M731): six flows to indexed groups, one for each subnet, and one for each
//! prefix outside to a weighted group of the Ethernet ports by which it is reached. Prefixes that are reached alike share
//! a group. **Our choice**: numbers of groups and entries stay what they were, so that a change rewrites only itself;
//! a group is changed in place if all its prefixes change alike.

use std::collections::{BTreeMap, BTreeSet};

use aquila::address::Endpoint;
use aquila::pipeline::plan::Plan;
use aquila::pipeline::routes::{Next, SLOTS_MAX};
use aquila::tables::Condition;
use aquila::tables::condition::State;
use ipnet::IpNet;

use crate::apps::rows::{IndexedRow, IpFlow};
use crate::registers::map::{GROUP_SIZE, IP_FLOW};

/// By which TiNs' Ethernet ports a prefix is reached, by weight.
pub type Egress = BTreeMap<u16, u32>;

/// What a TiN's tables hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ip {
    /// By prefix.
    pub flows: BTreeMap<IpNet, IpFlow>,
    /// By number: GNet addresses, by weight.
    pub groups: BTreeMap<u16, Vec<(u16, u32)>>,
    /// By number.
    pub indexed: BTreeMap<u16, IndexedRow>,
}

/// What is wanted of all TiNs that have these ways out, and prefixes for which the chips have no room.
#[must_use]
pub fn target(
    plan: &Plan,
    condition: &Condition,
    outside: &BTreeMap<IpNet, Egress>,
    exits: &[u16],
    before: &Ip,
) -> (Ip, u64) {
    let mut ip = Ip::default();
    let places =
        plan.addressed().flat_map(|interface| Plan::VERSIONS.map(|version| (interface, version)));
    for (number, (interface, version)) in (0..).zip(places) {
        let subnet = plan.subnet(interface, version);
        let member = |tin| {
            let is_there = condition.tin(tin) != State::Dead;
            is_there.then(|| plan.address(tin, interface.endpoint()))
        };
        let members = (0..plan.shape().tins()).map(member).collect();
        ip.indexed.insert(number, IndexedRow { subnet, members });
        ip.flows.insert(subnet, IpFlow { index: number, next: Next::Indexed(number) });
    }
    let mut alike: BTreeMap<Vec<(u16, u32)>, Vec<IpNet>> = BTreeMap::new();
    for (&prefix, egress) in outside {
        let usable =
            |&(tin, &weight): &(&u16, &u32)| weight > 0 && exits.binary_search(tin).is_ok();
        let member =
            |(&tin, &weight): (&u16, &u32)| (plan.address(tin, Endpoint::ETHERNET).bits(), weight);
        let members: Vec<_> =
            egress.iter().filter(usable).map(member).take(SLOTS_MAX as usize).collect();
        if !members.is_empty() && !ip.flows.contains_key(&prefix) {
            alike.entry(members).or_default().push(prefix);
        }
    }
    let no_room = place(&mut ip, alike, before);
    (ip, no_room)
}

/// Finds numbers for groups and entries for prefixes: those that they had, or the lowest that nobody had.
fn place(ip: &mut Ip, alike: BTreeMap<Vec<(u16, u32)>, Vec<IpNet>>, before: &Ip) -> u64 {
    let mut users: BTreeMap<u16, BTreeSet<IpNet>> = BTreeMap::new();
    for (&prefix, flow) in &before.flows {
        if let Next::Group(group) = flow.next {
            users.entry(group).or_default().insert(prefix);
        }
    }
    let mut indices: BTreeSet<u16> = before.flows.values().map(|flow| flow.index).collect();
    indices.extend(ip.flows.values().map(|flow| flow.index));
    let mut numbers: BTreeSet<u16> = before.groups.keys().copied().collect();
    let mut taken = BTreeSet::new();
    let lowest =
        |used: &BTreeSet<u16>, count: u32| (0..count as u16).find(|number| !used.contains(number));
    // Groups that stay as they are have theirs before others look for one.
    let stays = |members: &Vec<(u16, u32)>, prefixes: &[IpNet]| {
        let groups = before.groups.iter().filter(|(_, found)| *found == members);
        let used = |group: &u16| {
            let users = users.get(group);
            users.is_some_and(|users| prefixes.iter().any(|prefix| users.contains(prefix)))
        };
        groups.map(|(&group, _)| group).find(used)
    };
    let mut chosen = Vec::new();
    for (members, prefixes) in alike {
        let group = stays(&members, &prefixes).filter(|&group| taken.insert(group));
        chosen.push((group, members, prefixes));
    }
    let mut no_room = 0;
    for (group, members, prefixes) in chosen {
        let in_place = || {
            let all = |(_, used): &(&u16, &BTreeSet<IpNet>)| {
                used.iter().all(|prefix| prefixes.contains(prefix))
            };
            let mut groups = users.iter().filter(all).map(|(&group, _)| group);
            groups.find(|group| !taken.contains(group))
        };
        let group =
            group.or_else(in_place).or_else(|| lowest(&numbers, GROUP_SIZE.register().entries()));
        let Some(group) = group else {
            no_room += prefixes.len() as u64;
            continue;
        };
        taken.insert(group);
        numbers.insert(group);
        ip.groups.insert(group, members);
        for prefix in prefixes {
            let before = before.flows.get(&prefix).map(|flow| flow.index);
            let index = before.or_else(|| lowest(&indices, IP_FLOW.register().entries()));
            let Some(index) = index else {
                no_room += 1;
                continue;
            };
            indices.insert(index);
            ip.flows.insert(prefix, IpFlow { index, next: Next::Group(group) });
        }
    }
    no_room
}

/// What can be done before routes of cells change: groups lose members that they are to lose, if others are left (M730:
/// their weights are zero).
#[must_use]
pub fn without_leaving(now: &Ip, target: &Ip) -> Ip {
    let mut ip = now.clone();
    for (group, members) in &mut ip.groups {
        let Some(wanted) = target.groups.get(group) else { continue };
        let stays = |member: &&(u16, u32)| wanted.iter().any(|other| other.0 == member.0);
        let left: Vec<_> = members.iter().filter(stays).copied().collect();
        if !left.is_empty() {
            *members = left;
        }
    }
    ip
}
