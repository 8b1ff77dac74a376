//! What a node of the schema means.

use kernel::{Bytes, PS_PER_SECOND, Span};
use rack::workload::execution::{Node, Work};
use rack::workload::limits::{FLOW_MAX, SPAN_MAX};
use rack::workload::operation::Operation;

use super::groups::Groups;
use super::messages::{self, Value, node_type};

/// A node whose group is not known yet.
#[derive(Debug)]
pub(super) struct Draft {
    pub id: u64,
    after: Vec<u64>,
    pub work: DraftWork,
}

/// What it does.
#[derive(Debug)]
pub(super) enum DraftWork {
    /// What needs no group.
    Alone(Work),
    /// An operation of a group.
    Collective {
        kind: Kind,
        /// Its name; empty: all ranks.
        group: String,
        /// The rank of the root, if one is given.
        root: Option<u64>,
        size: Bytes,
    },
}

/// Kinds of operations, as the schema numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    AllReduce,
    Reduce,
    AllGather,
    Gather,
    Scatter,
    Broadcast,
    AllToAll,
    ReduceScatter,
    Barrier,
}

impl Kind {
    fn of(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::AllReduce,
            1 => Self::Reduce,
            2 => Self::AllGather,
            3 => Self::Gather,
            4 => Self::Scatter,
            5 => Self::Broadcast,
            6 => Self::AllToAll,
            // REDUCE_SCATTER and REDUCE_SCATTER_BLOCK, whose parts are equal: ours are.
            7 | 8 => Self::ReduceScatter,
            9 => Self::Barrier,
            _ => return None,
        })
    }

    const fn operation(self, root: usize) -> Operation {
        match self {
            Self::AllReduce => Operation::AllReduce,
            Self::Reduce => Operation::Reduce { root },
            Self::AllGather => Operation::AllGather,
            Self::Gather => Operation::Gather { root },
            Self::Scatter => Operation::Scatter { root },
            Self::Broadcast => Operation::Broadcast { root },
            Self::AllToAll => Operation::AllToAll,
            Self::ReduceScatter => Operation::ReduceScatter,
            Self::Barrier => Operation::Barrier,
        }
    }
}

/// The attributes of a node.
struct Attributes<'a>(&'a messages::Node);

impl Attributes<'_> {
    fn find(&self, name: &str) -> Option<&Value> {
        let found = self.0.attributes.iter().find(|attribute| attribute.name == name);
        found.and_then(|attribute| attribute.value.as_ref())
    }

    /// A whole number, if it is there.
    fn whole(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.find(name) else { return Ok(None) };
        value
            .whole()
            .map(Some)
            .ok_or_else(|| format!("attribute {name} is {value:?}; expected a whole number from 0"))
    }

    fn required(&self, name: &str) -> Result<u64, String> {
        self.whole(name)?.ok_or_else(|| format!("has no attribute {name}"))
    }

    /// A rank, if it is there.
    fn rank(&self, name: &str) -> Result<Option<u32>, String> {
        let rank = self.whole(name)?.map(u32::try_from).transpose();
        rank.map_err(|_| format!("attribute {name} is larger than any rank"))
    }

    fn size(&self) -> Result<Bytes, String> {
        let size = Bytes::new(self.required("comm_size")?);
        if size > FLOW_MAX {
            return Err(format!("comm_size is {} bytes; a flow carries at most 1 TiB", size.get()));
        }
        Ok(size)
    }
}

impl Draft {
    /// What a node of `rank` says. `compute_rate`: operations a second, of computations that state these
    /// alone.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of(
        rank: u32,
        node: messages::Node,
        compute_rate: Option<f64>,
    ) -> Result<Self, String> {
        let work = work(rank, &node, compute_rate)
            .map_err(|message| format!("node {} ({:?}): {message}", node.id, node.name))?;
        let mut after = node.ctrl_deps;
        after.extend(node.data_deps);
        // A node may name another as both.
        after.sort_unstable();
        after.dedup();
        Ok(Self { id: node.id, after, work })
    }

    /// Memory that it takes while the trace is played, by and large. Unit: bytes.
    pub(super) fn memory(&self) -> u64 {
        memory(self.after.len())
    }

    /// The node, its group found.
    ///
    /// # Errors
    /// When its root is not in its group.
    pub(super) fn resolve(self, groups: &Groups) -> Result<Node, String> {
        let Self { id, after, work } = self;
        let work = match work {
            DraftWork::Alone(work) => work,
            DraftWork::Collective { kind, group: name, root, size } => {
                let (group, ranks) = groups.get(&name);
                let place = |root: u64| {
                    ranks.iter().position(|&rank| u64::from(rank) == root).ok_or_else(|| {
                        format!("its root is rank {root}, which group {name:?} ({ranks:?}) has not")
                    })
                };
                let root = root.map_or(Ok(0), place)?;
                Work::Collective { operation: kind.operation(root), group, size }
            }
        };
        Ok(Node { id, after, work })
    }
}

/// Memory that a node takes while the trace is played, by and large, which waits for so many. Unit: bytes.
pub(super) fn memory(after: usize) -> u64 {
    const NODE: usize = size_of::<Draft>() + 3 * size_of::<Node>();
    // What it waits for is noted here, in the list of flows, and among what waits for others.
    (NODE + after * 4 * size_of::<u64>()) as u64
}

fn work(rank: u32, node: &messages::Node, rate: Option<f64>) -> Result<DraftWork, String> {
    let has = Attributes(node);
    let alone = |work| Ok(DraftWork::Alone(work));
    match node.kind {
        node_type::COMP => alone(Work::Compute(computation(&has, rate)?)),
        node_type::METADATA
        | node_type::MEM_LOAD
        | node_type::MEM_STORE
        | node_type::STORAGE
        | node_type::BATCH
        | node_type::CHECKPOINT => alone(Work::Compute(duration(node.duration_micros)?)),
        node_type::COMM_SEND => {
            check_own("comm_src", has.rank("comm_src")?, rank)?;
            let to = has.rank("comm_dst")?.ok_or("has no attribute comm_dst")?;
            let tag = has.whole("comm_tag")?.unwrap_or(0);
            alone(Work::Send { to, tag, size: has.size()? })
        }
        node_type::COMM_RECV => {
            check_own("comm_dst", has.rank("comm_dst")?, rank)?;
            let from = has.rank("comm_src")?.ok_or("has no attribute comm_src")?;
            alone(Work::Receive { from, tag: has.whole("comm_tag")?.unwrap_or(0) })
        }
        node_type::COMM_COLL => collective(&has),
        other => Err(format!("is of type {other}; expected one of Chakra's, from 1 to 10")),
    }
}

/// A message's own end must be the rank whose trace it is in.
fn check_own(name: &str, found: Option<u32>, rank: u32) -> Result<(), String> {
    match found {
        Some(found) if found != rank => {
            Err(format!("{name} is {found}, and this is the trace of rank {rank}"))
        }
        _ => Ok(()),
    }
}

fn collective(has: &Attributes<'_>) -> Result<DraftWork, String> {
    let number = has.required("comm_type")?;
    let kind = Kind::of(number)
        .ok_or_else(|| format!("comm_type is {number}; expected one of Chakra's, from 0 to 9"))?;
    let group = match has.find("pg_name") {
        None => String::new(),
        Some(value) => {
            value.name().ok_or_else(|| format!("pg_name is {value:?}; expected text"))?
        }
    };
    let dimensions = ["involved_dim", "involved_dims", "involve_dims"];
    let dimensions = dimensions.iter().find_map(|name| has.find(name));
    if let (Some(Value::Bools(dimensions)), true) = (dimensions, group.is_empty())
        && dimensions.values.contains(&false)
    {
        let message = "involved_dim names some dimensions of a network and not all, and which ranks these are \
                       depends on that network; give the group as pg_name";
        return Err(message.into());
    }
    let size = if kind == Kind::Barrier { Bytes::ZERO } else { has.size()? };
    let root = has.whole("root_rank")?.or(has.whole("root")?);
    Ok(DraftWork::Collective { kind, group, root, size })
}

fn duration(micros: u64) -> Result<Span, String> {
    let ps = micros.checked_mul(1_000_000).map(Span::from_ps);
    ps.filter(|&ps| ps <= SPAN_MAX)
        .ok_or_else(|| format!("takes {micros} us; a run ends after 30 days at the latest"))
}

/// How long a computation takes: as stated, or as long as its operations do.
fn computation(has: &Attributes<'_>, rate: Option<f64>) -> Result<Span, String> {
    let micros = has.0.duration_micros;
    let operations = has.whole("num_ops")?.unwrap_or(0);
    if micros > 0 || operations == 0 {
        return duration(micros);
    }
    let Some(rate) = rate else {
        return Err(format!(
            "states {operations} operations (num_ops) and no duration; give compute_rate, how many a rank \
             does a second"
        ));
    };
    let ps = (operations as f64 / rate * PS_PER_SECOND as f64).ceil();
    if ps > SPAN_MAX.as_ps() as f64 {
        return Err(format!(
            "takes {operations} operations, at compute_rate {rate:e} more than the 30 days of a run"
        ));
    }
    Ok(Span::from_ps(ps as u64))
}
