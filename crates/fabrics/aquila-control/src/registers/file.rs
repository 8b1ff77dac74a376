//! The register file of a chip.
//!
//! Models: Aquila §4.3 (M604, M608, M610): the chip holds all that the controller has set; the firmware holds
//! nothing of it. Digests over blocks of 256 entries (our choice) say where a chip and what the controller wants
//! of it differ, without reading all of it.
//!
//! A block that holds nothing but what it held after a cold start takes no memory here.

use crc::{CRC_64_XZ, Crc, Table};

use super::map::REGISTERS;
use super::{Access, Entry, Handle, Register, Status, Word, find};

/// Entries of a block, which has one digest (M610, our choice).
pub const BLOCK_ENTRIES: u32 = 256;

/// CRC-64/XZ (ECMA-182, reflected): our choice of polynomial for M610.
static DIGEST: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// A block that was written: its entries, one after another.
type Block = Option<Box<[u8]>>;

/// Entries that were written: the address of the first, the bytes of one, and all of them.
pub type Recorded = (u32, u8, Vec<u8>);

/// All registers of a chip.
#[derive(Clone, Debug)]
pub struct RegisterFile {
    /// By register, its blocks.
    blocks: Vec<Vec<Block>>,
    /// What was written since this was asked last, if anybody asks.
    recorded: Option<Vec<Recorded>>,
}

impl Default for RegisterFile {
    fn default() -> Self {
        Self::new()
    }
}

impl RegisterFile {
    /// As after a cold start.
    #[must_use]
    pub fn new() -> Self {
        let blocks =
            |register: &Register| vec![None; register.entries().div_ceil(BLOCK_ENTRIES) as usize];
        Self { blocks: REGISTERS.iter().map(blocks).collect(), recorded: None }
    }

    /// Notes what is written from now on, by [`RegisterFile::write`] and [`RegisterFile::write_block`].
    pub fn record(&mut self) {
        self.recorded = Some(Vec::new());
    }

    /// What was written since this was asked last.
    pub fn recorded(&mut self) -> Vec<Recorded> {
        self.recorded.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// READ: the entry at an address.
    ///
    /// # Errors
    /// There is none.
    pub fn read(&self, address: u32) -> Result<Entry, Status> {
        let (register, at) = find(address)?;
        Ok(self.entry(register, at))
    }

    /// WRITE: sets the entry at an address.
    ///
    /// # Errors
    /// There is none, it is another width, or only the chip may set it. Nothing is changed then.
    pub fn write(&mut self, address: u32, entry: &Entry) -> Result<(), Status> {
        self.write_block(address, entry.as_bytes().len(), entry.as_bytes())
    }

    /// READ_BLOCK: entries from an address on, one after another.
    ///
    /// # Errors
    /// There are not so many.
    pub fn read_block(&self, address: u32, count: u32) -> Result<Vec<u8>, Status> {
        let (register, first) = self.range(address, count)?;
        let size = REGISTERS[register].entry_bytes() as usize;
        let mut bytes = Vec::with_capacity(count as usize * size);
        for at in first..first + count {
            bytes.extend_from_slice(self.entry(register, at).as_bytes());
        }
        Ok(bytes)
    }

    /// WRITE_BLOCK: sets entries of `size` bytes from an address on.
    ///
    /// # Errors
    /// As [`RegisterFile::write`], or the register ends before. Nothing is changed then.
    pub fn write_block(&mut self, address: u32, size: usize, bytes: &[u8]) -> Result<(), Status> {
        let (register, _) = find(address)?;
        let known = &REGISTERS[register];
        if known.entry_bytes() as usize != size || !bytes.len().is_multiple_of(size) {
            return Err(Status::Width);
        }
        let count = u32::try_from(bytes.len() / size).map_err(|_| Status::OutOfRange)?;
        let (_, first) = self.range(address, count)?;
        if known.access == Access::ReadOnly {
            return Err(Status::ReadOnly);
        }
        for (at, entry) in (first..).zip(bytes.chunks_exact(size)) {
            self.set_entry(register, at, entry);
        }
        if let Some(recorded) = &mut self.recorded {
            recorded.push((address, size as u8, bytes.to_vec()));
        }
        Ok(())
    }

    /// The digests of blocks of the register at an address, from the block of that address on.
    ///
    /// # Errors
    /// There are not so many blocks.
    pub fn digests(&self, address: u32, count: u32) -> Result<Vec<u64>, Status> {
        let (register, at) = find(address)?;
        let first = (at / BLOCK_ENTRIES) as usize;
        let last = first.checked_add(count as usize).ok_or(Status::OutOfRange)?;
        let blocks = self.blocks[register].get(first..last).ok_or(Status::OutOfRange)?;
        let known = &REGISTERS[register];
        let digest = |(block, place): (&Block, usize)| match block {
            Some(bytes) => DIGEST.checksum(bytes),
            None => DIGEST.checksum(&fresh(known, place)),
        };
        Ok(blocks.iter().zip(first..).map(digest).collect())
    }

    /// An entry by name.
    ///
    /// # Panics
    /// If there is no such entry.
    #[must_use]
    pub fn get<W: Word, const RANK: usize>(&self, of: Handle<W, RANK>, at: [u32; RANK]) -> W {
        let at = of.entry(at).unwrap_or_else(|error| panic!("{error}"));
        let entry = self.entry(of.index, at);
        W::from_entry(&entry).expect("a handle knows its width")
    }

    /// Sets an entry by name, as the chip may: read-only ones, too.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn set<W: Word, const RANK: usize>(
        &mut self,
        of: Handle<W, RANK>,
        at: [u32; RANK],
        word: W,
    ) {
        let at = of.entry(at).unwrap_or_else(|error| panic!("{error}"));
        self.set_entry(of.index, at, word.to_entry().as_bytes());
    }

    /// Sets all entries of a register as after a cold start.
    ///
    /// # Panics
    /// If it is none of [`REGISTERS`].
    pub fn reset(&mut self, register: &Register) {
        let (index, _) = find(register.base).expect("a register of the description");
        self.blocks[index].fill(None);
    }

    /// Sets all entries of the block with the entry at an address as after a cold start.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn reset_block(&mut self, address: u32) -> Result<(), Status> {
        let (register, at) = find(address)?;
        self.blocks[register][(at / BLOCK_ENTRIES) as usize] = None;
        Ok(())
    }

    /// The entries of a register that another file holds other values in.
    ///
    /// # Panics
    /// If it is none of [`REGISTERS`].
    #[must_use]
    pub fn differing(&self, other: &Self, register: &Register) -> Vec<u32> {
        let (index, _) = find(register.base).expect("a register of the description");
        let size = register.entry_bytes() as usize;
        let reset = register.reset_bytes();
        let mut found = Vec::new();
        for (place, pair) in self.blocks[index].iter().zip(&other.blocks[index]).enumerate() {
            let (one, two) = match pair {
                (None, None) => continue,
                (Some(own), Some(other)) if own == other => continue,
                (own, other) => (own.as_deref(), other.as_deref()),
            };
            let entries = one.or(two).map_or(0, <[u8]>::len) / size;
            let differs = |&at: &usize| {
                let [one, two] = [one, two].map(|block| match block {
                    Some(block) => &block[at * size..(at + 1) * size],
                    None => reset.as_bytes(),
                });
                one != two
            };
            let first = place as u32 * BLOCK_ENTRIES;
            found.extend((0..entries).filter(differs).map(|at| first + at as u32));
        }
        found
    }

    /// What it takes here, without what is as after a cold start. Unit: bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.iter().flatten().flatten().map(|block| block.len()).sum()
    }

    /// What [`RegisterFile::read_block`] would give. Unit: bytes.
    ///
    /// # Errors
    /// There are not so many entries.
    pub fn block_bytes(&self, address: u32, count: u32) -> Result<usize, Status> {
        let (register, _) = self.range(address, count)?;
        Ok(count as usize * REGISTERS[register].entry_bytes() as usize)
    }

    /// The register of an address and the entry there, if `count` of them are there.
    fn range(&self, address: u32, count: u32) -> Result<(usize, u32), Status> {
        let (register, first) = find(address)?;
        let end = first.checked_add(count).ok_or(Status::OutOfRange)?;
        if end > REGISTERS[register].entries() {
            return Err(Status::OutOfRange);
        }
        Ok((register, first))
    }

    fn entry(&self, register: usize, at: u32) -> Entry {
        let known = &REGISTERS[register];
        let size = known.entry_bytes() as usize;
        match &self.blocks[register][(at / BLOCK_ENTRIES) as usize] {
            None => known.reset_bytes(),
            Some(block) => {
                let first = (at % BLOCK_ENTRIES) as usize * size;
                Entry::from_bytes(&block[first..first + size]).expect("registers have such widths")
            }
        }
    }

    fn set_entry(&mut self, register: usize, at: u32, bytes: &[u8]) {
        let known = &REGISTERS[register];
        let place = (at / BLOCK_ENTRIES) as usize;
        let block = &mut self.blocks[register][place];
        if block.is_none() && known.reset_bytes().as_bytes() == bytes {
            return;
        }
        let block = block.get_or_insert_with(|| fresh(known, place));
        let first = (at % BLOCK_ENTRIES) as usize * bytes.len();
        block[first..first + bytes.len()].copy_from_slice(bytes);
    }
}

/// Files are equal if all entries are.
impl PartialEq for RegisterFile {
    fn eq(&self, other: &Self) -> bool {
        let mut registers = REGISTERS.iter().zip(self.blocks.iter().zip(&other.blocks));
        registers.all(|(known, (own, others))| {
            own.iter().zip(others).enumerate().all(|(place, pair)| match pair {
                (None, None) => true,
                (Some(own), Some(other)) => own == other,
                (Some(block), None) | (None, Some(block)) => *block == fresh(known, place),
            })
        })
    }
}

impl Eq for RegisterFile {}

/// A block as after a cold start. The last of a register may be shorter.
fn fresh(register: &Register, place: usize) -> Box<[u8]> {
    let before = place as u32 * BLOCK_ENTRIES;
    let entries = (register.entries() - before).min(BLOCK_ENTRIES) as usize;
    register.reset_bytes().as_bytes().repeat(entries).into()
}
