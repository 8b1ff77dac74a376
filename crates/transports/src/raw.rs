//! The `transport` table of raw line-rate sending, whose core the packet network brings along.
//!
//! Models: the sender without control that PL2 §6 compares with. What is lost stays lost, or is sent
//! again by a sender that an oracle tells. For line-rate sending with real acknowledgments and
//! go-back-N, take DCQCN in a network that marks nothing.

use kernel::Bytes;
use packets::raw::{Raw, Recovery};
use packets::{Framing, Surroundings};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a raw sender does about losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// Nothing: a flow that lost a packet never ends.
    #[default]
    Stay,
    /// It learns of them at once and at no cost, and sends again from the first missing packet when
    /// it has sent all: an ideal.
    Repeat,
}

/// Raw line-rate sending: no window, no acknowledgment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Largest data packet, header included. Unit: bytes. Default 1500 B (Shoal §7.3). At least one
    /// more than `header`, at most 9216 B.
    pub mtu: Bytes,
    /// Header of a packet. Unit: bytes. Default 42 B: Ethernet 14, IP 20, UDP 8 (our choice).
    pub header: Bytes,
    /// What is done about losses. Default stay (our choice: for networks that lose nothing).
    pub losses: Losses,
}

impl Default for Config {
    fn default() -> Self {
        Self { mtu: Bytes::new(1500), header: Bytes::new(42), losses: Losses::Stay }
    }
}

/// Largest packet that the network knows (a jumbo frame with room for headers).
const MTU_MAX: Bytes = Bytes::new(9216);

impl Config {
    /// What is wrong with it, each with its key.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let (mtu, header) = (self.mtu, self.header);
        let mut problems = Vec::new();
        if mtu <= header {
            let message =
                format!("{mtu} leaves no room for payload behind a header of {header}; raise it");
            problems.push(Problem::new("mtu", message));
        }
        if mtu > MTU_MAX {
            problems.push(Problem::new("mtu", format!("{mtu}; expected at most {MTU_MAX}")));
        }
        problems
    }

    /// How flows are cut. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn framing(&self) -> Framing {
        let header = self.header.get() as u16;
        Framing { payload: self.mtu.get() as u16 - header, header }
    }

    /// The endpoints. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn build(&self, around: &Surroundings) -> Raw {
        let recovery = match self.losses {
            Losses::Stay => Recovery::None,
            Losses::Repeat => Recovery::Repeat { seed: around.seed },
        };
        Raw::new(around.hosts, self.framing(), recovery)
    }
}

#[cfg(test)]
mod tests {
    use kernel::Rate;
    use packets::config::Queues;
    use rack::Fabric;

    use super::*;
    use crate::networked::{carry, network, permutation, star};

    #[test]
    fn a_permutation_has_the_whole_line_and_losses_are_repeated() {
        for (loss_rate, losses) in [(0.0, Losses::Stay), (0.01, Losses::Repeat)] {
            let config = Config { losses, ..Config::default() };
            assert_eq!(config.check(), []);
            let net = packets::Config { loss_rate, ..star(8, Queues::default()) };
            let mut network = network(net.plan().unwrap(), 1, |around| config.build(around));
            let ends = carry(&mut network, &permutation(8, 3, 1_458 * 1_000));
            assert_eq!(ends.completed.len(), 8);
            assert_eq!(network.totals().retransmissions > 0, loss_rate > 0.0);
            if loss_rate == 0.0 {
                let share = ends.share(8, Rate::from_gbps(10)) / (1_458.0 / 1_500.0);
                assert!(share > 0.995 && share <= 1.0, "{share}");
            }
        }
    }

    #[test]
    fn bad_settings_are_named() {
        let small = Config { mtu: Bytes::new(42), ..Config::default() };
        let large = Config { mtu: Bytes::new(9217), ..Config::default() };
        assert_eq!([small, large].map(|config| config.check()[0].key.clone()), ["mtu", "mtu"]);
    }
}
