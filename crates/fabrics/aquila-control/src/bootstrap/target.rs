//! Sessions by PMOS, through a proxy.

use std::collections::VecDeque;

use kernel::Time;

use super::{Manager, Output, Stage};
use crate::apps::session::{Over, Session};
use crate::dhcp::{self, Message};
use crate::flash::GENERATION;
use crate::pmos::{Kind, WINDOW};
use crate::session::{Client, PIECE_BYTES, Point, Said};

/// A target's session.
#[derive(Debug)]
pub(super) struct Target {
    /// Through whom.
    pub proxy: u16,
    /// The proxy's port.
    pub port: u8,
    /// Of the session: an answer to another one does not count.
    number: u32,
    /// Whether the target has said that it has begun.
    pub is_begun: bool,
    /// Packets that the proxy has, and the target has not.
    under_way: usize,
    /// Packets for the proxy.
    queue: VecDeque<(Kind, Vec<u8>)>,
    /// An answer is waited for.
    is_asked: bool,
    /// When the target last showed that it is there.
    pub heard: Time,
}

impl Target {
    fn new(now: Time, proxy: u16, port: u8, number: u32) -> Self {
        let begin = (Kind::Debug, Point::Begin(number).encode());
        Self {
            proxy,
            port,
            number,
            is_begun: false,
            under_way: 0,
            queue: VecDeque::from([begin]),
            is_asked: false,
            heard: now,
        }
    }

    /// A request is to go there, in pieces.
    pub fn ask(&mut self, bytes: &[u8]) {
        let pieces = bytes.chunks(PIECE_BYTES).map(|piece| (Kind::Rpc, piece.to_vec()));
        self.queue.extend(pieces);
        self.is_asked = true;
    }

    /// Gives the proxy as much as it may have.
    pub fn pass(&mut self, proxy: &mut Client) {
        while self.under_way < WINDOW
            && let Some((kind, data)) = self.queue.pop_front()
        {
            let said = Said::Pmos { port: self.port, kind, data: data.clone() };
            if !proxy.say(&said) {
                self.queue.push_front((kind, data));
                return;
            }
            self.under_way += 1;
        }
    }

    /// The target has one packet more.
    pub fn has_room(&mut self, now: Time) {
        self.under_way = self.under_way.saturating_sub(1);
        self.heard = now;
    }

    /// Whether something is to come from the target.
    pub fn waits(&self) -> bool {
        !self.is_begun || self.is_asked || self.under_way > 0
    }
}

impl Manager {
    /// The session through a port of a proxy.
    pub(super) fn target_at(&mut self, proxy: u16, port: u8) -> Option<&mut Target> {
        let far = self.topology.far(proxy, port)?.tin;
        let target = self.tin(far).target.as_mut()?;
        ((target.proxy, target.port) == (proxy, port)).then_some(target)
    }

    /// Begins a session with a target.
    pub(super) fn begin_target(
        &mut self,
        now: Time,
        tin: u16,
        (proxy, port): (u16, u8),
        out: &mut Vec<Output>,
    ) {
        let number = self.numbers.below(1 << 32) as u32;
        let place = self.tin(tin);
        place.target = Some(Target::new(now, proxy, port, number));
        place.pieces.clear();
        (place.is_enough, place.gives_up) = (false, None);
        self.tin(proxy).targets.push(tin);
        self.counts.pmos_sessions += 1;
        self.set_stage(tin, Stage::Pmos, out);
        self.say(now, proxy);
        self.flush(proxy, out);
    }

    /// A target's session has failed: another proxy may have it (M813).
    pub(super) fn end_target(&mut self, now: Time, tin: u16, out: &mut Vec<Output>) {
        let proxy = self.tin(tin).target.as_ref().map(|target| target.proxy);
        if !self.drop_target(tin, out) {
            return;
        }
        self.counts.pmos_lost += 1;
        let place = self.tin(tin);
        (place.avoid, place.is_enough) = (proxy, false);
        self.next_tick = self.next_tick.min(now + super::TICK);
        self.set_stage(tin, Stage::Addressed, out);
    }

    /// Forgets a target's session, if there is one.
    pub(super) fn drop_target(&mut self, tin: u16, out: &mut Vec<Output>) -> bool {
        let Some(target) = self.tin(tin).target.take() else { return false };
        self.tin(target.proxy).targets.retain(|&other| other != tin);
        self.tin(tin).pieces.clear();
        if target.is_begun {
            out.push(Output::Session(Session::Down { tin }));
        }
        true
    }

    /// A neighbour of a proxy has said something by PMOS.
    pub(super) fn on_target(
        &mut self,
        now: Time,
        (proxy, port): (u16, u8),
        kind: Kind,
        data: Vec<u8>,
        out: &mut Vec<Output>,
    ) {
        let Some(far) = self.topology.far(proxy, port) else {
            self.counts.malformed += 1;
            return;
        };
        if kind == Kind::Dhcp {
            self.on_question(now, (proxy, port), far.tin, &data, out);
            return;
        }
        // What comes by another way than the session's is left over from one before it.
        let Some(target) = self.target_at(proxy, port) else { return };
        target.heard = now;
        match kind {
            Kind::Rpc if target.is_begun => {
                if self.on_piece(far.tin, &data, out)
                    && let Some(target) = self.target_at(proxy, port)
                {
                    target.is_asked = false;
                }
            }
            Kind::Debug => match Point::decode(&data) {
                Some(Point::Hello(number, hello)) if number == target.number => {
                    target.is_begun = true;
                    if !self.is_known_as(far.tin, hello.ethernet) {
                        self.counts.malformed += 1;
                        self.end_target(now, far.tin, out);
                        return;
                    }
                    if hello.generation != GENERATION {
                        self.counts.other_generations += 1;
                        self.end_target(now, far.tin, out);
                        return;
                    }
                    let (tin, boot, firmware) = (far.tin, hello.boot, hello.firmware);
                    self.tin(tin).links = hello.links;
                    out.push(Output::Session(Session::Up {
                        tin,
                        over: Over::Pmos,
                        boot,
                        firmware,
                    }));
                    out.push(Output::Links { tin, up: hello.links });
                }
                Some(Point::Hello(..)) => {}
                _ => self.counts.malformed += 1,
            },
            _ => {}
        }
    }

    /// A neighbour of a proxy asks for an address: the controller is its relay (M810).
    fn on_question(
        &mut self,
        now: Time,
        way: (u16, u8),
        tin: u16,
        data: &[u8],
        out: &mut Vec<Output>,
    ) {
        let message = Message::decode(data).ok().filter(|message| message.kind.is_of_client());
        let Some(message) = message.filter(|message| self.is_known_as(tin, message.client)) else {
            self.counts.malformed += 1;
            return;
        };
        self.tin(tin).asked = now;
        if !self.merge.admit(now, &message, way) {
            return;
        }
        if let Ok(bytes) = dhcp::relay(self.own.v4, data) {
            self.counts.relayed += 1;
            out.push(Output::Dhcp(bytes));
        }
    }
}
