//! The cell switches of a set of TiNs, and the links between them.
//!
//! Models: Aquila §3.1, §3.2 (M101 to M111, M201 to M219, M301 to M321). A cell comes in, waits in the FIFO of its
//! port and channel, is matched by iSLIP among ports that are not busy, crosses at the crossbar's speed into the
//! queue of an output's channel, and goes out when its line is free and the other end has room: cut-through,
//! 40 ns from head to head where nothing is in the way. Credits come back on the wire.
//!
//! **How it runs.** What happens at a switch happens at ticks of 2.5 ns; on wires it happens at exact picoseconds.
//! A tick does what is due, in lists of one kind each; ticks at which nothing is due cost nothing. No switch does
//! anything for another that is due before ten ticks later, so switches may be divided among several
//! [`Switches`], which send each other [`Posted`].
//!
//! **Invariants**, checked in debug builds: no cell starts without credit for all of it (I01), no FIFO overflows
//! (I02), no port that is busy is matched (I06), what waits is never dropped for lack of room (I04).

pub mod blocks;
mod bytes;
mod calendar;
pub mod cell;
mod choose;
pub mod contents;
mod credit;
mod cross;
mod faults;
pub mod post;
pub(crate) mod record;
mod send;
pub mod settings;
mod shared;
#[cfg(test)]
mod tests;
mod tick;
mod tin;
pub mod traced;
mod writes;

use std::sync::Arc;

use kernel::{Stream, Time};

use crate::link::classes::ALWAYS_TAKEN;
use crate::tables::Tables;
use crate::topology::{PortKind, Topology};
use calendar::{Calendar, Mail, queue_at};
use cell::{Cell, NONE, Pool};
use contents::{Content, Contents};
use record::{Numbers, Recorder};
use settings::{CHANNELS, Durations, Limits, Settings, TICK_PS};
use shared::{Later, Shared};
use tin::{LANES, NEVER, NO_TIN, Tin, at};

/// From a match to the first bit's way out, at the least. Unit: ps. (Our choice: half the core's 20 ns; what is
/// matched at once leaves when `Settings::hop` says so.)
const OUT_PS: u64 = 10_000;

/// What goes over a link to a switch elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Posted {
    /// The tick at which it may be acted upon there.
    pub tick: u64,
    /// The switch, and its port.
    pub tin: u16,
    /// Its port.
    pub port: u8,
    /// What it is.
    pub body: Body,
    /// What a cell carries beyond a word.
    pub content: Option<Box<Content>>,
}

/// What goes over a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// A cell on a virtual channel.
    Cell(Cell, u8),
    /// The channels from the first on, how many, and what they may send in all.
    Credit(u8, u8, [u16; 3]),
    /// A channel, and all that was sent on it.
    Sync(u8, u16),
}

/// What endpoints of a TiN want of its switch; carried out after each call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    /// A terminal port has something to inject.
    Inject(u8),
    /// To be asked at a tick.
    Wake(u64),
    /// Take no cells of these channels, or take them again.
    Stall { terminal: u8, channels: u32, is_stalled: bool },
}

/// Where endpoints put what they want.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    now: u64,
    list: Vec<Wish>,
    contents: Contents,
    /// The record, where one is kept.
    recorder: Option<Box<Recorder>>,
}

impl Wishes {
    /// The instant of the call.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// A terminal port, by its number among the 18, has cells to inject: [`Endpoints::inject`] is called as soon as
    /// it can take one.
    pub fn inject(&mut self, terminal: u8) {
        self.list.push(Wish::Inject(terminal));
    }

    /// [`Endpoints::wake`] is to be called at `at`, at the beginning of the tick in which that lies.
    pub fn wake_at(&mut self, at: Time) {
        self.list.push(Wish::Wake(at.as_ps() / TICK_PS));
    }

    /// No cells of these channels are taken at a terminal port, until [`Wishes::resume`] (M111): of requests alone, for
    /// which nobody has kept a place (I08).
    pub fn stall(&mut self, terminal: u8, channels: u32) {
        debug_assert_eq!(channels & ALWAYS_TAKEN, 0, "solicited cells are refused");
        self.list.push(Wish::Stall { terminal, channels, is_stalled: true });
    }

    /// The cell, which is about to be injected, with these bytes behind the first eight that follow its header.
    ///
    /// # Panics
    /// If they fit no cell.
    #[must_use]
    pub fn enclose(&mut self, cell: Cell, bytes: &[u8]) -> Cell {
        self.contents.put(cell, bytes)
    }

    /// What a cell carries behind the first eight bytes that follow its header, as it is delivered.
    #[must_use]
    pub fn enclosed(&self, cell: &Cell) -> &[u8] {
        self.contents.get(cell).map_or(&[], Content::bytes)
    }

    /// Tells the record of something, where one is kept.
    #[inline]
    pub(crate) fn record(&mut self, tell: impl FnOnce(&mut Recorder)) {
        if let Some(recorder) = &mut self.recorder {
            tell(recorder);
        }
    }

    /// Cells of these channels are taken again.
    pub fn resume(&mut self, terminal: u8, channels: u32) {
        self.list.push(Wish::Stall { terminal, channels, is_stalled: false });
    }
}

/// What of a terminal port's input is free, by channel.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    inputs: &'a [tin::Input; tin::QUEUES],
    port: usize,
}

impl Room<'_> {
    /// Whether a cell fits the FIFO of its class.
    #[inline]
    #[must_use]
    pub fn fits(&self, class: u8, blocks: u8) -> bool {
        let input = &self.inputs[at(3 * usize::from(class), self.port)];
        u16::from(blocks.div_ceil(2)) <= input.credit.room()
    }
}

/// The protocol engines of the TiNs here: what cells come from and go to.
pub trait Endpoints: Clone + Send + 'static {
    /// The last bit of a cell comes out of a terminal port of a TiN (by its index among all) at `at`, in the tick at
    /// hand.
    fn deliver(&mut self, tin: u16, terminal: u8, cell: &Cell, at: Time, wishes: &mut Wishes);

    /// A terminal port can take a cell: the next one, of a class for which there is room.
    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell>;

    /// The tick has come that was asked for.
    fn wake(&mut self, tin: u16, wishes: &mut Wishes);

    /// Does everything that is due before `end`: what [`Switches::run`] calls. Each says [`Switches::advance`], so that the loop
    /// is compiled once, where these endpoints are, and not by everybody who has some.
    fn run(switches: &mut Switches<Self>, end: Time);
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Cells that have crossed a switch.
    pub hops: u64,
    /// Cells that were injected and that were delivered.
    pub injected: u64,
    /// Cells that were delivered.
    pub delivered: u64,
    /// Blocks of 8 bytes that were delivered.
    pub delivered_blocks: u64,
    /// Decisions, and those of them for a way that is not among the shortest.
    pub decisions: u64,
    /// Decisions for a way that is not among the shortest.
    pub detours: u64,
    /// Flow-control ordered sets sent.
    pub updates: u64,
    /// Looks at an output whose cells all lacked credit.
    pub credit_stalls: u64,
    /// Cells that were put on an escape channel.
    pub escapes: u64,
    /// Cells that had passed too many switches, or had no way on.
    pub discarded: u64,
    /// Cells whose headers were damaged, and ordered sets that were; and cells that were damaged otherwise.
    pub header_errors: u64,
    /// Cells damaged behind their headers.
    pub payload_errors: u64,
    /// Cells that waited for a link, or were on it, when it went down, or came for it later.
    pub lost_at_dead_links: u64,
    /// Of these, cells for which a link that was down was chosen beyond the pod that they come from.
    pub lost_beyond_first_pod: u64,
    /// Cells that links lost without a word ([`Switches::set_silent_loss`]).
    pub lost_silently: u64,
    /// Cells for which there was no room: only without credits ([`Link::credits`](crate::config::Link)).
    pub dropped_full: u64,
    /// Units of the fullest input FIFO.
    pub fifo_max: u16,
}

/// The switches of a set of TiNs, with their endpoints.
#[derive(Clone, Debug)]
pub struct Switches<E> {
    tins: Vec<Tin>,
    shared: Shared,
    endpoints: E,
    /// By TiN of the Clique: its place here, or none.
    places: Vec<u32>,
    /// Wakes beyond the calendar's reach.
    later: Later,
    /// Writes to tables that are to come.
    writes: writes::Writes,
}

impl Counts {
    /// Adds those of other switches.
    pub fn add(&mut self, other: &Self) {
        self.hops += other.hops;
        self.injected += other.injected;
        self.delivered += other.delivered;
        self.delivered_blocks += other.delivered_blocks;
        self.decisions += other.decisions;
        self.detours += other.detours;
        self.updates += other.updates;
        self.credit_stalls += other.credit_stalls;
        self.escapes += other.escapes;
        self.discarded += other.discarded;
        self.header_errors += other.header_errors;
        self.payload_errors += other.payload_errors;
        self.lost_at_dead_links += other.lost_at_dead_links;
        self.lost_beyond_first_pod += other.lost_beyond_first_pod;
        self.lost_silently += other.lost_silently;
        self.dropped_full += other.dropped_full;
        self.fifo_max = self.fifo_max.max(other.fifo_max);
    }
}

impl<E: Endpoints> Switches<E> {
    /// The switches of `own` TiNs, idle. `seed` is that of all their chance.
    pub fn new(
        topology: &Topology,
        tables: Arc<Tables>,
        settings: Arc<Settings>,
        own: &[u16],
        seed: u64,
        endpoints: E,
    ) -> Self {
        let shape = topology.shape();
        let (limits, durations) = (Limits::new(&settings), Durations::new(&settings));
        let mut places = vec![NONE; usize::from(shape.tins())];
        let mut tins: Vec<_> = (0..)
            .zip(own)
            .map(|(slot, &id)| {
                places[usize::from(id)] = slot;
                let chance = Stream::new(seed, "aquila/ways", id.into()).below(u64::MAX);
                Tin::new(topology, &tables, &limits, (id, slot), chance)
            })
            .collect();
        for port in tins.iter_mut().flat_map(|tin| &mut tin.ports) {
            let there = places.get(usize::from(port.far_tin)).filter(|&&there| there != NONE);
            port.far = there.map_or(NONE, |there| there << 6 | u32::from(port.far_port));
        }
        let has_errors = limits.errors.iter().any(|&rate| rate > 0.0);
        let errors_of = |&id: &u16| faults::Errors::new(id, LANES, seed);
        let errors = has_errors.then(|| own.iter().map(errors_of).collect());
        // What lies ahead of a switch at the most; the same beyond the longest link; and times that are set.
        let near = durations.longest() / TICK_PS + 16;
        let delays = tins.iter().flat_map(|tin| tin.ports.iter().map(|port| u64::from(port.delay)));
        let far = near + delays.max().unwrap_or(0) / TICK_PS;
        let far = far.max(limits.update_after).max(limits.draw_again);
        let shared = Shared {
            limits,
            durations,
            tables,
            pool: Pool::default(),
            calendar: Calendar::new(near, far),
            dirty: vec![0; tins.len().div_ceil(64)],
            wishes: Wishes::default(),
            posted: Vec::new(),
            seen: Vec::new(),
            counts: Counts::default(),
            errors,
            refreshes: Later::default(),
            drawn: Vec::new(),
            is_wire: false,
            is_observed: false,
            may_lose_sets: has_errors,
            matches: Default::default(),
        };
        Self {
            tins,
            shared,
            endpoints,
            places,
            later: Later::default(),
            writes: writes::Writes::default(),
        }
    }

    /// Sends everything on links through its bytes from now on, or not. Results do not depend on it.
    pub fn set_wire(&mut self, is_on: bool) {
        self.shared.is_wire = is_on;
        self.shared.is_observed = is_on || self.shared.wishes.recorder.is_some();
    }

    /// From now on keeps a record of cells that say so, with lines by these numbers. `is_end` says by TiN whether
    /// recorded flows end there.
    pub(crate) fn set_record(&mut self, numbers: Arc<Numbers>, is_end: Arc<Vec<bool>>) {
        let tins = self.tins.iter().map(|tin| tin.id).collect();
        self.shared.wishes.recorder = Some(Box::new(Recorder::new(numbers, tins, is_end)));
        self.shared.is_observed = true;
    }

    /// The record, where one is kept.
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.shared.wishes.recorder.as_deref_mut()
    }

    /// The record, where one was kept: it goes on no more.
    pub(crate) fn take_record(&mut self) -> Option<Box<Recorder>> {
        self.shared.wishes.recorder.take()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.counts
    }

    /// The routing tables that are in place.
    #[must_use]
    pub fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.shared.tables)
    }

    /// The endpoints.
    #[must_use]
    pub fn endpoints(&self) -> &E {
        &self.endpoints
    }

    /// The endpoints, to be asked for what they have to say; what they want of their switches goes by
    /// [`Switches::act`].
    pub fn endpoints_mut(&mut self) -> &mut E {
        &mut self.endpoints
    }

    /// Cells here now, on their way to switches here too.
    #[must_use]
    pub fn cells(&self) -> u32 {
        self.shared.pool.count()
    }

    /// The instant of the next thing to do, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        let tick = self.next_tick();
        (tick != NEVER).then(|| Time::from_ps(tick * TICK_PS))
    }

    /// The tick of the next thing to do, or [`NEVER`].
    #[inline]
    fn next_tick(&self) -> u64 {
        let Shared { calendar, refreshes, .. } = &self.shared;
        calendar.next().min(self.later.next()).min(refreshes.next()).min(self.writes.next())
    }

    /// Lets endpoints of a TiN act at `now`, before which all has happened.
    ///
    /// # Panics
    /// If the TiN is not here.
    pub fn act<T>(&mut self, tin: u16, now: Time, act: impl FnOnce(&mut E, &mut Wishes) -> T) -> T {
        let tick = now.as_ps() / TICK_PS;
        if self.next_tick() >= tick {
            self.shared.calendar.skip_to(tick);
        }
        self.shared.wishes.now = now.as_ps();
        let done = act(&mut self.endpoints, &mut self.shared.wishes);
        self.grant_wishes(self.places[usize::from(tin)] as usize);
        done
    }

    /// Takes what other switches have sent. Nothing of it may be due before what has happened here.
    ///
    /// # Panics
    /// If its switch is not here.
    pub fn take(&mut self, posted: &Posted) {
        self.catch_up(posted.tick);
        let there = self.places[usize::from(posted.tin)];
        assert_ne!(there, NONE, "TiN {} is not here", posted.tin);
        let place = there << 6 | u32::from(posted.port);
        let Body::Cell(cell, channel) = posted.body else {
            return self.shared.receive_set(place, posted.body, posted.tick);
        };
        let cell = match &posted.content {
            Some(content) => self.shared.wishes.contents.insert(cell, (**content).clone()),
            None => cell,
        };
        let cell = self.shared.pool.put(cell);
        let mail = Mail::Cell { queue: queue_at(place, channel), cell };
        self.shared.calendar.at(posted.tick).mail.push(posted.tick, mail);
    }

    /// Nothing has happened here for long: brings a tick at which something will be within reach.
    fn catch_up(&mut self, tick: u64) {
        let reach = self.shared.calendar.reach();
        if tick > self.shared.calendar.now() + reach {
            let first = self.shared.calendar.next().min(self.writes.next());
            self.shared.calendar.skip_to(first.min(tick - reach));
        }
    }

    /// The tick at hand: what has happened before cannot be changed any more.
    #[must_use]
    pub fn tick_at_hand(&self) -> u64 {
        self.shared.calendar.now()
    }

    /// What is to go to switches elsewhere, since this was last called.
    pub fn posted(&mut self) -> std::vec::Drain<'_, Posted> {
        self.shared.posted.drain(..)
    }

    /// The same, for an empty list that is filled from now on.
    fn exchange_posted(&mut self, list: &mut Vec<Posted>) {
        debug_assert!(list.is_empty(), "what was posted before is lost");
        std::mem::swap(&mut self.shared.posted, list);
    }

    /// Does everything that is due before `end`.
    pub fn run(&mut self, end: Time) {
        E::run(self, end);
    }

    /// The loop behind [`Switches::run`].
    pub fn advance(&mut self, end: Time) {
        // Ticks that begin before the end.
        let ticks = end.as_ps().div_ceil(TICK_PS);
        // Switches that keep no record ask nowhere whether they do.
        match self.shared.wishes.recorder.is_some() {
            false => self.run_ticks::<false>(ticks),
            true => self.run_ticks::<true>(ticks),
        }
        if end != Time::NEVER {
            // What comes within this tick is acted upon in it, whether or not it had anything to do by then.
            self.shared.calendar.skip_to(end.as_ps() / TICK_PS);
        }
    }

    /// Does everything that is due before a tick.
    #[inline]
    fn run_ticks<const RECORDS: bool>(&mut self, end: u64) {
        loop {
            let next = self.next_tick();
            if next >= end {
                break;
            }
            self.tick::<RECORDS>(next);
        }
    }

    /// Checks what takes too long for every step: every unit of credit is where it should be (I03).
    ///
    /// # Errors
    /// What is wrong, where.
    pub fn check(&self) -> Result<(), String> {
        for tin in &self.tins {
            for (port, channel) in
                (0..tin.ports.len()).flat_map(|p| (0..CHANNELS).map(move |c| (p, c)))
            {
                let input = &tin.inputs[at(channel, port)];
                let whole = self.shared.limits.inputs[tin.ports[port].kind as usize];
                let room = input.credit.room();
                if room > whole {
                    return Err(format!(
                        "TiN {}, port {port}, channel {channel}: room for {room} units in a FIFO of {whole}",
                        tin.id
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that nothing is left and every unit of credit is home (I03), once all has come to rest.
    ///
    /// # Errors
    /// What is wrong, where.
    pub fn check_home(&self) -> Result<(), String> {
        let cells = self.cells();
        if cells != 0 {
            return Err(format!("{cells} cells are left"));
        }
        if self.shared.wishes.contents.live() != 0 {
            return Err(format!(
                "contents of {} cells are left",
                self.shared.wishes.contents.live()
            ));
        }
        for tin in &self.tins {
            for (number, port) in tin.ports.iter().enumerate() {
                if port.kind == PortKind::Terminal || port.far_tin == NO_TIN {
                    continue;
                }
                for channel in 0..CHANNELS {
                    let credit = tin.outputs[at(channel, number)].credit.credit();
                    let own = &tin.inputs[at(channel, number)].credit;
                    let whole = self.shared.limits.inputs[port.kind as usize];
                    let credit = if self.shared.limits.credits { credit } else { whole };
                    let unsaid = if self.shared.limits.credits { own.unsaid() } else { 0 };
                    if credit != whole || own.room() != whole || unsaid != 0 {
                        return Err(format!(
                            "TiN {}, port {number}, channel {channel}: credit {credit} of {whole}, room for {}, \
                             {} units freed and not told",
                            tin.id,
                            own.room(),
                            unsaid
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

const _: () = assert!(NEVER == u64::MAX && LANES == 64);
