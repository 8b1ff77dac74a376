//! The `transport` table: what the hosts speak over IP.
//!
//! Models: Aquila §5.1: its workloads run under a delay-based control, Swift. Adding a transport is one line in
//! `transports!` below.

use kernel::Bytes;
use packets::surroundings;
use transports::tables::{Bank, Table};
use transports::{cubic, dctcp, newreno, swift, transports};

use crate::config::Plan;
use crate::rack::{Clique, engine};

type NetworkOf<T> = packets::Network<<T as Bank>::Endpoints, Clique>;

/// The network of a plan with `table`'s transport, for flows of such sizes.
fn network<T: Bank>(table: &T, plan: &Plan, seed: u64, sizes: &[Bytes]) -> NetworkOf<T> {
    let engine = engine(plan);
    let transport = table.endpoints(&surroundings(&engine, seed), sizes);
    let clique = Clique::new(plan, &engine.topology, seed);
    packets::Network::with_program(engine, transport, clique, seed)
        .expect("the network's mtu is the transport's")
}

transports! {
    $ Table, NetworkOf = network, Plan;
    /// TCP NewReno (RFC 5681, 6582, 6675).
    Newreno(newreno::Config);
    /// TCP CUBIC (RFC 9438).
    Cubic(cubic::Config);
    /// DCTCP (SIGCOMM 2010, RFC 8257): windows that follow the share of marked packets.
    Dctcp(dctcp::Config);
    /// Swift (SIGCOMM 2020): windows that hold delay at a target.
    Swift(swift::Config);
}

impl Default for Transport {
    fn default() -> Self {
        let mut swift = swift::Config::default();
        swift.stream.mtu = Bytes::new(4_160);
        // Pony Express, which §5.1 measures with, keeps its connections open.
        swift.stream.handshake = false;
        Self::Swift(swift)
    }
}
