//! The line of an output port: when it is free, and what a packet's journey over it takes.

use kernel::{Bytes, Span, select};

use super::Net;
use super::arena::NONE;
use super::event::Event;
use super::port::LINK_QUEUE;
use crate::message::Manner;
use crate::wire;

impl Net {
    /// Whether the line of `port` is free now.
    #[inline]
    pub(crate) fn is_free(&self, port: u32) -> bool {
        self.ports[port as usize].free_at <= self.now
    }

    /// Makes sure that an event comes when the line is free.
    #[inline]
    pub(crate) fn expect_free(&mut self, port: u32) {
        let out = &mut self.ports[port as usize];
        if !out.is_expected {
            out.is_expected = true;
            let event = if out.is_nic {
                Event::NicFree { host: self.vertices[port as usize].get() }
            } else {
                Event::Free { port }
            };
            self.calendar.push(out.free_at, event.pack());
        }
    }

    /// The line of a switch's port is free.
    #[inline]
    pub(crate) fn line_free(&mut self, port: u32) {
        self.ports[port as usize].is_expected = false;
        self.send_waiting(port);
    }

    /// Whether anything waits at `port` that may go, as far as flows' queues are concerned.
    #[inline]
    fn has_waiting(&self, port: u32) -> bool {
        self.ports[port as usize].filled != 0 || self.has_flow_queues(port)
    }

    /// Sends the next packet that waits at a switch's port, if any, once the line is free.
    #[inline]
    pub(super) fn send_waiting(&mut self, port: u32) {
        if !self.has_waiting(port) {
            return;
        }
        if self.is_free(port) {
            self.send_next(port);
        } else {
            self.expect_free(port);
        }
    }

    /// Sends the next packet that waits at a NIC, if the line is free. True if the line is busy now.
    #[inline]
    pub(crate) fn send_queued(&mut self, port: u32) -> bool {
        if !self.is_free(port) {
            return true;
        }
        let Some(index) = self.next_waiting(port) else { return false };
        self.launch_from_nic(port, index);
        true
    }

    /// Sends the next packet that waits at a switch's port and may go, on the free line.
    #[inline]
    fn send_next(&mut self, port: u32) {
        let Some(index) = self.next_waiting(port) else { return };
        self.launch_from_switch(port, index);
        if self.has_waiting(port) {
            self.expect_free(port);
        }
    }

    /// Takes the next packet that waits at `port` and may go out of its queue.
    #[inline]
    fn next_waiting(&mut self, port: u32) -> Option<u32> {
        match self.pick(port) {
            Some(queue) => Some(self.dequeue(port, queue)),
            None => self.pick_flow(port),
        }
    }

    /// Puts a packet on the free line of a NIC, and stamps it if it is data.
    #[inline]
    pub(crate) fn launch_from_nic(&mut self, port: u32, index: u32) {
        let packet = self.arena.get_mut(index);
        if packet.is_data() {
            packet.stamp = self.now;
        }
        if let Some(detours) = &mut self.detours {
            detours.begin(index, self.vertices[port as usize]);
        }
        self.launch(port, index);
        if self.ports[port as usize].is_cut {
            self.let_go(index, false);
        }
    }

    /// Puts a packet on the free line of a switch's port, and notes it if a program wants to know.
    #[inline]
    fn launch_from_switch(&mut self, port: u32, index: u32) {
        self.launch(port, index);
        let is_noted = self.notes_departures && !self.arena.get(index).is_link_frame();
        if is_noted {
            self.departures.push((port, index));
        }
        if self.ports[port as usize].is_cut {
            self.let_go(index, is_noted);
        }
    }

    /// Puts a packet on the free line of `port`. If that leads to another part, whoever calls lets go of the
    /// packet.
    #[inline]
    fn launch(&mut self, port: u32, index: u32) {
        debug_assert!(self.is_free(port), "port {port} sends two packets at a time");
        self.leaves_switch(index, self.arena.ingress(index));
        if let Some(detours) = &mut self.detours {
            detours.launched(index);
        }
        let out = &mut self.ports[port as usize];
        if self.is_lossy {
            // While it is under way, the note says during which life of the link.
            self.arena.set_ingress(index, out.life);
        }
        self.arena.set_way(index, NONE);
        let packet = self.arena.get(index);
        let time = match out.byte_time {
            Span::ZERO => {
                let size = self.wires[port as usize].on_line(packet.size());
                self.clocks[port as usize].send(size)
            }
            byte => byte * u64::from(packet.wire),
        };
        out.free_at = self.now + time;
        let (port_there, is_there) = (out.reverse, packet.dst.get() == out.peer);
        if packet.is_link_frame() {
            return self.launch_frame(port, index);
        }
        // Both are built, so that there is no branch to mispredict.
        let deliver = Event::Deliver { packet: index, port: port_there }.pack();
        let arrive = Event::Arrive { packet: index, port: port_there }.pack();
        let event = select(is_there, deliver, arrive);
        let delay = select(is_there, out.last_delay, out.delay);
        let mut ready = out.free_at;
        if out.cuts_through {
            let header = self.wires[port as usize].cut_through.unwrap_or(time);
            ready = select(is_there, ready, self.now + header.min(time));
        }
        let is_cut = out.is_cut;
        self.counts.launched(packet, port, self.now);
        if is_cut {
            let manner = if is_there { Manner::There } else { Manner::Through };
            self.pass(port, index, (ready + delay, manner));
        } else {
            self.calendar.push(ready + delay, event);
        }
        if self.is_controlled {
            self.takes_room(port, index);
        }
        if self.is_observed {
            self.observe(index, port, ready + delay, delay);
        }
    }

    /// As [`Net::launch`], from where the line is taken: a frame of the link.
    #[cold]
    fn launch_frame(&mut self, port: u32, index: u32) {
        let out = &self.ports[port as usize];
        let arrival = out.free_at + self.wires[port as usize].propagation;
        if self.is_observed {
            self.observe(index, port, arrival, self.wires[port as usize].propagation);
        }
        let out = &self.ports[port as usize];
        if out.is_cut {
            return self.pass(port, index, (arrival, Manner::Frame));
        }
        let event = Event::Frame { packet: index, port: out.reverse };
        self.calendar.push(arrival, event.pack());
    }

    /// Puts in place of a packet what the other end reads of its bytes.
    #[cold]
    pub(super) fn go_through_bytes(&mut self, index: u32) {
        let Some(codec) = self.codec.as_deref() else { return };
        let packet = self.arena.get_mut(index);
        let read = wire::decode(codec, &wire::encode(codec, packet));
        assert_eq!(read, Ok(*packet), "a packet is another behind its bytes");
        *packet = read.expect("it was just compared");
    }

    /// A packet goes on the line of `port`: it takes room at the other end, where that is counted.
    #[inline]
    fn takes_room(&mut self, port: u32, index: u32) {
        if self.credits.is_some() {
            self.credit_take(port, index);
        } else if self.flow_queues.is_some() {
            self.window_take(port, index);
        }
    }

    /// Takes the front packet out of a queue.
    #[inline]
    fn dequeue(&mut self, port: u32, queue: u8) -> u32 {
        let out = &mut self.ports[port as usize];
        let fifo = &mut out.queues[usize::from(queue)];
        let index = self.arena.pop(&mut fifo.fifo);
        let size = u32::from(self.arena.get(index).wire);
        fifo.bytes -= size;
        if fifo.fifo.is_empty() {
            out.filled &= !(1 << queue);
        }
        if queue == LINK_QUEUE {
            self.before_link_frame(port, index);
        } else {
            out.bytes -= size;
            out.packets -= 1;
            self.queue_shrinks(port, size);
        }
        index
    }

    /// Puts a packet on the line, if nothing keeps it from it, or else at the back of a queue.
    #[inline]
    pub(super) fn send_or_enqueue(&mut self, port: u32, queue: u8, index: u32) {
        let out = &self.ports[port as usize];
        let is_held = out.held >> queue & 1 == 1;
        if out.filled == 0 && !is_held && self.is_free(port) {
            self.launch_from_switch(port, index);
        } else {
            self.enqueue(port, queue, index);
        }
    }

    /// Puts a packet at the back of a queue.
    #[inline]
    pub(crate) fn enqueue(&mut self, port: u32, queue: u8, index: u32) {
        let size = u32::from(self.arena.get(index).wire);
        let out = &mut self.ports[port as usize];
        let fifo = &mut out.queues[usize::from(queue)];
        self.arena.push(&mut fifo.fifo, index);
        fifo.bytes += size;
        out.filled |= 1 << queue;
        if queue != LINK_QUEUE {
            out.bytes += size;
            out.packets += 1;
            self.queue_grows(port, size);
        }
    }

    /// Counts bytes into the queues and the shared buffer of a switch.
    #[inline]
    pub(super) fn queue_grows(&mut self, port: u32, size: u32) {
        let out = &mut self.ports[port as usize];
        if out.is_nic {
            return;
        }
        out.peak = out.peak.max(out.bytes);
        if self.limits.shared.is_some() {
            self.shared[self.vertices[port as usize].index()] += u64::from(size);
        }
        self.counts.queue_grew(out.bytes, out.packets);
    }

    /// Counts bytes out of them.
    #[inline]
    pub(super) fn queue_shrinks(&mut self, port: u32, size: u32) {
        if self.ports[port as usize].is_nic {
            return;
        }
        if self.limits.shared.is_some() {
            self.shared[self.vertices[port as usize].index()] -= u64::from(size);
        }
        self.counts.queue_shrank();
    }

    /// Empties all queues of a port: its link is down.
    pub(super) fn flush(&mut self, port: u32) {
        for queue in 0..=LINK_QUEUE {
            while self.ports[port as usize].filled >> queue & 1 == 1 {
                let index = self.dequeue(port, queue);
                if queue == LINK_QUEUE {
                    self.take_out(index);
                } else {
                    self.drop_at_dead_link(index, port);
                }
            }
        }
        self.flush_flows(port);
    }

    /// Bytes that wait at a port, counted one by one.
    pub(crate) fn waiting(&self, port: u32) -> Bytes {
        let queues = self.ports[port as usize].queues[..usize::from(LINK_QUEUE)].iter();
        let packets = queues.flat_map(|queue| self.arena.iter(queue.fifo));
        packets.map(|index| self.arena.get(index).size()).sum()
    }
}
