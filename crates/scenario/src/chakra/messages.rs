//! The part of Chakra's schema (`et_def.proto`, version 0.0.4 and later) that says what a rank does
//! and what waits for what. Other fields are passed over.

use prost::{Message, Oneof};

/// The first message of a file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GlobalMetadata {
    /// Of the schema: `0.0.4`, or what it was made from before it, as `1.1.1-chakra.0.0.4`.
    #[prost(string, tag = "1")]
    pub version: String,
}

/// What a node is, as the schema numbers it.
pub(super) mod node_type {
    pub const METADATA: i32 = 1;
    pub const MEM_LOAD: i32 = 2;
    pub const MEM_STORE: i32 = 3;
    pub const COMP: i32 = 4;
    pub const COMM_SEND: i32 = 5;
    pub const COMM_RECV: i32 = 6;
    pub const COMM_COLL: i32 = 7;
    pub const STORAGE: i32 = 8;
    pub const BATCH: i32 = 9;
    pub const CHECKPOINT: i32 = 10;
}

/// Every message after the first.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    /// One of [`node_type`].
    #[prost(int32, tag = "3")]
    pub kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub attributes: Vec<Attribute>,
}

/// A named value of a node.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub value: Option<Value>,
}

/// The kinds of values that say something here.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(BoolList),
    #[prost(string, tag = "29")]
    String(String),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BoolList {
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

impl Value {
    /// The whole number from 0 that it is, whatever its width.
    pub fn whole(&self) -> Option<u64> {
        match *self {
            Self::Int32(value) | Self::Sint32(value) | Self::Sfixed32(value) => {
                u64::try_from(value).ok()
            }
            Self::Int64(value) | Self::Sint64(value) | Self::Sfixed64(value) => {
                u64::try_from(value).ok()
            }
            Self::Uint32(value) | Self::Fixed32(value) => Some(value.into()),
            Self::Uint64(value) | Self::Fixed64(value) => Some(value),
            Self::Bool(_) | Self::Bools(_) | Self::String(_) => None,
        }
    }

    /// The name that it is: a text, or a number in digits.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::String(text) => Some(text.clone()),
            _ => self.whole().map(|number| number.to_string()),
        }
    }
}
