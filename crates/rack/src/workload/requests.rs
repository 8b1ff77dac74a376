//! Requests and responses: a response starts when its request has ended and been served.
//!
//! Open loop: requests arrive at random (Poisson), whatever the network does. Closed loop: each
//! client keeps a number of requests outstanding and sends the next when a response has ended.
//! Who asks whom for how much is drawn beforehand in either case, from streams that the order of
//! completions cannot disturb. Exchange k is flow 2k (request) and 2k + 1 (response).

use std::collections::BTreeMap;

use kernel::{Bytes, Span, Stream, Time};

use super::Workload;
use super::arrivals::Arrivals;
use super::ready::Ready;
use super::sizes::Sizes;
use crate::{Class, Flow, FlowId, NodeId};

/// What all exchanges have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct Service {
    /// The first so many nodes ask.
    pub clients: u32,
    /// The last so many nodes answer.
    pub servers: u32,
    /// Nodes in the rack.
    pub nodes: u32,
    /// Sizes of requests.
    pub request: Sizes,
    /// Sizes of responses.
    pub response: Sizes,
    /// From the end of a request to the start of its response.
    pub service_time: Span,
    /// Traffic class of both.
    pub class: Class,
}

/// What makes requests.
#[derive(Clone, Debug)]
pub enum Loop {
    /// Requests arrive by themselves from a random client.
    Open {
        /// The arrivals.
        arrivals: Arrivals,
        /// How many in all; `None`: no end.
        requests: Option<u64>,
    },
    /// Each client keeps so many outstanding.
    Closed {
        /// Requests outstanding a client.
        outstanding: u32,
        /// Requests that each of the outstanding ones is followed by, itself included.
        rounds: u64,
        /// From the end of a response to the next request.
        think_time: Span,
        /// When the first requests begin.
        start: Time,
    },
}

/// The streams of one client (closed loop) or of all (open loop).
#[derive(Clone, Debug)]
struct Draws {
    clients: Stream,
    servers: Stream,
    requests: Stream,
    responses: Stream,
}

impl Draws {
    fn new(seed: u64, entity: u64) -> Self {
        let stream = |purpose| Stream::new(seed, purpose, entity);
        Self {
            clients: stream("workload/sources"),
            servers: stream("workload/destinations"),
            requests: stream("workload/sizes"),
            responses: stream("workload/responses"),
        }
    }
}

/// A stream of requests and responses.
#[derive(Clone, Debug)]
pub struct Requests {
    service: Service,
    source: Loop,
    /// One for all in an open loop, one for each outstanding place in a closed one.
    draws: Vec<Draws>,
    /// Flows that can be offered, by start and number.
    ready: Ready,
    /// Exchanges that have begun and not ended: the request, the response.
    open: BTreeMap<u64, (Flow, Flow)>,
    /// Open loop: exchanges drawn.
    drawn: u64,
}

impl Requests {
    /// Exchanges of `service` made by `source`.
    ///
    /// # Panics
    /// If there are no two nodes for a request.
    #[must_use]
    pub fn new(service: Service, source: Loop, seed: u64) -> Self {
        assert!(service.clients >= 1 && service.clients <= service.nodes, "clients of the rack");
        assert!(service.servers >= 1 && service.servers <= service.nodes, "servers of the rack");
        assert!(service.nodes >= 2, "requests in a rack of one");
        let places = match source {
            Loop::Open { .. } => 1,
            Loop::Closed { outstanding, .. } => u64::from(service.clients) * u64::from(outstanding),
        };
        let mut requests = Self {
            service,
            source,
            draws: (0..places).map(|place| Draws::new(seed, place)).collect(),
            ready: Ready::default(),
            open: BTreeMap::new(),
            drawn: 0,
        };
        match requests.source {
            Loop::Open { .. } => requests.arrive(),
            Loop::Closed { rounds, start, .. } => {
                let places = if rounds == 0 { 0 } else { places };
                (0..places).for_each(|place| requests.begin(place, place, start));
            }
        }
        requests
    }

    /// Open loop: draws the next exchange; its request is ready at once, if in the future.
    fn arrive(&mut self) {
        if let Loop::Open { arrivals, requests } = &mut self.source
            && requests.is_none_or(|requests| self.drawn < requests)
            && let Some(start) = arrivals.step()
        {
            let exchange = self.drawn;
            self.drawn += 1;
            self.begin(exchange, 0, start);
        }
    }

    /// Draws exchange `exchange` from the streams of `place`; its request starts at `start`.
    fn begin(&mut self, exchange: u64, place: u64, start: Time) {
        let Service { clients, servers, nodes, .. } = self.service;
        let draws = &mut self.draws[place as usize];
        let client = match self.source {
            Loop::Open { .. } => draws.clients.below(u64::from(clients)) as u32,
            Loop::Closed { outstanding, .. } => (place / u64::from(outstanding)) as u32,
        };
        let first = nodes - servers;
        // A client that is a server too asks one of the others; one that is the only server asks
        // the node before it.
        let server = if client < first {
            first + draws.servers.below(u64::from(servers)) as u32
        } else if servers == 1 {
            client - 1
        } else {
            let other = first + draws.servers.below(u64::from(servers) - 1) as u32;
            other + u32::from(other >= client)
        };
        let request_size = self.service.request.draw(&mut draws.requests);
        let response_size = self.service.response.draw(&mut draws.responses);
        let flow = |id, src, dst, size: Bytes| Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            size,
            start,
            class: self.service.class,
        };
        let request = flow(2 * exchange, client, server, request_size);
        let response = flow(2 * exchange + 1, server, client, response_size);
        self.open.insert(exchange, (request, response));
        self.ready.push(start, request.id);
    }
}

impl Workload for Requests {
    fn next_start(&mut self) -> Option<Time> {
        self.ready.next_start()
    }

    fn next_flow(&mut self) -> Option<Flow> {
        let (start, id) = self.ready.take()?;
        let (request, response) = self.open[&(id.get() / 2)];
        let is_request = id == request.id;
        // The next arrival is drawn when the one before it is taken: one is always ahead.
        if is_request && matches!(self.source, Loop::Open { .. }) {
            self.arrive();
        }
        Some(Flow { start, ..if is_request { request } else { response } })
    }

    fn total(&self) -> Option<u64> {
        match self.source {
            Loop::Open { requests, .. } => requests.and_then(|requests| requests.checked_mul(2)),
            Loop::Closed { rounds, .. } => rounds.checked_mul(2 * self.draws.len() as u64),
        }
    }

    fn is_reactive(&self) -> bool {
        true
    }

    fn ended(&mut self, flow: FlowId, at: Time) {
        let exchange = flow.get() / 2;
        let (request, response) = self.open[&exchange];
        if flow == request.id {
            self.ready.push(at + self.service.service_time, response.id);
            return;
        }
        self.open.remove(&exchange);
        if let Loop::Closed { rounds, think_time, .. } = self.source {
            let places = self.draws.len() as u64;
            if exchange / places + 1 < rounds {
                self.begin(exchange + places, exchange % places, at + think_time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Carried, play};
    use super::*;

    fn service(nodes: u32, clients: u32, servers: u32) -> Service {
        Service {
            clients,
            servers,
            nodes,
            request: Sizes::Fixed(Bytes::new(100)),
            response: Sizes::Table {
                table: super::super::tables::Published::named("W2")[0]
                    .table(super::super::tables::Reading::UpperStep),
                name: "W2".into(),
            },
            service_time: Span::from_ps(500),
            class: Class::default(),
        }
    }

    fn open(requests: u64) -> Loop {
        let arrivals = Arrivals::new(1_000.0, Stream::new(1, "workload/arrivals", 0));
        Loop::Open { arrivals, requests: Some(requests) }
    }

    fn closed(outstanding: u32, rounds: u64) -> Loop {
        let start = Time::from_ps(40);
        Loop::Closed { outstanding, rounds, think_time: Span::from_ps(300), start }
    }

    fn run(service: &Service, source: Loop, slowest: u64, seed: u64) -> Vec<Carried> {
        let requests = Requests::new(service.clone(), source, 1);
        play(service.nodes, requests, Span::from_ps(slowest), seed)
    }

    fn racks() -> impl Strategy<Value = (u32, u32, u32)> {
        (2u32..20).prop_flat_map(|nodes| (Just(nodes), 1..=nodes, 1..=nodes))
    }

    proptest! {
        #[test]
        fn each_response_follows_its_request((nodes, clients, servers) in racks(), seed: u64) {
            let service = service(nodes, clients, servers);
            for source in [open(50), closed(2, 3)] {
                let flows = run(&service, source, 20_000, seed);
                for pair in flows.chunks(2) {
                    let (request, response) = (&pair[0], &pair[1]);
                    prop_assert_eq!(request.flow.src, response.flow.dst);
                    prop_assert_eq!(request.flow.dst, response.flow.src);
                    prop_assert!(request.flow.src.get() < clients);
                    prop_assert_eq!(response.flow.start, request.end + Span::from_ps(500));
                }
            }
        }

        #[test]
        fn any_network_carries_the_same_exchanges(seed_a: u64, seed_b: u64) {
            let service = service(9, 4, 6);
            let content = |flows: Vec<Carried>| -> Vec<_> {
                flows.iter().map(|c| (c.flow.id, c.flow.src, c.flow.dst, c.flow.size)).collect()
            };
            for source in [open(60), closed(3, 5)] {
                let quick = content(run(&service, source.clone(), 10, seed_a));
                let slow = content(run(&service, source, 100_000, seed_b));
                prop_assert_eq!(quick, slow);
            }
        }

        #[test]
        fn a_closed_loop_keeps_its_number_outstanding(outstanding in 1u32..5, rounds in 1u64..6, seed: u64) {
            let service = service(8, 3, 5);
            let flows = run(&service, closed(outstanding, rounds), 5_000, seed);
            prop_assert_eq!(flows.len() as u64, 2 * 3 * u64::from(outstanding) * rounds);
            let exchanges: Vec<_> = flows.chunks(2).map(|p| (p[0].flow.src, p[0].flow.start, p[1].end)).collect();
            for &(client, start, _) in &exchanges {
                let open = exchanges.iter().filter(|e| e.0 == client && e.1 <= start && e.2 > start);
                prop_assert!(open.count() <= outstanding as usize);
            }
            // Every exchange but the first of its place begins a think time after another's end.
            let places = 3 * outstanding as usize;
            prop_assert!(exchanges[..places].iter().all(|first| first.1 == Time::from_ps(40)));
            for (later, earlier) in exchanges[places.min(exchanges.len())..].iter().zip(&exchanges) {
                prop_assert_eq!(later.1, earlier.2 + Span::from_ps(300));
            }
        }
    }

    #[test]
    fn every_server_is_asked_and_the_open_loop_keeps_its_rate() {
        let flows = run(&service(10, 4, 6), open(20_000), 50, 1);
        let mut asked = [0u32; 10];
        flows.chunks(2).for_each(|pair| asked[pair[0].flow.dst.index()] += 1);
        assert!(asked[..4].iter().all(|&count| count == 0));
        // Binomial with share 1/6; four standard deviations.
        let bound = 4.0 * (20_000.0f64 / 6.0 * 5.0 / 6.0).sqrt();
        assert!(asked[4..].iter().all(|&count| (f64::from(count) - 20_000.0 / 6.0).abs() < bound));
        let last = flows[flows.len() - 2].flow.start.as_ps() as f64;
        assert!((last / 20_000.0 / 1_000.0 - 1.0).abs() < 4.0 / 20_000f64.sqrt());
    }

    #[test]
    fn memory_is_for_what_is_open() {
        let mut requests = Requests::new(service(10, 4, 6), open(1_000_000), 1);
        for _ in 0..10_000 {
            let flow = requests.next_flow().unwrap();
            requests.ended(flow.id, flow.start);
            // On average half an exchange is in service, and one is always drawn ahead.
            assert!(requests.open.len() <= 16, "{} open at {flow:?}", requests.open.len());
        }
    }
}
