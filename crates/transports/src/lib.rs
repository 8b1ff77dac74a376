//! Endpoint cores: what the hosts of a packet network run, as pure state machines.
//!
//! Each transport is a bank: one value that holds the endpoints of any set of hosts in flat arrays and
//! meets the network at [`packets::Transport`] and nowhere else.
//!
//! **Invariant:** knows no switch, no topology and no clock. What a core learns of the network comes
//! in packets, in timers and in [`packets::Surroundings`].

pub mod arrivals;
#[cfg(test)]
mod chaos;
pub mod cubic;
pub mod dcqcn;
pub mod dctcp;
#[cfg(test)]
mod forged;
#[cfg(test)]
mod headers;
pub mod homa;
pub mod kinds;
pub mod mixed;
pub mod ndp;
#[cfg(test)]
mod networked;
pub mod newreno;
mod ranking;
pub mod raw;
pub mod rds;
mod segments;
pub mod stream;
#[cfg(test)]
mod survival;
pub mod swift;
pub mod tables;
#[cfg(test)]
mod testing;
pub mod turns;
pub mod uncontrolled;
