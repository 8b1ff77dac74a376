//! Switches that run a program: when it is called, and how its orders are carried out.

use kernel::Time;
use rack::topology::{PortId, Vertex};

use super::part::Part;
use crate::net::{Event, GONE, Passage};
use crate::program::{Handle, Hop, Order, Post, Program, Verdict};
use crate::transport::Transport;

impl<T: Transport, S: Program> Part<T, S> {
    /// A packet is there by `port`, at a switch or as a frame of the link: the program decides.
    #[inline]
    pub(super) fn arrive_at_program(&mut self, index: u32, port: u32) {
        let Some(Passage { vertex, mut out }) = self.net.come_in(index, port) else { return };
        if S::CHOOSES {
            out = self.chosen(index, port, Passage { vertex, out });
        }
        let hop = Hop {
            switch: vertex,
            from: PortId::new(port),
            to: PortId::new(out),
            handle: Handle(index),
        };
        self.orders.now = self.net.now;
        let packet = self.net.arena.get_mut(index);
        match self.program.arrives(&hop, packet, &mut self.orders) {
            Verdict::Forward => self.net.go_out(index, out),
            Verdict::Turn => self.net.go_out(index, port),
            Verdict::Drop => self.net.refuse(index),
            Verdict::Absorb => self.net.absorb(index),
            Verdict::Keep => self.net.counts.kept += 1,
        }
    }

    /// The port by which the program wants a packet to leave.
    #[inline]
    fn chosen(&mut self, index: u32, port: u32, Passage { vertex, out }: Passage) -> u32 {
        let Some(ways) = self.net.ways(index, vertex) else { return out };
        let (from, to) = (PortId::new(port), PortId::new(out));
        let hop = Hop { switch: vertex, from, to, handle: Handle(index) };
        let choice = self.program.choose(&hop, self.net.arena.get(index), ways);
        assert!(choice < ways.count(), "way {choice} of {} at {vertex:?}", ways.count());
        ways.get(choice).port.get()
    }

    /// An alarm of the program.
    pub(super) fn wake_program(&mut self, switch: Vertex) {
        self.orders.now = self.net.now;
        self.program.wake(switch, &mut self.orders);
        if S::HAS_LINKS {
            // How often it is woken depends on the cut.
            self.events = self.events + self.program.events() - 1;
        }
    }

    /// What a switch of another part has sent over a link of the program's own. What is not for a program with
    /// links, or for a switch elsewhere, is dropped.
    pub(super) fn take_post(&mut self, port: u32, at: Time, post: &Post) {
        let wire = self.net.wires.get(port as usize);
        if !S::HAS_LINKS || !wire.is_some_and(|wire| self.net.owns(wire.vertex)) {
            self.net.counts.stray += 1;
            return;
        }
        self.orders.now = self.net.now;
        self.program.takes(PortId::new(port), at, post, &mut self.orders);
    }

    /// Tells the program of links that have changed by a fault.
    pub(super) fn tell_program_of_links(&mut self, fault: u32, works: bool) {
        self.serve_program();
        self.orders.now = self.net.now;
        for port in self.net.changed_by(fault, works) {
            self.program.link_changed(port, works, &mut self.orders);
        }
    }

    /// Tells the program what works, as far as that is known.
    pub(super) fn tell_program_of_routes(&mut self) {
        self.orders.now = self.net.now;
        self.program.converged(&self.net.live, &mut self.orders);
    }

    /// A switch hears what the one at the other end of a link told it.
    pub(super) fn tell_program(&mut self, port: u32, word: u32) {
        self.orders.now = self.net.now;
        self.program.hears(PortId::new(port), word, &mut self.orders);
    }

    /// A vertex has died. What it had to send went before.
    pub(super) fn tell_program_of_death(&mut self, vertex: Vertex) {
        self.serve_program();
        self.orders.now = self.net.now;
        self.program.died(vertex, &mut self.orders);
    }

    /// Tells the program what has left, and carries out its orders, until there are none.
    #[inline]
    pub(super) fn serve_program(&mut self) {
        if !self.orders.list.is_empty() || !self.net.departures.is_empty() {
            self.carry_out_orders();
        }
    }

    #[inline(never)]
    fn carry_out_orders(&mut self) {
        self.orders.now = self.net.now;
        loop {
            if let [departure] = self.net.departures[..] {
                // As a rule it is one.
                self.tell_of_departure(departure);
            } else {
                for at in 0..self.net.departures.len() {
                    self.tell_of_departure(self.net.departures[at]);
                }
            }
            self.net.departures.clear();
            self.net.forget_passed();
            if self.orders.list.is_empty() {
                return;
            }
            let mut at = 0;
            while let Some(&order) = self.orders.list.get(at) {
                at += 1;
                self.carry_out_order(order);
            }
            self.orders.list.clear();
        }
    }

    /// A packet goes on the line of a switch's port.
    #[inline]
    fn tell_of_departure(&mut self, (port, index): (u32, u32)) {
        if index == GONE {
            return self.tell_of_drop(port);
        }
        let packet = self.net.arena.get(index);
        self.program.leaves(PortId::new(port), packet, &mut self.orders);
    }

    /// A packet never will.
    #[cold]
    fn tell_of_drop(&mut self, port: u32) {
        let packet = self.net.gone.pop_front().expect("noted with its departure");
        self.program.dropped(PortId::new(port), &packet, &mut self.orders);
    }

    fn carry_out_order(&mut self, order: Order) {
        match order {
            Order::Emit(Handle(index), port) => {
                self.net.counts.kept -= 1;
                self.net.go_out(index, port.get());
            }
            Order::Discard(Handle(index)) => {
                self.net.counts.kept -= 1;
                self.net.refuse(index);
            }
            Order::Send(port, packet) => {
                let index = self.net.take_in(packet);
                self.net.go_out(index, port.get());
            }
            Order::Post(port, at, post) => self.net.post(port.get(), at, post),
            Order::Tell(port, word) => self.net.tell_word(port.get(), word),
            Order::WakeAt(switch, at) => {
                self.net.calendar.push(at, Event::Program { switch: switch.get() }.pack());
            }
        }
    }
}
