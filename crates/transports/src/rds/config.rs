//! The `transport` table of RDS.

use kernel::{Bytes, Span};
use packets::Framing;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// RDS: a round trip's bytes at once, the rest in slots that the receiver gives, without priorities.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Largest data packet, header included. Unit: bytes. Default 1500 B (PL2 §5). At least one more
    /// than `header`, at most 9216 B.
    pub mtu: Bytes,
    /// Header of a data packet. Unit: bytes. Default 42 B: Ethernet 14, IP 20, UDP 8 (our choice).
    pub header: Bytes,
    /// Size of a grant, a notice and every other control packet. Unit: bytes. Default 64 B (our
    /// choice: the smallest Ethernet frame).
    pub control: Bytes,
    /// Bytes that a sender sends blindly, before it hears of the receiver. Unit: bytes. Default 61 KiB
    /// (PL2 §6.1: the bandwidth-delay product). Rounded up to whole packets; at least 1 B.
    pub blind: Bytes,
    /// Most packets in one grant. Default 4 (PL2 §6.1). At least 1.
    #[schemars(range(min = 1))]
    pub batch: u32,
    /// How many times `blind` a receiver keeps granted and not received, all senders together. Default
    /// 1: slots for what its line carries in a round trip (our choice; PL2 does not say). At least 1.
    #[schemars(range(min = 1))]
    pub overcommitment: u32,
    /// Who takes turns at a receiver's slots. Default senders (our choice; PL2 does not say).
    pub turns: Turns,
    /// Silence after which a receiver says that what it has granted is lost, and after which a sender
    /// that has heard nothing sends its blind packets again. Unit: time. Default 1 ms (PL2 §6.1).
    /// Above the longest round trip.
    pub timeout: Span,
}

/// Who takes turns at a receiver's slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// Senders: of each the oldest message goes, and its others wait for that.
    #[default]
    Senders,
    /// Messages: a sender with several has as many turns.
    Messages,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1500),
            header: Bytes::new(42),
            control: Bytes::new(64),
            blind: Bytes::new(61 * 1024),
            batch: 4,
            overcommitment: 1,
            turns: Turns::default(),
            timeout: Span::from_us(1000),
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
        refuse(
            self.control == Bytes::ZERO || self.control > self.mtu,
            "control",
            format!("{}; expected 1 B to mtu = \"{}\"", self.control, self.mtu),
        );
        refuse(
            self.blind == Bytes::ZERO,
            "blind",
            "0 B; expected at least 1 B: a receiver must hear of a message".into(),
        );
        refuse(self.batch == 0, "batch", "0 packets; expected at least 1".into());
        refuse(self.overcommitment == 0, "overcommitment", "0; expected at least 1".into());
        refuse(
            self.timeout == Span::ZERO,
            "timeout",
            "0 s; expected more than the longest round trip".into(),
        );
        problems
    }

    /// How messages are cut. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing::of(self.mtu, self.header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Config), expected: &[&str]) {
        let mut config = Config::default();
        change(&mut config);
        let keys: Vec<_> = config.check().into_iter().map(|problem| problem.key).collect();
        assert_eq!(keys, expected, "{config:?}");
    }

    #[test]
    fn every_mistake_is_named() {
        check(|_| (), &[]);
        check(|c| c.mtu = Bytes::new(42), &["mtu", "control"]);
        check(|c| c.mtu = Bytes::new(9217), &["mtu"]);
        check(|c| c.control = Bytes::ZERO, &["control"]);
        check(|c| c.blind = Bytes::ZERO, &["blind"]);
        check(|c| (c.batch, c.overcommitment) = (0, 0), &["batch", "overcommitment"]);
        check(|c| c.timeout = Span::ZERO, &["timeout"]);
    }
}
