//! SCOC: a high-radix switch chip made of a bufferless Clos network, clock by clock.
//!
//! "SCOC: High-Radix Switches Made of Bufferless Clos Networks" (HPCA 2015). The folder's README
//! says where each idea of the paper is, and what is claimed and tested.

mod any;
mod arrays;
mod buffers;
mod chip;
mod chip_config;
mod config;
mod crrd;
mod entry;
mod ete;
mod flat;
mod grants;
mod hardware;
mod hiera;
mod inputs;
mod ledger;
pub mod microbenchmarks;
pub mod network;
mod rack;
pub mod routes;
#[cfg(test)]
mod tests;
mod toggles;
pub mod vectors;

pub use any::AnySwitch;
pub use chip::{Chip, Counts};
pub use chip_config::{
    ChipConfig, ChipPlan, Crossbars, CutThrough, GrantOrder, InputChoice, OutputChoice, Requesting,
    Shares, Transfers,
};
pub use config::{
    Config, CrrdTable, Equipment, FlatTable, HieraTable, OutputQueuedTable, Plan, SwitchTable,
};
pub use crrd::{Crrd, CrrdConfig};
pub use ete::ete;
pub use flat::{FlatConfig, flat};
pub use hardware::{CHIP, FALL_THROUGH, Facts, Part, fall_through};
pub use hiera::{Hiera, HieraConfig};
pub use rack::{End, Instance, Message, Rack, header, instances};
