//! The `transport` table: which transport the hosts run over PL2.
//!
//! Models: PL2 §4.5, §5, §6.1 (claim M29). Adding a transport is one line in `transports!` below.

use kernel::Bytes;
use transports::tables::{Bank, Table};
use transports::{
    cubic, dcqcn, dctcp, homa, mixed, ndp, newreno, raw, rds, swift, transports, uncontrolled,
};

use crate::config::Plan;
use crate::host::Shim;
use crate::switch::Tor;

type NetworkOf<T> = packets::Network<Shim<<T as Bank>::Endpoints>, Tor>;

/// The network of a plan with `table`'s transport over PL2, for flows of such sizes.
fn network<T: Bank>(table: &T, plan: &Plan, seed: u64, sizes: &[Bytes]) -> NetworkOf<T> {
    let around = packets::surroundings(&plan.network, seed);
    let shim = Shim::new(plan, table.endpoints(&around, sizes), seed);
    packets::Network::with_program(plan.network.clone(), shim, Tor::new(plan), seed)
        .expect("the network's packets are the transport's in their frames")
}

transports! {
    $ Table, NetworkOf = network, Plan;
    /// TCP without congestion control, which PL2 takes the place of (PL2 §4.5).
    Uncontrolled(uncontrolled::Config);
    /// Line rate without control: UDP, and raw Ethernet (PL2 §6.1).
    Raw(raw::Config);
    /// TCP without congestion control beside datagrams, by class (PL2 §6.2.2).
    Mixed(mixed::Config<uncontrolled::Config>);
    /// TCP NewReno (RFC 5681, 6582, 6675).
    Newreno(newreno::Config);
    /// TCP CUBIC (RFC 9438).
    Cubic(cubic::Config);
    /// DCTCP (SIGCOMM 2010, RFC 8257): windows that follow the share of marked packets, if
    /// `switch.marking` sets any.
    Dctcp(dctcp::Config);
    /// Swift (SIGCOMM 2020): windows that hold delay at a target.
    Swift(swift::Config);
    /// NDP (SIGCOMM 2017): pulls paced by the receiver, and trimming, if `switch.trimming` asks for it.
    Ndp(ndp::Config);
    /// DCQCN (SIGCOMM 2015): rates cut by notifications of marks, if `switch.marking` sets any.
    Dcqcn(dcqcn::Config);
    /// Homa (SIGCOMM 2018): grants by the receiver, and network priorities.
    Homa(homa::Config);
    /// The receiver-driven scheme that PL2 §6.1 compares with, after Homa.
    Rds(rds::Config);
}

impl Default for Transport {
    fn default() -> Self {
        Self::Uncontrolled(uncontrolled::Config::default())
    }
}
