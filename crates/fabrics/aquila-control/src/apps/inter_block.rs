//! What inter-block routing controllers say and are told.
//!
//! Models: Aquila §2, §4.1, Figure 2 (M704): four shards of a domain as wide as the datacenter say by which Ethernet ports
//! prefixes outside are reached, and learn the Clique's prefixes. **Our choice**: the message; what a shard has said
//! stands for 30 s after it was last heard, and is then withdrawn, and nobody else's is.
//!
//! ```text
//! to us:    "IB" 2 | kind 1 | shard 1 | version 8 | prefix 18 | members 2 | TiN 2, weight 4 each
//! from us:  "IA" 2 | kind 1 | shard 1 | version 8 | prefixes 2 | prefix 18 each
//! ```
//!
//! Kinds to us: 0 still there (without prefix and members), 1 a prefix is reached so, 2 it is not reached any more
//! (no members). A prefix's versions rise; an older one does not count.

use std::collections::{BTreeMap, BTreeSet};

use aquila::pipeline::plan::Plan;
use ipnet::IpNet;
use kernel::{Span, Time};
use thiserror::Error;

use super::rows::{decode_members, decode_prefix, encode_members, encode_prefix};
use crate::nib::{Changes, LAYOUT, Table, Write};

/// Shards (§2, Figure 2).
pub const SHARDS: u8 = 4;
/// How long what a shard has said stands without a word from it (our choice).
pub const HOLD: Span = Span::from_us(30_000_000);
/// Most prefixes of a shard that are kept (our choice): more than a chip has room for.
pub const PREFIXES_MAX: usize = 8_192;
const HEADER_BYTES: usize = 12;

/// What a shard says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// It is there.
    Alive {
        /// Which.
        shard: u8,
    },
    /// By which TiNs' Ethernet ports a prefix is reached, by weight; by none: not any more.
    Reach {
        /// Which.
        shard: u8,
        /// The later counts.
        version: u64,
        /// The prefix.
        prefix: IpNet,
        /// TiNs and weights.
        members: Vec<(u16, u32)>,
    },
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum MessageError {
    /// It does not begin as one, or is of no known kind.
    #[error("no message to an Aquila controller: of another kind, or cut short")]
    Kind,
    /// There is no such shard.
    #[error("shard {0}; expected 0 to {max}", max = SHARDS - 1)]
    Shard(u8),
    /// Its prefix is none.
    #[error("its prefix is none, or has bits behind its length")]
    Prefix,
    /// It has more members than it says, or fewer.
    #[error("{found} bytes of members; expected {said} members of six bytes each")]
    Members {
        /// What there is.
        found: usize,
        /// How many it says.
        said: u16,
    },
}

impl Message {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Alive { shard } => [&b"IB"[..], &[0, *shard], &[0; 8]].concat(),
            Self::Reach { shard, version, prefix, members } => {
                let kind = if members.is_empty() { 2 } else { 1 };
                let mut bytes = [&b"IB"[..], &[kind, *shard], &version.to_be_bytes()].concat();
                bytes.extend(encode_prefix(*prefix));
                bytes.extend((members.len() as u16).to_be_bytes());
                bytes.extend(encode_members(members));
                bytes
            }
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// They are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(MessageError::Kind)?;
        let &[b'I', b'B', kind, shard, ref version @ ..] = header else {
            return Err(MessageError::Kind);
        };
        let version = u64::from_be_bytes(*version);
        if shard >= SHARDS {
            return Err(MessageError::Shard(shard));
        }
        match kind {
            0 if rest.is_empty() && version == 0 => return Ok(Self::Alive { shard }),
            1 | 2 => {}
            _ => return Err(MessageError::Kind),
        }
        let (prefix, rest) = rest.split_first_chunk::<18>().ok_or(MessageError::Prefix)?;
        let prefix = decode_prefix(prefix).ok_or(MessageError::Prefix)?;
        let (said, rest) = rest.split_first_chunk::<2>().ok_or(MessageError::Kind)?;
        let (said, found) = (u16::from_be_bytes(*said), rest.len());
        let bad = MessageError::Members { found, said };
        let members = decode_members(rest).ok_or(bad)?;
        if members.len() != usize::from(said) || members.is_empty() != (kind == 2) {
            return Err(bad);
        }
        Ok(Self::Reach { shard, version, prefix, members })
    }
}

/// What a shard is told: the Clique's prefixes.
#[must_use]
pub fn tell(plan: &Plan, shard: u8, version: u64) -> Vec<u8> {
    let subnets = plan
        .addressed()
        .flat_map(|interface| Plan::VERSIONS.map(|version| plan.subnet(interface, version)));
    let prefixes: Vec<[u8; 18]> = subnets.map(encode_prefix).collect();
    let mut bytes = [&b"IA"[..], &[1, shard], &version.to_be_bytes()].concat();
    bytes.extend((prefixes.len() as u16).to_be_bytes());
    bytes.extend(prefixes.concat());
    bytes
}

/// What the application wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// To the base.
    Write(Vec<Write>),
    /// To a shard.
    Tell(u8, Vec<u8>),
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Messages that were used.
    pub used: u64,
    /// Messages older than what was known.
    pub old: u64,
    /// Bytes that are no message.
    pub malformed: u64,
    /// Prefixes more than are kept of a shard.
    pub too_many: u64,
    /// Times that a shard was silent for too long.
    pub lost: u64,
}

/// The application.
#[derive(Debug)]
pub struct InterBlock {
    plan: Plan,
    seen: u64,
    is_loaded: bool,
    /// By shard: when it was last heard, while it is.
    heard: BTreeMap<u8, Time>,
    told: BTreeSet<u8>,
    /// By shard and prefix: the version, and whether it is reached.
    known: BTreeMap<u8, BTreeMap<IpNet, (u64, bool)>>,
    counts: Counts,
}

impl InterBlock {
    /// One that knows nothing yet.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            seen: 0,
            is_loaded: false,
            heard: BTreeMap::new(),
            told: BTreeSet::new(),
            known: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// The table that it reads when it starts.
    pub const TABLES: [Table; 1] = [Table::ExternalReachability];

    /// The last version of the base that it has seen.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The base, as it was when the application started to lead: what shards said to another instance. They have 30 s
    /// from now on.
    pub fn learn(&mut self, now: Time, changes: &Changes) {
        self.seen = changes.version;
        if changes.layout != LAYOUT || std::mem::replace(&mut self.is_loaded, true) {
            return;
        }
        for change in &changes.changes {
            let (Some(value), Some((&shard, prefix))) = (&change.value, change.key.1.split_first())
            else {
                continue;
            };
            let version = value.first_chunk().copied().map(u64::from_be_bytes);
            if let (Some(version), Some(prefix)) = (version, decode_prefix(prefix)) {
                self.known.entry(shard).or_default().insert(prefix, (version, true));
                self.heard.insert(shard, now);
            }
        }
    }

    /// A shard has said something.
    pub fn hear(&mut self, now: Time, bytes: &[u8], out: &mut Vec<Output>) {
        if !self.is_loaded {
            return;
        }
        let Ok(message) = Message::decode(bytes) else {
            self.counts.malformed += 1;
            return;
        };
        let (Message::Alive { shard } | Message::Reach { shard, .. }) = message;
        self.heard.insert(shard, now);
        if self.told.insert(shard) {
            out.push(Output::Tell(shard, tell(&self.plan, shard, 1)));
        }
        let Message::Reach { version, prefix, members, .. } = message else { return };
        let known = self.known.entry(shard).or_default();
        match known.get(&prefix) {
            Some(&(last, _)) if last >= version => {
                self.counts.old += 1;
                return;
            }
            None if known.len() >= PREFIXES_MAX => {
                self.counts.too_many += 1;
                return;
            }
            _ => {}
        }
        known.insert(prefix, (version, !members.is_empty()));
        self.counts.used += 1;
        let key = [&[shard][..], &encode_prefix(prefix)].concat();
        out.push(Output::Write(vec![if members.is_empty() {
            Write::delete(Table::ExternalReachability, &key)
        } else {
            let value = [&version.to_be_bytes()[..], &encode_members(&members)].concat();
            Write::set(Table::ExternalReachability, &key, &value)
        }]));
    }

    /// Time goes on: shards that are silent for too long reach nothing.
    pub fn tick(&mut self, now: Time, out: &mut Vec<Output>) {
        let lost: Vec<u8> =
            self.heard.iter().filter(|(_, at)| now - **at >= HOLD).map(|(&s, _)| s).collect();
        for shard in lost {
            self.counts.lost += 1;
            self.heard.remove(&shard);
            self.told.remove(&shard);
            let known = self.known.remove(&shard).unwrap_or_default();
            let reached = known.iter().filter(|(_, (_, is_reached))| *is_reached);
            let key = |prefix: &IpNet| [&[shard][..], &encode_prefix(*prefix)].concat();
            let delete = |(prefix, _)| Write::delete(Table::ExternalReachability, &key(prefix));
            let writes: Vec<Write> = reached.map(delete).collect();
            if !writes.is_empty() {
                out.push(Output::Write(writes));
            }
        }
    }
}
