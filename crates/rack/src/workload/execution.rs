//! Execution traces: what each rank of a parallel program computes, sends and receives, and what
//! waits for what.
//!
//! A computation takes its time once all that it waits for is over; computations of a rank that do
//! not wait for each other overlap. A message leaves when its send is due, whether or not it is
//! waited for, and both its send and its receive are over when its last byte has arrived. Messages
//! between the same ranks with the same tag, and operations of a group, meet in the order in which
//! the ranks list them. Reading files is not done here.

use std::collections::{BTreeMap, HashMap};

use kernel::{Bytes, Span};

use super::gate::{Gate, GateBuilder, Step, Task};
use super::limits::{LISTED_MAX, SPAN_MAX};
use super::operation::{Algorithm, Group, Operation};
use crate::{Class, NodeId};

/// What a node of a trace does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Takes time.
    Compute(Span),
    /// Sends a message.
    Send {
        /// To this rank.
        to: u32,
        /// Tells messages between the same ranks apart.
        tag: u64,
        /// How much; a message of nothing carries a byte.
        size: Bytes,
    },
    /// Waits for a message.
    Receive {
        /// Of this rank.
        from: u32,
        /// As the sender has it.
        tag: u64,
    },
    /// Takes part in an operation of a group.
    Collective {
        /// Which. Roots are places in the group.
        operation: Operation,
        /// Index of the group.
        group: usize,
        /// What the rank puts in.
        size: Bytes,
    },
}

/// A node of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its number in the trace of its rank.
    pub id: u64,
    /// Nodes of the same rank that must be over.
    pub after: Vec<u64>,
    /// What it does.
    pub work: Work,
}

/// The trace of a whole program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution {
    /// The nodes of each rank.
    pub ranks: Vec<Vec<Node>>,
    /// Name and ranks of each group that carries out operations, each rank once.
    pub groups: Vec<(String, Vec<u32>)>,
    /// How operations are carried out.
    pub algorithm: Algorithm,
    /// Traffic class.
    pub class: Class,
}

/// Why a trace cannot be played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Whose trace.
    pub rank: u32,
    /// At which node; `None`: as a whole.
    pub node: Option<u64>,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Fault {
    fn new(rank: usize, node: Option<u64>, message: impl Into<String>) -> Self {
        Self { rank: rank as u32, node, message: message.into() }
    }
}

/// A node: its rank and its place in the list of that.
type Place = (usize, usize);

/// Nodes that begin together: one, or those of an operation by place in the group.
struct Vertex {
    members: Vec<Place>,
    /// How many it still waits for.
    waiting: u32,
    /// Who waits for it.
    dependents: Vec<u32>,
    /// The longest chain of computations up to its end.
    computed: Span,
}

/// Matches what ranks do together, and orders it.
struct Plan<'a> {
    execution: &'a Execution,
    /// By rank and place.
    vertex_of: Vec<Vec<u32>>,
    vertices: Vec<Vertex>,
    /// The place of each node, by rank and number.
    places: Vec<HashMap<u64, usize>>,
    /// By receiving vertex.
    sender_of: HashMap<u32, Place>,
}

impl Execution {
    /// The flows of the trace, rank r at node r.
    ///
    /// # Errors
    /// The first thing that cannot be: a node that waits for one that is not there or for itself, a
    /// receive without a send, ranks of a group that do not do the same, more flows than fit.
    pub fn gate(&self) -> Result<Gate, Fault> {
        self.check_flows()?;
        let mut plan = Plan {
            execution: self,
            vertex_of: self.ranks.iter().map(|nodes| vec![u32::MAX; nodes.len()]).collect(),
            vertices: Vec::new(),
            places: Vec::new(),
            sender_of: HashMap::new(),
        };
        plan.meet()?;
        plan.match_messages()?;
        plan.connect()?;
        let order = plan.order()?;
        Ok(plan.build(&order))
    }

    fn nodes(&self) -> impl Iterator<Item = (Place, &Node)> {
        let of = |(rank, nodes): (usize, &'_ Vec<Node>)| -> Vec<Place> {
            (0..nodes.len()).map(|place| (rank, place)).collect()
        };
        let places: Vec<Place> = self.ranks.iter().enumerate().flat_map(of).collect();
        places.into_iter().map(|(rank, place)| ((rank, place), &self.ranks[rank][place]))
    }

    /// Refuses what would not fit in memory, and operations that the algorithm cannot do.
    fn check_flows(&self) -> Result<(), Fault> {
        let mut flows = 0u64;
        for ((rank, _), node) in self.nodes() {
            let more = match node.work {
                Work::Send { .. } => 1,
                Work::Collective { operation, group, .. } => {
                    let (name, members) = &self.groups[group];
                    let count = members.len();
                    if !operation.fits(self.algorithm, count) {
                        let message = format!(
                            "halving and doubling takes a number of ranks that is a power of two, and group \
                             {name:?} has {count}; choose collective = \"ring\", say"
                        );
                        return Err(Fault::new(rank, Some(node.id), message));
                    }
                    // Counted once, at the first rank of the group.
                    let is_first = members.first() == Some(&(rank as u32));
                    if is_first { operation.flows(self.algorithm, count) } else { 0 }
                }
                _ => 0,
            };
            flows = flows.saturating_add(more);
            if flows > LISTED_MAX {
                let message = format!(
                    "up to here the trace makes {flows} flows; at most {LISTED_MAX} fit in one list"
                );
                return Err(Fault::new(rank, Some(node.id), message));
            }
        }
        Ok(())
    }
}

impl Plan<'_> {
    fn node(&self, (rank, place): Place) -> &Node {
        &self.execution.ranks[rank][place]
    }

    fn fault(&self, place: Place, message: impl Into<String>) -> Fault {
        Fault::new(place.0, Some(self.node(place).id), message)
    }

    fn vertex(&mut self, members: Vec<Place>) {
        let number = self.vertices.len() as u32;
        for &(rank, place) in &members {
            self.vertex_of[rank][place] = number;
        }
        let (dependents, computed) = (Vec::new(), Span::ZERO);
        self.vertices.push(Vertex { members, waiting: 0, dependents, computed });
    }

    /// Makes the vertices: the k-th operation of each rank of a group is one, all else by itself.
    fn meet(&mut self) -> Result<(), Fault> {
        let mut operations: Vec<Vec<Vec<Place>>> =
            self.execution.groups.iter().map(|(_, ranks)| vec![vec![]; ranks.len()]).collect();
        for (at, node) in self.execution.nodes() {
            let Work::Collective { group, .. } = node.work else {
                self.vertex(vec![at]);
                continue;
            };
            let (name, ranks) = &self.execution.groups[group];
            let Some(member) = ranks.iter().position(|&rank| rank as usize == at.0) else {
                let message = format!("rank {} is not in group {name:?}, which is {ranks:?}", at.0);
                return Err(self.fault(at, message));
            };
            operations[group][member].push(at);
        }
        for (group, by_member) in operations.iter().enumerate() {
            self.meet_group(group, by_member)?;
        }
        Ok(())
    }

    fn meet_group(&mut self, group: usize, by_member: &[Vec<Place>]) -> Result<(), Fault> {
        let (name, ranks) = &self.execution.groups[group];
        let Some(first) = by_member.first() else { return Ok(()) };
        let odd = by_member.iter().position(|places| places.len() != first.len());
        if let Some(odd) = odd {
            let message = format!(
                "rank {} takes part in {} operations of group {name:?} and rank {} in {}: those that are \
                 missing at one never end at the other",
                ranks[0],
                first.len(),
                ranks[odd],
                by_member[odd].len()
            );
            return Err(Fault::new(ranks[odd] as usize, None, message));
        }
        for index in 0..first.len() {
            let members: Vec<Place> = by_member.iter().map(|places| places[index]).collect();
            let Work::Collective { operation, size, .. } = self.node(members[0]).work else {
                unreachable!("only operations are in groups")
            };
            for &place in &members[1..] {
                let Work::Collective { operation: other, size: own, .. } = self.node(place).work
                else {
                    unreachable!("only operations are in groups")
                };
                let may_differ =
                    matches!(operation, Operation::AllToAll | Operation::Gather { .. });
                if other != operation || (own != size && !may_differ) {
                    let message = format!(
                        "operation {index} of group {name:?} is {other:?} of {own} here, and {operation:?} of \
                         {size} at node {} of rank {}: ranks of a group do the same in the same order",
                        self.node(members[0]).id,
                        members[0].0
                    );
                    return Err(self.fault(place, message));
                }
            }
            self.vertex(members);
        }
        Ok(())
    }

    /// Finds the send of each receive.
    fn match_messages(&mut self) -> Result<(), Fault> {
        let mut sends: BTreeMap<(u32, u32, u64), Vec<Place>> = BTreeMap::new();
        for (at, node) in self.execution.nodes() {
            if let Work::Send { to, tag, .. } = node.work {
                self.check_rank(at, to)?;
                sends.entry((at.0 as u32, to, tag)).or_default().push(at);
            }
        }
        let mut taken: BTreeMap<(u32, u32, u64), usize> = BTreeMap::new();
        for (at, node) in self.execution.nodes() {
            let Work::Receive { from, tag } = node.work else { continue };
            self.check_rank(at, from)?;
            let key = (from, at.0 as u32, tag);
            let next = taken.entry(key).or_default();
            let Some(&sender) = sends.get(&key).and_then(|places| places.get(*next)) else {
                let message = format!(
                    "waits for message {next} of rank {from} with tag {tag}, and rank {from} sends {} of \
                     these: it would wait for ever",
                    sends.get(&key).map_or(0, Vec::len)
                );
                return Err(self.fault(at, message));
            };
            *next += 1;
            self.sender_of.insert(self.vertex_of[at.0][at.1], sender);
        }
        Ok(())
    }

    fn check_rank(&self, at: Place, rank: u32) -> Result<(), Fault> {
        let count = self.execution.ranks.len();
        if (rank as usize) < count {
            return Ok(());
        }
        Err(self.fault(at, format!("names rank {rank}; the trace has ranks 0 to {}", count - 1)))
    }

    /// Notes what waits for what.
    fn connect(&mut self) -> Result<(), Fault> {
        for rank in 0..self.execution.ranks.len() {
            let nodes = &self.execution.ranks[rank];
            let mut places: HashMap<u64, usize> = HashMap::with_capacity(nodes.len());
            for (place, node) in nodes.iter().enumerate() {
                if places.insert(node.id, place).is_some() {
                    return Err(self.fault((rank, place), "there are two nodes of this number"));
                }
            }
            for (place, node) in nodes.iter().enumerate() {
                let own = self.vertex_of[rank][place];
                for earlier in &node.after {
                    let Some(&earlier) = places.get(earlier) else {
                        let message =
                            format!("waits for node {earlier}, which the rank does not have");
                        return Err(self.fault((rank, place), message));
                    };
                    self.edge(self.vertex_of[rank][earlier], own);
                }
            }
            self.places.push(places);
        }
        let mut messages: Vec<(u32, Place)> =
            self.sender_of.iter().map(|(&receive, &send)| (receive, send)).collect();
        messages.sort_unstable();
        for (receive, (rank, place)) in messages {
            self.edge(self.vertex_of[rank][place], receive);
        }
        Ok(())
    }

    fn edge(&mut self, earlier: u32, later: u32) {
        self.vertices[earlier as usize].dependents.push(later);
        self.vertices[later as usize].waiting += 1;
    }

    /// The vertices, each after all that it waits for.
    fn order(&mut self) -> Result<Vec<u32>, Fault> {
        let all = 0..self.vertices.len() as u32;
        let mut order: Vec<u32> =
            all.clone().filter(|&vertex| self.vertices[vertex as usize].waiting == 0).collect();
        let mut next = 0;
        while let Some(&vertex) = order.get(next) {
            next += 1;
            let place = self.vertices[vertex as usize].members[0];
            let computed = self.vertices[vertex as usize].computed;
            let own = match self.node(place).work {
                Work::Compute(span) => span,
                _ => Span::ZERO,
            };
            let end = computed.as_ps().saturating_add(own.as_ps());
            if end > SPAN_MAX.as_ps() {
                let message = "computations up to here take more than 30 days, when a run ends";
                return Err(self.fault(place, message));
            }
            let dependents = std::mem::take(&mut self.vertices[vertex as usize].dependents);
            for later in dependents {
                let waiting = &mut self.vertices[later as usize];
                waiting.computed = waiting.computed.max(Span::from_ps(end));
                waiting.waiting -= 1;
                if waiting.waiting == 0 {
                    order.push(later);
                }
            }
        }
        if order.len() == self.vertices.len() {
            return Ok(order);
        }
        Err(self.fault(self.in_a_circle(), "waits, by way of others, for itself"))
    }

    /// A node that waits for itself, what can be done without it having been done.
    fn in_a_circle(&self) -> Place {
        let is_left =
            |place: Place| self.vertices[self.vertex_of[place.0][place.1] as usize].waiting > 0;
        let before = |place: Place| -> Option<Place> {
            let vertex = self.vertex_of[place.0][place.1];
            self.vertices[vertex as usize].members.iter().find_map(|&(rank, member)| {
                let named = self.execution.ranks[rank][member].after.iter();
                let named = named.map(|id| (rank, self.places[rank][id]));
                named.chain(self.sender_of.get(&vertex).copied()).find(|&place| is_left(place))
            })
        };
        let mut all = self.execution.nodes().map(|(place, _)| place);
        let mut at = all.find(|&place| is_left(place)).expect("some are left");
        // Whoever is left waits for another that is: as many steps back as there are lead into a circle.
        for _ in 0..self.vertices.len() {
            match before(at) {
                Some(earlier) => at = earlier,
                None => break,
            }
        }
        at
    }

    /// The flows, in this order of vertices.
    fn build(&self, order: &[u32]) -> Gate {
        let mut list = GateBuilder::new();
        // What nothing comes before counts its time from here.
        let begin = list.meeting(Span::ZERO, &[]);
        let mut steps: Vec<Vec<Step>> =
            self.execution.ranks.iter().map(|nodes| vec![begin; nodes.len()]).collect();
        for &vertex in order {
            let members = &self.vertices[vertex as usize].members;
            let waits: Vec<Vec<Step>> = members
                .iter()
                .map(|&(rank, place)| {
                    let after = &self.execution.ranks[rank][place].after;
                    let steps = after.iter().map(|id| steps[rank][self.places[rank][id]]);
                    let steps: Vec<Step> = steps.collect();
                    if steps.is_empty() { vec![begin] } else { steps }
                })
                .collect();
            let done = self.add(&mut list, vertex, &waits, &steps);
            for (&(rank, place), step) in members.iter().zip(done) {
                steps[rank][place] = step;
            }
        }
        list.build()
    }

    /// Adds one vertex, whose members wait for `waits`; what completes it at each member.
    fn add(
        &self,
        list: &mut GateBuilder,
        vertex: u32,
        waits: &[Vec<Step>],
        steps: &[Vec<Step>],
    ) -> Vec<Step> {
        let members = &self.vertices[vertex as usize].members;
        match self.node(members[0]).work {
            Work::Compute(span) => vec![list.meeting(span, &waits[0])],
            Work::Send { to, size, .. } => {
                let from = members[0].0 as u32;
                if from == to {
                    return vec![list.meeting(Span::ZERO, &waits[0])];
                }
                let task = Task {
                    src: NodeId::new(from),
                    dst: NodeId::new(to),
                    size: size.max(Bytes::new(1)),
                    class: self.execution.class,
                    not_before: kernel::Time::ZERO,
                    delay: Span::ZERO,
                };
                vec![list.flow(task, &waits[0])]
            }
            Work::Receive { .. } => {
                let (rank, place) = self.sender_of[&vertex];
                let mut all = waits[0].clone();
                all.push(steps[rank][place]);
                vec![list.meeting(Span::ZERO, &all)]
            }
            Work::Collective { operation, group, .. } => {
                let ranks = &self.execution.groups[group].1;
                let nodes: Vec<NodeId> = ranks.iter().map(|&rank| NodeId::new(rank)).collect();
                let sizes: Vec<Bytes> = members
                    .iter()
                    .map(|&member| match self.node(member).work {
                        Work::Collective { size, .. } => size,
                        _ => Bytes::ZERO,
                    })
                    .collect();
                let ready: Vec<Step> = waits
                    .iter()
                    .map(|waits| match waits[..] {
                        [one] => one,
                        _ => list.meeting(Span::ZERO, waits),
                    })
                    .collect();
                let (algorithm, class) = (self.execution.algorithm, self.execution.class);
                operation.add(list, &Group { nodes: &nodes, algorithm, class }, &sizes, &ready)
            }
        }
    }
}

#[cfg(test)]
#[path = "execution_tests.rs"]
mod tests;
