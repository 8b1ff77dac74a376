//! The control plane beside a run of the fabric: from what breaks in it to what is written to its tables when.
//!
//! Models: Aquila §3.2, §4.1 to §4.3 (M729, M730, M609): a Clique that is booted when the run begins; what fails in it is
//! seen by firmware, told to the base, worked out by the routing engine, and written to chips register by register.
//!
//! **Our choice**: packets of the control plane are few and wait for nobody, so what hosts send makes no difference to
//! them, and what breaks is configuration. So the control plane runs first, by itself, and the fabric is told what it
//! wrote ([`aquila::tables::journal`]): every part of the fabric carries out its own share at its time, and results do
//! not depend on cuts or threads. The way of a packet of the control plane through chips is that of their registers.

pub mod measure;
#[cfg(test)]
mod tests;
mod world;

use aquila::config::Work;
use aquila::tables::compute::compute;
use aquila::tables::journal::{Change, Journal, Repair, Write};
use aquila::tables::{Condition, NONE, Tables};
use aquila::topology::Shape;
use aquila::{Hardware, Plan};
use kernel::{Span, Time};

use crate::apps::rows::Admin;
use crate::expand::{component, row, tables, tin};
use crate::registers::file::RegisterFile;
use crate::registers::map::{ESCAPE_DOWN, ESCAPE_ORDER, ESCAPE_PORT, ROUTE};
use crate::registers::{Register, map};
use world::{Fault, World, Written};

/// Nothing more is waited for when nothing has been written for so long: longer than any time-out (our choice).
const QUIET: Span = Span::from_us(15_000_000);
/// At the latest so long after the last event it is given up (our choice).
const PATIENCE: Span = Span::from_us(600_000_000);

/// What is written to tables in a run of a plan.
///
/// # Panics
/// If the plan is not one that was checked.
#[must_use]
pub fn journal(plan: &Plan) -> Journal {
    let mut world = World::new(&plan.topology, &plan.config.sdn);
    let start = world.now;
    let since_start = |time: Time| Time::ZERO + (time - start);
    let shape = *plan.topology.shape();
    let mut writes = held(plan, &mut world);
    let faults = faults(plan);
    for &(time, fault) in &faults {
        world.plan(start + (time - Time::ZERO), fault);
    }
    let needs_repair = |fault: &Fault| !matches!(fault, Fault::Restart(_));
    let mut times: Vec<Time> = faults.iter().map(|&(time, _)| time).collect();
    times.dedup();
    let mut repairs = Vec::new();
    for (at, &since) in times.iter().enumerate() {
        match times.get(at + 1) {
            // What happens at the next instant is not done yet.
            Some(&next) => world.run_to(start + (next - Time::ZERO) - Span::from_ps(1)),
            None => finish(&mut world),
        }
        let mut last = None;
        for written in std::mem::take(&mut world.written) {
            let found = changes(&shape, &written, since_start(written.at));
            last = last.max(found.map(|write| write.at));
            writes.extend(found);
        }
        let mut here = faults.iter().filter(|(time, _)| *time == since);
        if here.any(|(_, fault)| needs_repair(fault)) {
            let is_open = last.is_none() || !world.is_settled();
            repairs.push(Repair { since, until: last.filter(|_| !is_open) });
        }
    }
    let batches = world.batches.iter().map(|&time| since_start(time)).collect();
    let mut journal = Journal::new(writes);
    (journal.repairs, journal.batches) = (repairs, batches);
    journal
}

/// Goes on until nothing happens any more.
fn finish(world: &mut World) {
    let since = world.now;
    loop {
        let known = world.written.len();
        world.run_to(world.now + QUIET);
        let is_quiet = world.written.len() == known && world.is_settled();
        if is_quiet || world.now > since + PATIENCE {
            return;
        }
    }
}

/// What happens in a plan, by time.
fn faults(plan: &Plan) -> Vec<(Time, Fault)> {
    let mut faults = Vec::new();
    for (time, part, works) in plan.outages() {
        faults.push(match part {
            Hardware::Link(link) => (time, Fault::Link(link, works)),
            Hardware::Tin(tin) => (time, Fault::Tin(tin, works)),
        });
    }
    for (maintenance, work) in &plan.works {
        let (at, until) = (Time::ZERO + maintenance.at, maintenance.until);
        match work {
            Work::Restart { tin } => faults.push((at, Fault::Restart(*tin))),
            Work::Drain { links, tins } => {
                let changes = [
                    (Some(at), Admin::Drained),
                    (until.map(|until| Time::ZERO + until), Admin::InService),
                ];
                for (time, admin) in changes {
                    let Some(time) = time else { continue };
                    faults.extend(links.iter().map(|&link| (time, Fault::Drain(link, admin))));
                    faults.extend(tins.iter().map(|&tin| (time, Fault::Node(tin, admin))));
                }
            }
        }
    }
    faults.sort_by_key(|&(time, _)| time);
    faults
}

/// What chips hold at the beginning and tables that are computed do not: nothing, where the control plane is right.
fn held(plan: &Plan, world: &mut World) -> Vec<Write> {
    let topology = &plan.topology;
    let computed = compute(topology, &plan.turns, &Condition::healthy(topology));
    // Lent, as they are large.
    let lent = world.chips.iter_mut().map(|chip| std::mem::take(&mut chip.registers));
    let files: Vec<RegisterFile> = lent.collect();
    let held: Tables = tables(topology.shape(), &files).expect("the front end has written them");
    world.chips.iter_mut().zip(files).for_each(|(chip, file)| chip.registers = file);
    let of = |tin| {
        let changes = computed.changes(tin, &held, topology).into_iter();
        changes.map(move |change| Write { at: Time::ZERO, tin, change })
    };
    (0..topology.shape().tins()).flat_map(of).collect()
}

/// What a write to a register changes in a TiN's tables; `None`: nothing.
fn changes(shape: &Shape, written: &Written, at: Time) -> Option<Write> {
    let tin = written.tin;
    let Some((address, bytes)) = &written.entry else {
        return Some(Write { at, tin, change: Change::Reset });
    };
    let (register, index) = crate::registers::find(*address).ok()?;
    let change = change(shape, &map::REGISTERS[register], index, bytes)?;
    Some(Write { at, tin, change })
}

/// What a register's entry means to cells; `None`: nothing, or nothing that changes after a bootstrap.
fn change(shape: &Shape, register: &Register, index: u32, bytes: &[u8]) -> Option<Change> {
    let is = |other: &Register| std::ptr::eq(register, other);
    if is(ROUTE.register()) {
        let [_, channels, places] = *ROUTE.register().dimensions else { return None };
        let port = (index / places / channels) as u8;
        let component = component(shape, (index % places) as u16)?;
        let row = row(shape, bytes.try_into().ok()?)?;
        let rvc = (index / places % channels) as u8;
        return (port < shape.ports()).then_some(Change::Row { port, rvc, component, row });
    }
    if is(ESCAPE_PORT.register()) {
        let [_, numbers] = *ESCAPE_PORT.register().dimensions else { return None };
        let to = tin(shape, index % numbers)?;
        let port = *bytes.first()?;
        let port = if port < shape.ports() { port } else { NONE };
        return Some(Change::Escape { has_come_down: index >= numbers, to, port });
    }
    if is(ESCAPE_DOWN.register()) {
        return Some(Change::Down { ports: u64::from_be_bytes(bytes.try_into().ok()?) });
    }
    if is(ESCAPE_ORDER.register()) {
        let order = u32::from_be_bytes(bytes.try_into().ok()?);
        return Some(Change::Order { order: Some(order).filter(|&order| order != u32::MAX) });
    }
    None
}
