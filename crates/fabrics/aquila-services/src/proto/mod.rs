//! The interfaces in `proto/`, as modules; `examples/generate_proto.rs` makes them.

/// What processes say to each other.
#[allow(missing_docs, clippy::all, reason = "it is generated")]
pub mod control {
    include!("control.rs");
}

/// What is used of etcd.
#[allow(missing_docs, clippy::all, reason = "it is generated")]
pub mod etcd {
    include!("etcd.rs");
}
