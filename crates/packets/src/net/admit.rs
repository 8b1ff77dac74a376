//! What a switch port does with a packet that wants to wait: take it, mark it, cut it, drop it.
//!
//! The packet's header says what may be done to it; which transport sent it is never asked.

use rack::trace::Outcome;

use super::Net;
use super::limits::{ALPHA_ONE, TrimLimits};
use super::port::OutPort;
use crate::config::Overflow;
use crate::packet::{Marks, PRIORITIES};

impl Net {
    /// Puts a packet in the output queue of `port`, or does away with it.
    #[inline]
    pub(super) fn admit(&mut self, index: u32, port: u32) {
        let packet = self.arena.get(index);
        debug_assert!(packet.priority < PRIORITIES, "{packet:?}");
        let (queue, size, marks) = (packet.priority, u32::from(packet.wire), packet.marks);
        self.counts.found(self.ports[port as usize].bytes);
        if self.admits_apart && self.admit_apart(index, port) {
            return;
        }
        if let Some(trim) = self.limits.trim {
            return self.admit_or_trim(index, port, trim);
        }
        if self.limits.drops && !self.fits(port, queue, size) {
            return self.drop_at_port(index, port);
        }
        if marks.contains(Marks::ECT) && self.marks(port, queue) {
            self.arena.get_mut(index).marks.insert(Marks::CE);
            self.counts.marked += 1;
        }
        self.send_or_enqueue(port, queue, index);
    }

    /// What comes before all else, where there is anything. True if the packet is in a queue then.
    #[inline(never)]
    fn admit_apart(&mut self, index: u32, port: u32) -> bool {
        self.note_joined(index, port);
        let is_flows = self.flow_queues.is_some() && self.arena.get(index).is_data();
        if is_flows {
            self.enqueue_flow(index, port);
        }
        is_flows
    }

    /// Whether a packet that a host has for its NIC is not to wait there. Asked where [`Net::asks_at_nics`].
    #[inline(never)]
    pub(crate) fn refuses_at_nic(&mut self, index: u32, nic: u32) -> bool {
        // Where neighbours find out by themselves what works, nothing waits for a dead link.
        if self.has_neighbours && self.ports[nic as usize].faults > 0 {
            return true;
        }
        self.note_joined(index, nic);
        false
    }

    /// Whether the port's limit, and the shared buffer's, leave room for a packet of `size`; always
    /// for lossless priorities.
    #[inline]
    fn fits(&self, port: u32, queue: u8, size: u32) -> bool {
        let out = &self.ports[port as usize];
        let is_short = out.bytes + size <= self.limits.port_buffer;
        if is_short && self.limits.shared.is_none() {
            return true;
        }
        let is_lossless = self.limits.pause.is_some_and(|pause| pause.is_lossless(queue));
        is_lossless || self.fits_lossy(out, port, queue, size)
    }

    fn fits_lossy(&self, out: &OutPort, port: u32, queue: u8, size: u32) -> bool {
        if self.lossy_bytes(out) + size > self.limits.port_buffer {
            return false;
        }
        let Some((total, alpha)) = self.limits.shared else { return true };
        let used = self.shared[self.vertices[port as usize].index()];
        let free = total.saturating_sub(used);
        let queue = u64::from(out.queues[usize::from(queue)].bytes + size);
        u64::from(size) <= free && queue * ALPHA_ONE <= free * alpha
    }

    /// Bytes at a port that its limit is for: those of lossless priorities are bounded where they
    /// came in.
    fn lossy_bytes(&self, out: &OutPort) -> u32 {
        let Some(pause) = self.limits.pause else { return out.bytes };
        let queues = (0..PRIORITIES).filter(|&queue| pause.is_lossless(queue));
        out.bytes - queues.map(|queue| out.queues[usize::from(queue)].bytes).sum::<u32>()
    }

    /// Whether a packet is marked that finds a queue as it is.
    #[inline]
    fn marks(&mut self, port: u32, queue: u8) -> bool {
        let waiting = self.ports[port as usize].queues[usize::from(queue)].bytes;
        if let Some(threshold) = self.limits.step {
            return waiting > threshold;
        }
        let Some(red) = self.limits.red else { return false };
        if waiting <= red.min || waiting > red.max {
            return waiting > red.max;
        }
        let vertex = self.vertices[port as usize];
        let draw = self.chance[vertex.index()].below(1 << 32);
        let (rise, width) = (waiting - red.min, red.max - red.min);
        u128::from(draw) * u128::from(width) < u128::from(red.probability) * u128::from(rise)
    }

    /// NDP §3.2: a packet that finds the data queue full loses its payload, or the last one in the
    /// queue does in its place, by the toss of a coin; its header joins the header queue.
    fn admit_or_trim(&mut self, index: u32, port: u32, trim: TrimLimits) {
        let packet = self.arena.get(index);
        if packet.priority == 0 {
            return self.admit_header(index, port, trim);
        }
        let out = &self.ports[port as usize];
        let data = out.bytes - out.queues[0].bytes;
        if data + u32::from(packet.wire) <= self.limits.port_buffer {
            return self.send_or_enqueue(port, packet.priority, index);
        }
        if !packet.marks.contains(Marks::MAY_TRIM) {
            return self.drop_at_port(index, port);
        }
        self.maybe_exchange_with_last(index, port);
        let cut = self.arena.get_mut(index);
        cut.payload = 0;
        cut.wire = trim.header;
        cut.priority = 0;
        cut.marks.insert(Marks::TRIMMED);
        self.counts.trimmed += 1;
        self.admit_header(index, port, trim);
    }

    /// With probability one half, the last packet of the queue and the one in hand change places
    /// (NDP §3.2: breaks the phase effects of tail drop).
    fn maybe_exchange_with_last(&mut self, index: u32, port: u32) {
        let vertex = self.vertices[port as usize];
        if self.chance[vertex.index()].below(2) == 0 {
            return;
        }
        let packet = *self.arena.get(index);
        let queue = &mut self.ports[port as usize].queues[usize::from(packet.priority)];
        if queue.fifo.is_empty() {
            return;
        }
        let last = *self.arena.get(queue.fifo.tail());
        // Only like for like, so that the queue stays within its limit.
        if last.wire == packet.wire && last.marks.contains(Marks::MAY_TRIM) {
            let tail = queue.fifo.tail();
            self.arena.exchange(index, tail);
            if let Some(detours) = &mut self.detours {
                detours.exchange(index, tail);
            }
            self.note_exchanged(port, [index, tail]);
        }
    }

    fn admit_header(&mut self, index: u32, port: u32, trim: TrimLimits) {
        let packet = self.arena.get(index);
        let headers = self.ports[port as usize].queues[0].bytes;
        if headers + u32::from(packet.wire) <= trim.header_buffer {
            return self.send_or_enqueue(port, 0, index);
        }
        let returns = packet.is_data()
            && packet.marks.contains(Marks::TRIMMED)
            && !packet.marks.contains(Marks::RETURNED);
        if returns && trim.overflow == Overflow::Return {
            return self.return_to_sender(index, port, trim);
        }
        self.drop_at_port(index, port);
    }

    /// NDP §3.2.4: exchanges the addresses of a header that was to leave by `port` and sends it back from
    /// here.
    #[cold]
    fn return_to_sender(&mut self, index: u32, port: u32, trim: TrimLimits) {
        let vertex = self.vertices[port as usize];
        let packet = self.arena.get_mut(index);
        std::mem::swap(&mut packet.src, &mut packet.dst);
        packet.marks.insert(Marks::RETURNED);
        self.counts.returned += 1;
        let packet = *packet;
        let way = self.chooser.choose(&self.tables, vertex, &packet).map(|port| port.get());
        let is_up = |port: &u32| self.ports[*port as usize].faults == 0;
        let Some(back) = way.filter(is_up) else {
            self.note_gone(index, port);
            self.note_lost(index, port, Outcome::NoRoute);
            self.counts.unroutable += 1;
            return self.drop_packet(index);
        };
        self.note_turned(index, port, back);
        self.admit_header(index, back, trim);
        self.send_waiting(back);
    }
}
