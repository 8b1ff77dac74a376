//! Tracing: what carries the trace bit is sampled by every TiN on its way, and a collector puts the ways together and
//! names what is broken.
//!
//! Models: Aquila §6, §3.1 (M901 to M905): inside, a Clique is no IP network, so traceroute shows one hop. A packet that is
//! to be traced is chosen where it enters ([`Sampler`], or a rule of [`crate::pipeline`]); its request, its clearance and
//! its data carry the bit; switches see them ([`crate::switch::traced`]); the TiN writes a record of each into datagrams
//! ([`Reporter`]); the [`Collector`] knows what the controller has installed, and nothing else of the fabric.
//!
//! **Our choice** where §6 gives no figures: what is sampled, how many records a TiN makes, and how a fault is told from
//! chance ([`collector`]). Datagrams do not load the fabric that they tell of (I93): tracing changes no result.

pub mod collector;
mod intent;
mod journey;
pub mod measure;
mod packets;
mod reporter;
#[cfg(test)]
mod tests;

use kernel::Stream;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use collector::{Collector, Culprit, Heard, Suspect};
pub use journey::{Journey, Step};
pub use packets::{PacketWay, stitch};
pub use reporter::{DATAGRAM_BYTES, RECORDS_PER_DATAGRAM, Reporter};

/// What is traced.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// One of how many packets, or operations on remote memory, is traced, at random. Default 10000; 0: none (our choice,
    /// U55; Aquila §6 does not say).
    pub one_in: u32,
    /// Records that a TiN makes at the most, on average: its processor has little to spare. Unit: 1/s. Default 10000
    /// (our choice, U55). From 1 to 100000000.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub records_per_second: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { one_in: 10_000, records_per_second: 10_000 }
    }
}

impl Settings {
    /// Every number that is out of range.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let (found, most) = (self.records_per_second, 100_000_000);
        if (1..=most).contains(&found) {
            return Vec::new();
        }
        let message = format!("{found}; expected 1 to {most} a second");
        vec![Problem::new("records_per_second", message)]
    }
}

/// Chooses packets of a TiN to be traced, one in so many, at random: what comes at a steady beat is met as well (M903).
#[derive(Clone, Debug)]
pub struct Sampler {
    stream: Stream,
    one_in: u64,
    /// Packets until the next that is chosen.
    left: u64,
}

impl Sampler {
    /// That of a TiN. `one_in` 0: none is chosen.
    #[must_use]
    pub fn new(one_in: u32, tin: u16, seed: u64) -> Self {
        let mut sampler = Self {
            stream: Stream::new(seed, "aquila/trace", tin.into()),
            one_in: one_in.into(),
            left: u64::MAX,
        };
        sampler.draw();
        sampler
    }

    /// Gaps from 1 to twice the mean less one, all alike.
    fn draw(&mut self) {
        if self.one_in > 0 {
            self.left = 1 + self.stream.below(2 * self.one_in - 1);
        }
    }

    /// Whether the next packet is traced.
    #[inline]
    pub fn takes(&mut self) -> bool {
        self.left -= u64::from(self.one_in > 0);
        if self.left > 0 {
            return false;
        }
        self.draw();
        true
    }
}
