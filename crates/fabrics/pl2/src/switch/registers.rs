//! One register array of the switch, as its hardware has it.
//!
//! Models: PL2 §4.2, §5 (claims M05, M08, M09): 32-bit counters, one for each port, each read,
//! changed and written once while a packet passes. The counters of one array are one stateful memory
//! object: an operation reaches one of them and nothing else.

/// What one operation does to a register, all at once, for one packet: it compares, adds and takes off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// If the register holds more than this, nothing changes.
    limit: u32,
    /// What is added.
    added: u32,
    /// What is taken off.
    taken: u32,
    /// What happens at the ends of the register.
    ends: Ends,
}

/// What is below zero, and above the largest number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    /// Nothing: the register stays where it is.
    Hold,
    /// The other end.
    Wrap,
}

impl Operation {
    /// Changes nothing.
    pub const READ: Self = Self { limit: u32::MAX, added: 0, taken: 0, ends: Ends::Hold };

    /// Adds so much, and stops at the largest number.
    #[must_use]
    pub const fn add(amount: u32) -> Self {
        Self { added: amount, ..Self::READ }
    }

    /// Takes so much off, and stops at zero.
    #[must_use]
    pub const fn take(amount: u32) -> Self {
        Self { taken: amount, ..Self::READ }
    }

    /// The same, but goes on below zero, which is the largest number, and above that, which is zero.
    #[must_use]
    pub const fn wrapping(self) -> Self {
        Self { ends: Ends::Wrap, ..self }
    }

    /// The same, where the register holds no more than `limit`; else nothing.
    #[must_use]
    pub const fn up_to(self, limit: u32) -> Self {
        Self { limit, ..self }
    }
}

/// What an operation tells of the register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// What it held before.
    pub before: u32,
    /// Whether that was above the limit of the operation, where it has one.
    pub is_above: bool,
}

/// An array of registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registers {
    cells: Vec<u32>,
    /// Operations so far.
    pub(crate) operations: u64,
    /// Operations that would have gone below zero.
    pub(crate) underflows: u64,
    /// What was added and taken off so far, resets apart.
    pub(crate) added: u64,
    pub(crate) taken: u64,
}

impl Registers {
    /// `count` registers, all zero (Alg. 1, lines 1 to 3).
    #[must_use]
    pub fn new(count: u32) -> Self {
        let cells = vec![0; count as usize];
        Self { cells, operations: 0, underflows: 0, added: 0, taken: 0 }
    }

    /// Carries out one operation on one register: all that a packet may do here on its way.
    #[inline]
    pub fn operate(&mut self, index: u32, operation: Operation) -> Reply {
        self.operations += 1;
        let cell = &mut self.cells[index as usize];
        let before = *cell;
        let is_above = before > operation.limit;
        if !is_above {
            let Operation { added: asked, taken: wanted, ends, .. } = operation;
            let (added, taken) = match ends {
                Ends::Hold => (asked.min(u32::MAX - before), wanted.min(before)),
                Ends::Wrap => (asked, wanted),
            };
            *cell = before.wrapping_add(added).wrapping_sub(taken);
            self.underflows += u64::from(wanted > before);
            self.added += u64::from(added);
            self.taken += u64::from(taken);
        }
        Reply { before, is_above }
    }

    /// [`Operation::READ`], [`Operation::up_to`] a limit: whether the register holds more.
    #[inline]
    pub(super) fn is_above(&mut self, index: u32, limit: u32) -> bool {
        self.operations += 1;
        self.cells[index as usize] > limit
    }

    /// [`Operation::take`]. Returns what it could take.
    #[inline]
    pub(super) fn take(&mut self, index: u32, amount: u32) -> u32 {
        self.operations += 1;
        let cell = &mut self.cells[index as usize];
        let taken = amount.min(*cell);
        *cell -= taken;
        self.underflows += u64::from(taken < amount);
        self.taken += u64::from(taken);
        taken
    }

    /// What a register holds, for the control plane.
    #[must_use]
    pub fn get(&self, index: u32) -> u32 {
        self.cells[index as usize]
    }

    /// All of them.
    #[must_use]
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// Writes a register, from the control plane. Returns what it held.
    pub fn set(&mut self, index: u32, value: u32) -> u32 {
        let before = std::mem::replace(&mut self.cells[index as usize], value);
        self.taken += u64::from(before);
        self.added += u64::from(value);
        before
    }

    /// What all hold together.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.cells.iter().map(|&cell| u64::from(cell)).sum()
    }
}
