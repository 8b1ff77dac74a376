//! The route of a packet, as its source writes it: which port to take at each node.
//!
//! Models: R2C2 §4.2 (claims M34, I12): three bits a hop choose one of at most eight links, 128 bits
//! hold 42 hops. The two bits that are left hold a mark behind the last hop (**our choice**), so that
//! a route in memory needs no length beside it; on the wire the length has a field of its own.

use packets::ROUTE_HOP_BITS as HOP_BITS;
pub use packets::ROUTE_HOPS_MAX as HOPS_MAX;

/// Most links of a node: what a hop can tell apart (§4.2).
pub const LINKS_MAX: u32 = 1 << HOP_BITS;

/// A route: for each hop the port to leave by, counted among those of the node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Route {
    /// Low half first: hop `i` is in bits `3i` to `3i + 2`, and a one follows the last. Two halves,
    /// as one number of 128 bits would have to lie on 16 bytes.
    halves: [u64; 2],
}

impl Route {
    /// The route of a packet that is where it should be.
    pub const EMPTY: Self = Self { halves: [1, 0] };

    /// The route of these hops.
    ///
    /// # Panics
    /// Beyond 42 hops, and if a port is not below 8.
    #[must_use]
    pub fn new(hops: &[u8]) -> Self {
        let mut draft = Draft::default();
        hops.iter().for_each(|&hop| draft.push(hop));
        draft.finish()
    }

    /// The route of `length` hops in these bits, the first hop lowest, as it is on the wire; `None`
    /// if it is too long, or something follows the last hop.
    #[must_use]
    pub const fn from_bits(bits: u128, length: u32) -> Option<Self> {
        if length > HOPS_MAX || bits >> (HOP_BITS * length) != 0 {
            return None;
        }
        Some(Self::marked(bits, length))
    }

    const fn marked(bits: u128, length: u32) -> Self {
        let bits = bits | 1 << (HOP_BITS * length);
        Self { halves: [bits as u64, (bits >> 64) as u64] }
    }

    const fn all(self) -> u128 {
        self.halves[0] as u128 | (self.halves[1] as u128) << 64
    }

    /// The hops without the mark, as they are on the wire.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.all() ^ 1 << (HOP_BITS * self.length())
    }

    /// How many hops.
    #[must_use]
    pub const fn length(self) -> u32 {
        self.all().ilog2() / HOP_BITS
    }

    /// The port to leave by at a hop.
    ///
    /// # Panics
    /// If there is no such hop.
    #[inline]
    #[must_use]
    pub fn hop(self, index: u32) -> u8 {
        assert!(index < self.length(), "hop {index} of {}", self.length());
        (self.all() >> (HOP_BITS * index)) as u8 % LINKS_MAX as u8
    }

    /// The port to leave by now, and the rest of the route; `None` at the destination.
    #[inline]
    #[must_use]
    pub const fn advance(self) -> Option<(u8, Self)> {
        if self.halves[0] == 1 && self.halves[1] == 0 {
            return None;
        }
        let [low, high] = self.halves;
        let rest = Self { halves: [low >> HOP_BITS | high << (64 - HOP_BITS), high >> HOP_BITS] };
        Some(((low % LINKS_MAX as u64) as u8, rest))
    }

    /// The ports, hop by hop.
    pub fn hops(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let (hop, after) = rest.advance()?;
            rest = after;
            Some(hop)
        })
    }
}

/// A route while it is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Draft {
    bits: u128,
    length: u32,
}

impl Draft {
    /// Adds a hop.
    #[inline]
    pub(super) fn push(&mut self, hop: u8) {
        assert!(self.length < HOPS_MAX, "a route of more than {HOPS_MAX} hops");
        assert!(u32::from(hop) < LINKS_MAX, "port {hop} of a node of at most {LINKS_MAX}");
        self.bits |= u128::from(hop) << (HOP_BITS * self.length);
        self.length += 1;
    }

    /// The route.
    #[inline]
    pub(super) fn finish(self) -> Route {
        Route::marked(self.bits, self.length)
    }
}
