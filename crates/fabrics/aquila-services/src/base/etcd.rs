//! The base in etcd.
//!
//! | of the base | in etcd |
//! | --- | --- |
//! | a row | a key below `PREFIX/row/TABLE/`, in hexadecimal digits; zstd where that is smaller |
//! | the version of a row | its `mod_revision`: rows of one write have the same |
//! | a batch (I72) | a transaction, which holds `PREFIX/batch` against the number before |
//! | a leader's fence (I79) | the same transaction holds `PREFIX/term/APPLICATION` against the writer's term |
//! | a write that comes twice | `PREFIX/last/APPLICATION/INSTANCE`, which only rises |
//! | a lease (M701) | `PREFIX/holder/APPLICATION` under a lease of etcd: while it runs nobody else gets a term |
//! | publish and subscribe | a watch of `PREFIX/row/`; who was away for too long reads everything |
//! | the layout | `PREFIX/layout`, written by the first that comes |
//!
//! etcd's own limits are lower than a full Clique's batches: it is to be started with `--max-txn-ops` and
//! `--max-request-bytes`, which is looked at first.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aquila_control::apps::election::LEASE;
use aquila_control::apps::instance::{Job, Name};
use aquila_control::nib::{Change, Changes, Key, LAYOUT, Refused, Table, Write, pack, unpack};
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::{Answer, Away, Base, Writing};
use crate::links::MESSAGE_BYTES_MAX;
use crate::proto::etcd::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::proto::etcd::event::EventType;
use crate::proto::etcd::kv_client::KvClient;
use crate::proto::etcd::lease_client::LeaseClient;
use crate::proto::etcd::request_op::Request as Op;
use crate::proto::etcd::response_op::Response as Done;
use crate::proto::etcd::watch_client::WatchClient;
use crate::proto::etcd::{
    Compare, DeleteRangeRequest, KeyValue, LeaseGrantRequest, LeaseKeepAliveRequest, PutRequest,
    RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse, WatchCreateRequest,
    WatchRequest, watch_request::RequestUnion,
};

/// Where everything stands (our choice).
const PREFIX: &str = "rackloom/aquila";
/// Operations of a transaction that are asked for at the start (our choice): a first batch of a full Clique has some nine
/// thousand.
pub const OPERATIONS: usize = 16_384;

/// etcd, as a base.
#[derive(Debug)]
pub struct Etcd {
    at: String,
    kv: KvClient<Channel>,
    watch: WatchClient<Channel>,
    lease: LeaseClient<Channel>,
    /// By application and term: the lease of etcd that stands for ours.
    leases: Mutex<BTreeMap<Vec<u8>, (u64, i64)>>,
    /// Writers whose last number is known to be there.
    writers: Mutex<Vec<Name>>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    text.len().is_multiple_of(2).then(|| (0..text.len()).step_by(2).map(digits).collect()).flatten()
}

fn row_name((table, key): &Key) -> Vec<u8> {
    format!("{PREFIX}/row/{table:?}/{}", hex(key)).into_bytes()
}

fn from_row_name(name: &[u8]) -> Option<Key> {
    let rest = std::str::from_utf8(name).ok()?.strip_prefix(PREFIX)?.strip_prefix("/row/")?;
    let (table, key) = rest.split_once('/')?;
    let table = Table::ALL.into_iter().find(|known| format!("{known:?}") == table)?;
    Some((table, from_hex(key)?))
}

fn name(what: &str) -> Vec<u8> {
    format!("{PREFIX}/{what}").into_bytes()
}

fn term_name(application: &[u8]) -> Vec<u8> {
    name(&format!("term/{}", hex(application)))
}

fn holder_name(application: &[u8]) -> Vec<u8> {
    name(&format!("holder/{}", hex(application)))
}

fn last_name(from: Name) -> Vec<u8> {
    name(&format!("last/{:?}/{}", from.0, from.1))
}

/// Numbers are compared as texts: all of one length.
fn number(number: u64) -> Vec<u8> {
    format!("{number:020}").into_bytes()
}

fn from_number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The first key that is behind all that begin so.
fn end_of(mut prefix: Vec<u8>) -> Vec<u8> {
    if let Some(last) = prefix.last_mut() {
        *last += 1;
    }
    prefix
}

fn compare(key: Vec<u8>, result: CompareResult, union: TargetUnion) -> Compare {
    let target = match union {
        TargetUnion::Version(_) => CompareTarget::Version,
        TargetUnion::CreateRevision(_) => CompareTarget::Create,
        TargetUnion::ModRevision(_) => CompareTarget::Mod,
        TargetUnion::Value(_) => CompareTarget::Value,
        TargetUnion::Lease(_) => CompareTarget::Lease,
    };
    Compare { result: result.into(), target: target.into(), key, target_union: Some(union) }
}

/// The row has this version; 0: it is not there.
fn has_version(key: Vec<u8>, version: u64) -> Compare {
    let union = match version {
        0 => TargetUnion::CreateRevision(0),
        version => TargetUnion::ModRevision(version as i64),
    };
    compare(key, CompareResult::Equal, union)
}

fn is_missing(key: Vec<u8>) -> Compare {
    has_version(key, 0)
}

fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    RequestOp { request: Some(Op::RequestPut(PutRequest { key, value, lease })) }
}

fn get(key: Vec<u8>) -> RequestOp {
    let range = RangeRequest { key, ..RangeRequest::default() };
    RequestOp { request: Some(Op::RequestRange(range)) }
}

fn put_row(write: &Write) -> RequestOp {
    let key = row_name(&write.key);
    match &write.value {
        Some(value) => put(key, pack(value), 0),
        None => RequestOp {
            request: Some(Op::RequestDeleteRange(DeleteRangeRequest {
                key,
                range_end: Vec::new(),
            })),
        },
    }
}

fn revision(response: &TxnResponse) -> u64 {
    response.header.as_ref().map_or(0, |header| header.revision.max(0) as u64)
}

/// What was found at the operation of this number.
fn found(response: &TxnResponse, at: usize) -> Option<&KeyValue> {
    match response.responses.get(at)?.response.as_ref()? {
        Done::ResponseRange(range) => range.kvs.first(),
        _ => None,
    }
}

impl Etcd {
    /// etcd at an address, once it was seen to fit.
    ///
    /// # Errors
    /// It is not there, allows too little, or holds a base of another layout.
    pub async fn new(channel: Channel, at: String) -> Result<Self, Away> {
        let kv = KvClient::new(channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let watch = WatchClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let lease = LeaseClient::new(channel);
        let (leases, writers) = (Mutex::default(), Mutex::default());
        let etcd = Self { at, kv, watch, lease, leases, writers };
        let probe = (0..OPERATIONS).map(|at| get(name(&format!("none/{at}")))).collect();
        etcd.transact(Vec::new(), probe, Vec::new()).await?;
        let layout = name("layout");
        let ours = LAYOUT.to_string().into_bytes();
        let first = put(layout.clone(), ours.clone(), 0);
        let found_layout =
            etcd.transact(vec![is_missing(layout.clone())], vec![first], vec![get(layout)]).await?;
        match found(&found_layout, 0) {
            Some(other) if other.value != ours => Err(Away::Unfit(format!(
                "etcd at {} holds a base of layout {}; expected {LAYOUT}: another version of the program has written \
                 it. Nothing was changed; run that one, or remove it: etcdctl del --prefix {PREFIX}/",
                etcd.at,
                String::from_utf8_lossy(&other.value),
            ))),
            _ => Ok(etcd),
        }
    }

    fn away(&self, status: &Status) -> Away {
        let text = status.message();
        let is_limit =
            text.contains("too many operations") || text.contains("request is too large");
        match status.code() {
            _ if is_limit => Away::Unfit(format!(
                "etcd at {} refuses so large a write: {text}; start it with --max-txn-ops={} \
                 --max-request-bytes=33554432",
                self.at,
                2 * OPERATIONS
            )),
            Code::Unimplemented => Away::Unfit(format!("{} is no etcd: {text}", self.at)),
            _ => Away::Silent { at: self.at.clone(), why: text.to_owned() },
        }
    }

    async fn transact(
        &self,
        compare: Vec<Compare>,
        success: Vec<RequestOp>,
        failure: Vec<RequestOp>,
    ) -> Result<TxnResponse, Away> {
        let done = self.kv.clone().txn(TxnRequest { compare, success, failure }).await;
        Ok(done.map_err(|status| self.away(&status))?.into_inner())
    }

    /// Sees to it that a writer has a last number, which others can be held against.
    async fn know(&self, from: Name) -> Result<(), Away> {
        let writers = || self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if !writers().contains(&from) {
            let last = last_name(from);
            let first = put(last.clone(), number(0), 0);
            self.transact(vec![is_missing(last)], vec![first], Vec::new()).await?;
            writers().push(from);
        }
        Ok(())
    }

    async fn write_rows(
        &self,
        writing: &Writing,
        batch: Option<u64>,
        writes: &[Write],
    ) -> Result<Answer, Away> {
        self.know(writing.from).await?;
        let (last, id) = (last_name(writing.from), number(writing.id));
        let mut compares =
            vec![compare(last.clone(), CompareResult::Less, TargetUnion::Value(id.clone()))];
        let mut failure = vec![get(last.clone())];
        let fence =
            writing.fence.clone().unwrap_or_else(|| unreachable!("leases are written otherwise"));
        let term = term_name(&fence.application);
        let is_ours = TargetUnion::Value(number(fence.term));
        compares.push(compare(term.clone(), CompareResult::Equal, is_ours));
        failure.push(get(term));
        failure.push(get(name("batch")));
        // The last of several writes of one row counts, as in a base of ours.
        let rows: BTreeMap<&Key, &Write> = writes.iter().map(|write| (&write.key, write)).collect();
        let mut success: Vec<RequestOp> = rows.values().map(|write| put_row(write)).collect();
        success.push(put(last, id, 0));
        if let Some(batch) = batch {
            compares.push(match batch {
                1 => is_missing(name("batch")),
                batch => {
                    let before = TargetUnion::Value(number(batch.saturating_sub(1)));
                    compare(name("batch"), CompareResult::Equal, before)
                }
            });
            success.push(put(name("batch"), number(batch), 0));
        }
        let guarded = || writes.iter().enumerate().filter_map(|(at, w)| Some((at, w, w.expected?)));
        for (_, write, expected) in guarded() {
            compares.push(has_version(row_name(&write.key), expected));
            failure.push(get(row_name(&write.key)));
        }
        let done = self.transact(compares, success, failure).await?;
        if done.succeeded {
            return Ok(Answer::Done(Ok(revision(&done))));
        }
        let value = |at| found(&done, at).and_then(|kv| from_number(&kv.value));
        match found(&done, 0).and_then(|kv| Some((from_number(&kv.value)?, kv.mod_revision))) {
            Some((last, at)) if last == writing.id => return Ok(Answer::Done(Ok(at as u64))),
            Some((last, _)) if last > writing.id => return Ok(Answer::Old),
            _ => {}
        }
        let (found_term, expected) = (value(1).unwrap_or(0), fence.term);
        if found_term != expected {
            let application = fence.application;
            return Ok(Answer::Done(Err(Refused::Deposed {
                application,
                found: found_term,
                expected,
            })));
        }
        let next = value(2).unwrap_or(0) + 1;
        if let Some(batch) = batch.filter(|&batch| batch != next) {
            return Ok(Answer::Done(Err(Refused::Sequence { found: batch, expected: next })));
        }
        let version = |at| found(&done, at).map_or(0, |kv| kv.mod_revision as u64);
        let wrong = (3..).zip(guarded()).find(|&(at, (_, _, expected))| version(at) != expected);
        match wrong {
            Some((at, (write, _, expected))) => {
                Ok(Answer::Done(Err(Refused::Version { write, found: version(at), expected })))
            }
            None => Err(Away::Unfit("etcd refuses a write without a reason".to_owned())),
        }
    }

    /// Asks for an application's lease, or renews it.
    async fn write_lease(&self, from: Name, write: &Write) -> Result<Answer, Away> {
        let value = write.value.clone().unwrap_or_default();
        let term = value.first_chunk().copied().map(u64::from_be_bytes);
        let renewals = value.last_chunk().copied().map(u64::from_be_bytes);
        let (Some(term), Some(renewals)) = (term, renewals) else {
            return Err(Away::Unfit("a lease without a term".to_owned()));
        };
        let application = &write.key.1;
        let (row, holder) = (row_name(&write.key), holder_name(application));
        let expected = write.expected.unwrap_or(0);
        let mut compares = vec![has_version(row.clone(), expected)];
        let mut success = vec![put_row(write)];
        let leases = || self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        let known = leases().get(application).copied();
        let lease = match known.filter(|&(of, _)| of == term && renewals > 0) {
            Some((_, lease)) => {
                self.keep_alive(lease).await?;
                // If it has run out this one has lost it, whatever it believes.
                compares.push(compare(holder, CompareResult::Equal, TargetUnion::Lease(lease)));
                lease
            }
            None => {
                let lease = self.grant().await?;
                compares.push(is_missing(holder.clone()));
                success.push(put(holder, format!("{}", from.1).into_bytes(), lease));
                success.push(put(term_name(application), number(term), 0));
                lease
            }
        };
        let done = self.transact(compares, success, vec![get(row)]).await?;
        if done.succeeded {
            leases().insert(application.clone(), (term, lease));
            return Ok(Answer::Done(Ok(revision(&done))));
        }
        let found = found(&done, 0).map_or(0, |kv| kv.mod_revision as u64);
        Ok(Answer::Done(Err(Refused::Version { write: 0, found, expected })))
    }

    async fn grant(&self) -> Result<i64, Away> {
        let ttl = LEASE.as_ps().div_ceil(1_000_000_000_000) as i64;
        let request = LeaseGrantRequest { ttl, id: 0 };
        let granted = self.lease.clone().lease_grant(request).await;
        Ok(granted.map_err(|status| self.away(&status))?.into_inner().id)
    }

    async fn keep_alive(&self, id: i64) -> Result<(), Away> {
        let once = tokio_stream::once(LeaseKeepAliveRequest { id });
        let kept = self.lease.clone().lease_keep_alive(once).await;
        let mut kept = kept.map_err(|status| self.away(&status))?.into_inner();
        kept.message().await.map_err(|status| self.away(&status))?;
        Ok(())
    }
}

/// All rows that there are.
async fn everything(mut kv: KvClient<Channel>) -> Result<Changes, Status> {
    let key = name("row/");
    let range_end = end_of(key.clone());
    let range = RangeRequest { key, range_end, ..RangeRequest::default() };
    let RangeResponse { header, kvs, .. } = kv.range(range).await?.into_inner();
    let version = header.map_or(0, |header| header.revision as u64);
    let mut changes: Vec<Change> =
        kvs.into_iter().filter_map(|kv| change(kv, EventType::Put)).collect();
    changes.sort_by(|a, b| (a.version, &a.key).cmp(&(b.version, &b.key)));
    Ok(Changes { is_everything: true, changes, version, layout: LAYOUT })
}

/// What an event says of a row; `None`: it is of none.
fn change(kv: KeyValue, kind: EventType) -> Option<Change> {
    let key = from_row_name(&kv.key)?;
    let value = match kind {
        EventType::Put => Some(unpack(&kv.value)?),
        EventType::Delete => None,
    };
    Some(Change { version: kv.mod_revision as u64, key, value })
}

#[tonic::async_trait]
impl Base for Etcd {
    async fn write(&self, writing: &Writing) -> Result<Answer, Away> {
        match &writing.job {
            Job::Batch(number, writes) => self.write_rows(writing, Some(*number), writes).await,
            Job::Rows(writes) => self.write_rows(writing, None, writes).await,
            Job::Lease(write) => self.write_lease(writing.from, write).await,
        }
    }

    async fn watch(&self, seen: u64) -> Result<mpsc::Receiver<Changes>, Away> {
        // Where it stands; and all of it, if that is not what the subscriber has known.
        let newest = self.transact(Vec::new(), vec![get(name("layout"))], Vec::new()).await?;
        let is_new = seen == 0 || revision(&newest) < seen;
        let first = match is_new {
            true => everything(self.kv.clone()).await.map_err(|status| self.away(&status))?,
            false => {
                Changes { is_everything: false, changes: Vec::new(), version: seen, layout: LAYOUT }
            }
        };
        let key = name("row/");
        let create = WatchCreateRequest {
            range_end: end_of(key.clone()),
            key,
            start_revision: first.version as i64 + 1,
            progress_notify: false,
        };
        let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        // The stream is to stay open: nothing else is said on it.
        let (keep, requests) = mpsc::channel(1);
        keep.send(request).await.map_err(|_| Away::Unfit("no room in a new channel".to_owned()))?;
        let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
        let stream = self.watch.clone().watch(requests).await;
        let mut stream = stream.map_err(|status| self.away(&status))?.into_inner();
        let (sender, receiver) = mpsc::channel(16);
        let kv = self.kv.clone();
        tokio::spawn(async move {
            let _keep = keep;
            if sender.send(first).await.is_err() {
                return;
            }
            while let Ok(Some(news)) = stream.message().await {
                if news.compact_revision > 0 {
                    // It was away for too long: the next watch begins with everything.
                    if let Ok(all) = everything(kv).await {
                        let _ = sender.send(all).await;
                    }
                    return;
                }
                if news.canceled {
                    return;
                }
                let events = news.events.into_iter().filter_map(|event| {
                    let kind = EventType::try_from(event.r#type).ok()?;
                    change(event.kv?, kind)
                });
                let changes: Vec<Change> = events.collect();
                // Not the header's: it may be of a later revision than the events that it brings.
                let Some(version) = changes.last().map(|change| change.version) else { continue };
                let changes = Changes { is_everything: false, changes, version, layout: LAYOUT };
                if sender.send(changes).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }
}
