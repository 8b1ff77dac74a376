//! Nodes as instances of their own, which exchange cells' bytes and nothing else: for drivers that run each node
//! on a thread, in a process or behind a wire of its own.

use std::sync::Arc;

use kernel::{Bytes, Time};
use rack::shards::Outbox;
use rack::{Failure, Flow, Problem};

use crate::cell::Cell;
use crate::config::Plan;
use crate::messages::{Report, What};
use crate::shard::{Passing, Shard};
use crate::wire::{Codec, Malformed};

/// A cell on its way from one node to another. The schedule says who sends it: whose cell arrives on which
/// channel in which slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The node that hears it: the number of its instance.
    pub to: u32,
    /// When it arrives, in half slots, as [`rack::shards`] counts here: twice the slot.
    pub at: u64,
    /// The channel on which it does.
    pub channel: u32,
    /// Header and payload, as [`crate::wire`] has them.
    pub cell: Vec<u8>,
}

impl Message {
    /// All of it as bytes: receiver, instant and channel, the highest byte first, then the cell.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.cell.len());
        bytes.extend(self.to.to_be_bytes());
        bytes.extend(self.at.to_be_bytes());
        bytes.extend(self.channel.to_be_bytes());
        bytes.extend(&self.cell);
        bytes
    }

    /// What [`Message::encode`] wrote; `None` if the bytes are too few.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (to, rest) = bytes.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let (channel, cell) = rest.split_first_chunk()?;
        Some(Self {
            to: u32::from_be_bytes(*to),
            at: u64::from_be_bytes(*at),
            channel: u32::from_be_bytes(*channel),
            cell: cell.to_vec(),
        })
    }
}

/// What has become of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct End {
    /// When, in picoseconds.
    pub at: u64,
    /// The handle with which it was offered.
    pub flow: u32,
    /// How.
    pub how: How,
}

/// How a flow ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum How {
    /// Its destination has its last cell, and so many in all: less than the flow has if some were lost, which
    /// only happens without a transport.
    Arrived {
        /// Cells of it that have come.
        cells: u64,
    },
    /// Its source died.
    SourceDied,
    /// Its source gave it up: for long it has known of no path, or its destination had died and is back.
    GivenUp,
    /// Cells of it were lost, and nothing sends them again.
    Lost,
}

/// The bytes of a flow that a cell carries. Nothing travels in a simulation; with this a driver finds the bytes
/// that belong to a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Payload {
    /// The handle with which the flow was offered.
    pub flow: u32,
    /// The first byte, in the flow.
    pub offset: Bytes,
    /// How many.
    pub length: Bytes,
}

/// A node.
#[derive(Debug)]
pub struct Instance {
    node: u32,
    shard: Shard,
    codec: Codec,
    /// What the shard sends in a run; kept for its memory.
    out: Outbox<Passing>,
    reports: Vec<Report>,
}

/// An instance for each node of a rack, in order.
///
/// Where parts of the rack may fail nodes send every cell, also those that say nothing, so that others can miss
/// them. A node acts out the faults of its own end: what it sends into a part that is broken goes nowhere, and
/// while it is dead it does nothing.
///
/// # Errors
/// If cells are too short.
pub fn instances(plan: &Plan, seed: u64) -> Result<Vec<Instance>, Problem> {
    let (plan, count) = (Arc::new(plan.clone()), plan.config.nodes as usize);
    let codec = Codec::of(&plan)?;
    let instance = |node: usize| {
        let mut shard = Shard::new(&plan, (node, count), seed);
        shard.messages.keep_payloads();
        shard.sends_all = !plan.faults.is_empty();
        // Nodes know no better when the first flow of the rack comes.
        shard.start_turns(0);
        let (codec, out) = (codec.clone(), Outbox::new(count));
        Instance { node: node as u32, shard, codec, out, reports: Vec::new() }
    };
    Ok((0..count).map(instance).collect())
}

impl Instance {
    /// Gives the node a flow of its own, in the slot that comes next. `handle`, below 2^31, is what cells carry
    /// of it: no other open flow of the rack may have the same.
    ///
    /// # Panics
    /// If this is not the instance of the flow's source, or the handle is too large.
    pub fn offer(&mut self, flow: &Flow, handle: u32) {
        assert_eq!(flow.src.get(), self.node, "{:?} begins at another node", flow.id);
        assert!(handle < 1 << 31, "handle {handle}");
        if let Some(why) = self.shard.refuses(flow) {
            let at = flow.start.max(self.shard.start_of(self.shard.slot())).as_ps();
            return self.reports.push(Report::failed(handle, at, why));
        }
        self.shard.catch_up();
        self.shard.offer(flow, handle);
    }

    /// The first instant that a flow of `start` may be offered at, in half slots.
    #[must_use]
    pub fn instant_of(&self, start: Time) -> u64 {
        2 * self.shard.times.slot_from(start)
    }

    /// How many half slots a cell is on its way.
    #[must_use]
    pub fn lookahead(&self) -> u64 {
        2 * u64::from(self.shard.plan.delay_slots) - 1
    }

    /// Which bytes a cell carries that this node has just sent as its own; none if it is another's or empty, or
    /// an acknowledgment.
    #[must_use]
    pub fn payload(&self, message: &Message) -> Option<Payload> {
        let ends = (self.node, message.to);
        let cell = self.codec.decode(&message.cell, ends).ok()?.0.cell;
        if cell == Cell::EMPTY || cell.source() != self.node {
            return None;
        }
        let (flow, offset, length) = self.shard.messages.payload(cell)?;
        Some(Payload { flow, offset, length })
    }

    /// What a cell is known by at each node that it passes: none if it is empty, an acknowledgment, or makes no
    /// sense. `ends` are who sends and who hears it.
    fn unit(&self, message: &Message, ends: (u32, u32)) -> Option<u128> {
        let cell = self.codec.decode(&message.cell, ends).ok()?.0.cell;
        (!cell.is_empty() && !cell.is_datagram()).then(|| {
            let ends = u128::from(cell.source()) << 32 | u128::from(cell.destination());
            ends << 64 | u128::from(cell.class()) << 32 | u128::from(cell.sequence())
        })
    }

    /// What a cell that this node has just sent is known by.
    pub(crate) fn said(&self, message: &Message) -> Option<u128> {
        self.unit(message, (self.node, message.to))
    }

    /// What a cell that comes in here is known by.
    pub(crate) fn heard(&self, message: &Message) -> Option<u128> {
        let from = self.heard_from(message.at / 2, message.channel)?;
        self.unit(message, (from, self.node))
    }

    /// Cells that made no sense here, so far: dropped.
    #[must_use]
    pub fn unexpected(&self) -> u64 {
        self.shard.unexpected + self.shard.messages.receivers.strays
    }

    /// Who sends to this node on a channel what arrives in a slot.
    fn heard_from(&self, slot: u64, channel: u32) -> Option<u32> {
        let sent = slot.checked_sub(u64::from(self.shard.plan.delay_slots))?;
        let schedule = &self.shard.bank.schedule;
        if channel >= schedule.channels() || sent < schedule.origin().get() {
            return None;
        }
        let position = self.shard.now_of(sent).position + channel;
        let nodes = self.shard.plan.config.nodes;
        (0..nodes).find(|&from| schedule.peer(from, position) == Some(self.node))
    }

    /// A cell arrives: bits flipped on the way make it one that is damaged, where the rack may lose cells.
    fn hear(&mut self, message: &Message) -> Result<(), Malformed> {
        let slot = message.at / 2;
        let is_late = slot < self.shard.slot();
        let from = self.heard_from(slot, message.channel).filter(|_| !is_late);
        let ends = (from.ok_or(Malformed::Header)?, self.node);
        let (mut frame, said) = match self.codec.decode(&message.cell, ends) {
            Err(Malformed::Damaged) if self.shard.losses.is_some() => (Codec::damaged(ends), None),
            heard => heard?,
        };
        if let Some(said) = said {
            self.shard.put_said(&mut frame, *said);
        }
        self.shard.flight.add(slot, message.channel, frame);
        Ok(())
    }
}

impl rack::shards::Shard for Instance {
    type Message = Message;
    type Report = End;

    /// A node of a rack that may lose cells has something to do in every slot.
    fn next(&self) -> u64 {
        self.shard.next()
    }

    fn take(&mut self, messages: &mut Vec<Message>) {
        for message in messages.drain(..) {
            if self.hear(&message).is_err() {
                self.shard.unexpected += 1;
            }
        }
    }

    fn run(&mut self, end: u64, out: &mut Outbox<Message>) -> u64 {
        let done = self.shard.run(end, &mut self.out);
        for (to, Passing { frame, said, slot, channel }) in self.out.drain() {
            let mut cell = Vec::new();
            self.codec.encode(&frame, said.as_deref(), &mut cell);
            // What the fabric does to a cell shows in its bytes.
            if frame.flags & crate::cell::Frame::CORRUPT != 0 {
                cell[8] ^= 1;
            }
            let now = self.shard.slot();
            let at = 2 * (now - 1 + u64::from(slot.wrapping_sub((now - 1) as u32)));
            out.send(to, at, Message { to: to as u32, at, channel, cell });
        }
        done
    }

    fn report(&mut self, reports: &mut Vec<End>) {
        self.shard.report(&mut self.reports);
        let end = |report: Report| {
            let how = match report.what {
                What::Whole { cells, .. } => How::Arrived { cells },
                What::Failed { code } => match What::reason(code) {
                    Failure::SourceDied => How::SourceDied,
                    Failure::DestinationDied => How::GivenUp,
                    Failure::PacketsLost => How::Lost,
                },
                What::Sent { .. } | What::Drained | What::GivenUp { .. } => return None,
            };
            Some(End { at: report.at, flow: report.handle, how })
        };
        reports.extend(self.reports.drain(..).filter_map(end));
    }
}
