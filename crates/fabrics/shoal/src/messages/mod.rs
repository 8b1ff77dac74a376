//! What applications gave to the rack and have not yet received whole.
//!
//! Memory follows the flows in flight: an ended flow leaves nothing behind but its pair's next
//! sequence number.
//!
//! In Shoal a flow is all that one node sends to another (§3.3.2). The flows of a workload are
//! *messages* in it, sent one after the other.

mod recovery;
mod stages;

use kernel::Bytes;
use rack::Flow;

use crate::cell::Cell;
use crate::nic::CellSource;
use crate::packets::CellPlan;
use crate::reorder::ReorderWindow;
use crate::transport::Transport;

pub(crate) use recovery::Work;
pub(crate) use stages::{STAGES, SlotTimes};

use recovery::Extra;

const NONE: u32 = u32::MAX;

/// One flow of the workload, from its offer to its end.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) flow: Flow,
    /// Cells of the pair before the one behind its last: see [`Pair::arrived`].
    end: u64,
    cells: u64,
    /// Cells taken by the NIC so far, and how many more the packet in hand has.
    taken: u64,
    packet_left: u64,
    /// The pair's message after this one.
    next: u32,
    /// First slot of its life; the sums below count from here.
    origin: u64,
    /// Sums of slots over its cells: taken into a queue, sent by the source, sent for the last hop.
    released: u64,
    sent: u64,
    last_hop: u64,
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
    /// Oldest message not yet delivered, the one being sent, the last.
    head: u32,
    sending: u32,
    tail: u32,
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
    /// The pair's oldest message has arrived whole; ask [`Messages::complete`] until it gives none.
    pub(crate) completes: bool,
}

/// The state of senders and receivers above the NICs.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    nodes: u32,
    classes: u32,
    plan: CellPlan,
    slab: Vec<Message>,
    free: Vec<u32>,
    pairs: Vec<Pair>,
    free_pairs: Vec<u32>,
    /// Pair of `[(source * nodes + destination) * classes + class]`.
    pair_of: Vec<u32>,
    /// Sequence number with which an idle pair goes on.
    sequence_of: Vec<u32>,
    /// Messages not yet delivered.
    pub(crate) open: u64,
    /// Most out-of-order cells held for one pair.
    pub(crate) held_peak: u32,
    /// Cells that the transport sent again.
    pub(crate) repeats: u64,
    /// The end-to-end transport, if there is one.
    transport: Option<Transport>,
}

impl Messages {
    pub(crate) fn new(nodes: u32, classes: u32, plan: CellPlan) -> Self {
        let keys = nodes as usize * nodes as usize * classes as usize;
        Self {
            nodes,
            classes,
            plan,
            slab: Vec::new(),
            free: Vec::new(),
            pairs: Vec::new(),
            free_pairs: Vec::new(),
            pair_of: vec![NONE; keys],
            sequence_of: vec![0; keys],
            open: 0,
            held_peak: 0,
            repeats: 0,
            transport: None,
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
        let before = self.pairs[pair as usize].tail;
        let start = match before {
            NONE => self.pairs[pair as usize].position(self.pairs[pair as usize].sequence),
            tail => self.slab[tail as usize].end,
        };
        let mut message = Message::new(flow, cells, origin);
        message.end = start + cells;
        self.slab[index as usize] = message;
        if before != NONE {
            self.slab[before as usize].next = index;
        }
        let state = &mut self.pairs[pair as usize];
        state.tail = index;
        if state.head == NONE {
            state.head = index;
        }
        if state.sending == NONE {
            state.sending = index;
        }
        self.open += 1;
        self.hand_over(pair, cells)
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
            head: NONE,
            sending: NONE,
            tail: NONE,
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
    }

    fn forget_if_done(&mut self, index: u32) {
        let pair = &self.pairs[index as usize];
        // An acknowledgment may come for a pair that is forgotten already.
        let is_known = self.pair_of[pair.key as usize] == index;
        if is_known && pair.retired && pair.head == NONE && self.is_settled(index) {
            self.sequence_of[pair.key as usize] = pair.sequence;
            self.pair_of[pair.key as usize] = NONE;
            self.free_pairs.push(index);
        }
    }

    /// The message to which a sequence number belongs, sought from the pair's oldest; none if it is
    /// delivered already.
    #[inline]
    fn message_of(&self, pair: u32, sequence: u32) -> Option<u32> {
        if pair == NONE {
            return None;
        }
        let pair = &self.pairs[pair as usize];
        let position = pair.position(sequence);
        let mut index = pair.head;
        while index != NONE && position >= self.slab[index as usize].end {
            index = self.slab[index as usize].next;
        }
        (index != NONE).then_some(index)
    }

    /// A cell reaches its destination; it left for the last hop in `slot`, straight from its source
    /// if `direct`.
    #[inline]
    pub(crate) fn cell_arrived(&mut self, cell: Cell, slot: u64, direct: bool) -> Delivery {
        let index = self.pair_of[self.key(cell.source(), cell.destination(), cell.class())];
        if index == NONE {
            return Delivery { duplicate: true, completes: false };
        }
        let pair = &mut self.pairs[index as usize];
        let inserted = pair.window.insert(cell.sequence());
        if inserted.duplicate {
            return Delivery { duplicate: true, completes: false };
        }
        pair.arrived += u64::from(inserted.advanced);
        self.held_peak = self.held_peak.max(pair.window.held());
        let (head, arrived) = (pair.head, pair.arrived);
        let Some(at) = self.message_of(index, cell.sequence()) else {
            return Delivery { duplicate: false, completes: false };
        };
        let message = &mut self.slab[at as usize];
        message.last_hop += slot - message.origin;
        message.direct += u64::from(direct);
        let end = self.slab[head as usize].end;
        let completes = inserted.advanced > 0 && arrived >= end;
        Delivery { duplicate: false, completes }
    }

    /// Takes the pair's oldest message if it has arrived whole.
    pub(crate) fn complete(&mut self, cell: Cell) -> Option<Message> {
        let index = self.pair_of[self.key(cell.source(), cell.destination(), cell.class())];
        if index == NONE {
            return None;
        }
        let pair = &mut self.pairs[index as usize];
        let head = pair.head;
        if head == NONE {
            return None;
        }
        if pair.arrived < self.slab[head as usize].end {
            return None;
        }
        pair.head = self.slab[head as usize].next;
        if pair.head == NONE {
            pair.tail = NONE;
        }
        self.free.push(head);
        self.open -= 1;
        self.forget_if_done(index);
        Some(self.slab[head as usize].clone())
    }

    /// Flows not yet delivered, at most `limit`.
    pub(crate) fn unfinished(&self, limit: usize) -> Vec<Flow> {
        let heads = self.pair_of.iter().filter(|&&pair| pair != NONE);
        let mut flows = Vec::new();
        for &pair in heads {
            let mut index = self.pairs[pair as usize].head;
            while index != NONE && flows.len() < limit {
                flows.push(self.slab[index as usize].flow);
                index = self.slab[index as usize].next;
            }
        }
        flows
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
        let pair = &mut self.pairs[tag as usize];
        let sequence = pair.sequence;
        pair.sequence = sequence.wrapping_add(1);
        let message = &mut self.slab[pair.sending as usize];
        let starts = message.packet_left == 0;
        if starts {
            message.packet_left = self.plan.cells_per_packet().min(message.cells - message.taken);
        }
        debug_assert_eq!(starts, self.plan.cell(message.flow.size, message.taken).place.is_start());
        message.packet_left -= 1;
        let ends = message.packet_left == 0;
        message.taken += 1;
        message.released += slot - message.origin;
        let flow = message.flow;
        if message.taken == message.cells {
            pair.sending = message.next;
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
        message.sent += slot - message.origin;
        message.sendings += 1;
    }
}

impl Message {
    fn new(flow: &Flow, cells: u64, origin: u64) -> Self {
        Self {
            flow: *flow,
            end: 0,
            cells,
            taken: 0,
            packet_left: 0,
            next: NONE,
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
