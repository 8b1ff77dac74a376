//! Aquila's control plane ("Aquila: A unified, low-latency fabric for datacenter networks", NSDI 2022, §3.5,
//! §4): what stands under the applications of the controller and the firmware of the chips.
//!
//! Pure state machines over messages: a driver gives them time and wires. The registers of a chip, by name and by
//! address ([`registers`]); requests that read and write them ([`rpc`]); flows as registers, and back ([`expand`]);
//! packets between neighbours before there is a network ([`pmos`]); what management controllers of hosts ask
//! ([`nc_si`]); the firmware's memory ([`memory`]) and its images ([`flash`]); the base in which
//! the controller's applications keep what they know ([`nib`]).

pub mod apps;
pub mod beside;
pub mod bootstrap;
pub mod dhcp;
pub mod expand;
pub mod firmware;
pub mod flash;
pub mod memory;
pub mod nc_si;
pub mod nib;
pub mod pmos;
pub mod registers;
pub mod rpc;
pub mod session;
pub mod sim;
