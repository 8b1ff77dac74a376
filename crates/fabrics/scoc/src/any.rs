//! Any of the switches, chosen once.

use switching::{Crossbar, Departure, OutputQueued, Packet, Switch};

use crate::{Chip, Crrd, Hiera};

/// One of the switches. Boxed: they differ in size.
#[derive(Clone, Debug)]
pub enum AnySwitch {
    /// The chip.
    Scoc(Box<Chip>),
    /// A flat crossbar.
    Flat(Box<Crossbar>),
    /// A hierarchical crossbar.
    Hiera(Box<Hiera>),
    /// A memory-space-memory Clos network.
    Crrd(Box<Crrd>),
    /// The ideal.
    OutputQueued(Box<OutputQueued>),
}

/// Evaluates an expression with `$switch` the switch that it is.
macro_rules! each {
    ($any:expr, $switch:ident => $value:expr) => {
        match $any {
            Self::Scoc($switch) => $value,
            Self::Flat($switch) => $value,
            Self::Hiera($switch) => $value,
            Self::Crrd($switch) => $value,
            Self::OutputQueued($switch) => $value,
        }
    };
}

impl AnySwitch {
    /// Packets for which an input has room, wherever they go.
    ///
    /// # Panics
    /// Of a switch whose inputs have no room of their own: Hiera and CRRD.
    pub(crate) fn places_free(&self, input: usize) -> usize {
        match self {
            Self::Scoc(chip) => chip.places_free(input),
            Self::Flat(crossbar) => crossbar.places_free(input),
            Self::OutputQueued(_) => usize::MAX,
            Self::Hiera(_) | Self::Crrd(_) => panic!("room that depends on where a packet goes"),
        }
    }
}

impl Switch for AnySwitch {
    fn ports(&self) -> usize {
        each!(self, switch => switch.ports())
    }

    #[inline]
    fn has_room(&self, packet: &Packet) -> bool {
        each!(self, switch => switch.has_room(packet))
    }

    fn has_room_by_output(&self) -> bool {
        each!(self, switch => switch.has_room_by_output())
    }

    #[inline]
    fn admit(&mut self, packet: Packet) {
        each!(self, switch => switch.admit(packet));
    }

    #[inline]
    fn step(&mut self, departures: &mut Vec<Departure>) {
        each!(self, switch => switch.step(departures));
    }

    fn held(&self) -> usize {
        each!(self, switch => switch.held())
    }

    fn is_idle(&self) -> bool {
        each!(self, switch => switch.is_idle())
    }

    fn skip_to(&mut self, cycle: u64) {
        each!(self, switch => switch.skip_to(cycle));
    }

    fn check(&self) -> Result<(), String> {
        each!(self, switch => switch.check())
    }
}
