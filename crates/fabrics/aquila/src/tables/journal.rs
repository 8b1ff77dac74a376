//! Tables that change entry by entry while cells look them up.
//!
//! Models: Aquila §4.1 to §4.3 (M604, M608, M728): a chip's tables are registers; a controller writes them one by one,
//! and each write is whole or not at all: a row is one entry of 32 bytes. Who writes what when is configuration of a run,
//! as what breaks in it is: a [`Journal`], of which whoever holds a TiN carries out what concerns it by itself. This
//! module does not know who wrote it.

use std::collections::HashMap;

use kernel::{Span, Time};

use super::{Builder, Escape, NONE, ROUTING_VCS, Row, Tables, block_place, components};
use crate::topology::{Shape, Topology};

/// What one write changes in a TiN's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The row of an input port, a routing channel and a component (see [`super::component`]).
    Row {
        /// The input port.
        port: u8,
        /// The routing channel.
        rvc: u8,
        /// The component.
        component: u16,
        /// What stands there from now on.
        row: Row,
    },
    /// Where a cell on an escape channel goes on.
    Escape {
        /// Whether it has come down already.
        has_come_down: bool,
        /// The TiN to which it goes, by its index.
        to: u16,
        /// The port, or [`NONE`].
        port: u8,
    },
    /// Which ports lead down the tree of the escape channels: a bit each. Cells have come down that came in at any other.
    Down {
        /// The ports.
        ports: u64,
    },
    /// The TiN's place in the order of that tree. No cell looks at it.
    Order {
        /// The place; `None`: it has none.
        order: Option<u32>,
    },
    /// All is as after a cold start (M611): no way leads anywhere.
    Reset,
}

/// A write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    /// When.
    pub at: Time,
    /// Whose tables.
    pub tin: u16,
    /// What.
    pub change: Change,
}

/// Something that the controller has reacted to: a failure, what came back, or what is to be taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair {
    /// When it happened.
    pub since: Time,
    /// When the last register was written that follows from it; `None`: nobody knows, it was not finished.
    pub until: Option<Time>,
}

impl Repair {
    /// How long it took.
    #[must_use]
    pub fn took(&self) -> Option<Span> {
        Some(self.until? - self.since)
    }
}

/// A control processor that has started again with another version of its firmware.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upgrade {
    /// Of which TiN.
    pub tin: u16,
    /// When it was told to.
    pub since: Time,
    /// When the controller knew that its registers were right; `None`: it did not come to that.
    pub until: Option<Time>,
}

/// What is written in a run, and what the controller has to say of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Journal {
    /// What is in the tables at the beginning is not among it. By time; those of an instant and a TiN as they were made.
    writes: Vec<Write>,
    /// By time.
    pub repairs: Vec<Repair>,
    /// When the controller has begun a batch, by time (M703).
    pub batches: Vec<Time>,
    /// By TiN, those that were told to start again with another version of the firmware.
    pub upgrades: Vec<Upgrade>,
}

impl Journal {
    /// Writes, in any order of TiNs; those of an instant and a TiN in the order in which they are made.
    #[must_use]
    pub fn new(mut writes: Vec<Write>) -> Self {
        writes.sort_by_key(|write| (write.at, write.tin));
        Self { writes, ..Self::default() }
    }

    /// All writes, by time.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }
}

/// Changes tables in place. They must have been built by it: blocks that are stored once for many ports are parted when
/// one of them changes.
#[derive(Clone, Debug)]
pub(crate) struct Editor {
    /// By block, in the order in which they are stored: how many ports have it.
    users: Vec<u32>,
    /// Where blocks begin that no port has any more.
    free: Vec<u32>,
    rows: HashMap<Row, u32>,
}

impl Editor {
    /// Tables of some TiNs alone, and what changes them.
    pub(crate) fn new(tables: &Tables, own: impl Fn(u16) -> bool) -> (Self, Tables) {
        let shape = tables.shape;
        let count = usize::from(components(&shape));
        let mut part = Builder::new(&shape, tables.escape.clone());
        let mut known = HashMap::new();
        for tin in (0..shape.tins()).filter(|&tin| own(tin)) {
            for (port, rvc) in blocks(&shape) {
                let block = tables.block(tin, port, rvc);
                let there = *known.entry(block).or_insert_with(|| {
                    let first = block as usize;
                    let entries = &tables.entries[first..first + count];
                    let rows = entries.iter().map(|&row| part.row(tables.rows[row as usize]));
                    let rows = rows.collect();
                    part.block(rows)
                });
                part.install(tin, port, rvc, there);
            }
        }
        let part = part.build();
        let mut users = vec![0; part.entries.len() / count];
        part.blocks.iter().for_each(|&block| users[block as usize / count] += 1);
        let rows = (0..).zip(&part.rows).map(|(index, &row)| (row, index)).collect();
        (Self { users, free: Vec::new(), rows }, part)
    }

    /// Carries out a change of a TiN's tables; [`Change::Down`] is the switch's.
    pub(crate) fn apply(&mut self, tables: &mut Tables, tin: u16, change: &Change) {
        match *change {
            Change::Row { port, rvc, component, row } => {
                let row = self.row(tables, row);
                let block = self.own_block(tables, tin, port, rvc);
                tables.entries[block + usize::from(component)] = row;
            }
            Change::Escape { has_come_down, to, port } => {
                tables.escape.set_port(tin, has_come_down, to, port);
            }
            Change::Order { order } => tables.escape.set_order(tin, order),
            Change::Down { .. } => {}
            Change::Reset => {
                for to in 0..tables.shape.tins() {
                    tables.escape.set_port(tin, false, to, NONE);
                    tables.escape.set_port(tin, true, to, NONE);
                }
                tables.escape.set_order(tin, None);
                for (port, rvc) in blocks(&tables.shape) {
                    self.give_back(tables, tin, port, rvc);
                }
            }
        }
    }

    /// The index of a row.
    fn row(&mut self, tables: &mut Tables, row: Row) -> u32 {
        *self.rows.entry(row).or_insert_with(|| {
            tables.rows.push(row);
            tables.rows.len() as u32 - 1
        })
    }

    /// Where the block of a port and channel begins, which nobody else has.
    fn own_block(&mut self, tables: &mut Tables, tin: u16, port: u8, rvc: u8) -> usize {
        let count = usize::from(components(&tables.shape));
        let place = block_place(&tables.shape, tin, port, rvc);
        let first = tables.blocks[place] as usize;
        if self.users[first / count] == 1 && first > 0 {
            return first;
        }
        self.users[first / count] -= 1;
        let block = self.free.pop().map_or_else(
            || {
                self.users.push(0);
                tables.entries.resize(tables.entries.len() + count, 0);
                tables.entries.len() - count
            },
            |block| block as usize,
        );
        tables.entries.copy_within(first..first + count, block);
        self.users[block / count] = 1;
        tables.blocks[place] = block as u32;
        block
    }

    /// A port and channel has the empty block, which is the first.
    fn give_back(&mut self, tables: &mut Tables, tin: u16, port: u8, rvc: u8) {
        let count = usize::from(components(&tables.shape));
        let place = block_place(&tables.shape, tin, port, rvc);
        let block = tables.blocks[place];
        self.users[block as usize / count] -= 1;
        if self.users[block as usize / count] == 0 && block > 0 {
            self.free.push(block);
        }
        self.users[0] += 1;
        tables.blocks[place] = 0;
    }
}

/// Input ports and routing channels.
pub(crate) fn blocks(shape: &Shape) -> impl Iterator<Item = (u8, u8)> + use<> {
    (0..shape.ports()).flat_map(|port| (0..ROUTING_VCS).map(move |rvc| (port, rvc)))
}

impl Tables {
    /// Whether a TiN's cells find the same ways in both, however they are stored.
    #[must_use]
    pub fn is_same_at(&self, tin: u16, other: &Self) -> bool {
        let rows = |tables: &Self, port, rvc, component| {
            *tables.by_index(tables.entry(tables.block(tin, port, rvc), component))
        };
        let is_same = |(port, rvc)| {
            (0..components(&self.shape)).all(|component| {
                rows(self, port, rvc, component) == rows(other, port, rvc, component)
            })
        };
        self.shape == other.shape
            && self.escape.is_same_at(tin, &other.escape)
            && blocks(&self.shape).all(is_same)
    }

    /// The tables behind these writes, one after another.
    #[must_use]
    pub fn after(&self, writes: &[Write]) -> Self {
        let (mut editor, mut tables) = Editor::new(self, |_| true);
        writes.iter().for_each(|write| editor.apply(&mut tables, write.tin, &write.change));
        tables
    }

    /// The writes that make a TiN's tables those that it has in `to`: of entries that differ, and no others.
    #[must_use]
    pub fn changes(&self, tin: u16, to: &Self, topology: &Topology) -> Vec<Change> {
        let mut changes = Vec::new();
        for (port, rvc) in blocks(&self.shape) {
            for component in 0..components(&self.shape) {
                let row = |tables: &Self| {
                    *tables.by_index(tables.entry(tables.block(tin, port, rvc), component))
                };
                if row(self) != row(to) {
                    changes.push(Change::Row { port, rvc, component, row: row(to) });
                }
            }
        }
        changes.extend(self.escape.changes(tin, &to.escape));
        let ports = to.escape.down_ports(tin, topology);
        if self.escape.down_ports(tin, topology) != ports {
            changes.push(Change::Down { ports });
        }
        changes
    }
}

impl Escape {
    /// The ports of a TiN that lead down: a bit each.
    #[must_use]
    pub fn down_ports(&self, tin: u16, topology: &Topology) -> u64 {
        let leads_down = |&port: &u8| {
            let far = topology.far(tin, port);
            far.is_some_and(|far| self.has(far.tin) && self.is_down(tin, far.tin))
        };
        let ports = (0..topology.shape().external_ports()).filter(leads_down);
        ports.fold(0, |mask, port| mask | 1 << port)
    }

    fn changes(&self, tin: u16, to: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for has_come_down in [false, true] {
            for there in 0..self.tins as u16 {
                let port = to.port(tin, has_come_down, there);
                if self.port(tin, has_come_down, there) != port {
                    changes.push(Change::Escape { has_come_down, to: there, port });
                }
            }
        }
        if self.order(tin) != to.order(tin) {
            changes.push(Change::Order { order: to.order(tin) });
        }
        changes
    }

    /// Whether a TiN has the same ways and the same place in the order.
    fn is_same_at(&self, tin: u16, other: &Self) -> bool {
        self.tins == other.tins && self.changes(tin, other).is_empty()
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
