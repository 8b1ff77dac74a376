//! Registers as routes, checked while they change.
