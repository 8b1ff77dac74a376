//! What applications gave to a set of nodes and have not yet received whole.
//!
//! Memory follows the flows in flight: an ended flow leaves nothing behind but its pair's next
//! sequence number, at either end.
//!
//! In Shoal a flow is all that one node sends to another (§3.3.2). The flows of a workload are
//! *messages* in it, which take turns packet by packet, or go one after the other. A message has a half
//! at its source ([`sending`]) and one at its destination ([`receiving`]), which know of each other what
//! cells tell. Where cells can be lost, [`recovery`] and [`missing`] look at both.

mod missing;
mod receiving;
mod recovery;
mod report;
mod runs;
mod sending;

use rack::Flow;

use crate::cell::{Cargo, Cell};
use crate::config::Config;
use crate::nic::CellSource;
use crate::packets::CellPlan;
use crate::transport::Transport;

pub(crate) use report::{Report, What};

use missing::Incomplete;
use receiving::Receivers;
use runs::Runs;
use sending::Senders;

const NONE: u32 = u32::MAX;
/// Of what a cell carries: it is its message's last one. The rest is the message's handle.
const LAST: u32 = 1 << 31;

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
    /// Without one: pairs whose sources have nothing left to send, and of which cells are missing.
    incomplete: Vec<Incomplete>,
}

impl Messages {
    /// Those of the nodes `own`.
    pub(crate) fn new(config: &Config, plan: CellPlan, own: std::ops::Range<u32>) -> Self {
        Self {
            senders: Senders::new(config, plan, own.clone()),
            receivers: Receivers::new(config.nodes, config.classes, own),
            reports: Vec::new(),
            repeats: 0,
            transport: None,
            incomplete: Vec::new(),
        }
    }

    /// The same where cells can be lost.
    pub(crate) fn with_losses(mut self) -> Self {
        self.senders.runs = Some(Runs::default());
        self.receivers.keeps_pairs = true;
        self
    }

    fn may_lose(&self) -> bool {
        self.receivers.keeps_pairs
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
        if self.may_lose() {
            self.receivers.pair(source, destination, class);
        }
        self.start_transport(pair);
        pair
    }

    /// The source's NIC no longer remembers the flow of a pair.
    pub(crate) fn retire(&mut self, tag: u32) {
        self.senders.pairs[tag as usize].retired = true;
        self.forget_if_done(tag);
        self.miss(tag);
    }

    fn forget_if_done(&mut self, index: u32) {
        // An acknowledgment may come for a pair that is forgotten already.
        let is_known = self.senders.is_known(index);
        let pair = &self.senders.pairs[index as usize];
        if is_known && pair.retired && pair.open == 0 && self.is_settled(index) {
            if self.may_lose() {
                let (source, destination, class) = self.senders.ends(index);
                self.receivers.forget_ends(source, destination, class);
            }
            self.senders.forget(index);
        }
    }

    /// A cell reaches its destination at `end`; it left for the last hop in `slot`, straight from its
    /// source if `direct`. False: it had come before.
    #[inline]
    pub(crate) fn cell_arrived(&mut self, cargo: Cargo, slot: u64, direct: bool, end: u64) -> bool {
        if self.may_lose() && !self.expects(cargo.cell, end) {
            return false;
        }
        let is_new = self.receivers.arrived(cargo, slot, direct);
        self.tell_whole(cargo.cell, end);
        is_new
    }

    /// Reports the messages that have become whole with a cell of their pair, at `end`.
    #[inline]
    fn tell_whole(&mut self, cell: Cell, end: u64) {
        if self.receivers.whole.is_empty() {
            return;
        }
        for whole in std::mem::take(&mut self.receivers.whole) {
            if self.may_lose() {
                self.delivered(cell, whole.handle);
            }
            self.reports.push(Report::whole(whole.handle, end, whole.last_hop, whole.direct));
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
        }
    }
}
