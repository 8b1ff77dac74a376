//! Bit errors, links that go down and come back, and credit that is set right again (M215, M216, M319, M320).
//!
//! There is no retransmission on links (M216): a cell whose header is damaged is gone, and the room that it took is
//! given back when its sender tells, in order with cells, all that it has sent. Credit and that count are told
//! every 100 µs on links in use, so that what is lost of them is repaired.

use ::rack::trace::Outcome;
use kernel::{Stream, Time};

use super::cell::{Cell, NONE};
use super::settings::{CHANNELS, TICK_PS};
use super::shared::Shared;
use super::tin::{LANES, NO_TIN, Tin, UNDECIDED, at, channels};
use super::{Body, Endpoints, Switches};
use crate::config::AtDeadLink;
use crate::link::credits::{Receiver, Sender};
use crate::tables::Tables;
use crate::topology::PortKind;

/// Bits of a cell's header (§3.1).
const HEADER_BITS: u64 = 64;

/// The errors of a switch's outgoing links.
#[derive(Clone, Debug)]
pub(super) struct Errors {
    /// By port: bits until the next error.
    left: Vec<u64>,
    streams: Vec<Stream>,
    /// By port: the share of cells that are lost without a word.
    silent: Vec<f64>,
}

/// What a link does to a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hit {
    None,
    /// Its header is damaged: nobody knows what it was.
    Header,
    /// What it carries is.
    Payload,
    /// It is gone, and no counter says so.
    Silent,
}

impl Errors {
    pub(super) fn new(tin: u16, ports: usize, seed: u64) -> Self {
        let stream =
            |port: usize| Stream::new(seed, "aquila/errors", u64::from(tin) << 8 | port as u64);
        Self {
            left: vec![u64::MAX; ports],
            streams: (0..ports).map(stream).collect(),
            silent: vec![0.0; ports],
        }
    }

    /// Draws how far it is to the next error at a rate a bit.
    fn draw(&mut self, port: usize, rate: f64) -> u64 {
        (self.streams[port].exponential(1.0 / rate) as u64).max(1)
    }

    /// So many bits go out of a port.
    fn pass(&mut self, port: usize, bits: u64, rate: f64) -> Hit {
        if self.left[port] == u64::MAX {
            self.left[port] = self.draw(port, rate);
        }
        if self.left[port] > bits {
            self.left[port] -= bits;
            return Hit::None;
        }
        let hit = if self.left[port] <= HEADER_BITS { Hit::Header } else { Hit::Payload };
        while self.left[port] <= bits {
            self.left[port] += self.draw(port, rate);
        }
        self.left[port] -= bits;
        hit
    }
}

impl<E: Endpoints> Switches<E> {
    /// Lets the link out of a port of a switch lose a share of its cells without a word, and no ordered sets: what
    /// tracing is to find (§6, X23).
    ///
    /// # Panics
    /// If the switch is not here, or has no such port.
    pub fn set_silent_loss(&mut self, tin: u16, port: u8, share: f64, seed: u64) {
        let tins = &self.tins;
        let new = || tins.iter().map(|tin| Errors::new(tin.id, LANES, seed)).collect();
        let errors = self.shared.errors.get_or_insert_with(new);
        errors[self.places[usize::from(tin)] as usize].silent[usize::from(port)] = share;
    }

    /// The link at a port goes down at `now`, at this end; what is on it is lost. The other end has to be told
    /// apart. Nothing happens if it is down already.
    ///
    /// # Panics
    /// If the TiN is not here.
    pub fn break_link(&mut self, tin: u16, port: u8, now: Time) {
        let place = self.places[usize::from(tin)] as usize;
        let port = usize::from(port);
        let Self { tins, shared, .. } = self;
        let tin = &mut tins[place];
        shared.calendar.skip_to(now.as_ps() / TICK_PS);
        let tick = shared.calendar.now();
        if std::mem::replace(&mut tin.ports[port].is_down, true) {
            return;
        }
        shared.may_lose_sets = true;
        if shared.limits.at_dead_link == AtDeadLink::QueueOnly {
            return;
        }
        for channel in 0..CHANNELS {
            tin.empty_output(shared, port, channel);
            let units = shared.limits.outputs[tin.ports[port].kind as usize];
            tin.queued[channel][port] = units as u8;
        }
        tin.decide_again(shared, tick);
    }

    /// The link at a port is up again at `now`, at this end: its credit begins anew, and the other end is told
    /// what there is room for (M215: INIT_FC).
    ///
    /// # Panics
    /// If the TiN is not here.
    pub fn mend_link(&mut self, tin: u16, port: u8, now: Time) {
        let place = self.places[usize::from(tin)] as usize;
        let port = usize::from(port);
        let Self { tins, shared, .. } = self;
        let tin = &mut tins[place];
        shared.calendar.skip_to(now.as_ps() / TICK_PS);
        let tick = shared.calendar.now();
        let state = &mut tin.ports[port];
        if !std::mem::replace(&mut state.is_down, false) || state.far_tin == NO_TIN {
            return;
        }
        shared.may_lose_sets = true;
        state.line_free = state.line_free.max(now.as_ps());
        for channel in 0..CHANNELS {
            let output = &mut tin.outputs[at(channel, port)];
            output.credit = Sender::new();
            if shared.limits.at_dead_link != AtDeadLink::QueueOnly {
                tin.queued[channel][port] = 0;
            }
            let input = &mut tin.inputs[at(channel, port)];
            input.credit = Receiver::new(input.credit.room());
        }
        for channel in (0..CHANNELS).step_by(3) {
            tin.tell(shared, port, channel, tick);
        }
    }

    /// Puts other tables in place at `now`. Heads that wait choose anew.
    pub fn install(&mut self, tables: std::sync::Arc<Tables>, now: Time) {
        let Self { tins, shared, .. } = self;
        shared.calendar.skip_to(now.as_ps() / TICK_PS);
        let tick = shared.calendar.now();
        shared.tables = tables;
        for tin in tins {
            tin.read_tables(&shared.tables);
            for port in tin.ports.iter_mut().filter(|port| port.far_tin != NO_TIN) {
                port.comes_down = shared.tables.escapes().is_down(port.far_tin, tin.id);
            }
            tin.decide_again(shared, tick);
        }
    }
}

impl Tin {
    /// What the link at a port does to a cell.
    pub(super) fn hit(&self, shared: &mut Shared, port: usize, cell: &Cell) -> Hit {
        let Some(errors) = &mut shared.errors else { return Hit::None };
        let rate = shared.limits.errors[self.ports[port].kind as usize];
        let of = &mut errors[self.slot as usize];
        if of.silent[port] > 0.0 && of.streams[port].bernoulli(of.silent[port]) {
            return Hit::Silent;
        }
        if rate == 0.0 {
            return Hit::None;
        }
        of.pass(port, u64::from(cell.blocks) * 64, rate)
    }

    /// A channel of a link was used: what is counted at its ends is told again before long.
    #[inline]
    pub(super) fn note_use(&mut self, shared: &mut Shared, port: usize, channel: usize, tick: u64) {
        if !shared.limits.credits {
            return;
        }
        let state = &mut self.ports[port];
        state.used |= 1 << channel;
        if !state.is_refreshed {
            self.refresh_later(shared, port, tick);
        }
    }

    #[inline(never)]
    fn refresh_later(&mut self, shared: &mut Shared, port: usize, tick: u64) {
        self.ports[port].is_refreshed = true;
        shared.refreshes.put(tick + shared.limits.refresh, self.place(port));
    }

    /// Tells the other end of a port's link what was granted and what was sent on channels in use: twice after
    /// each use, as the first time may be lost as well.
    pub(super) fn refresh(&mut self, shared: &mut Shared, port: usize, tick: u64) {
        let state = &mut self.ports[port];
        state.is_refreshed = false;
        let used = std::mem::take(&mut state.used);
        let before = std::mem::take(&mut state.used_before);
        if state.is_down {
            return;
        }
        if used != 0 {
            state.used_before = used;
            self.refresh_later(shared, port, tick);
        }
        for channel in channels(used | before) {
            self.tell(shared, port, channel, tick);
            let sent = self.outputs[at(channel, port)].credit.consumed();
            self.send_set(shared, port, Body::Sync(channel as u8, sent), tick);
        }
    }

    /// Throws away what waits in an output's channel.
    fn empty_output(&mut self, shared: &mut Shared, port: usize, channel: usize) {
        let queue = &mut self.outputs[at(channel, port)];
        while queue.head != NONE {
            let index = queue.head;
            queue.head = if index == queue.tail { NONE } else { shared.pool.get(index).next };
            shared.discard(index, Outcome::DeadLink);
            shared.counts.lost_at_dead_links += 1;
        }
        queue.deficit = 0;
        self.queued[channel][port] = 0;
        let state = &mut self.ports[port];
        state.filled &= !(1 << channel);
        state.room |= 1 << channel;
        self.count_wants(port);
        shared.note_room(self.place(port), channel, true);
    }

    /// Lets all heads choose anew, at no tick that is being done.
    fn decide_again(&mut self, shared: &mut Shared, tick: u64) {
        self.choose_again(shared, tick);
        let drawn = std::mem::take(&mut shared.drawn);
        drawn.iter().for_each(|&queue| self.expect_draw(shared, queue, tick));
    }

    /// Lets all heads choose anew.
    pub(super) fn choose_again(&mut self, shared: &mut Shared, tick: u64) {
        for port in 0..LANES {
            for channel in channels(self.ports[port].decided) {
                let head = &mut self.inputs[at(channel, port)];
                let (output, onward) = (usize::from(head.output), usize::from(head.onward));
                head.output = UNDECIDED;
                self.unask(port, channel, output, onward);
                self.decide::<true>(shared, port, channel, tick);
            }
        }
        shared.mark(self);
    }

    /// Whether what crosses to an output is discarded there: its link is down (M319).
    #[inline]
    pub(super) fn discards(&self, shared: &Shared, port: usize) -> bool {
        let port = &self.ports[port];
        port.is_down
            && port.kind != PortKind::Terminal
            && shared.limits.at_dead_link != AtDeadLink::QueueOnly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of cells that are hit is that of the closed form, and so is that of headers among them.
    #[test]
    fn errors_are_as_frequent_as_they_should_be() {
        let (rate, bits, cells) = (2e-4, 1280, 200_000);
        let mut errors = Errors::new(3, 4, 1);
        let hits: Vec<_> = (0..cells).map(|_| errors.pass(2, bits, rate)).collect();
        let share = |hit| hits.iter().filter(|&&one| one == hit).count() as f64 / cells as f64;
        let header = 1.0 - (1.0f64 - rate).powi(HEADER_BITS as i32);
        let any = 1.0 - (1.0f64 - rate).powi(bits as i32);
        // Four standard errors.
        let bound = |p: f64| 4.0 * (p * (1.0 - p) / cells as f64).sqrt();
        assert!((share(Hit::Header) - header).abs() < bound(header), "{}", share(Hit::Header));
        assert!((share(Hit::None) - (1.0 - any)).abs() < bound(any), "{}", share(Hit::None));
    }
}
