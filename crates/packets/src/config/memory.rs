//! What a network takes in memory, estimated from its configuration alone.

use kernel::{Bytes, LinkClock};
use rack::Estimate;

use super::{Config, FlowControl, Routing};
use crate::net::{OutPort, Wire};

/// What is allocated whatever the size: the calendar's wheel and lanes, histograms.
const FIXED: u64 = 1 << 20;
/// A set of next hops: its entry, its ports, and while tables are built the map that finds it again.
const SET: u64 = 120;
/// The topology is kept by the plan of the scenario, by that of the rack and by the network.
const COPIES: u64 = 3;
/// A port where receivers hold senders back: room, deadlines by priority, credits.
const CONTROLLED_PORT: u64 = 400;
/// A host: timers, alarm, and what its transport keeps of it.
const HOST: u64 = 600;
/// A host in which things take time: its engine, its bus and its threads.
const BUSY_HOST: u64 = 400;
/// A switch or host: its random streams, orders of next hops and shared buffer.
const VERTEX: u64 = 120;

impl Config {
    /// What planning and running it will take, open flows and their packets apart. Builds nothing.
    /// Unit: bytes.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let extent = self.topology.extent();
        let (hosts, vertices) = (extent.hosts, extent.vertices);
        // Hosts that pass traffic on have a port into their own switch.
        let ports = extent.ports.saturating_add(hosts);
        let controlled = match self.queues.flow_control {
            FlowControl::None => 0,
            _ => CONTROLLED_PORT,
        };
        Estimate::new()
            .and(1, FIXED)
            .plus(extent.memory(COPIES))
            .array::<OutPort>(ports)
            .array::<Wire>(ports)
            .array::<LinkClock>(ports)
            .and(ports, 8 + controlled)
            .plus(self.tables_memory())
            .and(hosts, if self.host.takes_time() { HOST + BUSY_HOST } else { HOST })
            .and(vertices, VERTEX)
            .bytes()
    }

    /// What it takes on top of that where something fails: the tables of next hops that are built while
    /// the old ones still serve. Unit: bytes.
    #[must_use]
    pub fn failures_memory(&self) -> Bytes {
        self.tables_memory()
    }

    /// The tables of next hops.
    fn tables_memory(&self) -> Bytes {
        let extent = self.topology.extent();
        let sets = match self.routing {
            // Which paths there are below does not count: few.
            Routing::SourceRoute => extent.ports.saturating_mul(4).min(extent.sets),
            _ => extent.sets,
        };
        Estimate::new().and(extent.hosts.saturating_mul(extent.vertices), 2).and(sets, SET).bytes()
    }
}
