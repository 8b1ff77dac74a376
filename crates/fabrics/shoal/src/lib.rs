//! Shoal (NSDI 2019).
