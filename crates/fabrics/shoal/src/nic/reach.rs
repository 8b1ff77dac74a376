//! What nodes know of who reaches whom, and how they tell each other (§3.5).
//!
//! A node that misses a cell gives its sender up: it uses the pair no more, and says so in the cells that it
//! goes on sending there, whose *marks* are header bits that a cell without data does not need. The peer
//! sees the mark, or misses cells itself, and gives up in its turn. It tells all other nodes whom it does not
//! reach, in the next cell to each, instead of payload ([`crate::wire::Notice`]).
//!
//! Taking a pair up again is our choice, as the paper is silent: the handshake of BFD (RFC 5880, §6.2), with a
//! hold-down. Who has heard marked cells without a break for long enough says that it *trusts* the peer; who
//! trusts the peer and hears that it is trusted, or sees a cell without marks, uses the pair again. It sends
//! nothing but cells without marks until the peer has shown that it uses the pair as well: what is damaged
//! before that would not be reported. A pair that works one way only stays as it is, with one side that trusts
//! the other.
//!
//! Cells that say what the last one said are not simulated. What a node has to say anew is a bit a pair.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kernel::{Bitmap, Slab};

use crate::cell::{Cargo, Frame};
use crate::schedule::Schedule;
use crate::wire::{Notice, notice_words};

use super::{Bank, Now};

/// Nodes in a word.
const WORD: u32 = u64::BITS;
/// The most segments of a row: a bit each. Where cells are so short that a row takes more, notices are longer
/// than cells; as bytes such racks are refused.
const SEGMENTS_MAX: u32 = 16;
/// No notice.
const NONE: u32 = u32::MAX;

/// A pair of nodes at the one that has given the other up.
#[derive(Clone, Copy, Debug)]
struct Parted {
    since: u64,
    /// Since which slot marked cells have come from the peer without a break, if they do.
    heard: Option<u64>,
    /// They have for long enough; and the peer says the same of the cells from here.
    trusts: bool,
    is_trusted: bool,
    /// Since which slot no other way to the peer is known, if none is.
    pathless: Option<u64>,
}

/// What [`Reach::ways`] has of a pair that is in use, and of one to whose peer no other way is known.
const IN_USE: u16 = u16::MAX;
const NO_WAY: u16 = u16::MAX - 1;

/// Segments of what nodes say, each as often in use as it is on its way or known to a node.
#[derive(Clone, Debug, Default)]
struct Notices(Slab<(u32, Option<Notice>)>);

impl Notices {
    fn put(&mut self, notice: Notice) -> u32 {
        self.0.insert((1, Some(notice)))
    }

    fn get(&self, handle: u32) -> Option<&Notice> {
        self.0.get(handle as usize)?.1.as_ref()
    }

    fn hold(&mut self, handle: u32) -> u32 {
        self.0[handle as usize].0 += 1;
        handle
    }

    fn release(&mut self, handle: u32) {
        let Some((uses, notice)) = self.0.get_mut(handle as usize) else { return };
        *uses -= 1;
        if *uses == 0 {
            *notice = None;
            self.0.release(handle);
        }
    }
}

/// What the nodes of a bank know of who reaches whom.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    nodes: u32,
    first: u32,
    /// Words of a row in a notice, and notices that tell a whole row.
    words: u32,
    segments: u32,
    /// `[node * nodes + peer]`, nodes from the first, as all below: the node has given the peer up.
    down: Bitmap,
    /// The next cell has to be sent: its marks are others than those of the last one.
    marks: Bitmap,
    /// There is something to tell the peer, and in how many places.
    tells: Bitmap,
    pending: u64,
    parted: BTreeMap<(u32, u32), Parted>,
    /// The node by way of which a peer can be reached that is given up, or [`NO_WAY`]; else [`IN_USE`]. Apart from
    /// the rest, as each notice is held against it.
    ways: Vec<u16>,
    /// Pairs that a node uses again whose peer may not know yet: they carry nothing until it does.
    awaited: BTreeSet<(u32, u32)>,
    /// Whom each node does not reach, a bit a node. Empty until there is somebody; so are [`Reach::ways`] and the
    /// next three.
    rows: Vec<u64>,
    /// Segments of its row that a node has still to tell the peer, a bit each.
    untold: Vec<u16>,
    /// `[(node * nodes + peer) * segments + segment]`: what the peer told.
    heard: Vec<u32>,
    /// `[peer * segments + segment]`: what was told here last: most nodes are told the same.
    latest: Vec<u32>,
    notices: Notices,
    /// How often each node has come back.
    lives: Vec<u32>,
    /// Slot by which all that was told has arrived, and what of it was damaged is pending again.
    told_until: u64,
    /// A node knows of no path to another any more since this was last asked.
    has_pathless: bool,
}

impl Reach {
    pub(super) fn new(own: Range<u32>, nodes: u32, payload: usize) -> Self {
        let words = nodes.div_ceil(WORD);
        let fit = (notice_words(payload) as u32).max(words.div_ceil(SEGMENTS_MAX)).min(words);
        let pairs = own.len() * nodes as usize;
        Self {
            nodes,
            first: own.start,
            words: fit,
            segments: words.div_ceil(fit),
            down: Bitmap::new(pairs),
            marks: Bitmap::new(pairs),
            tells: Bitmap::new(pairs),
            pending: 0,
            parted: BTreeMap::new(),
            ways: Vec::new(),
            awaited: BTreeSet::new(),
            rows: Vec::new(),
            untold: Vec::new(),
            heard: Vec::new(),
            latest: Vec::new(),
            notices: Notices::default(),
            lives: vec![0; own.len()],
            told_until: 0,
            has_pathless: false,
        }
    }

    /// The same of nodes that have not parted yet under a new schedule.
    pub(super) fn begin_anew(self, payload: usize) -> Self {
        let own = self.first..self.first + self.own();
        let Self { lives, mut notices, heard, latest, .. } = self;
        // Some are on their way yet.
        heard.into_iter().chain(latest).for_each(|handle| notices.release(handle));
        Self { lives, notices, ..Self::new(own, self.nodes, payload) }
    }

    /// How many nodes are here.
    pub(super) fn own(&self) -> u32 {
        self.lives.len() as u32
    }

    #[inline]
    fn pair(&self, node: u32, peer: u32) -> usize {
        (node - self.first) as usize * self.nodes as usize + peer as usize
    }

    fn heard_at(&self, node: u32, peer: u32, segment: u32) -> usize {
        self.pair(node, peer) * self.segments as usize + segment as usize
    }

    /// Words of a row.
    fn row_words(&self) -> usize {
        self.nodes.div_ceil(WORD) as usize
    }

    /// Makes room for what only racks need in which something fails.
    fn grow(&mut self) {
        if self.rows.is_empty() {
            let (own, nodes) = (self.lives.len(), self.nodes as usize);
            self.rows = vec![0; own * self.row_words()];
            self.ways = vec![IN_USE; own * nodes];
            self.untold = vec![0; own * nodes];
            self.heard = vec![NONE; own * nodes * self.segments as usize];
            self.latest = vec![NONE; nodes * self.segments as usize];
        }
    }

    fn all_segments(&self) -> u16 {
        u16::MAX >> (SEGMENTS_MAX - self.segments)
    }

    /// The segment and the bit in it that a node is told of with.
    fn place(&self, node: u32) -> (u32, u32) {
        let span = self.words * WORD;
        (node / span, node % span)
    }

    /// Whether `relay` told `node` that it does not reach `destination`.
    #[inline]
    fn is_lost(&self, node: u32, relay: u32, destination: u32) -> bool {
        if self.heard.is_empty() {
            return false;
        }
        let (segment, bit) = self.place(destination);
        let handle = self.heard[self.heard_at(node, relay, segment)];
        let notice = self.notices.get(handle);
        notice.is_some_and(|n| n.unreached[(bit / WORD) as usize] >> (bit % WORD) & 1 == 1)
    }

    /// Whether a node uses a pair again, and the peer may not know yet.
    #[inline]
    fn is_awaited(&self, node: u32, peer: u32) -> bool {
        !self.awaited.is_empty() && self.awaited.contains(&(node, peer))
    }

    /// Notes whether there is something to tell the peer, and says so.
    fn refresh(&mut self, node: u32, peer: u32) -> bool {
        let pair = self.pair(node, peer);
        let has_row = self.untold.get(pair).is_some_and(|&bits| bits != 0)
            && !self.down.get(pair)
            && !self.is_awaited(node, peer);
        let tells = self.marks.get(pair) || has_row;
        let before = self.tells.replace(pair, tells);
        self.pending = self.pending + u64::from(tells) - u64::from(before);
        tells
    }

    /// A node does not reach the peer any more, or does again: all are to be told.
    fn set_row(&mut self, node: u32, peer: u32, is_lost: bool) {
        self.grow();
        let word = (node - self.first) as usize * self.row_words() + (peer / WORD) as usize;
        let bit = 1 << (peer % WORD);
        self.rows[word] = self.rows[word] & !bit | if is_lost { bit } else { 0 };
        let segment = 1 << self.place(peer).0;
        let first = self.pair(node, 0);
        self.untold[first..first + self.nodes as usize]
            .iter_mut()
            .for_each(|bits| *bits |= segment);
    }

    /// What a node says in a segment.
    fn say(&mut self, node: u32, segment: u32) -> u32 {
        let row = (node - self.first) as usize * self.row_words();
        let from = (segment * self.words) as usize;
        let to = (from + self.words as usize).min(self.row_words());
        let mut unreached = self.rows[row + from..row + to].to_vec();
        unreached.resize(self.words as usize, 0);
        self.intern(node, Notice { segment: segment as u8, unreached })
    }

    /// A handle of what a node says: another use of the last, if it said the same.
    fn intern(&mut self, from: u32, notice: Notice) -> u32 {
        self.grow();
        let at = (from * self.segments) as usize + usize::from(notice.segment);
        let latest = self.latest[at];
        if self.notices.get(latest) == Some(&notice) {
            return self.notices.hold(latest);
        }
        self.notices.release(latest);
        let handle = self.notices.put(notice);
        self.latest[at] = self.notices.hold(handle);
        handle
    }

    /// A node forgets what the peer told.
    fn forget(&mut self, node: u32, peer: u32) {
        if self.heard.is_empty() {
            return;
        }
        for segment in 0..self.segments {
            let at = self.heard_at(node, peer, segment);
            let handle = std::mem::replace(&mut self.heard[at], NONE);
            self.notices.release(handle);
        }
    }

    /// Looks for another way from a node to one that it has given up.
    fn find_way(&mut self, (node, to): (u32, u32), slot: u64, schedule: &Schedule) {
        let start = match self.ways[self.pair(node, to)] {
            IN_USE => return,
            NO_WAY => node,
            way => u32::from(way),
        };
        let mut others = (start + 1..self.nodes).chain(0..=start);
        let leads = |&relay: &u32| {
            relay != node
                && relay != to
                && schedule.contains(relay)
                && !self.down.get(self.pair(node, relay))
                && !self.is_lost(node, relay, to)
        };
        match others.find(leads) {
            Some(relay) => self.take_way(node, to, relay),
            None => self.lose_ways(node, to, slot),
        }
    }

    /// Notes by way of whom a node reaches one that it has given up.
    fn take_way(&mut self, node: u32, to: u32, relay: u32) {
        let pair = self.pair(node, to);
        if std::mem::replace(&mut self.ways[pair], relay as u16) == NO_WAY {
            self.parted_mut(node, to).pathless = None;
        }
    }

    /// Notes that a node knows of no way to one that it has given up.
    fn lose_ways(&mut self, node: u32, to: u32, slot: u64) {
        let pair = self.pair(node, to);
        if std::mem::replace(&mut self.ways[pair], NO_WAY) != NO_WAY {
            self.parted_mut(node, to).pathless = Some(slot);
            self.has_pathless = true;
        }
    }

    fn parted_mut(&mut self, node: u32, to: u32) -> &mut Parted {
        self.parted.get_mut(&(node, to)).expect("a pair with a way has parted")
    }

    /// The nodes that `node` has given up.
    fn parted_from(&self, node: u32) -> Vec<u32> {
        self.parted.range((node, 0)..(node + 1, 0)).map(|(&(_, peer), _)| peer).collect()
    }

    /// The nodes that `node` has given up and reaches this way.
    fn reached_by(&self, node: u32, way: u16) -> Vec<u32> {
        let first = self.pair(node, 0);
        let ways = self.ways[first..first + self.nodes as usize].iter();
        (0..).zip(ways).filter(|&(_, &one)| one == way).map(|(peer, _)| peer).collect()
    }

    /// A node gives a peer up.
    fn part(&mut self, node: u32, peer: u32, slot: u64, schedule: &Schedule) {
        let pair = self.pair(node, peer);
        self.down.set(pair);
        self.marks.set(pair);
        self.awaited.remove(&(node, peer));
        self.forget(node, peer);
        self.set_row(node, peer, true);
        self.parted.insert((node, peer), Parted::new(slot));
        // The search for a way begins behind the node itself.
        self.ways[pair] = node as u16;
        self.find_way((node, peer), slot, schedule);
        for to in self.reached_by(node, peer as u16) {
            self.find_way((node, to), slot, schedule);
        }
    }

    /// A node uses a peer again.
    fn join(&mut self, node: u32, peer: u32) {
        let pair = self.pair(node, peer);
        self.down.clear(pair);
        self.marks.set(pair);
        self.parted.remove(&(node, peer));
        self.set_row(node, peer, false);
        self.untold[pair] = self.all_segments();
        self.ways[pair] = IN_USE;
        // Until it says otherwise it reaches all.
        for to in self.reached_by(node, NO_WAY) {
            self.take_way(node, to, peer);
        }
    }

    /// A node hears what a peer says.
    fn learn(&mut self, (node, peer): (u32, u32), handle: u32, slot: u64, schedule: &Schedule) {
        let Some(notice) = self.notices.get(handle) else { return };
        let segment = u32::from(notice.segment);
        if segment >= self.segments {
            return self.notices.release(handle);
        }
        let at = self.heard_at(node, peer, segment);
        let old = std::mem::replace(&mut self.heard[at], handle);
        let mut changed = Vec::new();
        if old != handle {
            let notice = self.notices.get(handle).expect("it is there");
            let before = self.notices.get(old).map_or(&[][..], |notice| &notice.unreached);
            let before = before.iter().copied().chain(std::iter::repeat(0));
            for (word, (&now, before)) in (0..).zip(notice.unreached.iter().zip(before)) {
                let mut bits = now ^ before;
                while bits != 0 {
                    let bit = bits.trailing_zeros();
                    bits &= bits - 1;
                    let subject = (segment * self.words + word) * WORD + bit;
                    changed.push((subject, now >> bit & 1 == 1));
                }
            }
        }
        self.notices.release(old);
        // What comes as bytes may say something of nodes that there are not.
        changed.retain(|&(subject, _)| subject < self.nodes);
        for (subject, is_lost) in changed {
            match self.ways.get(self.pair(node, subject)) {
                Some(&way) if is_lost && u32::from(way) == peer => {
                    self.find_way((node, subject), slot, schedule);
                }
                Some(&NO_WAY) if !is_lost => self.take_way(node, subject, peer),
                _ => {}
            }
        }
    }
}

impl Parted {
    fn new(since: u64) -> Self {
        Self { since, heard: None, trusts: false, is_trusted: false, pathless: None }
    }
}

impl Bank {
    fn reach(&self) -> &Reach {
        &self.loss().reach
    }

    fn reach_mut(&mut self) -> &mut Reach {
        &mut self.loss_mut().reach
    }

    /// The reach and the schedule.
    fn reach_parts(&mut self) -> (&mut Reach, &Schedule) {
        let Self { loss, schedule, .. } = self;
        (&mut loss.as_mut().expect(super::loss::HAS_LOSS).reach, schedule)
    }

    /// Whether `node` has given up `peer`.
    #[inline]
    pub(crate) fn is_down(&self, node: u32, peer: u32) -> bool {
        let reach = self.reach();
        reach.down.get(reach.pair(node, peer))
    }

    /// Since which slot a node has given another up, if it has.
    pub(crate) fn down_since(&self, node: u32, peer: u32) -> Option<u64> {
        self.reach().parted.get(&(node, peer)).map(|parted| parted.since)
    }

    /// Whether `node` has heard that `relay` cannot reach `destination` (§3.5 ii), and not yet that it
    /// can again.
    #[inline]
    pub(crate) fn is_blocked(&self, node: u32, relay: u32, destination: u32) -> bool {
        self.reach().is_lost(node, relay, destination)
    }

    /// Since which slot `from` knows of no path to `to`, neither straight nor by way of one other node;
    /// none if it knows one.
    pub(crate) fn pathless_since(&self, from: u32, to: u32) -> Option<u64> {
        if !self.schedule.contains(from) || !self.schedule.contains(to) {
            return Some(0);
        }
        self.reach().parted.get(&(from, to))?.pathless
    }

    /// Whether a node has lost the last path that it knew to another, since this was last asked.
    pub(crate) fn take_pathless(&mut self) -> bool {
        std::mem::take(&mut self.reach_mut().has_pathless)
    }

    /// Whether the next cell of `node` to `peer` has to be sent, as it says something new.
    #[inline]
    pub(super) fn tells(&self, node: u32, peer: u32) -> bool {
        let reach = self.reach();
        reach.tells.get(reach.pair(node, peer))
    }

    /// Whether the cells of `node` to `peer` carry no payload now.
    #[inline]
    pub(super) fn is_muted(&self, node: u32, peer: u32, now: Now) -> bool {
        let (reach, loss) = (self.reach(), self.loss());
        let pair = reach.pair(node, peer);
        reach.tells.get(pair)
            || reach.down.get(pair)
            || loss.quiet_until > now.slot
            || reach.is_awaited(node, peer)
    }

    /// Whether anything of what nodes know of each other is still to be told, or on its way.
    pub(crate) fn is_telling(&self, slot: u64) -> bool {
        self.reach().pending > 0 || self.reach().told_until > slot
    }

    /// By this slot nodes know what has become of something new that one tells another.
    pub(crate) fn note_told(&mut self, settled: u64) {
        let until = &mut self.reach_mut().told_until;
        *until = settled.max(*until);
    }

    fn refresh(&mut self, node: u32, peer: u32) {
        if self.schedule.contains(node)
            && self.schedule.contains(peer)
            && self.reach_mut().refresh(node, peer)
        {
            self.set_busy(self.schedule.position(node, peer), node);
        }
    }

    fn refresh_all(&mut self, node: u32) {
        for peer in (0..self.nodes).filter(|&peer| peer != node) {
            self.refresh(node, peer);
        }
    }

    /// The next cell to a peer shows its marks, whatever the last one did.
    pub(crate) fn show_marks(&mut self, node: u32, peer: u32) {
        let reach = self.reach_mut();
        let pair = reach.pair(node, peer);
        reach.marks.set(pair);
        self.refresh(node, peer);
    }

    /// Puts what its node has to tell into a frame without data; gives what is kept of that until the frame
    /// is known to have arrived.
    pub(super) fn tell(&mut self, frame: &mut Frame) -> Cargo {
        let (node, peer) = (u32::from(frame.from), u32::from(frame.to));
        let reach = self.reach_mut();
        let pair = reach.pair(node, peer);
        let is_awaited = reach.is_awaited(node, peer);
        let mut kept = Cargo::EMPTY;
        if reach.down.get(pair) {
            self.mark(frame);
        } else if is_awaited {
            frame.flags |= Frame::SHOWN;
        } else if let Some(untold) = reach.untold.get_mut(pair).filter(|all| **all != 0) {
            let segment = untold.trailing_zeros();
            *untold &= *untold - 1;
            frame.payload = reach.say(node, segment);
            frame.flags |= Frame::NOTICE;
            kept.payload = segment + 1;
        } else {
            frame.flags |= Frame::SHOWN;
        }
        let reach = self.reach_mut();
        reach.marks.clear(pair);
        reach.refresh(node, peer);
        kept
    }

    /// Marks a frame without data as one of a pair that is not in use, if it is.
    pub(crate) fn mark(&self, frame: &mut Frame) {
        let (node, peer) = (u32::from(frame.from), u32::from(frame.to));
        if let Some(parted) = self.reach().parted.get(&(node, peer)) {
            frame.flags |= Frame::PARTED | if parted.trusts { Frame::TRUSTS } else { 0 };
            frame.payload = self.life(node);
        }
    }

    /// A notice did not arrive: it is told again, as things are then.
    pub(super) fn tell_again(&mut self, node: u32, peer: u32, kept: u32) {
        let Some(segment) = kept.checked_sub(1) else { return };
        let reach = self.reach_mut();
        let pair = reach.pair(node, peer);
        if let Some(untold) = reach.untold.get_mut(pair) {
            *untold |= 1 << segment;
        }
        self.refresh(node, peer);
    }

    /// A node gives a peer up; what it had to do with it is another matter.
    pub(super) fn part(&mut self, node: u32, peer: u32, slot: u64) {
        let (reach, schedule) = self.reach_parts();
        reach.part(node, peer, slot, schedule);
        self.refresh_all(node);
    }

    /// A node uses a peer again, and tells the others.
    pub(crate) fn join(&mut self, node: u32, peer: u32) {
        self.reach_mut().join(node, peer);
        self.refresh_all(node);
    }

    /// A node misses a cell of a peer that it has given up.
    pub(crate) fn miss(&mut self, node: u32, peer: u32) {
        let Some(parted) = self.reach_mut().parted.get_mut(&(node, peer)) else { return };
        (parted.heard, parted.is_trusted) = (None, false);
        if std::mem::take(&mut parted.trusts) {
            self.show_marks(node, peer);
        }
    }

    /// A node sees marks on a cell of a peer that it has given up: whether they are the first, and whether
    /// the pair can be used again.
    pub(crate) fn see_marks(
        &mut self,
        (node, peer): (u32, u32),
        is_trusted: bool,
        slot: u64,
    ) -> (bool, bool) {
        let parted = self.reach_mut().parted.get_mut(&(node, peer)).expect("they have parted");
        let is_first = parted.heard.is_none();
        parted.heard.get_or_insert(slot);
        parted.is_trusted = is_trusted;
        let both = is_trusted && parted.trusts;
        if both {
            self.reach_mut().awaited.insert((node, peer));
        }
        (is_first, both)
    }

    /// A node sees a cell without marks.
    #[inline]
    pub(crate) fn see_no_marks(&mut self, node: u32, peer: u32) {
        if self.reach().is_awaited(node, peer) {
            self.reach_mut().awaited.remove(&(node, peer));
            self.refresh(node, peer);
        }
    }

    /// Whether a node uses a pair again, and the peer may not know yet.
    pub(crate) fn awaits(&self, node: u32, peer: u32) -> bool {
        self.reach().is_awaited(node, peer)
    }

    /// Whether a node trusts a peer that it has given up.
    pub(crate) fn trusts(&self, node: u32, peer: u32) -> bool {
        self.reach().parted.get(&(node, peer)).is_some_and(|parted| parted.trusts)
    }

    /// A node trusts a peer if it has heard it since this slot without a break. Whether the pair can be used
    /// again.
    pub(crate) fn trust(&mut self, node: u32, peer: u32, since: u64) -> bool {
        let Some(parted) = self.reach_mut().parted.get_mut(&(node, peer)) else { return false };
        if parted.trusts || parted.heard.is_none_or(|heard| heard > since) {
            return false;
        }
        parted.trusts = true;
        let is_trusted = parted.is_trusted;
        if is_trusted {
            self.reach_mut().awaited.insert((node, peer));
        }
        self.show_marks(node, peer);
        is_trusted
    }

    /// A node hears what a peer does not reach.
    pub(crate) fn learn(&mut self, node: u32, peer: u32, handle: u32, now: Now) {
        let (reach, schedule) = self.reach_parts();
        reach.learn((node, peer), handle, now.slot, schedule);
    }

    /// A notice is gone.
    pub(crate) fn drop_notice(&mut self, handle: u32) {
        self.reach_mut().notices.release(handle);
    }

    /// Takes a notice out to a node elsewhere.
    pub(crate) fn take_notice(&mut self, handle: u32) -> Option<Notice> {
        let notices = &mut self.reach_mut().notices;
        let notice = notices.get(handle).cloned();
        notices.release(handle);
        notice
    }

    /// Puts in a notice from elsewhere, if it is one of this rack.
    pub(crate) fn put_notice(&mut self, from: u32, mut notice: Notice) -> Option<u32> {
        let reach = self.reach_mut();
        // A cell has room for more than a small rack needs.
        let words = reach.words as usize;
        let rest = notice.unreached.get(words..)?;
        let is_sound = u32::from(notice.segment) < reach.segments && rest.iter().all(|&w| w == 0);
        notice.unreached.truncate(words);
        is_sound.then(|| reach.intern(from, notice))
    }

    /// How often a node has come back.
    pub(crate) fn life(&self, node: u32) -> u32 {
        self.reach().lives[self.own(node)]
    }

    /// A node dies and forgets all. If it comes back it reaches no other node at first, and says so.
    pub(super) fn forget_reach(&mut self, node: u32, slot: u64) {
        for peer in (0..self.nodes).filter(|&peer| peer != node) {
            if !self.schedule.contains(node) || !self.schedule.contains(peer) {
                continue;
            }
            let reach = self.reach_mut();
            let pair = reach.pair(node, peer);
            reach.down.set(pair);
            reach.awaited.remove(&(node, peer));
            reach.forget(node, peer);
            reach.set_row(node, peer, true);
            let parted = Parted { pathless: Some(slot), ..Parted::new(slot) };
            reach.parted.insert((node, peer), parted);
            reach.ways[pair] = NO_WAY;
        }
    }

    /// A node is back.
    pub(crate) fn be_born(&mut self, node: u32, slot: u64) {
        let own = self.own(node);
        let reach = self.reach_mut();
        reach.lives[own] = reach.lives[own].wrapping_add(1);
        for (_, parted) in reach.parted.range_mut((node, 0)..(node + 1, 0)) {
            *parted = Parted { pathless: Some(slot), ..Parted::new(slot) };
        }
        let (first, nodes) = (reach.pair(node, 0), reach.nodes as usize);
        let ways = reach.ways.iter_mut().skip(first).take(nodes);
        ways.filter(|way| **way != IN_USE).for_each(|way| *way = NO_WAY);
        reach.has_pathless = true;
        for peer in reach.parted_from(node) {
            self.show_marks(node, peer);
        }
    }
}
