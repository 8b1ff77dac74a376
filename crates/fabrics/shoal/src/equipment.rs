//! What a rack's network draws and costs, for Shoal and for a packet-switched network of its size.
//!
//! Models: Shoal §5, Fig. 11 (claims S50 to S53). Both networks connect the same nodes in a folded
//! Clos of switches with the same ports; Shoal's nodes have twice the bandwidth, to make up for
//! detours, and so twice the switches. Power is in watts; cost is relative, since the paper finds
//! absolute prices hard to know: the packet switch is 1.
//!
//! The paper does not print what a NIC costs against a switch. Its break-even points (41.6 % and
//! 33.3 %) and the first of its points of 40 % saving (18.3 %) follow from 1/128, half a port of a
//! 64-port switch; the second does not: 1/128 gives 10.0 % where the paper says 9.6 %, and no
//! single ratio gives all four.

use rack::Problem;
use rack::equipment::{Bill, INTEGRATION_FACTOR, NIC_COST, NIC_WATTS, SWITCH_PORTS, SWITCH_WATTS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clos::Clos;

/// Prices and power of the parts, each up to 1e12 (our choice: with more, sums are no numbers any more).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Equipment {
    /// Ports of a packet switch and of a circuit switch. Default 64 (Shoal §5). At least 2.
    #[schemars(range(min = 2))]
    pub switch_ports: u32,
    /// Circuit-switched bandwidth of a Shoal node as a multiple of a packet-switched node's, and so
    /// its switches. Default 2 (Shoal §3.3.1, §5). From 1 to 1,000.
    #[schemars(range(min = 1, max = 1_000))]
    pub bandwidth_factor: u32,
    /// Power of a packet switch. Unit: W. Default 350 (Shoal §5: 64 ports of 50 Gbps).
    #[schemars(range(min = 0.0, max = 1e12))]
    pub packet_switch_watts: f64,
    /// Power of a circuit switch. Unit: W. Default 38.5 (Shoal §5: the same ports).
    #[schemars(range(min = 0.0, max = 1e12))]
    pub circuit_switch_watts: f64,
    /// Power of a separate NIC with the bandwidth of a Shoal node. Unit: W. Default 12.4 (Shoal §5:
    /// 100 Gbps).
    #[schemars(range(min = 0.0, max = 1e12))]
    pub nic_watts: f64,
    /// How many times less power a NIC draws that is part of a node's chip. Default 10 (Shoal §5).
    #[schemars(range(min = 1e-12, max = 1e12))]
    pub integration_factor: f64,
    /// What Shoal's routing and congestion control add to the power of a NIC. Unit: fraction.
    /// Default 0.11 (Shoal §5, Appendix B).
    #[schemars(range(min = 0.0, max = 1e12))]
    pub shoal_nic_overhead: f64,
    /// Power of a whole rack. Unit: W. Default 15 000 (Shoal §2).
    #[schemars(range(min = 1e-12, max = 1e12))]
    pub rack_watts: f64,
    /// Cost of a circuit switch as a fraction of a packet switch. Default 0.15 (Shoal §5: as low as
    /// that by chip area).
    #[schemars(range(min = 0.0, max = 1e12))]
    pub circuit_switch_cost: f64,
    /// Cost of a packet-switched NIC as a fraction of a packet switch. Default 1/128 (our choice:
    /// what Shoal's break-even points follow from).
    #[schemars(range(min = 0.0, max = 1e12))]
    pub nic_cost: f64,
    /// Cost of a Shoal NIC as a multiple of a packet-switched one. Default 2.5 (Shoal §5: between 2
    /// and 3).
    #[schemars(range(min = 0.0, max = 1e12))]
    pub shoal_nic_factor: f64,
}

impl Default for Equipment {
    fn default() -> Self {
        Self {
            switch_ports: SWITCH_PORTS,
            bandwidth_factor: 2,
            packet_switch_watts: SWITCH_WATTS,
            circuit_switch_watts: 38.5,
            nic_watts: NIC_WATTS,
            integration_factor: INTEGRATION_FACTOR,
            shoal_nic_overhead: 0.11,
            rack_watts: 15_000.0,
            circuit_switch_cost: 0.15,
            nic_cost: NIC_COST,
            shoal_nic_factor: 2.5,
        }
    }
}

/// What a network is made of and draws.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct NetworkPower {
    /// How many switches it has.
    pub switches: u32,
    /// What one of them draws. Unit: W.
    pub switch_watts: f64,
    /// What one NIC draws. Unit: W.
    pub nic_watts: f64,
    /// What switches and NICs draw together. Unit: W.
    pub total_watts: f64,
}

/// Both networks for one rack.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Nodes of the rack.
    pub nodes: u32,
    /// The network of circuit switches.
    pub shoal: NetworkPower,
    /// The network of packet switches.
    pub packet: NetworkPower,
    /// What Shoal saves of the packet network's power. Unit: fraction.
    pub power_saving: f64,
    /// What Shoal draws of the rack's power. Unit: fraction.
    pub shoal_rack_share: f64,
    /// What the packet network draws of the rack's power. Unit: fraction.
    pub packet_rack_share: f64,
    /// Shoal's cost as a multiple of the packet network's.
    pub relative_cost: f64,
    /// Cost of a circuit switch, as a fraction of a packet switch, at which both cost the same.
    pub break_even: f64,
}

/// The part of a packet switch's area that its serial links take (§5); memory takes 50 % and packet
/// processing 20 %, and a circuit switch has neither.
pub const SERIAL_LINK_AREA: f64 = 0.30;

/// The size of serial links that only retime, as a fraction of a packet switch's (§5: at most).
pub const RETIMING_AREA: f64 = 0.5;

impl Equipment {
    /// Packet switches for this many nodes: a folded Clos without blocking, or a single one.
    ///
    /// # Errors
    /// If two stages of such switches do not connect them.
    pub fn packet_switches(&self, nodes: u32) -> Result<u32, Problem> {
        Clos::for_rack(nodes, self.switch_ports, 1).map(|clos| clos.switches())
    }

    /// Power of the packet-switched network.
    ///
    /// # Errors
    /// As for [`Equipment::packet_switches`].
    pub fn packet_power(&self, nodes: u32) -> Result<NetworkPower, Problem> {
        let bandwidth = f64::from(self.bandwidth_factor);
        let nic_watts = self.nic_watts / self.integration_factor / bandwidth;
        let switches = self.packet_switches(nodes)?;
        Ok(power(nodes, switches, self.packet_switch_watts, nic_watts))
    }

    /// Power of Shoal.
    ///
    /// # Errors
    /// As for [`Equipment::packet_switches`].
    pub fn shoal_power(&self, nodes: u32) -> Result<NetworkPower, Problem> {
        let nic_watts = self.nic_watts / self.integration_factor * (1.0 + self.shoal_nic_overhead);
        let switches = self.shoal_switches(nodes)?;
        Ok(power(nodes, switches, self.circuit_switch_watts, nic_watts))
    }

    /// Cost of Shoal as a multiple of the packet network's, if a circuit switch costs
    /// `circuit_switch_cost` of a packet switch: the curve of Fig. 11.
    ///
    /// # Errors
    /// As for [`Equipment::packet_switches`].
    pub fn relative_cost(&self, nodes: u32, circuit_switch_cost: f64) -> Result<f64, Problem> {
        let switches = f64::from(self.shoal_switches(nodes)?) * circuit_switch_cost;
        Ok((switches + self.shoal_nics_cost(nodes)) / self.packet_cost(nodes)?)
    }

    /// What a circuit switch may cost, as a fraction of a packet switch, for Shoal to save the
    /// fraction `saving` of the packet network's cost; with 0 the point of break-even. Negative:
    /// the NICs alone cost more than that.
    ///
    /// # Errors
    /// As for [`Equipment::packet_switches`].
    pub fn circuit_switch_cost_for(&self, nodes: u32, saving: f64) -> Result<f64, Problem> {
        let budget = (1.0 - saving) * self.packet_cost(nodes)? - self.shoal_nics_cost(nodes);
        Ok(budget / f64::from(self.shoal_switches(nodes)?))
    }

    /// Both networks side by side.
    ///
    /// # Errors
    /// As for [`Equipment::packet_switches`].
    pub fn compare(&self, nodes: u32) -> Result<Comparison, Problem> {
        let (shoal, packet) = (self.shoal_power(nodes)?, self.packet_power(nodes)?);
        Ok(Comparison {
            nodes,
            shoal,
            packet,
            power_saving: 1.0 - shoal.total_watts / packet.total_watts,
            shoal_rack_share: shoal.total_watts / self.rack_watts,
            packet_rack_share: packet.total_watts / self.rack_watts,
            relative_cost: self.relative_cost(nodes, self.circuit_switch_cost)?,
            break_even: self.circuit_switch_cost_for(nodes, 0.0)?,
        })
    }

    /// What Shoal is made of, draws and costs, with the packet switch as unit.
    ///
    /// # Errors
    /// As for [`Equipment::packet_switches`].
    pub fn bill(&self, nodes: u32) -> Result<Bill, Problem> {
        let power = self.shoal_power(nodes)?;
        let switches = f64::from(power.switches);
        Ok(Bill {
            switches: power.switches,
            switches_watts: switches * power.switch_watts,
            nics_watts: f64::from(nodes) * power.nic_watts,
            cables: 0,
            cables_watts: 0.0,
            cost: switches * self.circuit_switch_cost + self.shoal_nics_cost(nodes),
        })
    }

    /// Circuit switches with the ports and port rate of the packet switches.
    fn shoal_switches(&self, nodes: u32) -> Result<u32, Problem> {
        self.packet_switches(nodes).map(|switches| switches * self.bandwidth_factor)
    }

    fn packet_cost(&self, nodes: u32) -> Result<f64, Problem> {
        Ok(f64::from(self.packet_switches(nodes)?) + f64::from(nodes) * self.nic_cost)
    }

    fn shoal_nics_cost(&self, nodes: u32) -> f64 {
        f64::from(nodes) * self.nic_cost * self.shoal_nic_factor
    }
}

/// Adds up switches and NICs.
fn power(nodes: u32, switches: u32, switch_watts: f64, nic_watts: f64) -> NetworkPower {
    let total_watts = f64::from(switches) * switch_watts + f64::from(nodes) * nic_watts;
    NetworkPower { switches, switch_watts, nic_watts, total_watts }
}

#[cfg(test)]
mod tests {
    use rack::ranges;

    use super::*;

    #[track_caller]
    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn s50_512_nodes_need_24_packet_or_48_circuit_switches() {
        let comparison = Equipment::default().compare(512).unwrap();
        assert_eq!((comparison.packet.switches, comparison.shoal.switches), (24, 48));
    }

    #[test]
    fn s51_the_packet_network_draws_8_72_kilowatts() {
        let power = Equipment::default().packet_power(512).unwrap();
        check(power.nic_watts, 0.62);
        check(power.total_watts, 8_717.44);
    }

    #[test]
    fn s51_shoal_draws_2_55_kilowatts() {
        let exact = Equipment::default().shoal_power(512).unwrap();
        check(exact.nic_watts, 1.3764);
        check(exact.total_watts, 48.0 * 38.5 + 512.0 * 1.3764);
        // The paper cuts the NIC off at 1.37 W.
        let paper = Equipment { shoal_nic_overhead: 1.37 / 1.24 - 1.0, ..Equipment::default() };
        check(paper.shoal_power(512).unwrap().total_watts, 2_549.44);
    }

    #[test]
    fn s52_shoal_saves_71_percent_of_the_power() {
        let comparison = Equipment::default().compare(512).unwrap();
        assert_eq!((comparison.power_saving * 100.0).round(), 71.0);
        assert_eq!((comparison.packet_rack_share * 100.0).round(), 58.0);
        assert_eq!((comparison.shoal_rack_share * 100.0).round(), 17.0);
    }

    /// The circuit switch's cost, in percent of a packet switch, for a saving in percent.
    #[track_caller]
    fn check_cost(shoal_nic_factor: f64, saving: f64, percent: f64) {
        let equipment = Equipment { shoal_nic_factor, ..Equipment::default() };
        let cost = equipment.circuit_switch_cost_for(512, saving / 100.0).unwrap();
        check(cost * 100.0, percent);
        check(equipment.relative_cost(512, cost).unwrap(), 1.0 - saving / 100.0);
    }

    #[test]
    fn s53_the_points_of_figure_11() {
        check_cost(2.0, 0.0, 100.0 * 20.0 / 48.0); // 41.67, "41.6"
        check_cost(3.0, 0.0, 100.0 * 16.0 / 48.0); // 33.33, "33.3"
        check_cost(2.0, 40.0, 100.0 * 8.8 / 48.0); // 18.33, "18.3"
        check_cost(3.0, 40.0, 10.0); // "9.6": see the next test
    }

    #[test]
    fn s53_no_single_price_of_a_nic_gives_all_four_points() {
        // Which price each of the published points asks for, to the precision it is printed with.
        let prices = |factor: f64, saving: f64, low: f64, high: f64| {
            let price = |cost: f64| {
                (48.0 * cost - 24.0 * (1.0 - saving)) / (512.0 * (1.0 - saving - factor))
            };
            (price(high), price(low))
        };
        let first_three = [
            prices(2.0, 0.0, 0.416, 0.417),
            prices(3.0, 0.0, 0.333, 0.334),
            prices(2.0, 0.4, 0.183, 0.184),
        ];
        for (low, high) in first_three {
            assert!(low <= 1.0 / 128.0 && 1.0 / 128.0 <= high, "{low} to {high}");
        }
        let (low, _) = prices(3.0, 0.4, 0.096, 0.097);
        assert!(low > 1.0 / 127.0, "{low}");
    }

    #[test]
    fn s53_a_circuit_switch_may_cost_15_percent_by_area() {
        check(SERIAL_LINK_AREA * RETIMING_AREA, Equipment::default().circuit_switch_cost);
        let cost = Equipment::default().relative_cost(512, 0.15).unwrap();
        assert!((0.61..0.62).contains(&cost), "{cost}: about 40 % cheaper");
    }

    #[test]
    fn s51_the_bill_agrees_with_the_comparison() {
        let equipment = Equipment::default();
        let (bill, compared) = (equipment.bill(512).unwrap(), equipment.compare(512).unwrap());
        assert_eq!(bill.switches, 48);
        check(bill.watts(), compared.shoal.total_watts);
        check(bill.cost / 28.0, compared.relative_cost); // 24 switches and 512 NICs of 1/128
    }

    #[test]
    fn s50_other_racks_have_other_switches() {
        let equipment = Equipment { switch_ports: 32, ..Equipment::default() };
        assert_eq!(equipment.packet_switches(512).unwrap(), 48);
        assert_eq!(equipment.packet_switches(32).unwrap(), 1);
        assert_eq!(equipment.packet_switches(513).unwrap_err().key, "nodes");
    }

    #[test]
    fn s50_wrong_inputs_are_all_named() {
        let wrong = Equipment {
            switch_ports: 1,
            nic_watts: -1.0,
            rack_watts: 0.0,
            nic_cost: f64::NAN,
            ..Equipment::default()
        };
        let mut keys: Vec<String> =
            ranges::check(&wrong, vec![]).into_iter().map(|problem| problem.key).collect();
        keys.sort();
        assert_eq!(keys, ["nic_cost", "nic_watts", "rack_watts", "switch_ports"]);
        assert!(ranges::check(&Equipment::default(), vec![]).is_empty());
        let unknown = serde_json::from_str::<Equipment>(r#"{"nic_wats": 3}"#);
        assert!(unknown.unwrap_err().to_string().contains("unknown field"));
    }
}
