//! What carries flows: packets of IP, or operations on remote memory.

use ::rack::equipment::Bill;
use ::rack::{Advance, Fabric, Flow, Probe};
use kernel::{Bytes, Span, Time};
use serde_json::{Map, Value};

use super::Packets;
use super::remote::Remote;
use crate::config::{Carrier, Control, Plan};

/// Whichever it is.
enum Carried {
    Packets(Box<Packets>),
    Memory(Box<Remote>),
}

/// Does the same with whichever it is.
macro_rules! either {
    ($carried:expr, $rack:ident => $do:expr) => {
        match $carried {
            Carried::Packets($rack) => $do,
            Carried::Memory($rack) => $do,
        }
    };
}

/// A rack under simulation.
pub struct Rack {
    carried: Carried,
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    ///
    /// # Panics
    /// If a controller is to fill the tables, and nobody has said what it writes ([`Plan::journal`]).
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        assert_eq!(
            plan.config.control == Control::Sdn,
            plan.journal.is_some(),
            "who builds a rack with a controller says what it writes"
        );
        let carried = match plan.config.carrier {
            Carrier::Ip => Carried::Packets(Box::new(Packets::new(plan, seed))),
            Carrier::RmaRead | Carrier::RmaWrite => {
                Carried::Memory(Box::new(Remote::new(plan, seed)))
            }
        };
        Self { carried }
    }
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "aquila"
    }

    fn nodes(&self) -> u32 {
        either!(&self.carried, rack => rack.nodes())
    }

    fn hint_sizes(&mut self, sizes: &[Bytes]) {
        either!(&mut self.carried, rack => rack.hint_sizes(sizes));
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        either!(&mut self.carried, rack => rack.advance(until, probe))
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        either!(&self.carried, rack => rack.ideal_fct(flow))
    }

    fn bill(&self) -> Option<Bill> {
        either!(&self.carried, rack => rack.bill())
    }

    fn details(&self) -> Map<String, Value> {
        either!(&self.carried, rack => rack.details())
    }

    ::rack::leave_to_network!(either, carried);
}
