//! Frames on their way through the fabric.

use kernel::select;

use crate::cell::Frame;

/// What a frame is to its receiver. Each kind takes a path of its own there, and frames come as good
/// as at random: sorted when they leave, each path is a loop without branches that are mispredicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// An empty cell that reports on a queue.
    Report,
    /// A cell to be relayed.
    Relay,
    /// A cell for the receiver itself.
    Deliver,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Report, Kind::Relay, Kind::Deliver];
}

/// The frames that arrive on one channel in one slot, in the order in which they left, by kind; and a list
/// of those that say nothing, which is not read. A node hears one frame a channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists([Vec<Frame>; Kind::ALL.len() + 1]);

impl Lists {
    /// Adds a frame, if it matters.
    #[inline]
    pub(crate) fn push(&mut self, frame: &Frame, matters: bool) {
        self.0[select(matters, frame.kind(), Kind::ALL.len())].push(*frame);
    }

    /// The frames of a kind.
    #[inline]
    pub(crate) fn of(&self, kind: Kind) -> &[Frame] {
        &self.0[kind as usize]
    }

    /// The frames of all kinds.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Frame> {
        self.0[..Kind::ALL.len()].iter().flatten()
    }

    /// How many frames of a kind there are.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.of(kind).len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0[..Kind::ALL.len()].iter().all(Vec::is_empty)
    }

    /// Forgets the frames that say nothing.
    pub(crate) fn forget_silent(&mut self) {
        self.0[Kind::ALL.len()].clear();
    }
}

impl Frame {
    /// What it is to its receiver: the number of its kind.
    #[inline]
    fn kind(&self) -> usize {
        let carries = !self.cell.is_empty();
        let ends = carries & (self.cell.destination() == u32::from(self.to));
        usize::from(carries) + usize::from(ends)
    }
}

/// The frames that arrive in one slot, by channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals(Vec<Lists>);

impl Arrivals {
    /// The frames on a channel.
    #[inline]
    pub(crate) fn on(&self, channel: u32) -> &Lists {
        &self.0[channel as usize]
    }

    /// The frames on a channel.
    #[inline]
    pub(crate) fn on_mut(&mut self, channel: u32) -> &mut Lists {
        &mut self.0[channel as usize]
    }

    fn len(&self) -> usize {
        self.0
            .iter()
            .map(|lists| Kind::ALL.iter().map(|&kind| lists.count(kind)).sum::<usize>())
            .sum()
    }

    fn clear(&mut self) {
        self.0.iter_mut().for_each(|lists| lists.0.iter_mut().for_each(Vec::clear));
    }
}

/// Frames by the slot in which they arrive.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// By slot of arrival modulo its length.
    slots: Vec<Arrivals>,
    count: u64,
}

impl Flight {
    /// An empty fabric of so many channels that takes `delay` slots to cross.
    pub(crate) fn new(delay: u32, channels: u32) -> Self {
        let arrivals = Arrivals(vec![Lists::default(); channels as usize]);
        Self { slots: vec![arrivals; delay as usize + 1], count: 0 }
    }

    /// Puts in a frame that arrives in `slot` on a channel.
    pub(crate) fn add(&mut self, slot: u64, channel: u32, frame: Frame) {
        self.count += 1;
        self.at(slot).on_mut(channel).push(&frame, true);
    }

    /// Takes out what arrives in `slot`.
    pub(crate) fn take(&mut self, slot: u64) -> Arrivals {
        let arrivals = std::mem::take(self.at(slot));
        self.count -= arrivals.len() as u64;
        arrivals
    }

    /// Puts in what arrives in `slot`.
    pub(crate) fn put(&mut self, slot: u64, arrivals: Arrivals) {
        self.count += arrivals.len() as u64;
        *self.at(slot) = arrivals;
    }

    /// Gives back what [`Flight::take`] took, for its memory.
    pub(crate) fn reuse(&mut self, slot: u64, mut arrivals: Arrivals) {
        arrivals.clear();
        *self.at(slot) = arrivals;
    }

    fn at(&mut self, slot: u64) -> &mut Arrivals {
        let index = slot % self.slots.len() as u64;
        &mut self.slots[index as usize]
    }

    /// How many frames arrive in `slot`, so far.
    pub(crate) fn count_at(&self, slot: u64) -> usize {
        self.slots[(slot % self.slots.len() as u64) as usize].len()
    }

    /// The first slot from `from` on in which a frame arrives.
    pub(crate) fn first_from(&self, from: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        (from..from + self.slots.len() as u64).find(|&slot| self.count_at(slot) > 0)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Drops what is under way.
    pub(crate) fn clear(&mut self) {
        self.slots.iter_mut().for_each(Arrivals::clear);
        self.count = 0;
    }
}
