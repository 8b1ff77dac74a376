//! The `transport` table of raw line-rate sending.
//!
//! Models: the sender without control that PL2 §6 compares with. What is lost stays lost, or is sent
//! again when its receiver has long lacked it. For line-rate sending with real acknowledgments and
//! go-back-N, take DCQCN in a network that marks nothing.

use kernel::{Bytes, Span};
use packets::{Framing, Surroundings};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Raw, Recovery};

/// What a raw sender does about losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// Nothing: a flow that lost a packet never ends.
    #[default]
    Stay,
    /// A receiver to which nothing has come for `patience` says what it lacks, and that is retransmitted; it
    /// says so when it has all. A sender that hears nothing sends its last packet again.
    Repeat,
    /// Nothing, as UDP and raw Ethernet: packets are readable as they arrive, in whatever order, and a
    /// flow of which some are missing fails (PL2 §6.4).
    Forget,
}

/// Longest patience (our choice: far above any wait of a rack).
const PATIENCE_MAX: Span = Span::from_us(1_000_000_000);

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
    /// With losses = "forget": how long after its last packet was sent a flow fails of which packets
    /// are missing. With "repeat": how long nothing of a flow must have arrived before what is missing
    /// is retransmitted; doubled each time that brings nothing, up to 64 times. Unit: time. Default 1 ms
    /// (our choice: longer than the queues of a rack). Above the longest way, at most 1000 s.
    pub patience: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1500),
            header: Bytes::new(42),
            losses: Losses::Stay,
            patience: Span::from_us(1000),
        }
    }
}

impl Config {
    /// What is wrong with it, each with its key.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Framing::check(self.mtu, self.header);
        if self.patience == Span::ZERO {
            let message = "0 s; expected more than a packet's longest way through the network";
            problems.push(Problem::new("patience", message));
        }
        if self.patience > PATIENCE_MAX {
            let message = format!("{}; expected at most {PATIENCE_MAX}", self.patience);
            problems.push(Problem::new("patience", message));
        }
        problems
    }

    /// How flows are cut. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing::of(self.mtu, self.header)
    }

    /// The endpoints. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn build(&self, around: &Surroundings) -> Raw {
        let recovery = match self.losses {
            Losses::Stay => Recovery::None,
            Losses::Repeat => Recovery::Repeat { seed: around.seed, patience: self.patience },
            Losses::Forget => Recovery::Forget { patience: self.patience },
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
    use crate::chaos::flow;
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
        let hasty = Config { patience: Span::ZERO, ..Config::default() };
        let stoic = Config { patience: Span::from_us(1_000_000_001), ..Config::default() };
        let keys = [small, large, hasty, stoic].map(|config| config.check()[0].key.clone());
        assert_eq!(keys, ["mtu", "mtu", "patience", "patience"]);
    }

    /// PL2 §6.4: of what n hosts send to one, all at line rate, one n-th arrives.
    #[test]
    fn of_n_datagram_senders_one_nth_arrives_and_flows_with_gaps_fail() {
        for senders in 1..=4 {
            let config = Config { losses: Losses::Forget, ..Config::default() };
            let queues = Queues { port_buffer: Bytes::new(15_000), ..Queues::default() };
            let plan = star(senders + 1, queues).plan().unwrap();
            let mut network = network(plan, 1, |around| config.build(around));
            let packets = 4_000;
            let flows: Vec<_> = (1..=senders).map(|src| flow(src, 0, 1_458 * packets, 0)).collect();
            let ends = carry(&mut network, &flows);
            let totals = network.totals();
            let sent = packets * u64::from(senders);
            assert_eq!(totals.drops, sent - totals.delivered.get() / 1_458);
            let share = totals.delivered.get() as f64 / (1_458 * sent) as f64;
            let expected = 1.0 / f64::from(senders);
            // The buffer's ten packets come on top.
            assert!((0.0..0.003).contains(&(share - expected)), "{senders}: {share}");
            assert_eq!(totals.lost + totals.delivered, Bytes::new(1_458 * sent));
            // Senders in step may lose the packets of one of them alone.
            assert_eq!(ends.failed.is_empty(), senders == 1);
        }
    }

    /// Losses at random: a message comes through if all its packets do.
    #[test]
    fn a_message_fails_if_one_of_its_datagrams_is_lost() {
        let config = Config { losses: Losses::Forget, ..Config::default() };
        let net = packets::Config { loss_rate: 0.01, ..star(2, Queues::default()) };
        let mut network = network(net.plan().unwrap(), 1, |around| config.build(around));
        let (count, packets) = (5_000u64, 4);
        let flows: Vec<_> =
            (0..count).map(|number| flow(0, 1, 1_458 * packets, 6 * number)).collect();
        let ends = carry(&mut network, &flows);
        assert!(network.totals().drops as usize >= ends.failed.len());
        // Two links for each packet; four standard errors.
        let whole = 0.99f64.powi(2 * packets as i32);
        let found = ends.completed.len() as f64 / count as f64;
        let error = (whole * (1.0 - whole) / count as f64).sqrt();
        assert!((found - whole).abs() < 4.0 * error, "{found} of {whole}");
    }
}
