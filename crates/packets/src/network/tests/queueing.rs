//! Waiting times at an output port against queueing theory.

use kernel::Stream;

use super::*;

/// The mean wait at an output port in units of a packet's time, with Poisson arrivals of one-packet
/// flows from many hosts; `size` draws payloads.
fn mean_wait(load: f64, packets: u64, mut size: impl FnMut(&mut Stream) -> u64) -> (f64, f64, f64) {
    let hosts = 65;
    let config = Config { queues: endless(), ..switch(hosts) };
    let mut network = raw(plan(&config, &[]), Recovery::None, 1);
    let mut draw = Stream::new(5, "test/queueing", 0);
    let sizes: Vec<u64> = (0..packets).map(|_| size(&mut draw)).collect();
    let service = |payload: u64| (payload + 40) as f64 * 800.0;
    let mean = sizes.iter().map(|&s| service(s)).sum::<f64>() / packets as f64;
    let second = sizes.iter().map(|&s| service(s).powi(2)).sum::<f64>() / packets as f64;
    let mut at = 0.0;
    let mut ends = Ends::default();
    for (id, &size) in (0..).zip(&sizes) {
        at += draw.exponential(mean / load);
        // The sources are faster together than the port, and one seldom sends twice at a time.
        let src = draw.below(u64::from(hosts) - 1) as u32;
        network.advance(Time::from_ps(at as u64), &mut ends);
        network.offer(&flow(id, src, hosts - 1, size, at as u64));
    }
    network.advance(Time::NEVER, &mut ends);
    network.check().unwrap();
    assert_eq!(ends.completed.len() as u64, packets);
    // Stage 1 is the time in queues of the network.
    let waits = ends.completed.iter().map(|(_, _, _, stages)| stages[1].as_ps() as f64);
    (waits.sum::<f64>() / packets as f64, mean, second)
}

/// Checks the mean wait against Pollaczek and Khinchine, λ·E[S²] / 2(1 - ρ). Departures of 64 hosts
/// are nearly Poisson: a host's own queue spreads its packets a little, which shortens the wait by
/// about 1/64.
#[track_caller]
fn check_wait(load: f64, size: impl FnMut(&mut Stream) -> u64) {
    let (wait, mean, second) = mean_wait(load, 200_000, size);
    let expected = load / mean * second / (2.0 * (1.0 - load));
    let ratio = wait / expected;
    assert!((0.94..1.03).contains(&ratio), "load {load}: {wait} for {expected}: {ratio}");
}

#[test]
fn slow_a_port_with_equal_packets_waits_as_m_d_1() {
    for load in [0.3, 0.5, 0.8] {
        check_wait(load, |_| 1460);
    }
}

#[test]
fn a_port_with_two_sizes_waits_as_m_g_1() {
    for load in [0.5, 0.8] {
        check_wait(load, |draw| if draw.below(4) == 0 { 1460 } else { 60 });
    }
}
