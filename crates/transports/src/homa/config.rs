//! The `transport` table of Homa.

use kernel::{Bytes, Span};
use packets::{Framing, PRIORITIES};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Homa: short messages at once, long ones as the receiver grants, both by network priorities.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Largest data packet, header included. Unit: bytes. Default 1500 B (Homa §5.2: Ethernet's). At
    /// least one more than `header`, at most 9216 B.
    pub mtu: Bytes,
    /// Header of a data packet. Unit: bytes. Default 60 B (our choice: 20 B of IP and 40 B of Homa).
    pub header: Bytes,
    /// Size of a grant and every other control packet. Unit: bytes. Default 64 B (our choice: the
    /// smallest Ethernet frame).
    pub control: Bytes,
    /// Bytes that a sender may send before the first grant, and that a receiver keeps granted but not
    /// received: what a line carries in a round trip. 0 B: that of the idle network, and one packet
    /// for each link on the way, as grants wait for what is on the line already (our choice: without
    /// it hosts that send and receive at once reach three quarters of their rate). Unit: bytes.
    /// Default 0 B (Homa §3.2; 9.7 KB in its 10 Gbps networks, §5.1). Rounded up to whole packets.
    pub rtt_bytes: Bytes,
    /// Priorities used; control packets share the most urgent. Default 8 (Homa §5.2). From 1 to 8.
    #[schemars(range(min = 1, max = 8))]
    pub priorities: u8,
    /// Priorities for unscheduled packets; 0: as the sizes of the workload demand (Homa §3.4).
    /// Default 0. Below `priorities` where there is more than one.
    #[schemars(range(max = 7))]
    pub unscheduled_priorities: u8,
    /// For each unscheduled priority but the last, from the most urgent: the largest message that
    /// uses it. Empty: as the sizes of the workload demand (Homa §3.4). Unit: bytes. Default empty.
    /// Rising; one fewer than `unscheduled_priorities`.
    pub cutoffs: Vec<Bytes>,
    /// Messages that a receiver grants to at a time; 0: as many as there are scheduled priorities.
    /// Default 0 (Homa §3.5).
    pub overcommitment: u32,
    /// Silence after which a receiver asks for what is missing, and a sender whether it is still
    /// there. Unit: time. Default 2 ms (our choice within "a few milliseconds", Homa §3.7). Above the
    /// longest round trip.
    pub resend_after: Span,
    /// Fewer unscheduled bytes to hosts that say that many messages come to them (Homa §3.6). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incast: Option<Incast>,
}

/// Incast control. In the paper a client marks requests while it waits for many responses; messages here
/// have no request. A receiver tells in its grants and last acknowledgments how many messages come to it,
/// and a sender that has heard of more than the threshold from a host sends it less at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Incast {
    /// Messages that come to a host, as it said last, beyond which a new one has few unscheduled bytes.
    /// Default 12 (our choice; Homa §3.6
    /// gives none). At least 1.
    #[schemars(range(min = 1))]
    pub threshold: u32,
    /// Unscheduled bytes of such a message. Unit: bytes. Default 320 B (our choice within "a few
    /// hundred bytes", Homa §3.6). At least 1 B; rounded up to whole packets.
    pub unscheduled: Bytes,
}

impl Default for Incast {
    fn default() -> Self {
        Self { threshold: 12, unscheduled: Bytes::new(320) }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1500),
            header: Bytes::new(60),
            control: Bytes::new(64),
            rtt_bytes: Bytes::ZERO,
            priorities: PRIORITIES,
            unscheduled_priorities: 0,
            cutoffs: Vec::new(),
            overcommitment: 0,
            resend_after: Span::from_us(2000),
            incast: None,
        }
    }
}

impl Config {
    /// What is wrong with it, each with its key.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = self.check_priorities();
        problems.extend(Framing::check(self.mtu, self.header));
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
            self.resend_after == Span::ZERO,
            "resend_after",
            "0 s; expected more than the longest round trip".into(),
        );
        if let Some(incast) = &self.incast {
            let (threshold, unscheduled) = (incast.threshold, incast.unscheduled);
            refuse(threshold == 0, "incast.threshold", "0 messages; expected at least 1".into());
            refuse(
                unscheduled == Bytes::ZERO,
                "incast.unscheduled",
                "0 B; expected at least 1 B: a receiver must hear of a message".into(),
            );
        }
        problems
    }

    fn check_priorities(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        let (all, unscheduled) = (self.priorities, self.unscheduled_priorities);
        refuse(
            all == 0 || all > PRIORITIES,
            "priorities",
            format!("{all}; expected 1 to {PRIORITIES}"),
        );
        refuse(
            unscheduled > 0 && unscheduled >= all.max(2),
            "unscheduled_priorities",
            format!("{unscheduled} of {all} leaves none for scheduled packets; lower it"),
        );
        let count = self.cutoffs.len();
        refuse(
            count > 0 && count + 1 != usize::from(unscheduled),
            "cutoffs",
            format!("{count} sizes for unscheduled_priorities = {unscheduled}; expected one fewer"),
        );
        refuse(
            !self.cutoffs.is_sorted_by(|a, b| a < b),
            "cutoffs",
            "sizes that do not rise; expected each above the one before".into(),
        );
        problems
    }

    /// How messages are cut. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing::of(self.mtu, self.header)
    }
}
