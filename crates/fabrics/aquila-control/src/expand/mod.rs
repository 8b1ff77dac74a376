//! From flows by port class to a chip's registers, and back.
//!
//! Models: Aquila §4.1, §4.2 (M706, M724, M725, I75): the front end of the controller expands a flow of a class of
//! ports to the table of each port of that class, prunes output ports that lead back to where the cell came from, and
//! converts between that and register values. What a chip holds already is not written again (I76).
//!
//! Which slots a flow's ports take, and what leads back, is decided by [`aquila::tables::compute`], which fills the
//! tables of switches without a controller.

pub mod ip;

use aquila::address::ENDPOINTS_MAX;
use aquila::tables::compute::input;
use aquila::tables::condition::State;
use aquila::tables::flows::Flows;
use aquila::tables::slots::Slots;
use aquila::tables::{
    Builder, Condition, Escape, NONE, OTHER_SLOTS, ROUTING_VCS, Row, Tables, components, terminals,
};
use aquila::topology::{Shape, Topology};
use aquila::turns::TurnTable;
use thiserror::Error;

use crate::registers::file::RegisterFile;
use crate::registers::map::{
    ESCAPE_DOWN, ESCAPE_ORDER, ESCAPE_PORT, ID_GNET, ROUTE, TERMINAL, TURN_ALLOWED,
};
use crate::registers::{Entry, Register};
use crate::rpc::Item;

/// Most bytes of a WRITE_BLOCK: half of a request, so that small differences are packed with large ones (our choice).
const BLOCK_BYTES_MAX: usize = 32 << 10;
/// In the route register: the first TiN of the own pod, behind the pods.
const TINS_FROM: u16 = 64;

/// The registers that [`expand`] sets.
#[must_use]
pub fn owned() -> [&'static Register; 7] {
    [
        ID_GNET.register(),
        TURN_ALLOWED.register(),
        TERMINAL.register(),
        ESCAPE_DOWN.register(),
        ESCAPE_ORDER.register(),
        ESCAPE_PORT.register(),
        ROUTE.register(),
    ]
}

/// What all TiNs are to be set to.
#[derive(Clone, Copy, Debug)]
pub struct Solution<'a> {
    /// Who is connected to whom.
    pub topology: &'a Topology,
    /// Which turns cells may take.
    pub turns: &'a TurnTable,
    /// What works.
    pub condition: &'a Condition,
    /// Routes by class.
    pub flows: &'a Flows,
    /// The ways of the escape channels.
    pub escape: &'a Escape,
}

/// Where a destination's component stands in the route register.
pub(crate) fn place(shape: &Shape, component: u16) -> u16 {
    if component < shape.pods { component } else { TINS_FROM + component - shape.pods }
}

/// The component that stands at a place of the route register; `None`: none of this Clique.
pub(crate) fn component(shape: &Shape, place: u16) -> Option<u16> {
    match place {
        place if place < shape.pods => Some(place),
        place => {
            let own = place.checked_sub(TINS_FROM)?;
            (own < shape.tins_per_pod).then_some(shape.pods + own)
        }
    }
}

/// The TiN that [`number`] stands for.
pub(crate) fn tin(shape: &Shape, number: u32) -> Option<u16> {
    let (pod, place) = ((number >> 4) as u16, (number & 15) as u16);
    (pod < shape.pods && place < shape.tins_per_pod).then(|| shape.tin(pod, place))
}

/// A TiN among all as its bits of an address: pod, and place of the pod.
pub(crate) fn number(shape: &Shape, tin: u16) -> u32 {
    let (pod, place) = shape.split(tin);
    u32::from(pod << 4 | place)
}

/// Sets the routing registers of an image of a TiN's registers. What it held there before is gone; a dead TiN is left
/// without routes.
pub fn expand(solution: &Solution<'_>, tin: u16, image: &mut RegisterFile) {
    for register in owned() {
        image.reset(register);
    }
    let Solution { topology, turns, condition, flows, escape } = *solution;
    let shape = topology.shape();
    if condition.tin(tin) == State::Dead {
        return;
    }
    image.set(ID_GNET, [], (number(shape, tin) << 6) as u16);
    image.set(TURN_ALLOWED, [], turns.bits());
    for endpoint in 0..ENDPOINTS_MAX {
        let row = terminals(shape, endpoint);
        image.set(TERMINAL, [endpoint.into()], u64::from_be_bytes(row.minimal));
    }
    expand_escape(topology, escape, tin, image);
    let slots = Slots::of(topology, tin);
    for port in 0..shape.ports() {
        let Some((class, back)) = input(topology, condition, tin, port) else { continue };
        for rvc in class.channels() {
            for component in 0..components(shape) {
                let flow = flows.get(tin, class, rvc, component).without(back);
                let row = slots.row(flow, component);
                let at = [port.into(), rvc.into(), place(shape, component).into()];
                image.set(ROUTE, at, row_bytes(&row));
            }
        }
    }
}

fn expand_escape(topology: &Topology, escape: &Escape, tin: u16, image: &mut RegisterFile) {
    let shape = topology.shape();
    for (row, has_come_down) in [(0, false), (1, true)] {
        for to in 0..shape.tins() {
            let port = escape.port(tin, has_come_down, to);
            image.set(ESCAPE_PORT, [row, number(shape, to)], port);
        }
    }
    if let Some(order) = escape.order(tin) {
        image.set(ESCAPE_ORDER, [], order);
    }
    let leads_down = |&port: &u8| {
        topology
            .far(tin, port)
            .is_some_and(|far| escape.has(far.tin) && escape.is_down(tin, far.tin))
    };
    let down =
        (0..shape.external_ports()).filter(leads_down).fold(0, |mask, port| mask | 1 << port);
    image.set(ESCAPE_DOWN, [], down);
}

pub(crate) fn row_bytes(row: &Row) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&row.minimal);
    bytes[8..].copy_from_slice(&row.others);
    bytes
}

/// The writes that make one register file of another, in these registers: of entries that differ, and of no others.
#[must_use]
pub fn difference(
    from: &RegisterFile,
    to: &RegisterFile,
    registers: &[&'static Register],
) -> Vec<Item> {
    let changes =
        |&register: &&'static Register| writes(to, register, from.differing(to, register));
    registers.iter().flat_map(changes).collect()
}

/// The writes of some entries of a register, in order, as they are in a file; neighbours in one item.
pub(crate) fn writes(
    to: &RegisterFile,
    register: &Register,
    entries: impl IntoIterator<Item = u32>,
) -> Vec<Item> {
    let mut items = Vec::new();
    let size = register.entry_bytes() as usize;
    let mut run: Option<(u32, Vec<u8>)> = None;
    for at in entries {
        let address = register.base + at * register.entry_bytes();
        let entry = to.read(address).expect("the register has this entry");
        match &mut run {
            Some((first, bytes))
                if *first + bytes.len() as u32 == address
                    && bytes.len() + size <= BLOCK_BYTES_MAX =>
            {
                bytes.extend(entry.as_bytes());
            }
            run => {
                let before = run.replace((address, entry.as_bytes().to_vec()));
                items.extend(before.map(|(address, bytes)| write(address, size, bytes)));
            }
        }
    }
    items.extend(run.map(|(address, bytes)| write(address, size, bytes)));
    items
}

/// The shortest item that writes these bytes.
fn write(address: u32, size: usize, bytes: Vec<u8>) -> Item {
    match Entry::from_bytes(&bytes) {
        Some(entry) if bytes.len() == size => Item::Write { address, entry },
        _ => Item::WriteBlock { address, size: size as u8, bytes },
    }
}

/// Why registers are no tables of a Clique.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReadBack {
    /// There are not as many chips as TiNs.
    #[error("{found} register files; expected {expected}, one a TiN")]
    Count {
        /// How many there are.
        found: usize,
        /// How many TiNs.
        expected: u16,
    },
    /// A chip takes itself for another.
    #[error(
        "TiN {tin}: id.gnet is {found:#06x}; expected {expected:#06x}, or all ones before it is set"
    )]
    Address {
        /// Which.
        tin: u16,
        /// What it says.
        found: u16,
        /// What it is.
        expected: u16,
    },
    /// An entry is no row: some of its slots are ports of a TiN and some are not.
    #[error("TiN {tin}: route of port {port}, channel {rvc}, destination {at} is no row of ports")]
    Row {
        /// Which.
        tin: u16,
        /// Input port.
        port: u8,
        /// Routing channel.
        rvc: u8,
        /// Last index.
        at: u16,
    },
    /// An endpoint's ports are not those that it has.
    #[error("TiN {tin}: terminal {endpoint} has other ports than its endpoint")]
    Terminal {
        /// Which.
        tin: u16,
        /// Its endpoint.
        endpoint: u8,
    },
}

/// The tables that chips hold, TiN by TiN. Chips without an address hold none.
///
/// # Errors
/// What they hold is none.
pub fn tables(shape: &Shape, chips: &[RegisterFile]) -> Result<Tables, ReadBack> {
    let expected = shape.tins();
    if chips.len() != usize::from(expected) {
        return Err(ReadBack::Count { found: chips.len(), expected });
    }
    let mut builder = Builder::new(shape, escapes(shape, chips));
    for (tin, chip) in (0..expected).zip(chips) {
        let (found, expected) = (chip.get(ID_GNET, []), (number(shape, tin) << 6) as u16);
        if found == u16::MAX {
            continue;
        }
        if found != expected {
            return Err(ReadBack::Address { tin, found, expected });
        }
        for endpoint in 0..ENDPOINTS_MAX {
            let found = chip.get(TERMINAL, [endpoint.into()]).to_be_bytes();
            if found != terminals(shape, endpoint).minimal {
                return Err(ReadBack::Terminal { tin, endpoint });
            }
        }
        for (port, rvc) in (0..64).flat_map(|port| (0..ROUTING_VCS).map(move |rvc| (port, rvc))) {
            let rows = rows(shape, chip, port, rvc);
            let rows = rows.map_err(|at| ReadBack::Row { tin, port, rvc, at })?;
            if port < shape.ports() {
                let rows = rows.into_iter().map(|row| builder.row(row)).collect();
                let block = builder.block(rows);
                builder.install(tin, port, rvc, block);
            }
        }
    }
    Ok(builder.build())
}

fn escapes(shape: &Shape, chips: &[RegisterFile]) -> Escape {
    let mut ports = Vec::new();
    for (chip, row) in chips.iter().flat_map(|chip| [(chip, 0), (chip, 1)]) {
        let port = |to| chip.get(ESCAPE_PORT, [row, number(shape, to)]);
        ports.extend((0..shape.tins()).map(port));
    }
    let order = |chip: &RegisterFile| Some(chip.get(ESCAPE_ORDER, [])).filter(|&o| o != u32::MAX);
    Escape::from_parts(ports, chips.iter().map(order).collect())
}

/// The rows of an input port and channel, a component each; or which entry is none. Ports and destinations that a
/// Clique of this shape has not must be empty.
fn rows(shape: &Shape, chip: &RegisterFile, port: u8, rvc: u8) -> Result<Vec<Row>, u16> {
    let address = ROUTE.address([port.into(), rvc.into(), 0]).expect("64 ports, 3 channels");
    let all = chip.read_block(address, 80).expect("80 destinations");
    let (entries, _) = all.as_chunks::<32>();
    let mut rows = vec![Row::EMPTY; usize::from(components(shape))];
    for (at, entry) in (0..).zip(entries) {
        let row = row(shape, entry).ok_or(at)?;
        match component(shape, at).filter(|_| port < shape.ports()) {
            Some(component) => rows[usize::from(component)] = row,
            None if row.is_empty() => {}
            None => return Err(at),
        }
    }
    Ok(rows)
}

/// A row of ports; `None`: it is none.
pub(crate) fn row(shape: &Shape, bytes: &[u8; 32]) -> Option<Row> {
    let (minimal, others) = bytes.split_first_chunk::<8>()?;
    let others: &[u8; OTHER_SLOTS] = others.try_into().ok()?;
    let is_whole = |slots: &[u8]| {
        slots.iter().all(|&slot| slot == NONE) || slots.iter().all(|&slot| slot < shape.ports())
    };
    let row = Row { minimal: *minimal, others: *others };
    (is_whole(minimal) && is_whole(others)).then_some(row)
}

#[cfg(test)]
mod tests;
