//! The network information base: what the controller's applications know in common.
//!
//! Models: Aquila §4.1, §4.2 (M701, M702, M707, M726, I72): a central database that applications write and subscribe to.
//! Rows are kept compressed, and are decompressed when somebody reads them. **Our choice**: the tables; a version for
//! each change, counted over the whole base; batches in sequence, each whole or not at all; zstd.
//!
//! A subscriber names the last version that it has seen and gets what has changed since, the last state of each key, in
//! the order of versions. Deletions are remembered for a while only: who has been away for longer gets everything.
//!
//! Who may write: anybody, but a leader's writes can be fenced, so that one who was deposed changes nothing (M701).
//!
//! Leaves out: where it is kept.

mod stored;
#[cfg(test)]
mod tests;

pub use stored::{pack, unpack};

use stored::Stored;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

/// Deletions that are remembered (our choice): a row of the index each.
pub const DELETIONS_MAX: usize = 4_096;
/// No key is before it.
const FIRST: Key = (Table::Node, Vec::new());
/// What tables and rows mean (our choice): applications refuse a base of another layout.
pub const LAYOUT: u32 = 2;

/// A table (M702, our choice).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Table {
    /// TiNs.
    Node,
    /// Their ports.
    Port,
    /// Links, with their state.
    Link,
    /// Which ports are of which class.
    PortClass,
    /// Routes of cells, by class.
    GnetFlow,
    /// Routes of IP.
    IpFlow,
    /// Weighted groups.
    Group,
    /// Indexed groups.
    IndexedGroup,
    /// What became of what was programmed.
    ProgrammingResult,
    /// Prefixes outside, and by which ports they are reached.
    ExternalReachability,
    /// Sessions with TiNs.
    TinSession,
    /// Batches of changes, and how far they have come.
    Batch,
    /// Which instance of an application leads (M701).
    Lease,
    /// Firmware: what is wanted, and how far TiNs are (M617).
    Firmware,
    /// Management sidebands of hosts: which operators want (M616).
    Sideband,
}

impl Table {
    /// All of them, by number.
    pub const ALL: [Self; 15] = [
        Self::Node,
        Self::Port,
        Self::Link,
        Self::PortClass,
        Self::GnetFlow,
        Self::IpFlow,
        Self::Group,
        Self::IndexedGroup,
        Self::ProgrammingResult,
        Self::ExternalReachability,
        Self::TinSession,
        Self::Batch,
        Self::Lease,
        Self::Firmware,
        Self::Sideband,
    ];
}

/// A row's place: its table, and its key there.
pub type Key = (Table, Vec<u8>);

/// A change of one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Which row.
    pub key: Key,
    /// What it is to hold; `None`: it is deleted.
    pub value: Option<Vec<u8>>,
    /// The version that it must have, 0 if it must not be there; `None`: whatever it has.
    pub expected: Option<u64>,
}

impl Write {
    /// Sets a row, whatever it holds.
    #[must_use]
    pub fn set(table: Table, key: &[u8], value: &[u8]) -> Self {
        Self { key: (table, key.to_vec()), value: Some(value.to_vec()), expected: None }
    }

    /// Deletes a row, whatever it holds.
    #[must_use]
    pub fn delete(table: Table, key: &[u8]) -> Self {
        Self { key: (table, key.to_vec()), value: None, expected: None }
    }
}

/// Why nothing of a batch was applied.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refused {
    /// It is not the next.
    #[error("batch {found}; expected {expected}, the next in sequence")]
    Sequence {
        /// Its number.
        found: u64,
        /// The next.
        expected: u64,
    },
    /// Another instance leads the application.
    #[error("{application:?} is led in term {found}; expected {expected}, that of the writer")]
    Deposed {
        /// The application's key in the table of leases.
        application: Vec<u8>,
        /// The term of its lease; 0: nobody has had it.
        found: u64,
        /// The writer's.
        expected: u64,
    },
    /// Somebody else has written a row in between.
    #[error("write {write}: the row has version {found}; expected {expected}, read it again")]
    Version {
        /// Which of its writes.
        write: usize,
        /// What the row has; 0: it is not there.
        found: u64,
        /// What it must have.
        expected: u64,
    },
}

/// What a writer has to be, so that what it writes counts: a leader whom nobody has followed (M701).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    /// The application's key in [`Table::Lease`], a row that begins with a term of 8 bytes.
    pub application: Vec<u8>,
    /// The writer's term.
    pub term: u64,
}

/// A row, as it is kept.
#[derive(Clone, Debug)]
struct Row {
    version: u64,
    stored: Stored,
}

/// What values take, without keys and indices. Unit: bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Rows.
    pub rows: u64,
    /// Before compression.
    pub raw: u64,
    /// As it is kept.
    pub stored: u64,
}

/// A row that has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Since when it is so.
    pub version: u64,
    /// Which row.
    pub key: Key,
    /// What it holds; `None`: it was deleted.
    pub value: Option<Vec<u8>>,
}

/// What a subscriber gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes {
    /// Whether these are all rows that there are, and what the subscriber knew is to be forgotten first.
    pub is_everything: bool,
    /// In the order of versions.
    pub changes: Vec<Change>,
    /// The version that has been seen with these.
    pub version: u64,
    /// That of the base, see [`LAYOUT`].
    pub layout: u32,
}

/// The base.
#[derive(Clone, Debug)]
pub struct Nib {
    layout: u32,
    rows: BTreeMap<Key, Row>,
    /// By version, the rows that have had it since; deleted ones, too.
    log: BTreeSet<(u64, Key)>,
    /// By deleted row, the version of its deletion.
    deleted: BTreeMap<Key, u64>,
    version: u64,
    /// Deletions up to this version may be forgotten.
    floor: u64,
    batch: u64,
    sizes: Sizes,
}

impl Default for Nib {
    fn default() -> Self {
        Self::new()
    }
}

impl Nib {
    /// An empty one, which expects batch 1.
    #[must_use]
    pub fn new() -> Self {
        Self::with_layout(LAYOUT)
    }

    /// One of another layout, as another version of the controller would have left it.
    #[must_use]
    pub fn with_layout(layout: u32) -> Self {
        Self {
            layout,
            rows: BTreeMap::new(),
            log: BTreeSet::new(),
            deleted: BTreeMap::new(),
            version: 0,
            floor: 0,
            batch: 0,
            sizes: Sizes::default(),
        }
    }

    /// The last version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The last batch that was applied; 0: none.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// Applies the next batch, whole (I72); its last version.
    ///
    /// # Errors
    /// It is not the next, or a row has another version than it must have. Nothing is changed then.
    pub fn apply(&mut self, batch: u64, writes: &[Write]) -> Result<u64, Refused> {
        let expected = self.batch + 1;
        if batch != expected {
            return Err(Refused::Sequence { found: batch, expected });
        }
        let version = self.write(writes)?;
        self.batch = batch;
        Ok(version)
    }

    /// Writes rows out of any sequence, all or none; the last version.
    ///
    /// # Errors
    /// A row has another version than it must have. Nothing is changed then.
    pub fn write(&mut self, writes: &[Write]) -> Result<u64, Refused> {
        for (write, Write { key, expected, .. }) in writes.iter().enumerate() {
            let found = self.rows.get(key).map_or(0, |row| row.version);
            if let &Some(expected) = expected
                && found != expected
            {
                return Err(Refused::Version { write, found, expected });
            }
        }
        for Write { key, value, .. } in writes {
            self.put(key, value.as_deref());
        }
        self.forget();
        Ok(self.version)
    }

    /// Whether a writer still leads.
    ///
    /// # Errors
    /// Another instance has had a later term.
    pub fn check(&self, fence: &Fence) -> Result<(), Refused> {
        let row = self.get(Table::Lease, &fence.application);
        let found = row.and_then(|(_, value)| value.first_chunk().copied().map(u64::from_be_bytes));
        let (found, expected) = (found.unwrap_or(0), fence.term);
        if found == expected {
            return Ok(());
        }
        Err(Refused::Deposed { application: fence.application.clone(), found, expected })
    }

    /// A row's version and value.
    #[must_use]
    pub fn get(&self, table: Table, key: &[u8]) -> Option<(u64, Vec<u8>)> {
        let row = self.rows.get(&(table, key.to_vec()))?;
        Some((row.version, row.stored.value()))
    }

    /// What has changed in some tables since a version that a subscriber has seen; 0: it has seen nothing.
    #[must_use]
    pub fn since(&self, seen: u64, tables: &[Table]) -> Changes {
        // Of a version that is still to come nothing is known: it was another base's.
        let is_everything = seen < self.floor || seen > self.version;
        let from = if is_everything { 0 } else { seen };
        let mut changes = Vec::new();
        for (version, key) in self.log.range((from + 1, FIRST)..) {
            if !tables.contains(&key.0) {
                continue;
            }
            let value = self.rows.get(key).map(|row| row.stored.value());
            if value.is_some() || !is_everything {
                changes.push(Change { version: *version, key: key.clone(), value });
            }
        }
        Changes { is_everything, changes, version: self.version, layout: self.layout }
    }

    /// What values take.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Becomes what a subscriber to all tables of another base knows of it: rows with the versions that they have there,
    /// of which several may be the same. What is older than what is known already is left out.
    pub fn follow(&mut self, changes: &Changes) {
        if changes.is_everything {
            *self = Self::new();
        } else if changes.version < self.version {
            return;
        }
        self.layout = changes.layout;
        for Change { version, key, value } in &changes.changes {
            let known = self.rows.get(key).map(|row| row.version);
            if known.or_else(|| self.deleted.get(key).copied()).is_none_or(|last| last < *version) {
                self.place(*version, key, value.as_deref());
            }
        }
        self.version = changes.version;
        if changes.is_everything {
            self.floor = changes.version;
        }
        self.forget();
    }

    /// Sets or deletes a row. What is not there is not deleted.
    fn put(&mut self, key: &Key, value: Option<&[u8]>) {
        if value.is_some() || self.rows.contains_key(key) {
            self.version += 1;
            self.place(self.version, key, value);
        }
    }

    fn place(&mut self, version: u64, key: &Key, value: Option<&[u8]>) {
        let before = self.rows.remove(key);
        if let Some(before) = &before {
            let (raw, stored) = before.stored.sizes();
            self.sizes.rows -= 1;
            self.sizes.raw -= raw;
            self.sizes.stored -= stored;
        }
        let last = before.map(|row| row.version).or_else(|| self.deleted.remove(key));
        if let Some(last) = last {
            self.log.remove(&(last, key.clone()));
        }
        self.log.insert((version, key.clone()));
        match value {
            Some(value) => {
                let row = Row { version, stored: Stored::new(value) };
                let (raw, stored) = row.stored.sizes();
                self.sizes.rows += 1;
                self.sizes.raw += raw;
                self.sizes.stored += stored;
                self.rows.insert(key.clone(), row);
            }
            None => {
                self.deleted.insert(key.clone(), version);
            }
        }
    }

    /// Forgets the older half of the deletions once there are too many.
    fn forget(&mut self) {
        if self.deleted.len() <= DELETIONS_MAX {
            return;
        }
        let mut versions: Vec<u64> = self.deleted.values().copied().collect();
        versions.sort_unstable();
        self.floor = versions[versions.len() - DELETIONS_MAX / 2 - 1];
        let floor = self.floor;
        let log = &mut self.log;
        self.deleted.retain(|key, &mut version| {
            let stays = version > floor;
            if !stays {
                log.remove(&(version, key.clone()));
            }
            stays
        });
    }
}
