//! The network stack of Shoal nodes (§3.3, §4.2): queues, ready queues, feedback, release.
//!
//! A *bank* holds the state of many NICs in a few flat arrays, laid out in the order in which the
//! schedule visits it: by position of the epoch, then by node. A shard of a rack holds a bank of a
//! range of its nodes. Every method acts for one node on what that node knows; nodes meet only through
//! [`Frame`]s. No clock, no random draws, no input or output here.
//!
//! Reading order: [`transmit`] (the stages of a meeting), [`release`] (Eq. 2, the age rule),
//! [`receive`], [`feedback`] (Eqs 1 and 6), [`queue`] (the FIFOs); [`loss`] and [`reach`] where cells can be lost.
//!
//! [`Frame`]: crate::cell::Frame

mod bounds;
mod epochs;
mod feedback;
mod flows;
mod loss;
mod meeting;
mod places;
mod queue;
mod reach;
mod receive;
mod release;
mod reschedule;
mod subflows;
#[cfg(test)]
mod tests;
mod transmit;
mod warm;

use std::ops::Range;

use kernel::Bitmap;

pub(crate) use feedback::FeedbackTable;
use flows::Flows;
use loss::Loss;
pub(crate) use meeting::Meetings;
use queue::Arena;
use reach::Reach;
pub(crate) use release::CellSource;
use subflows::{READY, Subflows};

use crate::config::{Admission, Config, Feedback, Plan};
#[cfg(doc)]
use crate::mode::Lean;
use crate::mode::Mode;
use crate::schedule::Schedule;

/// Bytes of a virtual link, of a flow at its source and of a copy of a cell sent, and how many flows a
/// node has room for at first: what [`Config::memory`] counts.
pub(crate) const BYTES_PER_LINK: u128 = size_of::<Link>() as u128;
pub(crate) const BYTES_PER_FLOW: u128 = size_of::<flows::Outgoing>() as u128;
pub(crate) const BYTES_PER_SENT: u128 = loss::BYTES_PER_SENT as u128;
pub(crate) const FLOWS_AT_FIRST: u128 = places::AT_FIRST as u128;

/// "No index" in the small fields below.
const NONE: u16 = u16::MAX;
/// The last cell received went to this node itself: there is no queue to report.
const DIRECT: u16 = u16::MAX - 1;

/// Where the class stands in [`Link::last_received`]: there are fewer than 2^12 positions.
const CLASS_SHIFT: u32 = 12;

/// A node's side of the virtual link to one other node and one class (§3.3.2): `Q_ij`, the size of
/// `R_ij`, and the two records of §4.2. A cache line holds four.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// First and last cell of `Q_ij` in the arena.
    head: u32,
    tail: u32,
    /// Cells in `Q_ij`.
    queued: u16,
    /// Flow ids in `R_ij`, and in the top bit whether `Q_ij` holds a local cell.
    ready: u16,
    /// Queue that the last cell from `j` joined here: the position in which it is served, and from
    /// bit [`CLASS_SHIFT`] the class; or [`DIRECT`] or [`NONE`].
    last_received: u16,
    /// Local flow to which the last cell to `j` belonged, or [`NONE`].
    last_sent: u16,
}

impl Link {
    const LOCAL: u16 = 1 << 15;
    const EMPTY: Link = Link {
        head: u32::MAX,
        tail: u32::MAX,
        queued: 0,
        ready: 0,
        last_received: NONE,
        last_sent: NONE,
    };

    /// Ids in the ready queue.
    #[inline]
    fn ready_count(&self) -> u32 {
        u32::from(self.ready & !Self::LOCAL)
    }

    /// Whether a local cell waits in the queue (only kept with the ready queue on).
    #[inline]
    fn holds_local(&self) -> bool {
        self.ready & Self::LOCAL != 0
    }

    /// Whether flow ids wait and the next can be taken.
    #[inline]
    fn waits_for_room(&self) -> bool {
        self.ready != 0 && !self.holds_local()
    }

    #[inline]
    fn queued_count(&self) -> u32 {
        u32::from(self.queued)
    }
}

/// Which mechanisms are on; copied out of the configuration for the hot loop.
#[derive(Clone, Copy, Debug)]
struct Mechanisms {
    feedback: Feedback,
    ready_queue: bool,
    admission: Admission,
    feedback_counts_ready: bool,
    queue_limit: u16,
}

impl Mechanisms {
    fn of(config: &Config) -> Self {
        Self {
            feedback: config.feedback,
            ready_queue: config.ready_queue,
            admission: config.admission,
            feedback_counts_ready: config.feedback_counts_ready,
            queue_limit: match config.queue_limit {
                0 => u16::MAX,
                limit => u16::try_from(limit).unwrap_or(u16::MAX),
            },
        }
    }
}

/// The instant at which a bank acts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// Slots since the start of the run.
    pub(crate) slot: u64,
    /// Whole epochs, counted from one that moves (see [`Bank::forget_epochs`]).
    pub(crate) epoch: u32,
    /// Whole epochs since the rack last had no flow to carry: whose turn it is.
    pub(crate) turn: u32,
    /// Slot within the epoch.
    pub(crate) phase: u32,
    /// First position of the slot.
    pub(crate) position: u32,
}

/// The NICs of a rack.
#[derive(Clone, Debug)]
pub(crate) struct Bank {
    pub(crate) schedule: Schedule,
    mechanisms: Mechanisms,
    /// Nodes of the rack, the first of those here, and how many are.
    nodes: u32,
    first: u32,
    own: u32,
    classes: u32,
    /// Slots after which the age rule ends: log2 N epochs, rounded up (§3.3.3); 0 without the rule.
    age_slots: u64,
    delay_slots: u32,
    /// What [`Now::epoch`] is in the first epoch of the schedule, modulo 2^64.
    epoch_base: u64,
    /// [`Now::epoch`] when turns began, modulo 2^32.
    turns_began: u32,
    /// Bytes of payload in a cell.
    payload: usize,
    /// `[(position * classes + class) * own + node]`, nodes counted from the first. So are they in all that
    /// there is for each pair; what is small is indexed by the rack's numbers.
    links: Vec<Link>,
    arena: Arena,
    /// Cells in all queues of a node, and those of them that are not its own.
    queued: Vec<u32>,
    relayed: Vec<u32>,
    /// Next ticket of a node's ready queues, which are served oldest first.
    tickets: Vec<u32>,
    flows: Flows,
    subflows: Subflows,
    /// Slot of a flow: `[(node * nodes + destination) * classes + class]`.
    flow_of: Vec<u16>,
    /// Older entries of `last_sent` where feedback takes longer than an epoch: a ring of `depth`
    /// for each position and node. Empty if `depth` is 1.
    sent_ring: Vec<u16>,
    depth: u32,
    feedback: FeedbackTable,
    /// Present where cells can be lost.
    loss: Option<Box<Loss>>,
    /// Nodes with a backlog.
    backlog: Bitmap,
    /// Nodes with something to send in a position: `[position * 64 * words + node]`.
    busy: Bitmap,
    /// Words of a bitmap of the nodes up to the last one here, and the first word with one.
    words: usize,
    first_word: usize,
    /// Bits set in `busy`.
    busy_count: u64,
    /// Flows whose last cell is in a queue: their slots are freed once the feedback is in.
    draining: Vec<(u16, u16)>,
    /// Flows from here to each node of the rack: those of all make its incast degree.
    incast: Vec<u16>,
    /// Changes of these since they were last asked for: slot, node, up or down.
    incast_changes: Vec<(u64, u16, i8)>,
    /// Largest outcast degree seen.
    outcast_peak: u16,
    /// How often a relayed cell joined a queue of each length; the last stands for all longer.
    lengths: Vec<u64>,
    /// Longest queue and fullest node seen in all, and since the last sample.
    queue_peak: u32,
    node_peak: u32,
    queue_peak_recent: u32,
    node_peak_recent: u32,
    /// Most cells of other nodes seen in one node.
    relayed_peak: u32,
}

impl Bank {
    /// Idle NICs for some nodes of a rack.
    pub(crate) fn new(plan: &Plan, members: Range<u32>) -> Self {
        let schedule = plan.schedule.clone();
        let (nodes, classes) = (plan.config.nodes, plan.config.classes);
        let positions = schedule.positions() as usize;
        let depth = feedback::depth(&schedule, plan.delay_slots);
        let (first, own) = (members.start, members.end - members.start);
        let words = members.end.div_ceil(u64::BITS) as usize;
        let all = members.end as usize;
        let flows = Flows::new(members.clone());
        let pairs = positions * own as usize;
        let ring = if depth > 1 { pairs * depth as usize } else { 0 };
        let payload = plan.cells.payload().get() as usize;
        Self {
            mechanisms: Mechanisms::of(&plan.config),
            nodes,
            first,
            own,
            classes,
            age_slots: match plan.config.age_rule {
                true => {
                    u64::from(u32::BITS - (nodes - 1).leading_zeros()) * u64::from(schedule.slots())
                }
                false => 0,
            },
            delay_slots: plan.delay_slots,
            epoch_base: epochs::KEPT,
            turns_began: 0,
            payload,
            links: vec![Link::EMPTY; pairs * classes as usize],
            arena: Arena::default(),
            subflows: Subflows::new(schedule.positions(), &flows.places),
            flows,
            queued: vec![0; all],
            relayed: vec![0; all],
            tickets: vec![0; all],
            flow_of: vec![NONE; own as usize * nodes as usize * classes as usize],
            sent_ring: vec![NONE; ring],
            depth,
            feedback: FeedbackTable::new(&schedule, plan.delay_slots),
            loss: plan.is_lossy.then(|| {
                let reach = Reach::new(members, nodes, payload);
                Box::new(Loss::new(schedule.positions(), own, depth, reach))
            }),
            backlog: Bitmap::new(words * u64::BITS as usize),
            busy: Bitmap::new(positions * words * u64::BITS as usize),
            first_word: (first / u64::BITS) as usize,
            words,
            busy_count: 0,
            draining: Vec::new(),
            incast: vec![0; nodes as usize],
            incast_changes: Vec::new(),
            outcast_peak: 0,
            lengths: vec![0; 2 * nodes as usize + 1],
            queue_peak: 0,
            node_peak: 0,
            queue_peak_recent: 0,
            node_peak_recent: 0,
            relayed_peak: 0,
            schedule,
        }
    }

    /// What a slot is to the schedule.
    pub(crate) fn now(&self, slot: u64) -> Now {
        let slots = u64::from(self.schedule.slots());
        let since = slot - self.schedule.origin().get();
        let phase = (since % slots) as u32;
        let epoch = self.epoch_after(since / slots);
        Now {
            slot,
            epoch,
            turn: epoch.wrapping_sub(self.turns_began),
            phase,
            position: phase * self.schedule.channels(),
        }
    }

    /// [`Now::epoch`] so many epochs after the first of the schedule.
    #[inline]
    fn epoch_after(&self, epochs: u64) -> u32 {
        let epoch = self.epoch_base.wrapping_add(epochs);
        debug_assert!(epoch < u64::from(READY), "epoch {epoch} of at most {READY}");
        epoch as u32
    }

    /// The nodes whose NICs these are.
    fn members(&self) -> Range<u32> {
        self.first..self.first + self.own
    }

    /// Index of a node among those here.
    #[inline]
    fn own(&self, node: u32) -> usize {
        (node - self.first) as usize
    }

    /// Index of the link of `node` in `position` and `class`.
    #[inline]
    fn link<M: Mode>(&self, position: u32, class: u32, node: u32) -> usize {
        let row = match M::GENERAL {
            true => position as usize * self.classes as usize + class as usize,
            false => position as usize,
        };
        row * self.own as usize + if M::WHOLE { node as usize } else { self.own(node) }
    }

    /// How many classes there are.
    #[inline]
    fn classes<M: Mode>(&self) -> u32 {
        if M::GENERAL { self.classes } else { 1 }
    }

    /// The position in which `from` sends to `to`.
    #[inline]
    fn position<M: Mode>(&self, from: u32, to: u32) -> u32 {
        match M::LOSSY {
            true => self.schedule.position(from, to),
            false => self.schedule.position_in_whole(from, to),
        }
    }

    /// Whether the [`Lean`] mode knows all that these NICs do.
    pub(crate) fn is_lean(&self) -> bool {
        self.classes == 1 && self.depth == 1 && self.loss.is_none()
    }

    /// Whether no flow waits for its cells to leave remote queues.
    pub(crate) fn is_settled(&self) -> bool {
        self.draining.is_empty()
    }

    /// Whether nothing is queued, waiting or owed.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy_count == 0 && self.backlog.is_empty()
    }

    #[inline]
    fn busy_bit(&self, position: u32, node: u32) -> usize {
        position as usize * self.words * u64::BITS as usize + node as usize
    }

    #[inline]
    fn set_busy(&mut self, position: u32, node: u32) {
        self.mark_busy(position, node, true);
    }

    #[inline]
    fn mark_busy(&mut self, position: u32, node: u32, is_busy: bool) {
        let was_busy = self.busy.replace(self.busy_bit(position, node), is_busy);
        self.busy_count = self.busy_count + u64::from(is_busy) - u64::from(was_busy);
    }

    #[inline]
    fn clear_busy(&mut self, position: u32, node: u32) {
        self.mark_busy(position, node, false);
    }

    /// Longest queue and fullest node since the last call.
    pub(crate) fn take_peaks(&mut self) -> (u32, u32) {
        self.queue_peak = self.queue_peak.max(self.queue_peak_recent);
        self.node_peak = self.node_peak.max(self.node_peak_recent);
        (std::mem::take(&mut self.queue_peak_recent), std::mem::take(&mut self.node_peak_recent))
    }

    /// Longest queue seen, in cells.
    pub(crate) fn longest_queue(&self) -> u32 {
        self.queue_peak.max(self.queue_peak_recent)
    }

    /// Most cells seen in one node.
    pub(crate) fn fullest_node(&self) -> u32 {
        self.node_peak.max(self.node_peak_recent)
    }

    /// Most cells seen in one node that were on their way through it.
    pub(crate) fn fullest_relay(&self) -> u32 {
        self.relayed_peak
    }

    /// Cells queued in all nodes.
    pub(crate) fn queued_total(&self) -> u64 {
        self.queued.iter().map(|&cells| u64::from(cells)).sum()
    }
}
