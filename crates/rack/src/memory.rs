//! Estimates of memory, made from numbers alone before anything is allocated.

use kernel::Bytes;

/// A sum of what arrays will take. Saturates: a size that does not fit is larger than any limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate(u64);

impl Estimate {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(0)
    }

    /// And `count` entries of `each` bytes.
    #[must_use]
    pub const fn and(self, count: u64, each: u64) -> Self {
        Self(self.0.saturating_add(count.saturating_mul(each)))
    }

    /// And an array of `count` values of `T`.
    #[must_use]
    pub const fn array<T>(self, count: u64) -> Self {
        self.and(count, size_of::<T>() as u64)
    }

    /// And what was estimated elsewhere, in bytes.
    #[must_use]
    pub const fn plus(self, other: Bytes) -> Self {
        self.and(other.get(), 1)
    }

    /// The sum.
    #[must_use]
    pub const fn bytes(self) -> Bytes {
        Bytes::new(self.0)
    }
}

/// `size` in the largest binary unit of which it has one: `4.0 GiB`.
#[must_use]
pub fn binary(size: Bytes) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (size.get().max(1).ilog2() / 10) as usize;
    match power {
        0 => format!("{} B", size.get()),
        _ => format!("{:.1} {}", size.get() as f64 / (1u64 << (10 * power)) as f64, units[power]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        let told = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (16 << 30, "16.0 GiB"),
            (3 << 39, "1.5 TiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (size, text) in told {
            assert_eq!(binary(Bytes::new(size)), text);
        }
    }

    #[test]
    fn sums_saturate() {
        let sum = Estimate::new().and(3, 5).array::<u32>(2);
        assert_eq!(sum.bytes(), Bytes::new(23));
        assert_eq!(sum.and(u64::MAX, 2).and(1, 1).bytes(), Bytes::new(u64::MAX));
    }
}
