//! The shim alone, with one thread a host: reservations out, grants in, call by call.

use kernel::{Bytes, Span, Time};
use packets::{Effect, FlowKey, Line, Opening, Outbox, Packet, Timer, Transport};
use rack::{Class, Flow, FlowId, NodeId};
use transports::raw::Raw;

use super::Shim;
use crate::Config;
use crate::config::{Jitter, Pending, TimeStamps};
use crate::message::{Message, tag_of};
use crate::wire::Tag;
use crate::wire::control::Opcode;
use crate::wire::tag::Place;

const SENDER: NodeId = NodeId::new(1);
const RECEIVER: NodeId = NodeId::new(2);
/// Payload of a full packet.
const FULL: u64 = 1_458;
const SLOT: u64 = 123_040;

/// A sender under PL2 and the driver's part of the network.
struct Bench {
    shim: Shim<Raw>,
    out: Outbox,
    /// When the host looks for grants that do not come.
    look_at: Option<(Timer, Time)>,
}

impl Bench {
    /// A flow of so many packets starts at time zero.
    fn new(packets: u64) -> Self {
        Self::with(|_| (), packets)
    }

    /// The same where something differs from a host of one thread.
    fn with(change: impl FnOnce(&mut Config), packets: u64) -> Self {
        let mut config = Config { nodes: 4, threads: 1, ..Config::default() };
        let raw = ::transports::raw::Config::default();
        config.transport = crate::transport::Transport::Raw(raw.clone());
        config.host.jitter = Jitter { median: Span::ZERO, ..config.host.jitter };
        change(&mut config);
        let plan = config.plan().unwrap();
        let endpoints = raw.build(&packets::surroundings(&plan.network, 1));
        let shim = Shim::new(&plan, endpoints, 1);
        let mut bench = Self { shim, out: Outbox::new(Time::ZERO), look_at: None };
        bench.start(1, packets, 0);
        bench
    }

    /// A flow of so many packets starts at `ps`.
    fn start(&mut self, key: u32, packets: u64, ps: u64) {
        let start = Time::from_ps(ps);
        let flow = Flow {
            id: FlowId::new(key.into()),
            src: SENDER,
            dst: RECEIVER,
            size: Bytes::new(packets * FULL),
            start,
            class: Class::new(0),
        };
        self.out.set_now(start);
        let opening =
            Opening { key: FlowKey::new(key), label: FlowKey::label(key, false), flow, paths: 1 };
        self.shim.start(&opening, &mut self.out);
    }

    /// The timer of grants that do not come fires, which is set for `ps`.
    #[track_caller]
    fn fire(&mut self, ps: u64) {
        self.note_timers();
        let (timer, at) = self.look_at.take().expect("it watches");
        assert_eq!(at.as_ps(), ps);
        self.out.set_now(at);
        self.shim.timer(timer, &mut self.out);
    }

    fn note_timers(&mut self) {
        let watch = self.shim.timer_of_watch(SENDER);
        let mut set = self.timers();
        set.retain(|&(timer, _)| timer == watch);
        self.look_at = set.last().copied().or(self.look_at);
    }

    /// What the sender's line is given at `ps`.
    fn pull(&mut self, ps: u64) -> Option<Packet> {
        self.out.set_now(Time::from_ps(ps));
        self.shim.pull(SENDER, Line::OPEN, &mut self.out)
    }

    /// All that it is given at `ps`.
    fn pull_all(&mut self, ps: u64) -> Vec<Packet> {
        std::iter::from_fn(|| self.pull(ps)).collect()
    }

    /// The reservation that goes at `ps`, before anything else.
    #[track_caller]
    fn reservation(&mut self, ps: u64) -> Packet {
        let packet = self.pull(ps).expect("something goes");
        let message = Message::of(&packet).expect("a control frame goes first");
        assert_eq!(message.opcode, Opcode::Reserve);
        packet
    }

    /// The switch's answer comes at `ps`.
    fn grant(&mut self, ps: u64, reservation: &Packet, send_slot: u32, receive_slot: u32) {
        let asked = Message::of(reservation).expect("a reservation");
        let grant = Message { opcode: Opcode::Grant, send_slot, receive_slot, ..asked };
        self.out.set_now(Time::from_ps(ps));
        self.shim.receive(SENDER, &grant.packet(RECEIVER, SENDER), &mut self.out);
    }

    /// The last timers that were set.
    fn timers(&mut self) -> Vec<(Timer, Time)> {
        let set =
            |effect| if let Effect::Set(timer, at) = effect { Some((timer, at)) } else { None };
        self.out.drain().filter_map(set).collect()
    }
}

#[track_caller]
fn check_tags(packets: &[Packet], expected: impl Fn(Place) -> Option<Tag>) {
    assert_eq!(packets.len(), 4);
    for (index, packet) in (0..).zip(packets) {
        let place = Place { thread: 0, burst: 0, index };
        assert_eq!(tag_of(packet), expected(place), "packet {index}");
    }
}

/// M19, I05: nothing goes but the reservation until the grant is there; then the burst does.
#[test]
fn m19_i05_one_reservation_is_out_at_a_time() {
    let mut bench = Bench::new(8);
    let reservation = bench.reservation(0);
    assert_eq!(Message::of(&reservation).map(|message| message.demand), Some(4));
    assert_eq!(bench.pull(1_000_000), None);
    bench.grant(2_000_000, &reservation, 0, 0);
    let burst: Vec<_> = (0..4).map(|_| bench.pull(2_000_000).unwrap()).collect();
    check_tags(&burst, |_| None);
}

/// M20: slots count from the switch; a slot that is an exchange away, or less, is now.
#[test]
fn m20_a_burst_waits_for_its_slot_less_the_exchange() {
    for (slot, at) in [(16, 2_000_000), (20, 20 * SLOT), (92, 92 * SLOT)] {
        let mut bench = Bench::new(4);
        let reservation = bench.reservation(0);
        bench.grant(2_000_000, &reservation, slot, 3);
        if at > 2_000_000 {
            assert_eq!(bench.pull(at - 1), None, "slot {slot}");
        }
        assert_eq!(bench.pull_all(at).len(), 4, "slot {slot}");
    }
}

/// M21: the exchange is timed from when its reservation goes on the line, or from when the thread sent it:
/// then the burst is early by as long as the line was busy.
#[test]
fn m21_an_exchange_begins_on_the_line_or_at_the_thread() {
    for (time_stamps, begun) in [(TimeStamps::Hardware, 500_000), (TimeStamps::Software, 0)] {
        let mut bench = Bench::with(|config| config.host.time_stamps = time_stamps, 4);
        let reservation = bench.reservation(500_000);
        bench.grant(2_500_000, &reservation, 40, 0);
        let at = begun + 40 * SLOT;
        assert_eq!(bench.pull(at - 1), None, "{time_stamps:?}");
        assert_eq!(bench.pull_all(at).len(), 4, "{time_stamps:?}");
    }
}

/// M20: data that waits at the NIC is taken off the wait as far as it is still there when that is over, or
/// all of it. Another thread's burst waits here, which is gone long before slot 40.
#[test]
fn m20_pending_data_is_taken_off_if_it_is_still_there() {
    for (pending, early) in [(Pending::Remaining, 0), (Pending::AtGrant, 4 * SLOT)] {
        let change = |config: &mut Config| (config.threads, config.host.pending) = (2, pending);
        let mut bench = Bench::with(change, 4);
        bench.start(2, 4, 0);
        let [one, other] = [0, 0].map(|at| bench.reservation(at));
        bench.grant(2_000_000, &one, 0, 0);
        bench.grant(2_000_000, &other, 40, 0);
        assert_eq!(bench.pull_all(2_000_000).len(), 4, "the burst of slot 0");
        let at = 40 * SLOT - early;
        assert_eq!(bench.pull(at - 1), None, "{pending:?}");
        assert_eq!(bench.pull_all(at).len(), 4, "{pending:?}");
    }
}

/// A bench whose second burst has just gone unsolicited, behind its reservation.
fn unsolicited() -> (Bench, Packet) {
    let mut bench = Bench::new(8);
    let first = bench.reservation(0);
    bench.grant(2_000_000, &first, 0, 0);
    (0..4).for_each(|_| assert!(bench.pull(2_000_000).is_some()));
    let second = bench.reservation(2_500_000);
    assert!(Message::of(&second).is_some_and(|message| message.flags.is_unsolicited));
    let burst = bench.pull_all(2_500_000);
    check_tags(&burst, |place| Some(Tag::Unsolicited(place)));
    (bench, second)
}

/// M24, M13: above t it is retransmitted in its slot; at t it does not. It says whether the switch has counted
/// the first copy: not if there were more than T slots at its output.
#[test]
fn m13_m24_an_unsolicited_burst_goes_again_above_t() {
    for (send, receive, expected) in [
        (15, 0, None),
        (16, 0, Some(false)),
        (0, 96, Some(false)),
        (0, 97, Some(true)),
        (200, 0, Some(false)),
    ] {
        let (mut bench, second) = unsolicited();
        bench.grant(4_500_000, &second, send, receive);
        let again = bench.pull_all(100_000_000);
        match expected {
            None => assert_eq!(again, [], "{send}, {receive}"),
            Some(true) => check_tags(&again, |place| Some(Tag::Again(place))),
            Some(false) => check_tags(&again, |place| Some(Tag::AgainUncounted(place))),
        }
    }
}

/// M24: a burst that waited for its grant goes once, whatever was known before.
#[test]
fn m24_a_burst_that_waited_goes_once() {
    let mut bench = Bench::new(8);
    let first = bench.reservation(0);
    // Slot 0 is below t, and is told so late that it is not current when the burst after is formed.
    bench.grant(2_000_000, &first, 0, 0);
    (0..3).for_each(|_| assert!(bench.pull(2_000_000).is_some()));
    assert!(bench.pull(9_000_000).is_some(), "the line was busy with something else");
    let second = bench.reservation(9_000_000);
    assert_eq!(bench.pull(9_000_000), None, "it waits");
    bench.grant(11_000_000, &second, 40, 40);
    assert_eq!(bench.pull_all(100_000_000).len(), 4);
    assert_eq!(bench.pull_all(200_000_000), []);
}

/// A grant that does not come is asked for again, by the same name; one that comes for nothing is given
/// back, at the sender's input and the receiver's output.
#[test]
fn lost_grants_are_asked_for_again_and_late_ones_given_back() {
    let mut bench = Bench::new(4);
    let first = bench.reservation(0);
    let (timer, at) = *bench.timers().last().expect("it watches");
    assert_eq!(at, Time::ZERO + Span::from_us(67));
    bench.out.set_now(at);
    bench.shim.timer(timer, &mut bench.out);
    let second = bench.reservation(at.as_ps());
    let names = [&first, &second].map(|packet| Message::of(packet).map(|message| message.burst));
    assert_eq!(names[0], names[1]);
    bench.grant(at.as_ps() + 1_000, &first, 0, 0);
    assert_eq!(bench.pull_all(at.as_ps() + 3_000_000).len(), 4);
    bench.grant(at.as_ps() + 4_000_000, &second, 4, 4);
    let reset = bench.pull(at.as_ps() + 4_000_000).expect("slots are given back");
    let reset = Message::of(&reset).expect("by a control frame");
    assert_eq!((reset.opcode, reset.demand), (Opcode::Reset, 4));
    assert_eq!((reset.send_slot, reset.receive_slot), (SENDER.get(), RECEIVER.get()));
}

/// A host looks for each grant in its time, however long it waits for others: one thread's has failed to
/// come five times when another's first does.
#[test]
fn a_lost_grant_is_missed_in_time_while_another_is_waited_for_long() {
    let mut bench = Bench::with(|config| config.threads = 2, 4);
    let (mut at, mut patience) = (0, 67_000_000);
    bench.reservation(at);
    for _ in 0..5 {
        at += patience;
        patience *= 2;
        bench.fire(at);
        bench.reservation(at);
    }
    at += 1_000_000;
    bench.start(2, 4, at);
    let other = bench.reservation(at);
    at += 67_000_000;
    bench.fire(at);
    let again = bench.reservation(at);
    let names = [&other, &again].map(|packet| Message::of(packet).map(|message| message.burst));
    assert_eq!(names[0], names[1], "it is asked for again");
}

/// M13, M31: what an unsolicited burst was granted too late is not given back, for its packets have used
/// it; but if the switch dropped them, it is, and so is what was granted to a reservation that was sent
/// again.
#[test]
fn m13_late_grants_of_bursts_that_went_are_not_given_back() {
    for (receive, is_given_back) in [(0, false), (96, false), (97, true)] {
        let (mut bench, second) = unsolicited();
        bench.out.set_now(Time::from_ps(3_000_000));
        bench.shim.abandon(FlowKey::new(1), &mut bench.out);
        bench.out.set_now(Time::from_ps(80_000_000));
        bench.shim.timer(bench.shim.timer_of_watch(SENDER), &mut bench.out);
        assert_eq!(bench.pull(80_000_000), None, "nobody asks for it any more");
        bench.grant(81_000_000, &second, 0, receive);
        let reset = bench.pull(81_000_000).as_ref().and_then(Message::of);
        let expected = is_given_back.then_some((Opcode::Reset, 4));
        assert_eq!(reset.map(|reset| (reset.opcode, reset.demand)), expected, "{receive}");
    }
}

/// A reservation that is retransmitted is followed by no burst, and says so; what it was granted is given
/// back, if the first grant comes after all.
#[test]
fn m13_a_repeated_reservation_is_followed_by_no_burst() {
    let (mut bench, second) = unsolicited();
    bench.out.set_now(Time::from_ps(80_000_000));
    bench.shim.timer(bench.shim.timer_of_watch(SENDER), &mut bench.out);
    let again = bench.reservation(80_000_000);
    let flags = Message::of(&again).expect("a reservation").flags;
    assert!(!flags.is_unsolicited, "{flags:?}");
    bench.grant(81_000_000, &second, 0, 0);
    bench.grant(82_000_000, &again, 0, 0);
    let reset = bench.pull(82_000_000).as_ref().and_then(Message::of).expect("it is given back");
    assert_eq!((reset.opcode, reset.demand), (Opcode::Reset, 4));
}
