//! The links between TiNs: whether they carry anything, and the words of PMOS on them.

use aquila::pipeline::Interface;
use aquila::topology::Topology;
use kernel::{Stream, Time};

use super::journal::What;
use super::{Event, Parcel, Sim};
use crate::firmware::Input;
use crate::firmware::chip::LinkState;
use crate::pmos::{End, Frame};

/// One direction of a link.
#[derive(Clone, Debug, Default)]
struct Wire {
    /// The frame on it, and when its last word will have gone.
    frame: Option<(Time, Frame)>,
    /// When the words of acknowledgements will have gone, which go between those of the frame.
    acks: Time,
    /// Of what is on it: what has another is gone.
    life: u32,
}

/// A link.
#[derive(Clone, Copy, Debug)]
struct Link {
    state: LinkState,
    is_broken: bool,
    life: u32,
}

/// All links.
#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
    ports: usize,
    /// By TiN and port.
    wires: Vec<Wire>,
    stream: Stream,
}

impl Links {
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let link = Link { state: LinkState::Down, is_broken: false, life: 0 };
        let ports = usize::from(topology.shape().external_ports());
        Self {
            links: vec![link; topology.links().len()],
            ports,
            wires: vec![Wire::default(); usize::from(topology.shape().tins()) * ports],
            stream: Stream::new(seed, "ordered sets that are lost", 0),
        }
    }

    pub fn set_broken(&mut self, link: u32, is_broken: bool) {
        self.links[link as usize].is_broken = is_broken;
    }

    /// Whether cells cross the link at a port.
    pub fn is_up(&self, topology: &Topology, tin: u16, port: u8) -> bool {
        let link = topology.link(tin, port);
        link.is_some_and(|link| self.links[link as usize].state == LinkState::Up)
    }

    /// Whether no link is about to come up.
    pub fn are_settled(&self, topology: &Topology, is_on: impl Fn(u16) -> bool) -> bool {
        topology.links().iter().zip(&self.links).all(|(ends, link)| {
            let may = !link.is_broken && is_on(ends.low.tin) && is_on(ends.high.tin);
            !may || link.state == LinkState::Up
        })
    }

    /// What a TiN has on its wires is gone.
    pub fn clear(&mut self, tin: u16) {
        for port in 0..self.ports as u8 {
            let wire = self.wire(tin, port);
            wire.life += 1;
            (wire.frame, wire.acks) = (None, Time::ZERO);
        }
    }

    fn wire(&mut self, tin: u16, port: u8) -> &mut Wire {
        &mut self.wires[usize::from(tin) * self.ports + usize::from(port)]
    }
}

impl Sim {
    /// Looks at all links of a TiN after its power has changed.
    pub(super) fn relink_all(&mut self, tin: u16) {
        let ports = 0..self.topology.shape().external_ports();
        let links: Vec<u32> = ports.filter_map(|port| self.topology.link(tin, port)).collect();
        self.relink_together(&links);
    }

    /// A link begins to come up, or is down.
    pub(super) fn relink(&mut self, link: u32) {
        self.relink_together(&[link]);
    }

    /// All are down before anybody hears of one: what they say then goes over none of them.
    fn relink_together(&mut self, links: &[u32]) {
        let mut fallen = Vec::new();
        for &link in links {
            let place = &mut self.links.links[link as usize];
            place.life += 1;
            if place.state != LinkState::Down {
                place.state = LinkState::Down;
                let ends = self.topology.links()[link as usize];
                fallen.extend([ends.low, ends.high]);
            }
        }
        for end in &fallen {
            let wire = self.links.wire(end.tin, end.port);
            wire.life += 1;
            (wire.frame, wire.acks) = (None, Time::ZERO);
        }
        fallen.iter().for_each(|end| self.tell_link(end.tin, end.port));
        for &link in links {
            let ends = self.topology.links()[link as usize];
            let is_on = |tin: u16| self.nodes[usize::from(tin)].is_on;
            let place = &self.links.links[link as usize];
            if place.is_broken || !is_on(ends.low.tin) || !is_on(ends.high.tin) {
                continue;
            }
            let life = place.life;
            // A processor whose link is there before it runs finds it in the chip.
            let starts = self.config.start_time + self.config.power_on;
            let at = self.now + self.config.lock_time;
            let at = if self.now == Time::ZERO { at + starts } else { at };
            self.calendar.push(at, Event::Link { link, life, is_up: false });
        }
    }

    pub(super) fn on_link(&mut self, link: u32, life: u32, is_up: bool) {
        let place = &mut self.links.links[link as usize];
        if place.life != life {
            return;
        }
        place.state = if is_up { LinkState::Up } else { LinkState::Locked };
        if !is_up {
            let at = self.now + self.config.up_time;
            self.calendar.push(at, Event::Link { link, life, is_up: true });
        }
        let ends = self.topology.links()[link as usize];
        self.tell_link(ends.low.tin, ends.low.port);
        self.tell_link(ends.high.tin, ends.high.port);
    }

    /// Tells a firmware how all its links are: it has just started.
    pub(super) fn tell_links(&mut self, tin: u16) {
        for port in 0..self.topology.shape().external_ports() {
            self.tell_link(tin, port);
        }
    }

    fn tell_link(&mut self, tin: u16, port: u8) {
        let (Some(link), Some(far)) = (self.topology.link(tin, port), self.topology.far(tin, port))
        else {
            return;
        };
        // Where nothing is heard the port goes on trying.
        let state = self.links.links[link as usize].state.max(LinkState::Training);
        let neighbour = self.plan.ethernet(far.tin, Interface::Control);
        if self.nodes[usize::from(tin)].firmware.is_some() {
            self.note(What::LinkSeen { tin, port, state });
        }
        self.tell(tin, Input::Link { port, state, neighbour });
    }

    /// All links have been up before the beginning.
    pub(super) fn links_are_up(&mut self) {
        for link in &mut self.links.links {
            link.life += 1;
            link.state = LinkState::Up;
        }
    }

    /// Puts on wires what a firmware has for them.
    pub(super) fn pump(&mut self, tin: u16) {
        let Some(firmware) = &mut self.nodes[usize::from(tin)].firmware else { return };
        let mut wanting = firmware.wanting();
        while wanting != 0 {
            let port = wanting.trailing_zeros() as u8;
            wanting &= wanting - 1;
            self.pump_port(tin, port);
        }
    }

    fn pump_port(&mut self, tin: u16, port: u8) {
        let interval = self.config.mos_interval;
        loop {
            let Some(firmware) = &mut self.nodes[usize::from(tin)].firmware else { return };
            let wire = self.links.wire(tin, port);
            let is_free = wire.frame.is_none();
            let Some(frame) = firmware.next_frame(port, is_free) else { return };
            let words = interval * End::words(&frame).len() as u64;
            let life = wire.life;
            if frame.kind.is_data() {
                let gone = self.now.max(wire.acks) + words;
                wire.frame = Some((gone, frame));
                self.calendar.push(gone, Event::Gone { tin, port, life });
            } else {
                // Its words go before what is left of the frame's.
                wire.acks = self.now.max(wire.acks) + words;
                let after = wire.acks - self.now;
                if let Some((gone, _)) = &mut wire.frame {
                    *gone += words;
                }
                self.send(after, Parcel::Ack { tin, port, life, frame });
            }
        }
    }

    pub(super) fn on_gone(&mut self, tin: u16, port: u8, life: u32) {
        let now = self.now;
        let wire = self.links.wire(tin, port);
        if wire.life != life {
            return;
        }
        let Some((gone, frame)) = wire.frame.take() else { return };
        if gone > now {
            // Acknowledgements have gone between its words.
            wire.frame = Some((gone, frame));
            self.calendar.push(gone, Event::Gone { tin, port, life });
            return;
        }
        self.carry(tin, port, life, frame);
        self.tell(tin, Input::Gone { port });
    }

    /// The words of a frame arrive, but for those that are lost.
    pub(super) fn carry(&mut self, tin: u16, port: u8, life: u32, frame: Frame) {
        if self.links.wire(tin, port).life != life {
            return;
        }
        let Some(far) = self.topology.far(tin, port) else { return };
        let lost = u64::from(self.config.mos_lost);
        let words = End::words(&frame);
        let said = words.len();
        self.results.words += said as u64;
        if lost == 0 {
            self.tell(far.tin, Input::Pmos { port: far.port, frame });
            return;
        }
        let stream = &mut self.links.stream;
        let come: Vec<_> = words.filter(|_| stream.below(1_000_000) >= lost).collect();
        self.results.words_lost += (said - come.len()) as u64;
        if come.len() == said {
            self.tell(far.tin, Input::Pmos { port: far.port, frame });
        } else {
            come.into_iter()
                .for_each(|set| self.tell(far.tin, Input::Word { port: far.port, set }));
        }
    }
}
