//! Both bases, held against a map: what they take, what they refuse, and what they tell.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use aquila_control::apps::election::Application;
use aquila_control::apps::instance::{Job, Name};
use aquila_control::nib::{Fence, Key, Nib, Refused, Table, Write};
use aquila_services::base::embedded::Embedded;
use aquila_services::base::etcd::Etcd as EtcdBase;
use aquila_services::base::{Answer, Base, Writing};
use aquila_services::tls::channel;
use kernel::Stream;
use libtest_mimic::Failed;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::etcd::Etcd;
use crate::folder;

pub fn check_embedded() -> Result<(), Failed> {
    let folder = folder()?;
    let path = folder.path().join("base.log");
    let base = Embedded::new(Some(&path))?;
    let rows = Runtime::new()?.block_on(check(&base))?;
    // Who reads the file again has the same base.
    drop(base);
    let again = Embedded::new(Some(&path))?;
    again.look(|nib, _| same(nib, &rows))
}

pub fn check_etcd() -> Result<(), Failed> {
    let etcd = Etcd::start()?;
    let address = etcd.address().replace("http://", "");
    Runtime::new()?.block_on(async {
        let base = loop {
            match EtcdBase::new(channel(&address, None)?, address.clone()).await {
                Ok(base) => break base,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        check(&base).await.map(drop)
    })
}

/// The base's file, cut at each byte of its last write, and damaged: that write is there whole, or not at all.
pub fn check_log() -> Result<(), Failed> {
    let folder = folder()?;
    let path = folder.path().join("base.log");
    let base = Embedded::new(Some(&path))?;
    let who = (Application::RoutingEngine, 0);
    let lease = lease(who, 1, 0);
    base.take(&Writing { from: who, id: 1, fence: None, job: Job::Lease(lease) })?;
    let batch = |number: u64| Writing {
        from: who,
        id: number + 1,
        fence: Some(Fence { application: who.0.key(), term: 1 }),
        job: Job::Batch(
            number,
            (0..5).map(|key| Write::set(Table::Link, &[key], &[number as u8; 50])).collect(),
        ),
    };
    base.take(&batch(1))?;
    let before = fs::read(&path)?.len();
    base.take(&batch(2))?;
    drop(base);
    let bytes = fs::read(&path)?;
    for end in before..=bytes.len() {
        fs::write(&path, &bytes[..end])?;
        let whole = if end == bytes.len() { 2 } else { 1 };
        let base = Embedded::new(Some(&path))?;
        base.look(|nib, counts| {
            assert_eq!(nib.batch(), whole, "cut at {end}");
            assert_eq!(nib.get(Table::Link, &[4]).map(|row| row.1), Some(vec![whole as u8; 50]));
            assert_eq!(counts.dropped_bytes, if whole == 2 { 0 } else { (end - before) as u64 });
        });
        // It goes on from there.
        base.take(&batch(whole + 1))?;
    }
    let mut bad = bytes.clone();
    bad[before + 20] ^= 1;
    fs::write(&path, &bad)?;
    let error = Embedded::new(Some(&path)).err().ok_or("it took damaged bytes")?;
    assert!(error.to_string().contains("is damaged"), "{error}");
    assert_eq!(fs::read(&path)?, bad, "nothing was changed");
    Ok(())
}

/// A row of a lease, as elections write it.
fn lease((application, instance): Name, term: u64, expected: u64) -> Write {
    let value = [&term.to_be_bytes()[..], &[instance], &[0; 8]].concat();
    Write { key: (Table::Lease, application.key()), value: Some(value), expected: Some(expected) }
}

type Rows = BTreeMap<Key, Vec<u8>>;

fn same(nib: &Nib, rows: &Rows) -> Result<(), Failed> {
    let found = nib.since(0, &Table::ALL).changes.into_iter();
    let found: Rows = found.filter_map(|change| Some((change.key, change.value?))).collect();
    if found != *rows {
        return Err(format!("{} rows; expected {}, or others", found.len(), rows.len()).into());
    }
    Ok(())
}

/// A subscriber, and what it knows.
struct Copy {
    nib: Nib,
    changes: mpsc::Receiver<aquila_control::nib::Changes>,
}

impl Copy {
    async fn reach(&mut self, version: u64) -> Result<(), Failed> {
        while self.nib.version() < version {
            let next = tokio::time::timeout(Duration::from_secs(10), self.changes.recv()).await?;
            self.nib.follow(&next.ok_or("the watch has ended")?);
        }
        Ok(())
    }

    /// Until it knows all that there is now: a row that is written behind everything else says so.
    async fn catch_up(&mut self, base: &dyn Base) -> Result<(), Failed> {
        let mut other = base.watch(0).await?;
        let now = other.recv().await.ok_or("the watch has ended")?;
        let last = now.changes.iter().map(|change| change.version).max().unwrap_or(0);
        self.reach(last).await?;
        // A deletion is behind all rows that there are.
        while let Ok(Some(next)) =
            tokio::time::timeout(Duration::from_millis(15), self.changes.recv()).await
        {
            self.nib.follow(&next);
        }
        Ok(())
    }

    fn version(&self, key: &Key) -> u64 {
        self.nib.get(key.0, &key.1).map_or(0, |row| row.0)
    }
}

/// Random writes of two instances, of which the second takes over.
async fn check(base: &dyn Base) -> Result<Rows, Failed> {
    let mut stream = Stream::new(11, "writes", 0);
    let mut copy = Copy { nib: Nib::new(), changes: base.watch(0).await? };
    let mut rows = Rows::new();
    let (mut batch, mut id) = (0, 0);
    for (term, instance) in [(1, 0), (2, 1)] {
        let who = (Application::FlowManager, instance);
        take_lease(base, who, term, &mut copy, &mut rows).await?;
        let fence = |term| Some(Fence { application: who.0.key(), term });
        for _ in 0..60 {
            id += 1;
            let mut writes = Vec::new();
            let mut is_wrong = false;
            for _ in 0..stream.below(5) {
                let key = (Table::ALL[stream.below(4) as usize], vec![stream.below(6) as u8]);
                let is_new = !writes.iter().any(|write: &Write| write.key == key);
                let value =
                    (stream.below(4) > 0).then(|| vec![id as u8; stream.below(90) as usize]);
                let expected = match stream.below(12) {
                    0 if is_new => {
                        is_wrong = true;
                        Some(copy.version(&key) + 1)
                    }
                    1..4 if is_new => Some(copy.version(&key)),
                    _ => None,
                };
                writes.push(Write { key, value, expected });
            }
            let number = match stream.below(8) {
                0 => Some(batch + 2),
                1..4 => Some(batch + 1),
                _ => None,
            };
            let is_deposed = term == 2 && stream.below(6) == 0;
            let job = match number {
                Some(number) => Job::Batch(number, writes.clone()),
                None => Job::Rows(writes.clone()),
            };
            let fence = if is_deposed { fence(1) } else { fence(term) };
            let writing = Writing { from: who, id, fence, job };
            let answer = base.write(&writing).await?;
            let Answer::Done(result) = &answer else { return Err("it is no old one".into()) };
            let is_out_of_turn = number.is_some_and(|number| number != batch + 1);
            match result {
                Ok(version) => {
                    assert!(!is_deposed && !is_out_of_turn && !is_wrong, "I72, I79: {writing:?}");
                    batch = number.unwrap_or(batch);
                    for Write { key, value, .. } in writes {
                        match value {
                            Some(value) => rows.insert(key, value),
                            None => rows.remove(&key),
                        };
                    }
                    // Once more, as if the answer had been lost: nothing is done twice.
                    assert_eq!(base.write(&writing).await?, Answer::Done(Ok(*version)));
                    copy.catch_up(base).await?;
                }
                Err(Refused::Deposed { found, expected, .. }) => {
                    assert!(is_deposed && (*found, *expected) == (2, 1));
                }
                Err(Refused::Sequence { found, expected }) => {
                    assert!(is_out_of_turn && (*found, *expected) == (batch + 2, batch + 1));
                }
                Err(Refused::Version { .. }) => assert!(is_wrong && !is_out_of_turn),
            }
            same(&copy.nib, &rows)?;
        }
        // What comes too late does not count.
        let late = Writing {
            from: who,
            id: id - 1,
            fence: fence(term),
            job: Job::Rows(vec![Write::set(Table::Node, b"late", b"x")]),
        };
        assert_eq!(base.write(&late).await?, Answer::Old);
    }
    // Who comes now knows the same.
    let mut late = Copy { nib: Nib::new(), changes: base.watch(0).await? };
    late.reach(copy.nib.version()).await?;
    same(&late.nib, &rows)?;
    Ok(rows)
}

async fn take_lease(
    base: &dyn Base,
    who: Name,
    term: u64,
    copy: &mut Copy,
    rows: &mut Rows,
) -> Result<(), Failed> {
    // A lease of etcd's has to run out first.
    for _ in 0..100 {
        let key = (Table::Lease, who.0.key());
        let write = lease(who, term, copy.version(&key));
        let writing = Writing { from: who, id: 0, fence: None, job: Job::Lease(write.clone()) };
        if let Answer::Done(Ok(version)) = base.write(&writing).await? {
            rows.insert(key, write.value.unwrap_or_default());
            return copy.reach(version).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("nobody gets the lease".into())
}
