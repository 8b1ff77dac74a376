//! Credits of one virtual channel of a link, at both its ends.
//!
//! Models: Aquila §3.1 (M212, M213, M216): a receiver grants space, and a sender starts a cell only if there is
//! enough for all of it. **Our choice**, after PCI Express: both ends count everything they ever granted or
//! used, modulo 4096, in units of 16 bytes, and an update says the whole number. So one that is lost is made
//! good by the next. A cell that is lost has used what nobody frees: now and then the sender says what it has
//! used in all, in order with its cells, and the receiver counts what never came as freed.
//!
//! When to send updates is the engine's: see [`UPDATE_UNITS`].

/// What is counted. Unit: bytes.
pub const UNIT_BYTES: u16 = 16;
/// All counts are modulo this.
pub const MODULUS: u16 = 1 << 12;
/// More than this ahead is behind.
const HALF: u16 = MODULUS / 2;
/// Most units of a buffer, so that what is ahead is never taken for behind.
pub const UNITS_MAX: u16 = HALF - 1;
/// An update is due when as many units were freed since the last (M213, our choice: 320 bytes).
pub const UPDATE_UNITS: u16 = 20;

/// Units that a cell takes.
#[inline]
#[must_use]
pub const fn units(bytes: u8) -> u16 {
    (bytes as u16).div_ceil(UNIT_BYTES)
}

/// `a - b`, modulo 4096.
#[inline]
const fn minus(a: u16, b: u16) -> u16 {
    a.wrapping_sub(b) % MODULUS
}

/// The end that sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sender {
    /// What the receiver has ever granted, as far as is known here.
    limit: u16,
    /// What was ever used.
    consumed: u16,
}

impl Sender {
    /// One that has heard of no credit yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { limit: 0, consumed: 0 }
    }

    /// Units that it may use now.
    #[inline]
    #[must_use]
    pub const fn credit(&self) -> u16 {
        minus(self.limit, self.consumed)
    }

    /// Whether a whole cell of `units` may be started.
    #[inline]
    #[must_use]
    pub const fn can_send(&self, units: u16) -> bool {
        units <= self.credit()
    }

    /// A cell goes out.
    ///
    /// # Panics
    /// In debug builds, if there is not enough credit (I01).
    #[inline]
    pub fn send(&mut self, units: u16) {
        debug_assert!(self.can_send(units), "{units} units with a credit of {}", self.credit());
        self.consumed = (self.consumed + units) % MODULUS;
    }

    /// An update is there. One that says less than is known is late or doubled, and says nothing.
    #[inline]
    pub fn update(&mut self, limit: u16) {
        let limit = limit % MODULUS;
        if minus(limit, self.limit) < HALF {
            self.limit = limit;
        }
    }

    /// What it has used in all, to be sent in order with cells (M216).
    #[inline]
    #[must_use]
    pub const fn consumed(&self) -> u16 {
        self.consumed
    }
}

/// More came than was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overrun;

/// The end that receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receiver {
    /// What was ever granted: the buffer, and what was freed or lost.
    granted: u16,
    /// What ever came, or was lost.
    received: u16,
    /// What the sender was told last.
    advertised: u16,
}

impl Receiver {
    /// One with a buffer of `units`, of which nothing has been said yet.
    ///
    /// # Panics
    /// If a count cannot say that many.
    #[must_use]
    pub fn new(units: u16) -> Self {
        assert!(units <= UNITS_MAX, "a buffer of {units} units; expected {UNITS_MAX} at the most");
        Self { granted: units, received: 0, advertised: 0 }
    }

    /// A cell of `units` is there, with an intact header.
    ///
    /// # Errors
    /// There is no space for it: the other end does not keep to the rules.
    #[inline]
    pub fn receive(&mut self, units: u16) -> Result<(), Overrun> {
        if units > minus(self.granted, self.received) {
            return Err(Overrun);
        }
        self.received = (self.received + units) % MODULUS;
        Ok(())
    }

    /// A cell of `units` has left the buffer.
    #[inline]
    pub fn free(&mut self, units: u16) {
        self.granted = (self.granted + units) % MODULUS;
    }

    /// Units that were freed since the sender was told last.
    #[inline]
    #[must_use]
    pub const fn unsaid(&self) -> u16 {
        minus(self.granted, self.advertised)
    }

    /// Units that may still come before more are freed.
    #[inline]
    #[must_use]
    pub const fn room(&self) -> u16 {
        minus(self.granted, self.received)
    }

    /// What an update says; from here on it has been said.
    #[inline]
    pub fn advertise(&mut self) -> u16 {
        self.advertised = self.granted;
        self.granted
    }

    /// The sender has used `consumed` in all, and what it sent before is here or lost. Counts what is lost as
    /// come and gone, and returns it. One that is late says nothing.
    #[inline]
    pub fn synchronise(&mut self, consumed: u16) -> u16 {
        let lost = minus(consumed % MODULUS, self.received);
        // A sender never uses more than it was granted.
        if lost > self.room() {
            return 0;
        }
        self.received = (self.received + lost) % MODULUS;
        self.granted = (self.granted + lost) % MODULUS;
        lost
    }
}
