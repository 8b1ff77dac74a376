//! What a network whose hosts pass packets on can bring to each of them.

use kernel::Rate;
use rack::topology::Vertex;

use crate::net::Net;

/// The rate at which every host can receive while all receive alike from all others by shortest paths:
/// the links' rates together, by the hosts and the mean number of links from one to another. At most
/// `line`, what a host's own links carry; just that where hosts pass nothing on.
pub(super) fn rate(net: &Net, line: Rate) -> Rate {
    let topology = &net.plan.topology;
    let hosts = topology.hosts();
    if (0..hosts).all(|host| topology.degree(Vertex::new(host)) == 1) {
        return line;
    }
    let links: u128 = topology.ports().iter().map(|port| u128::from(port.link.rate.as_bps())).sum();
    // Each host sends to hosts - 1 others: the mean is over as many pairs for each.
    let rate = links * u128::from(hosts - 1) / net.tables.links().max(1);
    Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX)).min(line)
}

#[cfg(test)]
mod tests {
    use rack::topology::{LeafSpine, Shape, Torus};

    use super::super::surroundings;
    use super::*;
    use crate::config::Config;

    fn uniform(topology: Shape) -> Rate {
        let plan = Config { topology, ..Config::default() }.plan().unwrap();
        surroundings(&plan, 1).uniform_rate
    }

    #[test]
    fn a_torus_brings_each_node_its_links_by_the_mean_distance() {
        // k nodes around in each of n dimensions, k even: n k / 4 links on average over all nodes,
        // oneself included (Dally and Towles, "Principles and practices of interconnection networks",
        // §5.2).
        for (k, n) in [(4u64, 2u32), (4, 3), (6, 2), (8, 2)] {
            let dimensions = vec![k as u32; n as usize];
            let rate = Rate::from_gbps(10);
            let found = uniform(Shape::Torus(Torus { dimensions, rate, ..Torus::default() }));
            let nodes = k.pow(n);
            let hops = nodes * u64::from(n) * k / 4;
            let expected = 2 * u64::from(n) * 10_000_000_000 * (nodes - 1) / hops;
            assert_eq!(found.as_bps(), expected, "{k}-ary {n}-cube");
        }
    }

    #[test]
    fn where_switches_pass_packets_on_it_is_the_line() {
        let leaves = LeafSpine { hosts: 32, radix: 8, ..LeafSpine::default() };
        assert_eq!(uniform(Shape::LeafSpine(leaves)), Rate::from_gbps(50));
    }
}
