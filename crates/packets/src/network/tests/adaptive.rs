//! Switches that choose among equal ways by their queues, against the hash of flows and closed forms.

use kernel::{Bytes, Rate, Span, Time};
use rack::topology::{LeafSpine, Shape};
use rack::{Fabric, Flow};

use super::sender::{LineRate, Recovery};
use super::{Ends, FRAMING, endless, flow, plan, raw, run};
use crate::config::{Config, CreditFlow, FlowControl, Queues};
use crate::net::NextHops;
use crate::network::Network;
use crate::packet::Packet;
use crate::program::{Hop, Orders, Program, Verdict};

/// Takes the way whose queue is shortest, the first that is free among equals; notes credits that it saw.
#[derive(Clone, Debug, Default)]
struct LeastQueue {
    asked: u64,
    credits: Vec<Option<Bytes>>,
}

impl Program for LeastQueue {
    const CHOOSES: bool = true;

    fn can_be_cut(&self) -> bool {
        true
    }

    fn choose(&mut self, hop: &Hop, _: &Packet, next: NextHops<'_>) -> u32 {
        self.asked += 1;
        assert!(next.count() > 1 && next.iter().any(|way| way.port == hop.to));
        self.credits.extend(next.iter().map(|way| way.credits));
        let load = |&index: &u32| {
            let way = next.get(index);
            (!way.is_up, way.is_held, way.waiting, way.free_at)
        };
        (0..next.count()).min_by_key(load).unwrap()
    }

    fn arrives(&mut self, _: &Hop, _: &mut Packet, _: &mut Orders) -> Verdict {
        Verdict::Forward
    }
}

/// Two leaves of two hosts, and a spine with two links to each, of 10 Gbps.
fn network(queues: Queues) -> Config {
    let shape = LeafSpine { hosts: 4, radix: 4, rate: Rate::from_gbps(10), ..LeafSpine::default() };
    Config { topology: Shape::LeafSpine(shape), queues, ..Config::default() }
}

fn adaptive(config: &Config) -> Network<LineRate, LeastQueue> {
    let plan = plan(config, &[]);
    let transport = LineRate::new(plan.topology.hosts(), FRAMING, Recovery::None);
    Network::with_program(plan, transport, LeastQueue::default(), 1).unwrap()
}

fn carry(network: &mut Network<LineRate, LeastQueue>, flows: &[Flow]) -> Ends {
    let mut ends = Ends::default();
    flows.iter().for_each(|flow| network.offer(flow));
    network.advance(Time::from_ps(100_000_000_000), &mut ends);
    network.check().unwrap();
    ends
}

/// How much later than alone the last flow ended.
fn late(ends: &Ends) -> Span {
    assert_eq!(ends.completed.len(), 2);
    let late = ends.completed.iter().map(|(flow, end, ideal, _)| *end - (flow.start + *ideal));
    late.max().unwrap()
}

/// Full packets of each flow.
const PACKETS: u64 = 50;

/// Both hosts of a leaf to those of the other, crosswise or not.
fn pairs(is_crossed: bool) -> [Flow; 2] {
    let size = PACKETS * u64::from(FRAMING.payload);
    let (first, second) = if is_crossed { (3, 2) } else { (2, 3) };
    [flow(0, 0, first, size, 0), flow(1, 1, second, size, 0)]
}

#[test]
fn a_hash_that_collides_halves_rates_and_the_shortest_queue_does_not() {
    let config = network(endless());
    let mut collisions = 0;
    // Each of the two, and both the other way, where other hosts' hashes count.
    for is_crossed in [false, true] {
        for is_back in [false, true] {
            let turn = |flow: Flow| Flow { src: flow.dst, dst: flow.src, ..flow };
            let flows = pairs(is_crossed).map(|flow| if is_back { turn(flow) } else { flow });
            let hashed = late(&run(&mut raw(plan(&config, &[]), Recovery::None, 1), &flows));
            // On one link every other packet is the other flow's: all of one wait for all of the other.
            let shared = Rate::from_gbps(10).send_time(Bytes::new(1_500)) * PACKETS;
            assert!(hashed == Span::ZERO || hashed == shared, "{hashed} late, not {shared}");
            collisions += u32::from(hashed == shared);
            let mut network = adaptive(&config);
            assert_eq!(late(&carry(&mut network, &flows)), Span::ZERO);
            // Leaf and spine are asked: two links lead from the one to the other.
            assert_eq!(network.program().asked, 2 * 2 * PACKETS);
        }
    }
    assert!(collisions > 0, "the hash never collides here: take other flows");
}

#[test]
fn a_program_is_told_of_credits() {
    let credits = CreditFlow::default();
    let buffer = credits.buffer;
    let flow_control = FlowControl::Credit(credits);
    let mut network = adaptive(&network(Queues { flow_control, ..Queues::default() }));
    carry(&mut network, &pairs(false));
    let seen = &network.program().credits;
    assert_eq!(seen[..2], [Some(buffer); 2], "nothing is on its way");
    assert!(seen.iter().flatten().any(|&room| room < buffer), "packets take credits");
    assert!(seen.iter().flatten().all(|&room| room <= buffer));
}

#[test]
fn choices_do_not_depend_on_the_cut() {
    let config = network(endless());
    let flows: Vec<_> = (0..40)
        .map(|id| {
            flow(id, id as u32 % 4, (id as u32 * 3 + 1 + id as u32 / 4 % 3) % 4, 20_000, 900 * id)
        })
        .filter(|flow| flow.src != flow.dst)
        .collect();
    let ends = |network: &mut Network<LineRate, LeastQueue>| {
        let mut ends = carry(network, &flows).completed;
        ends.sort_by_key(|(flow, ..)| flow.id);
        ends
    };
    let whole = ends(&mut adaptive(&config));
    for parts in 2..=4 {
        let mut cut = adaptive(&config);
        cut.set_shards(parts);
        assert_eq!(ends(&mut cut), whole, "{parts} parts");
        assert!(cut.parts() > 1);
    }
}
