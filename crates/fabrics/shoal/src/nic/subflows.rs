//! The feedback matrix (§4.2): a number for each subflow `i → j → k`, laid out in the order in which
//! the schedule visits it.
//!
//! One row a position; in it, node after node, a place for each of the node's flows. Nodes with more
//! flows have more places; a node that runs out doubles its own, which moves all rows once.
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

/// A cell is on its way.
pub(super) const SENT: u32 = u32::MAX;
/// Least value of a subflow whose id is in the ready queue.
pub(super) const READY: u32 = 1 << 31;
/// Tickets of the ready queue count modulo one more than this; the last would read as [`SENT`].
pub(super) const TICKET_MASK: u32 = READY - 1;
/// Places of a node at first (our choice: a node at moderate load has a few flows at a time).
const PLACES: u32 = 4;

/// The state of all subflows of a bank.
#[derive(Clone, Debug)]
pub(super) struct Subflows {
    values: Vec<u32>,
    /// For subflows in the ready queue, the epoch that Eq. 2 waits for; places as in `values`.
    due: Vec<u32>,
    positions: usize,
    /// Length of a row.
    stride: usize,
    /// First place of each node in a row, and one more for the end.
    offsets: Vec<u32>,
}

impl Subflows {
    pub(super) fn new(positions: u32, nodes: u32) -> Self {
        let stride = (nodes * PLACES) as usize;
        Self {
            values: vec![0; positions as usize * stride],
            due: vec![0; positions as usize * stride],
            positions: positions as usize,
            stride,
            offsets: (0..=nodes).map(|node| node * PLACES).collect(),
        }
    }

    /// Idle subflows of the same nodes and flows, for a schedule of `positions`.
    pub(super) fn like(other: &Self, positions: u32) -> Self {
        let (stride, offsets) = (other.stride, other.offsets.clone());
        let positions = positions as usize;
        let values = vec![0; positions * stride];
        Self { due: values.clone(), values, positions, stride, offsets }
    }

    /// The places of a node in a position.
    #[inline]
    pub(super) fn row(&self, position: u32, node: u32) -> &[u32] {
        let (from, to) = (self.offsets[node as usize], self.offsets[node as usize + 1]);
        let row = position as usize * self.stride;
        &self.values[row + from as usize..row + to as usize]
    }

    /// One subflow of a node: its flow in `slot`, by way of the peer of `position`.
    #[inline]
    pub(super) fn get_mut(&mut self, position: u32, node: u32, slot: usize) -> &mut u32 {
        let row = position as usize * self.stride + self.offsets[node as usize] as usize;
        &mut self.values[row + slot]
    }

    /// Puts a subflow's flow id in the ready queue, behind all with lower tickets.
    #[inline]
    pub(super) fn make_ready(&mut self, position: u32, node: u32, slot: usize, ticket: u32) {
        let at = position as usize * self.stride + self.offsets[node as usize] as usize + slot;
        self.due[at] = self.values[at];
        self.values[at] = READY | ticket;
    }

    /// The epochs that the subflows of [`Subflows::row`] wait for, where they are in the ready
    /// queue.
    #[inline]
    pub(super) fn due(&self, position: u32, node: u32) -> &[u32] {
        let (from, to) = (self.offsets[node as usize], self.offsets[node as usize + 1]);
        let row = position as usize * self.stride;
        &self.due[row + from as usize..row + to as usize]
    }

    /// Doubles the places of `node` until it has one for `slot`, and those of every node that `uses`
    /// all it has.
    pub(super) fn make_room(&mut self, node: u32, slot: usize, uses: impl Fn(usize) -> usize) {
        let places = |offsets: &[u32], n: usize| (offsets[n + 1] - offsets[n]) as usize;
        if slot < places(&self.offsets, node as usize) {
            return;
        }
        let mut offsets = vec![0];
        for other in 0..self.offsets.len() - 1 {
            let old = places(&self.offsets, other);
            let wanted = if other == node as usize { slot + 1 } else { uses(other) + 1 };
            let new = if wanted > old { wanted.next_power_of_two() } else { old };
            offsets.push(offsets[other] + new as u32);
        }
        let stride = *offsets.last().expect("it starts with a zero") as usize;
        for array in [&mut self.values, &mut self.due] {
            let mut wider = vec![0; self.positions * stride];
            for position in 0..self.positions {
                let from = &array[position * self.stride..][..self.stride];
                let to = &mut wider[position * stride..][..stride];
                for (old, new) in self.offsets.windows(2).zip(&offsets) {
                    let row = &from[old[0] as usize..old[1] as usize];
                    to[*new as usize..][..row.len()].copy_from_slice(row);
                }
            }
            *array = wider;
        }
        (self.stride, self.offsets) = (stride, offsets);
    }
}
