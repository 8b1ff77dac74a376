//! A base of our own: one process, in memory, with a file behind it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aquila_control::apps::instance::{Job, Name};
use aquila_control::nib::{Changes, Nib, Refused, Table};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::log::Log;
use super::{Answer, Away, Base, LogError, Writing};
use crate::convert;
use crate::proto::control::base_server::Base as Service;
use crate::proto::control::{Changes as ChangesMessage, WatchRequest, WriteReply, WriteRequest};

/// What has happened at a base.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Writes that were taken.
    pub taken: u64,
    /// Writes of leaders whom others had followed.
    pub deposed: u64,
    /// Other writes that were refused.
    pub refused: u64,
    /// Writes that came once more, or too late.
    pub again: u64,
    /// Requests that were none.
    pub malformed: u64,
    /// Bytes at the end of the file that were no whole write, and were dropped.
    pub dropped_bytes: u64,
}

/// The base itself.
#[derive(Debug)]
struct State {
    nib: Nib,
    /// By writer: the last write, and what was said to it.
    last: BTreeMap<Name, (u64, Result<u64, Refused>)>,
    log: Option<Log>,
    counts: Counts,
}

/// A base, to be shared.
#[derive(Clone, Debug)]
pub struct Embedded {
    state: Arc<Mutex<State>>,
    version: Arc<watch::Sender<u64>>,
}

impl Embedded {
    /// The base in a file, or, without one, an empty one.
    ///
    /// # Errors
    /// The file is none, or of another version.
    pub fn new(path: Option<&Path>) -> Result<Self, LogError> {
        let (nib, last, counts) = (Nib::new(), BTreeMap::new(), Counts::default());
        let mut state = State { nib, last, log: None, counts };
        if let Some(path) = path {
            let log = Log::open(path, |request| {
                let writing = convert::from_writing(request);
                writing.is_some_and(|w| matches!(state.apply(&w), Answer::Done(Ok(_))))
            })?;
            state.counts = Counts { dropped_bytes: log.dropped, ..Counts::default() };
            state.log = Some(log);
        }
        let version = Arc::new(watch::Sender::new(state.nib.version()));
        Ok(Self { state: Arc::new(Mutex::new(state)), version })
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at it.
    pub fn look<T>(&self, look: impl FnOnce(&Nib, Counts) -> T) -> T {
        self.with(|state| look(&state.nib, state.counts))
    }

    /// Takes or refuses a write.
    ///
    /// # Errors
    /// What was taken cannot be kept: the process must not go on.
    pub fn take(&self, writing: &Writing) -> Result<Answer, LogError> {
        let (answer, version) = self.with(|state| {
            let before = state.counts.taken;
            let answer = state.apply(writing);
            if let Some(log) = state.log.as_mut().filter(|_| state.counts.taken != before) {
                log.append(&convert::writing(writing))?;
            }
            Ok((answer, state.nib.version()))
        })?;
        self.version.send_replace(version);
        Ok(answer)
    }

    /// What has changed since a version, and then whatever changes.
    fn follow(&self, mut seen: u64) -> mpsc::Receiver<Changes> {
        let (sender, receiver) = mpsc::channel(16);
        let (base, mut version) = (self.clone(), self.version.subscribe());
        tokio::spawn(async move {
            loop {
                version.borrow_and_update();
                let changes = base.look(|nib, _| nib.since(seen, &Table::ALL));
                seen = changes.version;
                if sender.send(changes).await.is_err() {
                    return;
                }
                tokio::select! {
                    changed = version.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                }
            }
        });
        receiver
    }
}

impl State {
    fn apply(&mut self, writing: &Writing) -> Answer {
        let Writing { from, id, fence, job } = writing;
        let is_lease = matches!(job, Job::Lease(_));
        match self.last.get(from).filter(|_| !is_lease) {
            Some((last, _)) if id < last => {
                self.counts.again += 1;
                return Answer::Old;
            }
            Some((last, result)) if id == last => {
                self.counts.again += 1;
                return Answer::Done(result.clone());
            }
            _ => {}
        }
        let allowed = fence.as_ref().map_or(Ok(()), |fence| self.nib.check(fence));
        let result = allowed.and_then(|()| match job {
            Job::Batch(number, writes) => self.nib.apply(*number, writes),
            Job::Rows(writes) => self.nib.write(writes),
            Job::Lease(write) => self.nib.write(std::slice::from_ref(write)),
        });
        match &result {
            Ok(_) => self.counts.taken += 1,
            Err(Refused::Deposed { .. }) => self.counts.deposed += 1,
            Err(_) => self.counts.refused += 1,
        }
        if !is_lease {
            self.last.insert(*from, (*id, result.clone()));
        }
        Answer::Done(result)
    }
}

#[tonic::async_trait]
impl Service for Embedded {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteReply>, Status> {
        let Some(writing) = convert::from_writing(request.into_inner()) else {
            self.with(|state| state.counts.malformed += 1);
            return Err(Status::invalid_argument(
                "no write: a table or a writer is unknown, or a fence is missing",
            ));
        };
        match self.take(&writing) {
            Ok(answer) => Ok(Response::new(convert::answer(answer))),
            Err(error) => {
                // What would be answered otherwise would be lost with this process.
                tracing::error!(%error, "the base cannot be kept");
                std::process::exit(1)
            }
        }
    }

    type WatchStream = ReceiverStream<Result<ChangesMessage, Status>>;

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let mut changes = self.follow(request.into_inner().seen);
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(changes) = changes.recv().await {
                if sender.send(Ok(convert::changes(changes))).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

#[tonic::async_trait]
impl Base for Embedded {
    async fn write(&self, writing: &Writing) -> Result<Answer, Away> {
        self.take(writing).map_err(|error| Away::Unfit(error.to_string()))
    }

    async fn watch(&self, seen: u64) -> Result<mpsc::Receiver<Changes>, Away> {
        Ok(self.follow(seen))
    }
}
