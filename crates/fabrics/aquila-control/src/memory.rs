//! The memory of a chip's control processor.
//!
//! Models: Aquila §3.5, §4.3 (M601, I74): 2 MB of SRAM, and no more. What the firmware keeps is charged here before it
//! is kept; what does not fit is an error that the caller has to answer for. Charges are rounded as FreeRTOS's
//! `heap_4` rounds them on a 32-bit processor: a header of 8 bytes, and a multiple of 8 (§4.3 names FreeRTOS).
//!
//! Leaves out: fragmentation, code and stacks (the paper does not say what of the 2 MB they take).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use thiserror::Error;

/// All of it (§3.5: 2 MB; binary, as SRAM is). Unit: bytes.
pub const SRAM_BYTES: u32 = 2 << 20;
/// What `heap_4` puts before each piece. Unit: bytes.
const HEADER_BYTES: u32 = 8;
/// Pieces begin at multiples of this. Unit: bytes.
const ALIGNMENT: u32 = 8;

/// What memory is used for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Purpose {
    /// Requests and answers about registers.
    Rpc,
    /// Frames of the bootstrap channel.
    Pmos,
    /// Sessions over TCP.
    Tcp,
    /// Control packets of NC-SI.
    Sideband,
    /// Everything else.
    Other,
}

impl Purpose {
    /// All of them, by number.
    pub const ALL: [Self; 5] = [Self::Rpc, Self::Pmos, Self::Tcp, Self::Sideband, Self::Other];
}

/// It does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "{asked} bytes for {purpose:?} do not fit: {used} of {size} are in use; give some back first"
)]
pub struct OutOfMemory {
    /// What it was for.
    pub purpose: Purpose,
    /// With header and rounding. Unit: bytes.
    pub asked: u64,
    /// Unit: bytes.
    pub used: u32,
    /// Unit: bytes.
    pub size: u32,
}

#[derive(Debug)]
struct Account {
    size: u32,
    used: AtomicU32,
    peak: AtomicU32,
    by_purpose: [AtomicU32; Purpose::ALL.len()],
}

/// The memory of one control processor. Copies of it are the same memory.
///
/// ```
/// use aquila_control::memory::{Memory, Purpose};
/// let memory = Memory::new(100);
/// let charge = memory.charge(Purpose::Rpc, 60).unwrap();
/// // A header, and a multiple of 8.
/// assert_eq!(memory.used(), 72);
/// assert!(memory.charge(Purpose::Other, 24).is_err());
/// drop(charge);
/// assert_eq!((memory.used(), memory.peak()), (0, 72));
/// ```
#[derive(Clone, Debug)]
pub struct Memory(Arc<Account>);

impl Default for Memory {
    /// That of a TiN.
    fn default() -> Self {
        Self::new(SRAM_BYTES)
    }
}

impl Memory {
    /// A memory of so many bytes, all of them free.
    #[must_use]
    pub fn new(size: u32) -> Self {
        let zeros = || AtomicU32::new(0);
        let by_purpose = Purpose::ALL.map(|_| zeros());
        Self(Arc::new(Account { size, used: zeros(), peak: zeros(), by_purpose }))
    }

    /// Takes memory for as long as the charge is kept.
    ///
    /// # Errors
    /// It does not fit; nothing is taken then.
    pub fn charge(&self, purpose: Purpose, bytes: usize) -> Result<Charge, OutOfMemory> {
        let account = &*self.0;
        let rounded = rounded(bytes);
        let taken = u32::try_from(rounded).ok().and_then(|asked| {
            let add = |used: u32| used.checked_add(asked).filter(|&sum| sum <= account.size);
            let before = account.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
            before.ok().map(|before| (asked, before + asked))
        });
        let Some((asked, used)) = taken else {
            let (used, size) = (self.used(), account.size);
            return Err(OutOfMemory { purpose, asked: rounded, used, size });
        };
        account.peak.fetch_max(used, Ordering::Relaxed);
        account.by_purpose[purpose as usize].fetch_add(asked, Ordering::Relaxed);
        Ok(Charge { memory: self.clone(), purpose, bytes: asked })
    }

    /// In use. Unit: bytes.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// In use for something. Unit: bytes.
    #[must_use]
    pub fn used_for(&self, purpose: Purpose) -> u32 {
        self.0.by_purpose[purpose as usize].load(Ordering::Relaxed)
    }

    /// The most that was ever in use at once. Unit: bytes.
    #[must_use]
    pub fn peak(&self) -> u32 {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// All of it. Unit: bytes.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.0.size
    }
}

/// What a piece takes, with its header.
fn rounded(bytes: usize) -> u64 {
    let pieces = (bytes as u64).saturating_add(HEADER_BYTES.into()).div_ceil(ALIGNMENT.into());
    pieces.saturating_mul(ALIGNMENT.into())
}

/// Memory that is in use until this is dropped.
#[derive(Debug)]
#[must_use = "memory is given back when its charge is dropped"]
pub struct Charge {
    memory: Memory,
    purpose: Purpose,
    bytes: u32,
}

impl Charge {
    /// With header and rounding. Unit: bytes.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let account = &*self.memory.0;
        account.used.fetch_sub(self.bytes, Ordering::Relaxed);
        account.by_purpose[self.purpose as usize].fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn m601_i74_two_mebibytes_and_not_a_byte_more() {
        let memory = Memory::default();
        let all = memory.charge(Purpose::Other, (2 << 20) - 8).unwrap();
        assert_eq!(memory.used(), 2 * 1024 * 1024);
        let error = memory.charge(Purpose::Rpc, 0).unwrap_err();
        assert_eq!(
            error,
            OutOfMemory { purpose: Purpose::Rpc, asked: 8, used: 2 << 20, size: 2 << 20 }
        );
        assert!(error.to_string().contains("8 bytes for Rpc do not fit: 2097152 of 2097152"));
        drop(all);
        assert!(memory.charge(Purpose::Other, (2 << 20) - 7).is_err());
        assert!(memory.charge(Purpose::Other, usize::MAX).is_err());
        assert_eq!((memory.used(), memory.peak()), (0, 2 << 20));
    }

    proptest! {
        /// Against a list of what is kept.
        #[test]
        fn i74_what_is_in_use_is_the_sum_of_what_is_kept(
            steps in prop::collection::vec((0..3usize, 0..700usize, any::<bool>()), 0..200),
        ) {
            let memory = Memory::new(8_000);
            let mut kept: Vec<(Purpose, u32, Charge)> = Vec::new();
            let mut most = 0;
            for (purpose, bytes, gives_back) in steps {
                let sum = |kept: &[(Purpose, u32, Charge)]| kept.iter().map(|k| k.1).sum::<u32>();
                if gives_back && !kept.is_empty() {
                    drop(kept.swap_remove(bytes % kept.len()));
                } else {
                    let purpose = Purpose::ALL[purpose];
                    let takes = (bytes as u32 / 8 + u32::from(bytes % 8 > 0) + 1) * 8;
                    match memory.charge(purpose, bytes) {
                        Ok(charge) => kept.push((purpose, takes, charge)),
                        Err(_) => prop_assert!(sum(&kept) + takes > 8_000),
                    }
                }
                most = most.max(sum(&kept));
                prop_assert_eq!(memory.used(), sum(&kept));
                prop_assert_eq!(memory.peak(), most);
                for purpose in Purpose::ALL {
                    let of = kept.iter().filter(|k| k.0 == purpose).map(|k| k.1).sum::<u32>();
                    prop_assert_eq!(memory.used_for(purpose), of);
                }
            }
        }
    }
}
