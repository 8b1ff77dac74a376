//! The server rack around the chip: hosts, leaves and spines, in the packet engine.
//!
//! Models: SCOC §1, §4.F, §5, §6.A (M49, M50, X24): a leaf cuts its hosts' packets into segments of
//! variable size, keeps a queue for each destination, asks the destination's leaf for credit and sprays
//! what is granted over all spines. Spines are chips advanced cycle by cycle: the data switch, which
//! may be the chip, a flat crossbar or the ideal, and the ETE switch, which carries requests, credits
//! and acknowledgments. Leaf and spine count buffer places, so that a chip's input is never
//! overrun. Hosts and their transports are the engine's.
//!
//! Leaves out: QCN at the leaves, of which the paper has a name (a queue marks packets instead);
//! failures; priorities.

mod agenda;
mod config;
mod egress;
mod ideal;
mod ingress;
mod layout;
mod message;
#[cfg(test)]
mod oracle;
mod rack;
mod spine;
mod switches;
#[cfg(test)]
mod tests;
mod transport;

pub use config::{Config, FlatSpine, Plan, SpineTable};
pub use rack::Rack;
pub use switches::Switches;
pub use transport::Transport;
