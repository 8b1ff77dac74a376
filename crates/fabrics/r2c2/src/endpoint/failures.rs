//! Links and nodes that fail and come back (§3.2).
//!
//! When nodes find out what works, routes, shares and trees are made anew, and every node announces
//! all its flows again: what was announced by the old trees may never have arrived.

use packets::{Live, Outbox};
use rack::NodeId;

use super::Endpoints;

impl Endpoints {
    /// The rack's links and nodes work as `works` says.
    pub(super) fn rewire(&mut self, works: &Live, out: &mut Outbox) {
        let wiring = self.plan.rewired(works, self.seed);
        self.senders.reroute(wiring.routes.clone());
        self.pace.reroute(wiring.filling);
        self.news.reroute(wiring.trees, wiring.routes);
        let mut again = Vec::new();
        for node in (0..self.plan.nodes()).map(NodeId::new) {
            for key in self.senders.of_node(node).collect::<Vec<_>>() {
                let sender = self.senders.get(key);
                if !sender.is_over() {
                    again.push((node, key, self.news.views.record(sender.record).allocation));
                }
            }
        }
        self.news.views.forget_all();
        for (node, key, mut allocation) in again {
            allocation.course.protocol = self.senders.protocol(allocation.course.protocol);
            let record = self.news.start(node, allocation, out);
            let sender = self.senders.get_mut(key);
            (sender.record, sender.course) = (record, allocation.course);
            self.pace.has_flows(node, out);
            out.wake(node);
        }
    }
}
