//! What a host is asked for.
//!
//! Models: Aquila §3.4 (M506, M507, M510): a request is checked, memory is read, and every completion of the bus goes
//! back as a response of its own as soon as it is there. **Our choice**: a write is an offer; the target asks for the
//! bytes as a reader would, and says when they are in memory. Requests for which there is no time wait in a queue; when
//! that is full, more wait in the fabric.

use std::collections::VecDeque;

use super::gather::{Gather, Part};
use super::initiator::offered_address;
use super::memory::{self, Memory};
use super::pcie::Pipe;
use super::power::Sleeper;
use super::settings::Settings;
use super::{Heard, Landing, Outgoing};
use crate::cells::rma::{Operation, Request, Response, Status, TAG_BYTES};
use crate::ip::ages::Ages;
use crate::link::classes::Half;
use crate::switch::cell::Watch;

/// The first number of responses to a target that fetches what it was offered: those below are commands' slots.
pub(super) const FETCH_FIRST: u16 = 1 << 12;

/// A request that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) from: u16,
    /// When. Unit: ps.
    pub(super) at: u64,
    pub(super) watch: Watch,
}

impl Asked {
    pub(super) fn half(&self) -> Half {
        if self.request.is_low_latency { Half::LowLatency } else { Half::Bulk }
    }

    fn response(&self, status: Status) -> Response {
        let Request { slot, segment, generation, .. } = self.request;
        Response { slot, segment, generation, offset: 0, length: 0, status }
    }
}

/// A response without bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) to: u16,
    pub(super) response: Response,
    pub(super) watch: Watch,
}

/// Memory that is being read for somebody.
#[derive(Clone, Copy, Debug)]
struct Job {
    asked: Asked,
    address: u64,
    /// What was there, for an atomic operation.
    value: Option<u64>,
    /// When its first bytes are there. Unit: ps.
    first: u64,
    sent: u32,
}

impl Job {
    fn length(&self) -> u32 {
        self.asked.request.length.into()
    }

    /// When its next bytes are there. Unit: ps.
    fn next(&self, settings: &Settings) -> u64 {
        let end = |sent: u32| (sent + settings.payload).min(self.length());
        let rest = kernel::Bytes::new((end(self.sent) - end(0)).into());
        self.first + settings.rate.send_time(rest).as_ps()
    }
}

/// Bytes of memory on their way back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Completion {
    pub(super) answer: Answer,
    pub(super) address: u64,
    pub(super) value: Option<u64>,
    /// Unit: bytes.
    pub(super) length: u32,
}

/// A write that is being fetched.
#[derive(Clone, Copy, Debug)]
struct Fetch {
    asked: Option<Asked>,
    /// Where it goes.
    address: u64,
    gather: Gather,
    generation: u8,
    /// Unit: ps.
    began: u64,
    /// Whether its bytes count as asked for.
    is_sent: bool,
}

/// What a host is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Target {
    /// By whether they are offers, and half.
    queues: [[VecDeque<Asked>; 2]; 2],
    /// When the next one may be begun. Unit: ps.
    next_start: u64,
    jobs: [VecDeque<Job>; 2],
    /// Bytes that are being read.
    reading: u32,
    /// By half: refusals, and when they go, in ps; and writes that are done.
    refusals: [VecDeque<(u64, Answer)>; 2],
    written: [VecDeque<Answer>; 2],
    fetches: Vec<Fetch>,
    free: VecDeque<u16>,
    ages: Ages,
    /// Writes to be fetched, by half, and from when on, in ps.
    asking: [VecDeque<(u64, u16, u8)>; 2],
}

/// What is at hand when a request is served.
pub(super) struct Bench<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) offers: &'a mut super::initiator::Initiator,
    pub(super) pipe: &'a mut Pipe,
    pub(super) sleeper: &'a mut Sleeper,
    pub(super) own: u16,
    pub(super) now: u64,
    pub(super) settings: &'a Settings,
}

const HALVES: [Half; 2] = [Half::LowLatency, Half::Bulk];

impl Target {
    /// A request has come. How many wait of its kind.
    pub(super) fn take(&mut self, asked: Asked) -> usize {
        let is_offer = usize::from(asked.request.operation != Operation::Read);
        self.queues[is_offer][asked.half() as usize].push_back(asked);
        self.waiting(is_offer)
    }

    /// Requests that wait: for memory to be read, and others.
    pub(super) fn waiting(&self, is_offer: usize) -> usize {
        self.queues[is_offer].iter().map(VecDeque::len).sum()
    }

    /// Begins requests for which there is time and room. Refused ones are counted by the status.
    pub(super) fn serve(&mut self, bench: &mut Bench<'_>, refused: &mut [u64; 6]) {
        let kinds = [0, 1].into_iter().flat_map(|kind| HALVES.map(|half| (kind, half as usize)));
        let Bench { now, settings, .. } = *bench;
        loop {
            let may = |&(kind, half): &(usize, usize)| {
                let Some(asked) = self.queues[kind][half].front() else { return false };
                let starts = asked.at.max(self.next_start) <= now;
                starts && self.has_room(&asked.request, settings)
            };
            let Some((kind, half)) = kinds.clone().find(may) else { return };
            let Some(asked) = self.queues[kind][half].pop_front() else { return };
            let start = asked.at.max(self.next_start);
            self.next_start = start + settings.request_gap;
            if let Err(status) = self.begin(asked, start + settings.request_time, bench) {
                refused[status as usize] += 1;
                let response = asked.response(status);
                let answer = Answer { to: asked.from, response, watch: asked.watch };
                self.refusals[half].push_back((start + settings.request_time, answer));
            }
        }
    }

    fn has_room(&self, request: &Request, settings: &Settings) -> bool {
        match request.operation {
            Operation::Write => !self.free.is_empty() || self.fetches.len() < settings.slots.into(),
            _ => self.reading == 0 || self.reading + u32::from(request.length) <= settings.reads,
        }
    }

    fn begin(&mut self, asked: Asked, at: u64, bench: &mut Bench<'_>) -> Result<(), Status> {
        let (request, settings) = (&asked.request, bench.settings);
        let ends = (asked.from, bench.own);
        let is_fetch = request.slot >= FETCH_FIRST;
        let address = match is_fetch {
            true => bench.offers.offer(request, ends, settings)?,
            false => bench.memory.allow(request, ends)?,
        };
        if request.length == 0 {
            return Err(Status::OutOfBounds);
        }
        if request.operation == Operation::Write {
            self.reserve(asked, address, at);
            return Ok(());
        }
        let is_atomic = request.operation.is_atomic();
        let value =
            is_atomic.then(|| bench.memory.change(address, request.operation, request.operands));
        let all = u32::from(request.length);
        let first = all.min(settings.payload);
        let at = bench.sleeper.wake(at, &settings.power) + settings.read;
        let first = bench.pipe.carry(at, (first, all), settings.rate);
        self.reading += all;
        self.jobs[asked.half() as usize].push_back(Job { asked, address, value, first, sent: 0 });
        Ok(())
    }

    /// Keeps a place for a write that is to be fetched.
    fn reserve(&mut self, asked: Asked, address: u64, at: u64) {
        let place = self.free.pop_front().unwrap_or(self.fetches.len() as u16);
        if usize::from(place) == self.fetches.len() {
            self.fetches.push(Fetch {
                asked: None,
                address: 0,
                gather: Gather::default(),
                generation: 0,
                began: 0,
                is_sent: false,
            });
        }
        let fetch = &mut self.fetches[usize::from(place)];
        let gather = Gather::default();
        let generation = fetch.generation;
        *fetch =
            Fetch { asked: Some(asked), address, gather, generation, began: at, is_sent: false };
        self.ages.push(place.into());
        self.asking[asked.half() as usize].push_back((at, place, generation));
    }

    fn live(&mut self, place: u16, generation: u8) -> Option<&mut Fetch> {
        let fetch = self.fetches.get_mut(usize::from(place))?;
        (fetch.asked.is_some() && fetch.generation == generation).then_some(fetch)
    }

    /// The next request for a write's bytes, and where it goes, if the window has room for them (I60).
    pub(super) fn fetch(
        &mut self,
        half: Half,
        (own, memory, now): (u16, &Memory, u64),
        window: &mut u32,
        settings: &Settings,
    ) -> Option<Outgoing> {
        loop {
            let &(at, place, generation) = self.asking[half as usize].front()?;
            if at > now {
                return None;
            }
            let Some(fetch) = self.live(place, generation) else {
                self.asking[half as usize].pop_front();
                continue;
            };
            let asked = fetch.asked?;
            let of = asked.request;
            let bytes = u32::from(of.length);
            if *window + bytes > settings.window {
                return None;
            }
            *window += bytes;
            fetch.is_sent = true;
            self.asking[half as usize].pop_front();
            // The region may have been revoked: the writer then finds the tag wrong.
            let secret = memory.grant(of.region, of.key).map_or([0; 16], |grant| grant.secret);
            let mut request = Request {
                operation: Operation::Read,
                slot: FETCH_FIRST + place,
                segment: 0,
                generation,
                address: offered_address(of.slot, of.generation, of.segment),
                tag: [0; TAG_BYTES],
                operands: [0; 2],
                ..of
            };
            request.tag = memory::tag(&request, (own, asked.from), &secret);
            let (to, watch) = (asked.from, asked.watch);
            return Some(Outgoing { to, request, watch, begins: None });
        }
    }

    /// A response to a fetch has come.
    pub(super) fn hear(&mut self, response: &Response, from: u16, settings: &Settings) -> Heard {
        let place = response.slot - FETCH_FIRST;
        let Some(fetch) = self.live(place, response.generation) else { return Heard::Stale };
        let Some(asked) = fetch.asked.filter(|asked| asked.from == from && fetch.is_sent) else {
            return Heard::Stray;
        };
        let all = u32::from(asked.request.length);
        let part = match response.segment {
            0 => fetch.gather.take((response.offset, response.length), all, settings.payload),
            _ => Part::Stray,
        };
        if part == Part::Stray {
            return Heard::Stray;
        }
        let offset = u32::from(response.offset) * 8;
        let landing = Landing::Fetch { place, generation: response.generation };
        let count = (all - offset).min(settings.payload);
        let at = fetch.address + u64::from(offset);
        Heard::Bytes(at, count, (part == Part::Last).then_some(landing))
    }

    /// A write is in memory: its writer is told. The bytes that are no longer asked for.
    pub(super) fn land(&mut self, place: u16, generation: u8) -> u32 {
        let Some(asked) = self.live(place, generation).and_then(|fetch| fetch.asked) else {
            return 0;
        };
        let response = asked.response(Status::Done);
        let answer = Answer { to: asked.from, response, watch: asked.watch };
        self.written[asked.half() as usize].push_back(answer);
        self.end(place)
    }

    /// A fetch is refused: its writer has given up. The bytes that are no longer asked for.
    pub(super) fn refuse(&mut self, response: &Response, from: u16) -> u32 {
        let place = response.slot - FETCH_FIRST;
        let asked = self.live(place, response.generation).and_then(|fetch| fetch.asked);
        asked.filter(|asked| asked.from == from).map_or(0, |_| self.end(place))
    }

    fn end(&mut self, place: u16) -> u32 {
        let fetch = &mut self.fetches[usize::from(place)];
        let bytes = fetch.asked.take().map_or(0, |asked| asked.request.length);
        fetch.generation = fetch.generation.wrapping_add(1);
        let is_sent = fetch.is_sent;
        self.ages.remove(place.into());
        self.free.push_back(place);
        if is_sent { bytes.into() } else { 0 }
    }

    /// Nothing is asked for any more: each fetch's place has another generation.
    pub(super) fn clear(&mut self) {
        for place in 0..self.fetches.len() as u16 {
            if self.fetches[usize::from(place)].asked.is_some() {
                self.end(place);
            }
        }
        let (fetches, free) = (std::mem::take(&mut self.fetches), std::mem::take(&mut self.free));
        *self = Self { fetches, free, ages: std::mem::take(&mut self.ages), ..Self::default() };
    }

    fn deadline(&self, settings: &Settings) -> Option<u64> {
        Some(self.fetches[self.ages.oldest()? as usize].began + settings.deadline)
    }

    /// The oldest fetch is given up, if its time is over by now. The bytes that are no longer asked for.
    pub(super) fn expire(&mut self, now: u64, settings: &Settings) -> Option<u32> {
        let place = self.ages.oldest().filter(|_| self.deadline(settings) <= Some(now))?;
        Some(self.end(place as u16))
    }

    /// The next response without bytes.
    pub(super) fn answer(&mut self, half: Half, now: u64) -> Option<Answer> {
        let refusals = &mut self.refusals[half as usize];
        match refusals.front() {
            Some((at, _)) if *at <= now => refusals.pop_front().map(|(_, answer)| answer),
            _ => self.written[half as usize].pop_front(),
        }
    }

    /// The next completion that is there.
    pub(super) fn complete(
        &mut self,
        half: Half,
        now: u64,
        settings: &Settings,
    ) -> Option<Completion> {
        let job = self.jobs[half as usize].front_mut()?;
        if job.next(settings) > now {
            return None;
        }
        let length = (job.length() - job.sent).min(settings.payload);
        let offset = job.sent;
        job.sent += length;
        self.reading -= length;
        let response = Response {
            offset: (offset / 8) as u16,
            length: length.div_ceil(8) as u8,
            ..job.asked.response(Status::Done)
        };
        let answer = Answer { to: job.asked.from, response, watch: job.asked.watch };
        let address = job.address + u64::from(offset);
        let value = job.value;
        if job.sent == job.length() {
            self.jobs[half as usize].pop_front();
        }
        Some(Completion { answer, address, value, length })
    }

    /// When something is to be done next that time alone keeps from being done now. Unit: ps.
    pub(super) fn next_instant(&self, now: u64, settings: &Settings) -> Option<u64> {
        let starts = self.queues.iter().flatten().filter_map(VecDeque::front);
        let starts = starts.map(|asked| asked.at.max(self.next_start));
        let jobs = self.jobs.iter().filter_map(VecDeque::front).map(|job| job.next(settings));
        let refusals = self.refusals.iter().filter_map(VecDeque::front).map(|&(at, _)| at);
        let fetches = self.asking.iter().filter_map(VecDeque::front).map(|&(at, ..)| at);
        let all = starts.chain(jobs).chain(refusals).chain(fetches).chain(self.deadline(settings));
        all.filter(|&at| at > now).min()
    }

    /// Whether there is something to send by now.
    pub(super) fn has_cells(&self, now: u64, settings: &Settings) -> bool {
        HALVES.iter().any(|&half| {
            let half = half as usize;
            let refusal = self.refusals[half].front().is_some_and(|&(at, _)| at <= now);
            let job = self.jobs[half].front().is_some_and(|job| job.next(settings) <= now);
            let fetch = self.asking[half].front().is_some_and(|&(at, ..)| at <= now);
            refusal || job || fetch || !self.written[half].is_empty()
        })
    }

    /// What is left: requests that wait or are being answered, writes that are being fetched.
    pub(super) fn open(&self) -> (usize, usize) {
        let of = |queues: &[VecDeque<Asked>; 2]| queues.iter().map(VecDeque::len).sum::<usize>();
        let jobs: usize = self.jobs.iter().map(VecDeque::len).sum();
        let queued = of(&self.queues[0]) + of(&self.queues[1]);
        (queued + jobs, self.fetches.len() - self.free.len())
    }
}
