//! The `[fabric.outside]` table.

use ipnet::IpNet;
use kernel::{Bytes, Rate, Span};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pipeline::plan;
use crate::pipeline::routes::SLOTS_MAX;

/// The datacenter's network that the Clique is attached to by Ethernet ports of its TiNs (Aquila §2, App. A), as one
/// switch that never blocks but where many send to one host. Hosts outside are nodes of the scenario, numbered behind
/// those of the Clique. They send to any TiN that is attached, and TiNs send to them by such a TiN: a flow always by the
/// same one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Outside {
    /// Hosts outside. Default 0: nothing is outside. Up to 1024.
    #[schemars(range(max = 1_024))]
    pub hosts: u32,
    /// TiNs that are attached, evenly over all pods. Default 0: eight of nine, which are 512 of 576 (Aquila App. A; our
    /// choice among what it names, U49). At most all, and 512.
    pub ports: u16,
    /// Weights of these TiNs for what goes outside, from the first on, and again from the beginning when there are fewer
    /// weights than TiNs (Aquila §3.3). Default `[1]`: all alike. At least one above 0; of 512 slots of a group.
    pub weights: Vec<u32>,
    /// The prefix of the addresses outside, of IPv4 or IPv6. Default "198.18.0.0/15", which is for tests of networks (our
    /// choice). None of the Clique's own, 10.0.0.0/20 and fd47::/48.
    pub prefix: String,
    /// Rate of a host's line outside. Unit: bit/s. Default 100 Gbps (our choice). From 1 Gbps to 1 Tbps.
    #[schemars(extend("x-minimum" = "1 Gbps", "x-maximum" = "1000 Gbps"))]
    pub rate: Rate,
    /// From a host outside to the switch: what is far is far here. Unit: time. Default 14 us, so that round trips take 30 us
    /// with what is in them besides (our choice, U61). Up to 100 ms (Aquila §1).
    #[schemars(extend("x-maximum" = "100 ms"))]
    pub delay: Span,
    /// Fibre from the switch to an Ethernet port. Unit: time. Default 500 ns: 100 m (our choice). From 100 ns, so that parts
    /// of a Clique can be run side by side, to 1 ms.
    #[schemars(extend("x-minimum" = "100 ns", "x-maximum" = "1 ms"))]
    pub uplink_delay: Span,
    /// Buffer of the switch for each of its ports; what finds it full is lost. Unit: bytes. Default 16 MB (our choice). From
    /// 16384 B to 1 GB.
    #[schemars(extend("x-minimum" = "16384 B", "x-maximum" = "1 GB"))]
    pub buffer: Bytes,
}

impl Default for Outside {
    fn default() -> Self {
        Self {
            hosts: 0,
            ports: 0,
            weights: vec![1],
            prefix: "198.18.0.0/15".into(),
            rate: Rate::from_gbps(100),
            delay: Span::from_us(14),
            uplink_delay: Span::from_ns(500),
            buffer: Bytes::new(16_000_000),
        }
    }
}

impl Outside {
    /// The prefix; `None`: it is none.
    #[must_use]
    pub fn prefix(&self) -> Option<IpNet> {
        self.prefix.parse().ok()
    }

    /// How many of a Clique's TiNs are attached.
    #[must_use]
    pub fn attached(&self, tins: u16) -> u16 {
        let default = (u32::from(tins) * 8 / 9).max(1) as u16;
        if self.ports == 0 { default } else { self.ports }
    }

    /// Every mistake in it, where a Clique has so many TiNs.
    #[must_use]
    pub fn check(&self, tins: u16) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |is_bad: bool, key: &str, message: String| {
            if is_bad {
                problems.push(Problem::new(key, message));
            }
        };
        let most = tins.min(SLOTS_MAX as u16);
        let message = format!(
            "{}; expected at most {most}: of {tins} TiNs each has a port, and a group has {SLOTS_MAX} slots",
            self.ports
        );
        refuse(self.ports > most, "ports", message);
        let is_weighted = self.weights.iter().any(|&weight| weight > 0);
        let message = format!("{:?}; expected one at least that is above 0", self.weights);
        refuse(!is_weighted, "weights", message);
        let attached = self.attached(tins);
        let message = format!("{} weights for {attached} TiNs; expected at most one each", {
            self.weights.len()
        });
        refuse(self.weights.len() > attached.into(), "weights", message);
        match self.prefix() {
            None => {
                let message =
                    format!("{:?}; expected, for example, \"198.18.0.0/15\"", self.prefix);
                refuse(true, "prefix", message);
            }
            Some(prefix) => {
                let own = plan::own()
                    .into_iter()
                    .find(|own| own.contains(&prefix.network()) || prefix.contains(&own.network()));
                let message = own.map(|own| {
                    format!("{prefix} and {own}, which the Clique's own addresses are of; expected another")
                });
                refuse(own.is_some(), "prefix", message.unwrap_or_default());
                let bits = u32::from(prefix.max_prefix_len() - prefix.prefix_len());
                let places = 1_u64.checked_shl(bits).unwrap_or(u64::MAX);
                let message = format!(
                    "{prefix} has {places} addresses, and hosts are {}; expected a shorter prefix",
                    self.hosts
                );
                refuse(places < u64::from(self.hosts), "prefix", message);
            }
        }
        rack::ranges::check(self, problems)
    }
}
