//! The constellation with perfect chips, in simulated time, whatever happens to it.

mod ends;
mod routes;
mod world;
