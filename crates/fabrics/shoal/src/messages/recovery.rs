//! Messages that lose cells: what is sent again, acknowledged or given up.

use std::collections::VecDeque;

use kernel::Bytes;
use rack::{Failure, Flow};

use crate::cell::Cell;
use crate::packets::Place;
use crate::reorder::ReorderWindow;
use crate::transport::{Action, PairView, Transport};

use super::{Message, Messages, NONE, Pair};

/// How far a pair that starts anew skips ahead, so that cells of its earlier life are recognised as
/// old: twice what can be under way.
const NEW_LIFE: u32 = 2 * crate::transport::WINDOW;

/// Cells that a NIC may take for a pair from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) class: u32,
    pub(crate) cells: u64,
    pub(crate) tag: u32,
}

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
        self.pairs[pair as usize].extra.get_or_insert_default()
    }

    /// Work for the NIC, which thereby knows the pair again.
    fn assign(&mut self, pair: u32, cells: u64) -> Work {
        if cells > 0 {
            self.pairs[pair as usize].retired = false;
        }
        self.work(pair, cells)
    }

    fn work(&self, pair: u32, cells: u64) -> Work {
        let key = self.pairs[pair as usize].key;
        let (route, class) = (key / self.classes, key % self.classes);
        let (source, destination) = (route / self.nodes, route % self.nodes);
        Work { source, destination, class, cells, tag: pair }
    }

    pub(super) fn start_transport(&mut self, pair: u32) {
        let sequence = self.pairs[pair as usize].sequence;
        if let Some(transport) = &mut self.transport {
            transport.start(pair, sequence);
            self.extra(pair).handed = sequence;
        }
    }

    /// Hands cells of a pair to the NIC: all of them, or what the transport's window allows.
    pub(super) fn hand_over(&mut self, pair: u32, cells: u64) -> Work {
        let Some(transport) = &self.transport else { return self.assign(pair, cells) };
        let handed = self.pairs[pair as usize].extra.as_ref().map_or(0, |extra| extra.handed);
        let room = u64::from(transport.room(pair, handed));
        let extra = self.extra(pair);
        let all = extra.withheld + cells;
        let now = all.min(room);
        extra.withheld = all - now;
        extra.handed = extra.handed.wrapping_add(now as u32);
        self.assign(pair, now)
    }

    /// Whether the source knows that all it sent has arrived.
    pub(super) fn is_settled(&self, pair: u32) -> bool {
        let state = &self.pairs[pair as usize];
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
    pub(super) fn recovered_cell(&mut self, pair: u32) -> Option<Cell> {
        let extra = self.pairs[pair as usize].extra.as_mut()?;
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

    fn datagram(&mut self, pair: u32, acknowledged: u32) -> Cell {
        let Work { source, destination, class, .. } = self.work(pair, 1);
        let window = &self.pairs[acknowledged as usize].window;
        let transport = self.transport.as_mut().expect("only a transport acknowledges");
        let id = transport.acknowledge(acknowledged, window);
        Cell::data(source, destination, class, id).as_datagram()
    }

    fn repeated(&self, pair: u32, sequence: u32) -> Cell {
        let Work { source, destination, class, .. } = self.work(pair, 1);
        let place = self.place_of(pair, sequence).unwrap_or(Place::Middle);
        Cell::data(source, destination, class, sequence)
            .with_boundary(place.is_start(), place.is_end())
    }

    /// Where in its packet a cell stands that was sent before; none if its message is delivered.
    fn place_of(&self, pair: u32, sequence: u32) -> Option<Place> {
        let (message, index) = self.cell_of(pair, sequence)?;
        let message = &self.slab[message as usize];
        (index < message.taken).then(|| self.plan.cell(message.flow.size, index).place)
    }

    /// The NIC gives back a cell of its own node that may not have arrived: it goes out again.
    pub(crate) fn give_back(&mut self, cell: Cell) -> Option<Work> {
        let pair = self.pair_of[self.key(cell.source(), cell.destination(), cell.class())];
        if pair == NONE || cell.is_datagram() {
            return None;
        }
        // Not if its message has arrived or was given up meanwhile.
        self.place_of(pair, cell.sequence())?;
        self.extra(pair).resend.push_back(cell.sequence());
        Some(self.assign(pair, 1))
    }

    /// A cell reached its destination: lets the transport know.
    pub(crate) fn note_arrival(&mut self, cell: Cell, epoch: u32, duplicate: bool) {
        let pair = self.pair_of[self.key(cell.source(), cell.destination(), cell.class())];
        let Some(transport) = self.transport.as_mut().filter(|_| pair != NONE) else { return };
        let behind = self.pairs[pair as usize].window.next_expected().wrapping_sub(cell.sequence());
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
            let Work { source, destination, class, .. } = self.work(pair, 0);
            let Pair { sequence, extra, .. } = &self.pairs[pair as usize];
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
                let Work { source, destination, class, .. } = self.work(pair, 1);
                let back = self.pair(destination, source, class);
                self.extra(back).acknowledge.push_back(pair);
                self.assign(back, 1)
            }
            Action::Repeat { pair, sequences } => {
                let count = sequences.len() as u64;
                self.repeats += count;
                self.extra(pair).resend.extend(sequences);
                self.assign(pair, count)
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
        let known = self.pair_of.iter().filter(|&&pair| pair != NONE);
        known
            .filter(|&&pair| self.pairs[pair as usize].open > 0 || !self.is_settled(pair))
            .map(|&pair| self.work(pair, 0))
            .map(|work| (work.source, work.destination))
            .collect()
    }

    /// Gives up the messages of the pairs for which `why`, asked with source and destination, has a
    /// reason. Tells `failed` each flow, why, and how much of it had not arrived, and `stopped` each
    /// pair whose source has nothing left to send.
    pub(crate) fn fail_pairs(
        &mut self,
        why: impl Fn(u32, u32) -> Option<Failure>,
        mut failed: impl FnMut(Flow, Failure, Bytes),
        mut stopped: impl FnMut(Work),
    ) {
        for key in 0..self.pair_of.len() {
            let pair = self.pair_of[key];
            if pair == NONE {
                continue;
            }
            let work = self.work(pair, 0);
            if let Some(why) = why(work.source, work.destination) {
                stopped(work);
                self.fail_pair(pair, |flow, missing| failed(flow, why, missing));
            }
        }
    }

    /// The messages of a pair that are not delivered, in the order of their flows.
    pub(super) fn open_messages(&self, pair: u32) -> Vec<u32> {
        let route = self.work(pair, 0);
        let is_of_pair = |message: &&Message| {
            let flow = &message.flow;
            message.is_open
                && (flow.src.get(), flow.dst.get()) == (route.source, route.destination)
                && self.class_of(flow) == route.class
        };
        let mut flows: Vec<_> = (0..)
            .zip(&self.slab)
            .filter(|(_, message)| is_of_pair(message))
            .map(|(index, message)| (message.flow.id, index))
            .collect();
        flows.sort();
        flows.into_iter().map(|(_, index)| index).collect()
    }

    pub(super) fn fail_pair(&mut self, index: u32, mut failed: impl FnMut(Flow, Bytes)) {
        for message in self.open_messages(index) {
            let arrived = self.in_order_of(index, message);
            let flow = self.slab[message as usize].flow;
            self.given_up += arrived;
            failed(flow, flow.size - arrived);
            self.close(index, message);
        }
        while self.pop_run(index).is_some() {}
        let pair = &mut self.pairs[index as usize];
        (pair.sending, pair.waiting, pair.last_waiting) = (NONE, NONE, NONE);
        pair.sequence = pair.sequence.wrapping_add(NEW_LIFE);
        pair.window = ReorderWindow::starting_at(pair.sequence);
        let extra = pair.extra.take();
        if let (Some(transport), Some(extra)) = (&mut self.transport, extra) {
            extra.acknowledge.iter().for_each(|&pair| transport.not_acknowledged(pair));
        }
        self.start_transport(index);
    }
}
