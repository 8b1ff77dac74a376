//! The control plane beside a run of the fabric: from what breaks in it to what is written to its tables when.
//!
//! Models: Aquila §3.2, §4.1 to §4.3, §6 (M729, M730, M609, M617): a Clique that is up when the run begins; what fails in it is
//! seen by firmware, told to the base, worked out by the routing engine, and written to chips register by register.
//!
//! **Our choice**: packets of the control plane are few and wait for nobody, so what hosts send makes no difference to
//! them, and what breaks is configuration. So the control plane runs first, by itself ([`crate::sim`]), and the fabric is
//! told what it wrote ([`aquila::tables::journal`]): every part of the fabric carries out its own share at its time, and
//! results do not depend on cuts or threads. The way of a packet of the control plane through chips is that of their
//! registers.
//!
//! Nothing is written before the first thing happens. So the Clique is brought up for that instant, and its times are
//! counted from there: whatever the controller does of its own accord, such as renewing leases, when a run begins makes
//! no difference.
//!
//! Leaves out: what the routing engine takes to compute; what would be written after [`PATIENCE`].

pub mod measure;
#[cfg(test)]
mod tests;

use aquila::config::{Sdn, Work};
use aquila::tables::compute::compute;
use aquila::tables::journal::{Change, Journal, Repair, Upgrade, Write};
use aquila::tables::{Condition, NONE};
use aquila::topology::Shape;
use aquila::{Hardware, Plan};
use kernel::{Span, Time};

use crate::apps::front_end::{self, image_rate};
use crate::apps::rows::Admin;
use crate::expand::{component, row, tables, tin};
use crate::flash::Code;
use crate::registers::file::RegisterFile;
use crate::registers::map::{ESCAPE_DOWN, ESCAPE_ORDER, ESCAPE_PORT, ROUTE};
use crate::registers::{Register, map};
use crate::rpc::Restart;
use crate::sim::journal::{Booted, Entry, What};
use crate::sim::results::Upgraded;
use crate::sim::{Config, Fault};

/// How often it is looked at whether all is as it should be (our choice: no message takes less)...
const LOOK: Span = Span::from_us(100);
/// ...and where nothing has happened for as long as this.
const LOOK_IDLE: Span = Span::from_us(10_000);
/// All must be as it should be for so long at the end (our choice: longer than any time-out of the controller).
const QUIET: Span = Span::from_us(15_000_000);
/// So long after the last event it is given up (our choice: a TiN that comes back is programmed in less).
pub const PATIENCE: Span = Span::from_us(600_000_000);

/// What is written to tables in a run of a plan. `seed` is that of all chance in the control plane.
///
/// # Panics
/// If the plan is not one that was checked.
#[must_use]
pub fn journal(plan: &Plan, seed: u64) -> Journal {
    watch(plan, &faults(plan), seed).0
}

/// The journal of what happens to a plan's Clique, by time, and the Clique behind it.
fn watch(plan: &Plan, faults: &[(Time, Fault)], seed: u64) -> (Journal, Option<Booted>) {
    let Some(&(first, _)) = faults.first() else { return (Journal::default(), None) };
    let from_first = |&(time, fault): &(Time, Fault)| (Time::ZERO + (time - first), fault);
    let config = config(&plan.config.sdn, plan.topology.shape(), seed);
    let faults: Vec<(Time, Fault)> = faults.iter().map(from_first).collect();
    let mut clique = Booted::new(Config { faults: faults.clone(), ..config });
    let mut found = Found::new(*plan.topology.shape(), first);
    found.writes = held(plan, &clique);
    found.run(&mut clique, &faults);
    let upgrade = |(tin, one): (u16, Upgraded)| {
        let since = found.time(one.restarted?);
        Some(Upgrade { tin, since, until: one.done.map(|at| found.time(at)) })
    };
    let upgrades = clique.upgraded().into_iter().filter_map(upgrade).collect();
    let Found { writes, repairs, batches, .. } = found;
    let mut journal = Journal::new(writes);
    journal.upgrades = upgrades;
    (journal.repairs, journal.batches) = (repairs, batches);
    (journal, Some(clique))
}

/// A Clique that is up, with the times of a scenario.
fn config(sdn: &Sdn, shape: &Shape, seed: u64) -> Config {
    let config = Config::new(shape, sdn.connected(shape), seed);
    let block_time = sdn.block_time.unwrap_or(config.block_time);
    Config {
        network: sdn.network,
        hop: sdn.hop,
        message: sdn.message,
        entry_time: sdn.entry_time,
        start_time: sdn.start_time,
        mos_interval: sdn.mos_interval,
        block_time,
        front_end: front_end::Settings { image_rate: image_rate(block_time), ..config.front_end },
        ..config
    }
}

/// What has been seen of the control plane so far, at times of the run.
struct Found {
    shape: Shape,
    /// In the run, the instant for which the Clique was brought up.
    first: Time,
    writes: Vec<Write>,
    repairs: Vec<Repair>,
    batches: Vec<Time>,
    /// When something has happened that may have to be repaired, and nobody has seen yet that all is well again.
    open: Vec<Time>,
}

impl Found {
    fn new(shape: Shape, first: Time) -> Self {
        let (writes, repairs, batches, open) = Default::default();
        Self { shape, first, writes, repairs, batches, open }
    }

    fn time(&self, time: Time) -> Time {
        self.first + (time - Time::ZERO)
    }

    /// Goes on until nothing happens any more.
    fn run(&mut self, clique: &mut Booted, faults: &[(Time, Fault)]) {
        let last = faults.last().map_or(Time::ZERO, |&(time, _)| time);
        let (mut now, mut next, mut idle) = (Time::ZERO, 0, Span::ZERO);
        while now < last + PATIENCE {
            let here = faults[next..].iter().take_while(|(time, _)| *time == now);
            let here: Vec<Fault> = here.map(|&(_, fault)| fault).collect();
            next += here.len();
            if here.into_iter().any(needs_repair) {
                self.open.push(self.time(now));
            }
            let step = if idle < LOOK_IDLE { LOOK } else { LOOK_IDLE };
            now = faults.get(next).map_or(now + step, |&(time, _)| time.min(now + step));
            let mut is_written = self.go(clique, now);
            idle = if is_written { Span::ZERO } else { idle + step };
            if !clique.is_settled() {
                continue;
            }
            self.close();
            if next == faults.len() {
                now += QUIET;
                is_written = self.go(clique, now);
                if clique.is_settled() && !is_written {
                    break;
                }
            }
        }
        let open = self.open.drain(..).map(|since| Repair { since, until: None });
        self.repairs.extend(open);
    }

    /// Goes on to an instant, of which what happens is not done yet; whether something was written.
    fn go(&mut self, clique: &mut Booted, now: Time) -> bool {
        let entries = clique.run_to(now - Span::from_ps(1));
        self.take(&entries);
        entries.iter().any(|entry| matches!(entry.what, What::Written { .. } | What::Cold { .. }))
    }

    /// Everything is as it should be: what was open is over since the last write, if there was one.
    fn close(&mut self) {
        let until = self.writes.last().map(|write| write.at);
        for since in self.open.drain(..) {
            if until.is_some_and(|until| until >= since) {
                self.repairs.push(Repair { since, until });
            }
        }
    }

    fn take(&mut self, entries: &[Entry]) {
        for entry in entries {
            let at = self.time(entry.time);
            match &entry.what {
                What::BatchWritten { .. } => self.batches.push(at),
                What::Cold { tin } => {
                    self.writes.push(Write { at, tin: *tin, change: Change::Reset });
                }
                What::Written { tin, address, size, bytes } => {
                    for (place, bytes) in (0..).zip(bytes.chunks_exact(usize::from(*size))) {
                        let address = address + place * u32::from(*size);
                        let Ok((register, index)) = crate::registers::find(address) else {
                            continue;
                        };
                        let change = change(&self.shape, &map::REGISTERS[register], index, bytes);
                        let write = change.map(|change| Write { at, tin: *tin, change });
                        self.writes.extend(write);
                    }
                }
                _ => {}
            }
        }
    }
}

/// A processor that starts again, with the firmware that it had or with another, changes nothing that cells see (M609).
fn needs_repair(fault: Fault) -> bool {
    !matches!(fault, Fault::Restart { .. } | Fault::Upgrade { .. })
}

/// What happens in a plan, by time.
fn faults(plan: &Plan) -> Vec<(Time, Fault)> {
    let mut faults = Vec::new();
    for (time, part, works) in plan.outages() {
        faults.push(match part {
            Hardware::Link(link) => (time, Fault::Link { link, is_up: works }),
            Hardware::Tin(tin) => (time, Fault::Power { tin, is_on: works }),
        });
    }
    for (maintenance, work) in &plan.works {
        let (at, until) = (Time::ZERO + maintenance.at, maintenance.until);
        let (links, tins) = match work {
            Work::Restart { tin } => {
                faults.push((at, Fault::Restart { tin: *tin }));
                continue;
            }
            Work::Upgrade { version, at_once } => {
                let (version, at_once, restart) = (*version, *at_once, Restart::Processor);
                let code = Code::Whole;
                faults.push((at, Fault::Upgrade { version, restart, at_once, code }));
                continue;
            }
            Work::Drain { links, tins } => (links, tins),
        };
        let back = until.map(|until| (Time::ZERO + until, Admin::InService));
        for (time, admin) in [(at, Admin::Drained)].into_iter().chain(back) {
            faults.extend(links.iter().map(|&link| (time, Fault::AdminLink { link, admin })));
            faults.extend(tins.iter().map(|&tin| (time, Fault::AdminTin { tin, admin })));
        }
    }
    faults.sort_by_key(|&(time, _)| time);
    faults
}

/// What chips hold at the beginning and tables that are computed do not: nothing, where the control plane is right.
fn held(plan: &Plan, clique: &Booted) -> Vec<Write> {
    let topology = &plan.topology;
    let computed = compute(topology, &plan.turns, &Condition::healthy(topology));
    let files: Vec<RegisterFile> =
        clique.chips().iter().map(|chip| chip.registers.clone()).collect();
    let held = tables(topology.shape(), &files).expect("the front end has written them");
    let of = |tin| {
        let changes = computed.changes(tin, &held, topology).into_iter();
        changes.map(move |change| Write { at: Time::ZERO, tin, change })
    };
    (0..topology.shape().tins()).flat_map(of).collect()
}

/// What a register's entry means to cells; `None`: nothing, or nothing that changes in a Clique that is up.
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
