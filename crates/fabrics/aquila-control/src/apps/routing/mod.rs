//! The routing engine.
//!
//! Models: Aquila §4.1, §4.2 (M703, M708, M721 to M724, M728 to M731, M815): from what is connected, works and is
//! reached outside to routes of cells by class of input port and tables of IP, in batches of which each leaves nothing
//! without a route ([`waves`]). The next batch is written when the results of the last are in (M707). TiNs that are
//! drained, not ready, or not to be programmed, send and get their own cells and carry no others'.
//!
//! What it has written stands in the base: an instance that takes over reads it and goes on. Only what a change can
//! reach is computed again.

mod inputs;
pub mod ip;
mod parts;
pub mod waves;

use std::collections::BTreeSet;
use std::sync::Arc;

use aquila::tables::compute::{routes, update};
use aquila::tables::condition::State;
use aquila::tables::flows::{Flows, InputClass};
use aquila::tables::{Condition, Escape, components};

use super::Clique;
use super::rows::{
    BatchRow, EscapeRow, IndexedRow, IpFlow, NONE, PORTS, decode_flows, decode_members,
    decode_prefix, encode_flows, encode_members, encode_prefix, key, split_key,
};
use crate::nib::{Change, Changes, LAYOUT, Table, Write};
use inputs::Inputs;
use ip::Ip;
use parts::Parts;

/// What the routing engine wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// The next batch.
    Batch {
        /// Its number.
        number: u64,
        /// Its rows.
        writes: Vec<Write>,
    },
    /// Rows that are no batch.
    Write(Vec<Write>),
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Batches.
    pub batches: u64,
    /// How often routes were computed.
    pub computed: u64,
    /// Flows of cells that were changed with others missing, as there was no other order.
    pub forced: u64,
    /// Prefixes for which the chips have no room.
    pub no_room: u64,
    /// Rows of the base that are none.
    pub malformed: u64,
}

/// What is wanted.
#[derive(Debug)]
struct Target {
    condition: Condition,
    live: Vec<u64>,
    flows: Flows,
    escape: Vec<EscapeRow>,
    classes: Vec<[u8; PORTS]>,
    parts: Parts,
    /// By TiN.
    ip: Vec<Arc<Ip>>,
}

/// The rows of the base.
#[derive(Debug)]
struct Written {
    flows: Flows,
    escape: Vec<Option<EscapeRow>>,
    classes: Vec<Option<[u8; PORTS]>>,
    ip: Vec<Arc<Ip>>,
    batch: BatchRow,
}

/// The application.
#[derive(Debug)]
pub struct RoutingEngine {
    clique: Arc<Clique>,
    seen: u64,
    inputs: Inputs,
    written: Written,
    target: Option<Target>,
    /// TiNs whose flows of cells are not yet what is wanted.
    differ: BTreeSet<u16>,
    /// What is said to be drained.
    drained: BTreeSet<(Table, Vec<u8>)>,
    is_writing: bool,
    counts: Counts,
}

impl RoutingEngine {
    /// One that knows nothing yet.
    #[must_use]
    pub fn new(clique: Arc<Clique>) -> Self {
        let shape = clique.topology.shape();
        let tins = usize::from(shape.tins());
        let written = Written {
            flows: Flows::new(shape),
            escape: vec![None; tins],
            classes: vec![None; tins],
            ip: vec![Arc::default(); tins],
            batch: BatchRow { is_done: true, ..BatchRow::default() },
        };
        Self {
            inputs: Inputs::default(),
            clique,
            seen: 0,
            written,
            target: None,
            differ: BTreeSet::new(),
            drained: BTreeSet::new(),
            is_writing: false,
            counts: Counts::default(),
        }
    }

    /// The tables that it reads.
    pub const TABLES: [Table; 12] = [
        Table::Node,
        Table::Port,
        Table::Link,
        Table::PortClass,
        Table::GnetFlow,
        Table::IpFlow,
        Table::Group,
        Table::IndexedGroup,
        Table::ProgrammingResult,
        Table::ExternalReachability,
        Table::TinSession,
        Table::Batch,
    ];

    /// The last version of the base that it has seen.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// TiNs by which the datacenter's network reaches a TiN without passing any that is not ready: for the routers there.
    #[must_use]
    pub fn exits(&self, tin: u16) -> &[u16] {
        self.target.as_ref().map_or(&[], |target| target.parts.exits(target.parts.of(tin)))
    }

    /// Whether all is written that is wanted, and its results are in.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.written.batch.is_done
            && !self.is_writing
            && self.target.is_some()
            && self.inputs.is_used
    }

    /// The base has changed.
    pub fn learn(&mut self, changes: &Changes, out: &mut Vec<Output>) {
        if changes.layout != LAYOUT || changes.version < self.seen {
            return;
        }
        let is_everything = changes.is_everything || self.seen == 0;
        if is_everything {
            let counts = self.counts;
            *self = Self { counts, ..Self::new(self.clique.clone()) };
        }
        self.seen = changes.version;
        if changes.changes.is_empty() && !is_everything {
            return;
        }
        for change in &changes.changes {
            self.learn_row(change, is_everything);
        }
        self.go_on(out);
    }

    /// The base has taken what was written last. If it has not, the application is to be started anew.
    pub fn written(&mut self, out: &mut Vec<Output>) {
        self.is_writing = false;
        self.go_on(out);
    }

    fn learn_row(&mut self, change: &Change, is_everything: bool) {
        let Change { key: (table, place), value, .. } = change;
        let value = value.as_deref();
        let is_known = match table {
            Table::Batch => match value.map(BatchRow::decode) {
                Some(Some(row)) => {
                    self.written.batch = row;
                    true
                }
                other => other.is_none(),
            },
            Table::PortClass
            | Table::GnetFlow
            | Table::IpFlow
            | Table::Group
            | Table::IndexedGroup => {
                // Otherwise it is what we have written.
                !is_everything
                    || value.is_none_or(|value| self.read(*table, place, value).is_some())
            }
            Table::Node | Table::Link if place.len() % 2 == 1 => {
                match value {
                    Some(_) => self.drained.insert((*table, place.clone())),
                    None => self.drained.remove(&(*table, place.clone())),
                };
                true
            }
            _ => self.inputs.learn(&self.clique, *table, place, value),
        };
        self.counts.malformed += u64::from(!is_known);
    }

    /// Takes over a row that an instance before has written; `None`: it is none.
    fn read(&mut self, table: Table, place: &[u8], value: &[u8]) -> Option<()> {
        let shape = self.clique.topology.shape();
        let (tin, rest) = split_key(place).filter(|&(tin, _)| tin < shape.tins())?;
        let at = usize::from(tin);
        let number = |rest: &[u8]| rest.try_into().ok().map(u16::from_be_bytes);
        match table {
            Table::PortClass => self.written.classes[at] = Some(value.try_into().ok()?),
            Table::GnetFlow => match *rest {
                [NONE, NONE] => {
                    self.written.escape[at] = Some(EscapeRow::decode(value, shape.tins())?);
                }
                [class, rvc] => {
                    let class = *InputClass::ALL.get(usize::from(class))?;
                    let flows = decode_flows(value, components(shape))?;
                    if !class.channels().contains(&rvc) {
                        return None;
                    }
                    for (component, flow) in (0..).zip(flows) {
                        self.written.flows.set(tin, class, rvc, component, flow);
                    }
                }
                _ => return None,
            },
            Table::IpFlow => {
                let (prefix, flow) = (decode_prefix(rest)?, IpFlow::decode(value)?);
                Arc::make_mut(&mut self.written.ip[at]).flows.insert(prefix, flow);
            }
            Table::Group => {
                let (number, members) = (number(rest)?, decode_members(value)?);
                Arc::make_mut(&mut self.written.ip[at]).groups.insert(number, members);
            }
            _ => {
                let (number, row) = (number(rest)?, IndexedRow::decode(value)?);
                Arc::make_mut(&mut self.written.ip[at]).indexed.insert(number, row);
            }
        }
        Some(())
    }

    /// Writes the next batch, if the last is finished.
    fn go_on(&mut self, out: &mut Vec<Output>) {
        if self.is_writing || !self.written.batch.is_done {
            return;
        }
        if !self.inputs.is_used || self.target.is_none() {
            self.aim();
        }
        let mut writes = self.first();
        if writes.is_empty() {
            writes = self.wave();
        }
        if writes.is_empty() {
            writes = self.last();
        }
        if writes.is_empty() {
            let writes = self.say_drained();
            if !writes.is_empty() {
                self.is_writing = true;
                out.push(Output::Write(writes));
            }
            return;
        }
        let number = self.written.batch.number + 1;
        self.written.batch = BatchRow { number, ..BatchRow::default() };
        writes.push(Write::set(Table::Batch, &[], &self.written.batch.encode()));
        self.is_writing = true;
        self.counts.batches += 1;
        out.push(Output::Batch { number, writes });
    }

    /// Computes what is wanted.
    fn aim(&mut self) {
        self.inputs.is_used = true;
        let Clique { topology, turns, plan, .. } = &*self.clique;
        let shape = topology.shape();
        let mut condition = self.inputs.condition(topology);
        let outside = self.inputs.outside();
        let exits: BTreeSet<u16> =
            outside.values().flat_map(|egress| egress.keys()).copied().collect();
        let exits: Vec<u16> = exits.into_iter().filter(|&tin| tin < shape.tins()).collect();
        let is_unready = |tin| self.inputs.is_unready(tin);
        let parts = Parts::split(topology, &mut condition, is_unready, &exits);
        let before = self.target.take();
        let mut ip = vec![Arc::<Ip>::default(); usize::from(shape.tins())];
        for part in parts.all() {
            let tins = || (0..shape.tins()).filter(|&tin| parts.of(tin) == part);
            // Numbers stay what they are with as many as possible.
            let newest =
                tins().next().and_then(|tin| before.as_ref().map(|t| &t.ip[usize::from(tin)]));
            let newest = newest.cloned().filter(|ip| !ip.flows.is_empty()).or_else(|| {
                let written = tins().map(|tin| &self.written.ip[usize::from(tin)]);
                written.max_by_key(|ip| ip.flows.len()).cloned()
            });
            let (found, no_room) = ip::target(
                plan,
                &condition,
                &outside,
                parts.exits(part),
                &newest.unwrap_or_default(),
            );
            self.counts.no_room += no_room;
            let found = Arc::new(found);
            tins().for_each(|tin| ip[usize::from(tin)] = found.clone());
        }
        self.counts.computed += 1;
        match before {
            Some(target) if target.condition == condition => {
                self.target = Some(Target { ip, parts, ..target });
            }
            before => {
                let (flows, pods) = match before {
                    Some(Target { condition: old, mut flows, .. }) => {
                        let pods = update(&mut flows, topology, turns, &old, &condition);
                        (flows, pods)
                    }
                    None => {
                        let flows = routes(topology, turns, &condition);
                        (flows, vec![true; usize::from(shape.pods)])
                    }
                };
                let reached = |&tin: &u16| pods[usize::from(shape.split(tin).0)];
                self.differ.extend((0..shape.tins()).filter(reached));
                let escape = escape_rows(&self.clique, &condition);
                let live = waves::live(&self.clique, &condition);
                let classes =
                    (0..shape.tins()).map(|tin| classes(&self.clique, &live, tin)).collect();
                self.target = Some(Target { condition, live, flows, escape, classes, parts, ip });
            }
        }
        let target = self.target.as_ref().expect("it was set");
        let written = &self.written.flows;
        self.differ.retain(|&tin| {
            target.condition.tin(tin) != State::Dead && target.flows.of(tin) != written.of(tin)
        });
    }

    /// TiNs whose rows are written: not those that are dead.
    fn written_to(&self) -> impl Iterator<Item = u16> + use<> {
        let target = self.target.as_ref().expect("it was computed");
        let tins = 0..self.clique.topology.shape().tins();
        tins.filter(|&tin| target.condition.tin(tin) != State::Dead).collect::<Vec<_>>().into_iter()
    }

    /// What comes before routes of cells change: ports that are there, ways of escape, and weights that are zero.
    fn first(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        for tin in self.written_to() {
            let at = usize::from(tin);
            let target = self.target.as_ref().expect("it was computed");
            let mut classes = target.classes[at];
            if let Some(now) = &self.written.classes[at] {
                let keep = |(new, &now): (&mut u8, &u8)| {
                    if *new == NONE {
                        *new = now;
                    }
                };
                classes.iter_mut().zip(now).for_each(keep);
            }
            self.write_classes(tin, classes, &mut writes);
            let target = self.target.as_ref().expect("it was computed");
            let escape = &target.escape[at];
            if self.written.escape[at].as_ref() != Some(escape) {
                writes.push(Write::set(Table::GnetFlow, &key(tin, &[NONE; 2]), &escape.encode()));
                self.written.escape[at] = Some(escape.clone());
            }
            let (now, wanted) = (&self.written.ip[at], target.ip[at].clone());
            if self.inputs.is_unready(tin) {
                // Nobody sends anything through it: it gets all at once.
                self.write_ip(tin, wanted, &mut writes);
                self.write_cells(tin, &mut writes);
            } else if !Arc::ptr_eq(now, &wanted) && *now != wanted {
                let next = ip::without_leaving(now, &wanted);
                self.write_ip(tin, Arc::new(next), &mut writes);
            }
        }
        writes
    }

    /// All routes of cells of a TiN.
    fn write_cells(&mut self, tin: u16, writes: &mut Vec<Write>) {
        if !self.differ.remove(&tin) {
            return;
        }
        let target = self.target.as_ref().expect("it was computed");
        let all = components(self.clique.topology.shape());
        for class in InputClass::ALL {
            for rvc in class.channels() {
                let of = |flows: &Flows| -> Vec<_> {
                    (0..all).map(|at| flows.get(tin, class, rvc, at)).collect()
                };
                let wanted = of(&target.flows);
                if of(&self.written.flows) == wanted {
                    continue;
                }
                for (at, &flow) in (0..).zip(&wanted) {
                    self.written.flows.set(tin, class, rvc, at, flow);
                }
                let key = key(tin, &[class.index() as u8, rvc]);
                writes.push(Write::set(Table::GnetFlow, &key, &encode_flows(&wanted)));
            }
        }
    }

    /// The next of the routes of cells.
    fn wave(&mut self) -> Vec<Write> {
        if self.differ.is_empty() {
            return Vec::new();
        }
        let target = self.target.as_ref().expect("it was computed");
        let flows = (&self.written.flows, &target.flows);
        let wave = waves::next(&self.clique, &target.condition, &target.live, flows, &self.differ);
        self.counts.forced += wave.forced;
        let all = components(self.clique.topology.shape());
        let row = |&(tin, class, rvc): &(u16, usize, u8)| {
            let of = |at| wave.flows.get(tin, InputClass::ALL[class], rvc, at);
            let flows: Vec<_> = (0..all).map(of).collect();
            let key = key(tin, &[class as u8, rvc]);
            Write::set(Table::GnetFlow, &key, &encode_flows(&flows))
        };
        let writes = wave.rows.iter().map(row).collect();
        self.written.flows = wave.flows;
        let written = &self.written.flows;
        self.differ.retain(|&tin| target.flows.of(tin) != written.of(tin));
        writes
    }

    /// What comes after routes of cells have changed.
    fn last(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        for tin in self.written_to() {
            let target = self.target.as_ref().expect("it was computed");
            let at = usize::from(tin);
            let (classes, ip) = (target.classes[at], target.ip[at].clone());
            self.write_classes(tin, classes, &mut writes);
            self.write_ip(tin, ip, &mut writes);
        }
        writes
    }

    fn write_classes(&mut self, tin: u16, classes: [u8; PORTS], writes: &mut Vec<Write>) {
        let now = &mut self.written.classes[usize::from(tin)];
        if *now != Some(classes) {
            writes.push(Write::set(Table::PortClass, &key(tin, &[]), &classes));
            *now = Some(classes);
        }
    }

    fn write_ip(&mut self, tin: u16, ip: Arc<Ip>, writes: &mut Vec<Write>) {
        let now = std::mem::replace(&mut self.written.ip[usize::from(tin)], ip.clone());
        if Arc::ptr_eq(&now, &ip) || now == ip {
            return;
        }
        let mut write = |table, rest: &[u8], old: Option<Vec<u8>>, new: Option<Vec<u8>>| {
            if old != new {
                let key = (table, key(tin, rest));
                writes.push(Write { key, value: new, expected: None });
            }
        };
        for number in now.groups.keys().chain(ip.groups.keys()).collect::<BTreeSet<_>>() {
            let row = |ip: &Ip| ip.groups.get(number).map(|members| encode_members(members));
            write(Table::Group, &number.to_be_bytes(), row(&now), row(&ip));
        }
        for number in now.indexed.keys().chain(ip.indexed.keys()).collect::<BTreeSet<_>>() {
            let row = |ip: &Ip| ip.indexed.get(number).map(IndexedRow::encode);
            write(Table::IndexedGroup, &number.to_be_bytes(), row(&now), row(&ip));
        }
        for prefix in now.flows.keys().chain(ip.flows.keys()).collect::<BTreeSet<_>>() {
            let row = |ip: &Ip| ip.flows.get(prefix).map(IpFlow::encode);
            write(Table::IpFlow, &encode_prefix(*prefix), row(&now), row(&ip));
        }
    }

    /// Says what carries nothing any more, and may be taken out; and what is no longer so (M730).
    fn say_drained(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        let wanted = self.inputs.to_drain();
        for (table, place) in wanted.difference(&self.drained) {
            writes.push(Write::set(*table, place, &[1]));
        }
        for (table, place) in self.drained.difference(&wanted) {
            writes.push(Write::delete(*table, place));
        }
        self.drained = wanted;
        writes
    }
}

/// By input port: its class, if something can come in there.
fn classes(clique: &Clique, live: &[u64], tin: u16) -> [u8; PORTS] {
    let shape = clique.topology.shape();
    let mut classes = [NONE; PORTS];
    for port in 0..shape.ports() {
        let is_live = port >= shape.external_ports() || live[usize::from(tin)] >> port & 1 != 0;
        if let Some(class) = clique.class(tin, port).filter(|_| is_live) {
            classes[usize::from(port)] = class.index() as u8;
        }
    }
    classes
}

/// The ways of escape of all TiNs.
fn escape_rows(clique: &Clique, condition: &Condition) -> Vec<EscapeRow> {
    let topology = &clique.topology;
    let shape = topology.shape();
    let escape = Escape::compute(topology, condition);
    let row = |tin| {
        let leads_down = |&port: &u8| {
            let far = topology.far(tin, port);
            far.is_some_and(|far| escape.has(far.tin) && escape.is_down(tin, far.tin))
        };
        let down = (0..shape.external_ports()).filter(leads_down);
        let port = |row, to| escape.port(tin, row, to);
        let ports =
            [false, true].into_iter().flat_map(|row| (0..shape.tins()).map(move |to| (row, to)));
        EscapeRow {
            order: escape.order(tin).unwrap_or(u32::MAX),
            down: down.fold(0, |mask, port| mask | 1 << port),
            ports: ports.map(|(row, to)| port(row, to)).collect(),
        }
    };
    (0..shape.tins()).map(row).collect()
}
