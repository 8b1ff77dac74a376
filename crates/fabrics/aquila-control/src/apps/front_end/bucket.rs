//! How fast a TiN is programmed.
//!
//! Models: Aquila §4.2 (M727): the front end limits what it sends, so that the memory of the switch does not overflow.
//! **Our choice**: a token bucket in bytes, which holds one largest message.

use kernel::{Span, Time};

use crate::rpc::MESSAGE_BYTES_MAX;

const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// Bytes that may be sent.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Unit: bytes a second.
    rate: u64,
    /// Unit: bytes.
    size: u64,
    /// Unit: bytes, as of `at`.
    bytes: u64,
    at: Time,
}

impl Bucket {
    /// A full one. Unit: bytes a second, at least one.
    #[must_use]
    pub fn new(rate: u64, now: Time) -> Self {
        Self::holding(rate, MESSAGE_BYTES_MAX as u32, now)
    }

    /// A full one of another size. Unit: bytes.
    #[must_use]
    pub fn holding(rate: u64, size: u32, now: Time) -> Self {
        Self { rate: rate.max(1), size: size.into(), bytes: size.into(), at: now }
    }

    /// Takes bytes out.
    ///
    /// # Errors
    /// There are not so many: when there will be.
    pub fn take(&mut self, now: Time, bytes: usize) -> Result<(), Time> {
        let bytes = bytes as u64;
        let elapsed = u128::from((now - self.at).as_ps());
        let more = elapsed * u128::from(self.rate) / PS_PER_SECOND;
        let sum = u128::from(self.bytes) + more;
        if sum >= u128::from(self.size) {
            (self.bytes, self.at) = (self.size, now);
        } else {
            // What is not a whole byte yet counts the next time.
            self.bytes = sum as u64;
            self.at += Self::span(more as u64, self.rate);
        }
        if self.bytes >= bytes {
            self.bytes -= bytes;
            return Ok(());
        }
        Err(self.at + Self::span(bytes - self.bytes, self.rate))
    }

    /// How long so many bytes take, rounded up.
    fn span(bytes: u64, rate: u64) -> Span {
        Span::from_ps((u128::from(bytes) * PS_PER_SECOND).div_ceil(u128::from(rate)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m727_no_more_than_the_rate_and_one_message() {
        let rate = 7_000;
        let mut bucket = Bucket::new(rate, Time::ZERO);
        let (mut now, mut sent) = (Time::ZERO, 0);
        for round in 0..500 {
            let bytes = 1 + round * 131 % MESSAGE_BYTES_MAX;
            if let Err(at) = bucket.take(now, bytes) {
                assert!(at > now);
                now = at;
                bucket.take(now, bytes).expect("it said when");
            }
            sent += bytes as u128;
            let allowed = u128::from(now.as_ps()) * u128::from(rate) / PS_PER_SECOND;
            assert!(sent <= allowed + MESSAGE_BYTES_MAX as u128, "{sent} bytes");
            // And hardly less: a picosecond is lost at a time, at most.
            assert!(sent + 1 >= allowed, "{sent} of {allowed}");
        }
    }
}
