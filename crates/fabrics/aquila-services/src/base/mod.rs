//! Where the network information base is kept.
//!
//! Models: Aquila §4.1 (M701, M702, M707). A [`Base`] takes writes, whole or not at all, and tells subscribers what has
//! changed. [`embedded`] is a process of our own, which keeps it in memory and in a file; [`etcd`] is etcd. Both refuse
//! the same: a batch that is not the next (I72), a leader whom another has followed (I79), a row that has changed.

pub mod embedded;
pub mod etcd;
mod log;
pub mod remote;

use aquila_control::apps::instance::{Job, Name};
use aquila_control::nib::{Changes, Fence, Refused};
use thiserror::Error;
use tokio::sync::mpsc;

pub use log::LogError;

/// What an instance wants written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writing {
    /// Who.
    pub from: Name,
    /// Rises with each of its writes. What comes once more is done once; what comes late, not at all.
    pub id: u64,
    /// What the writer takes itself for.
    pub fence: Option<Fence>,
    /// What.
    pub job: Job,
}

/// What a base says to that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It has done it, or refused it and done nothing of it.
    Done(Result<u64, Refused>),
    /// A later one of the same writer has come before.
    Old,
}

/// Why a base has not answered.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Away {
    /// It cannot be reached now; whether something was done is not known.
    #[error("the base at {at} does not answer: {why}")]
    Silent {
        /// Where it should be.
        at: String,
        /// What was found.
        why: String,
    },
    /// It will not do, whenever it is asked.
    #[error("{0}")]
    Unfit(String),
}

/// A base.
#[tonic::async_trait]
pub trait Base: Send + Sync {
    /// Writes.
    ///
    /// # Errors
    /// It was not reached, or has not answered: the same may be said again.
    async fn write(&self, writing: &Writing) -> Result<Answer, Away>;

    /// What has changed since a version, in all tables, and then whatever changes, until the receiver is dropped or the
    /// base is lost. The first says where the subscriber stands, even if nothing has changed.
    ///
    /// # Errors
    /// It was not reached.
    async fn watch(&self, seen: u64) -> Result<mpsc::Receiver<Changes>, Away>;
}
