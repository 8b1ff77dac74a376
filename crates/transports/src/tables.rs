//! The one list of what fabrics need to know of each transport: its table, by `kind`, and its endpoints.
//!
//! Adding a transport is an entry here, and a line in `transports!` of each fabric that carries it.

use kernel::Bytes;
use packets::Surroundings;
use rack::Problem;

use crate::homa::Profile;
use crate::raw::Losses;
use crate::{cubic, dcqcn, dctcp, homa, mixed, ndp, newreno, raw, rds, swift, uncontrolled};

/// A transport's table in a scenario.
pub trait Table {
    /// The `kind` in scenario files.
    fn name(&self) -> &'static str;

    /// Every mistake in the table.
    fn check(&self) -> Vec<Problem>;

    /// Largest packet, headers included.
    fn mtu(&self) -> Bytes;

    /// The key in the table that says so.
    fn mtu_key(&self) -> &'static str {
        "mtu"
    }

    /// Whether every flow ends although packets are lost.
    fn recovers(&self) -> bool {
        true
    }

    /// Whether it wants to know sizes of flows before the first.
    fn follows_sizes(&self) -> bool {
        false
    }

    /// Whether receivers answer what they get, packet by packet.
    fn answers(&self) -> bool {
        true
    }

    /// The header that a switch leaves of its packets, if it may cut them.
    fn trimmed(&self) -> Option<Bytes> {
        None
    }
}

/// A transport whose endpoints meet the network at [`packets::Transport`].
pub trait Bank: Table {
    /// Its endpoints.
    type Endpoints: packets::Transport;

    /// The endpoints of all hosts, for flows of such sizes; none: nobody knows. The table has been
    /// checked.
    ///
    /// # Panics
    /// If it has not.
    fn endpoints(&self, around: &Surroundings, sizes: &[Bytes]) -> Self::Endpoints;
}

const CHECKED: &str = "the table was checked by the plan";

/// Transports over the byte stream, whose endpoints may refuse a table.
macro_rules! streams {
    ($($name:literal $module:ident::$endpoints:ident;)*) => {
        $(impl Table for $module::Config {
            fn name(&self) -> &'static str {
                $name
            }

            fn check(&self) -> Vec<Problem> {
                self.check()
            }

            fn mtu(&self) -> Bytes {
                self.stream.mtu
            }

            fn mtu_key(&self) -> &'static str {
                "stream.mtu"
            }
        }

        impl Bank for $module::Config {
            type Endpoints = $module::$endpoints;

            fn endpoints(&self, around: &Surroundings, _: &[Bytes]) -> Self::Endpoints {
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

/// Transports that are built of a table and what is around.
macro_rules! messages {
    ($($name:literal $module:ident::$endpoints:ident $(, trimmed to $header:ident)?;)*) => {
        $(impl Table for $module::Config {
            fn name(&self) -> &'static str {
                $name
            }

            fn check(&self) -> Vec<Problem> {
                self.check()
            }

            fn mtu(&self) -> Bytes {
                self.mtu
            }

            $(fn trimmed(&self) -> Option<Bytes> {
                Some(self.$header)
            })?
        }

        impl Bank for $module::Config {
            type Endpoints = $module::$endpoints;

            fn endpoints(&self, around: &Surroundings, _: &[Bytes]) -> Self::Endpoints {
                $module::$endpoints::new(self, around)
            }
        })*
    };
}

messages! {
    "ndp" ndp::Ndp, trimmed to header;
    "dcqcn" dcqcn::Dcqcn;
    "rds" rds::Rds;
}

impl Table for homa::Config {
    fn name(&self) -> &'static str {
        "homa"
    }

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.mtu
    }

    fn follows_sizes(&self) -> bool {
        true
    }
}

impl Bank for homa::Config {
    type Endpoints = homa::Homa;

    fn endpoints(&self, around: &Surroundings, sizes: &[Bytes]) -> Self::Endpoints {
        let weights = sizes.iter().map(|&size| (size, 1.0));
        // Where nobody knows, all messages are of one packet.
        let points = if sizes.is_empty() { vec![(self.mtu, 1.0)] } else { weights.collect() };
        homa::Homa::new(self, around, &Profile::new(points))
    }
}

impl Table for raw::Config {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn check(&self) -> Vec<Problem> {
        self.check()
    }

    fn mtu(&self) -> Bytes {
        self.mtu
    }

    fn recovers(&self) -> bool {
        self.losses != Losses::Stay
    }

    fn answers(&self) -> bool {
        false
    }
}

impl Bank for raw::Config {
    type Endpoints = raw::Raw;

    fn endpoints(&self, around: &Surroundings, _: &[Bytes]) -> Self::Endpoints {
        self.build(around)
    }
}

impl<S: Table> Table for mixed::Config<S> {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn check(&self) -> Vec<Problem> {
        let stream = self.stream.check().into_iter().map(|problem| problem.below("stream"));
        let datagrams = self.datagrams.check().into_iter();
        stream.chain(datagrams.map(|problem| problem.below("datagrams"))).collect()
    }

    fn mtu(&self) -> Bytes {
        self.stream.mtu().max(self.datagrams.mtu())
    }

    fn recovers(&self) -> bool {
        self.datagram_classes.is_empty() || self.datagrams.recovers()
    }
}

impl<S: Bank> Bank for mixed::Config<S> {
    type Endpoints = mixed::Mixed<S::Endpoints, raw::Raw>;

    fn endpoints(&self, around: &Surroundings, sizes: &[Bytes]) -> Self::Endpoints {
        let stream = self.stream.endpoints(around, sizes);
        let datagrams = self.datagrams.endpoints(around, sizes);
        mixed::Mixed::new(stream, datagrams, &self.datagram_classes, around.hosts)
    }
}

/// Declares the transports of a fabric: the `kind` of each follows from its name, its keys from its
/// table. Tables are seen through the trait `$seen`; `$of<Table>` is the network of a table's transport,
/// which `$build(&table, &plan, seed, sizes)` makes of a `$plan`. Gives an enum `Transport` of tables, an
/// enum `Network`, and a macro `each!`, to be imported with `Network`, that does the same with whichever
/// network there is.
#[macro_export]
macro_rules! transports {
    // The first token stands for the dollar of the macro that this one defines.
    (
        $dollar:tt $seen:path, $of:ident = $build:path, $plan:ty;
        $($(#[$doc:meta])* $name:ident($table:ty);)*
    ) => {
        /// The transport of the hosts.
        #[derive(
            Clone, PartialEq, Debug, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema,
        )]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Transport {
            $($(#[$doc])* $name($table),)*
        }

        impl Transport {
            /// The `kind` in scenario files.
            #[must_use]
            pub fn name(&self) -> &'static str {
                $crate::tables::Table::name(self.table())
            }

            /// The table, whichever it is.
            pub(crate) fn table(&self) -> &dyn $seen {
                match self {
                    $(Self::$name(table) => table,)*
                }
            }

            /// A network with this transport at its hosts. The choice is made here once a call of the
            /// fabric; inside, all types are concrete.
            pub(crate) fn network(
                &self,
                plan: &$plan,
                seed: u64,
                sizes: &[::kernel::Bytes],
            ) -> Network {
                match self {
                    $(Self::$name(table) => {
                        Network::$name(Box::new($build(table, plan, seed, sizes)))
                    })*
                }
            }
        }

        /// A network with one of the transports.
        pub(crate) enum Network {
            $($name(Box<$of<$table>>),)*
        }

        /// Does the same with whichever network there is.
        macro_rules! each {
            ($dollar network:expr, $dollar found:ident => $dollar does:expr) => {
                match $dollar network {
                    $(Network::$name($dollar found) => $dollar does,)*
                }
            };
        }
        pub(crate) use each;
    };
}

/// Declares the `Rack` of a fabric that is nothing but one of the networks that [`transports!`]
/// declared: built of a `Plan` whose `config` has the `transport`, and whose `bill` is what it costs.
#[macro_export]
macro_rules! rack {
    ($name:literal, $plan:ty) => {
        /// A rack under simulation.
        pub struct Rack {
            network: Network,
            /// What it was built from.
            plan: $plan,
            seed: u64,
        }

        impl Rack {
            /// An idle rack. `seed` is that of all chance in it.
            #[must_use]
            pub fn new(plan: $plan, seed: u64) -> Self {
                let network = plan.config.transport.network(&plan, seed, &[]);
                Self { network, plan, seed }
            }
        }

        impl ::rack::Fabric for Rack {
            fn name(&self) -> &'static str {
                $name
            }

            fn nodes(&self) -> u32 {
                each!(&self.network, network => network.nodes())
            }

            fn hint_sizes(&mut self, sizes: &[::kernel::Bytes]) {
                let transport = &self.plan.config.transport;
                if $crate::tables::Table::follows_sizes(transport.table()) {
                    assert_eq!(self.now(), ::kernel::Time::ZERO, "sizes come before the first flow");
                    self.network = transport.network(&self.plan, self.seed, sizes);
                }
            }

            fn advance(
                &mut self,
                until: ::kernel::Time,
                probe: &mut dyn ::rack::Probe,
            ) -> ::rack::Advance {
                each!(&mut self.network, network => network.advance(until, probe))
            }

            fn ideal_fct(&self, flow: &::rack::Flow) -> ::kernel::Span {
                each!(&self.network, network => network.ideal_fct(flow))
            }

            fn bill(&self) -> Option<::rack::equipment::Bill> {
                Some(self.plan.bill)
            }

            ::rack::leave_to_network!(each, network);

            fn details(&self) -> ::serde_json::Map<String, ::serde_json::Value> {
                let mut details = ::serde_json::Map::new();
                details.insert("transport".into(), self.plan.config.transport.name().into());
                details.extend(each!(&self.network, network => network.details()));
                details
            }
        }
    };
}
