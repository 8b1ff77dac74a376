//! Facts of the circuit switches and of the nodes' interfaces.
//!
//! Models: Shoal §3.5 (layer 0 against layer 1), §4.1, §4.2, §6.2, Fig. 6 (claims S18, S19).
//! Leaves out: the jitter that the few bits of elastic buffer in a layer-1 switch absorb (§3.5).

use kernel::Span;

/// Where in the stack a circuit switch works (§3.5).
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchLayer {
    /// Passes the raw signal on, as an optical switch does: no latency, but a receiver must find
    /// the clock of a new sender in every slot.
    Layer0,
    /// Retimes the bits at each port, as the paper's electrical switch does: each link has one
    /// sender for ever, and the switch has a latency.
    #[default]
    Layer1,
}

/// Clock cycle of the prototype: 156.25 MHz, the interface to a 10 Gbps PHY (§4.1).
pub const CYCLE_10G: Span = Span::from_ps(6_400);

/// Clock cycle at 390.625 MHz, the interface to a 50 Gbps PHY (§4.1; the paper rounds the 2.56 ns
/// down to 2.5 ns).
pub const CYCLE_50G: Span = Span::from_ps(2_560);

/// How long a receiver at layer 0 takes to lock on to a new sender's clock: demonstrated within
/// 625 ps (§5).
pub const CLOCK_RECOVERY_FAST: Span = Span::from_ps(625);

/// Cycles of the parts of a switch and of a node's interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchHardware {
    /// Where the switches work.
    pub layer: SwitchLayer,
    /// One clock cycle of switches and interfaces.
    pub cycle: Span,
    /// Cycles in the PHYs of a switch, ingress and egress together.
    pub phy_cycles: u64,
    /// Cycles through the multiplexers.
    pub switching_cycles: u64,
    /// Cycles in the queue between the recovered clock and the rack's clock.
    pub synchronisation_cycles: u64,
    /// Cycles to load the registers that drive the multiplexers.
    pub reconfiguration_cycles: u64,
    /// Cycles in MAC and PHY of the two end nodes together.
    pub end_node_cycles: u64,
    /// Cycles that Shoal's own logic adds when sending.
    pub transmit_cycles: u64,
    /// Cycles that it adds when receiving.
    pub receive_cycles: u64,
}

impl SwitchHardware {
    /// The paper's prototype (§4.1: 45 + 1 + 4 cycles, one to reconfigure; §4.2: 4 and 5 more in
    /// the NIC; §6.2: 576 ns, which are 90 cycles, in the end nodes), at another clock if wanted.
    #[must_use]
    pub const fn prototype(layer: SwitchLayer, cycle: Span) -> Self {
        Self {
            layer,
            cycle,
            phy_cycles: 45,
            switching_cycles: 1,
            synchronisation_cycles: 4,
            reconfiguration_cycles: 1,
            end_node_cycles: 90,
            transmit_cycles: 4,
            receive_cycles: 5,
        }
    }

    /// Time to change all circuits of a switch; they change at once.
    #[must_use]
    pub fn reconfiguration(&self) -> Span {
        self.cycle * self.reconfiguration_cycles
    }

    /// Time through one switch.
    #[must_use]
    pub fn port_to_port(&self) -> Span {
        match self.layer {
            SwitchLayer::Layer0 => Span::ZERO,
            SwitchLayer::Layer1 => {
                self.cycle * (self.phy_cycles + self.switching_cycles + self.synchronisation_cycles)
            }
        }
    }

    /// Time from one node to another, over `switches` switches and wires that take `wires` in all.
    /// §6.2 counts Shoal's own cycles within MAC and PHY of the nodes.
    #[must_use]
    pub fn node_to_node(&self, switches: u32, wires: Span) -> Span {
        wires + self.port_to_port() * u64::from(switches) + self.cycle * self.end_node_cycles
    }

    /// What a new sender costs a receiver at each slot.
    #[must_use]
    pub fn clock_recovery(&self) -> Span {
        match self.layer {
            SwitchLayer::Layer0 => CLOCK_RECOVERY_FAST,
            SwitchLayer::Layer1 => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s18_the_prototype_has_the_latencies_of_the_paper() {
        let switch = SwitchHardware::prototype(SwitchLayer::Layer1, CYCLE_10G);
        assert_eq!(switch.reconfiguration(), Span::from_ps(6_400));
        assert_eq!(switch.port_to_port(), Span::from_ns(320));
        // 40 ns of wire + 3 × 320 ns + 576 ns; the paper prints 1.57 us.
        assert_eq!(switch.node_to_node(3, Span::from_ns(40)), Span::from_ns(1576));
    }

    #[test]
    fn s18_a_faster_interface_reconfigures_faster() {
        let switch = SwitchHardware::prototype(SwitchLayer::Layer1, CYCLE_50G);
        assert_eq!(switch.reconfiguration(), Span::from_ps(2_560));
        assert_eq!(switch.port_to_port(), Span::from_ns(128));
        let latency = switch.node_to_node(3, Span::from_ns(40));
        assert_eq!(latency, Span::from_ps(40_000 + 3 * 128_000 + 230_400));
    }

    #[test]
    fn s19_layer_0_trades_latency_for_clock_recovery() {
        let optical = SwitchHardware::prototype(SwitchLayer::Layer0, CYCLE_50G);
        assert_eq!(optical.port_to_port(), Span::ZERO);
        assert_eq!(optical.clock_recovery(), Span::from_ps(625));
        let electrical = SwitchHardware::prototype(SwitchLayer::Layer1, CYCLE_50G);
        assert_eq!(electrical.clock_recovery(), Span::ZERO);
    }
}
