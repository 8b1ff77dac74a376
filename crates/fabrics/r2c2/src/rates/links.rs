//! What rising flows leave of the links, and which link fills next.
//!
//! Models: R2C2 §3.3.1 (claim M17). The paper looks at all links in every round; here the link that
//! fills next is on top of a heap. A flow that stops leaves more to the others on its links, so the
//! level at which a link fills only ever rises: what the heap holds is a lower bound, looked at again
//! when it comes to the top.
//!
//! Few links ever come to the top, and a flow under packet spraying crosses some hundred. So a flow
//! that stops is noted once, in a list, and a link accounts for those on it when it is looked at; in
//! the order in which they stopped, so that the numbers are those of a table that is always up to date,
//! to the last bit. Nor do links enter the heap that fill far above what is asked for: those up to a
//! *horizon* do, which is moved up as need be. That leaves O(P M log L) beside a look at each link, P
//! being the links that come to the top, with M flows each, of L.
//!
//! Flows that are spread over all links stop on all of them at once. Where there are such flows every
//! link is kept up to date ([`Keeping::UpToDate`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::shares::{load, load_of};
use super::tier::{Bundle, Tier};

/// A link that fills above a bound by less than this share may fill below it, but for rounding. Far
/// above the rounding of a quotient (our choice).
const ROUNDING: f64 = 1e-9;
/// By what the horizon moves up (our choice: half, or twice as much, took longer in overload).
const STEP: f64 = 2.0;
/// Links of a word of the bitmap.
const WORD: usize = u64::BITS as usize;

/// A level as a number that sorts alike: a float that is not negative, by its bits.
pub(super) fn rank(level: f64) -> u64 {
    level.max(0.0).to_bits()
}

/// When links account for flows that have stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Keeping {
    /// When they are looked at.
    #[default]
    OnDemand,
    /// At once.
    UpToDate,
}

/// Flows of a bundle that stopped together.
#[derive(Clone, Copy, Debug)]
struct Stop {
    weight: u32,
    /// The stop of the same bundle before this one, counted from 1; 0 if there was none.
    before: u32,
    level: f64,
}

/// The links under a tier of flows, while these rise.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    keeping: Keeping,
    /// By link: capacity left by the flows that have stopped, as far as they are accounted for.
    room: Vec<f64>,
    /// By link: the weight of the flows that rise on it, and of those not accounted for. Unit: quanta.
    weight: Vec<u64>,
    /// By link: how many stops are accounted for.
    accounted: Vec<u32>,
    /// The stops of the tier.
    stops: Vec<Stop>,
    /// By bundle: its last stop, counted from 1; 0 if there is none.
    last: Vec<u32>,
    /// Links by the level at which they fill, or a lower one.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// A bit for each link that is in the heap, or was.
    is_listed: Vec<u64>,
    /// Used links that fill below this level are listed; what certainly is below it, as a rank.
    horizon: f64,
    certain: u64,
    /// By stop: the quanta of its share on the link at hand; and a bit for each that this does not count
    /// with yet: so they come in order, and nothing is sorted.
    quanta: Vec<u32>,
    is_due: Vec<u64>,
}

impl Links {
    /// Nothing is taken of these capacities.
    pub(super) fn begin(&mut self, capacities: &[f64]) {
        self.room.clear();
        self.room.extend_from_slice(capacities);
    }

    /// Sets out with the flows of a tier, in what earlier ones have left: so many bundles at most.
    pub(super) fn pour(&mut self, tier: &Tier, bundles: usize) {
        let links = self.room.len();
        self.weight.clear();
        self.weight.extend_from_slice(&tier.loads);
        self.keeping = Keeping::OnDemand;
        if !tier.spread.bundles.is_empty() {
            self.keeping = Keeping::UpToDate;
        }
        for (weight, spread) in self.weight.iter_mut().zip(&tier.spread.loads) {
            *weight += spread;
        }
        self.accounted.clear();
        self.accounted.resize(links, 0);
        self.stops.clear();
        self.quanta.clear();
        self.is_due.clear();
        self.last.clear();
        self.last.resize(bundles, 0);
        self.heap.clear();
        self.is_listed.clear();
        self.is_listed.resize(links.div_ceil(WORD), 0);
        (self.horizon, self.certain) = (0.0, 0);
    }

    /// The lowest level at which a link of a bundle fills, if no flow stops before: the bundle rises at
    /// least so far.
    pub(super) fn least(&self, bundle: &Bundle) -> f64 {
        let links = bundle.entries.iter().map(|entry| entry.link as usize);
        let levels = links.map(|link| self.room[link] / load_of(self.weight[link]));
        levels.fold(f64::INFINITY, f64::min)
    }

    /// Sets the horizon: all that is asked for stops not far above this level, as far as can be told.
    /// Called once, before a flow has stopped.
    pub(super) fn expect(&mut self, level: f64) {
        match self.keeping {
            Keeping::OnDemand => self.list_below(level * STEP),
            // What is listed later would be listed at another level.
            Keeping::UpToDate => self.list_below(f64::INFINITY),
        }
    }

    /// Lists the links that fill below a level.
    fn list_below(&mut self, level: f64) {
        self.horizon = level;
        let mut all_are = true;
        let chunks = self.room.chunks(WORD).zip(self.weight.chunks(WORD));
        for ((first, listed), (room, weight)) in
            (0..).step_by(WORD).zip(&mut self.is_listed).zip(chunks)
        {
            let (mut below, mut used) = (0, 0);
            for (bit, (room, weight)) in room.iter().zip(weight).enumerate() {
                used |= u64::from(*weight > 0) << bit;
                below |= u64::from(*room <= level * load_of(*weight)) << bit;
            }
            let mut new = below & used & !*listed;
            *listed |= new;
            all_are &= used & !*listed == 0;
            while new != 0 {
                let bit = new.trailing_zeros();
                new &= new - 1;
                let level = room[bit as usize] / load_of(weight[bit as usize]);
                self.heap.push(Reverse((rank(level), first + bit)));
            }
        }
        self.certain = if all_are { u64::MAX } else { rank(level * (1.0 - ROUNDING)) };
    }

    /// Moves the horizon up, past a link at least.
    fn look_further(&mut self) {
        let outside = |link: usize| self.is_listed[link / WORD] >> (link % WORD) & 1 == 0;
        let links = self.room.iter().zip(&self.weight).enumerate();
        let used = links.filter(|&(link, (_, &weight))| weight > 0 && outside(link));
        let nearest =
            used.map(|(_, (room, &weight))| room / load_of(weight)).fold(f64::INFINITY, f64::min);
        self.list_below(self.horizon.max(nearest) * STEP);
    }

    /// The link that fills next, and the level at which it does.
    pub(super) fn next(&mut self, tier: &Tier) -> Option<(u64, u32)> {
        loop {
            let top = self.heap.peek().map(|&Reverse(top)| top);
            if top.is_none_or(|(bound, _)| bound > self.certain) {
                if self.certain == u64::MAX {
                    return None;
                }
                self.look_further();
                continue;
            }
            let (bound, link) = top?;
            self.account(tier, link);
            let weight = self.weight[link as usize];
            if weight == 0 {
                self.heap.pop();
                continue;
            }
            let level = rank(self.room[link as usize] / load_of(weight));
            if level <= bound {
                return Some((bound, link));
            }
            *self.heap.peek_mut()? = Reverse((level, link));
        }
    }

    /// Flows of a bundle stop, of this weight, at a level.
    pub(super) fn stop(&mut self, at: u32, bundle: &Bundle, weight: u32, level: f64) {
        match self.keeping {
            Keeping::OnDemand => {
                let last = &mut self.last[at as usize];
                if self.stops.len().is_multiple_of(WORD) {
                    self.is_due.push(0);
                }
                self.stops.push(Stop { weight, before: *last, level });
                self.quanta.push(0);
                *last = self.stops.len() as u32;
            }
            Keeping::UpToDate => {
                for entry in &bundle.entries {
                    let stopped = load(weight, entry.quanta);
                    self.weight[entry.link as usize] -= stopped;
                    self.room[entry.link as usize] -= level * load_of(stopped);
                }
            }
        }
    }

    /// So much weight that is spread stops on each link, at a level.
    pub(super) fn stop_spread(&mut self, stopped: &[u64], level: f64) {
        for ((weight, room), stopped) in self.weight.iter_mut().zip(&mut self.room).zip(stopped) {
            *weight -= stopped;
            *room -= level * load_of(*stopped);
        }
    }

    /// A link is full: what rounding has left of it is nothing.
    pub(super) fn close(&mut self, tier: &Tier, link: u32) {
        self.account(tier, link);
        self.room[link as usize] = 0.0;
    }

    /// Lets all links account for all that has stopped: another tier follows.
    pub(super) fn account_all(&mut self, tier: &Tier) {
        (0..self.room.len() as u32).for_each(|link| self.account(tier, link));
    }

    /// Lets a link account for what has stopped on it.
    fn account(&mut self, tier: &Tier, link: u32) {
        let Self { room, weight, accounted, stops, last, quanta, is_due, .. } = self;
        let known = std::mem::replace(&mut accounted[link as usize], stops.len() as u32);
        if known == stops.len() as u32 {
            return;
        }
        for member in &tier.members[link as usize] {
            let mut stop = last[member.bundle as usize];
            while stop > known {
                let at = stop as usize - 1;
                quanta[at] = member.quanta;
                is_due[at / WORD] |= 1 << (at % WORD);
                stop = stops[at].before;
            }
        }
        let (room, left) = (&mut room[link as usize], &mut weight[link as usize]);
        let first = known as usize / WORD;
        for (word, is_due) in (first..).zip(&mut is_due[first..]) {
            let mut bits = std::mem::take(is_due);
            while bits != 0 {
                let at = word * WORD + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let Stop { weight, level, .. } = stops[at];
                let stopped = load(weight, quanta[at]);
                *left -= stopped;
                *room -= level * load_of(stopped);
            }
        }
    }
}
