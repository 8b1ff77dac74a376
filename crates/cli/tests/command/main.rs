//! The whole program, run as a user runs it.

mod bad_days;
mod common;
mod contract;
