//! Remote memory over real switches, against closed forms and its invariants.

use std::sync::Arc;

use kernel::{Bytes, Rate, Span, Time, mix64};
use proptest::prelude::*;

use super::open_loop::{End, Issue, OpenLoop, Traffic, achieved, latencies};
use super::{Access, Failure, Kind, TERMINALS};
use crate::cells::rma::Status;
use crate::config::{Pcie, Rma, Software};
use crate::endpoints::Both;
use crate::ip;
use crate::link::classes::{CellKind, Half};
use crate::raw::Pattern;
use crate::switch::cell::Cell;
use crate::switch::settings::Settings;
use crate::switch::{Endpoints, Posted, Switches};
use crate::tables::{Condition, compute::compute};
use crate::topology::{Fibres, Shape, Topology};
use crate::turns::TurnTable;

type Host = (u16, usize);

/// The switches of some TiNs, with memory and nothing to do.
fn part(
    (shape, fibres): (&Shape, Fibres),
    settings: &Settings,
    rma: &Rma,
    own: &[u16],
) -> Switches<OpenLoop> {
    assert_eq!(rma.check(), []);
    let topology = Topology::new(shape, fibres).unwrap();
    let tables = Arc::new(compute(&topology, &TurnTable::P1, &Condition::healthy(&topology)));
    let open_loop = OpenLoop::new(shape, rma, own, settings.switch.hops, 1);
    Switches::new(&topology, tables, Arc::new(settings.clone()), own, 1, open_loop)
}

fn clique(shape: &Shape, fibres: Fibres, settings: &Settings, rma: &Rma) -> Switches<OpenLoop> {
    part((shape, fibres), settings, rma, &(0..shape.tins()).collect::<Vec<_>>())
}

fn tiny(rma: &Rma) -> Switches<OpenLoop> {
    clique(&Shape::TINY, Fibres::Metres(30), &Settings::default(), rma)
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// One operation more, as `change` makes it.
fn ask(
    clique: &mut Switches<OpenLoop>,
    (from, to): (Host, Host),
    (kind, length): (Kind, u32),
    at: Time,
    change: impl FnOnce(Access) -> Access,
) {
    clique.act(from.0, Time::ZERO, |open_loop, wishes| {
        let access = change(open_loop.access(to, kind, length));
        open_loop.ask(Issue { from, access, at, end: None }, wishes);
    });
}

fn read(clique: &mut Switches<OpenLoop>, ends: (Host, Host), length: u32, at: Time) {
    ask(clique, ends, (Kind::Read, length), at, |access| access);
}

/// Runs to the end: nothing may be left anywhere, and each operation has ended in one way (I61).
fn finish(clique: &mut Switches<OpenLoop>) {
    clique.run(Time::NEVER);
    let open_loop = clique.endpoints();
    open_loop.engine().check_home().unwrap();
    clique.check_home().unwrap();
    let counts = open_loop.counts();
    assert_eq!(counts.operations, open_loop.issues().len() as u64);
    assert_eq!(counts.done + counts.failed, counts.operations);
    assert!(open_loop.issues().iter().all(|issue| issue.end.is_some()));
}

/// A cell alone, from its way into a switch until its last bit is out of another: 40 ns a switch, 30 more on a fibre of
/// 100 m and its 500, 5 on copper, 20 to the endpoint, and the wire at 25 Gbps (I11).
fn crossing(links: u64, is_far: bool, bytes: u64) -> u64 {
    let far = if is_far { 530_000 } else { 0 };
    links * 40_000 + (links - u64::from(is_far)) * 5_000 + far + 20_000 + bytes * 320
}

/// X06, X08, I62, M503, M513: a read of one response takes two cells, one each way, and to the picosecond what they and
/// the hosts' buses take: 250 ns until the hardware has it, 100 in the target, 600 for its memory, 50 for landing
/// and 350 until software knows.
#[test]
fn x06_x08_i62_a_read_alone_crosses_twice() {
    let (shape, rma) = (Shape::MINI, Rma::default());
    // What was granted and what was sent is not told again (M216): the ordered sets of that keep a few of the reads back.
    let mut settings = Settings::default();
    settings.link.refresh = Span::from_us(1_000_000);
    let mut clique = clique(&shape, Fibres::Metres(100), &settings, &rma);
    for to in 1..shape.tins() {
        read(&mut clique, ((0, 0), (to, 1)), 128, us(10 * u64::from(to)));
    }
    finish(&mut clique);
    assert_eq!(clique.counts().delivered, 2 * (u64::from(shape.tins()) - 1), "I62");
    let mut longest = 0;
    for (to, issue) in (1..).zip(clique.endpoints().issues()) {
        let is_far = shape.split(to).0 != 0;
        let expected = |out: u64, back: u64| {
            let there = 250_000 + crossing(out, is_far, 48);
            // Cells go at cycles.
            let read = (there + 100_000 + 600_000_u64).next_multiple_of(2_500);
            read + crossing(back, is_far, 160) + 50_000 + 350_000
        };
        let took = issue.execution().unwrap().as_ps();
        let ways = (1..=3).flat_map(|out| (1..=3).map(move |back| (out, back)));
        let way = ways.into_iter().find(|&(out, back)| took == expected(out, back));
        let way = way.unwrap_or_else(|| panic!("to {to}: {took} ps"));
        longest += u32::from(way == (3, 3) && is_far);
    }
    assert!(longest > 10, "{longest} with three links each way");
}

/// M510: a write of one response takes four cells: an offer, a request for its bytes, these, and the end; and what the
/// target takes for two requests, and both for landing.
#[test]
fn m510_a_write_alone_crosses_four_times() {
    let mut clique =
        clique(&Shape::MINI, Fibres::Metres(100), &Settings::default(), &Rma::default());
    for to in 4..68 {
        let (ends, what) = (((0, 0), (to, 1)), (Kind::Write, 128));
        ask(&mut clique, ends, what, us(10 * u64::from(to)), |access| access);
    }
    finish(&mut clique);
    assert_eq!(clique.counts().delivered, 4 * 64);
    let fixed = 250_000 + 100_000 + 100_000 + 600_000 + 50_000 + 50_000 + 350_000;
    let sum =
        |links| [48, 48, 160, 16].map(|bytes| crossing(links, true, bytes)).iter().sum::<u64>();
    for issue in clique.endpoints().issues() {
        let took = issue.execution().unwrap().as_ps();
        let (low, high) = (fixed + sum(1), fixed + sum(3) + 3 * 2_500 + 4 * 3 * 2_560);
        assert!((low..=high).contains(&took), "{took} ps; {low} to {high}");
    }
}

/// X06: 4 KB across pods in 3 to 5 us, of which the fabric takes 2 to 3.5; within what the bus lets its 32 responses
/// follow each other and what one fibre of 25 Gbps does.
#[test]
fn x06_four_kilobytes_across_pods_take_four_microseconds() {
    let (shape, rma) = (Shape::MINI, Rma::default());
    let mut clique = clique(&shape, Fibres::Metres(100), &Settings::default(), &rma);
    for to in 4..shape.tins() {
        read(&mut clique, ((0, 0), (to, 0)), 4_096, us(10 * u64::from(to)));
    }
    finish(&mut clique);
    let times = latencies(clique.endpoints().issues(), Time::ZERO, Time::NEVER);
    let fixed = 250 + 100 + 600 + 50 + 350;
    let ns = |ns: u64| Span::from_ns(ns);
    let least = ns(fixed + 600 + 646 + 305);
    let most = ns(fixed + 686 + 732 + 3 + 31 * 52 + 1_300);
    assert!(times[0] > least && *times.last().unwrap() < most, "{} to {}", times[0], times[63]);
    let median = times[times.len() / 2];
    assert!((Span::from_us(3)..Span::from_us(5)).contains(&median), "{median}");
    let fabric = median - ns(1_200);
    assert!((ns(2_000)..ns(3_500)).contains(&fabric), "{fabric}");
}

/// What a host's memory holds at first.
fn pattern((tin, host): Host, length: usize) -> Vec<u8> {
    let seed = u64::from(tin) << 33 | (host as u64) << 32;
    (0..length as u64).map(|at| mix64(seed | at) as u8).collect()
}

/// Room of one operation, and where own ends of operations begin.
const STEP: usize = 9_216;
const LOCAL: usize = 30 * STEP;

/// A drawn operation: who, whom, whether it writes, how much, when in ns.
type Drawn = (u16, u16, bool, u32, u64);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let one = (0..36u16, 0..36u16, any::<bool>(), 1..=9_000u32, 0..20_000u64);
    prop::collection::vec(one, 1..30)
}

fn host(number: u16) -> Host {
    (number / 2, usize::from(number % 2))
}

/// Does all of it, every operation with memory of its own at both ends, and compares all memory with what copies make.
fn copy_all(clique: &mut Switches<OpenLoop>, drawn: &[Drawn]) {
    let hosts: Vec<Host> = (0..36).map(host).collect();
    let mut model: Vec<_> = hosts.iter().map(|&host| pattern(host, LOCAL + 30 * STEP)).collect();
    for (&(tin, host), bytes) in hosts.iter().zip(&model) {
        let memory = clique.endpoints_mut().engine_mut().memory(tin, host);
        memory.fill(bytes.len());
        memory.bytes_mut().copy_from_slice(bytes);
    }
    let mut drawn = drawn.to_vec();
    drawn.sort_by_key(|one| one.4);
    for (number, &(from, to, is_write, length, ns)) in drawn.iter().enumerate() {
        let kind = if is_write { Kind::Write } else { Kind::Read };
        let (offset, local) = (number * STEP, LOCAL + number * STEP);
        let at = Time::ZERO + Span::from_ns(ns);
        let place = |access| Access { offset: offset as u64, local: local as u64, ..access };
        ask(clique, (host(from), host(to)), (kind, length), at, place);
        let (from, to, length) = (usize::from(from), usize::from(to), length as usize);
        match is_write {
            true => {
                let bytes = model[from][local..local + length].to_vec();
                model[to][offset..offset + length].copy_from_slice(&bytes);
            }
            false => {
                let bytes = model[to][offset..offset + length].to_vec();
                model[from][local..local + length].copy_from_slice(&bytes);
            }
        }
    }
    finish(clique);
    for (&(tin, host), bytes) in hosts.iter().zip(&model) {
        let memory = clique.endpoints_mut().engine_mut().memory(tin, host);
        assert!(memory.bytes() == bytes, "the memory of host {host} of TiN {tin} differs");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// I60, I61, M505 to M510: what is read is what was there, and what is written is what is there, whatever comes in
    /// whatever order; the window holds, and all of it comes home.
    #[test]
    fn slow_i60_i61_memory_is_what_was_read_and_written(
        drawn in drawn(),
        window in 1..=4u64,
        is_small: bool,
        queue in 4..=12u32,
        slots in 1..=6u16,
        half: bool,
    ) {
        let rma = Rma {
            half: if half { Half::Bulk } else { Half::LowLatency },
            payload: Bytes::new(if is_small { 64 } else { 128 }),
            window: Bytes::new(4_096 * window),
            pcie: Pcie { reads: Bytes::new(4_096 * window), ..Pcie::default() },
            queue,
            slots,
            ..Rma::default()
        };
        let mut clique = tiny(&rma);
        copy_all(&mut clique, &drawn);
        let counts = clique.endpoints().counts();
        prop_assert_eq!(counts.done, counts.operations);
        prop_assert!(u64::from(counts.asked_max) <= rma.window.get(), "I60: {}", counts.asked_max);
        let wrong = (counts.stale, counts.strays, counts.unreadable, counts.late);
        prop_assert_eq!(wrong, (0, 0, 0, 0));
        let bytes: u64 = drawn.iter().map(|one| u64::from(one.3)).sum();
        prop_assert_eq!(counts.done_bytes, bytes);
    }

    /// I61, I64, M511: whatever bit errors lose, everything is done in the end, once, and memory is right; nothing
    /// leaks.
    #[test]
    fn slow_i61_i64_m511_what_is_lost_is_tried_again(drawn in drawn(), rate in 1e-7..3e-6f64) {
        let mut settings = Settings::default();
        settings.link.local_bit_error_rate = rate;
        settings.link.global_bit_error_rate = rate;
        let software = Software { retries: 100, backoff: Span::from_us(2), ..Software::default() };
        let rma = Rma { deadline: Span::from_us(30), software, ..Rma::default() };
        let mut clique = clique(&Shape::TINY, Fibres::Metres(30), &settings, &rma);
        copy_all(&mut clique, &drawn);
        let counts = clique.endpoints().counts();
        prop_assert_eq!(counts.failed, 0);
        prop_assert_eq!(counts.late, counts.retries);
        let lost = clique.counts().header_errors + clique.counts().payload_errors;
        prop_assert!(counts.late == 0 || lost > 0);
    }

    /// M110, I61, I64: cells that nobody sent, with whatever in them, in the midst of real ones: nothing breaks, every
    /// operation ends, nothing is left.
    #[test]
    fn i61_forged_cells_break_nothing(
        drawn in drawn(),
        forged in prop::collection::vec(
            (0..36u16, 4..8u8, any::<u16>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..60)),
            1..60,
        ),
        near: bool,
    ) {
        let rma = Rma { deadline: Span::from_us(50), ..Rma::default() };
        let mut clique = tiny(&rma);
        for &(from, to, is_write, length, ns) in &drawn {
            let kind = if is_write { Kind::Write } else { Kind::Read };
            let at = Time::ZERO + Span::from_ns(ns % 4_000);
            ask(&mut clique, (host(from), host(to)), (kind, length), at, |access| access);
        }
        for (number, (to, kind, from, word, rest)) in forged.iter().enumerate() {
            // Some that look like what is under way: the first slots, their first uses, the first offsets.
            let word = if near { word & 0x1001_0003_0001_0100_u64 | 0x10 << 8 } else { *word };
            let rest = if near && *kind == 4 { &[0; 32][..] } else { &rest[..] };
            let at = Time::ZERO + Span::from_ns(200 * number as u64);
            clique.run(at);
            let (tin, number) = host(*to);
            clique.act(tin, at, |open_loop, wishes| {
                let own = open_loop.engine().address(tin, number);
                let from = if near { open_loop.engine().address(from % 18, 0) } else { *from };
                let cell = Cell::new(from, own, 2, *kind, 6, 3).with_payload(word);
                let cell = wishes.enclose(cell, rest);
                // A kind that is none of memory's would fail an assertion.
                open_loop.engine_mut().deliver(tin, TERMINALS[number].0, &cell, at, wishes);
            });
        }
        clique.run(Time::NEVER);
        let open_loop = clique.endpoints();
        open_loop.engine().check_home().map_err(TestCaseError::fail)?;
        prop_assert_eq!(open_loop.counts().done + open_loop.counts().failed, drawn.len() as u64);
    }

    /// With everything through its bytes, and by two parts that exchange nothing but what is on links: the same.
    #[test]
    fn slow_bytes_and_parts_change_nothing(drawn in drawn(), cut: u64) {
        let whole = run_parts(&drawn, |_| 0, false);
        prop_assert_eq!(&run_parts(&drawn, |_| 0, true), &whole);
        prop_assert_eq!(&run_parts(&drawn, |tin| (cut >> tin & 1) as usize, false), &whole);
    }
}

/// What becomes of operations in a Clique in two parts.
fn run_parts(
    drawn: &[Drawn],
    part_of: impl Fn(u16) -> usize,
    is_wire: bool,
) -> Vec<(Host, Access, Option<End>)> {
    let shape = Shape::TINY;
    let mut parts = [0, 1].map(|number| {
        let own: Vec<u16> = (0..shape.tins()).filter(|&tin| part_of(tin) == number).collect();
        let clique = (&shape, Fibres::Metres(30));
        let mut part = part(clique, &Settings::default(), &Rma::default(), &own);
        part.set_wire(is_wire);
        part
    });
    let mut drawn = drawn.to_vec();
    drawn.sort_by_key(|one| one.4);
    for &(from, to, is_write, length, ns) in &drawn {
        let kind = if is_write { Kind::Write } else { Kind::Read };
        let at = Time::ZERO + Span::from_ns(ns);
        let own = &mut parts[part_of(host(from).0)];
        ask(own, (host(from), host(to)), (kind, length), at, |access| access);
    }
    // No message is due before ten cycles after it was sent.
    while let Some(next) = parts.iter().filter_map(|part| part.next()).min() {
        let end = next + Span::from_ns(25);
        let mut posted: Vec<Posted> = Vec::new();
        for part in &mut parts {
            part.run(end);
            posted.extend(part.posted());
        }
        posted.iter().for_each(|posted| parts[part_of(posted.tin)].take(posted));
    }
    let mut ends = Vec::new();
    for part in &parts {
        part.check_home().unwrap();
        part.endpoints().engine().check_home().unwrap();
        let of = |issue: &Issue| (issue.from, Access { handle: 0, ..issue.access }, issue.end);
        ends.extend(part.endpoints().issues().iter().map(of));
    }
    ends.sort_by_key(|(from, access, end)| (*from, access.to, access.length, format!("{end:?}")));
    ends
}

/// M510: what many add to one word is all added, each finding what others had left; and who compares and swaps knows.
#[test]
fn m510_atomic_operations_are_one_after_another() {
    let mut clique = tiny(&Rma::default());
    let word = |access| Access { offset: 64, ..access };
    for number in 0..36 {
        let at = Time::ZERO + Span::from_ns(number * 13 % 100);
        let add = (Kind::FetchAndAdd(1), 8);
        ask(&mut clique, (host(number as u16), (5, 0)), add, at, word);
    }
    for new in 100..110 {
        let swap = (Kind::CompareAndSwap { expected: 36, new }, 8);
        ask(&mut clique, (host(new as u16 - 100), (5, 0)), swap, us(20), word);
    }
    finish(&mut clique);
    let value = |issue: &Issue| match issue.end {
        Some(End::Done { value, .. }) => value,
        end => panic!("{end:?}"),
    };
    let issues = clique.endpoints().issues();
    let mut added: Vec<u64> = issues[..36].iter().map(value).collect();
    added.sort_unstable();
    assert_eq!(added, (0..36).collect::<Vec<_>>());
    let swapped: Vec<u64> = issues[36..].iter().map(value).collect();
    assert_eq!(swapped.iter().filter(|&&old| old == 36).count(), 1, "{swapped:?}");
    let first = swapped.iter().find(|&&old| old != 36).unwrap();
    assert!(swapped.iter().all(|old| old == first || *old == 36), "{swapped:?}");
}

/// I63, M506, M515: what may not be reached is refused at once, and software is told why.
#[test]
fn i63_m506_refusals_come_back() {
    let mut clique = tiny(&Rma::default());
    let ends = ((0, 0), (9, 1));
    let all = (Kind::Read, 10_000);
    ask(&mut clique, ends, all, us(1), |mut access| {
        access.grant.secret[0] ^= 1;
        access
    });
    ask(&mut clique, ends, all, us(1), |access| Access { offset: 1 << 30, ..access });
    ask(&mut clique, ends, (Kind::Write, 10_000), us(1), |access| Access {
        offset: 1 << 30,
        ..access
    });
    clique.run(us(10));
    clique.endpoints_mut().engine_mut().memory(9, 1).revoke(0);
    ask(&mut clique, ends, all, us(20), |access| access);
    ask(&mut clique, ((0, 0), (9, 0)), all, us(20), |access| access);
    finish(&mut clique);
    let refused = |status| Some(End::Failed(Failure::Refused(status)));
    let ends: Vec<_> = clique.endpoints().issues().iter().map(|issue| issue.end).collect();
    let expected =
        [Status::BadTag, Status::OutOfBounds, Status::OutOfBounds, Status::NoRegion].map(refused);
    assert_eq!(ends[..4], expected);
    assert!(matches!(ends[4], Some(End::Done { .. })), "another's memory is as it was");
}

/// I64, M511: what has not come by its deadline has failed; what comes later is known to be late, and the slot's next
/// uses are not harmed.
#[test]
fn i64_late_responses_are_known() {
    let software = Software { retries: 0, ..Software::default() };
    let rma = Rma { deadline: Span::from_us(10), slots: 1, software, ..Rma::default() };
    let mut clique = tiny(&rma);
    // 256 KB take 20 us of the bus.
    (0..3).for_each(|number| read(&mut clique, ((0, 0), (9, 0)), 256 << 10, us(1 + number)));
    read(&mut clique, ((0, 0), (12, 0)), 4_096, us(2));
    finish(&mut clique);
    let counts = clique.endpoints().counts();
    assert_eq!((counts.late, counts.failed, counts.done, counts.strays), (3, 3, 1, 0));
    assert!(counts.stale > 300, "{counts:?}");
}

/// All other hosts of the smallest Clique read of one, at once: the bytes a second that it answers with, the median
/// execution latency of the later half, and the counts.
fn incast(rma: &Rma, each: u64) -> (f64, Span, super::Counts) {
    let mut clique = tiny(rma);
    let others = (1..36).map(host).flat_map(|from| (0..each).map(move |_| from));
    others.for_each(|from| read(&mut clique, (from, (0, 0)), 4_096, us(1)));
    finish(&mut clique);
    let end = |issue: &Issue| match issue.end {
        Some(End::Done { at, .. }) => (at, issue.execution()),
        end => panic!("{end:?}"),
    };
    let mut ends: Vec<_> = clique.endpoints().issues().iter().map(end).collect();
    ends.sort_unstable();
    let bytes = ends.len() as f64 * 4_096.0;
    let rate = bytes / (ends.last().unwrap().0 - us(1)).as_seconds();
    let mut later: Vec<_> = ends[ends.len() / 2..].iter().map(|end| end.1.unwrap()).collect();
    later.sort_unstable();
    (rate, later[later.len() / 2], clique.endpoints().counts())
}

/// M506, M111: a full queue of requests holds others back in the fabric, nothing is lost, and the host is as busy as if
/// they all waited with it.
#[test]
fn m506_full_queues_hold_requests_back() {
    let software = Software { target: Span::from_us(1_000), ..Software::default() };
    let (rate, _, counts) =
        incast(&Rma { queue: 8, software: software.clone(), ..Rma::default() }, 16);
    assert_eq!((counts.done, counts.late), (35 * 16, 0), "{counts:?}");
    // What had left the switch when its ports were told to wait still comes.
    assert!((8..8 + 16).contains(&counts.queue_max), "{counts:?}");
    let (long, _, counts) = incast(&Rma { queue: 1_024, software, ..Rma::default() }, 16);
    assert!(counts.queue_max > 500, "{counts:?}");
    assert!(
        rate > 0.97 * long && rate < 13e9,
        "{rate} B/s with a short queue, {long} with a long one"
    );
}

/// U37: software that looks at delay asks less at a time of a host that all others ask, so that what it asks for is
/// answered sooner, and the host is nearly as busy.
#[test]
fn slow_u37_software_holds_back_what_would_wait() {
    let keys = Software { target: Span::from_us(1_000), ..Software::default() };
    let (free_rate, free, _) = incast(&Rma { software: keys, ..Rma::default() }, 48);
    let (rate, held, counts) = incast(&Rma::default(), 48);
    assert!(held < free / 4, "{held} instead of {free}");
    assert!(rate > 0.85 * free_rate, "{rate} B/s of {free_rate}");
    assert_eq!(counts.late, 0);
}

/// Lets some hosts of a Clique ask each other at a rate.
fn offer(clique: &mut Switches<OpenLoop>, traffic: Traffic, hosts: &[Host]) {
    for tin in 0..Shape::MINI.tins() {
        clique.act(tin, Time::ZERO, |open_loop, wishes| {
            open_loop.set_traffic(traffic, hosts.to_vec());
            open_loop.begin(tin, wishes);
        });
    }
}

/// X02: reads of 4 KB, uniform, 30 Gbps a host: all of it is carried, within 10 us.
#[test]
fn slow_x02_uniform_reads_take_less_than_ten_microseconds() {
    let mut clique =
        clique(&Shape::MINI, Fibres::Metres(30), &Settings::default(), &Rma::default());
    let until = us(60);
    let hosts: Vec<Host> = (0..136).map(host).collect();
    let (length, rate) = (4_096, Rate::from_gbps(30));
    offer(&mut clique, Traffic { kind: Kind::Read, length, rate, half: None, until }, &hosts);
    finish(&mut clique);
    let issues = clique.endpoints().issues();
    let times = latencies(issues, us(20), until);
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    assert!(p99 < Span::from_us(10) && median > Span::from_us(2), "{median}, {p99}");
    let carried = achieved(issues, us(20), until).as_bps() as f64 / (136.0 * 30e9);
    assert!((carried - 1.0).abs() < 0.05, "{carried}");
}

/// X30, X03, M512: remote memory in the fast half beside bulk packets of IP at the same TiNs: what each offers is
/// carried, and reads are late by a cell or two a hop at most.
#[test]
fn slow_x30_memory_and_bulk_packets_share_a_fabric() {
    let run = |has_bulk: bool| {
        let (shape, until) = (Shape::MINI, us(50));
        let topology = Topology::new(&shape, Fibres::Metres(30)).unwrap();
        let tables = Arc::new(compute(&topology, &TurnTable::P1, &Condition::healthy(&topology)));
        let settings = Arc::new(Settings::default());
        let (own, hops): (Vec<u16>, u8) = ((0..shape.tins()).collect(), settings.switch.hops);
        let both = Both {
            ip: ip::open_loop::OpenLoop::new(&shape, &crate::config::Ip::default(), hops, 1),
            memory: OpenLoop::new(&shape, &Rma::default(), &own, hops, 1),
        };
        let mut clique = Switches::new(&topology, tables, settings, &own, 1, both);
        let bulk = ip::open_loop::Traffic {
            pattern: Pattern::Uniform,
            length: 4_160,
            class_of_service: 1,
            rate: Rate::from_gbps(20),
            until,
        };
        let hosts: Vec<Host> = (0..136).map(host).collect();
        let rate = Rate::from_gbps(2);
        let reads = Traffic { kind: Kind::Read, length: 4_096, rate, half: None, until };
        for tin in own {
            clique.act(tin, Time::ZERO, |both, wishes| {
                if has_bulk {
                    both.ip.set_traffic(bulk);
                    both.ip.begin(tin, wishes);
                }
                both.memory.set_traffic(reads, hosts.clone());
                both.memory.begin(tin, wishes);
            });
        }
        clique.run(Time::NEVER);
        clique.check_home().unwrap();
        let both = clique.endpoints();
        both.memory.engine().check_home().unwrap();
        both.ip.engine().check_home().unwrap();
        assert_eq!(both.ip.counts().delivered, both.ip.counts().packets);
        assert_eq!(both.memory.counts().done, both.memory.counts().operations);
        let times = latencies(both.memory.issues(), us(10), until);
        [times[times.len() / 2], times[times.len() * 99 / 100]]
    };
    let (alone, beside) = (run(false), run(true));
    for (alone, beside) in alone.into_iter().zip(beside) {
        assert!(beside < alone + Span::from_ns(600), "{beside} beside bulk, {alone} alone");
    }
    let kinds = [CellKind::Req, CellKind::Resp];
    assert!(kinds.iter().all(|kind| kind.class(Half::LowLatency) < 5));
}
