//! The `transport` table of NDP.

use kernel::{Bytes, Rate, Span};
use packets::Framing;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which flow a receiver pulls next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PullOrder {
    /// Each flow with something to pull in turn.
    #[default]
    RoundRobin,
    /// The most urgent class first; flows of a class in turn.
    Class,
}

/// NDP: trimmed headers, pulls paced by the receiver, packets sprayed by the sender.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Largest data packet, header included. Unit: bytes. Default 1500 B (Shoal §7.3); NDP's own
    /// evaluation has 9000 B (NDP §6). At least one more than `header`, at most 9216 B.
    pub mtu: Bytes,
    /// Header of a data packet, and size of a trimmed one and of every control packet. Unit: bytes.
    /// Default 64 B (NDP §3.1). Must agree with the switches' `trimming.header`.
    pub header: Bytes,
    /// Packets sent at line rate before the first pull. Unit: packets. Default 35 (Shoal §7.3, for
    /// 1500 B); NDP has 30 of 9000 B (§6.2). At least 1.
    #[schemars(range(min = 1))]
    pub initial_window: u32,
    /// How fast a host pulls. Unit: bit/s. Default 0 bps: the rate of its line (NDP §3.2); in a network
    /// whose hosts pass packets on, what it can bring to every host at once under uniform traffic (our
    /// choice: NDP is for networks whose core carries what the edge does).
    pub pull_rate: Rate,
    /// Which flow is pulled next. Default round-robin (NDP §3.2.1).
    pub pull_order: PullOrder,
    /// Paths with many refusals or losses are left out for a while (NDP §3.2.3). Default true.
    pub path_penalty: bool,
    /// Most paths that a flow uses. Unit: paths. Default 256 (our choice: more than any Clos of 2,048
    /// hosts has; a torus has tens of thousands). At least 1.
    #[schemars(range(min = 1, max = 65535))]
    pub paths_max: u16,
    /// Silence after which a packet counts as lost, and after which a flow with nothing on its way
    /// asks again; doubles while nothing is heard. Unit: time. Default 1 ms (NDP §3.2.2). Above the
    /// longest round trip.
    pub timeout: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1500),
            header: Bytes::new(64),
            initial_window: 35,
            pull_rate: Rate::default(),
            pull_order: PullOrder::RoundRobin,
            path_penalty: true,
            paths_max: 256,
            timeout: Span::from_us(1000),
        }
    }
}

impl Config {
    /// The settings of NDP's own evaluation: jumbo frames and a window of 30 of them (NDP §6.2).
    #[must_use]
    pub fn jumbo() -> Self {
        Self { mtu: Bytes::new(9000), initial_window: 30, ..Self::default() }
    }

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
            self.initial_window == 0,
            "initial_window",
            "0 packets; expected at least 1: no pull comes before a packet".into(),
        );
        refuse(self.paths_max == 0, "paths_max", "0 paths; expected at least 1".into());
        refuse(
            self.timeout == Span::ZERO,
            "timeout",
            "0 s; expected more than the longest round trip".into(),
        );
        problems
    }

    /// How flows are cut. The configuration has passed [`Config::check`].
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing::of(self.mtu, self.header)
    }
}
