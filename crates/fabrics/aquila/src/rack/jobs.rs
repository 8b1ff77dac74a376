//! Flows as operations on remote memory, at the TiNs of the hosts that ask.
//!
//! Models: Aquila §3.4 (M501), §5: a flow from A to B is written by A into B's memory, or read by B out of A's: B then
//! knows of it at its start. **Our choice**: it goes in operations of `rma.operation` bytes, so many at a time as keep
//! the hardware busy, and has ended when the software that asks knows that all of it is done.

use std::collections::BTreeMap;

use ::rack::NodeId;
use kernel::Slab;
use packets::{FlowKey, Packet};

use super::commands::{COMMAND, COMMAND_BYTES, DONE, FAILED, HEARD};
use crate::rma::{Access, Grant, Kind, Outcome};

/// Operations of a flow that are asked for at a time (our choice: two windows of the default operation).
const AHEAD: u32 = 8;

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
    /// Bytes that are not asked for yet.
    rest: u64,
    /// Operations that are under way.
    operations: u32,
    has_failed: bool,
}

impl Job {
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
    kind: Kind,
    /// Most bytes of an operation.
    most: u64,
}

impl Jobs {
    pub(super) fn new(kind: Kind, most: u64, places: Vec<Place>) -> Self {
        let (jobs, parts) = (Slab::default(), Slab::default());
        Self { jobs, by_name: BTreeMap::new(), parts, places, kind, most }
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

    /// The next operation of a command, and who asks; none if enough are under way.
    pub(super) fn next(&mut self, place: u32) -> Option<((u16, usize), Access)> {
        let job = &mut self.jobs[place as usize];
        if job.rest == 0 || job.operations == AHEAD || job.has_failed {
            return None;
        }
        let length = job.rest.min(self.most);
        job.rest -= length;
        job.operations += 1;
        let [by, to] = [job.asks, job.is_asked].map(|node| self.places[node.index()]);
        let length = length as u32;
        let handle = self.parts.insert(Part { job: place, length, by: by.at, is_open: true });
        let (kind, grant, half) = (self.kind, to.grant, None);
        let (offset, local) = (0, 0);
        Some((by.at, Access { handle, to: to.address, kind, length, grant, offset, local, half }))
    }

    /// An operation has ended: what its host is told, and the command, if it goes on.
    pub(super) fn end(&mut self, outcome: &Outcome) -> (Option<Packet>, Option<u32>) {
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
        let told = match retries {
            Some(retries) => job.tell(DONE, (length.into(), retries)),
            None => None,
        };
        let told = if is_over && job.has_failed { job.tell(FAILED, (0, 0)) } else { told };
        (told, (!is_over).then_some(place))
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

    /// Whether no command is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether hosts read, where else they write.
    pub(super) fn reads(&self) -> bool {
        self.kind == Kind::Read
    }
}
