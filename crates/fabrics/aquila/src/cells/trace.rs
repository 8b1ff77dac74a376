//! What a TiN tells the collector of a traced cell (§6, M902).

use super::{PayloadError, exactly};

/// Bytes of a record (our choice).
pub const RECORD_BYTES: usize = 48;
/// Bytes of the cell that a record has: its header and what follows.
pub const SAMPLE_BYTES: usize = 24;

/// A record: TiN 16 bits, time 48, input port 8, output port 8, input channel 8, output channel 8, number
/// 32, spare 64, the cell's first 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Which TiN, among all.
    pub tin: u16,
    /// When the cell crossed it, below 2^48. Unit: ticks of 2.5 ns.
    pub ticks: u64,
    /// The port it came in at.
    pub input: u8,
    /// The port it leaves by; 255: it was thrown away.
    pub output: u8,
    /// The virtual channel it came on.
    pub input_vc: u8,
    /// The virtual channel it leaves on.
    pub output_vc: u8,
    /// How many records this TiN has made before, so that a collector knows of lost ones (our choice).
    pub number: u32,
    /// How the cell begins; zeros behind its end.
    pub sample: [u8; SAMPLE_BYTES],
}

impl Record {
    /// Its bytes.
    ///
    /// # Panics
    /// If the time does not fit 48 bits.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        assert!(self.ticks < 1 << 48, "{} ticks", self.ticks);
        let first = u64::from(self.tin) << 48 | self.ticks;
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes[8..12].copy_from_slice(&[self.input, self.output, self.input_vc, self.output_vc]);
        bytes[12..16].copy_from_slice(&self.number.to_be_bytes());
        bytes[24..].copy_from_slice(&self.sample);
        bytes
    }

    /// The record of these bytes.
    ///
    /// # Errors
    /// There are not 48, or spare ones are set.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let bytes: [u8; RECORD_BYTES] = exactly(bytes)?;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        if word(16) != 0 {
            return Err(PayloadError::Spare);
        }
        Ok(Self {
            tin: (word(0) >> 48) as u16,
            ticks: word(0) & ((1 << 48) - 1),
            input: bytes[8],
            output: bytes[9],
            input_vc: bytes[10],
            output_vc: bytes[11],
            number: word(8) as u32,
            sample: std::array::from_fn(|byte| bytes[24 + byte]),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn m902_every_record_comes_back(
            (tin, number, sample) in any::<(u16, u32, [u8; SAMPLE_BYTES])>(),
            ticks in 0..1u64 << 48,
            [input, output, input_vc, output_vc] in any::<[u8; 4]>(),
        ) {
            let record =
                Record { tin, ticks, input, output, input_vc, output_vc, number, sample };
            prop_assert_eq!(Record::decode(&record.encode()), Ok(record));
        }

        #[test]
        fn m902_any_bytes_are_refused_or_written_back_the_same(
            mut bytes in prop::collection::vec(any::<u8>(), 46..50),
            is_spare in any::<bool>(),
        ) {
            if !is_spare {
                bytes[16..24].fill(0);
            }
            if let Ok(record) = Record::decode(&bytes) {
                prop_assert_eq!(&record.encode()[..], &bytes[..]);
            }
        }
    }
}
