//! How fast the engine is: `perf_packets HOSTS PATTERN PACKETS [ROUTING [THREADS]]` carries `permutation` or `incast`
//! of PACKETS packets a flow over a three-tier Clos of 128, 432 or 1,024 hosts (others: leaf and
//! spine), with a fixed window of 35 packets and an acknowledgment for each, by `ecmp` or `spray`, on THREADS threads.

use std::collections::VecDeque;

use kernel::{Bytes, Stream, Time};
use packets::config::{Config, FlowControl, Pfc, Queues, Routing};
use packets::{
    FlowKey, Framing, Kind, Line, Network, Opening, Outbox, Packet, Timer, Timers, Transport, reply,
};
use rack::topology::{LeafSpine, Shape, ThreeTier};
use rack::{Class, Fabric, Flow, FlowId, NodeId};

const FRAMING: Framing = Framing { payload: 1460, header: 40 };
/// Packets under way of a flow (Shoal §7.3).
const WINDOW: u64 = 35;

/// A flow at its source.
#[derive(Clone, Copy, Default)]
struct Sender {
    dst: NodeId,
    packets: u64,
    sent: u64,
    acked: u64,
    entropy: u16,
}

/// A fixed window, an acknowledgment for each packet, no recovery.
#[derive(Clone)]
struct Window {
    senders: Vec<Sender>,
    /// By flow at its destination: packets that have come.
    received: Vec<u64>,
    turns: Vec<VecDeque<FlowKey>>,
}

impl Transport for Window {
    fn name(&self) -> &'static str {
        "window"
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn timers(&self) -> Timers {
        Timers::default()
    }

    fn framing(&self) -> Framing {
        FRAMING
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = *opening;
        if self.senders.len() <= key.index() {
            self.senders.resize(key.index() + 1, Sender::default());
        }
        let packets = FRAMING.packets(flow.size);
        let entropy = flow.id.get() as u16;
        self.senders[key.index()] = Sender { dst: flow.dst, packets, entropy, ..Sender::default() };
        self.turns[flow.src.index()].push_back(key);
        out.wake(flow.src);
    }

    fn accept(&mut self, packet: &Packet, _: FlowKey, _: &mut Outbox) {
        let place = packet.flow.index();
        if self.received.len() <= place {
            self.received.resize(place + 1, 0);
        }
        self.received[place] = 0;
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        if packet.kind == Kind::DATA {
            let received = &mut self.received[packet.flow.index()];
            *received += 1;
            out.send(Packet { priority: 0, ..reply(packet, Kind::of_transport(0), 64) });
            out.delivered(packet.flow, Bytes::new(packet.payload.into()));
            // Each packet tells how many there are.
            if *received == packet.word {
                out.complete(packet.flow);
                out.close(packet.flow);
            }
            return;
        }
        let ends = &mut self.senders[packet.flow.index()];
        let was_blocked = ends.sent == ends.acked + WINDOW;
        ends.acked += 1;
        if ends.acked == ends.packets {
            out.close(packet.flow);
        } else if was_blocked && ends.sent < ends.packets {
            self.turns[host.index()].push_back(packet.flow);
            out.wake(host);
        }
    }

    fn timer(&mut self, timer: Timer, _: &mut Outbox) {
        unreachable!("{timer:?}");
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, _: &mut Outbox) -> Option<Packet> {
        if !line.is_open(1) {
            return None;
        }
        let flow = self.turns[host.index()].pop_front()?;
        let ends = &mut self.senders[flow.index()];
        let seq = ends.sent;
        ends.sent += 1;
        if ends.sent < ends.packets && ends.sent < ends.acked + WINDOW {
            self.turns[host.index()].push_back(flow);
        }
        Some(Packet {
            flow,
            src: host,
            dst: ends.dst,
            seq,
            word: ends.packets,
            payload: FRAMING.payload,
            wire: FRAMING.payload + FRAMING.header,
            priority: 1,
            entropy: ends.entropy,
            ..Packet::default()
        })
    }

    fn abandon(&mut self, _: FlowKey, _: &mut Outbox) {}
}

fn shape(hosts: u32) -> Shape {
    match hosts {
        128 => Shape::ThreeTier(ThreeTier { hosts, radix: 8, ..Default::default() }),
        432 => Shape::ThreeTier(ThreeTier { hosts, radix: 12, ..Default::default() }),
        1024 => Shape::ThreeTier(ThreeTier { hosts, radix: 16, ..Default::default() }),
        _ => Shape::LeafSpine(LeafSpine { hosts, ..Default::default() }),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (hosts, packets): (u32, u64) = (words[0].parse()?, words[2].parse()?);
    let spray = words.get(3).is_some_and(|word| word == "spray");
    let config = Config {
        topology: shape(hosts),
        routing: if spray { Routing::RandomSpray } else { Routing::Ecmp },
        queues: Queues {
            flow_control: FlowControl::Pfc(Pfc::fixed(Bytes::new(20_000))),
            ..Queues::default()
        },
        ..Config::default()
    };
    let begin = std::time::Instant::now();
    let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
    let transport = Window {
        senders: Vec::new(),
        received: Vec::new(),
        turns: vec![VecDeque::new(); hosts as usize],
    };
    let mut network = Network::new(plan, transport, 1).map_err(|problem| problem.to_string())?;
    network.set_threads(words.get(4).map_or(Ok(1), |word| word.parse())?);
    eprintln!("{hosts} hosts: built in {:.3} s", begin.elapsed().as_secs_f64());
    let mut order: Vec<u32> = (0..hosts).collect();
    Stream::new(1, "example/perf", 0).shuffle(&mut order);
    for (id, &src) in (0..).zip(&order) {
        let dst = match words[1].as_str() {
            "incast" => 0,
            _ => order[(id as usize + 1) % order.len()],
        };
        if src != dst {
            network.offer(&Flow {
                id: FlowId::new(id),
                src: NodeId::new(src),
                dst: NodeId::new(dst),
                size: Bytes::new(packets * u64::from(FRAMING.payload)),
                start: Time::ZERO,
                class: Class::new(0),
            });
        }
    }
    let begin = std::time::Instant::now();
    network.advance(Time::NEVER, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let totals = network.totals();
    let windows = network.windows();
    if windows.windows > 0 {
        eprintln!("{} parts: {windows:?}", network.parts());
    }
    let hops = network.details()["packet_hops"].as_u64().unwrap_or(0);
    eprintln!(
        "{hosts} hosts, {}: {seconds:.3} s, {:.1} ns a packet hop, {:.2} million a second, {:.2} \
         events a hop, {hops} hops, {} unfinished, longest queue {}, hash {:016x}",
        words[1],
        seconds * 1e9 / hops as f64,
        hops as f64 / seconds / 1e6,
        totals.events as f64 / hops as f64,
        network.unfinished(usize::MAX).len(),
        totals.queue_max,
        totals.event_hash,
    );
    Ok(())
}
