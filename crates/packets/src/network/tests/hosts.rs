//! What happens inside of hosts: sums on an idle network, queueing theory, sleep, threads, death.

use kernel::Stream;
use rack::Component;

use super::*;
use crate::config::{Engine, Failures, Host, Law, Sleep, WakeUp};

const NS: u64 = 1_000;

fn ns(ns: u64) -> Option<Span> {
    Some(Span::from_ns(ns))
}

/// A host in which everything takes time, and nothing is drawn.
fn slow() -> Host {
    Host {
        latency: ns(900),
        send_latency: ns(700),
        engine: Engine { operation: ns(800), packet: ns(500), control: ns(100), law: Law::Fixed },
        wake_up: WakeUp { least: ns(3_000), most: ns(3_000) },
        ..Host::default()
    }
}

fn took(ends: &Ends) -> Vec<Span> {
    ends.completed.iter().map(|(flow, end, ..)| *end - flow.start).collect()
}

#[test]
fn a_message_alone_takes_the_sum_of_all_delays() {
    let bare = Config { queues: endless(), ..switch(3) };
    let with = Config { host: slow(), ..bare.clone() };
    for size in [1, 700, 1460, 14_600] {
        let alone = [flow(0, 0, 2, size, 5_000)];
        let (_, plain) = carry(&bare, &alone);
        let (network, ends) = carry(&with, &alone);
        let hosts = 800 + 700 + 900 + 500 + 3_000;
        assert_eq!(took(&ends)[0], took(&plain)[0] + Span::from_ns(hosts), "{size} B");
        let (_, _, ideal, stages) = &ends.completed[0];
        assert_eq!(*ideal, took(&ends)[0]);
        assert_eq!(stages.iter().copied().sum::<Span>(), *ideal);
        // The last packet's time in the engine and the thread are at the destination, as far as one packet shows.
        if size <= 1460 {
            assert_eq!((stages[0], stages[1]), (Span::from_ns(1_500), Span::ZERO));
            assert_eq!(stages[3], Span::from_ns(3_500));
        }
        assert_eq!(network.totals().delivered.get(), size);
    }
}

#[test]
fn an_engine_slower_than_the_line_takes_packets_one_after_the_other() {
    // A packet comes each 1.2 us, the engine takes 2 us: the last of ten is done 20 us after the first has come.
    let engine = Engine { packet: ns(2_000), ..Engine::default() };
    let config =
        Config { queues: endless(), host: Host { engine, ..Host::default() }, ..switch(3) };
    let (network, ends) = carry(&config, &[flow(0, 0, 2, 14_600, 0)]);
    let (_, first) = carry(&Config { host: Host::default(), ..config }, &[flow(0, 0, 2, 1460, 0)]);
    assert_eq!(took(&ends)[0], took(&first)[0] + Span::from_us(20));
    assert_eq!(ends.completed[0].2, network.ideal_fct(&ends.completed[0].0));
    assert_eq!(ends.completed[0].2, took(&ends)[0]);
}

#[test]
fn messages_of_a_host_are_begun_one_after_the_other() {
    let engine = Engine { operation: ns(5_000), ..Engine::default() };
    let host = Host { engine, ..Host::default() };
    let config = Config { queues: endless(), host, ..switch(4) };
    let flows = [flow(0, 0, 1, 100, 0), flow(1, 0, 2, 100, 0), flow(2, 0, 3, 100, 2_000 * NS)];
    let (_, ends) = carry(&config, &flows);
    let bare = Config { host: Host::default(), ..config };
    let base = took(&carry(&bare, &flows[..1]).1)[0];
    let expected = [5, 10, 13].map(|us| base + Span::from_us(us));
    assert_eq!(took(&ends), expected);
}

/// Of the engine of these tests. Unit: ps.
const SERVICE: u64 = 800 * NS;

/// The mean time that packets of one-packet messages wait for the engine of their destination, in units of its mean
/// service. They come at random from many hosts, and hardly wait for the line.
fn mean_wait(load: f64, law: Law, messages: u64) -> f64 {
    let waits = waits(load, law, messages);
    waits.iter().map(|&(_, wait)| wait as f64).sum::<f64>() / messages as f64 / SERVICE as f64
}

/// When messages are sent, and how long each waits. Unit: ps.
fn waits(load: f64, law: Law, messages: u64) -> Vec<(u64, i64)> {
    let hosts = 33;
    let engine = Engine { packet: ns(800), law, ..Engine::default() };
    let host = Host { engine, ..Host::default() };
    let config = Config { queues: endless(), host, ..switch(hosts) };
    let mut network = raw(plan(&config, &[]), Recovery::None, 1);
    let mut draw = Stream::new(7, "test/engine", 0);
    let (mut at, mut ends) = (0.0, Ends::default());
    for id in 0..messages {
        at += draw.exponential(SERVICE as f64 / load);
        let src = draw.below(u64::from(hosts) - 1) as u32;
        network.advance(Time::from_ps(at as u64), &mut ends);
        network.offer(&flow(id, src, hosts - 1, 1, at as u64));
    }
    network.advance(Time::NEVER, &mut ends);
    network.check().unwrap();
    assert_eq!(ends.completed.len() as u64, messages);
    let bare = Config { host: Host::default(), ..config };
    let base = took(&carry(&bare, &[flow(0, 0, hosts - 1, 1, 0)]).1)[0].as_ps() + SERVICE;
    let mut done = ends.completed;
    done.sort_unstable_by_key(|(flow, ..)| flow.id);
    let wait = |end: Time, start: Time| (end - start).as_ps() as i64 - base as i64;
    done.iter().map(|(flow, end, ..)| (flow.start.as_ps(), wait(*end, flow.start))).collect()
}

/// The waits of each message are those of Lindley's recursion. The line in front is faster, and takes always as long: it
/// moves nothing but the time at which all begins, but for the order of what comes at once.
#[test]
fn each_message_waits_for_the_work_before_it() {
    for load in [0.3, 0.9] {
        let mut free_at = 0;
        for (at, wait) in waits(load, Law::Fixed, 5_000) {
            let begun = at.max(free_at);
            free_at = begun + SERVICE;
            assert_eq!(wait, (begun - at) as i64, "at {at} ps, load {load}");
        }
    }
}

/// Against Pollaczek and Khinchine: ρ / 2(1 - ρ) services where all are alike (M/D/1), ρ / (1 - ρ) where they have
/// exponential law (M/M/1). The line adds 4 % of 4 % of a service.
#[track_caller]
fn check_engine(law: Law, halves: f64) {
    for (load, messages, error) in
        [(0.3, 200_000, 0.03), (0.6, 200_000, 0.03), (0.9, 400_000, 0.08)]
    {
        let expected = halves * load / 2.0 / (1.0 - load);
        let ratio = mean_wait(load, law, messages) / expected;
        assert!((ratio - 1.0).abs() < error, "{law:?} at {load}: {ratio} of {expected}");
    }
}

#[test]
fn slow_an_engine_that_takes_always_as_long_waits_as_m_d_1() {
    check_engine(Law::Fixed, 1.0);
}

#[test]
fn slow_an_engine_of_exponential_law_waits_as_m_m_1() {
    check_engine(Law::Exponential, 2.0);
}

#[test]
fn an_engine_sleeps_when_it_was_idle_for_longer_than_said() {
    let sleep = Sleep { after: Span::from_us(20), exit: Span::from_us(8), law: Law::Fixed };
    let config = Config { queues: endless(), host: Host { sleep, ..Host::default() }, ..switch(3) };
    let plain = Config { host: Host::default(), ..config.clone() };
    let base = took(&carry(&plain, &[flow(0, 0, 2, 1, 0)]).1)[0];
    // The second host wakes, too, when the message comes; it takes no time but that. Both are done at once.
    let (exit, awake) = (Span::from_us(8), base + Span::from_us(16));
    let at = |gap: Span| {
        let second = flow(1, 0, 2, 1, (awake + gap).as_ps());
        let (_, ends) = carry(&config, &[flow(0, 0, 2, 1, 0), second]);
        took(&ends)
    };
    // The source was done with the first when its own exit was over, long before the destination was.
    let source_idle = awake - exit;
    let just = sleep.after - source_idle;
    assert_eq!(at(just), [awake, base], "20 us are not more than 20 us");
    // By the time that the source is awake again the destination has been idle for as long.
    assert_eq!(at(just + Span::from_ps(1)), [awake, base + exit * 2], "both sleep");
    // What comes meanwhile waits with the first.
    let (_, ends) = carry(&config, &[flow(0, 0, 2, 1, 0), flow(1, 1, 2, 1, 1_000 * NS)]);
    assert_eq!(ends.completed[0].1, ends.completed[1].1);
}

#[test]
fn threads_take_their_time_to_wake_for_each_message() {
    let wake_up = WakeUp { least: ns(20_000), most: ns(50_000) };
    let host = Host { wake_up, ..Host::default() };
    let config = Config { queues: endless(), host, ..switch(3) };
    let flows: Vec<_> = (0..2_000).map(|id| flow(id, 0, 2, 1460, id * 100_000 * NS)).collect();
    let (_, ends) = carry(&config, &flows[..1]);
    let plain = Config { host: Host::default(), ..config.clone() };
    let base = took(&carry(&plain, &flows[..1]).1)[0];
    let mut network = raw(plan(&config, &[]), Recovery::None, 1);
    flows.iter().for_each(|flow| network.offer(flow));
    let mut all = Ends::default();
    network.advance(Time::NEVER, &mut all);
    let waits: Vec<f64> = took(&all).iter().map(|span| (*span - base).as_seconds() * 1e6).collect();
    assert!(waits.iter().all(|wait| (20.0..=50.0).contains(wait)));
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    // Four standard errors of a mean of a range of 30 us.
    let error = 4.0 * 30.0 / (12.0f64 * waits.len() as f64).sqrt();
    assert!((mean - 35.0).abs() < error, "{mean}");
    assert_eq!(took(&ends)[0], took(&all)[0], "the same for the same message");
    assert_eq!(ends.completed[0].2, base + Span::from_us(20));
}

/// A host dies with a message in its engine, one on its way to a thread, and one on its way out: none of them arrives,
/// none is counted twice, and what comes after its life does.
#[test]
fn what_is_in_a_host_dies_with_it() {
    let us = |us: u64| Time::from_ps(us * 1_000 * NS);
    let host = Host {
        engine: Engine { operation: ns(10_000), ..Engine::default() },
        wake_up: WakeUp { least: ns(30_000), most: ns(30_000) },
        ..Host::default()
    };
    let failures = Failures { silence: Span::from_us(200_000), ..Failures::default() };
    let config = Config { queues: endless(), host, failures, ..switch(4) };
    let fault = |at, until| {
        let component = Component::Node(NodeId::new(1));
        Fault { component, at: us(at), until: Some(us(until)) }
    };
    let mut network = raw(plan(&config, &[fault(35, 60)]), REPEAT, 1);
    let flows = [
        // In the engine of its source, which dies.
        flow(0, 1, 2, 1460, us(30).as_ps()),
        // At its destination, which dies before its thread runs.
        flow(1, 2, 1, 1460, us(10).as_ps()),
        // Elsewhere.
        flow(2, 3, 2, 1460, us(10).as_ps()),
        // After all that.
        flow(3, 1, 2, 1460, us(5_000).as_ps()),
    ];
    let ends = run(&mut network, &flows);
    let whole: Vec<_> = ends.completed.iter().map(|(flow, ..)| flow.id.get()).collect();
    assert_eq!(whole, [2, 3]);
    let failed = ends.failed.iter().map(|(flow, at, why)| (flow.id.get(), *at, *why));
    let expected = [(0, us(35), Failure::SourceDied), (1, us(35), Failure::DestinationDied)];
    assert_eq!(failed.collect::<Vec<_>>(), expected);
}
