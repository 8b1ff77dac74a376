//! Nodes and flows.

use std::fmt;

use kernel::{Bytes, Time};
use serde::{Deserialize, Serialize};

/// A node of the rack, counted from 0.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct NodeId(u32);

impl NodeId {
    /// The node with this index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index as a number of its own.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The index for an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A flow's number, unique in a run, counted from 0 in the order the workload defines them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(u64);

impl FlowId {
    /// The flow with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A traffic class; 0 is the most urgent.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Class(u8);

impl Class {
    /// The class with this number.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// The number; smaller is more urgent.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// An application message to carry from one node to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Unique in the run.
    pub id: FlowId,
    /// Who sends.
    pub src: NodeId,
    /// Who receives; never `src`.
    pub dst: NodeId,
    /// Application bytes, without any header; at least one.
    pub size: Bytes,
    /// When the first byte is offered to the network.
    pub start: Time,
    /// Traffic class.
    pub class: Class,
}
