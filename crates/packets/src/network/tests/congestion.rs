//! What full queues do: drop, mark, trim, return, and share a buffer.

use super::*;
use crate::config::{Marking, Overflow, Red, Step, Trimming};

/// `senders` hosts send `packets` each to one, at once; returns the network when all is over.
fn incast(queues: Queues, senders: u32, packets: u64) -> (Network<LineRate>, Ends) {
    let config = Config { queues, ..switch(senders + 1) };
    let flows: Vec<_> =
        (0..senders).map(|src| flow(u64::from(src), src, senders, 1460 * packets, 0)).collect();
    carry(&config, &flows)
}

#[test]
fn a_full_queue_drops_exactly_what_does_not_fit() {
    // Four senders for one line: in the time of 100 packets each, 400 come, 100 go, 10 fit.
    let queues = Queues { port_buffer: Bytes::new(15_000), ..Queues::default() };
    let (network, ends) = incast(queues, 4, 100);
    let totals = network.totals();
    // The first of each round of four finds the line just free and a queue of nine.
    assert_eq!(totals.queue_max, Bytes::new(15_000));
    assert_eq!(totals.queue_max_cells, 10);
    // That port's queue alone grew; a histogram may say a thousandth more.
    let details = network.details();
    assert_eq!(details["port_queue_max_p50_bytes"], 0);
    let longest = details["port_queue_max_p99_bytes"].as_u64().unwrap();
    assert!((15_000..=15_015).contains(&longest), "{longest}");
    // All that arrived: one on the line in each of 100 packet times, and the queue's ten.
    assert_eq!(totals.drops, 400 - 110);
    assert!(ends.completed.is_empty(), "what comes at one instant is admitted in turns");
}

#[test]
fn senders_in_step_share_a_full_queue() {
    // In each of 10,000 packet times four packets come at one instant and find a single place: a binomial
    // draw of a quarter for each sender, with a standard deviation of 43.
    let queues = Queues { port_buffer: Bytes::new(15_000), ..Queues::default() };
    let (network, _) = incast(queues, 4, 10_000);
    let came = network.transport().came();
    assert_eq!(came.iter().sum::<usize>(), 10_010);
    assert!(came.iter().all(|came| came.abs_diff(2_500) < 200), "{came:?}");
}

#[test]
fn clocks_that_are_off_end_the_step_between_senders_and_a_full_queue() {
    // The second sender's packets come a third of a packet time after the first's, which find the place that
    // has just come free. With clocks of up to 200 ppm between them the second is a packet time further, or
    // back, within 5,000 packets or some more.
    let came = |clock_tolerance, seed| {
        let queues = Queues { port_buffer: Bytes::new(15_000), ..Queues::default() };
        let config = Config { queues, clock_tolerance, ..switch(3) };
        let mut network = raw(plan(&config, &[]), Recovery::None, seed);
        let flow = |src, start| flow(u64::from(src), src, 2, 1460 * 100_000, start);
        run(&mut network, &[flow(0, 0), flow(1, 400_000)]);
        let mut came = network.transport().came();
        came.sort_unstable();
        (came[0], came[1])
    };
    let (less, more) = came(0, 1);
    assert!(less <= 10 && more >= 99_990, "{less} and {more}");
    for seed in 1..6 {
        let (less, more) = came(100, seed);
        assert!((99_900..100_100).contains(&(less + more)) && less > 10_000, "{less} and {more}");
    }
}

#[test]
fn lines_are_slower_than_their_rate_by_no_more_than_twice_the_tolerance() {
    let config = Config { clock_tolerance: 100, ..switch(8) };
    let network = raw(plan(&config, &[]), Recovery::None, 1);
    let net = network.net();
    let rates: Vec<_> = net.clocks.iter().map(|clock| clock.rate().as_bps()).collect();
    assert!(rates.iter().all(|rate| (9_998_000_000..=10_000_000_000).contains(rate)), "{rates:?}");
    // A switch has one clock, each host its own.
    let all: std::collections::BTreeSet<_> = rates.iter().collect();
    assert_eq!((rates.len(), all.len()), (16, 9));
    assert_eq!(
        network.ideal_fct(&flow(0, 0, 1, 1_460, 0)),
        raw(plan(&switch(8), &[]), Recovery::None, 1).ideal_fct(&flow(0, 0, 1, 1_460, 0))
    );
}

#[test]
fn one_packet_of_buffer_is_enough_to_keep_the_line_busy() {
    let queues = Queues { port_buffer: Bytes::new(1_500), ..Queues::default() };
    let (network, _) = incast(queues, 2, 1_000);
    let totals = network.totals();
    assert_eq!((totals.queue_max_cells, totals.drops), (1, 2_000 - 1_001));
}

#[test]
fn a_step_marks_what_finds_more_than_the_threshold() {
    let marking = Marking::Step(Step { threshold: Bytes::new(15_000) });
    let queues = Queues { marking, ..endless() };
    let (network, ends) = incast(queues, 2, 100);
    // Two come in each packet time and one goes, so the k-th pair finds k-1 and k waiting, less the
    // one that has gone on the line. 200 packets; those that find more than ten are marked.
    let found = |k: u64| [k, k + 1].map(|waiting| waiting.saturating_sub(1));
    let marked = (0..100).flat_map(found).filter(|&waiting| waiting > 10).count() as u64;
    let close = network.net().counts.marked.abs_diff(marked);
    assert!(close <= 2, "{} marked, expected {marked}", network.net().counts.marked);
    assert_eq!(ends.completed.len(), 2);
}

#[test]
fn red_marks_by_probability() {
    // Eight senders fill a queue that stays between the thresholds for long.
    let red = Red { min: Bytes::ZERO, max: Bytes::new(100_000_000), probability: 1.0 };
    let queues = Queues { marking: Marking::Red(red), ..endless() };
    let (network, _) = incast(queues, 8, 2_000);
    // The queue rises from 0 to 14,000 packets: 21 MB of 100 MB; the mean probability is half 0.21.
    let (marked, of) = (network.net().counts.marked as f64, 16_000.0f64);
    let expected = of * 0.105;
    let deviation = (of * 0.1 * 0.9).sqrt();
    assert!((marked - expected).abs() < 5.0 * deviation, "{marked} for {expected}");
}

#[test]
fn packets_that_do_not_allow_it_are_not_trimmed() {
    let queues = Queues {
        port_buffer: Bytes::new(18_000),
        trimming: Some(Trimming::default()),
        ..Queues::default()
    };
    let (network, _) = incast(queues, 4, 100);
    assert_eq!(network.net().counts.trimmed, 0);
    assert_eq!(network.totals().drops, 400 - 112);
}

#[test]
fn a_queue_takes_alpha_times_what_is_free() {
    // One greedy queue with alpha 1 takes half of the buffer, with alpha 1/2 a third: q = α(B - q).
    for (alpha, share) in [(1.0, 1.0 / 2.0), (0.5, 1.0 / 3.0), (2.0, 2.0 / 3.0)] {
        let queues = Queues { alpha, shared_buffer: Bytes::new(600_000), ..endless() };
        let (network, _) = incast(queues, 4, 1_000);
        let found = network.totals().queue_max.get() as f64 / 600_000.0;
        assert!((found - share).abs() < 0.006, "alpha {alpha}: {found} for {share}");
    }
}

/// Choudhury and Hahne, 1998: n greedy queues of a buffer B are each as long as α B / (1 + n α), so that T = α (B - Q).
#[test]
fn greedy_queues_share_a_buffer_as_dynamic_thresholds_say() {
    let buffer = 600_000;
    // With a larger α the buffer is nearly full, and what comes free goes to whichever port asks first.
    for ports in 1..=4u32 {
        for (numerator, denominator) in [(1u64, 2u64), (1, 1), (2, 1)] {
            let alpha = numerator as f64 / denominator as f64;
            let queues = Queues { alpha, shared_buffer: Bytes::new(buffer), ..endless() };
            let config = Config { queues, ..switch(3 * ports) };
            // Two hosts send to each of the others.
            let to = |src: u32| 2 * ports + src / 2;
            let flows: Vec<_> = (0..2 * ports)
                .map(|src| flow(u64::from(src), src, to(src), 1460 * 2_000, 0))
                .collect();
            let (network, _) = carry(&config, &flows);
            let (up, down) = (numerator * buffer, denominator + u64::from(ports) * numerator);
            let longest = network.totals().queue_max.get();
            // To a packet a port: they come and go one by one, and T with them.
            let close = longest.abs_diff(up / down) <= buffer / 100;
            assert!(close, "{ports} ports, alpha {alpha}: {longest} B for {} B", up / down);
        }
    }
}

mod trimming {
    use super::*;
    use crate::outbox::Outbox;
    use crate::packet::{FlowKey, Kind, Marks, Packet, reply};
    use crate::transport::{Line, Opening, Timer, Timers, Transport};

    /// Blasts once; receivers note what arrives whole, trimmed and returned.
    #[derive(Clone, Debug, Default)]
    pub(super) struct Trimmed {
        flows: Vec<(Opening, u64)>,
        whole: u64,
        trimmed: u64,
        returned: u64,
        /// Sequence numbers seen, whole or cut, by the flow's source.
        seen: std::collections::BTreeMap<u32, std::collections::BTreeSet<u64>>,
    }

    impl Transport for Trimmed {
        fn name(&self) -> &'static str {
            "trimmed"
        }

        fn timers(&self) -> Timers {
            Timers::default()
        }

        fn framing(&self) -> Framing {
            FRAMING
        }

        fn start(&mut self, opening: &Opening, out: &mut Outbox) {
            self.flows.push((*opening, 0));
            out.wake(opening.flow.src);
        }

        fn receive(&mut self, host: NodeId, packet: &Packet, out: &mut Outbox) {
            if packet.marks.contains(Marks::RETURNED) {
                assert_eq!(host, packet.dst);
                self.returned += 1;
            } else if packet.marks.contains(Marks::TRIMMED) {
                assert_eq!((packet.payload, packet.wire, packet.priority), (0, 64, 0));
                self.trimmed += 1;
                out.send(Packet { priority: 0, ..reply(packet, Kind::of_transport(1), 64) });
            } else if packet.kind == Kind::DATA {
                assert_eq!((packet.payload, packet.wire), (1460, 1500));
                self.whole += 1;
            } else {
                return;
            }
            let is_back = packet.marks.contains(Marks::RETURNED);
            let source = if is_back { packet.dst } else { packet.src };
            assert!(self.seen.entry(source.get()).or_default().insert(packet.seq));
        }

        fn timer(&mut self, timer: Timer, _: &mut Outbox) {
            unreachable!("{timer:?}");
        }

        fn pull(&mut self, host: NodeId, _: Line<'_>, _: &mut Outbox) -> Option<Packet> {
            let (opening, next) = self.flows.iter_mut().find(|(o, _)| o.flow.src == host)?;
            if *next * 1460 >= opening.flow.size.get() {
                return None;
            }
            *next += 1;
            Some(Packet {
                flow: opening.key,
                src: host,
                dst: opening.flow.dst,
                seq: *next,
                payload: 1460,
                wire: 1500,
                priority: 1,
                marks: Marks::MAY_TRIM,
                ..Packet::default()
            })
        }

        fn abandon(&mut self, _: FlowKey, _: &mut Outbox) {}
    }

    fn blast(trimming: Trimming, senders: u32, packets: u64) -> Network<Trimmed> {
        let queues = Queues {
            port_buffer: Bytes::new(18_000),
            trimming: Some(trimming),
            ..Queues::default()
        };
        let config = Config { queues, ..switch(senders + 1) };
        let mut network = Network::new(plan(&config, &[]), Trimmed::default(), 3).unwrap();
        for src in 0..senders {
            network.offer(&flow(u64::from(src), src, senders, 1460 * packets, 0));
        }
        network.advance(Time::NEVER, &mut ());
        network.check().unwrap();
        network
    }

    #[test]
    fn every_packet_arrives_whole_or_as_a_header_or_comes_back() {
        let network = blast(Trimming::default(), 60, 12);
        let end = network.transport();
        assert_eq!(network.totals().drops, 0);
        assert_eq!(end.whole + end.trimmed + end.returned, 720);
        assert_eq!(end.seen.values().map(|seen| seen.len()).sum::<usize>(), 720);
        assert_eq!(network.net().counts.trimmed, end.trimmed + end.returned);
        assert_eq!(network.net().counts.returned, end.returned);
        // 281 headers fit; what comes beyond has to go back.
        assert!(end.whole >= 12 && end.trimmed > 100 && end.returned > 0, "{end:?}");
    }

    #[test]
    fn headers_are_dropped_where_they_may_not_go_back() {
        let small = Trimming {
            header_buffer: Bytes::new(640),
            overflow: Overflow::Drop,
            ..Trimming::default()
        };
        let network = blast(small, 30, 12);
        let end = network.transport();
        assert_eq!(end.returned, 0);
        assert!(network.totals().drops > 0);
        assert_eq!(end.whole + end.trimmed + network.totals().drops, 360);
        assert!(network.net().ports.iter().all(|port| port.bytes == 0));
    }

    #[test]
    fn the_coin_cuts_as_many_as_do_not_fit() {
        let network = blast(Trimming::default(), 4, 400);
        let end = network.transport();
        let seen = end.whole as f64 / 1_600.0;
        assert!((0.2..0.4).contains(&seen), "{seen}");
    }
}
