//! The `[fabric.rma]` table.

use kernel::{Bytes, Rate, Span};
use packets::config::Law;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cells::rma::{LENGTH_MAX, TAG_BYTES};
use crate::link::classes::Half;

/// Remote memory (1RMA): what hosts may ask for at a time, how long it takes them, and what their software does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rma {
    /// The half of the virtual channels that it takes: "low-latency", with IP that is to be fast (Aquila §3.4), or
    /// "bulk", with all other IP (Aquila §5.1). Default low-latency.
    pub half: Half,
    /// What one request asks for at most; operations that are longer are several. Unit: bytes. Default 4096 B (our
    /// choice, M505). From 128 B to 4096 B, whole payloads of responses.
    #[schemars(extend("x-minimum" = "128 B", "x-maximum" = "4096 B"))]
    pub segment: Bytes,
    /// Payload of a response: what a completion on PCIe carries. Unit: bytes. Default 128 B (our choice, U34). 64 B or
    /// 128 B.
    pub payload: Bytes,
    /// Tag of a response, by which it is known not to be damaged. Unit: bytes. Default 16 B (our choice, U34). 16 B or
    /// 0 B: then damaged bytes are delivered.
    pub tag: Bytes,
    /// Bytes that a host has asked for and that are not there yet, at most; and bytes that it offers to write. Unit:
    /// bytes. Default 64 KiB: some 5 us of 100 Gbps (our choice, U35). From one segment to 16 MiB.
    #[schemars(extend("x-maximum" = "16777216 B"))]
    pub window: Bytes,
    /// Commands of a host that may be under way. Default 512 (our choice, U35). From 1 to 4096.
    #[schemars(range(min = 1, max = 4_096))]
    pub slots: u16,
    /// Requests that wait at a host to be answered; more wait in the fabric. Default 512 (our choice, M506). From 4 to
    /// 65536.
    #[schemars(range(min = 4, max = 65_536))]
    pub queue: u32,
    /// How long a command may take; then it has failed, and software tries again. Unit: time. Default 1 ms (our choice,
    /// U35). From 10 us to 1 s.
    #[schemars(extend("x-minimum" = "10 us", "x-maximum" = "1 s"))]
    pub deadline: Span,
    /// Regions of memory that a host can have registered. Default 4096 (our choice, M515). From 1 to 4096.
    #[schemars(range(min = 1, max = 4_096))]
    pub regions: u16,
    /// Time between two requests that a host begins to answer. Unit: time. Default 10 ns (our choice, U36). Up to 1 us.
    #[schemars(extend("x-maximum" = "1 us"))]
    pub request_gap: Span,
    /// From a request's last bit to the read of memory that it asks for. Unit: time. Default 100 ns (our choice, U36).
    /// Up to 10 us.
    #[schemars(extend("x-maximum" = "10 us"))]
    pub request_time: Span,
    /// From a response's last bit until its bytes are on their way to memory. Unit: time. Default 50 ns (our choice,
    /// U36). Up to 10 us.
    #[schemars(extend("x-maximum" = "10 us"))]
    pub landing_time: Span,
    /// The host's bus.
    pub pcie: Pcie,
    /// Whether hosts sleep.
    pub power: Power,
    /// Congestion control and retries, in software.
    pub software: Software,
    /// Most bytes of one operation, where operations carry the flows of a scenario (`carrier`). Unit: bytes. Default
    /// 16 KiB (our choice: four fill a window). From 1 B to 256 segments, and to 1 MiB.
    #[schemars(extend("x-minimum" = "1 B"))]
    pub operation: Bytes,
}

/// The bus between a TiN and a host (M513, U33: our choice, about 1.2 us of a read's 4 us).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pcie {
    /// From software's doorbell until the command is with the hardware. Unit: time. Default 250 ns (our choice, M513). Up
    /// to 1 ms.
    #[schemars(extend("x-maximum" = "1 ms"))]
    pub doorbell: Span,
    /// From a read of memory to its first completion. Unit: time. Default 600 ns (our choice, M513). Up to 1 ms.
    #[schemars(extend("x-maximum" = "1 ms"))]
    pub read: Span,
    /// How fast bytes follow, in each direction. Unit: bit/s. Default 104 Gbps: 13 GB/s (our choice, M513). From 1 Gbps
    /// to 10 Tbps.
    #[schemars(extend("x-minimum" = "1 Gbps", "x-maximum" = "10000 Gbps"))]
    pub rate: Rate,
    /// From an operation's last byte in memory until software knows. Unit: time. Default 350 ns (our choice, M513). Up to
    /// 1 ms.
    #[schemars(extend("x-maximum" = "1 ms"))]
    pub completion: Span,
    /// Most bytes of memory that are being read at a time, sent ones not counted. Unit: bytes. Default 32 KiB: 2.5 us of
    /// the bus (our choice: four times what its delay takes). From one segment to 16 MiB.
    #[schemars(extend("x-maximum" = "16777216 B"))]
    pub reads: Bytes,
}

/// Hosts that sleep when nobody asks for their memory (Aquila §5.2, U40: only to show that more load makes reads faster).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Power {
    /// Whether they do. Default false.
    pub sleeps: bool,
    /// How long nobody must have asked. Unit: time. Default 20 us (our choice). Up to 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub after: Span,
    /// How long they take to wake. Unit: time. Default 8 us (our choice). Up to 100 us: well before deadlines.
    #[schemars(extend("x-maximum" = "100 us"))]
    pub exit: Span,
    /// Whether that is always as long, "fixed", or that in the mean, "exponential". Default fixed.
    pub law: Law,
}

/// What software does (M511, U37: our choice, as 1RMA does it: congestion control by delay, and retries, are software's).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Software {
    /// Delay of a request, from its way out until its last byte is in memory, above which less is asked of its
    /// destination. Unit: time. Default 10 us (our choice: what reads stay below under high load, Aquila §5.1). From
    /// 1 us to 1 s.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "1 s"))]
    pub target: Span,
    /// By how much more is asked of a destination after each window of bytes below the target. Unit: bytes. Default
    /// 4096 B (our choice). From 1 B to 1 MiB.
    #[schemars(extend("x-minimum" = "1 B", "x-maximum" = "1048576 B"))]
    pub increase: Bytes,
    /// How strongly delay above the target is answered. Default 0.8, as in Swift (our choice). From 0 to 1; 0: never.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub beta: f64,
    /// By what share less is asked at a time, at most. Default 0.5, as in Swift (our choice). From 0 to 0.9.
    #[schemars(range(min = 0.0, max = 0.9))]
    pub decrease_max: f64,
    /// How often an operation that has failed by time is tried again. Default 8 (our choice). Up to 100. Atomic ones
    /// never are: nobody knows whether they were done.
    #[schemars(range(max = 100))]
    pub retries: u8,
    /// Until the first retry; twice as long each time, up to 64 times. Unit: time. Default 100 us (our choice). Up to
    /// 1 s.
    #[schemars(extend("x-maximum" = "1 s"))]
    pub backoff: Span,
}

impl Default for Rma {
    fn default() -> Self {
        Self {
            half: Half::LowLatency,
            segment: Bytes::new(LENGTH_MAX.into()),
            payload: Bytes::new(128),
            tag: Bytes::new(TAG_BYTES as u64),
            window: Bytes::new(64 << 10),
            slots: 512,
            queue: 512,
            deadline: Span::from_us(1_000),
            regions: 4_096,
            request_gap: Span::from_ns(10),
            request_time: Span::from_ns(100),
            landing_time: Span::from_ns(50),
            pcie: Pcie::default(),
            power: Power::default(),
            software: Software::default(),
            operation: Bytes::new(16 << 10),
        }
    }
}

impl Default for Pcie {
    fn default() -> Self {
        Self {
            doorbell: Span::from_ns(250),
            read: Span::from_ns(600),
            rate: Rate::from_gbps(104),
            completion: Span::from_ns(350),
            reads: Bytes::new(32 << 10),
        }
    }
}

impl Default for Power {
    fn default() -> Self {
        let (after, exit) = (Span::from_us(20), Span::from_us(8));
        Self { sleeps: false, after, exit, law: Law::Fixed }
    }
}

impl Default for Software {
    fn default() -> Self {
        Self {
            target: Span::from_us(10),
            increase: Bytes::new(LENGTH_MAX.into()),
            beta: 0.8,
            decrease_max: 0.5,
            retries: 8,
            backoff: Span::from_us(100),
        }
    }
}

/// Segments of an operation: their numbers have 8 bits (M504).
pub const SEGMENTS_MAX: u32 = 256;

impl Rma {
    /// Every mistake in it.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |is_bad: bool, key: &str, message: String| {
            if is_bad {
                problems.push(Problem::new(key, message));
            }
        };
        let [small, large] = [64, 128].map(Bytes::new);
        let has_payload = self.payload == small || self.payload == large;
        let message = format!("{}; expected {small} or {large}", self.payload);
        refuse(!has_payload, "payload", message);
        let tag = Bytes::new(TAG_BYTES as u64);
        let message = format!("{}; expected {tag}, or 0 B", self.tag);
        refuse(self.tag != tag && self.tag != Bytes::ZERO, "tag", message);
        let is_whole = has_payload && self.segment.get().is_multiple_of(self.payload.get());
        let message = format!(
            "{}; expected a multiple of {}, the payload of a response",
            self.segment, self.payload
        );
        refuse(has_payload && !is_whole, "segment", message);
        for (key, bytes) in [("window", self.window), ("pcie.reads", self.pcie.reads)] {
            let message = format!("{bytes}; expected {}, one segment, at least", self.segment);
            refuse(bytes < self.segment, key, message);
        }
        let most = Bytes::new(self.segment.get() * u64::from(SEGMENTS_MAX));
        let message = format!(
            "{}; expected at most {most}, {SEGMENTS_MAX} segments of {}",
            self.operation, self.segment
        );
        refuse(self.operation > most, "operation", message);
        rack::ranges::check(self, problems)
    }
}
