//! The rack: one of the networks, whatever its transport, as a fabric.

use crate::config::Plan;
use crate::transport::{Network, each};

transports::rack!("packet-switched", Plan);
