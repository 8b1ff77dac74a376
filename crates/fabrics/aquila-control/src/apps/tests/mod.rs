//! The constellation with perfect chips, in simulated time, whatever happens to it.

mod by_pmos;
mod chance;
mod ends;
mod hostile;
mod parts;
mod reuse;
mod routes;
mod sideband;
mod single;
pub(super) mod world;
