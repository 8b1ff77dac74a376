//! Messages that lose cells: what is sent again, acknowledged or given up.

use std::collections::VecDeque;

use rack::Failure;

use crate::cell::{Cargo, Cell};
use crate::packets::Place;
use crate::transport::{Action, PairView, Transport};

use super::runs::Run;
use super::sending::Outbound;
use super::{LAST, Messages, NONE, Report, Work};

/// How far a pair that starts anew skips ahead, so that cells of its earlier life are recognised as
/// old: twice what can be under way.
const NEW_LIFE: u32 = 2 * crate::transport::WINDOW;

/// What only pairs that lose cells, or may, have.
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    /// Cells to send again before new ones.
    resend: VecDeque<u32>,
    /// Pairs to acknowledge, before all else.
    acknowledge: VecDeque<u32>,
    /// Cells beyond the transport's window.
    withheld: u64,
    /// First sequence number not yet handed to the NIC.
    handed: u32,
}

impl Messages {
    /// Runs a reliable transport on top; a cell and its acknowledgment propagate for so many epochs.
    pub(crate) fn with_transport(mut self, round_trip: u32) -> Self {
        self.transport = Some(Transport::new(round_trip));
        self
    }

    fn extra(&mut self, pair: u32) -> &mut Extra {
        self.senders.pairs[pair as usize].extra.get_or_insert_default()
    }

    pub(super) fn start_transport(&mut self, pair: u32) {
        let sequence = self.senders.pairs[pair as usize].sequence;
        if let Some(transport) = &mut self.transport {
            transport.start(pair, sequence);
            self.extra(pair).handed = sequence;
        }
    }

    /// Hands cells of a pair to the NIC: all of them, or what the transport's window allows.
    pub(super) fn hand_over(&mut self, pair: u32, cells: u64) -> Work {
        let Some(transport) = &self.transport else { return self.senders.assign(pair, cells) };
        let extra = &self.senders.pairs[pair as usize].extra;
        let handed = extra.as_ref().map_or(0, |extra| extra.handed);
        let room = u64::from(transport.room(pair, handed));
        let extra = self.extra(pair);
        let all = extra.withheld + cells;
        let now = all.min(room);
        extra.withheld = all - now;
        extra.handed = extra.handed.wrapping_add(now as u32);
        self.senders.assign(pair, now)
    }

    /// Whether the source knows that all it sent has arrived.
    pub(super) fn is_settled(&self, pair: u32) -> bool {
        let state = &self.senders.pairs[pair as usize];
        let waits = state
            .extra
            .as_ref()
            .is_some_and(|extra| !extra.resend.is_empty() || !extra.acknowledge.is_empty());
        let settled = self
            .transport
            .as_ref()
            .is_none_or(|transport| transport.is_settled(pair, state.sequence));
        settled && !waits
    }

    /// The next cell of a pair that is not a new one: an acknowledgment or a repeated cell.
    #[inline]
    pub(super) fn recovered_cell(&mut self, pair: u32) -> Option<Cargo> {
        let extra = self.senders.pairs[pair as usize].extra.as_mut()?;
        if let Some(acknowledged) = extra.acknowledge.pop_front() {
            return Some(self.datagram(pair, acknowledged));
        }
        if let Some(sequence) = extra.resend.pop_front() {
            return Some(self.repeated(pair, sequence));
        }
        if let Some(transport) = &mut self.transport {
            transport.sent(pair);
        }
        None
    }

    fn datagram(&mut self, pair: u32, acknowledged: u32) -> Cargo {
        let (source, destination, class) = self.senders.ends(pair);
        let ends = self.senders.ends(acknowledged);
        let inbound = self.receivers.pair(ends.0, ends.1, ends.2);
        let window = &self.receivers.pairs[inbound as usize].window;
        let transport = self.transport.as_mut().expect("only a transport acknowledges");
        let id = transport.acknowledge(acknowledged, window);
        let cell = Cell::data(source, destination, class, id).as_datagram();
        Cargo { cell, payload: 0 }
    }

    fn repeated(&mut self, pair: u32, sequence: u32) -> Cargo {
        let (source, destination, class) = self.senders.ends(pair);
        let (place, payload) = self.place_of(pair, sequence).unwrap_or((Place::Middle, 0));
        let cell = Cell::data(source, destination, class, sequence)
            .with_boundary(place.is_start(), place.is_end());
        Cargo { cell, payload }
    }

    /// Where in its packet a cell stands that was sent before, and what it carries; none if its message is
    /// delivered.
    fn place_of(&mut self, pair: u32, sequence: u32) -> Option<(Place, u32)> {
        let (run, index) = self.senders.run_of(pair, sequence)?;
        let plan = self.senders.plan;
        let message = self.senders.message(pair, run.handle)?;
        let place = plan.cell(message.flow.size, index).place;
        (index < message.taken).then(|| (place, run.payload(index)))
    }

    /// Whether a cell is of a pair that is known here, with room made for it among those that wait.
    pub(super) fn expects(&mut self, cell: Cell, end: u64) -> bool {
        let (source, destination, class) = (cell.source(), cell.destination(), cell.class());
        let pair = self.senders.known_pair(source, destination, class);
        let Some(pair) = pair else { return false };
        self.make_room(pair, cell, end);
        true
    }

    /// A message is whole: its source learns of it at once.
    pub(super) fn delivered(&mut self, cell: Cell, handle: u32) {
        let (source, destination, class) = (cell.source(), cell.destination(), cell.class());
        let pair = self.senders.known_pair(source, destination, class);
        let Some(pair) = pair else { return };
        if let Some(message) = self.senders.remove(pair, handle) {
            self.reports.push(message.report());
        }
        let inbound = self.receivers.pair(source, destination, class);
        let next = self.receivers.pairs[inbound as usize].window.next_expected();
        self.senders.forget_runs(pair, next);
        self.forget_if_done(pair);
    }

    /// The NIC gives back a cell of its own node that may not have arrived: it goes out again.
    pub(crate) fn give_back(&mut self, cell: Cell) -> Option<Work> {
        if cell.is_datagram() {
            return None;
        }
        let pair = self.senders.known_pair(cell.source(), cell.destination(), cell.class())?;
        // Not if its message has arrived or was given up meanwhile.
        self.place_of(pair, cell.sequence())?;
        self.extra(pair).resend.push_back(cell.sequence());
        Some(self.senders.assign(pair, 1))
    }

    /// A cell reached its destination: lets the transport know.
    pub(crate) fn note_arrival(&mut self, cell: Cell, epoch: u32, duplicate: bool) {
        let (source, destination, class) = (cell.source(), cell.destination(), cell.class());
        let pair = self.senders.known_pair(source, destination, class);
        let (Some(transport), Some(pair)) = (&mut self.transport, pair) else { return };
        let inbound = self.receivers.pair(source, destination, class);
        let window = &self.receivers.pairs[inbound as usize].window;
        let behind = window.next_expected().wrapping_sub(cell.sequence());
        // A second copy from an earlier life of the pair needs no answer.
        if !duplicate || behind <= crate::transport::WINDOW {
            transport.arrived(pair, epoch, duplicate);
        }
    }

    /// An acknowledgment reached the sender it is for. Gives cells that the window now allows.
    pub(crate) fn acknowledged(&mut self, cell: Cell) -> Option<Work> {
        let pair = self.transport.as_mut()?.acknowledged(cell.sequence())?;
        let work = self.hand_over(pair, 0);
        self.forget_if_done(pair);
        (work.cells > 0).then_some(work)
    }

    /// Lets an epoch pass for the transport. `drained` tells, for a source, destination and class,
    /// by which epoch what was sent has left the remote queues.
    pub(crate) fn tick(
        &mut self,
        epoch: u32,
        drained: impl Fn(u32, u32, u32) -> u32,
        mut give: impl FnMut(Work),
    ) {
        let Some(mut transport) = self.transport.take() else { return };
        let mut actions = Vec::new();
        let view = |pair: u32| {
            let (source, destination, class) = self.senders.ends(pair);
            let Outbound { sequence, extra, .. } = &self.senders.pairs[pair as usize];
            PairView {
                sequence: *sequence,
                drained: drained(source, destination, class),
                is_repeating: extra.as_ref().is_some_and(|extra| !extra.resend.is_empty()),
            }
        };
        transport.tick(epoch, view, |action| actions.push(action));
        self.transport = Some(transport);
        for action in actions {
            give(self.carry_out(action));
        }
    }

    fn carry_out(&mut self, action: Action) -> Work {
        match action {
            Action::Acknowledge { pair } => {
                let (source, destination, class) = self.senders.ends(pair);
                let back = self.pair(destination, source, class);
                self.extra(back).acknowledge.push_back(pair);
                self.senders.assign(back, 1)
            }
            Action::Repeat { pair, sequences } => {
                let count = sequences.len() as u64;
                self.repeats += count;
                self.extra(pair).resend.extend(sequences);
                self.senders.assign(pair, count)
            }
        }
    }

    /// Counts epochs from one that is so many later.
    pub(crate) fn forget_epochs(&mut self, epochs: u64) {
        let epochs = u32::try_from(epochs).unwrap_or(u32::MAX);
        if let Some(transport) = &mut self.transport {
            transport.forget_epochs(epochs);
        }
        for incomplete in &mut self.incomplete {
            incomplete.forget_epochs(epochs);
        }
    }

    /// Epochs that may pass before a timer above the NICs runs out.
    pub(crate) fn longest_wait(&self) -> u64 {
        self.transport.as_ref().map_or(0, Transport::longest_wait)
    }

    /// Whether the transport waits for nothing.
    pub(crate) fn is_transport_idle(&self) -> bool {
        self.transport.as_ref().is_none_or(Transport::is_idle)
    }

    /// Source and destination of every pair with something not yet delivered or acknowledged.
    pub(crate) fn open_pairs(&self) -> Vec<(u32, u32)> {
        let known = self.senders.pair_of.iter().filter(|&&pair| pair != NONE);
        let is_open = |pair| self.senders.pairs[pair as usize].open > 0 || !self.is_settled(pair);
        let ends = |&pair: &u32| {
            let (source, destination, _) = self.senders.ends(pair);
            (source, destination)
        };
        known.filter(|&&pair| is_open(pair)).map(ends).collect()
    }

    /// Gives up, at `at`, the messages of the pairs for which `why`, asked with source and destination,
    /// has a reason. Tells `stopped` each pair whose source has nothing left to send.
    pub(crate) fn fail_pairs(
        &mut self,
        at: u64,
        why: impl Fn(u32, u32) -> Option<Failure>,
        mut stopped: impl FnMut(Work),
    ) {
        for key in 0..self.senders.pair_of.len() {
            let pair = self.senders.pair_of[key];
            if pair == NONE {
                continue;
            }
            let work = self.senders.work(pair, 0);
            if let Some(why) = why(work.source, work.destination) {
                stopped(work);
                for handle in self.senders.open_messages(pair) {
                    self.fail(pair, handle, at, why);
                }
                self.restart(pair);
            }
        }
    }

    /// A source gives a message up.
    pub(super) fn fail(&mut self, pair: u32, handle: u32, at: u64, why: Failure) {
        let in_order = self.receivers.in_order(self.senders.ends(pair), handle);
        if self.senders.remove(pair, handle).is_some() {
            self.reports.push(Report::failed(handle, at, why, in_order));
        }
    }

    /// A pair none of whose messages is open starts anew.
    pub(super) fn restart(&mut self, index: u32) {
        self.senders.drop_runs(index);
        self.senders.drop_turns(index);
        let (source, destination, class) = self.senders.ends(index);
        let pair = &mut self.senders.pairs[index as usize];
        pair.sequence = pair.sequence.wrapping_add(NEW_LIFE);
        let (sequence, extra) = (pair.sequence, pair.extra.take());
        self.receivers.restart(source, destination, class, sequence);
        if let (Some(transport), Some(extra)) = (&mut self.transport, extra) {
            extra.acknowledge.iter().for_each(|&pair| transport.not_acknowledged(pair));
        }
        self.start_transport(index);
    }
}

impl Run {
    /// What a cell of the message carries.
    pub(super) fn payload(&self, cell: u64) -> u32 {
        self.handle | if cell + 1 == self.cells { LAST } else { 0 }
    }
}
