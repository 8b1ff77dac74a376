//! Several jobs at once, each on nodes of its own choice, and when each is done.
//!
//! A job is a workload of its own, drawn as if its nodes were a rack: its rank r sends from node
//! `nodes[r]`. What a job does depends on the network and on nothing that other jobs do elsewhere, so
//! a job alone is the same flows, by the same numbers, without the others.

use kernel::{Bytes, Span, Time};

use super::{Bounds, Workload};
use crate::{Flow, FlowId, NodeId};

/// A job.
pub struct Job {
    /// What results call it.
    pub name: String,
    /// The node of each of its ranks.
    pub nodes: Vec<NodeId>,
    /// From the start of the run to its own.
    pub start: Span,
    /// What it does, from its start on; it ends by itself after a known number of flows.
    pub work: Box<dyn Workload>,
}

/// How far a job has come.
#[derive(Clone, PartialEq, Debug)]
pub struct JobState {
    /// What results call it.
    pub name: String,
    /// The node of each of its ranks.
    pub nodes: Vec<NodeId>,
    /// When it started.
    pub start: Time,
    /// When its last flow had ended and its last computation was done; `None`: not yet.
    pub end: Option<Time>,
    /// Flows that it has offered.
    pub flows: u64,
    /// What they carry.
    pub bytes: Bytes,
    /// What bounded its time ([`Workload::bounds`]), of one that is over: the parts add up to that.
    pub bounds: Bounds,
}

/// A job under way.
struct Running {
    job: Job,
    /// Number of its first flow, and how many it has.
    first: u64,
    count: u64,
    offered: u64,
    ended: u64,
    bytes: Bytes,
    /// When the last of its flows ended.
    last: Time,
    /// Whether it takes part.
    runs: bool,
}

impl Running {
    fn start(&self) -> Time {
        Time::ZERO + self.job.start
    }

    fn next_start(&mut self) -> Option<Time> {
        if !self.runs {
            return None;
        }
        self.job.work.next_start().map(|start| start + self.job.start)
    }

    fn state(&self) -> JobState {
        let start = self.start();
        let is_done = self.ended == self.count;
        let end = self.last.max(self.job.work.busy_until() + self.job.start).max(start);
        JobState {
            name: self.job.name.clone(),
            nodes: self.job.nodes.clone(),
            start,
            end: is_done.then_some(end),
            flows: self.offered,
            bytes: self.bytes,
            bounds: self.job.work.bounds(),
        }
    }
}

/// Jobs that run together.
pub struct Jobs {
    jobs: Vec<Running>,
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.jobs.iter().map(|running| &running.job.name).collect();
        f.debug_struct("Jobs").field("names", &names).finish_non_exhaustive()
    }
}

impl Jobs {
    /// All of `jobs` at once. Their flows are numbered job after job. At one instant, flows of earlier
    /// jobs come first.
    ///
    /// # Panics
    /// If nobody knows how many flows a job has.
    #[must_use]
    pub fn new(jobs: Vec<Job>) -> Self {
        let mut next = 0u64;
        let running = |job: Job| {
            let count = job.work.total().expect("a job whose number of flows is known");
            let first = next;
            next += count;
            let (offered, ended, bytes, last) = (0, 0, Bytes::ZERO, Time::ZERO);
            Running { job, first, count, offered, ended, bytes, last, runs: true }
        };
        Self { jobs: jobs.into_iter().map(running).collect() }
    }

    /// The same, of which job number `index` alone runs: its flows keep their numbers.
    #[must_use]
    pub fn alone(mut self, index: usize) -> Self {
        for (at, running) in self.jobs.iter_mut().enumerate() {
            running.runs = at == index;
        }
        self
    }

    /// The job with the earliest next flow.
    fn first(&mut self) -> Option<(Time, usize)> {
        let starts = self.jobs.iter_mut().enumerate();
        starts.filter_map(|(at, running)| Some((running.next_start()?, at))).min()
    }
}

impl Workload for Jobs {
    fn next_start(&mut self) -> Option<Time> {
        self.first().map(|(start, _)| start)
    }

    fn next_flow(&mut self) -> Option<Flow> {
        let (start, at) = self.first()?;
        let running = &mut self.jobs[at];
        let flow = running.job.work.next_flow()?;
        running.offered += 1;
        running.bytes += flow.size;
        let node = |rank: NodeId| running.job.nodes[rank.get() as usize];
        let id = FlowId::new(running.first + flow.id.get());
        Some(Flow { id, src: node(flow.src), dst: node(flow.dst), start, ..flow })
    }

    fn total(&self) -> Option<u64> {
        Some(self.jobs.iter().filter(|running| running.runs).map(|running| running.count).sum())
    }

    /// Always: jobs are told of the ends of their flows.
    fn is_reactive(&self) -> bool {
        true
    }

    fn ended(&mut self, flow: FlowId, at: Time) {
        let place = self.jobs.partition_point(|running| running.first <= flow.get());
        // Jobs without flows have the number of the one after them.
        let running = self.jobs[..place].iter_mut().rev().find(|running| running.count > 0);
        let running = running.expect("the first job with flows begins with flow 0");
        let number = flow.get() - running.first;
        assert!(number < running.count, "the end of flow {}, which no job has", flow.get());
        running.ended += 1;
        running.last = running.last.max(at);
        running.job.work.ended(FlowId::new(number), Time::ZERO + (at - running.start()));
    }

    fn busy_until(&self) -> Time {
        let of = |running: &Running| running.job.work.busy_until() + running.job.start;
        self.jobs.iter().filter(|running| running.runs).map(of).max().unwrap_or(Time::ZERO)
    }

    fn jobs(&self) -> Vec<JobState> {
        self.jobs.iter().filter(|running| running.runs).map(Running::state).collect()
    }
}
