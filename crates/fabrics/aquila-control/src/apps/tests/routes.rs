//! Registers as routes, checked while they change (I70, I71).
//!
//! Nothing of how flows came to be is used here: a cell is followed by the rows of chips from where it is injected,
//! over every port that a row names and that works, until it arrives or finds no way on.

use std::collections::BTreeSet;

use aquila::tables::{NONE, next_rvc};
use aquila::topology::PortKind;

use super::world::World;
use crate::registers::file::RegisterFile;
use crate::registers::map::ROUTE;
use crate::rpc::Item;

/// What cells can do.
pub struct Works<'a> {
    /// Whether a cell that leaves a TiN by a port arrives.
    pub port: &'a dyn Fn(u16, u8) -> bool,
    /// Whether a TiN has to be reached.
    pub tin: &'a dyn Fn(u16) -> bool,
    /// Whether cells of others may go through a TiN.
    pub may_pass: &'a dyn Fn(u16) -> bool,
}

/// Pairs of TiNs between which a cell can get to a place where it finds no way on.
pub fn stuck(world: &World, works: &Works<'_>) -> Vec<(u16, u16)> {
    let all: Vec<u16> = (0..world.clique.topology.shape().tins()).collect();
    stuck_to(world, works, &all)
}

/// The same of cells to some TiNs.
pub fn stuck_to(world: &World, works: &Works<'_>, to: &[u16]) -> Vec<(u16, u16)> {
    let shape = world.clique.topology.shape();
    let places = usize::from(shape.tins()) * 64 * 3;
    let mut stuck = Vec::new();
    for &to in to.iter().filter(|&&to| (works.tin)(to)) {
        let mut walk = Walk { world, works, to, known: vec![None; places] };
        for from in (0..shape.tins()).filter(|&from| from != to && (works.tin)(from)) {
            if !walk.arrives(from, shape.external_ports(), 0) {
                stuck.push((from, to));
            }
        }
    }
    stuck
}

/// All ways to one TiN.
struct Walk<'a> {
    world: &'a World,
    works: &'a Works<'a>,
    to: u16,
    /// By TiN, input port and channel: whether a cell there arrives, whichever way it takes.
    known: Vec<Option<bool>>,
}

impl Walk<'_> {
    fn arrives(&mut self, tin: u16, port: u8, rvc: u8) -> bool {
        if tin == self.to {
            return true;
        }
        let topology = &self.world.clique.topology;
        let shape = topology.shape();
        let is_others = topology.kind(port) != PortKind::Terminal;
        if rvc > 2 || is_others && !(self.works.may_pass)(tin) {
            return false;
        }
        let known = (usize::from(tin) * 64 + usize::from(port)) * 3 + usize::from(rvc);
        if let Some(arrives) = self.known[known] {
            return arrives;
        }
        // Who comes back here goes round in a circle.
        self.known[known] = Some(false);
        let (pod, place) = shape.split(self.to);
        let at = if shape.split(tin).0 == pod { 64 + place } else { pod };
        let file: &RegisterFile = &self.world.chips[usize::from(tin)].file;
        let row: [u8; 32] = file.get(ROUTE, [port.into(), rvc.into(), at.into()]);
        let named =
            row.iter().filter(|&&slot| slot != NONE).fold(0u64, |all, slot| all | 1 << slot);
        let mut outputs =
            (0..64).filter(|output| named >> output & 1 != 0 && (self.works.port)(tin, *output));
        let mut has_one = false;
        let arrives = outputs.by_ref().all(|output| {
            has_one = true;
            let far = topology.far(tin, output).expect("it works");
            let rvc = next_rvc(topology.kind(port), topology.kind(output), rvc);
            self.arrives(far.tin, far.port, rvc)
        }) && has_one;
        self.known[known] = Some(arrives);
        arrives
    }
}

/// The TiNs to which cells go by the entries of routes that an item writes.
pub fn destinations(world: &World, tin: u16, item: &Item) -> Vec<u16> {
    let shape = world.clique.topology.shape();
    let (address, bytes) = match item {
        Item::Write { address, entry } => (*address, entry.as_bytes().len()),
        Item::WriteBlock { address, bytes, .. } => (*address, bytes.len()),
        _ => return Vec::new(),
    };
    let (route, own) = (ROUTE.register(), shape.split(tin).0);
    if !(route.base..route.end()).contains(&address) {
        return Vec::new();
    }
    let first = (address - route.base) / route.entry_bytes();
    let entries = first..first + bytes as u32 / route.entry_bytes();
    let places: BTreeSet<u16> = entries.map(|at| (at % route.dimensions[2]) as u16).collect();
    let place = |&to: &u16| {
        let (pod, place) = shape.split(to);
        places.contains(&if pod == own { 64 + place } else { pod })
    };
    (0..shape.tins()).filter(place).collect()
}

/// No flow of a chip leads to a group that is not there (I70): tables of IP can be read back.
#[track_caller]
pub fn check_groups(world: &World, tin: u16, item: &Item) {
    let (Item::Write { address, .. } | Item::WriteBlock { address, .. }) = item else { return };
    // Routes of cells lead to no groups.
    if (ROUTE.register().base..ROUTE.register().end()).contains(address) {
        return;
    }
    let file = &world.chips[usize::from(tin)].file;
    if let Err(error) = crate::expand::ip::routes(file) {
        panic!("I70: TiN {tin}: {error}");
    }
}
