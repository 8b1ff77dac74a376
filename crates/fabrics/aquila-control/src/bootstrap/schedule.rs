//! Who is booted through whom (M812).

use std::collections::VecDeque;

use aquila::topology::Topology;
use kernel::Time;

use super::{Manager, Output, Stage, Tin};

/// TiNs in breadth from those that are connected to the datacenter's network, and by number among equals.
pub(super) fn order(topology: &Topology, connected: &[u16]) -> Vec<u16> {
    let shape = topology.shape();
    let mut hops = vec![u16::MAX; usize::from(shape.tins())];
    let mut queue: VecDeque<u16> = connected.iter().copied().collect();
    connected.iter().for_each(|&tin| hops[usize::from(tin)] = 0);
    while let Some(tin) = queue.pop_front() {
        for port in 0..shape.external_ports() {
            let Some(far) = topology.far(tin, port) else { continue };
            if hops[usize::from(far.tin)] == u16::MAX {
                hops[usize::from(far.tin)] = hops[usize::from(tin)] + 1;
                queue.push_back(far.tin);
            }
        }
    }
    let mut order: Vec<u16> = (0..shape.tins()).collect();
    order.sort_by_key(|&tin| (hops[usize::from(tin)], tin));
    order
}

impl Manager {
    /// Gives targets to proxies, as many as these may have.
    pub(super) fn schedule(&mut self, now: Time, out: &mut Vec<Output>) {
        let asks = self.settings.asks;
        for at in 0..self.order.len() {
            let tin = self.order[at];
            let place = self.tin(tin);
            // Who is only reconnecting is called first.
            let has_address = place.stage == Stage::Addressed
                || place.stage == Stage::Waiting && place.asked + asks <= now;
            let is_waiting =
                has_address && place.target.is_none() && place.gives_up.is_none() && !place.is_up;
            if is_waiting && let Some(way) = self.proxy(now, tin) {
                self.begin_target(now, tin, way, out);
            }
        }
    }

    /// The neighbour that has fewest targets, and room for one more; not the one that has just failed, if there is another.
    fn proxy(&self, now: Time, tin: u16) -> Option<(u16, u8)> {
        let Tin { avoid, stage, .. } = self.tins[usize::from(tin)];
        let way = |port| {
            let far = self.topology.far(tin, port)?;
            let proxy = &self.tins[usize::from(far.tin)];
            let may = proxy.is_up
                && proxy.targets.len() < self.settings.targets_max
                && (stage != Stage::Waiting || proxy.up_since + self.settings.asks <= now)
                && proxy.links >> far.port & 1 == 1;
            may.then_some((avoid == Some(far.tin), proxy.targets.len(), far.tin, far.port))
        };
        let ways = (0..self.topology.shape().external_ports()).filter_map(way);
        ways.min().map(|(_, _, proxy, port)| (proxy, port))
    }
}
