//! Agents and lanes: which thread or destination of a host reserves for which packets.
//!
//! Models: PL2 §4.2.1 (claim M22). An *agent* has one exchange at a time: a thread of a host in the
//! prototype, a destination of a host in the NIC. Packets wait in *lanes*: an agent has one for each
//! destination, or just its own. A burst comes out of one lane.

use rack::NodeId;

use crate::config::{Outstanding, Plan};

/// Numbers of agents and lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) hosts: u32,
    /// Agents of a host.
    pub(crate) agents: u32,
    /// Lanes of an agent: one for each destination, or one.
    pub(crate) width: u32,
}

impl Layout {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (hosts, agents) = (plan.config.nodes, plan.agents());
        match plan.config.outstanding {
            Outstanding::Thread => Self { hosts, agents, width: hosts },
            Outstanding::Destination => Self { hosts, agents, width: 1 },
        }
    }

    /// The agent and lane of a host's packets to `dst`, in a flow of `thread`.
    #[inline]
    pub(crate) fn way(self, host: NodeId, thread: u32, dst: NodeId) -> (u32, u32) {
        let first = host.get() * self.agents;
        if self.width == 1 {
            (first + dst.get(), first + dst.get())
        } else {
            (first + thread, (first + thread) * self.width + dst.get())
        }
    }

    /// The lane of a host's packets to `dst`, in a flow of `thread`.
    #[inline]
    pub(crate) fn lane(self, host: NodeId, thread: u32, dst: NodeId) -> u32 {
        self.way(host, thread, dst).1
    }

    /// Where the packets of a lane go.
    #[inline]
    pub(crate) fn destination(self, lane: u32) -> NodeId {
        NodeId::new(lane % self.hosts)
    }

    /// The host of an agent.
    #[inline]
    pub(crate) fn host(self, agent: u32) -> NodeId {
        NodeId::new(agent / self.agents)
    }

    /// The agent among those of its host.
    #[inline]
    pub(crate) fn local(self, agent: u32) -> u32 {
        agent % self.agents
    }

    /// The agents of a host.
    pub(crate) fn agents_of(self, host: NodeId) -> std::ops::Range<u32> {
        let first = host.get() * self.agents;
        first..first + self.agents
    }

    /// All lanes.
    pub(crate) fn lanes_all(self) -> usize {
        (self.hosts * self.agents * self.width) as usize
    }

    /// All agents.
    pub(crate) fn agents_all(self) -> usize {
        (self.hosts * self.agents) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(layout: Layout) {
        let mut seen = vec![false; layout.lanes_all()];
        for host in (0..layout.hosts).map(NodeId::new) {
            for dst in (0..layout.hosts).map(NodeId::new) {
                let threads = if layout.width == 1 { 1 } else { layout.agents };
                for thread in 0..threads {
                    let (agent, lane) = layout.way(host, thread, dst);
                    assert!(!std::mem::replace(&mut seen[lane as usize], true), "{lane} twice");
                    assert_eq!(layout.host(agent), host);
                    assert_eq!(layout.destination(lane), dst);
                    assert!(layout.agents_of(host).contains(&agent));
                }
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
    }

    #[test]
    fn m22_every_thread_or_destination_has_lanes_of_its_own() {
        check(Layout { hosts: 5, agents: 3, width: 5 });
        check(Layout { hosts: 5, agents: 5, width: 1 });
    }
}
