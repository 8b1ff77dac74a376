//! The feedback matrix (§4.2): a number for each subflow `i → j → k`, laid out in the order in which
//! the schedule visits it.
//!
//! One row a position; in it, node after node, a place for each of the node's flows.
//!
//! | value | state of the subflow |
//! |---|---|
//! | below [`READY`] | may be released once `epoch + len(Q_ij) + len(R_ij)` has reached it (Eq. 2) |
//! | from [`READY`] on | its flow id waits in `R_ij`; the rest is the ticket that orders the queue |
//! | [`SENT`] | its cell is in `Q_ij` or awaits feedback |
//!
//! Eq. 2 asks for `len(Q_ij(t)) + (t - T) ≥ f` with feedback `f` received at epoch `T`. Stored is
//! `T + f`: the epoch at which it holds with an empty local queue. Once used it gives way to
//! [`SENT`], so that no feedback releases two cells (S62).

use kernel::{prefetch, prefetch_range};

use super::places::Places;

/// A cell is on its way.
pub(super) const SENT: u32 = u32::MAX;
/// Least value of a subflow whose id is in the ready queue.
pub(super) const READY: u32 = 1 << 31;
/// Tickets of the ready queue count modulo one more than this; the last would read as [`SENT`].
pub(super) const TICKET_MASK: u32 = READY - 1;

/// The state of all subflows of a bank.
#[derive(Clone, Debug)]
pub(super) struct Subflows {
    values: Vec<u32>,
    /// For subflows in the ready queue, the epoch that Eq. 2 waits for; places as in `values`.
    due: Vec<u32>,
    /// Length of a row.
    stride: usize,
}

impl Subflows {
    /// Idle subflows for a schedule of `positions`.
    pub(super) fn new(positions: u32, places: &Places) -> Self {
        let stride = places.row();
        let values = vec![0; positions as usize * stride];
        Self { due: values.clone(), values, stride }
    }

    /// Index of the subflow of the flow in a place, by way of the peer of `position`.
    #[inline]
    pub(super) fn index(&self, position: u32, place: usize) -> usize {
        position as usize * self.stride + place
    }

    /// The subflows of a node in a position, by the slot of their flows.
    #[inline]
    pub(super) fn row(&self, position: u32, node: u32, places: &Places) -> &[u32] {
        let row = position as usize * self.stride;
        &self.values[row + places.start(node)..row + places.start(node + 1)]
    }

    /// One subflow, by its index.
    #[inline]
    pub(super) fn get(&self, index: usize) -> u32 {
        self.values[index]
    }

    /// Asks for a subflow ahead of its use.
    #[inline]
    pub(super) fn prefetch(&self, position: u32, place: usize) {
        prefetch(&self.values, self.index(position, place));
    }

    /// Asks for all subflows of a position.
    pub(super) fn prefetch_row(&self, position: u32) {
        let row = position as usize * self.stride;
        prefetch_range(&self.values, row..row + self.stride);
    }

    /// One subflow, by its index.
    #[inline]
    pub(super) fn set(&mut self, index: usize, value: u32) {
        self.values[index] = value;
    }

    /// Puts a subflow's flow id in the ready queue, behind all with lower tickets.
    #[inline]
    pub(super) fn make_ready(&mut self, index: usize, ticket: u32) {
        self.due[index] = self.values[index];
        self.values[index] = READY | ticket;
    }

    /// The epochs that the subflows of [`Subflows::row`] wait for, where they are in the ready
    /// queue.
    #[inline]
    pub(super) fn due(&self, position: u32, node: u32, places: &Places) -> &[u32] {
        let row = position as usize * self.stride;
        &self.due[row + places.start(node)..row + places.start(node + 1)]
    }

    /// Counts epochs from one that is so many later.
    pub(super) fn forget_epochs(&mut self, epochs: u32) {
        for value in self.values.iter_mut().filter(|value| **value < READY) {
            *value = value.saturating_sub(epochs);
        }
        for due in &mut self.due {
            *due = due.saturating_sub(epochs);
        }
    }

    /// Lays all rows out anew.
    pub(super) fn widen(&mut self, from: &Places, to: &Places) {
        for array in [&mut self.values, &mut self.due] {
            let mut wider = Vec::with_capacity(array.len() / self.stride * to.row());
            for row in array.chunks(self.stride) {
                wider.extend(from.spread(row, to, 0));
            }
            *array = wider;
        }
        self.stride = to.row();
    }
}
