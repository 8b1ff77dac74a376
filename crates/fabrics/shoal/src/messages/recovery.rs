//! Messages that lose cells: what is sent again, acknowledged or given up.

use std::collections::VecDeque;

use kernel::Bytes;
use rack::Failure;

use crate::cell::{Cargo, Cell};
use crate::transport::{Action, PairView, Transport, WINDOW};

use super::runs::Run;
use super::sending::{Outbound, next_life};
use super::{LAST, LIFE, Messages, NONE, Report, Work};

/// What only pairs that lose cells, or may, have.
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    /// Cells to send again before new ones.
    resend: VecDeque<Cargo>,
    /// Acknowledgments of what comes the other way to send before all else.
    acknowledge: u32,
    /// Cells beyond the transport's window.
    withheld: u64,
    /// First sequence number not yet handed to the NIC.
    handed: u32,
    /// Without a transport: messages that were sent whole and may wait in relays' queues.
    undrained: Vec<u32>,
}

impl Messages {
    /// Runs a reliable transport on top; a cell and its acknowledgment propagate for so many epochs, and
    /// cells have so many bytes for a report.
    pub(crate) fn with_transport(mut self, round_trip: u32, report: usize) -> Self {
        self.transport = Some(Transport::new(round_trip, report));
        self.senders.is_reliable = true;
        self.keep_payloads();
        self
    }

    /// Keeps which cells of a pair are of which message from now on, for [`Messages::payload`].
    pub(crate) fn keep_payloads(&mut self) {
        self.senders.runs.get_or_insert_default();
    }

    /// Which bytes a cell carries that its source has sent: of the message with this handle, from an offset
    /// on, so many.
    pub(crate) fn payload(&self, cell: Cell) -> Option<(u32, Bytes, Bytes)> {
        let pair = self.senders.known_pair(cell.source(), cell.destination(), cell.class())?;
        let (run, index) =
            self.senders.run_of(pair, cell.sequence()).filter(|_| !cell.is_datagram())?;
        let data = |cells| self.senders.plan.data_before(run.size, cells);
        Some((run.handle, data(index), data(index + 1) - data(index)))
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

    /// Whether the source knows that all it sent has arrived, and has nothing to send again.
    pub(super) fn is_settled(&self, pair: u32) -> bool {
        let state = &self.senders.pairs[pair as usize];
        let waits = state
            .extra
            .as_ref()
            .is_some_and(|extra| !extra.resend.is_empty() || extra.acknowledge > 0);
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
        if extra.acknowledge > 0 {
            extra.acknowledge -= 1;
            return Some(self.datagram(pair));
        }
        if let Some(cargo) = extra.resend.pop_front() {
            return Some(cargo);
        }
        if let Some(transport) = &mut self.transport {
            transport.sent(pair);
        }
        None
    }

    /// Acknowledges what comes the other way.
    fn datagram(&mut self, pair: u32) -> Cargo {
        let (source, destination, class) = self.senders.ends(pair);
        let inbound = self.receivers.pair(destination, source, class);
        self.note_started();
        let window = &self.receivers.pairs[inbound as usize].window;
        let transport = self.transport.as_mut().expect("only a transport acknowledges");
        let ack = transport.acknowledge(inbound, window, self.lives.of(source));
        self.receivers.forget_if_done(inbound);
        let cell = Cell::data(source, destination, class, ack.next).as_datagram();
        Cargo { cell, payload: self.acks.put(ack) }
    }

    /// A cell of a pair that was taken before; none if its message has arrived.
    fn repeated(&mut self, pair: u32, sequence: u32) -> Option<Cargo> {
        let (source, destination, class) = self.senders.ends(pair);
        let (run, index) = self.senders.run_of(pair, sequence)?;
        let plan = self.senders.plan;
        let message = self.senders.message(pair, run.handle)?;
        message.again = true;
        let place = plan.cell(message.flow.size, index).place;
        let cell = Cell::data(source, destination, class, sequence)
            .with_boundary(place.is_start(), place.is_end());
        Some(Cargo { cell, payload: run.payload(index) })
    }

    /// A cell of a pair has come.
    pub(super) fn after_arrival(&mut self, cell: Cell) {
        self.note_started();
        self.tell_given_up();
        if self.transport.is_none() {
            let ends = (cell.source(), cell.destination(), cell.class());
            let inbound = self.receivers.pair(ends.0, ends.1, ends.2);
            self.receivers.forget_if_done(inbound);
            self.receivers.started.clear();
        }
    }

    /// Lets the transport know of pairs that have started at their destinations.
    pub(super) fn note_started(&mut self) {
        for pair in self.receivers.started.drain(..) {
            if let Some(transport) = &mut self.transport {
                transport.start_receiving(pair);
            }
        }
    }

    /// Without a transport: all of a message was sent.
    pub(super) fn note_sent_whole(&mut self, pair: u32, handle: u32) {
        if self.transport.is_none() {
            self.extra(pair).undrained.push(handle);
        }
    }

    /// All that a pair's source sent has left the relays' queues.
    pub(super) fn tell_drained(&mut self, pair: u32) {
        if let Some(extra) = &mut self.senders.pairs[pair as usize].extra {
            self.reports.extend(extra.undrained.drain(..).map(Report::drained));
        }
    }

    /// A NIC sends a cell of a node here again.
    pub(crate) fn sent_again(&mut self, cargo: Cargo) {
        let Cargo { cell, payload } = cargo;
        let pair = self.senders.known_pair(cell.source(), cell.destination(), cell.class());
        let message = pair.and_then(|pair| self.senders.message(pair, payload & !LAST));
        if let Some(message) = message.filter(|_| !cell.is_datagram()) {
            message.again = true;
        }
    }

    /// The NIC gives back a cell of its own node that may not have arrived: it goes out again.
    pub(crate) fn give_back(&mut self, cargo: Cargo) -> Option<Work> {
        let cell = cargo.cell;
        if cell.is_datagram() {
            self.acks.take(cargo.payload);
            return None;
        }
        let pair = self.senders.known_pair(cell.source(), cell.destination(), cell.class())?;
        // Not if it is of an earlier life, or is known to have arrived.
        let sequence = self.senders.pairs[pair as usize].sequence;
        let is_old = sequence.wrapping_sub(cell.sequence()) > LIFE / 2;
        let has_arrived = self
            .transport
            .as_ref()
            .is_some_and(|transport| transport.base(pair).wrapping_sub(cell.sequence()) as i32 > 0);
        if is_old || has_arrived {
            return None;
        }
        self.sent_again(cargo);
        self.extra(pair).resend.push_back(cargo);
        Some(self.senders.assign(pair, 1))
    }

    /// A cell reached its destination: lets the transport know.
    pub(crate) fn note_arrival(&mut self, cell: Cell, epoch: u32, duplicate: bool) {
        if self.transport.is_none() {
            return;
        }
        let (source, destination, class) = (cell.source(), cell.destination(), cell.class());
        let inbound = self.receivers.pair(source, destination, class);
        self.note_started();
        let window = &self.receivers.pairs[inbound as usize].window;
        let behind = window.next_expected().wrapping_sub(cell.sequence());
        // A second copy from an earlier life of the pair needs no answer.
        if !duplicate || behind <= WINDOW {
            let transport = self.transport.as_mut().expect("there is one");
            transport.arrived(inbound, epoch, duplicate);
        }
    }

    /// A datagram reached the source of a pair: the sender of what it acknowledges. Gives cells that the
    /// window now allows.
    pub(crate) fn acknowledged(&mut self, cargo: Cargo) -> Option<Work> {
        let (cell, ack) = (cargo.cell, self.acks.take(cargo.payload)?);
        let transport = self.transport.as_mut()?;
        let pair = self.senders.known_pair(cell.destination(), cell.source(), cell.class())?;
        let sequence = self.senders.pairs[pair as usize].sequence;
        if !transport.acknowledged(pair, sequence, &ack) {
            return None;
        }
        let base = transport.base(pair);
        self.senders.close_arrived(pair, base);
        self.senders.forget_runs(pair, base);
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
        // Numbers of pairs depend on who else is here.
        actions.sort_unstable_by_key(|action| match action {
            Action::Acknowledge { pair } => (0, self.receivers.ends(*pair)),
            Action::Repeat { pair, .. } => (1, self.senders.ends(*pair)),
        });
        for action in actions {
            give(self.carry_out(action));
        }
    }

    fn carry_out(&mut self, action: Action) -> Work {
        match action {
            Action::Acknowledge { pair } => {
                let (source, destination, class) = self.receivers.ends(pair);
                let back = self.pair(destination, source, class);
                self.extra(back).acknowledge += 1;
                self.senders.assign(back, 1)
            }
            Action::Repeat { pair, sequences } => {
                let cells = sequences.into_iter().filter_map(|cell| self.repeated(pair, cell));
                let cells: Vec<_> = cells.collect();
                let count = cells.len() as u64;
                self.repeats += count;
                self.extra(pair).resend.extend(cells);
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
        for waiting in &mut self.waiting {
            waiting.forget_epochs(epochs);
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
                self.stop_acknowledging(pair);
            }
        }
    }

    /// A node that sends no more to another owes it no acknowledgments either. If cells come from there after
    /// all, copies among them ask again.
    fn stop_acknowledging(&mut self, pair: u32) {
        let (source, destination, class) = self.senders.ends(pair);
        let inbound = self.receivers.known_pair(destination, source, class);
        if let (Some(transport), Some(inbound)) = (&mut self.transport, inbound) {
            transport.owe_nothing(inbound);
            self.receivers.forget_if_done(inbound);
        }
    }

    /// A source gives a message up.
    pub(super) fn fail(&mut self, pair: u32, handle: u32, at: u64, why: Failure) {
        if self.senders.remove(pair, handle).is_some() {
            self.reports.push(Report::failed(handle, at, why));
        }
    }

    /// A pair none of whose messages is open starts anew.
    pub(super) fn restart(&mut self, index: u32) {
        self.senders.drop_runs(index);
        self.senders.drop_turns(index);
        let pair = &mut self.senders.pairs[index as usize];
        pair.sequence = next_life(pair.sequence);
        let asked = pair.extra.take().is_some_and(|extra| extra.acknowledge > 0);
        let (source, destination, class) = self.senders.ends(index);
        if let Some(transport) = self.transport.as_mut().filter(|_| asked) {
            let inbound = self.receivers.pair(destination, source, class);
            transport.not_acknowledged(inbound);
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
