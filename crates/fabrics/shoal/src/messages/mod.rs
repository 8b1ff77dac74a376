//! What applications gave to a set of nodes and have not yet received whole.
//!
//! Memory follows the flows in flight: an ended flow leaves nothing behind but its pair's next
//! sequence number, at either end.
//!
//! In Shoal a flow is all that one node sends to another (§3.3.2). The flows of a workload are
//! *messages* in it, which take turns packet by packet, or go one after the other. A message has a half
//! at its source ([`sending`]) and one at its destination ([`receiving`]), which know of each other what
//! cells tell. Where cells can be lost, [`recovery`] sends them again, and without it [`missing`] goes on
//! without them.

mod acks;
mod lives;
mod missing;
mod receiving;
mod recovery;
mod report;
mod runs;
mod sending;

use rack::Flow;

use crate::cell::Cargo;
use crate::config::Config;
use crate::nic::CellSource;
use crate::packets::CellPlan;
use crate::transport::Transport;

pub(crate) use report::{Report, What};

use acks::Acks;
use lives::Lives;
use missing::Waiting;
use receiving::Receivers;
use sending::Senders;

const NONE: u32 = u32::MAX;
/// Of what a cell carries: it is its message's last one. The rest is the message's handle.
const LAST: u32 = 1 << 31;
/// A pair that starts anew goes on with a multiple of this, at least half of it ahead: by that its
/// destination knows, and cells of its earlier life are recognised as old. Half of it is more than can be
/// under way: a transport's window, or cells that wait for one before them in all the epochs for which a
/// destination waits.
const LIFE: u32 = 1 << 24;

/// Cells that a NIC may take for a pair from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) class: u32,
    pub(crate) cells: u64,
    pub(crate) tag: u32,
}

/// The state of senders and receivers above the NICs of a set of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    pub(crate) senders: Senders,
    pub(crate) receivers: Receivers,
    /// What there is to tell the driver.
    pub(crate) reports: Vec<Report>,
    /// Cells that the transport sent again.
    pub(crate) repeats: u64,
    /// The end-to-end transport, if there is one.
    transport: Option<Transport>,
    /// What the datagrams here say.
    pub(crate) acks: Acks,
    /// Without a transport: pairs that wait for a cell before others.
    waiting: Vec<Waiting>,
    /// How often nodes have come back, as those here know.
    pub(crate) lives: Lives,
}

impl Messages {
    /// Those of the nodes `own`.
    pub(crate) fn new(config: &Config, plan: CellPlan, own: std::ops::Range<u32>) -> Self {
        Self {
            senders: Senders::new(config, plan, own.clone()),
            lives: Lives::new(own.clone()),
            receivers: Receivers::new(config.nodes, config.classes, own),
            reports: Vec::new(),
            repeats: 0,
            transport: None,
            acks: Acks::default(),
            waiting: Vec::new(),
        }
    }

    /// The same where cells can be lost.
    pub(crate) fn with_losses(mut self) -> Self {
        self.receivers.is_lossy = true;
        self
    }

    /// The handle of the message that a cell is of which is no datagram.
    pub(crate) fn handle_of(cargo: Cargo) -> u32 {
        cargo.payload & !LAST
    }

    fn may_lose(&self) -> bool {
        self.receivers.is_lossy
    }

    /// Accepts a flow, whose cells carry `handle`. Gives what its source's NIC may send
    /// of it now.
    pub(crate) fn offer(&mut self, flow: &Flow, handle: u32) -> Work {
        let class = self.senders.class_of(flow);
        let pair = self.pair(flow.src.get(), flow.dst.get(), class);
        let cells = self.senders.add(pair, flow, handle);
        self.hand_over(pair, cells)
    }

    /// The pair of two nodes in a class, made if it is not there.
    fn pair(&mut self, source: u32, destination: u32, class: u32) -> u32 {
        let key = self.senders.key(source, destination, class);
        if let Some(pair) = self.senders.known_pair(source, destination, class) {
            return pair;
        }
        let pair = self.senders.add_pair(key);
        self.start_transport(pair);
        pair
    }

    /// The source's NIC no longer remembers the flow of a pair.
    pub(crate) fn retire(&mut self, tag: u32) {
        self.senders.pairs[tag as usize].retired = true;
        if self.may_lose() {
            self.tell_drained(tag);
        }
        self.forget_if_done(tag);
    }

    fn forget_if_done(&mut self, index: u32) {
        // An acknowledgment may come for a pair that is forgotten already.
        let is_known = self.senders.is_known(index);
        let pair = &self.senders.pairs[index as usize];
        if is_known && pair.retired && pair.open == 0 && self.is_settled(index) {
            self.senders.forget(index);
        }
    }

    /// A cell reaches its destination at `end`; it left for the last hop in `slot`, straight from its
    /// source if `direct`. False: it had come before.
    #[inline]
    pub(crate) fn cell_arrived(&mut self, cargo: Cargo, slot: u64, direct: bool, end: u64) -> bool {
        let is_new = self.receivers.arrived(cargo, slot, direct);
        if self.may_lose() {
            self.after_arrival(cargo.cell);
        }
        self.tell_whole(end);
        is_new
    }

    /// Reports the messages whose last cells have come, at `end`.
    #[inline]
    fn tell_whole(&mut self, end: u64) {
        if self.receivers.whole.is_empty() {
            return;
        }
        for whole in std::mem::take(&mut self.receivers.whole) {
            self.reports.push(Report::whole(end, &whole));
        }
    }
}

impl CellSource for Messages {
    #[inline]
    fn next_cell(&mut self, tag: u32, slot: u64) -> Cargo {
        match self.recovered_cell(tag) {
            Some(cargo) => cargo,
            None => self.senders.take(tag, slot),
        }
    }

    #[inline]
    fn cell_left(&mut self, tag: u32, cargo: Cargo, slot: u64) {
        if cargo.cell.is_datagram() {
            return;
        }
        if let Some(report) = self.senders.left(tag, cargo.payload, slot) {
            self.reports.push(report);
            if self.may_lose() {
                self.note_sent_whole(tag, report.handle);
            }
        }
    }

    fn copy(&mut self, cargo: Cargo) -> Cargo {
        if !cargo.cell.is_datagram() || cargo.cell.is_empty() {
            return cargo;
        }
        let payload = self.acks.copy(cargo.payload);
        Cargo { payload, ..cargo }
    }

    fn discard(&mut self, cargo: Cargo) {
        if cargo.cell.is_datagram() && !cargo.cell.is_empty() {
            self.acks.take(cargo.payload);
        }
    }
}
