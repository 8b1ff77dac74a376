//! Two transports at the same hosts, flows divided by class: TCP beside UDP, say.
//!
//! Each host has both stacks and one NIC, whose line they take turns at, a packet each; what a stack
//! puts in the NIC's queue at once goes first, as ever. Neither knows of the other: they meet in queues.
//! Models: PL2 §6.2.2, where memcached's TCP competes with UDP from other hosts.

use std::sync::Arc;

use kernel::Time;
use packets::wire::Codec;
use packets::{FlowKey, Framing, Line, Opening, Outbox, Packet, Timer, Timers, Transport};
use rack::{Class, NodeId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{cubic, raw};

/// A byte stream and datagrams without control at the same hosts, flows divided by class.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(bound = "S: Default + Serialize + JsonSchema")]
pub struct Config<S = cubic::Config> {
    /// TCP of all other classes.
    pub stream: S,
    /// Datagrams of `datagram_classes`: line rate without control. Default: those of `raw`, which need
    /// a network that loses nothing; losses = "forget" is UDP.
    pub datagrams: raw::Config,
    /// Classes of flows that go as datagrams. Default: none.
    pub datagram_classes: Vec<Class>,
}

/// Two transports at the same hosts.
#[derive(Clone, Debug)]
pub struct Mixed<A, B> {
    first: A,
    second: B,
    /// By class: whether the second carries it.
    is_second_class: Vec<bool>,
    /// By flow at its source, and at its destination: whether the second carries it.
    is_second: [Vec<bool>; 2],
    /// By host: whether the second sends next, if both can.
    is_seconds_turn: Vec<bool>,
}

impl<A: Transport, B: Transport> Mixed<A, B> {
    /// Both at each of `hosts` hosts; the flows of `classes` go by the second.
    ///
    /// # Panics
    /// If both have timers of hosts, or either sends to neighbours: no transport has needed that.
    #[must_use]
    pub fn new(first: A, second: B, classes: &[Class], hosts: u32) -> Self {
        let timers = [first.timers().host, second.timers().host];
        assert!(timers.contains(&0), "{timers:?} timers of hosts");
        assert!(!first.speaks_to_neighbours() && !second.speaks_to_neighbours());
        let mut is_second_class = vec![false; usize::from(u8::MAX) + 1];
        classes.iter().for_each(|class| is_second_class[usize::from(class.get())] = true);
        Self {
            first,
            second,
            is_second_class,
            is_second: [Vec::new(), Vec::new()],
            is_seconds_turn: vec![false; hosts as usize],
        }
    }
}

/// The packets of either: each looks as its transport has it, TCP or UDP.
#[derive(Clone, Debug)]
struct Either {
    first: Arc<dyn Codec>,
    second: Arc<dyn Codec>,
}

impl Codec for Either {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        match packet.flow.is_seconds() {
            true => self.second.write(packet, frame),
            false => self.first.write(packet, frame),
        }
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        let of_second = |packet: Packet| Packet { flow: packet.flow.of_second(), ..packet };
        self.first.read(frame).or_else(|| self.second.read(frame).map(of_second))
    }
}

/// Does the same with the transport of a flow.
macro_rules! of_flow {
    ($mixed:ident, $flow:expr, $transport:ident => $does:expr) => {
        if $mixed.is_second[usize::from($flow.is_receivers())][$flow.index()] {
            let $transport = &mut $mixed.second;
            $does
        } else {
            let $transport = &mut $mixed.first;
            $does
        }
    };
}

impl<A, B> Mixed<A, B> {
    /// Notes which transport carries a flow.
    fn note(&mut self, flow: FlowKey, is_second: bool) {
        let list = &mut self.is_second[usize::from(flow.is_receivers())];
        if list.len() <= flow.index() {
            list.resize(flow.index() + 1, false);
        }
        list[flow.index()] = is_second;
    }
}

impl<A: Transport, B: Transport> Transport for Mixed<A, B> {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn can_be_cut(&self) -> bool {
        self.first.can_be_cut() && self.second.can_be_cut()
    }

    fn add_counts(&mut self, other: &Self) {
        self.first.add_counts(&other.first);
        self.second.add_counts(&other.second);
    }

    fn timers(&self) -> Timers {
        let (first, second) = (self.first.timers(), self.second.timers());
        Timers { flow: first.flow.max(second.flow), host: first.host.max(second.host) }
    }

    fn codec(&self) -> Arc<dyn Codec> {
        Arc::new(Either { first: self.first.codec(), second: self.second.codec() })
    }

    fn framing(&self) -> Framing {
        self.first.framing()
    }

    fn framing_of(&self, class: Class) -> Framing {
        match self.is_second_class[usize::from(class.get())] {
            true => self.second.framing_of(class),
            false => self.first.framing_of(class),
        }
    }

    fn offset_of(&self, packet: &Packet) -> u64 {
        match packet.flow.is_seconds() {
            true => self.second.offset_of(packet),
            false => self.first.offset_of(packet),
        }
    }

    fn recovers(&self) -> bool {
        self.first.recovers() && self.second.recovers()
    }

    fn shares_packets(&self) -> bool {
        self.first.shares_packets() || self.second.shares_packets()
    }

    fn connection(&self, flow: FlowKey) -> Option<u32> {
        match self.is_second[usize::from(flow.is_receivers())][flow.index()] {
            true => self.second.connection(flow),
            false => self.first.connection(flow),
        }
    }

    fn has_handshake(&self) -> bool {
        self.first.has_handshake() || self.second.has_handshake()
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let is_second = self.is_second_class[usize::from(opening.flow.class.get())];
        self.note(opening.key, is_second);
        of_flow!(self, opening.key, transport => transport.start(opening, out));
    }

    fn accept(&mut self, packet: &Packet, label: FlowKey, out: &mut Outbox) {
        self.note(packet.flow, label.is_seconds());
        of_flow!(self, packet.flow, transport => transport.accept(packet, label, out));
    }

    fn stray(&mut self, packet: &Packet, out: &mut Outbox) {
        match packet.flow.is_seconds() {
            true => self.second.stray(packet, out),
            false => self.first.stray(packet, out),
        }
    }

    fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
        of_flow!(self, packet.flow, transport => transport.receive(host, packet, out));
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        match timer {
            Timer::Flow(flow, _) => of_flow!(self, flow, transport => transport.timer(timer, out)),
            Timer::Host(..) if self.first.timers().host > 0 => self.first.timer(timer, out),
            Timer::Host(..) => self.second.timer(timer, out),
        }
    }

    fn pull(&mut self, host: NodeId, line: Line<'_>, out: &mut Outbox) -> Option<Packet> {
        let turn = self.is_seconds_turn[host.index()];
        for is_second in [turn, !turn] {
            let packet = match is_second {
                // Its receiver has two transports, too, and is to know whose it is.
                true => self
                    .second
                    .pull(host, line, out)
                    .map(|packet| Packet { flow: packet.flow.of_second(), ..packet }),
                false => self.first.pull(host, line, out),
            };
            if packet.is_some() {
                self.is_seconds_turn[host.index()] = !is_second;
                return packet;
            }
        }
        None
    }

    fn abandon(&mut self, flow: FlowKey, out: &mut Outbox) {
        of_flow!(self, flow, transport => transport.abandon(flow, out));
    }

    fn check(&self) -> Result<(), String> {
        self.first.check()?;
        self.second.check()
    }

    fn details(&self, now: Time) -> serde_json::Map<String, serde_json::Value> {
        let each = [
            (self.first.name(), self.first.details(now)),
            (self.second.name(), self.second.details(now)),
        ];
        each.into_iter().map(|(name, details)| (name.to_string(), details.into())).collect()
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Rate, Span};
    use packets::config::Queues;
    use rack::{Fabric, Flow};

    use super::*;
    use crate::chaos::flow;
    use crate::networked::{carry, network, star};
    use crate::raw::Losses;
    use crate::tables::{Bank, Table};

    const DATAGRAMS: Class = Class::new(3);

    fn config() -> Config {
        Config {
            stream: cubic::Config { rto_min: Span::from_us(1_000), ..cubic::Config::default() },
            datagrams: raw::Config { losses: Losses::Forget, ..raw::Config::default() },
            datagram_classes: vec![DATAGRAMS],
        }
    }

    fn datagrams(src: u32, dst: u32, size: u64) -> Flow {
        Flow { class: DATAGRAMS, ..flow(src, dst, size, 0) }
    }

    #[test]
    fn classes_go_by_their_own_transport_and_share_a_line_by_turns() {
        assert_eq!(config().check(), []);
        let plan = star(3, Queues::default()).plan().unwrap();
        let mut network = network(plan, 1, |around| config().endpoints(around, &[]));
        // One host sends as much by each, to different hosts: both take twice their time.
        let packets = 2_000;
        let flows = [flow(0, 1, 1_448 * packets, 0), datagrams(0, 2, 1_458 * packets)];
        let ends = carry(&mut network, &flows);
        assert_eq!(ends.completed.len(), 2);
        let alone = Rate::from_gbps(10).send_time(Bytes::new(1_500)) * packets;
        for (flow, end) in &ends.completed {
            let took = (*end - flow.start).as_seconds() / alone.as_seconds();
            assert!((1.9..2.1).contains(&took), "{flow:?}: {took} times its time alone");
        }
        let details = network.transport().details(Time::ZERO);
        assert_eq!(details.keys().collect::<Vec<_>>(), ["cubic", "raw"]);
    }

    /// Its packets have smaller headers than those of the stream, so that one holds what the stream would cut in two.
    #[test]
    fn a_datagram_alone_takes_what_its_own_packets_take() {
        let datagram = raw::Config { header: Bytes::new(28), ..config().datagrams };
        let config = Config { datagrams: datagram, ..config() };
        let plan = star(2, Queues::default()).plan().unwrap();
        let mut network = network(plan, 1, |around| config.endpoints(around, &[]));
        let ends = carry(&mut network, &[datagrams(0, 1, 1_472)]);
        let (datagram, end) = &ends.completed[0];
        assert_eq!(*end - datagram.start, network.ideal_fct(datagram));
        let streamed = flow(0, 1, 1_472, 0);
        assert!(network.ideal_fct(datagram) < network.ideal_fct(&streamed), "one packet, two");
    }

    /// PL2 §6.2.2: TCP all but stops beside datagrams that take the whole line.
    #[test]
    fn a_stream_starves_beside_datagrams_that_fill_the_receivers_line() {
        let plan = star(4, Queues::default()).plan().unwrap();
        let mut network = network(plan, 1, |around| config().endpoints(around, &[]));
        let flows = [
            datagrams(1, 0, 1_458 * 20_000),
            datagrams(2, 0, 1_458 * 20_000),
            flow(3, 0, 100_000, 1_000),
        ];
        let ends = carry(&mut network, &flows);
        let stream = ends.completed.iter().find(|(flow, _)| flow.class != DATAGRAMS).unwrap();
        let alone = network.ideal_fct(&stream.0).as_seconds();
        assert!((stream.1 - stream.0.start).as_seconds() > 50.0 * alone);
        assert!(!ends.failed.is_empty() && network.totals().drops >= 19_800);
    }

    #[test]
    fn each_packet_looks_as_its_transport_has_it() {
        let plan = star(2, Queues::default()).plan().unwrap();
        let network = network(plan, 1, |around| config().endpoints(around, &[]));
        let codec = network.transport().codec();
        crate::headers::holds_all(&*codec);
        let stream = Packet { wire: 152, ..crate::headers::data(100) };
        let datagram = Packet { flow: stream.flow.of_second(), wire: 142, ..stream };
        for packet in [stream, datagram] {
            assert_eq!(crate::headers::rides(&*codec, &packet), ["stamp", "entropy"]);
        }
    }

    #[test]
    fn bad_settings_stand_under_their_table() {
        let bad = Config {
            datagrams: raw::Config { mtu: Bytes::new(10), ..raw::Config::default() },
            stream: cubic::Config { rto_min: Span::ZERO, ..cubic::Config::default() },
            ..Config::default()
        };
        let keys: Vec<_> = bad.check().into_iter().map(|problem| problem.key).collect();
        assert_eq!(keys, ["stream.rto_min", "datagrams.mtu"]);
    }
}
