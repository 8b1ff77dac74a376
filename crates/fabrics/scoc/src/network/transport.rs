//! The `transport` table: which transport the hosts run.

use kernel::Bytes;
use packets::surroundings;
use transports::tables::{Bank, Table};
use transports::{cubic, dctcp, newreno, swift, transports};

use super::config::Plan;
use super::rack::engine;
use super::switches::Switches;

/// A transport's table, as this network uses it.
pub(super) trait Marked: Table {
    /// Why it makes no sense without marks.
    fn needs_marks(&self) -> Option<&'static str> {
        None
    }
}

const WAITS: &str = "0 B, but transport.ecn waits for marks; set one of the two";

impl Marked for newreno::Config {
    fn needs_marks(&self) -> Option<&'static str> {
        self.ecn.then_some(WAITS)
    }
}

impl Marked for cubic::Config {
    fn needs_marks(&self) -> Option<&'static str> {
        self.ecn.then_some(WAITS)
    }
}

impl Marked for dctcp::Config {
    fn needs_marks(&self) -> Option<&'static str> {
        Some("0 B, but dctcp slows down only for marks; expected, for example, \"45 KB\"")
    }
}

impl Marked for swift::Config {}

type NetworkOf<T> = packets::Network<<T as Bank>::Endpoints, Switches>;

/// The network of a plan with `table`'s transport, for flows of such sizes.
fn network<T: Bank>(table: &T, plan: &Plan, seed: u64, sizes: &[Bytes]) -> NetworkOf<T> {
    let engine = engine(plan);
    let transport = table.endpoints(&surroundings(&engine, seed), sizes);
    let switches = Switches::new(plan, &engine.topology, seed);
    packets::Network::with_program(engine, transport, switches, seed)
        .expect("the network's mtu is the transport's")
}

transports! {
    $ Marked, NetworkOf = network, Plan;
    /// TCP NewReno (RFC 5681, 6582, 6675).
    Newreno(newreno::Config);
    /// TCP CUBIC (RFC 9438).
    Cubic(cubic::Config);
    /// DCTCP (SIGCOMM 2010, RFC 8257): windows that follow the share of marked packets.
    Dctcp(dctcp::Config);
    /// Swift (SIGCOMM 2020): windows that hold delay at a target.
    Swift(swift::Config);
}
