//! What a TiN does with what its switch sees of traced cells (M902): records, in datagrams to the collector.

use crate::address::Address;
use crate::cells::trace::{RECORD_BYTES, Record, SAMPLE_BYTES};
use crate::link::classes::CellKind;
use crate::link::header::{HEADER_BYTES, Header};
use crate::switch::cell::BLOCK;
use crate::switch::settings::TICK;
use crate::switch::traced::Seen;

/// Most bytes of a datagram (M902, our choice: with headers of UDP and IP it fits any Ethernet).
pub const DATAGRAM_BYTES: usize = 1_400;
/// Most records of a datagram.
pub const RECORDS_PER_DATAGRAM: usize = DATAGRAM_BYTES / RECORD_BYTES;
/// Records that may be made at once, before the rate limits them (our choice: those of some dozen packets, of which each
/// makes thirty at its source).
const BURST: u64 = 1_000;
/// Ticks of 2.5 ns in a second.
const TICKS_PER_SECOND: u64 = 1_000_000_000_000 / TICK.as_ps();
/// Bits of a record's time.
const TIME_MASK: u64 = (1 << 48) - 1;

/// The records of a TiN.
#[derive(Clone, Debug)]
pub struct Reporter {
    tin: u16,
    number: u32,
    /// What a record costs, and what may be spent. Unit: ticks.
    cost: u64,
    budget: u64,
    /// When that was reckoned.
    reckoned: u64,
    datagram: Vec<u8>,
}

impl Reporter {
    /// That of a TiN, which makes so many records a second at the most.
    ///
    /// # Panics
    /// If that is none.
    #[must_use]
    pub fn new(tin: u16, records_per_second: u32) -> Self {
        assert!(records_per_second > 0, "a reporter that may not report");
        let cost = (TICKS_PER_SECOND / u64::from(records_per_second)).max(1);
        let budget = cost * BURST;
        Self { tin, number: 0, cost, budget, reckoned: 0, datagram: Vec::new() }
    }

    /// The switch has seen a traced cell when the TiN's clock stood at `ticks`. A datagram that is full by that. What is
    /// more than the rate allows has a number and no record, so that the collector knows of it.
    pub fn report(&mut self, seen: &Seen, ticks: u64) -> Option<Vec<u8>> {
        let sample = sample(seen)?;
        let number = self.number;
        self.number = number.wrapping_add(1);
        let since = ticks.saturating_sub(self.reckoned);
        self.budget = (self.budget + since).min(self.cost * BURST);
        self.reckoned = ticks.max(self.reckoned);
        if self.budget < self.cost {
            return None;
        }
        self.budget -= self.cost;
        let record = Record {
            tin: self.tin,
            ticks: ticks & TIME_MASK,
            input: seen.input,
            output: seen.output,
            input_vc: seen.input_vc,
            output_vc: seen.output_vc,
            number,
            sample,
        };
        self.datagram.extend_from_slice(&record.encode());
        (self.datagram.len() + RECORD_BYTES > DATAGRAM_BYTES).then(|| self.take())
    }

    /// What is in no full datagram yet, if there is anything: to be called more often than the
    /// collector waits for records, which is a millisecond.
    pub fn flush(&mut self) -> Option<Vec<u8>> {
        (!self.datagram.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.datagram)
    }
}

/// How a cell begins; `None`: it is of no kind that there is.
fn sample(seen: &Seen) -> Option<[u8; SAMPLE_BYTES]> {
    let cell = &seen.cell;
    let kind = CellKind::from_number(cell.kind)?;
    let header = Header {
        destination: Address::from_bits(cell.to),
        source: Address::from_bits(cell.from),
        length: cell.blocks * BLOCK as u8,
        kind,
        vc: seen.output_vc,
        hops: cell.hops(),
        is_traced: true,
    };
    let first = usize::from(HEADER_BYTES);
    let mut sample = [0; SAMPLE_BYTES];
    sample[..first].copy_from_slice(&header.encode());
    match kind {
        CellKind::Data => {
            sample[first..first + 4].copy_from_slice(&(cell.payload as u32).to_be_bytes());
        }
        _ => sample[first..2 * first].copy_from_slice(&cell.payload.to_be_bytes()),
    }
    Some(sample)
}
