//! The routing tables of a Clique's switches: what the chips hold and look up.
//!
//! Models: Aquila §3.2, §4.2 (M301 to M304, M308, M725): a table for each input port and virtual channel; an
//! entry names up to 8 output ports on shortest ways and 24 others. The key is the input port, the routing
//! virtual channel (0 to 2) that the cell came on, and the destination's pod or, in its own pod, its TiN
//! (our choice, M302). Beside it stand the ways of the escape channels: up*/down* routes.
//!
//! Who fills them is another matter: see [`compute`]. Equal rows are stored once, and so are equal tables
//! of ports.

pub mod check;
pub mod compute;
pub mod condition;
mod escape;
pub mod flows;
pub mod journal;
pub mod slots;

#[cfg(test)]
pub mod tests;

use std::collections::HashMap;

use crate::address::{Address, ENDPOINTS_MAX, Endpoint};
use crate::topology::{PortKind, Shape};

pub use condition::Condition;
pub use escape::Escape;

/// In a row and in the escape table: no port.
pub const NONE: u8 = u8::MAX;
/// Output ports on shortest ways (§3.2).
pub const MINIMAL_SLOTS: usize = 8;
/// Output ports on other ways (§3.2).
pub const OTHER_SLOTS: usize = 24;
/// Routing virtual channels of a traffic class (§3.1, §3.2).
pub const ROUTING_VCS: u8 = 3;

/// An entry: output ports. A port may stand in several slots, which makes its choice more likely.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C, align(32))]
pub struct Row {
    /// On shortest ways; all slots are ports, or all are [`NONE`].
    pub minimal: [u8; MINIMAL_SLOTS],
    /// On other ways; the same.
    pub others: [u8; OTHER_SLOTS],
}

impl Row {
    /// No port at all.
    pub const EMPTY: Self = Self { minimal: [NONE; MINIMAL_SLOTS], others: [NONE; OTHER_SLOTS] };

    /// Whether it names no port.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.minimal[0] == NONE && self.others[0] == NONE
    }

    /// The ports of shortest ways, a bit each.
    #[must_use]
    pub fn minimal_ports(&self) -> u64 {
        mask(&self.minimal)
    }

    /// The ports of other ways, a bit each.
    #[must_use]
    pub fn other_ports(&self) -> u64 {
        mask(&self.others)
    }
}

fn mask(slots: &[u8]) -> u64 {
    slots.iter().filter(|&&port| port != NONE).fold(0, |mask, port| mask | 1 << port)
}

/// The routing virtual channel that a cell leaves on: one higher when it goes from a global port on to
/// another TiN (M303); 3 or more is none.
#[must_use]
pub const fn next_rvc(from: PortKind, to: PortKind, rvc: u8) -> u8 {
    match (from, to) {
        (PortKind::Global, PortKind::Local | PortKind::Global) => rvc + 1,
        _ => rvc,
    }
}

/// The tables of all switches of a Clique.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tables {
    shape: Shape,
    rows: Vec<Row>,
    /// By block and component: the row's index.
    entries: Vec<u32>,
    /// By TiN, input port and routing virtual channel: where its block begins.
    blocks: Vec<u32>,
    /// By endpoint: the row of its terminal ports.
    terminals: [u32; ENDPOINTS_MAX as usize],
    escape: Escape,
}

impl Tables {
    /// The entry for a cell that came in at `port` of `tin` on routing channel `rvc`; the terminal ports of
    /// its endpoint if it is there. An empty row: no legal way is left, and it must go on an escape channel.
    ///
    /// # Panics
    /// If there is no such TiN, port or channel.
    #[inline]
    #[must_use]
    pub fn row(&self, tin: u16, port: u8, rvc: u8, destination: Address) -> &Row {
        self.by_index(self.index(tin, port, rvc, destination))
    }

    /// The same, as an index for [`Tables::by_index`]. What an address outside of the Clique gets is empty.
    ///
    /// # Panics
    /// If there is no such TiN, port or channel.
    #[inline]
    #[must_use]
    pub fn index(&self, tin: u16, port: u8, rvc: u8, destination: Address) -> u32 {
        let (pod, place) = self.shape.split(tin);
        match component(&self.shape, pod, place, destination) {
            Component::Far(component) => self.entry(self.block(tin, port, rvc), component),
            Component::Own(endpoint) => self.terminals[usize::from(endpoint.number())],
            Component::Unknown => 0,
        }
    }

    /// The terminal ports of an endpoint of the TiN itself; empty if nothing listens there.
    #[inline]
    #[must_use]
    pub fn terminals(&self, endpoint: Endpoint) -> &Row {
        self.by_index(self.terminals[usize::from(endpoint.number())])
    }

    /// Where the table of an input port and routing channel begins; for [`Tables::entry`].
    ///
    /// # Panics
    /// If there is no such TiN, port or channel.
    #[inline]
    #[must_use]
    pub fn block(&self, tin: u16, port: u8, rvc: u8) -> u32 {
        debug_assert!(port < self.shape.ports() && rvc < ROUTING_VCS, "port {port}, channel {rvc}");
        self.blocks[block_place(&self.shape, tin, port, rvc)]
    }

    /// The index of a row, by block and component (see [`component`]).
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    #[must_use]
    pub fn entry(&self, block: u32, component: u16) -> u32 {
        self.entries[block as usize + usize::from(component)]
    }

    /// The component of a destination that is not of the TiN in which the address `own` is, if it exists.
    #[inline]
    pub(crate) fn far_component(&self, own: Address, destination: Address) -> u16 {
        match destination.pod() == own.pod() {
            true => self.shape.pods + destination.tin(),
            false => destination.pod(),
        }
    }

    /// Asks for the memory of an entry.
    #[inline]
    pub(crate) fn prefetch(&self, block: u32, component: u16) {
        kernel::prefetch(&self.entries, block as usize + usize::from(component));
    }

    /// The row of this index.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn by_index(&self, index: u32) -> &Row {
        &self.rows[index as usize]
    }

    /// The same with another row in one entry: what a fault in the memory of a chip would make of it. Tables of other
    /// ports that are stored in the same place stay as they are.
    ///
    /// # Panics
    /// If there is no such TiN, port, channel or component.
    #[must_use]
    pub fn with_entry(&self, tin: u16, port: u8, rvc: u8, component: u16, row: Row) -> Self {
        let mut tables = self.clone();
        let (first, count) = (self.block(tin, port, rvc) as usize, components(&self.shape));
        let block = tables.entries.len();
        tables.entries.extend_from_within(first..first + usize::from(count));
        tables.entries[block + usize::from(component)] = tables.rows.len() as u32;
        tables.rows.push(row);
        tables.blocks[block_place(&self.shape, tin, port, rvc)] = block as u32;
        tables
    }

    /// The port on which a cell on an escape channel goes on, or [`NONE`]; the TiN's own cells are to be
    /// handed over by [`Tables::index`].
    ///
    /// # Panics
    /// If there is no such TiN.
    #[inline]
    #[must_use]
    pub fn escape(&self, tin: u16, has_come_down: bool, destination: u16) -> u8 {
        self.escape.port(tin, has_come_down, destination)
    }

    /// The tables of the escape channels.
    #[must_use]
    pub fn escapes(&self) -> &Escape {
        &self.escape
    }

    /// How many of everything there are.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All distinct rows; the first is empty.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

fn block_place(shape: &Shape, tin: u16, port: u8, rvc: u8) -> usize {
    let ports = usize::from(shape.ports());
    (usize::from(tin) * ports + usize::from(port)) * usize::from(ROUTING_VCS) + usize::from(rvc)
}

/// Which part of a destination a table looks at (M302).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Component {
    /// Another pod, below the number of pods, or, from there on, a TiN of the own pod.
    Far(u16),
    /// An endpoint of the TiN itself.
    Own(Endpoint),
    /// Nothing of this Clique.
    Unknown,
}

/// How many components a destination can have that lie elsewhere.
#[must_use]
pub const fn components(shape: &Shape) -> u16 {
    shape.pods + shape.tins_per_pod
}

/// Which part of a destination the TiN at `place` of `pod` looks at.
#[inline]
#[must_use]
pub fn component(shape: &Shape, pod: u16, place: u16, destination: Address) -> Component {
    component_from(shape, Address::new(pod, place, Endpoint::ETHERNET), destination)
}

/// Which part of a destination the TiN looks at in which the address `own` is.
#[inline]
#[must_use]
pub fn component_from(shape: &Shape, own: Address, destination: Address) -> Component {
    let (to, tin) = (destination.pod(), destination.tin());
    if destination.is_with(own) {
        Component::Own(destination.endpoint())
    } else if to >= shape.pods || tin >= shape.tins_per_pod {
        Component::Unknown
    } else {
        Component::Far(if to != own.pod() { to } else { shape.pods + tin })
    }
}

/// Fills tables, and stores what is equal once.
pub struct Builder {
    tables: Tables,
    rows: HashMap<Row, u32>,
    blocks: HashMap<Vec<u32>, u32>,
}

impl Builder {
    /// Tables without ways, but for those to the TiNs' own endpoints and those of the escape channels.
    #[must_use]
    pub fn new(shape: &Shape, escape: Escape) -> Self {
        let places =
            usize::from(shape.tins()) * usize::from(shape.ports()) * usize::from(ROUTING_VCS);
        let tables = Tables {
            shape: *shape,
            rows: Vec::new(),
            entries: Vec::new(),
            blocks: vec![0; places],
            terminals: [0; ENDPOINTS_MAX as usize],
            escape,
        };
        let mut builder = Self { tables, rows: HashMap::new(), blocks: HashMap::new() };
        builder.row(Row::EMPTY);
        // What no cell can come on: nothing.
        builder.block(vec![0; usize::from(components(shape))]);
        builder.terminals();
        builder
    }

    /// The index of a row.
    pub fn row(&mut self, row: Row) -> u32 {
        let rows = &mut self.tables.rows;
        *self.rows.entry(row).or_insert_with(|| {
            rows.push(row);
            rows.len() as u32 - 1
        })
    }

    /// Where a block begins that has these rows, a component each.
    ///
    /// # Panics
    /// If it has more or fewer.
    pub fn block(&mut self, block: Vec<u32>) -> u32 {
        assert_eq!(block.len(), usize::from(components(&self.tables.shape)), "a row a component");
        let entries = &mut self.tables.entries;
        *self.blocks.entry(block).or_insert_with_key(|block| {
            entries.extend_from_slice(block);
            (entries.len() - block.len()) as u32
        })
    }

    /// Installs the block of an input port and channel.
    ///
    /// # Panics
    /// If there is no such TiN, port or channel.
    pub fn install(&mut self, tin: u16, port: u8, rvc: u8, block: u32) {
        let place = block_place(&self.tables.shape, tin, port, rvc);
        self.tables.blocks[place] = block;
    }

    /// The tables.
    #[must_use]
    pub fn build(self) -> Tables {
        self.tables
    }

    /// The rows of the endpoints.
    fn terminals(&mut self) {
        for number in 0..ENDPOINTS_MAX {
            let row = terminals(&self.tables.shape, number);
            self.tables.terminals[usize::from(number)] = self.row(row);
        }
    }
}

/// The terminal ports of an endpoint, by its number; empty if nothing listens there.
#[must_use]
pub fn terminals(shape: &Shape, number: u8) -> Row {
    let terminals = Endpoint::from_number(number).and_then(Endpoint::terminals);
    let Some((first, count)) = terminals else { return Row::EMPTY };
    let first = shape.external_ports() + first;
    let ports = (0..count).fold(0u64, |mask, port| mask | 1 << (first + port));
    Row { minimal: slots::fill(ports, 0), ..Row::EMPTY }
}
