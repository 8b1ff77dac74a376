//! The `transport` table: what the hosts speak over PL2.
//!
//! Models: PL2 §4.5, §5, §6.1 (claim M29). Adding a transport is one line in `transports!` below, and
//! its entry at the end.

use ::rack::{Class, Problem};
use kernel::Bytes;
use packets::Surroundings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transports::homa::Profile;
use transports::raw::Losses;
use transports::raw::Raw;

use crate::config::Plan;
use crate::host::Shim;
use crate::switch::Tor;

/// A transport's table, as this crate uses it.
pub(crate) trait Carried {
    /// The `kind` in scenario files.
    const NAME: &'static str;
    /// Whether it wants to know sizes of flows before the first.
    const FOLLOWS_SIZES: bool = false;
    /// Whether receivers answer what they get, packet by packet.
    const ANSWERS: bool = true;
    /// Its endpoints.
    type Endpoints: packets::Transport;

    /// Every mistake in the table.
    fn check(&self) -> Vec<Problem>;

    /// Largest packet, headers included.
    fn mtu(&self) -> Bytes;

    /// Whether every flow ends although packets are lost.
    fn recovers(&self) -> bool {
        true
    }

    /// The header that a switch leaves of its packets, if it may cut them.
    fn trimmed(&self) -> Option<Bytes> {
        None
    }

    /// Builds it for flows of such sizes; none: nobody knows. The table has been checked.
    fn build(&self, around: &Surroundings, sizes: &[Bytes]) -> Self::Endpoints;
}

const CHECKED: &str = "the table was checked by the plan";

/// The network of a plan with `table`'s transport over PL2.
fn network<C: Carried>(
    table: &C,
    plan: &Plan,
    seed: u64,
    sizes: &[Bytes],
) -> packets::Network<Shim<C::Endpoints>, Tor> {
    let around = packets::surroundings(&plan.network, seed);
    let shim = Shim::new(plan, table.build(&around, sizes), seed);
    packets::Network::with_program(plan.network.clone(), shim, Tor::new(plan), seed)
        .expect("the network's packets are the transport's in their frames")
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
            /// Its `kind`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$table as Carried>::NAME,)*
                }
            }

            /// Every mistake in its table.
            pub(crate) fn check(&self) -> Vec<Problem> {
                match self {
                    $(Self::$name(table) => Carried::check(table),)*
                }
            }

            /// Largest packet.
            pub(crate) fn mtu(&self) -> Bytes {
                match self {
                    $(Self::$name(table) => Carried::mtu(table),)*
                }
            }

            /// Whether receivers answer what they get, packet by packet.
            pub(crate) fn answers(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$table as Carried>::ANSWERS,)*
                }
            }

            /// Whether every flow ends although packets are lost.
            pub(crate) fn recovers(&self) -> bool {
                match self {
                    $(Self::$name(table) => Carried::recovers(table),)*
                }
            }

            /// The header that a switch leaves of its packets, if it may cut them.
            pub(crate) fn trimmed(&self) -> Option<Bytes> {
                match self {
                    $(Self::$name(table) => Carried::trimmed(table),)*
                }
            }

            /// The network of `plan` with this transport over PL2, for flows of such sizes.
            pub(crate) fn network(&self, plan: &Plan, seed: u64, sizes: &[Bytes]) -> Network {
                match self {
                    $(Self::$name(table) => {
                        Network::$name(Box::new(network(table, plan, seed, sizes)))
                    })*
                }
            }

            /// Whether it wants to know sizes of flows before the first.
            pub(crate) fn follows_sizes(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$table as Carried>::FOLLOWS_SIZES,)*
                }
            }
        }

        /// A network with one of the transports. The choice is made here once a call of the fabric;
        /// inside, all types are concrete.
        pub(crate) enum Network {
            $($name(Box<packets::Network<Shim<<$table as Carried>::Endpoints>, Tor>>),)*
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
    /// TCP without congestion control, which PL2 takes the place of (PL2 §4.5).
    Uncontrolled(::transports::uncontrolled::Config);
    /// Line rate without control: UDP, and raw Ethernet (PL2 §6.1).
    Raw(::transports::raw::Config);
    /// TCP without congestion control beside datagrams, by class (PL2 §6.2.2).
    Mixed(Mixed);
    /// TCP NewReno (RFC 5681, 6582, 6675).
    Newreno(::transports::newreno::Config);
    /// TCP CUBIC (RFC 9438).
    Cubic(::transports::cubic::Config);
    /// DCTCP (SIGCOMM 2010, RFC 8257): windows that follow the share of marked packets, if
    /// `switch.marking` sets any.
    Dctcp(::transports::dctcp::Config);
    /// Swift (SIGCOMM 2020): windows that hold delay at a target.
    Swift(::transports::swift::Config);
    /// NDP (SIGCOMM 2017): pulls paced by the receiver, and trimming, if `switch.trimming` asks for it.
    Ndp(::transports::ndp::Config);
    /// DCQCN (SIGCOMM 2015): rates cut by notifications of marks, if `switch.marking` sets any.
    Dcqcn(::transports::dcqcn::Config);
    /// Homa (SIGCOMM 2018): grants by the receiver, and network priorities.
    Homa(::transports::homa::Config);
    /// The receiver-driven scheme that PL2 §6.1 compares with, after Homa.
    Rds(::transports::rds::Config);
}

impl Default for Transport {
    fn default() -> Self {
        Self::Uncontrolled(::transports::uncontrolled::Config::default())
    }
}

/// TCP without congestion control and datagrams at the same hosts, flows divided by class.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mixed {
    /// TCP of all other classes. Ideal completion times are its.
    pub stream: ::transports::uncontrolled::Config,
    /// Datagrams of `datagram_classes`.
    pub datagrams: ::transports::raw::Config,
    /// Classes of flows that go as datagrams. Default: none.
    pub datagram_classes: Vec<Class>,
}

/// Declares transports whose endpoints may refuse a table.
macro_rules! streams {
    ($($name:literal $module:ident::$endpoints:ident;)*) => {
        $(impl Carried for ::transports::$module::Config {
            const NAME: &'static str = $name;
            type Endpoints = ::transports::$module::$endpoints;

            fn check(&self) -> Vec<Problem> {
                self.check()
            }

            fn mtu(&self) -> Bytes {
                self.stream.mtu
            }

            fn build(&self, around: &Surroundings, _: &[Bytes]) -> Self::Endpoints {
                self.build(around).expect(CHECKED)
            }
        })*
    };
}

streams! {
    "uncontrolled" uncontrolled::Uncontrolled;
    "newreno" newreno::NewReno;
    "cubic" cubic::Cubic;
    "dctcp" dctcp::Dctcp;
    "swift" swift::Swift;
}

impl Carried for ::transports::raw::Config {
    const NAME: &'static str = "raw";
    const ANSWERS: bool = false;
    type Endpoints = Raw;

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.mtu
    }

    fn recovers(&self) -> bool {
        self.losses != Losses::Stay
    }

    fn build(&self, around: &Surroundings, _: &[Bytes]) -> Self::Endpoints {
        self.build(around)
    }
}

/// Declares transports that are built of a table and what is around.
macro_rules! endpoints {
    ($($name:literal $module:ident::$endpoints:ident $(, trimmed to $header:ident)?;)*) => {
        $(impl Carried for ::transports::$module::Config {
            const NAME: &'static str = $name;
            type Endpoints = ::transports::$module::$endpoints;

            fn check(&self) -> Vec<Problem> {
                self.check()
            }

            fn mtu(&self) -> Bytes {
                self.mtu
            }

            $(fn trimmed(&self) -> Option<Bytes> {
                Some(self.$header)
            })?

            fn build(&self, around: &Surroundings, _: &[Bytes]) -> Self::Endpoints {
                ::transports::$module::$endpoints::new(self, around)
            }
        })*
    };
}

endpoints! {
    "ndp" ndp::Ndp, trimmed to header;
    "dcqcn" dcqcn::Dcqcn;
    "rds" rds::Rds;
}

impl Carried for ::transports::homa::Config {
    const NAME: &'static str = "homa";
    const FOLLOWS_SIZES: bool = true;
    type Endpoints = ::transports::homa::Homa;

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.mtu
    }

    fn build(&self, around: &Surroundings, sizes: &[Bytes]) -> Self::Endpoints {
        let weights = sizes.iter().map(|&size| (size, 1.0));
        // Where nobody knows, all messages are of one packet.
        let points = if sizes.is_empty() { vec![(self.mtu, 1.0)] } else { weights.collect() };
        ::transports::homa::Homa::new(self, around, &Profile::new(points))
    }
}

impl Carried for Mixed {
    const NAME: &'static str = "mixed";
    type Endpoints = ::transports::mixed::Mixed<::transports::uncontrolled::Uncontrolled, Raw>;

    fn check(&self) -> Vec<Problem> {
        let stream = self.stream.check().into_iter().map(|problem| problem.below("stream"));
        let datagrams = self.datagrams.check().into_iter();
        stream.chain(datagrams.map(|problem| problem.below("datagrams"))).collect()
    }

    fn mtu(&self) -> Bytes {
        self.stream.stream.mtu.max(self.datagrams.mtu)
    }

    fn recovers(&self) -> bool {
        self.datagram_classes.is_empty() || Carried::recovers(&self.datagrams)
    }

    fn build(&self, around: &Surroundings, _: &[Bytes]) -> Self::Endpoints {
        let stream = self.stream.build(around).expect(CHECKED);
        let datagrams = self.datagrams.build(around);
        let classes = &self.datagram_classes;
        ::transports::mixed::Mixed::new(stream, datagrams, classes, around.hosts)
    }
}
