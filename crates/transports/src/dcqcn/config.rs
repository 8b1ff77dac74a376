//! The `transport` table of DCQCN.

use kernel::{Bytes, Rate, Span};
use packets::{Framing, PRIORITIES};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// DCQCN: rates cut by congestion notifications, raised by timers, over a network that loses nothing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Largest data packet, header included. Unit: bytes. Default 1500 B (Shoal §7.3). At least one
    /// more than `header`, at most 9216 B.
    pub mtu: Bytes,
    /// Header of a data packet. Unit: bytes. Default 58 B: IP 20, UDP 8, InfiniBand transport 12 and
    /// checksum 4, Ethernet 14 (RoCEv2).
    pub header: Bytes,
    /// Size of acknowledgments and notifications. Unit: bytes. Default 64 B (the smallest Ethernet
    /// frame).
    pub control: Bytes,
    /// Priority of data; control packets have 0. Default 3 (our choice: usual for RoCE). From 1 to 7;
    /// one that is never dropped.
    #[schemars(range(min = 1, max = 7))]
    pub priority: u8,
    /// A receiver sends a flow at most one notification in this time. Unit: time. Default 50 us
    /// (DCQCN §3.1).
    pub notification_interval: Span,
    /// Weight of a notification in alpha: g. Default 1/256 = 0.00390625 (DCQCN §5.2). Above 0, at
    /// most 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
    /// Alpha decays after this time without a notification: K. Unit: time. Default 55 us (DCQCN
    /// §3.1). Above `notification_interval`.
    pub alpha_interval: Span,
    /// The rate rises after this time: T. Unit: time. Default 55 us (DCQCN §5.2).
    pub timer: Span,
    /// The rate rises after so many bytes: B. Unit: bytes. Default 10 MB (DCQCN §5.2).
    pub byte_counter: Bytes,
    /// Rises of a kind before the target rises too: F. Default 5 (DCQCN §3.1). At least 1.
    #[schemars(range(min = 1))]
    pub fast_recovery: u32,
    /// By how much the target rises in additive increase: R_AI. Unit: bit/s. Default 40 Mbps (DCQCN
    /// §3.1).
    pub additive: Rate,
    /// By how much it rises for each step of hyper increase: R_HAI. Unit: bit/s. Default 400 Mbps
    /// (our choice: ten times `additive`; the paper gives none).
    pub hyper: Rate,
    /// No flow is slower. Unit: bit/s. Default 10 Mbps (our choice: slow enough for an incast of
    /// thousands).
    pub rate_min: Rate,
    /// Packets under way at most; 0: no limit. Unit: packets. Default 0 (DCQCN has none; Shoal §7.3
    /// says 35).
    pub window: u32,
    /// A receiver acknowledges every so many packets, and the last. Unit: packets. Default 16 (our
    /// choice; adapters acknowledge a message of several packets). At least 1; half a window at most.
    #[schemars(range(min = 1))]
    pub ack_every: u32,
    /// A receiver asks again for what is missing at most once in this time. Unit: time. Default 500
    /// us (our choice).
    pub nack_interval: Span,
    /// Silence after the last packet sent before everything unacknowledged is retransmitted; doubles
    /// until something is acknowledged. Unit: time. Default 4 ms (our choice). Above the longest round
    /// trip.
    pub timeout: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1500),
            header: Bytes::new(58),
            control: Bytes::new(64),
            priority: 3,
            notification_interval: Span::from_us(50),
            gain: 1.0 / 256.0,
            alpha_interval: Span::from_us(55),
            timer: Span::from_us(55),
            byte_counter: Bytes::new(10_000_000),
            fast_recovery: 5,
            additive: Rate::from_bps(40_000_000),
            hyper: Rate::from_bps(400_000_000),
            rate_min: Rate::from_bps(10_000_000),
            window: 0,
            ack_every: 16,
            nack_interval: Span::from_us(500),
            timeout: Span::from_us(4000),
        }
    }
}

impl Config {
    /// What is wrong with it, each with its key.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Framing::check(self.mtu, self.header);
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        refuse(self.header == Bytes::ZERO, "header", "0 B; expected at least 1 B".into());
        refuse(
            self.control == Bytes::ZERO || self.control > self.mtu,
            "control",
            format!("{}; expected 1 B to mtu = \"{}\"", self.control, self.mtu),
        );
        refuse(
            self.priority == 0 || self.priority >= PRIORITIES,
            "priority",
            format!("{}; expected 1 to {}", self.priority, PRIORITIES - 1),
        );
        refuse(
            self.window > 0 && self.ack_every > self.window.div_ceil(2),
            "ack_every",
            format!("{} packets for a window of {}; expected half", self.ack_every, self.window),
        );
        refuse(self.ack_every == 0, "ack_every", "0 packets; expected at least 1".into());
        problems.extend(self.check_rates());
        problems.extend(self.check_times());
        problems
    }

    fn check_rates(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            let message = format!("{}; expected above 0 and at most 1", self.gain);
            problems.push(Problem::new("gain", message));
        }
        if self.fast_recovery == 0 {
            problems.push(Problem::new("fast_recovery", "0 rises; expected at least 1"));
        }
        if self.byte_counter == Bytes::ZERO {
            problems.push(Problem::new("byte_counter", "0 B; expected at least 1 B"));
        }
        if self.rate_min == Rate::default() {
            let message = "0 bps; expected above 0: a flow without a rate never ends";
            problems.push(Problem::new("rate_min", message));
        }
        problems
    }

    fn check_times(&self) -> Vec<Problem> {
        let times = [
            ("alpha_interval", self.alpha_interval),
            ("timer", self.timer),
            ("timeout", self.timeout),
        ];
        let zero = times.into_iter().filter(|&(_, span)| span == Span::ZERO);
        let mut problems: Vec<_> =
            zero.map(|(key, _)| Problem::new(key, "0 s; expected above 0")).collect();
        let (alpha, notification) = (self.alpha_interval, self.notification_interval);
        if alpha <= notification {
            let message = format!(
                "{alpha}; expected above notification_interval = \"{notification}\", else alpha decays under congestion"
            );
            problems.push(Problem::new("alpha_interval", message));
        }
        problems
    }

    /// How flows are cut. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing::of(self.mtu, self.header)
    }
}
