//! The racks that the paper puts side by side (§7.3, §7.4), each carrying the same flows.

use std::collections::BTreeMap;

use rack::results::{LONG_MIN, RunResult};
use scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::datacentre::Figures;
use crate::Failure;
use crate::runs::{Collected, run_nth};
use crate::spread::Pulse;

/// A rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rack {
    Shoal,
    Ndp,
    Dctcp,
    Dcqcn,
    NdpSimulated,
    DctcpSimulated,
    DcqcnSimulated,
    DctcpOpen,
    DcqcnOpen,
}

/// In the order of the scenarios' `[[fabric]]` entries.
pub(super) const RACKS: [Rack; 4] = [Rack::Shoal, Rack::Ndp, Rack::Dctcp, Rack::Dcqcn];

/// Behind them in the scenario of Fig. 15: the baselines as the simulator has them that the paper used.
pub(super) const SIMULATED: [Rack; 3] =
    [Rack::NdpSimulated, Rack::DctcpSimulated, Rack::DcqcnSimulated];

/// Behind those: the two of them with handshakes, over connections that are open.
pub(super) const OPEN: [Rack; 2] = [Rack::DctcpOpen, Rack::DcqcnOpen];

/// The packet-switched ones.
pub(super) const BASELINES: [Rack; 3] = [Rack::Ndp, Rack::Dctcp, Rack::Dcqcn];

impl Rack {
    /// As the scenarios label it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shoal => "Shoal",
            Self::Ndp => "NDP",
            Self::Dctcp => "DCTCP",
            Self::Dcqcn => "DCQCN",
            Self::NdpSimulated => "NDP as simulated",
            Self::DctcpSimulated => "DCTCP as simulated",
            Self::DcqcnSimulated => "DCQCN as simulated",
            Self::DctcpOpen => "DCTCP as simulated, open",
            Self::DcqcnOpen => "DCQCN as simulated, open",
        }
    }

    /// In the names of claims.
    pub(super) fn word(self) -> String {
        self.name().to_lowercase().replace(" as ", "-").replace(", ", "-")
    }

    /// Its place among the scenario's fabrics.
    pub(super) fn place(self) -> usize {
        let mut all = RACKS.iter().chain(&SIMULATED).chain(&OPEN);
        all.position(|&rack| rack == self).expect("all are listed")
    }

    /// Carries the scenario's flows.
    pub(super) fn carry(
        self,
        scenario: &Scenario,
        pulse: &mut Pulse<'_>,
    ) -> Result<(RunResult, Collected), Failure> {
        let mut delivered = Collected::default();
        let result = run_nth(scenario, self.place(), &mut delivered, pulse)?;
        Ok((result, delivered))
    }
}

/// What a rack made of the flows of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Carried {
    pub(super) figures: Figures,
    /// Goodput of each long flow that was delivered, by its number, in bit/s.
    long: BTreeMap<u64, f64>,
}

impl Carried {
    pub(super) fn new(result: &RunResult, delivered: &Collected) -> Self {
        let long = delivered.flows.iter().filter(|one| one.flow.size >= LONG_MIN);
        let goodput = |bits: u64, seconds: f64| bits as f64 / seconds;
        Self {
            figures: Figures::of(result),
            long: long
                .map(|one| {
                    (one.flow.id.get(), goodput(one.flow.size.bits(), one.fct().as_seconds()))
                })
                .collect(),
        }
    }
}

/// A figure of the first rack by that of the second, seed by seed. Not a number where unfinished flows
/// leave one of the two unknown.
pub(super) fn quotients(
    first: &[Carried],
    second: &[Carried],
    get: fn(&Figures) -> f64,
) -> Vec<f64> {
    let pairs = first.iter().zip(second);
    pairs.map(|(first, second)| get(&first.figures) / get(&second.figures)).collect()
}

/// The middle one of several values, or the mean of the middle two: what one run alone does not decide. Not a
/// number where one is none.
pub(super) fn median(values: &[f64]) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = ((sorted.len() - 1) / 2, sorted.len() / 2);
    (sorted[low] + sorted[high]) / 2.0
}

/// Mean goodput of long flows in Shoal by that in the other rack, over the flows that both delivered,
/// seed by seed: flows that only one of them delivered would make them means over different flows.
pub(super) fn goodput_quotients(other: &[Carried], shoal: &[Carried]) -> Vec<f64> {
    let of_a_pair = |(other, shoal): (&Carried, &Carried)| {
        let both = shoal.long.iter().filter_map(|(flow, ours)| Some((ours, other.long.get(flow)?)));
        let (ours, theirs) = both.fold((0.0, 0.0), |(ours, theirs), (a, b)| (ours + a, theirs + b));
        (theirs > 0.0).then(|| ours / theirs)
    };
    other.iter().zip(shoal).filter_map(of_a_pair).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::runs::ScenarioFile;

    fn carried(fct: f64, long: &[(u64, f64)]) -> Carried {
        let figures = Figures { fct_mean: fct, ..Figures::default() };
        let long = long.iter().copied().collect();
        Carried { figures, long }
    }

    /// Shoal §7.3: 50 Gbps a node, packets of 1,500 B, windows of 35 packets, queues of 12 packets for
    /// NDP and of 100 for the others.
    #[test]
    fn both_files_have_the_racks_in_order_with_the_settings_of_the_paper() {
        let files = [
            ("fig15.toml", include_str!("../../shoal/fig15.toml")),
            ("fig18.toml", include_str!("../../shoal/fig18.toml")),
        ];
        let settings = [
            ("initial_window", 35, "18 KB", "source-path"),
            ("stream/initial_window", 35, "150 KB", "ecmp"),
            ("window", 35, "150 KB", "ecmp"),
        ];
        for (path, text) in files {
            let scenario = ScenarioFile { path, text }.with(&[], 1).unwrap();
            let labels: Vec<_> = scenario.fabrics.iter().map(|choice| &choice.label).collect();
            assert_eq!(labels[..4], RACKS.map(Rack::name), "{path}");
            let others = [&SIMULATED[..], &OPEN].concat();
            let others = others.iter().filter(|_| path == "fig15.toml").map(|rack| rack.name());
            let others: Vec<_> = others.collect();
            assert_eq!(labels[4..], others, "{path}");
            for (choice, (window, packets, queue, routing)) in
                scenario.fabrics[1..4].iter().zip(settings)
            {
                let config = choice.plan.config();
                let found = |key: &str| config.pointer(key).unwrap_or(&Value::Null);
                let label = &choice.label;
                assert_eq!(found(&format!("/transport/{window}")), packets, "{label}");
                assert_eq!(found("/switch/port_buffer"), queue, "{label}");
                assert_eq!(found("/routing"), routing, "{label}");
                assert_eq!(found("/load_rate"), "50 Gbps", "{label}");
                assert_eq!(found("/nodes"), 512, "{label}");
            }
        }
    }

    #[test]
    fn one_run_does_not_decide_a_median() {
        assert_eq!(median(&[0.9, 0.07, 0.8]), 0.8);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[1.0, f64::NAN]).is_nan());
    }

    #[test]
    fn goodput_is_compared_over_the_flows_that_both_delivered() {
        let shoal = [carried(1.0, &[(1, 40.0), (2, 80.0), (3, 9.0)]), carried(2.0, &[(1, 5.0)])];
        let other = [carried(3.0, &[(1, 20.0), (2, 40.0), (4, 1.0)]), carried(2.0, &[(7, 5.0)])];
        assert_eq!(goodput_quotients(&other, &shoal), [2.0]);
        assert_eq!(quotients(&other, &shoal, |figures| figures.fct_mean), [3.0, 1.0]);
    }
}
