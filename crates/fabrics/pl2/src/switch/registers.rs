//! One register array of the switch, as its hardware has it.
//!
//! Models: PL2 §4.2, §5 (claims M05, M08, M09): 32-bit counters, one for each port, each read,
//! changed and written once while a packet passes. The counters of one array are one stateful memory
//! object: an operation reaches one of them and nothing else.

/// What one operation does to a register. All of it happens at once, for one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing: its value is read.
    Read,
    /// Adds so much.
    Add(u32),
    /// Takes so much off, and stops at zero.
    Take(u32),
    /// Takes so much off, and goes on below zero, which is the largest number.
    TakeWrapping(u32),
    /// As [`Action::Take`], if the register holds no more than `limit`; else nothing.
    TakeUpTo {
        /// The most at which anything happens.
        limit: u32,
        /// What is taken off.
        amount: u32,
    },
    /// Nothing, but tells whether the register holds no more than this.
    Compare(u32),
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
    pub fn operate(&mut self, index: u32, action: Action) -> Reply {
        self.operations += 1;
        let before = self.cells[index as usize];
        let (limit, change) = match action {
            Action::Read => (u32::MAX, Action::Read),
            Action::Compare(limit) => (limit, Action::Read),
            Action::TakeUpTo { limit, amount } => (limit, Action::Take(amount)),
            other => (u32::MAX, other),
        };
        let is_above = before > limit;
        if !is_above {
            self.cells[index as usize] = self.changed(before, change);
        }
        Reply { before, is_above }
    }

    #[inline]
    fn changed(&mut self, before: u32, change: Action) -> u32 {
        let (after, added, taken) = match change {
            Action::Add(amount) => (before.saturating_add(amount), amount, 0),
            Action::Take(amount) => (before.saturating_sub(amount), 0, amount.min(before)),
            Action::TakeWrapping(amount) => (before.wrapping_sub(amount), 0, amount),
            _ => (before, 0, 0),
        };
        if let Action::Take(amount) | Action::TakeWrapping(amount) = change {
            self.underflows += u64::from(amount > before);
        }
        self.added += u64::from(added);
        self.taken += u64::from(taken);
        after
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
