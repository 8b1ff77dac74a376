//! What has happened to packets at a set of TiNs.

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that came to ingress buffers.
    pub packets: u64,
    /// Requests that came to their destinations.
    pub requests: u64,
    /// Requests that were granted.
    pub cleared: u64,
    /// Packets that left.
    pub delivered: u64,
    /// Bytes of packets that left.
    pub delivered_bytes: u64,
    /// Packets that left with a mark.
    pub marked: u64,
    /// Packets lost, by why.
    pub lost: [u64; 6],
    /// Clearances for places that were given back (M421).
    pub stale_clearances: u64,
    /// Data cells for places that were given back, or that came twice (M418).
    pub stray_cells: u64,
    /// Requests, clearances and contents that bit errors made unreadable, or that make no sense here.
    pub unreadable: u64,
    /// Most requests in a queue.
    pub queue_max: u32,
    /// Most segments of 256 B in an ingress buffer.
    pub ingress_max: u32,
    /// Most bytes in a port's egress buffer.
    pub egress_max: u32,
    /// Most bytes that a port had asked for and were not there.
    pub outstanding_max: u32,
}

impl Counts {
    /// Adds those of other TiNs.
    pub fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.requests += other.requests;
        self.cleared += other.cleared;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.marked += other.marked;
        self.lost.iter_mut().zip(other.lost).for_each(|(own, other)| *own += other);
        self.stale_clearances += other.stale_clearances;
        self.stray_cells += other.stray_cells;
        self.unreadable += other.unreadable;
        self.queue_max = self.queue_max.max(other.queue_max);
        self.ingress_max = self.ingress_max.max(other.ingress_max);
        self.egress_max = self.egress_max.max(other.egress_max);
        self.outstanding_max = self.outstanding_max.max(other.outstanding_max);
    }
}
