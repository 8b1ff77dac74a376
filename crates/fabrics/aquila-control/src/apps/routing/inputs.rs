//! What routes are computed from: rows of the base that others write.

use std::collections::{BTreeMap, BTreeSet};

use aquila::tables::Condition;
use aquila::tables::condition::State;
use aquila::topology::Topology;
use ipnet::IpNet;

use super::ip::Egress;
use crate::apps::Clique;
use crate::apps::rows::{
    Admin, ETHERNET_PORT, Outcome, ResultRow, SessionRow, decode_members, decode_prefix, split_key,
};
use crate::nib::Table;

/// What is known of the Clique and of what lies outside.
#[derive(Debug, Default)]
pub struct Inputs {
    nodes: BTreeMap<u16, Admin>,
    links: BTreeMap<u32, Admin>,
    ports: BTreeMap<u16, u64>,
    sessions: BTreeMap<u16, SessionRow>,
    /// Routes of cells that a TiN does not hold as it should.
    bad: BTreeMap<u16, BTreeSet<Vec<u8>>>,
    /// By prefix and shard.
    outside: BTreeMap<IpNet, BTreeMap<u8, Vec<(u16, u32)>>>,
    /// Whether routes were computed since they have last changed.
    pub is_used: bool,
}

/// Sets a row or takes it out.
fn put<K: Ord, V>(rows: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => rows.insert(key, value),
        None => rows.remove(&key),
    };
}

impl Inputs {
    /// A row has changed; whether it is one. What cannot be read is as if it were not there.
    pub fn learn(
        &mut self,
        clique: &Clique,
        table: Table,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> bool {
        let shape = clique.topology.shape();
        let tin = split_key(key).filter(|&(tin, rest)| tin < shape.tins() && rest.is_empty());
        let is_read = match (table, tin) {
            (Table::Node, Some((tin, _))) => {
                let admin = value.and_then(Admin::decode);
                put(&mut self.nodes, tin, admin);
                admin.is_some() || value.is_none()
            }
            (Table::Port, Some((tin, _))) => {
                let mask = value.and_then(|v| v.try_into().ok()).map(u64::from_be_bytes);
                put(&mut self.ports, tin, mask);
                mask.is_some() || value.is_none()
            }
            (Table::TinSession, Some((tin, _))) => {
                let row = value.and_then(SessionRow::decode);
                let before = self.sessions.get(&tin).copied();
                put(&mut self.sessions, tin, row);
                if before.map(|row| row.is_ready) == row.map(|row| row.is_ready) {
                    // Whether there is a session makes no difference to routes.
                    return row.is_some() || value.is_none();
                }
                row.is_some() || value.is_none()
            }
            (Table::Link, _) => {
                let link = key.try_into().ok().map(u32::from_be_bytes);
                let link = link.filter(|&link| (link as usize) < clique.topology.links().len());
                let Some(link) = link else { return false };
                let admin = value.and_then(Admin::decode);
                put(&mut self.links, link, admin);
                admin.is_some() || value.is_none()
            }
            (Table::ProgrammingResult, _) => return self.learn_result(key, value),
            (Table::ExternalReachability, _) => return self.learn_outside(key, value),
            _ => return false,
        };
        self.is_used = false;
        is_read
    }

    fn learn_result(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        let Some((&table, row)) = key.split_first() else { return false };
        let of_cells = [Table::GnetFlow, Table::PortClass].map(|table| table as u8);
        let (true, Some((tin, _))) = (of_cells.contains(&table), split_key(row)) else {
            return true;
        };
        let result = value.and_then(ResultRow::decode);
        let is_bad =
            |result: ResultRow| matches!(result.outcome, Outcome::Failed | Outcome::Unreachable);
        let rows = self.bad.entry(tin).or_default();
        let was_bad = !rows.is_empty();
        if result.is_some_and(is_bad) {
            rows.insert(key.to_vec());
        } else {
            rows.remove(key);
        }
        if was_bad == rows.is_empty() {
            self.is_used = false;
        }
        result.is_some() || value.is_none()
    }

    fn learn_outside(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        let Some((&shard, prefix)) = key.split_first() else { return false };
        let Some(prefix) = decode_prefix(prefix) else { return false };
        self.is_used = false;
        let members = value.and_then(|value| decode_members(value.get(8..)?));
        let is_read = members.is_some() || value.is_none();
        let shards = self.outside.entry(prefix).or_default();
        put(shards, shard, members);
        if shards.is_empty() {
            self.outside.remove(&prefix);
        }
        is_read
    }

    /// What works, and what may be passed through. A TiN that has never had a session is as one that is not ready: it may get
    /// cells as soon as it can, and those who boot do not change all tables for each that follows.
    pub fn condition(&self, topology: &Topology) -> Condition {
        let mut condition = Condition::healthy(topology);
        for tin in 0..topology.shape().tins() {
            let is_bad = self.bad.get(&tin).is_some_and(|rows| !rows.is_empty());
            let admin = self.nodes.get(&tin).copied().unwrap_or_default();
            condition.set_tin(
                tin,
                match (self.sessions.get(&tin), admin) {
                    (_, Admin::Off) => State::Dead,
                    (Some(session), Admin::InService) if session.is_ready && !is_bad => State::Live,
                    _ => State::Drained,
                },
            );
        }
        for (index, link) in (0..).zip(topology.links()) {
            let is_up =
                |tin: u16, port: u8| self.ports.get(&tin).is_none_or(|mask| mask >> port & 1 != 0);
            let is_up = is_up(link.low.tin, link.low.port) && is_up(link.high.tin, link.high.port);
            condition.set_link(
                index,
                match self.links.get(&index) {
                    _ if !is_up => State::Dead,
                    Some(Admin::Off) => State::Dead,
                    Some(Admin::Drained) => State::Drained,
                    _ => State::Live,
                },
            );
        }
        condition
    }

    /// Whether a TiN has not been ready since its chip's cold start (M815).
    pub fn is_unready(&self, tin: u16) -> bool {
        self.sessions.get(&tin).is_none_or(|session| !session.is_ready)
    }

    /// By which Ethernet ports that are up each prefix is reached: weights of all shards together.
    pub fn outside(&self) -> BTreeMap<IpNet, Egress> {
        let is_up =
            |tin: &u16| self.ports.get(tin).is_none_or(|mask| mask >> ETHERNET_PORT & 1 != 0);
        let mut all = BTreeMap::new();
        for (&prefix, shards) in &self.outside {
            let egress: &mut Egress = all.entry(prefix).or_default();
            for &(tin, weight) in shards.values().flatten().filter(|(tin, _)| is_up(tin)) {
                let sum = egress.entry(tin).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
        all
    }

    /// Rows that say that something is drained, of what the operator wants drained.
    pub fn to_drain(&self) -> BTreeSet<(Table, Vec<u8>)> {
        let drained = |admin: &Admin| *admin == Admin::Drained;
        let nodes = self.nodes.iter().filter(|(_, admin)| drained(admin));
        let nodes = nodes.map(|(tin, _)| (Table::Node, [&tin.to_be_bytes()[..], &[1]].concat()));
        let links = self.links.iter().filter(|(_, admin)| drained(admin));
        let links = links.map(|(link, _)| (Table::Link, [&link.to_be_bytes()[..], &[1]].concat()));
        nodes.chain(links).collect()
    }
}
