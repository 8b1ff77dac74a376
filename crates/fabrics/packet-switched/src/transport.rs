//! The `transport` table: which transport the hosts run.
//!
//! Adding a transport is one line in `transports!` below, and what it asks of switches in
//! `carriers.rs`.

use kernel::Bytes;
use packets::Framing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transports::transports;

use crate::carriers::{Carrier, Networked};
use crate::config::Plan;

/// Ideal max-min fair sharing: no packets, no queues, no control loop; a bound to draw beside others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fluid {
    /// Packet by whose headers flows are lengthened, headers included. Unit: bytes. Default 1500 B.
    /// At most 9216 B.
    pub mtu: Bytes,
    /// Its header. Unit: bytes. Default 52 B, as TCP's. Less than `mtu`.
    pub header: Bytes,
}

impl Default for Fluid {
    fn default() -> Self {
        Self { mtu: Bytes::new(1500), header: Bytes::new(52) }
    }
}

/// How packets of `mtu` are divided.
pub(crate) fn framing(mtu: Bytes, header: Bytes) -> Framing {
    let small = |size: Bytes| u16::try_from(size.get()).expect("a packet was checked to be small");
    Framing { payload: small(mtu) - small(header), header: small(header) }
}

type NetworkOf<T> = <T as Networked>::Network;

transports! {
    $ Carrier, NetworkOf = Networked::network, Plan;
    /// TCP NewReno (RFC 5681, 6582, 6675).
    Newreno(::transports::newreno::Config);
    /// TCP CUBIC (RFC 9438).
    Cubic(::transports::cubic::Config);
    /// DCTCP (SIGCOMM 2010, RFC 8257): windows that follow the share of marked packets.
    Dctcp(::transports::dctcp::Config);
    /// Swift (SIGCOMM 2020): windows that hold delay at a target.
    Swift(::transports::swift::Config);
    /// NDP (SIGCOMM 2017): trimming, and pulls paced by the receiver.
    Ndp(::transports::ndp::Config);
    /// DCQCN (SIGCOMM 2015): rates cut by notifications, over a network that loses nothing.
    Dcqcn(::transports::dcqcn::Config);
    /// Homa (SIGCOMM 2018): grants by the receiver, and network priorities.
    Homa(::transports::homa::Config);
    /// The receiver-driven scheme that PL2 §6.1 compares with, after Homa.
    Rds(::transports::rds::Config);
    /// Line rate without control (PL2's baseline).
    Raw(::transports::raw::Config);
    /// TCP CUBIC beside datagrams, by class (PL2 §6.2.2).
    Mixed(::transports::mixed::Config<::transports::cubic::Config>);
    /// Ideal max-min fair sharing of fluids: a bound for all others.
    Fluid(Fluid);
}

impl Default for Transport {
    fn default() -> Self {
        Self::Dctcp(::transports::dctcp::Config::default())
    }
}
