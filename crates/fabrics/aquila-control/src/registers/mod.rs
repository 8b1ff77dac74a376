//! The registers of a TiN: what the controller calls by name and the chip knows by address.
//!
//! Models: Aquila §4.3 (M604, M605): the programming interface is low-level, and generated from the register
//! description of the hardware: `registers.toml`, of which [`map`] is made. An entry of a register is read and
//! written as a whole, so that a row of a routing table never stands there half old and half new.
//!
//! Leaves out: fields within an entry other than as functions ([`crate::expand`] has those of rows), registers
//! that are cleared by reading.

pub mod file;
#[cfg(test)]
mod generate;
pub mod map;
#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;

use thiserror::Error;

/// Most bytes of an entry.
pub const ENTRY_BYTES_MAX: usize = 32;

/// Who may write a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The chip alone.
    ReadOnly,
    /// The controller, too.
    ReadWrite,
}

/// What an entry holds after a cold start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reset {
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// A number, in the low bits.
    Number(u64),
}

/// A register: an array of entries of one width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register {
    /// Its name in the description.
    pub name: &'static str,
    /// Address of its first entry. Unit: bytes.
    pub base: u32,
    /// Of an entry. Unit: bits.
    pub width: u32,
    /// Sizes of the array; none: one entry.
    pub dimensions: &'static [u32],
    /// Who may write it.
    pub access: Access,
    /// What it holds after a cold start.
    pub reset: Reset,
    /// What it is for.
    pub meaning: &'static str,
}

impl Register {
    /// Of an entry. Unit: bytes.
    #[must_use]
    pub const fn entry_bytes(&self) -> u32 {
        self.width / 8
    }

    /// How many entries it has.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.dimensions.iter().product()
    }

    /// One behind its last address.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.base + self.entries() * self.entry_bytes()
    }

    /// An entry's bytes after a cold start, the most significant first.
    #[must_use]
    pub fn reset_bytes(&self) -> Entry {
        let size = self.entry_bytes() as usize;
        let mut bytes = [0; ENTRY_BYTES_MAX];
        match self.reset {
            Reset::Zeros => {}
            Reset::Ones => bytes[..size].fill(u8::MAX),
            Reset::Number(number) => {
                let number = number.to_be_bytes();
                let used = size.min(number.len());
                bytes[size - used..size].copy_from_slice(&number[number.len() - used..]);
            }
        }
        Entry { bytes, size: size as u8 }
    }
}

/// An entry that can be anywhere: its bytes, the most significant first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    bytes: [u8; ENTRY_BYTES_MAX],
    size: u8,
}

impl Entry {
    /// An entry of these bytes; `None`: no register has entries of so many.
    #[must_use]
    pub fn from_bytes(found: &[u8]) -> Option<Self> {
        let is_a_size = found.len().is_power_of_two() && found.len() <= ENTRY_BYTES_MAX;
        is_a_size.then(|| {
            let mut bytes = [0; ENTRY_BYTES_MAX];
            bytes[..found.len()].copy_from_slice(found);
            Self { bytes, size: found.len() as u8 }
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entry(")?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// What an entry of some width is in Rust.
pub trait Word: Copy {
    /// As an entry.
    fn to_entry(self) -> Entry;
    /// From an entry; `None`: it has another width.
    fn from_entry(entry: &Entry) -> Option<Self>;
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            fn to_entry(self) -> Entry {
                Entry::from_bytes(&self.to_be_bytes()).expect("a width that registers have")
            }

            fn from_entry(entry: &Entry) -> Option<Self> {
                entry.as_bytes().try_into().ok().map(Self::from_be_bytes)
            }
        }
    )*};
}

words!(u8, u16, u32, u64, u128);

impl Word for [u8; ENTRY_BYTES_MAX] {
    fn to_entry(self) -> Entry {
        Entry { bytes: self, size: ENTRY_BYTES_MAX as u8 }
    }

    fn from_entry(entry: &Entry) -> Option<Self> {
        entry.as_bytes().try_into().ok()
    }
}

/// A name for a register that knows what its entries are and how many indices they have.
///
/// ```
/// use aquila_control::registers::map::{CLASS_MODE, ROUTE};
/// assert_eq!(CLASS_MODE.address([1]).unwrap(), CLASS_MODE.register().base + 1);
/// let error = ROUTE.address([3, 3, 0]).unwrap_err();
/// assert_eq!(error.to_string(), "route: index 1 is 3; expected 0 to 2");
/// ```
pub struct Handle<W, const RANK: usize> {
    index: usize,
    word: PhantomData<W>,
}

impl<W, const RANK: usize> Clone for Handle<W, RANK> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, const RANK: usize> Copy for Handle<W, RANK> {}

/// There is no such entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{register}: index {place} is {found}; expected 0 to {}", size - 1)]
pub struct IndexError {
    /// The register's name.
    pub register: &'static str,
    /// Which of its indices.
    pub place: usize,
    /// What was asked for.
    pub found: u32,
    /// Of the array in this dimension.
    pub size: u32,
}

impl<W, const RANK: usize> Handle<W, RANK> {
    const fn new(index: usize) -> Self {
        Self { index, word: PhantomData }
    }

    /// What it names.
    #[must_use]
    pub fn register(self) -> &'static Register {
        &map::REGISTERS[self.index]
    }

    /// The address of an entry.
    ///
    /// # Errors
    /// An index is out of range: the array beside it is another register.
    pub fn address(self, indices: [u32; RANK]) -> Result<u32, IndexError> {
        let register = self.register();
        Ok(register.base + self.entry(indices)? * register.entry_bytes())
    }

    /// The number of an entry among those of the register.
    fn entry(self, indices: [u32; RANK]) -> Result<u32, IndexError> {
        let register = self.register();
        let mut at = 0;
        for (place, (&found, &size)) in indices.iter().zip(register.dimensions).enumerate() {
            if found >= size {
                return Err(IndexError { register: register.name, place, found, size });
            }
            at = at * size + found;
        }
        Ok(at)
    }
}

/// What became of an item of a request (M606).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[repr(u8)]
pub enum Status {
    /// It was done.
    #[error("done")]
    Done = 0,
    /// No register has this address.
    #[error("no register has this address")]
    Unknown = 1,
    /// The address is inside an entry.
    #[error("the address is inside an entry; expected that of its first byte")]
    Misaligned = 2,
    /// The register ends before the last entry.
    #[error("the register ends before the last entry")]
    OutOfRange = 3,
    /// Only the chip writes this register.
    #[error("only the chip writes this register")]
    ReadOnly = 4,
    /// The register's entries have another width.
    #[error("the register's entries have another width")]
    Width = 5,
    /// The answer has no room for what was asked for.
    #[error("the answer has no room for it; ask for less at once")]
    NoRoom = 6,
    /// The flash is programming a block.
    #[error("the flash is programming a block; try again later")]
    Busy = 7,
    /// The image is for chips of another generation.
    #[error("the image is for chips of another generation")]
    Generation = 8,
    /// The image is not what its header says.
    #[error("the image is not what its header says; it is given up")]
    Damaged = 9,
    /// It is not what is next of the image that is staged.
    #[error("it is not what is next of the image that is staged; ask what the flash holds")]
    NotNext = 10,
    /// An image is on trial: what ran before it has to stay.
    #[error("an image is on trial; confirm it first, or wait until it has given way")]
    OnTrial = 11,
}

impl Status {
    /// All of them, by number.
    pub const ALL: [Self; 12] = [
        Self::Done,
        Self::Unknown,
        Self::Misaligned,
        Self::OutOfRange,
        Self::ReadOnly,
        Self::Width,
        Self::NoRoom,
        Self::Busy,
        Self::Generation,
        Self::Damaged,
        Self::NotNext,
        Self::OnTrial,
    ];

    /// The status of this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The register that an address is of, and which of its entries.
///
/// # Errors
/// [`Status::Unknown`] or [`Status::Misaligned`].
pub fn find(address: u32) -> Result<(usize, u32), Status> {
    let after = map::REGISTERS.partition_point(|register| register.base <= address);
    let index = after.checked_sub(1).ok_or(Status::Unknown)?;
    let register = &map::REGISTERS[index];
    if address >= register.end() {
        return Err(Status::Unknown);
    }
    let offset = address - register.base;
    if !offset.is_multiple_of(register.entry_bytes()) {
        return Err(Status::Misaligned);
    }
    Ok((index, offset / register.entry_bytes()))
}
