//! The half of flows at their sources: which cell comes next.
//!
//! A source knows what it was given and what its NIC has taken. It forgets a message as its last cell leaves,
//! or, with a transport, as acknowledgments say that all of it has arrived.

use kernel::Slab;
use rack::Flow;

use crate::cell::{Cargo, Cell};
use crate::config::{Config, PairOrder};
use crate::packets::CellPlan;

use super::recovery::Extra;
use super::runs::Runs;
use super::{LAST, LIFE, NONE, Report, Work};

/// One flow of the workload at its source, from its offer until its source forgets it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) flow: Flow,
    /// What its cells carry, so that the receiver can tell the messages of a pair apart.
    pub(super) handle: u32,
    pub(super) cells: u64,
    /// Cells taken by the NIC so far, and how many more the packet in hand has.
    pub(super) taken: u64,
    packet_left: u64,
    /// The message that waits for its turn behind this one.
    next_turn: u32,
    /// The pair's next message in the order in which they were offered.
    next: u32,
    /// The sequence number behind its last cell, once that is taken.
    end: u32,
    /// Cells of it were sent again; and what there is to tell of its sending was told.
    pub(super) again: bool,
    is_told: bool,
    /// Sums of slots over its cells: taken into a queue, sent by the source.
    released: u128,
    sent: u128,
    /// Times that the source sent one of its cells: more than `cells` if some went out again.
    sendings: u64,
}

/// All messages from a node here to one other node in one class.
#[derive(Clone, Debug)]
pub(super) struct Outbound {
    /// Next sequence number.
    pub(super) sequence: u32,
    /// Cells taken so far: sequence numbers wrap, this does not.
    pub(super) taken: u64,
    /// Messages not yet forgotten.
    pub(super) open: u32,
    /// They, in the order in which they were offered.
    first: u32,
    last: u32,
    /// The message being sent, and those that wait for their turn: the first and the last.
    pub(super) sending: u32,
    waiting: u32,
    last_waiting: u32,
    /// Cells taken since the turn began.
    turn: u64,
    /// Index into [`Senders::pair_of`].
    pub(super) key: u32,
    /// The NIC has forgotten the flow; the pair goes once nothing of it is open.
    pub(super) retired: bool,
    /// The oldest run that has not arrived whole, and the last; only with a transport.
    pub(super) first_run: u32,
    pub(super) last_run: u32,
    /// What recovery needs; present once something was lost or a transport runs.
    pub(super) extra: Option<Box<Extra>>,
}

/// The state of the sources of a set of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Senders {
    /// The first node.
    first: u32,
    pub(super) nodes: u32,
    pub(super) classes: u32,
    pub(super) plan: CellPlan,
    order: PairOrder,
    slab: Slab<Message>,
    pub(super) pairs: Slab<Outbound>,
    /// Pair of `[(source * nodes + destination) * classes + class]`, sources counted from the first.
    pub(super) pair_of: Vec<u32>,
    /// Sequence number with which an idle pair goes on.
    sequence_of: Vec<u32>,
    /// A transport tells what has arrived.
    pub(super) is_reliable: bool,
    /// Which cells are of which message: with a transport, or where a driver asks for payloads.
    pub(super) runs: Option<Runs>,
    /// Messages not yet forgotten.
    pub(crate) open: u64,
}

impl Senders {
    pub(super) fn new(config: &Config, plan: CellPlan, own: std::ops::Range<u32>) -> Self {
        let Config { nodes, classes, pair_order: order, .. } = *config;
        let keys = own.len() * nodes as usize * classes as usize;
        Self {
            first: own.start,
            nodes,
            classes,
            plan,
            order,
            slab: Slab::default(),
            pairs: Slab::default(),
            pair_of: vec![NONE; keys],
            sequence_of: vec![0; keys],
            is_reliable: false,
            runs: None,
            open: 0,
        }
    }

    #[inline]
    pub(super) fn key(&self, source: u32, destination: u32, class: u32) -> usize {
        let source = (source - self.first) as usize;
        (source * self.nodes as usize + destination as usize) * self.classes as usize
            + class as usize
    }

    /// Source, destination and class of a pair.
    #[inline]
    pub(super) fn ends(&self, pair: u32) -> (u32, u32, u32) {
        let key = self.pairs[pair as usize].key;
        let (route, class) = (key / self.classes, key % self.classes);
        (self.first + route / self.nodes, route % self.nodes, class)
    }

    /// The class of a flow; those beyond the last are the last.
    #[inline]
    pub(super) fn class_of(&self, flow: &Flow) -> u32 {
        u32::from(flow.class.get()).min(self.classes - 1)
    }

    /// Adds a message to a pair. Gives its cells.
    pub(super) fn add(&mut self, pair: u32, flow: &Flow, handle: u32) -> u64 {
        let cells = self.plan.cells(flow.size);
        let message = Message::new(flow, handle, cells);
        let index = self.slab.insert(message);
        let state = &mut self.pairs[pair as usize];
        state.open += 1;
        match state.last {
            NONE => state.first = index,
            last => self.slab[last as usize].next = index,
        }
        state.last = index;
        if state.sending == NONE {
            state.sending = index;
            self.start_turn(pair);
        } else {
            self.wait_for_turn(pair, index);
        }
        self.open += 1;
        cells
    }

    fn start_turn(&mut self, pair: u32) {
        self.pairs[pair as usize].turn = 0;
        self.start_run(pair);
    }

    /// Puts a message behind those of its pair that wait for their turn.
    fn wait_for_turn(&mut self, pair: u32, message: u32) {
        let state = &mut self.pairs[pair as usize];
        match state.last_waiting {
            NONE => state.waiting = message,
            last => self.slab[last as usize].next_turn = message,
        }
        state.last_waiting = message;
        self.slab[message as usize].next_turn = NONE;
    }

    /// The turn of the next message of a pair, if one waits.
    fn next_turn(&mut self, pair: u32) {
        let state = &mut self.pairs[pair as usize];
        state.sending = state.waiting;
        if state.sending != NONE {
            state.waiting = self.slab[state.sending as usize].next_turn;
            if state.waiting == NONE {
                state.last_waiting = NONE;
            }
            self.start_turn(pair);
        }
    }

    /// At the start of a packet: whether other messages go first is up to the order.
    #[inline]
    fn take_turns(&mut self, pair: u32) {
        let state = &self.pairs[pair as usize];
        if state.waiting == NONE || self.order == PairOrder::Fifo || state.turn == 0 {
            return;
        }
        let sending = state.sending;
        self.interrupt_run(pair);
        self.wait_for_turn(pair, sending);
        self.next_turn(pair);
    }

    /// The pair of two nodes in a class, if it is known.
    #[inline]
    pub(super) fn known_pair(&self, source: u32, destination: u32, class: u32) -> Option<u32> {
        let pair = self.pair_of[self.key(source, destination, class)];
        (pair != NONE).then_some(pair)
    }

    /// A pair that is not known yet.
    pub(super) fn add_pair(&mut self, key: usize) -> u32 {
        let pair = Outbound {
            sequence: self.sequence_of[key],
            taken: 0,
            open: 0,
            first: NONE,
            last: NONE,
            sending: NONE,
            waiting: NONE,
            last_waiting: NONE,
            turn: 0,
            key: key as u32,
            retired: false,
            first_run: NONE,
            last_run: NONE,
            extra: None,
        };
        let index = self.pairs.insert(pair);
        self.pair_of[key] = index;
        index
    }

    /// Whether a number still stands for the pair that it was given to.
    pub(super) fn is_known(&self, pair: u32) -> bool {
        self.pair_of[self.pairs[pair as usize].key as usize] == pair
    }

    /// Keeps of a pair its next sequence number alone.
    pub(super) fn forget(&mut self, pair: u32) {
        self.drop_runs(pair);
        let Outbound { key, sequence, .. } = self.pairs[pair as usize];
        self.sequence_of[key as usize] = sequence;
        self.pair_of[key as usize] = NONE;
        self.pairs.release(pair);
    }

    /// The position among all cells of the pair of one that was taken.
    #[inline]
    pub(super) fn position(&self, pair: u32, sequence: u32) -> u64 {
        let pair = &self.pairs[pair as usize];
        pair.taken.wrapping_sub(u64::from(pair.sequence.wrapping_sub(sequence)))
    }

    /// The next new cell of a pair, taken in this slot.
    #[inline]
    pub(super) fn take(&mut self, tag: u32, slot: u64) -> Cargo {
        let sending = self.pairs[tag as usize].sending;
        let starts = self.slab[sending as usize].packet_left == 0;
        if starts {
            self.take_turns(tag);
        }
        let pair = &mut self.pairs[tag as usize];
        let sequence = pair.sequence;
        pair.sequence = sequence.wrapping_add(1);
        pair.taken += 1;
        pair.turn += 1;
        let message = &mut self.slab[pair.sending as usize];
        if starts {
            message.packet_left = self.plan.cells_per_packet().min(message.cells - message.taken);
        }
        debug_assert_eq!(starts, self.plan.cell(message.flow.size, message.taken).place.is_start());
        message.packet_left -= 1;
        let ends = message.packet_left == 0;
        message.taken += 1;
        message.released += u128::from(slot);
        let flow = message.flow;
        let is_last = message.taken == message.cells;
        let payload = message.handle | if is_last { LAST } else { 0 };
        if is_last {
            message.end = sequence.wrapping_add(1);
            self.next_turn(tag);
        }
        let class = self.class_of(&flow);
        let cell = Cell::data(flow.src.get(), flow.dst.get(), class, sequence);
        Cargo { cell: cell.with_boundary(starts, ends), payload }
    }

    /// A cell of a pair leaves its source in this slot. Gives what there is to report of its message if that
    /// was the last; without a transport its source then forgets it.
    #[inline]
    pub(super) fn left(&mut self, tag: u32, payload: u32, slot: u64) -> Option<Report> {
        let (before, index) = self.find(tag, payload & !LAST)?;
        let message = &mut self.slab[index as usize];
        message.sent += u128::from(slot);
        message.sendings += 1;
        if message.sendings < message.cells || message.taken < message.cells || message.is_told {
            return None;
        }
        message.is_told = true;
        let report = message.report();
        if !self.is_reliable {
            self.close(tag, before, index);
        }
        Some(report)
    }

    /// Forgets the messages of a pair all of whose cells are before `base`: they have arrived.
    pub(super) fn close_arrived(&mut self, pair: u32, base: u32) {
        let (mut before, mut index) = (NONE, self.pairs[pair as usize].first);
        while index != NONE {
            let Message { next, taken, cells, end, .. } = self.slab[index as usize];
            if taken == cells && base.wrapping_sub(end) as i32 >= 0 {
                self.close(pair, before, index);
            } else {
                before = index;
            }
            index = next;
        }
    }

    /// A message of a pair, and the one before it in the order of offers.
    #[inline]
    fn find(&self, pair: u32, handle: u32) -> Option<(u32, u32)> {
        let (mut before, mut index) = (NONE, self.pairs[pair as usize].first);
        while index != NONE && self.slab[index as usize].handle != handle {
            (before, index) = (index, self.slab[index as usize].next);
        }
        (index != NONE).then_some((before, index))
    }

    /// A message by what its cells carry.
    pub(super) fn message(&mut self, pair: u32, handle: u32) -> Option<&mut Message> {
        let (_, index) = self.find(pair, handle)?;
        self.slab.get_mut(index as usize)
    }

    pub(super) fn message_at(&self, index: u32) -> &Message {
        &self.slab[index as usize]
    }

    /// Forgets a message; gives it.
    pub(super) fn remove(&mut self, pair: u32, handle: u32) -> Option<Message> {
        let (before, index) = self.find(pair, handle)?;
        self.close(pair, before, index);
        Some(self.slab[index as usize].clone())
    }

    fn close(&mut self, pair: u32, before: u32, index: u32) {
        let next = self.slab[index as usize].next;
        let state = &mut self.pairs[pair as usize];
        state.open -= 1;
        if before == NONE {
            state.first = next;
        } else {
            self.slab[before as usize].next = next;
        }
        if next == NONE {
            state.last = before;
        }
        self.slab.release(index);
        self.open -= 1;
    }

    /// Nothing of a pair is to be sent any more.
    pub(super) fn drop_turns(&mut self, pair: u32) {
        let pair = &mut self.pairs[pair as usize];
        (pair.sending, pair.waiting, pair.last_waiting) = (NONE, NONE, NONE);
        pair.taken = 0;
    }

    /// The messages of a pair that are not forgotten, in the order of their flows.
    pub(super) fn open_messages(&self, pair: u32) -> Vec<u32> {
        let mut index = self.pairs[pair as usize].first;
        let mut flows = Vec::new();
        while index != NONE {
            let message = &self.slab[index as usize];
            flows.push((message.flow.id, message.handle));
            index = message.next;
        }
        flows.sort_unstable();
        flows.into_iter().map(|(_, handle)| handle).collect()
    }

    /// A pair that is not known goes on with the numbers of another life.
    pub(super) fn start_life(&mut self, source: u32, destination: u32, class: u32) {
        let key = self.key(source, destination, class);
        self.sequence_of[key] = next_life(self.sequence_of[key]);
    }

    /// Work for the NIC, which thereby knows the pair again.
    pub(super) fn assign(&mut self, pair: u32, cells: u64) -> Work {
        if cells > 0 {
            self.pairs[pair as usize].retired = false;
        }
        self.work(pair, cells)
    }

    pub(super) fn work(&self, pair: u32, cells: u64) -> Work {
        let (source, destination, class) = self.ends(pair);
        Work { source, destination, class, cells, tag: pair }
    }
}

/// The first number of the life of a pair that comes after one with this number.
pub(super) fn next_life(sequence: u32) -> u32 {
    sequence.wrapping_add(LIFE / 2 + LIFE - 1) & !(LIFE - 1)
}

impl Message {
    fn new(flow: &Flow, handle: u32, cells: u64) -> Self {
        Self {
            flow: *flow,
            handle,
            cells,
            taken: 0,
            packet_left: 0,
            next_turn: NONE,
            next: NONE,
            end: 0,
            again: false,
            is_told: false,
            released: 0,
            sent: 0,
            sendings: 0,
        }
    }

    /// What the source knows of it once all has been sent.
    pub(super) fn report(&self) -> Report {
        let Self { handle, released, sent, sendings, cells, again, .. } = *self;
        Report::sent(handle, released, sent, again || sendings != cells)
    }
}
