//! Exchanges and bursts to the picosecond, from the paper's steps and the lengths of lines.

use super::*;

/// A control frame and a full packet on the line: 84 and 1,538 bytes at 100 Gbps.
const CONTROL: u64 = 6_720;
const PACKET: u64 = 123_040;
/// A tag of four bytes.
const TAG: u64 = 320;
/// A line with the software at its end, and the switch.
const WAY: u64 = 810_000;
const SWITCH: u64 = 347_000;
/// From a reservation to its grant, all idle.
const EXCHANGE: u64 = 2 * (CONTROL + WAY) + SWITCH;
/// From a packet's first bit at its NIC to its arrival.
const JOURNEY: u64 = 2 * (PACKET + WAY) + SWITCH;

/// Payload of a full packet.
const FULL: u64 = 1_458;

fn raw_rack() -> Config {
    Config { transport: raw(), ..steady() }
}

/// The same with one thread a host.
fn single() -> Config {
    Config { threads: 1, ..raw_rack() }
}

#[track_caller]
fn check(config: &Config, flows: &[Flow], expected: &[u64]) -> Outcome {
    let outcome = carry(config, flows);
    let mut ends = outcome.ends.completed.clone();
    ends.sort_by_key(|(flow, _)| flow.id);
    let found: Vec<_> = ends.iter().map(|(_, end)| end.as_ps()).collect();
    assert_eq!(found, expected, "{:?}", outcome.rack.details());
    outcome
}

/// E14: an exchange of the idle rack takes 1.98 us at least (PL2 §5), 1 us of it beyond software.
#[test]
fn e14_an_exchange_takes_what_was_measured_at_least() {
    assert_eq!(EXCHANGE, 1_980_440);
    let without =
        Config { host: crate::config::Host { delay: Span::ZERO, ..steady().host }, ..raw_rack() };
    let at = EXCHANGE - 4 * 490_000 / 2 + JOURNEY - 2 * 490_000;
    check(&without, &[flow(0, 1, 2, FULL, Time::ZERO)], &[at]);
}

/// M19: reservation, grant, burst. The first burst waits for its grant; slot 0 is now.
#[test]
fn m19_a_burst_goes_when_its_grant_is_there() {
    let at = EXCHANGE + 3 * PACKET + JOURNEY;
    let outcome = check(&raw_rack(), &[flow(0, 1, 2, 4 * FULL, Time::ZERO)], &[at]);
    assert_eq!(outcome.count("bursts"), 1);
    assert_eq!(outcome.count("control_bytes"), 128, "I11: two frames of 64 bytes a burst");
}

/// M22, M23, M28: the second burst is asked for when the first is on the line, and follows its
/// reservation at once, for the slot chosen before was below t.
#[test]
fn m23_the_next_burst_goes_unsolicited_behind_its_reservation() {
    // Its packets have a tag: four on the first line, the last on the second.
    let at = EXCHANGE + 7 * PACKET + CONTROL + JOURNEY + 5 * TAG;
    let outcome = check(&raw_rack(), &[flow(0, 1, 2, 8 * FULL, Time::ZERO)], &[at]);
    assert_eq!((outcome.count("bursts"), outcome.count("bursts_unsolicited")), (2, 1));
    // With t = 0 it never does.
    let never = Config { unsolicited_below: 0, ..raw_rack() };
    check(&never, &[flow(0, 1, 2, 8 * FULL, Time::ZERO)], &[2 * EXCHANGE + 7 * PACKET + JOURNEY]);
}

/// M23: what was granted long ago is not current. The second message begins a rest after the first.
#[test]
fn m23_an_old_grant_is_not_current() {
    for (pause_us, unsolicited) in [(1, 1), (5, 0)] {
        let second = Time::from_ps(EXCHANGE) + Span::from_us(pause_us);
        let flows = [flow(0, 1, 2, FULL, Time::ZERO), flow(1, 1, 2, FULL, second)];
        let outcome = carry(&single(), &flows);
        assert_eq!(outcome.count("bursts_unsolicited"), unsolicited, "after {pause_us} us");
    }
}

/// M20: three senders of one burst each to one receiver, at once: slots 0, 4 and 8. All are less than
/// an exchange away, so all come together, and wait in the switch. With slots of 400 ns they do not.
#[test]
fn m20_bursts_go_in_their_slots_as_far_as_slots_are_longer_than_the_exchange() {
    let flows: Vec<_> = (0..3u64).map(|n| flow(n, 1 + n as u32, 0, 4 * FULL, Time::ZERO)).collect();
    let first = EXCHANGE + 3 * PACKET + JOURNEY;
    let mut ends: Vec<_> =
        carry(&raw_rack(), &flows).ends.completed.iter().map(|e| e.1.as_ps()).collect();
    ends.sort_unstable();
    assert_eq!(
        ends,
        [6, 7, 8].map(|packets| first + packets * PACKET),
        "twelve packets, interleaved"
    );
    let slot = Span::from_ns(800);
    let long = Config { slot, unsolicited_below: 0, ..raw_rack() };
    // Slots 4 and 8 of 800 ns, from when the switch had the reservation: half an exchange before.
    let later = |slots: u64| slots * slot.as_ps() - EXCHANGE;
    let mut ends: Vec<_> =
        carry(&long, &flows).ends.completed.iter().map(|e| e.1.as_ps()).collect();
    ends.sort_unstable();
    assert_eq!(ends, [first, first + later(4), first + later(8)]);
}

/// M22: a thread has one exchange at a time, whatever its destinations; in the NIC each destination has
/// one.
#[test]
fn m22_one_exchange_a_thread_or_a_destination() {
    let flows = [flow(0, 1, 2, FULL, Time::ZERO), flow(1, 1, 3, FULL, Time::ZERO)];
    let first = EXCHANGE + JOURNEY;
    check(&single(), &flows, &[first, first + EXCHANGE + PACKET]);
    let nic = Config { outstanding: crate::config::Outstanding::Destination, ..raw_rack() };
    // Both reservations go at once, one behind the other; so do both packets.
    check(&nic, &flows, &[first, first + PACKET]);
}

/// M28: the thread that sends asks for its next burst when the last packet of this one goes on the line;
/// another thread does as soon as the grant is there.
#[test]
fn m28_another_thread_asks_for_the_next_burst_before_this_one_is_out() {
    let same = Config { unsolicited_below: 0, ..raw_rack() };
    let handling = crate::config::GrantHandling::Async;
    let other = Config { grant_handling: handling, ..same.clone() };
    let flows = [flow(0, 1, 0, 20 * FULL, Time::ZERO)];
    check(&same, &flows, &[5 * EXCHANGE + 19 * PACKET + JOURNEY]);
    check(&other, &flows, &[5 * EXCHANGE + 3 * PACKET + JOURNEY]);
}

/// M29: acknowledgments are reserved, or are not.
#[test]
fn m29_acknowledgments_may_go_unreserved() {
    let tcp = steady();
    let free =
        Config { acknowledgments: crate::config::Acknowledgments::Unreserved, ..tcp.clone() };
    let flows = [flow(0, 1, 0, 100_000, Time::ZERO)];
    let [reserved, unreserved] = [&tcp, &free].map(|config| carry(config, &flows));
    let packets = 100_000u64.div_ceil(1_448);
    assert_eq!(unreserved.count("burst_packets"), packets);
    // Beside data: a SYN, a SYN-ACK, and an acknowledgment of each packet.
    assert_eq!(reserved.count("burst_packets"), 2 * packets + 2);
}

/// M18, I14: an exchange waits for the packet that a line has begun, at the NIC and at the switch, and for
/// other control frames; for no data, whatever priority the transport above gives it.
#[test]
fn m18_i14_control_frames_wait_for_no_data() {
    let mut urgent = ::transports::uncontrolled::Config::default();
    urgent.stream.priority = 0;
    let homa = ::transports::homa::Config::default();
    for transport in [raw(), Transport::Uncontrolled(urgent), Transport::Homa(homa)] {
        let name = transport.name();
        // Long bursts, which collide at the switch; of messages, for Homa, of its highest priority.
        let config = Config { transport, burst_packets: 16, ..steady() };
        let mut flows = incast(5, 600, FULL);
        flows
            .extend((0..200u64).map(|n| flow(5_000 + n, 0, 1 + (n % 5) as u32, 9_000, Time::ZERO)));
        let outcome = carry(&config, &flows);
        let found = outcome.rack.details().get("exchange_max_seconds").and_then(Value::as_f64);
        // At each line a packet, and a frame of each thread of the host that it leads to or from, and
        // of those that answer it.
        let most = EXCHANGE + 2 * (PACKET + TAG) + 4 * u64::from(config.threads) * CONTROL;
        let found = found.expect("a number") * 1e12;
        assert!(found <= most as f64, "{name}: {found} ps, above {most}");
    }
}
