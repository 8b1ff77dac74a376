//! The whole program, run as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bad_days;
mod common;
mod comparison;
mod contract;
mod inputs_that_go_wrong;
mod packet_networks;
mod places;
mod sweeps;
mod traces;
mod why;
