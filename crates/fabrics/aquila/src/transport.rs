//! The `transport` table: what the hosts speak over IP.
//!
//! Models: Aquila §5.1: its workloads run under a delay-based control, Swift. Adding a transport is one line in
//! `transports!` below.

use kernel::Bytes;
use packets::surroundings;
use transports::tables::{Bank, Table};
use transports::{cubic, dcqcn, dctcp, homa, mixed, ndp, newreno, raw, rds, swift, transports};

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
    /// NDP (SIGCOMM 2017): pulls paced by the receiver. No TiN trims packets: what is lost is sent again after a time-out.
    Ndp(ndp::Config);
    /// DCQCN (SIGCOMM 2015): rates cut by notifications of marks. Nothing holds hosts back: what finds no room where it
    /// enters is sent again.
    Dcqcn(dcqcn::Config);
    /// Homa (SIGCOMM 2018): grants by the receiver, and network priorities, which `ip.classes_of_service` makes classes.
    Homa(homa::Config);
    /// The receiver-driven scheme that PL2 §6.1 compares with, after Homa.
    Rds(rds::Config);
    /// Line rate without control (PL2's baseline). What is lost stays lost, unless `losses` says otherwise.
    Raw(raw::Config);
    /// TCP CUBIC beside datagrams, by class (PL2 §6.2.2).
    Mixed(mixed::Config<cubic::Config>);
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
