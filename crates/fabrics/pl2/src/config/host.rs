//! The `host` table: what software and NICs of the hosts cost.

use kernel::{Bytes, Span};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The hosts of a rack.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// What software takes between a thread and the NIC, each way, for every packet. Unit: time.
    /// Default 490 ns: an exchange then takes 1.98 us at least (PL2 §5).
    pub delay: Span,
    /// What a message takes besides, at both ends together, between the stack and the application: no part of an
    /// exchange. Unit: time. Default 0 ns (480 ns make the round trip of 64 bytes 5 us, as in PL2 §2). Up to 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub application: Span,
    /// What comes on top of it at random: when a reservation is sent, when its grant is read, and when
    /// a burst goes in its slot.
    pub jitter: Jitter,
    /// Where the time of an exchange begins, for the wait for a slot. Default hardware.
    pub time_stamps: TimeStamps,
    /// Which data that waits at the NIC is taken off the wait for a slot (Eq. 1). Default remaining.
    pub pending: Pending,
    /// What a burst costs the thread that sends it, before it can ask for the next. Unit: time.
    /// Default 0 ns (PL2 does not say; 12 threads that each send a burst of 6 kB in 7.2 us make the
    /// 80 Gbps of PL2 §6.4).
    pub burst_cost: Span,
    /// What each byte of a burst's packets costs the thread besides. Unit: time. Default 0 ns (PL2 does not
    /// say; 0.85 ns make the same 80 Gbps, and cost acknowledgments next to nothing). At most 1 us.
    #[schemars(extend("x-maximum" = "1 us"))]
    pub byte_cost: Span,
    /// What a reservation and its grant cost their host, whose threads take turns at it. Unit: time. Default
    /// 0 ns (PL2 §6.4 blames it for the outcast, which loses a tenth of the line, and gives no time; 530 ns for a
    /// burst of 6 kB leave 90 Gbps). At most 1 ms.
    #[schemars(extend("x-maximum" = "1 ms"))]
    pub exchange_cost: Span,
}

/// Where the time of an exchange begins (PL2 §5: "using hardware and software timestamping").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeStamps {
    /// When the reservation goes on the line.
    #[default]
    Hardware,
    /// When the thread sends it. What it waits for the line is then taken for part of the way, and
    /// bursts come early by as much.
    Software,
}

/// Which data that waits at the NIC is taken off the wait for a slot (PL2 §4.2.1, Eq. 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pending {
    /// What is still there when the wait is over, which holds the burst up. What has gone by then does
    /// not.
    #[default]
    Remaining,
    /// All that is there when the grant is read: Eq. 1 to the letter. Bursts then come before their
    /// slots, and a loaded receiver's queue grows.
    AtGrant,
}

/// A random delay: lognormal, truncated.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Jitter {
    /// Half of the delays are below it; 0 ns: there are none. Unit: time. Default 27 ns: half of all
    /// exchanges then take less than 2.05 us (PL2 §5).
    pub median: Span,
    /// Standard deviation of the delay's logarithm. Default 1.1: one in some millions is at the most
    /// (our choice: PL2 §5 gives minimum, median and maximum). From 0 to 4.
    #[schemars(range(min = 0.0, max = 4.0))]
    pub spread: f64,
    /// The most. Unit: time. Default 10.1 us: an exchange, with two of them, then takes 22.25 us at
    /// most, less the switch's own tail (PL2 §5). At most 4 ms: the tables hold 32 bits of picoseconds.
    #[schemars(extend("x-maximum" = "4 ms"))]
    pub max: Span,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            delay: Span::from_ns(490),
            application: Span::ZERO,
            jitter: Jitter::default(),
            time_stamps: TimeStamps::default(),
            pending: Pending::default(),
            burst_cost: Span::ZERO,
            byte_cost: Span::ZERO,
            exchange_cost: Span::ZERO,
        }
    }
}

impl Default for Jitter {
    fn default() -> Self {
        Self { median: Span::from_ns(27), spread: 1.1, max: Span::from_ns(10_100) }
    }
}

impl Jitter {
    /// The most that it comes to.
    pub(super) fn most(self) -> Span {
        if self.median == Span::ZERO { Span::ZERO } else { self.max }
    }
}

impl Host {
    /// What a burst of so many bytes is to its thread, besides the exchange.
    pub(crate) fn work(&self, size: Bytes) -> Span {
        self.burst_cost + self.byte_cost * size.get()
    }

    /// What its keys are to each other.
    pub(super) fn check(&self) -> Option<Problem> {
        let Jitter { median, max, .. } = self.jitter;
        let message = || format!("{max}, below the median, {median}; raise it");
        (max < median).then(|| Problem::new("host.jitter.max", message()))
    }
}
