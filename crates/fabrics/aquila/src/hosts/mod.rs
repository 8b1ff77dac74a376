//! What hosts do with the fabric: applications, to measure it as the paper does (§5).

pub mod clique_map;
