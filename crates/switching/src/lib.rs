//! Parts of switch chips, and a bench to put a whole switch on.
//!
//! Arbiters and matchings work on words of bits, one bit a port. A switch advances clock by clock
//! behind the trait [`Switch`]; the [`Bench`] feeds its input lines with the traffic that
//! switches are measured with and watches what leaves. The crossbars here are the textbook ones:
//! by iSLIP with virtual output queues, by one FIFO an input, and the ideal output-queued switch
//! that bounds them all.
//!
//! **Invariant:** knows no fabric, no file format, no clock but its own cycles.

pub mod arbiters;
mod arriving;
mod bench;
mod bits;
mod crossbar;
mod egress;
mod fifo;
pub mod islip;
mod line;
mod output_queued;
mod packet;
pub mod patterns;
mod queues;
pub mod sources;
#[cfg(test)]
mod tests;
mod wheel;

pub use arriving::Arriving;
pub use bench::{Bench, Connection, Measured, Turns};
pub use bits::{BitRows, first_in_turn, iter_ones, next_in_turn, next_in_turn_by, ones};
pub use crossbar::{Crossbar, CrossbarConfig};
pub use egress::Egress;
pub use fifo::Fifo;
pub use islip::{Islip, Matching, Ports};
pub use line::{Line, Ticks};
pub use output_queued::OutputQueued;
pub use packet::{Departure, Packet, Switch};
pub use patterns::Pattern;
pub use queues::QueueBank;
pub use sources::{Arrivals, Phase, Sizes, Traffic};
pub use wheel::Wheel;
