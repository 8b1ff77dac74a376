//! What a network is made of, draws and costs: the parts that fabrics are compared by.
//!
//! Models: the parts of Shoal §5 (packet switches, NICs on the nodes' chips) for any network of
//! packet switches. A part draws and costs in proportion to its bandwidth, so that networks of other
//! rates can be compared too; at the paper's rates the figures are the paper's. Power is in watts.
//! Cost is relative, since absolute prices are hard to know (Shoal §5): a packet switch of
//! [`SWITCH_PORTS`] ports of [`PORT_RATE`] costs 1.
//!
//! Between racks ([`Racks`](crate::topology::Racks)) cables count, and the Ethernet switches of tunnels.
//!
//! Leaves out: cables within a rack, transceivers, cooling, and that a switch draws less where ports idle.

use kernel::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::topology::{Joint, Topology, Vertex};

/// Ports of the packet switch that others are measured by (Shoal §5).
pub const SWITCH_PORTS: u32 = 64;
/// Rate of each of its ports (Shoal §5).
pub const PORT_RATE: Rate = Rate::from_gbps(50);
/// What it draws, in watts (Shoal §5).
pub const SWITCH_WATTS: f64 = 350.0;
/// What a separate NIC of [`NIC_RATE`] draws, in watts (Shoal §5).
pub const NIC_WATTS: f64 = 12.4;
/// The rate of that NIC (Shoal §5).
pub const NIC_RATE: Rate = Rate::from_gbps(100);
/// How many times less power a NIC draws that is part of a node's chip (Shoal §5).
pub const INTEGRATION_FACTOR: f64 = 10.0;
/// Cost of a NIC of [`PORT_RATE`] as a fraction of the switch: half a port of it (our choice: what
/// Shoal's break-even points follow from).
pub const NIC_COST: f64 = 1.0 / 128.0;

/// What a network is made of, draws and costs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Bill {
    /// How many switches it has.
    pub switches: u32,
    /// What they draw together. Unit: W.
    pub switches_watts: f64,
    /// What the NICs draw together. Unit: W.
    pub nics_watts: f64,
    /// Cables from rack to rack, or to a switch between racks; other cables do not count.
    pub cables: u32,
    /// What the ends of these cables draw together. Unit: W.
    pub cables_watts: f64,
    /// What all parts cost, in packet switches of [`SWITCH_PORTS`] ports of [`PORT_RATE`].
    pub cost: f64,
}

impl Bill {
    /// What the network draws. Unit: W.
    #[must_use]
    pub fn watts(&self) -> f64 {
        self.switches_watts + self.nics_watts + self.cables_watts
    }
}

/// Power and cost of the parts of a packet-switched network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PacketParts {
    /// Power of a switch of `switch_rate`; others in proportion. Unit: W. Default 350 (Shoal §5).
    /// From 0.
    #[schemars(range(min = 0.0))]
    pub switch_watts: f64,
    /// Bandwidth of that switch, all ports together. Unit: bit/s. Default 3.2 Tbps: 64 ports of
    /// 50 Gbps (Shoal §5).
    #[schemars(extend("x-above" = "0 bps"))]
    pub switch_rate: Rate,
    /// Power of a separate NIC of `nic_rate`; others in proportion. Unit: W. Default 12.4 (Shoal §5).
    /// From 0.
    #[schemars(range(min = 0.0))]
    pub nic_watts: f64,
    /// Bandwidth of that NIC. Unit: bit/s. Default 100 Gbps (Shoal §5).
    #[schemars(extend("x-above" = "0 bps"))]
    pub nic_rate: Rate,
    /// How many times less power a NIC draws that is part of a node's chip. Default 10 (Shoal §5).
    /// Above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub integration_factor: f64,
    /// Cost of a NIC of `nic_rate` as a fraction of the switch; others in proportion. Default 1/64
    /// (our choice: what Shoal's break-even points follow from, 1/128 at 50 Gbps). From 0.
    #[schemars(range(min = 0.0))]
    pub nic_cost: f64,
    /// Power of a cable between racks, both ends together. Unit: W. Default 0 (our choice: Shoal §5 leaves
    /// cables out). From 0.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0.0))]
    pub cable_watts: f64,
    /// Cost of a cable between racks as a fraction of the switch. Default 0 (our choice: Shoal §5 leaves cables
    /// out). From 0.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0.0))]
    pub cable_cost: f64,
}

/// Whether a figure is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(figure: &f64) -> bool {
    *figure == 0.0
}

impl Default for PacketParts {
    fn default() -> Self {
        Self {
            switch_watts: SWITCH_WATTS,
            switch_rate: PORT_RATE * u64::from(SWITCH_PORTS),
            nic_watts: NIC_WATTS,
            nic_rate: NIC_RATE,
            integration_factor: INTEGRATION_FACTOR,
            nic_cost: NIC_COST * quotient(NIC_RATE, PORT_RATE),
            cable_watts: 0.0,
            cable_cost: 0.0,
        }
    }
}

/// One rate as a multiple of another.
fn quotient(rate: Rate, of: Rate) -> f64 {
    rate.as_bps() as f64 / of.as_bps() as f64
}

impl PacketParts {
    /// The parts of a network. Hosts that pass traffic on are their own switches: their NICs have
    /// the bandwidth of all their links.
    #[must_use]
    pub fn bill(&self, topology: &Topology) -> Bill {
        let (hosts, all) = (topology.hosts(), topology.vertices());
        // A sum of rates as large as they can be is none.
        let bandwidth = |vertices: std::ops::Range<u32>, of: Rate| -> f64 {
            let ports = vertices.flat_map(|vertex| topology.ports_of(Vertex::new(vertex)));
            let rates = ports.map(|port| topology.port(port).link.rate.as_bps() as f64);
            // The sum of nothing is a negative zero, which would stand in the summary as -0.0.
            (rates.sum::<f64>() + 0.0) / of.as_bps() as f64
        };
        // A tunnel's NICs and its two ports of a switch are as fast as its cables, which it may not fill.
        let tunnels =
            || topology.joints().iter().filter_map(|joint| Some((joint.port, joint.tunnel?)));
        let of_cables =
            |of: Rate| tunnels().map(|(_, t)| 2.0 * quotient(t.cables, of)).sum::<f64>();
        let of_links = |of: Rate| {
            tunnels()
                .map(|(port, _)| 2.0 * quotient(topology.port(port).link.rate, of))
                .sum::<f64>()
        };
        let nics =
            bandwidth(0..hosts, self.nic_rate) - of_links(self.nic_rate) + of_cables(self.nic_rate);
        let switches = bandwidth(hosts..all, self.switch_rate) + of_cables(self.switch_rate);
        let cables = topology.joints().iter().map(Joint::cables).sum::<u32>();
        let unit = quotient(self.switch_rate, PORT_RATE * u64::from(SWITCH_PORTS));
        Bill {
            switches: all - hosts + topology.ethernet_switches(),
            switches_watts: switches * self.switch_watts,
            nics_watts: nics * self.nic_watts / self.integration_factor,
            cables,
            cables_watts: f64::from(cables) * self.cable_watts,
            cost: switches * unit + nics * self.nic_cost + f64::from(cables) * self.cable_cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Ethernet, LeafSpine, Racks, SingleSwitch, Torus};

    #[track_caller]
    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn the_packet_switched_rack_of_shoal_draws_8_72_kilowatts() {
        let bill = PacketParts::default().bill(&LeafSpine::default().build().unwrap());
        assert_eq!(bill.switches, 24);
        check(bill.switches_watts, 24.0 * 350.0);
        check(bill.nics_watts, 512.0 * 0.62);
        check(bill.watts(), 8_717.44);
        check(bill.cost, 24.0 + 512.0 / 128.0);
    }

    #[test]
    fn parts_draw_and_cost_in_proportion_to_their_bandwidth() {
        let half = SingleSwitch { hosts: 32, ..SingleSwitch::default() };
        let bill = PacketParts::default().bill(&half.build().unwrap());
        check(bill.switches_watts, 175.0);
        check(bill.cost, 0.5 + 32.0 / 128.0);
        let fast = SingleSwitch { rate: Rate::from_gbps(100), ..half };
        check(PacketParts::default().bill(&fast.build().unwrap()).watts(), 350.0 + 32.0 * 1.24);
    }

    #[test]
    fn the_largest_rates_have_a_price() {
        let fast = SingleSwitch { rate: Rate::from_bps(u64::MAX), ..SingleSwitch::default() };
        let bill = PacketParts::default().bill(&fast.build().unwrap());
        assert!(bill.watts().is_finite() && bill.cost > 0.0);
    }

    #[test]
    fn a_direct_connect_rack_is_all_nics() {
        let bill = PacketParts::default().bill(&Torus::default().build().unwrap());
        assert_eq!(bill.switches, 0);
        assert!(bill.switches_watts.is_sign_positive(), "{:?}", bill.switches_watts);
        check(bill.watts(), 512.0 * 0.6 * 1.24);
        check(bill.cost, 512.0 * 0.6 / 64.0);
    }

    #[test]
    fn m55_between_racks_cables_count_and_switches_of_tunnels() {
        let racks = Racks { dimensions: vec![4, 4, 4], links: 16, ..Racks::default() };
        let priced = PacketParts { cable_watts: 2.0, cable_cost: 0.01, ..PacketParts::default() };
        let bill = priced.bill(&racks.build().unwrap());
        // Six links a node and 16 between the racks, of 10 Gbps each, at 100 Gbps a NIC.
        let nics = (128.0 * 6.0 + 32.0) / 10.0;
        assert_eq!((bill.switches, bill.cables), (0, 16));
        check(bill.watts(), nics * 1.24 + 16.0 * 2.0);
        check(bill.cost, nics / 64.0 + 16.0 * 0.01);
        // Tunnels of half the rate of their cables: twice the cables, and 32 ports of 10 Gbps.
        let ethernet = Some(Ethernet { oversubscription: 2, ..Ethernet::default() });
        let bill = priced.bill(&Racks { ethernet, ..racks }.build().unwrap());
        assert_eq!((bill.switches, bill.cables), (1, 32));
        check(bill.switches_watts, 350.0 * 320.0 / 3_200.0);
        check(bill.watts(), nics * 1.24 + 350.0 / 10.0 + 32.0 * 2.0);
        check(bill.cost, nics / 64.0 + 0.1 + 32.0 * 0.01);
    }

    #[test]
    fn wrong_inputs_are_all_named() {
        let wrong = PacketParts {
            switch_watts: -1.0,
            switch_rate: Rate::default(),
            nic_cost: f64::NAN,
            integration_factor: 0.0,
            ..PacketParts::default()
        };
        let mut keys: Vec<String> =
            crate::ranges::check(&wrong, vec![]).into_iter().map(|problem| problem.key).collect();
        keys.sort();
        assert_eq!(keys, ["integration_factor", "nic_cost", "switch_rate", "switch_watts"]);
        assert!(crate::ranges::check(&PacketParts::default(), vec![]).is_empty());
    }
}
