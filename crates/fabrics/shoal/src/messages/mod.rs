//! What applications gave to the rack and have not yet received whole.
//!
//! Memory follows the flows in flight: an ended flow leaves nothing behind but its pair's next
//! sequence number.
//!
//! In Shoal a flow is all that one node sends to another (§3.3.2). The flows of a workload are
//! *messages* in it, which take turns packet by packet, or go one after the other.

mod missing;
mod recovery;
mod runs;
mod stages;

use kernel::Bytes;
use rack::{Flow, Unfinished};

use crate::cell::Cell;
use crate::config::{Config, PairOrder};
use crate::nic::CellSource;
use crate::packets::CellPlan;
use crate::reorder::ReorderWindow;
use crate::transport::Transport;

pub(crate) use recovery::Work;
pub(crate) use stages::{STAGES, SlotTimes};

use missing::Incomplete;
use recovery::Extra;
use runs::Runs;

const NONE: u32 = u32::MAX;

/// One flow of the workload, from its offer to its end.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) flow: Flow,
    cells: u64,
    /// Cells taken by the NIC so far, and how many more the packet in hand has.
    taken: u64,
    packet_left: u64,
    /// Cells in the runs that have arrived whole.
    arrived: u64,
    /// The message that waits for its turn behind this one.
    next: u32,
    /// Offered, and neither delivered nor given up.
    is_open: bool,
    /// Its destination died while it was open; its source does not know yet.
    is_doomed: bool,
    /// The first of its cells that will not come, if one is known.
    pub(crate) lost_from: Option<u64>,
    /// First slot of its life; the sums below count from here.
    origin: u64,
    /// Sums of slots over its cells: taken into a queue, sent by the source, sent for the last hop.
    released: u128,
    sent: u128,
    last_hop: u128,
    /// Cells that took the direct path.
    direct: u64,
    /// Times that the source sent one of its cells: more than `cells` if some went out again.
    sendings: u64,
}

/// All messages from one node to another in one class.
#[derive(Clone, Debug)]
struct Pair {
    window: ReorderWindow,
    /// Next sequence number at the source.
    sequence: u32,
    /// Cells that have arrived in order, in 64 bits: sequence numbers wrap, this does not.
    arrived: u64,
    /// Messages not yet delivered.
    open: u32,
    /// The message being sent, and those that wait for their turn: the first and the last.
    sending: u32,
    waiting: u32,
    last_waiting: u32,
    /// The oldest run that has not arrived whole, and the last.
    first_run: u32,
    last_run: u32,
    /// Index into `Messages::pair_of`.
    key: u32,
    /// The source's NIC has forgotten the flow; the pair goes once all has arrived.
    retired: bool,
    /// What recovery needs; present once something was lost or a transport runs.
    extra: Option<Box<Extra>>,
}

impl Pair {
    /// The position among all cells of the pair of one that is under way.
    #[inline]
    fn position(&self, sequence: u32) -> u64 {
        let ahead = sequence.wrapping_sub(self.window.next_expected()) as i32;
        self.arrived.wrapping_add_signed(i64::from(ahead))
    }
}

/// What a delivered cell brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The cell was there before.
    pub(crate) duplicate: bool,
    /// A message may have arrived whole; ask [`Messages::complete`] until it gives none.
    pub(crate) completes: bool,
}

/// The state of senders and receivers above the NICs.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    nodes: u32,
    classes: u32,
    plan: CellPlan,
    order: PairOrder,
    slab: Vec<Message>,
    free: Vec<u32>,
    runs: Runs,
    pairs: Vec<Pair>,
    free_pairs: Vec<u32>,
    /// Pair of `[(source * nodes + destination) * classes + class]`.
    pair_of: Vec<u32>,
    /// Sequence number with which an idle pair goes on.
    sequence_of: Vec<u32>,
    /// Messages not yet delivered.
    pub(crate) open: u64,
    /// Application bytes that had arrived in order of messages that were given up.
    given_up: Bytes,
    /// Most out-of-order cells held for one pair.
    pub(crate) held_peak: u32,
    /// Cells that the transport sent again.
    pub(crate) repeats: u64,
    /// The end-to-end transport, if there is one.
    transport: Option<Transport>,
    /// Without one: pairs whose sources have nothing left to send, and of which cells are missing.
    incomplete: Vec<Incomplete>,
}

impl Messages {
    pub(crate) fn new(config: &Config, plan: CellPlan) -> Self {
        let Config { nodes, classes, pair_order: order, .. } = *config;
        let keys = nodes as usize * nodes as usize * classes as usize;
        Self {
            nodes,
            classes,
            plan,
            order,
            slab: Vec::new(),
            free: Vec::new(),
            runs: Runs::default(),
            pairs: Vec::new(),
            free_pairs: Vec::new(),
            pair_of: vec![NONE; keys],
            sequence_of: vec![0; keys],
            open: 0,
            given_up: Bytes::ZERO,
            held_peak: 0,
            repeats: 0,
            transport: None,
            incomplete: Vec::new(),
        }
    }

    #[inline]
    fn key(&self, source: u32, destination: u32, class: u32) -> usize {
        (source as usize * self.nodes as usize + destination as usize) * self.classes as usize
            + class as usize
    }

    /// Accepts a flow in slot `origin`. Gives what the source's NIC may send of it now.
    pub(crate) fn offer(&mut self, flow: &Flow, origin: u64) -> Work {
        let cells = self.plan.cells(flow.size);
        let class = self.class_of(flow);
        let pair = self.pair(flow.src.get(), flow.dst.get(), class);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slab.push(Message::new(flow, 0, origin));
            (self.slab.len() - 1) as u32
        });
        self.slab[index as usize] = Message::new(flow, cells, origin);
        let state = &mut self.pairs[pair as usize];
        state.open += 1;
        if state.sending == NONE {
            state.sending = index;
            self.start_run(pair);
        } else {
            self.wait_for_turn(pair, index);
        }
        self.open += 1;
        self.hand_over(pair, cells)
    }

    /// Puts a message behind those of its pair that wait for their turn.
    fn wait_for_turn(&mut self, pair: u32, message: u32) {
        let state = &mut self.pairs[pair as usize];
        match state.last_waiting {
            NONE => state.waiting = message,
            last => self.slab[last as usize].next = message,
        }
        state.last_waiting = message;
        self.slab[message as usize].next = NONE;
    }

    /// The turn of the next message of a pair, if one waits.
    fn next_turn(&mut self, pair: u32) {
        let state = &mut self.pairs[pair as usize];
        state.sending = state.waiting;
        if state.sending != NONE {
            state.waiting = self.slab[state.sending as usize].next;
            if state.waiting == NONE {
                state.last_waiting = NONE;
            }
            self.start_run(pair);
        }
    }

    /// At the start of a packet: whether other messages go first is up to the order.
    #[inline]
    fn take_turns(&mut self, pair: u32) {
        let state = &self.pairs[pair as usize];
        if state.waiting == NONE || self.order == PairOrder::Fifo {
            return;
        }
        let sending = state.sending;
        if self.interrupt_run(pair) {
            self.wait_for_turn(pair, sending);
            self.next_turn(pair);
        }
    }

    /// The class of a flow; those beyond the last are the last.
    #[inline]
    fn class_of(&self, flow: &Flow) -> u32 {
        u32::from(flow.class.get()).min(self.classes - 1)
    }

    /// The pair of two nodes in a class, made if it is not there.
    fn pair(&mut self, source: u32, destination: u32, class: u32) -> u32 {
        let key = self.key(source, destination, class);
        if self.pair_of[key] != NONE {
            return self.pair_of[key];
        }
        let sequence = self.sequence_of[key];
        let pair = Pair {
            window: ReorderWindow::starting_at(sequence),
            sequence,
            arrived: 0,
            open: 0,
            sending: NONE,
            waiting: NONE,
            last_waiting: NONE,
            first_run: NONE,
            last_run: NONE,
            key: key as u32,
            retired: false,
            extra: None,
        };
        let index = match self.free_pairs.pop() {
            Some(index) => {
                self.pairs[index as usize] = pair;
                index
            }
            None => {
                self.pairs.push(pair);
                (self.pairs.len() - 1) as u32
            }
        };
        self.pair_of[key] = index;
        self.start_transport(index);
        index
    }

    /// The source's NIC no longer remembers the flow of a pair.
    pub(crate) fn retire(&mut self, tag: u32) {
        self.pairs[tag as usize].retired = true;
        self.forget_if_done(tag);
        self.miss(tag);
    }

    fn forget_if_done(&mut self, index: u32) {
        let pair = &self.pairs[index as usize];
        // An acknowledgment may come for a pair that is forgotten already.
        let is_known = self.pair_of[pair.key as usize] == index;
        if is_known && pair.retired && pair.open == 0 && self.is_settled(index) {
            self.sequence_of[pair.key as usize] = pair.sequence;
            self.pair_of[pair.key as usize] = NONE;
            self.free_pairs.push(index);
        }
    }

    /// A cell reaches its destination; it left for the last hop in `slot`, straight from its source
    /// if `direct`.
    #[inline]
    pub(crate) fn cell_arrived(&mut self, cell: Cell, slot: u64, direct: bool) -> Delivery {
        let index = self.pair_of[self.key(cell.source(), cell.destination(), cell.class())];
        if index == NONE {
            return Delivery { duplicate: true, completes: false };
        }
        let skipped = self.make_room(index, cell.sequence());
        let pair = &mut self.pairs[index as usize];
        let inserted = pair.window.insert(cell.sequence());
        if inserted.duplicate {
            return Delivery { duplicate: true, completes: false };
        }
        pair.arrived += u64::from(inserted.advanced);
        self.held_peak = self.held_peak.max(pair.window.held());
        let Some(at) = self.message_of(index, cell.sequence()) else {
            return Delivery { duplicate: false, completes: false };
        };
        let message = &mut self.slab[at as usize];
        message.last_hop += u128::from(slot - message.origin);
        message.direct += u64::from(direct);
        let completes = (skipped || inserted.advanced > 0) && self.has_whole_run(index);
        Delivery { duplicate: false, completes }
    }

    /// Takes a message of the pair of a cell that has arrived whole, if there is one; with
    /// [`Message::lost_from`], what is known to be lost of it counts as if it had.
    pub(crate) fn complete(&mut self, cell: Cell) -> Option<Message> {
        let pair = self.pair_of[self.key(cell.source(), cell.destination(), cell.class())];
        if pair == NONE {
            return None;
        }
        self.complete_of(pair)
    }

    /// The same, by pair.
    fn complete_of(&mut self, pair: u32) -> Option<Message> {
        while self.has_whole_run(pair) {
            let (index, cells) = self.pop_run(pair)?;
            let message = &mut self.slab[index as usize];
            message.arrived += cells;
            if message.arrived == message.cells {
                let message = message.clone();
                self.close(pair, index);
                self.forget_if_done(pair);
                return Some(message);
            }
        }
        None
    }

    /// Application bytes that have arrived in order of messages that are not delivered.
    pub(crate) fn in_order(&self) -> Bytes {
        let open = self.slab.iter().filter(|message| message.is_open);
        let whole = open.map(|message| self.data(message, message.arrived));
        // Of each pair's oldest run, what has come.
        let begun = (0..self.pairs.len() as u32).filter_map(|pair| {
            let (at, cells) = self.begun_run(pair)?;
            let message = &self.slab[at as usize];
            let data = |cells| self.data(message, cells);
            Some(data(message.arrived + cells) - data(message.arrived))
        });
        self.given_up + whole.sum::<Bytes>() + begun.sum::<Bytes>()
    }

    /// The same of one message of a pair.
    fn in_order_of(&self, pair: u32, message: u32) -> Bytes {
        let begun = self.begun_run(pair).filter(|&(at, _)| at == message);
        let message = &self.slab[message as usize];
        self.data(message, message.arrived + begun.map_or(0, |(_, cells)| cells))
    }

    /// Application bytes in the first cells of a message, up to the first that is lost.
    fn data(&self, message: &Message, cells: u64) -> Bytes {
        let cells = cells.min(message.lost_from.unwrap_or(u64::MAX));
        self.plan.data_before(message.flow.size, cells)
    }

    /// Forgets a message that is delivered or given up.
    fn close(&mut self, pair: u32, message: u32) {
        self.slab[message as usize].is_open = false;
        self.free.push(message);
        self.pairs[pair as usize].open -= 1;
        self.open -= 1;
    }

    /// Flows not yet delivered, at most `limit`, by id.
    pub(crate) fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let open = (0..).zip(&self.slab).filter(|(_, message)| message.is_open);
        let mut flows: Vec<_> = open.map(|(place, message)| (message.flow, place)).collect();
        flows.sort_by_key(|(flow, _)| flow.id);
        flows.truncate(limit);
        let unfinished = |(flow, place): (Flow, u32)| {
            let key = self.key(flow.src.get(), flow.dst.get(), self.class_of(&flow));
            let pair = self.pair_of[key];
            Unfinished { flow, delivered: self.in_order_of(pair, place) }
        };
        flows.into_iter().map(unfinished).collect()
    }

    /// How a flow is cut into cells.
    pub(crate) fn plan(&self) -> &CellPlan {
        &self.plan
    }
}

impl CellSource for Messages {
    #[inline]
    fn next_cell(&mut self, tag: u32, slot: u64) -> Cell {
        if let Some(cell) = self.recovered_cell(tag) {
            return cell;
        }
        let sending = self.pairs[tag as usize].sending;
        let starts = self.slab[sending as usize].packet_left == 0;
        if starts {
            self.take_turns(tag);
        }
        let pair = &mut self.pairs[tag as usize];
        let sequence = pair.sequence;
        pair.sequence = sequence.wrapping_add(1);
        let message = &mut self.slab[pair.sending as usize];
        if starts {
            message.packet_left = self.plan.cells_per_packet().min(message.cells - message.taken);
        }
        debug_assert_eq!(starts, self.plan.cell(message.flow.size, message.taken).place.is_start());
        message.packet_left -= 1;
        let ends = message.packet_left == 0;
        message.taken += 1;
        message.released += u128::from(slot - message.origin);
        let flow = message.flow;
        if message.taken == message.cells {
            self.next_turn(tag);
        }
        let class = self.class_of(&flow);
        Cell::data(flow.src.get(), flow.dst.get(), class, sequence).with_boundary(starts, ends)
    }

    #[inline]
    fn cell_left(&mut self, tag: u32, cell: Cell, slot: u64) {
        if cell.is_datagram() {
            return;
        }
        let Some(index) = self.message_of(tag, cell.sequence()) else { return };
        let message = &mut self.slab[index as usize];
        message.sent += u128::from(slot - message.origin);
        message.sendings += 1;
    }
}

impl Message {
    fn new(flow: &Flow, cells: u64, origin: u64) -> Self {
        Self {
            flow: *flow,
            cells,
            taken: 0,
            packet_left: 0,
            arrived: 0,
            next: NONE,
            is_open: true,
            is_doomed: false,
            lost_from: None,
            origin,
            released: 0,
            sent: 0,
            last_hop: 0,
            direct: 0,
            sendings: 0,
        }
    }

    /// Application bytes.
    pub(crate) fn size(&self) -> Bytes {
        self.flow.size
    }
}
