//! Announcements of a flow that overtook each other on their way to a node.
//!
//! What a source says of one name is counted, modulo 16. As a rule a node hears it in order and remembers
//! the newest alone; of a flow that is over it remembers nothing. Where something has overtaken others, by
//! another tree or because these were dropped and retransmitted, the node remembers which it has heard until
//! the others have come: a flow whose end came first must not begin when its start follows.

/// Announcements of a name are counted modulo this: their numbers have four bits.
pub const MODULUS: u8 = 16;

/// Whether `a` was counted after `b`.
#[must_use]
pub fn is_newer(a: u8, b: u8) -> bool {
    (1..MODULUS / 2).contains(&(a.wrapping_sub(b) % MODULUS))
}

/// What a node has heard of a name while something is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// A bit for each number that was heard, from the last that nothing is missing before.
    heard: u16,
    /// Of those, the ends of flows.
    ends: u16,
    /// The last number of a flow of which all before was heard, from its start on, whichever number that had.
    solid: Option<u8>,
    /// The last number before which nothing is missing, if it is known.
    base: Option<u8>,
    /// The newest that was heard.
    newest: u8,
}

/// What a further announcement changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// It is the newest now.
    pub is_newest: bool,
    /// Nothing is missing any more.
    pub is_complete: bool,
}

impl Late {
    /// All up to `number` has been heard.
    #[must_use]
    pub fn after(number: u8) -> Self {
        let solid = Some(number);
        Self { heard: 1 << number, ends: 0, solid, base: Some(number), newest: number }
    }

    /// Announcement `number` is the first that is heard, and is not that of a start; whether it is that of an
    /// end.
    #[must_use]
    pub fn without_start(number: u8, is_end: bool) -> Self {
        let ends = u16::from(is_end) << number;
        Self { heard: 1 << number, ends, solid: None, base: None, newest: number }
    }

    /// Announcement `number` is heard, once; whether it is that of a start, before which there is nothing
    /// to be heard of this flow, or of an end, after which there is not.
    pub fn hear(&mut self, number: u8, is_start: bool, is_end: bool) -> Change {
        let is_newest = is_newer(number, self.newest);
        if !is_newest && self.heard >> number & 1 == 1 {
            return Change { is_newest: false, is_complete: false };
        }
        let oldest = self.oldest();
        if is_start && is_newer(oldest, number) {
            self.base = Some(number);
        } else if self.base.is_some_and(|base| is_newer(base, number)) {
            // Of a flow before, of which more will follow.
            self.base = None;
        }
        self.heard |= 1 << number;
        self.ends = self.ends & !(1 << number) | u16::from(is_end) << number;
        if is_newest {
            self.newest = number;
            self.slide();
        }
        while let Some(base) = self.base.filter(|&base| base != self.newest) {
            let next = (base + 1) % MODULUS;
            let is_end = self.ends >> base & 1 == 1;
            let next = match self.solid {
                _ if self.heard >> next & 1 == 1 => next,
                // What follows an end is the start of the flow that was heard from its start on.
                Some(solid) if is_end && is_newer(solid, base) => solid,
                _ => break,
            };
            self.heard &= !(1 << base);
            self.base = Some(next);
        }
        Change { is_newest, is_complete: self.base == Some(self.newest) }
    }

    /// The oldest that was heard.
    fn oldest(&self) -> u8 {
        let back = |by: &u8| self.heard >> (self.newest.wrapping_sub(*by) % MODULUS) & 1 == 1;
        let by = (0..MODULUS / 2).rev().find(back).unwrap_or(0);
        self.newest.wrapping_sub(by) % MODULUS
    }

    /// What is as far behind as numbers can tell will not come any more.
    fn slide(&mut self) {
        let recent = (0..MODULUS / 2).map(|by| 1 << (self.newest.wrapping_sub(by) % MODULUS));
        let kept = self.heard & recent.fold(0u16, |all, bit| all | bit);
        if kept != self.heard {
            self.heard = kept;
            self.base = Some(self.oldest());
            self.solid = self.solid.filter(|&solid| kept >> solid & 1 == 1);
        }
    }
}
