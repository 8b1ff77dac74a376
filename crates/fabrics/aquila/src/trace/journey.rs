//! The way of one cell, as records tell it.

use std::fmt;

use crate::address::Address;
use crate::cells::trace::Record;
use crate::link::classes::CellKind;
use crate::link::header::{HEADER_BYTES, Header};
use crate::switch::traced::NOWHERE;

/// What tells a cell from others, for as long as it is under way: its ends, its kind, and the first 8 bytes behind its
/// header, where the pointers and the index of M408, M414 and M417 are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    to: u16,
    from: u16,
    kind: u8,
    word: u64,
}

/// A cell at a TiN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The TiN.
    pub tin: u16,
    /// When it crossed. Unit: ticks of 2.5 ns of that TiN's clock, below 2^48.
    pub ticks: u64,
    /// The port that it came in at.
    pub input: u8,
    /// The channel that it came on.
    pub input_vc: u8,
    /// The port that it left by, or 255: it was thrown away.
    pub output: u8,
    /// The channel that it left on.
    pub output_vc: u8,
    /// Hops that it had left when it went on.
    pub hops: u8,
}

impl Step {
    /// Where it stands among the steps of its cell, the first highest: what is thrown away spends no hop.
    pub(super) fn rank(&self) -> u8 {
        2 * self.hops + u8::from(self.output != NOWHERE)
    }

    /// Hops that it came with.
    pub(super) fn hops_before(&self) -> u8 {
        self.hops + u8::from(self.output != NOWHERE)
    }
}

/// The way of a cell: what its TiNs have told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Journey {
    /// Its source.
    pub from: Address,
    /// Its destination.
    pub to: Address,
    /// What it is.
    pub kind: CellKind,
    /// The first 8 bytes behind its header: as [`crate::cells::ip`] has them. Those of data are in the upper half.
    pub word: u64,
    /// Its steps, the first one first, without those whose records are lost.
    pub steps: Vec<Step>,
}

impl Journey {
    /// A record's cell and step; `None`: its sample is no cell.
    pub(super) fn read(record: &Record) -> Option<(Key, Header, Step)> {
        let (header, rest) = record.sample.split_first_chunk::<{ HEADER_BYTES as usize }>()?;
        let header = Header::decode(*header).ok()?;
        let word = u64::from_be_bytes(*rest.first_chunk()?);
        let key = Key {
            to: header.destination.bits(),
            from: header.source.bits(),
            kind: header.kind as u8,
            word,
        };
        let step = Step {
            tin: record.tin,
            ticks: record.ticks,
            input: record.input,
            input_vc: record.input_vc,
            output: record.output,
            output_vc: record.output_vc,
            hops: header.hops,
        };
        (header.is_traced && header.vc == record.output_vc).then_some((key, header, step))
    }

    /// The way of a cell with these steps, the first one first.
    pub(super) fn new(key: &Key, kind: CellKind, steps: &[Step]) -> Self {
        let (from, to) = (Address::from_bits(key.from), Address::from_bits(key.to));
        Self { from, to, kind, word: key.word, steps: steps.to_vec() }
    }
}

impl fmt::Display for Journey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |address: Address| format!("pod {} TiN {}", address.pod(), address.tin());
        write!(f, "{:?} from {} to {}:", self.kind, end(self.from), end(self.to))?;
        let mut first = None;
        for step in &self.steps {
            let since = step.ticks.wrapping_sub(*first.get_or_insert(step.ticks)) as i64;
            let (whole, part) = (since * 5 / 2, since * 25 % 10);
            write!(f, "\n  {whole:5}.{} ns  TiN {:3}", part.abs(), step.tin)?;
            write!(f, "  port {:2} channel {:2}", step.input, step.input_vc)?;
            match step.output {
                NOWHERE => write!(f, "  thrown away")?,
                output => write!(f, "  -> port {output:2} channel {:2}", step.output_vc)?,
            }
        }
        Ok(())
    }
}
