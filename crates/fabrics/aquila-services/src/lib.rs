//! Aquila's control plane ("Aquila: A unified, low-latency fabric for datacenter networks", NSDI 2022, §3.5, §4) as
//! processes: the state machines of `aquila_control`, driven by the machine's clock.
//!
//! Two instances of each application ([`process`]), which speak gRPC with each other ([`links`]) and keep what they know in
//! a base ([`base`]): a process of our own, or etcd. Agents have the TiNs. [`supervisor`] starts all of them and starts
//! them again; [`status`] looks at them.

pub mod base;
pub mod cluster;
pub mod convert;
pub mod links;
pub mod logs;
pub mod ports;
pub mod process;
pub mod proto;
pub mod status;
pub mod supervisor;
pub mod tls;
