//! Flows as operations on remote memory, at the TiNs of the hosts that ask.
//!
//! Models: Aquila §3.4 (M501), §5: a flow from A to B is written by A into B's memory, or read by B out of A's: B then
//! knows of it at its start. **Our choice**: it goes in operations of `rma.operation` bytes, so many at a time as keep
//! the hardware busy, and has ended when the software that asks knows that all of it is done.

use std::collections::BTreeMap;

use ::rack::NodeId;
use ::rack::node::{FlowName, Payload};
use kernel::Slab;
use packets::{FlowKey, Packet};

use super::commands::{COMMAND, COMMAND_BYTES, DONE, FAILED, HEARD};
use crate::rma::{Access, Grant, Kind, Outcome};
use crate::switch::cell::Watch;

/// Operations of a flow that are asked for at a time (our choice: two windows of the default operation).
const AHEAD: u32 = 8;

/// Bits of an address that say which byte of its flow is there; those above it say which flow between two hosts (our
/// choice: bytes of a flow are at the same addresses at both of its ends).
const BYTE_BITS: u32 = 40;
/// Flows between two hosts that addresses tell apart.
const FLOWS: u64 = 1 << 23;

/// What a node's memory is reached by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// TiN and host.
    pub(super) at: (u16, usize),
    pub(super) address: u16,
    pub(super) grant: Grant,
}

/// A command that has not ended.
#[derive(Clone, Copy, Debug)]
struct Job {
    asks: NodeId,
    is_asked: NodeId,
    /// Which of the flows from the one to the other.
    number: u32,
    /// Which of its commands.
    command: u64,
    /// Bytes that are not asked for yet, and those of the flow before them.
    rest: u64,
    offset: u64,
    /// Operations that are under way.
    operations: u32,
    has_failed: bool,
}

impl Job {
    /// Where the next bytes of it are, at both of its ends.
    fn address(&self) -> u64 {
        let byte = self.offset % (1 << BYTE_BITS);
        (u64::from(self.number) % FLOWS) << BYTE_BITS | byte
    }

    fn name(&self) -> Name {
        [self.asks.get(), self.is_asked.get(), self.number]
    }

    /// What the host that asks is told.
    fn tell(&self, kind: packets::Kind, (bytes, retries): (u64, u64)) -> Option<Packet> {
        Some(Packet {
            flow: FlowKey::of_number(self.number, true)?,
            src: self.is_asked,
            dst: self.asks,
            kind,
            wire: COMMAND_BYTES,
            seq: bytes,
            ack: retries,
            word: self.command,
            ..Packet::default()
        })
    }
}

/// How a flow is named: who asks, who is asked, which of their flows.
type Name = [u32; 3];

/// An operation of a command.
#[derive(Clone, Copy, Debug)]
struct Part {
    job: u32,
    length: u32,
    /// The host that asks.
    by: (u16, usize),
    is_open: bool,
}

/// The commands of a set of TiNs.
#[derive(Clone, Debug)]
pub(super) struct Jobs {
    jobs: Slab<Job>,
    by_name: BTreeMap<Name, u32>,
    parts: Slab<Part>,
    /// By node.
    places: Vec<Place>,
    /// By GNet address: whose memory it is.
    nodes: BTreeMap<u16, NodeId>,
    kind: Kind,
    /// Most bytes of an operation.
    most: u64,
}

impl Jobs {
    pub(super) fn new(kind: Kind, most: u64, places: Vec<Place>) -> Self {
        let (jobs, parts) = (Slab::default(), Slab::default());
        let nodes = (0..).map(NodeId::new).zip(&places);
        let nodes = nodes.map(|(node, place)| (place.address, node)).collect();
        Self { jobs, by_name: BTreeMap::new(), parts, places, nodes, kind, most }
    }

    pub(super) fn place(&self, node: NodeId) -> Option<&Place> {
        self.places.get(node.index())
    }

    /// A host's packet has come to its TiN: the command that begins by it, or what the host is told of one that is under
    /// way; nothing, if it is no command.
    pub(super) fn take(&mut self, packet: &Packet) -> Option<Result<u32, Option<Packet>>> {
        let is_known = |node: NodeId| self.place(node).is_some();
        let is_command = packet.kind == COMMAND && is_known(packet.src) && is_known(packet.dst);
        if !is_command || packet.goes_to_source() || packet.seq == 0 {
            return None;
        }
        let job = Job {
            asks: packet.src,
            is_asked: packet.dst,
            number: packet.flow.place(),
            command: packet.word,
            rest: packet.seq,
            offset: packet.ack,
            operations: 0,
            has_failed: false,
        };
        if let Some(&known) = self.by_name.get(&job.name()) {
            return Some(Err(self.jobs[known as usize].tell(HEARD, (0, 0))));
        }
        let place = self.jobs.insert(job);
        self.by_name.insert(job.name(), place);
        Some(Ok(place))
    }

    /// The next operation of a command, and who asks; none if enough are under way. `watch` says of a TiN who looks at
    /// its next operation.
    pub(super) fn next(
        &mut self,
        place: u32,
        watch: impl FnOnce(u16) -> Watch,
    ) -> Option<((u16, usize), Access)> {
        let job = &mut self.jobs[place as usize];
        if job.rest == 0 || job.operations == AHEAD || job.has_failed {
            return None;
        }
        let (length, address) = (job.rest.min(self.most), job.address());
        job.rest -= length;
        job.offset = job.offset.wrapping_add(length);
        job.operations += 1;
        let [by, to] = [job.asks, job.is_asked].map(|node| self.places[node.index()]);
        let length = length as u32;
        let handle = self.parts.insert(Part { job: place, length, by: by.at, is_open: true });
        let (kind, grant, half) = (self.kind, to.grant, None);
        let (offset, local) = (address, address);
        let (to, watch) = (to.address, watch(by.at.0));
        let access = Access { handle, to, kind, length, grant, offset, local, half, watch };
        Some((by.at, access))
    }

    /// An operation has ended: what its host is told of it and of the command, and the command, if it goes on.
    pub(super) fn end(&mut self, outcome: &Outcome) -> ([Option<Packet>; 2], Option<u32>) {
        let (handle, retries) = match *outcome {
            Outcome::Done { handle, retries, .. } => (handle, Some(retries.into())),
            Outcome::Failed { handle, .. } => (handle, None),
        };
        let Part { job: place, length, .. } = self.parts[handle as usize];
        self.release(handle);
        let job = &mut self.jobs[place as usize];
        job.operations -= 1;
        job.has_failed |= retries.is_none();
        let job = *job;
        let is_over = job.operations == 0 && (job.rest == 0 || job.has_failed);
        if is_over {
            self.by_name.remove(&job.name());
            self.jobs.release(place);
        }
        let done = retries.and_then(|retries| job.tell(DONE, (length.into(), retries)));
        let failed = (is_over && job.has_failed).then(|| job.tell(FAILED, (0, 0)));
        ([done, failed.flatten()], (!is_over).then_some(place))
    }

    /// A host has lost all that it asked for.
    pub(super) fn forget(&mut self, by: (u16, usize)) {
        let own = |part: &Part| part.is_open && part.by == by;
        let lost: Vec<u32> = (0..)
            .zip(self.parts.iter())
            .filter_map(|(handle, part)| own(part).then_some(handle))
            .collect();
        lost.into_iter().for_each(|handle| self.release(handle));
        let is_own = |name: &Name| self.places[name[0] as usize].at == by;
        let names: Vec<Name> = self.by_name.keys().filter(|name| is_own(name)).copied().collect();
        for name in names {
            if let Some(place) = self.by_name.remove(&name) {
                self.jobs.release(place);
            }
        }
    }

    fn release(&mut self, handle: u32) {
        self.parts[handle as usize].is_open = false;
        self.parts.release(handle);
    }

    /// Which bytes of which flow so many are that go from one host's memory at an address to another's.
    pub(super) fn payload(
        &self,
        ends: (u16, u16),
        (address, bytes): (u64, u32),
    ) -> Option<Payload> {
        let (src, dst) = (*self.nodes.get(&ends.0)?, *self.nodes.get(&ends.1)?);
        let number = (address >> BYTE_BITS) as u32;
        let offset = address % (1 << BYTE_BITS);
        Some(Payload { flow: FlowName { src, dst, number }, offset, bytes })
    }

    /// The command of an operation, and the flow that it is for, as hosts name it.
    pub(super) fn whose(&self, handle: u32) -> (u32, packets::Name) {
        let job = self.parts[handle as usize].job;
        let Job { asks, is_asked, number, .. } = self.jobs[job as usize];
        (job, packets::Name { src: asks, dst: is_asked, number })
    }

    /// Which byte of its flow is at an address.
    pub(super) const fn byte_of(address: u64) -> u64 {
        address % (1 << BYTE_BITS)
    }

    /// Whether no command is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether hosts read, where else they write.
    pub(super) fn reads(&self) -> bool {
        self.kind == Kind::Read
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use ::rack::{Class, Flow, FlowId};
    use kernel::{Bytes, Span, Time};
    use packets::{Effect, Opening, Outbox, Timer, Transport};
    use proptest::prelude::*;

    use super::super::commands::Commands;
    use super::*;
    use crate::rma::{Failure, Permissions};

    /// A host that asks for one flow and its TiN, whose line between them loses what it is told to.
    struct Pair {
        host: Commands,
        tin: Jobs,
        out: Outbox,
        to_tin: VecDeque<Packet>,
        to_host: VecDeque<Packet>,
        operations: VecDeque<Access>,
        timer: Option<Time>,
        delivered: u64,
        completed: u32,
        given_up: u32,
        is_closed: bool,
    }

    const KEY: FlowKey = FlowKey::new(3);

    impl Pair {
        fn new(size: u64) -> Self {
            let engine = crate::rma::Engine::new(
                &crate::config::Rma::default(),
                &crate::topology::Shape::TINY,
                &[],
                16,
                1,
            );
            let place = |host: usize| {
                let mut memory = engine.memory_of(0, host, 1);
                let region = memory.register(0, 1 << 20, Permissions::ALL).unwrap();
                let grant = memory.grant(region, 1).unwrap();
                Place { at: (0, host), address: engine.address(0, host), grant }
            };
            let [src, dst] = [0, 1].map(NodeId::new);
            let (size, start) = (Bytes::new(size), Time::ZERO);
            let flow = Flow { id: FlowId::new(0), src, dst, size, start, class: Class::new(0) };
            let mut pair = Self {
                host: Commands::new(Span::from_us(1)),
                tin: Jobs::new(Kind::Read, 16_384, vec![place(0), place(1)]),
                out: Outbox::new(Time::ZERO),
                to_tin: VecDeque::new(),
                to_host: VecDeque::new(),
                operations: VecDeque::new(),
                timer: None,
                delivered: 0,
                completed: 0,
                given_up: 0,
                is_closed: false,
            };
            let opening = Opening { key: KEY, label: KEY, flow, paths: 1 };
            pair.host.start(&opening, &mut pair.out);
            pair.settle();
            pair
        }

        fn settle(&mut self) {
            let effects: Vec<Effect> = self.out.drain().collect();
            for effect in effects {
                match effect {
                    Effect::Send(packet) => self.to_tin.push_back(packet),
                    Effect::Set(Timer::Flow(..), at) => self.timer = Some(at),
                    Effect::Cancel(_) => self.timer = None,
                    Effect::Delivered(_, bytes) => self.delivered += bytes.get(),
                    Effect::Complete(_) => self.completed += 1,
                    Effect::Close(_) => self.is_closed = true,
                    Effect::GiveUp(_) => (self.given_up, self.is_closed) = (1, true),
                    _ => {}
                }
            }
        }

        fn go_on(&mut self, job: u32) {
            while let Some((_, access)) = self.tin.next(job, |_| Watch::NONE) {
                self.operations.push_back(access);
            }
        }

        /// Does the next thing of a kind; false if there is none.
        fn step(&mut self, what: u8, is_lost: bool, fails: bool) -> bool {
            match what {
                0 => {
                    let Some(packet) = self.to_tin.pop_front() else { return false };
                    if is_lost {
                        return true;
                    }
                    match self.tin.take(&packet) {
                        Some(Ok(job)) => self.go_on(job),
                        Some(Err(told)) => self.to_host.extend(told),
                        None => panic!("{packet:?}"),
                    }
                }
                1 => {
                    let Some(Access { handle, .. }) = self.operations.pop_front() else {
                        return false;
                    };
                    let at = Time::ZERO;
                    let outcome = if fails {
                        Outcome::Failed { handle, why: Failure::Late, at }
                    } else {
                        let (since, handed) = (at, at);
                        let (retries, value, is_damaged) = (0, 0, false);
                        Outcome::Done { handle, since, handed, at, retries, value, is_damaged }
                    };
                    let (told, job) = self.tin.end(&outcome);
                    self.to_host.extend(told.into_iter().flatten());
                    job.into_iter().for_each(|job| self.go_on(job));
                }
                2 => {
                    let Some(packet) = self.to_host.pop_front() else { return false };
                    if !is_lost && !self.is_closed {
                        let packet = Packet { flow: KEY, ..packet };
                        self.host.receive(packet.dst, &packet, &mut self.out);
                    }
                }
                _ => {
                    let Some(at) = self.timer.take().filter(|_| !self.is_closed) else {
                        return false;
                    };
                    self.out.set_now(at);
                    self.host.timer(Timer::Flow(KEY, 0), &mut self.out);
                }
            }
            self.settle();
            true
        }
    }

    proptest! {
        /// M511: whatever the line between them loses and whenever the host says its command again, the flow completes
        /// once, with all of its bytes and no more; the TiN then has nothing left of it.
        #[test]
        fn m511_a_command_ends_once_whatever_is_lost(
            size in 1..400_000u64,
            steps in prop::collection::vec((0..4u8, prop::bool::weighted(0.3)), 0..300),
            forgets in prop::option::of(0..200usize),
        ) {
            let mut pair = Pair::new(size);
            for (number, (what, is_lost)) in steps.into_iter().enumerate() {
                if forgets == Some(number) {
                    // The TiN has died, and is back.
                    pair.tin.forget((0, 0));
                    pair.operations.clear();
                }
                pair.step(what, is_lost, false);
            }
            while (0..4).any(|what| pair.step(what, false, false)) {}
            prop_assert_eq!((pair.completed, pair.given_up), (1, 0));
            prop_assert_eq!(pair.delivered, size);
            prop_assert!(pair.tin.is_idle() && pair.tin.parts.live() == 0);
        }
    }

    /// Operations that have failed for good: the flow is given up, once those under way have ended.
    #[test]
    fn m511_a_command_that_fails_is_given_up() {
        let mut pair = Pair::new(200_000);
        pair.step(0, false, false);
        assert_eq!(pair.operations.len(), AHEAD as usize);
        pair.step(1, false, true);
        while (0..3).any(|what| pair.step(what, false, false)) {}
        assert_eq!((pair.completed, pair.given_up), (0, 1));
        assert_eq!(pair.delivered, u64::from(AHEAD - 1) * 16_384);
        assert!(pair.tin.is_idle() && pair.tin.parts.live() == 0);
    }
}
