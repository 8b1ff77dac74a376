//! What a Clique draws and costs.
//!
//! Models: Aquila §3.6: a TiN is one part, half NIC and half switch by area. The paper gives no power and no
//! price, so both are **our choice**: each half draws and costs what a part of its bandwidth does in
//! [`rack::equipment`], whose figures are Shoal's (§5). So Aquila is not made to look better than what it is
//! compared with by a figure that nobody published; that its switch has small buffers and no processing of
//! packets is not taken off either.
//!
//! Leaves out, as the others do: cables, transceivers, cooling; and Ethernet ports towards the outside.

use kernel::Rate;
use rack::Problem;
use rack::equipment::{Bill, NIC_COST, NIC_RATE, NIC_WATTS, PORT_RATE, SWITCH_PORTS, SWITCH_WATTS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::topology::Shape;

/// Power and cost of a TiN.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Equipment {
    /// Power of the switch half for 3.2 Tbps of links; others in proportion: 800 Gbps of a full TiN are a
    /// quarter. Unit: W. Default 350 (Shoal §5, for a packet switch; Aquila gives none). From 0.
    pub switch_watts: f64,
    /// Power of the NIC half, at 100 Gbps. Unit: W. Default 12.4 (Shoal §5, for a separate NIC, as a TiN is on
    /// no server's chip; Aquila gives none). From 0.
    pub nic_watts: f64,
    /// Cost of the switch half for 3.2 Tbps of links, as a fraction of a packet switch of 64 ports of 50 Gbps;
    /// others in proportion. Default 1 (our choice: as the packet switch). From 0.
    pub switch_cost: f64,
    /// Cost of the NIC half, as a fraction of that switch. Default 1/64 (our choice: as a separate NIC of 100
    /// Gbps). From 0.
    pub nic_cost: f64,
}

impl Default for Equipment {
    fn default() -> Self {
        let ports = NIC_RATE.as_bps() / PORT_RATE.as_bps();
        Self {
            switch_watts: SWITCH_WATTS,
            nic_watts: NIC_WATTS,
            switch_cost: 1.0,
            nic_cost: NIC_COST * ports as f64,
        }
    }
}

impl Equipment {
    /// Every mistake in it.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let numbers = [
            ("switch_watts", self.switch_watts),
            ("nic_watts", self.nic_watts),
            ("switch_cost", self.switch_cost),
            ("nic_cost", self.nic_cost),
        ];
        let is_wrong = |&(_, value): &(&str, f64)| !(value.is_finite() && value >= 0.0);
        let wrong = numbers.into_iter().filter(is_wrong);
        wrong
            .map(|(key, value)| Problem::new(key, format!("{value}; expected a number from 0 up")))
            .collect()
    }

    /// The parts of a Clique: as many TiNs as there are places for, with hosts or without (§6, M923). All of a
    /// TiN's ports count, plugged in or not.
    #[must_use]
    pub fn bill(&self, shape: &Shape, lane: Rate) -> Bill {
        let tins = u32::from(shape.tins());
        let links = lane.as_bps() as f64 * f64::from(shape.external_ports());
        let whole = (PORT_RATE.as_bps() * u64::from(SWITCH_PORTS)) as f64;
        let switches = f64::from(tins) * links / whole;
        Bill {
            switches: tins,
            switches_watts: switches * self.switch_watts,
            nics_watts: f64::from(tins) * self.nic_watts,
            cables: 0,
            cables_watts: 0.0,
            cost: switches * self.switch_cost + f64::from(tins) * self.nic_cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn m003_a_tin_is_a_quarter_of_a_switch_and_a_nic() {
        let bill = Equipment::default().bill(&Shape::FULL, Rate::from_gbps(25));
        assert_eq!(bill.switches, 576);
        check(bill.switches_watts, 576.0 * 87.5);
        check(bill.nics_watts, 576.0 * 12.4);
        check(bill.cost, 576.0 * (0.25 + 1.0 / 64.0));
    }

    #[test]
    fn m003_smaller_cliques_draw_and_cost_by_their_links() {
        let lane = Rate::from_gbps(25);
        let bill = |shape| Equipment::default().bill(shape, lane);
        check(bill(&Shape::HALF).watts() * 2.0, bill(&Shape::FULL).watts());
        check(bill(&Shape::TINY).switches_watts, 18.0 * 350.0 * 400.0 / 3_200.0);
    }

    #[test]
    fn wrong_inputs_are_all_named() {
        let wrong = Equipment { switch_watts: -1.0, nic_cost: f64::NAN, ..Equipment::default() };
        let keys: Vec<String> = wrong.check().into_iter().map(|problem| problem.key).collect();
        assert_eq!(keys, ["switch_watts", "nic_cost"]);
        assert!(Equipment::default().check().is_empty());
    }
}
