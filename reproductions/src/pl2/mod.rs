//! PL2 (2021): its testbed, simulated.

mod arithmetic;
mod bursts;
mod causes;
mod incast;
mod memcached;
mod messages;
mod microbursts;
mod racks;
mod rpcs;
mod sweeps;
#[cfg(test)]
mod tests;
mod traces;
mod training;

use crate::paper::experiment;
use crate::{Experiment, Paper};

/// What a packet and a grant take of the line together: the length of slots that hold both.
const SLOT_WITH_GRANT: &str = "129.76 ns";

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "pl2",
    citation: "PL2: Towards Predictable Low Latency in Rack-Scale Networks. arXiv 2101.06537, 2021.",
    experiments: EXPERIMENTS,
    configuration: include_str!("../../pl2/configuration.toml"),
    released: include_str!("../../pl2/released.toml"),
};

/// In the order of the paper.
const EXPERIMENTS: &[Experiment] = &[
    experiment!("pl2", "section2", "§2, §7", "What buffers and round trips hold", arithmetic::run),
    experiment!("pl2", "fig1", "§2, Fig. 1", "Microbursts beside RDS", microbursts::run),
    experiment!(
        "pl2",
        "fig1-time-out",
        "§2, Fig. 1",
        "Microbursts, RDS with longer time-outs",
        microbursts::long_time_outs,
    ),
    experiment!("pl2", "burst", "§4.3", "Packets in a burst (K)", bursts::run),
    experiment!(
        "pl2",
        "burst-free",
        "§4.3",
        "Packets in a burst (K), hosts without work",
        bursts::run_without_work,
    ),
    experiment!(
        "pl2",
        "burst-nic",
        "§4.3",
        "Packets in a burst (K), exchanges from NIC to NIC",
        bursts::run_nic_to_nic,
    ),
    experiment!("pl2", "threshold", "§4.4", "When bursts go unsolicited (t)", sweeps::thresholds),
    experiment!("pl2", "exchange", "§5, §7", "A reservation and its grant", sweeps::exchange),
    experiment!("pl2", "fig3", "§6.2.1, Figs 3, 4", "memcached beside TCP", memcached::beside_tcp),
    experiment!(
        "pl2",
        "fig3-pauses",
        "§6.2.1, Figs 3, 4",
        "memcached beside TCP of hosts that pause",
        memcached::beside_pauses
    ),
    experiment!(
        "pl2",
        "fig3-start",
        "§6.2.1, Figs 3, 4",
        "memcached beside TCP that has just begun",
        memcached::beside_start
    ),
    experiment!("pl2", "fig5", "§6.2.2, Figs 5, 6", "memcached beside UDP", memcached::beside_udp),
    experiment!(
        "pl2",
        "gentler",
        "§6.2.1, §6.2.2",
        "Hosts that press less hard",
        memcached::gentler
    ),
    experiment!("pl2", "fig7", "§6.2.3, Fig. 7", "The shuffle of VGG16's training", training::run),
    experiment!(
        "pl2",
        "fig7-threads",
        "§6.2.3, Fig. 7",
        "VGG16's training, a thread for each message",
        messages::run,
    ),
    experiment!("pl2", "fig8", "§6.3, Fig. 8", "W1 to W5, raw Ethernet and TCP", traces::run),
    experiment!("pl2", "fig9", "§6.4, Fig. 9", "Incast of flows that never end", incast::incast),
    experiment!("pl2", "fig10", "§6.4, Fig. 10", "Outcast of such flows", incast::outcast),
    experiment!("pl2", "causes", "§6.2 to §6.4", "What rows that differ hang on", causes::run),
    experiment!(
        "pl2",
        "further",
        "§6.2, §6.3",
        "What else rows that differ hang on",
        causes::further
    ),
];
