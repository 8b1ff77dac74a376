//! The `transport` table: what the hosts speak.
//!
//! Adding a transport is one line in `transports!` below, and its entry in `carriers.rs`.

use ::rack::Problem;
use kernel::Bytes;
use packets::Framing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::asks::Asks;
use crate::carriers::Carrier;
use crate::switch::Switch;

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

/// Declares the transports: the `kind` of each follows from its name, its keys from its table.
macro_rules! transports {
    // The first token stands for the dollar of the macro that this one defines.
    ($dollar:tt $($(#[$doc:meta])* $name:ident($table:ty);)*) => {
        /// What the hosts speak.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Transport {
            $($(#[$doc])* $name($table),)*
        }

        impl Transport {
            /// The `kind` in scenario files.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$table as Carrier>::NAME,)*
                }
            }

            /// Every mistake in its table.
            pub(crate) fn check(&self) -> Vec<Problem> {
                match self {
                    $(Self::$name(table) => Carrier::check(table),)*
                }
            }

            /// Largest packet.
            pub(crate) fn mtu(&self) -> Bytes {
                match self {
                    $(Self::$name(table) => Carrier::mtu(table),)*
                }
            }

            /// What it asks of the network.
            pub(crate) fn asks(&self) -> Asks {
                match self {
                    $(Self::$name(table) => Carrier::asks(table),)*
                }
            }

            /// What keeps these switches, all keys filled in, from carrying it.
            pub(crate) fn check_switch(&self, switch: &Switch) -> Vec<Problem> {
                match self {
                    $(Self::$name(table) => Carrier::check_switch(table, switch),)*
                }
            }

            /// What makes it useless on this network.
            pub(crate) fn check_network(&self, plan: &packets::Plan) -> Option<Problem> {
                match self {
                    $(Self::$name(table) => Carrier::check_network(table, plan),)*
                }
            }

            /// Whether every flow ends although packets are lost.
            pub(crate) fn recovers(&self) -> bool {
                match self {
                    $(Self::$name(table) => Carrier::recovers(table),)*
                }
            }

            /// The network of `plan` with this transport at its hosts, for flows of such sizes.
            pub(crate) fn network(
                &self,
                plan: packets::Plan,
                seed: u64,
                sizes: &[Bytes],
            ) -> Network {
                match self {
                    $(Self::$name(table) => {
                        Network::$name(Box::new(Carrier::network(table, plan, seed, sizes)))
                    })*
                }
            }

            /// Whether it wants to know sizes of flows before the first.
            pub(crate) fn follows_sizes(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$table as Carrier>::FOLLOWS_SIZES,)*
                }
            }
        }

        /// A network with one of the transports. The choice is made here once a call of the fabric;
        /// inside, all types are concrete.
        pub(crate) enum Network {
            $($name(Box<<$table as Carrier>::Network>),)*
        }

        /// Does the same with whichever network there is.
        macro_rules! each {
            ($dollar network:expr, $dollar found:ident => $dollar does:expr) => {
                match $dollar network {
                    $(crate::transport::Network::$name($dollar found) => $dollar does,)*
                }
            };
        }
        pub(crate) use each;
    };
}

transports! { $
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
    Mixed(::transports::mixed::Config);
    /// Ideal max-min fair sharing of fluids: a bound for all others.
    Fluid(Fluid);
}

impl Default for Transport {
    fn default() -> Self {
        Self::Dctcp(::transports::dctcp::Config::default())
    }
}
