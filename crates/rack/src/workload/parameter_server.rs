//! Training with parameter servers: each iteration, every worker sends the gradients of every layer, in
//! equal parts to all servers.
//!
//! Models: the shuffle of PL2 §6.2.3. A worker sends a server one layer after the other, so that each
//! arrives before the next begins; different servers are independent. An iteration begins when all
//! gradients of the one before have arrived everywhere, and a worker's computation is done. Or a worker has
//! a number of threads, each of which takes the next layer for the next server as soon as it is free: as
//! the generator of §6.3 does, whose threads transmit a message each.
//!
//! Leaves out: the parameters on their way back, which PL2 does not measure.

use kernel::{Bytes, Span, Stream, Time};

use super::Workload;
use super::gate::{Gate, GateBuilder, Step, Task};
use super::models::scaled;
use super::ready::Ready;
use crate::{Class, Flow, FlowId, NodeId};

/// A training run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterServer {
    /// The first so many nodes compute gradients.
    pub workers: u32,
    /// So many nodes after them gather these.
    pub servers: u32,
    /// Gradients of each layer, in the order in which they are sent. Each at least a byte a server.
    pub layers: Vec<Bytes>,
    /// How often.
    pub iterations: u64,
    /// Start of the first iteration.
    pub start: Time,
    /// From the end of an iteration to the start of the next.
    pub compute: Span,
    /// A worker starts each iteration a random time below this late.
    pub jitter: Span,
    /// Traffic class.
    pub class: Class,
}

impl ParameterServer {
    /// How many flows there are in all.
    #[must_use]
    pub fn flows(&self) -> u64 {
        let pairs = u64::from(self.workers) * u64::from(self.servers);
        pairs.saturating_mul(self.layers.len() as u64).saturating_mul(self.iterations)
    }

    /// The list of its flows. Iteration by iteration, layer by layer, worker by worker, server by
    /// server.
    ///
    /// # Panics
    /// If a layer has fewer bytes than there are servers.
    #[must_use]
    pub fn gate(&self, seed: u64) -> Gate {
        let mut late = Stream::new(seed, "workload/jitter", 0);
        let equal = vec![1; self.servers as usize];
        let mut list = GateBuilder::new();
        let mut ready: Option<Step> = None;
        for _ in 0..self.iterations {
            let starts: Vec<Span> = (0..self.workers)
                .map(|_| Span::from_ps(late.below(self.jitter.as_ps() + 1)))
                .collect();
            let mut last: Vec<Option<Step>> =
                vec![None; self.workers as usize * self.servers as usize];
            for layer in &self.layers {
                let parts = scaled(&equal, layer.get());
                for (pair, sent) in (0..).zip(&mut last) {
                    let (worker, server): (u32, u32) = (pair / self.servers, pair % self.servers);
                    let late = starts[worker as usize];
                    let waits: Vec<Step> = sent.or(ready).into_iter().collect();
                    // With nothing to wait for, being late means a later start.
                    let is_first = waits.is_empty();
                    let task = Task {
                        src: NodeId::new(worker),
                        dst: NodeId::new(self.workers + server),
                        size: Bytes::new(parts[server as usize]),
                        class: self.class,
                        not_before: if is_first { self.start + late } else { self.start },
                        delay: if sent.is_none() { late } else { Span::ZERO },
                    };
                    *sent = Some(list.flow(task, &waits));
                }
            }
            let all: Vec<Step> = last.into_iter().flatten().collect();
            ready = Some(list.meeting(self.compute, &all));
        }
        list.build()
    }

    /// Its flows, numbered as in [`Self::gate`], where each worker has so many threads: nothing waits for
    /// the end of an iteration, and nobody computes or is late.
    ///
    /// # Panics
    /// If a layer has fewer bytes than there are servers.
    #[must_use]
    pub fn threads(&self, threads: u32) -> Threads {
        let equal = vec![1; self.servers as usize];
        let parts = self.layers.iter().flat_map(|layer| scaled(&equal, layer.get()));
        let mut all = Threads {
            workers: self.workers,
            servers: self.servers,
            parts: parts.map(Bytes::new).collect(),
            iterations: self.iterations,
            class: self.class,
            taken: vec![0; self.workers as usize],
            ready: Ready::default(),
        };
        let parts = all.parts.len() as u64 * self.iterations;
        for worker in 0..self.workers {
            (0..parts.min(threads.into())).for_each(|_| all.take(worker, self.start));
        }
        all
    }
}

/// Workers whose threads take one part of a layer after another.
#[derive(Clone, Debug)]
pub struct Threads {
    workers: u32,
    servers: u32,
    /// By layer and server: bytes.
    parts: Vec<Bytes>,
    iterations: u64,
    class: Class,
    /// By worker: parts that its threads have taken.
    taken: Vec<u64>,
    /// Parts that can be offered, by start and number.
    ready: Ready,
}

impl Threads {
    /// A thread of a worker is free: it takes what comes next, if anything does.
    fn take(&mut self, worker: u32, at: Time) {
        let taken = &mut self.taken[worker as usize];
        if *taken < self.parts.len() as u64 * self.iterations {
            let servers = u64::from(self.servers);
            let before = *taken / servers * u64::from(self.workers) + u64::from(worker);
            self.ready.push(at, FlowId::new(before * servers + *taken % servers));
            *taken += 1;
        }
    }
}

impl Workload for Threads {
    fn next_start(&mut self) -> Option<Time> {
        self.ready.next_start()
    }

    fn next_flow(&mut self) -> Option<Flow> {
        let (start, id) = self.ready.take()?;
        let (servers, workers) = (u64::from(self.servers), u64::from(self.workers));
        let (server, before) = (id.get() % servers, id.get() / servers);
        let (worker, layer) = (before % workers, before / workers);
        let part = (layer * servers + server) % self.parts.len() as u64;
        Some(Flow {
            id,
            src: NodeId::new(worker as u32),
            dst: NodeId::new((workers + server) as u32),
            size: self.parts[part as usize],
            start,
            class: self.class,
        })
    }

    fn total(&self) -> Option<u64> {
        Some(self.parts.len() as u64 * u64::from(self.workers) * self.iterations)
    }

    fn is_reactive(&self) -> bool {
        true
    }

    fn ended(&mut self, flow: FlowId, at: Time) {
        let worker = flow.get() / u64::from(self.servers) % u64::from(self.workers);
        self.take(worker as u32, at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Carried, play};
    use super::*;

    fn training(workers: u32, servers: u32, iterations: u64) -> ParameterServer {
        ParameterServer {
            workers,
            servers,
            layers: [100, 7, 1_000].map(Bytes::new).to_vec(),
            iterations,
            start: Time::from_ps(50),
            compute: Span::from_ps(300),
            jitter: Span::from_ps(40),
            class: Class::default(),
        }
    }

    proptest! {
        #[test]
        fn layers_follow_each_other_and_iterations_wait_for_all(
            workers in 1u32..6, servers in 1u32..6, iterations in 1u64..4, seed: u64,
        ) {
            let training = training(workers, servers, iterations);
            let nodes = workers + servers;
            let flows = play(nodes, training.gate(seed), Span::from_ps(5_000), seed);
            prop_assert_eq!(flows.len() as u64, training.flows());
            let pairs = (workers * servers) as usize;
            let mut ready = training.start;
            for iteration in flows.chunks(3 * pairs) {
                for pair in 0..pairs {
                    let of_pair = [0, 1, 2].map(|layer| iteration[layer * pairs + pair]);
                    let late = of_pair[0].flow.start - ready;
                    prop_assert!(late <= training.jitter, "{late} late");
                    prop_assert_eq!(of_pair[1].flow.start, of_pair[0].end);
                    prop_assert_eq!(of_pair[2].flow.start, of_pair[1].end);
                    // All first flows of a worker are as late.
                    let first = pair / servers as usize * servers as usize;
                    prop_assert_eq!(of_pair[0].flow.start, iteration[first].flow.start);
                }
                ready = iteration.iter().map(|carried| carried.end).max().unwrap() + training.compute;
            }
        }

        #[test]
        fn threads_take_parts_in_order_and_none_is_idle_while_any_is_left(
            workers in 1u32..5, servers in 1u32..5, iterations in 1u64..4, threads in 1u32..20, seed: u64,
        ) {
            let training = training(workers, servers, iterations);
            let flows = play(workers + servers, training.threads(threads), Span::from_ps(5_000), seed);
            let plain = play(workers + servers, training.gate(seed), Span::from_ps(5_000), seed);
            let what = |all: &[Carried]| -> Vec<_> {
                all.iter().map(|c| (c.flow.id, c.flow.src, c.flow.dst, c.flow.size)).collect()
            };
            prop_assert_eq!(what(&flows), what(&plain));
            for worker in 0..workers {
                let own: Vec<_> = flows.iter().filter(|c| c.flow.src.get() == worker).collect();
                let mut ends: Vec<Time> = own.iter().map(|carried| carried.end).collect();
                ends.sort();
                for (place, carried) in own.iter().enumerate() {
                    // Of as many as there are threads the first end before the next begins, and it does so at once.
                    let free = place.checked_sub(threads as usize).map(|ended| ends[ended]);
                    prop_assert_eq!(carried.flow.start, free.unwrap_or(training.start));
                }
            }
        }

        #[test]
        fn every_worker_sends_every_layer_in_equal_parts(workers in 1u32..6, servers in 1u32..6) {
            let training = training(workers, servers, 1);
            let flows = play(workers + servers, training.gate(1), Span::from_ps(10), 1);
            for worker in 0..workers {
                for (layer, size) in training.layers.iter().enumerate() {
                    let parts: Vec<u64> = flows
                        .chunks((workers * servers) as usize)
                        .nth(layer)
                        .unwrap()
                        .iter()
                        .filter(|carried| carried.flow.src.get() == worker)
                        .map(|carried| carried.flow.size.get())
                        .collect();
                    prop_assert_eq!(parts.len() as u32, servers);
                    prop_assert_eq!(parts.iter().sum::<u64>(), size.get());
                    prop_assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
                }
            }
        }
    }
}
