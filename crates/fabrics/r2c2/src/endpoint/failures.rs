//! Links and nodes that fail and come back (§3.2).
//!
//! A node that has heard of a change goes by another map of the rack from then on: other routes, shares
//! and trees; and it announces all its flows again, for what was announced before may never have
//! arrived. It does so even if its map is the one that it had: another node's may have changed meanwhile.

use packets::{FlowKey, Outbox};
use rack::NodeId;

use super::Endpoints;
use super::news::Scene;
use crate::rates::{Course, Terms};

impl Endpoints {
    /// It is time for a node to go by what it has heard of the rack's links.
    pub(super) fn adopt(&mut self, node: NodeId, out: &mut Outbox) {
        let dead = self.neighbours.adopt(node);
        self.maps.adopt(&self.plan, node, dead);
        let flows = self.flows_of(node);
        let (news, mut scene) = self.speak(out);
        news.forget_unreachable(node, &mut scene);
        flows.iter().for_each(|&(key, ..)| self.watch(key, out));
        self.say_anew(node, flows, out);
        if let Some(central) = self.news.central.as_mut().filter(|central| central.is_at(node)) {
            central.set_due();
        }
        self.follow_event(node, out);
        self.pace.has_flows(node, out);
        out.wake(node);
    }

    /// The flows of a node that are not over, and how they go by its map.
    pub(super) fn flows_of(&self, node: NodeId) -> Vec<(FlowKey, Course, Terms)> {
        let keys = self.senders.of_node(node).filter(|&key| !self.senders.get(key).is_over());
        let flow = |key| {
            let fact = self.news.facts.fact(self.senders.get(key).fact);
            let protocol = self.maps.of(node).usable(fact.course.protocol);
            (key, Course { protocol, ..fact.course }, fact.terms)
        };
        keys.map(flow).collect()
    }

    /// A node says that what it announced before is void, and announces these flows of its own.
    pub(super) fn say_anew(
        &mut self,
        node: NodeId,
        flows: Vec<(FlowKey, Course, Terms)>,
        out: &mut Outbox,
    ) {
        let Self { news, maps, neighbours, plan, senders, .. } = self;
        let topology = &plan.network.topology;
        let mut scene = Scene { topology, maps, neighbours, out };
        news.begin_anew(node, &mut scene);
        for (key, course, terms) in flows {
            let name = senders.get(key).name();
            let fact = news.start_again(name, (course.protocol, terms), &mut scene);
            let sender = senders.get_mut(key);
            (sender.fact, sender.course) = (fact, course);
        }
    }
}
