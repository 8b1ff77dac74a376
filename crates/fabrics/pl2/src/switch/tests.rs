//! Algorithm 1 on random traffic, and what the hardware's limits cost against exact schedules.

use kernel::{Span, Time};
use proptest::prelude::*;

use super::ideal::Ideal;
use super::matching::Matching;
use super::registers::{Operation, Registers};
use super::*;
use crate::wire::Tag;
use crate::wire::tag::Place;

const SLOT: Span = Span::from_ps(123_040);

fn settings(ports: u32, accounting: Accounting) -> Settings {
    Settings {
        ports,
        drop_above: 100,
        accounting,
        decrement: Decrement::Ingress,
        increment: 1,
        pairs: 0,
    }
}

/// A burst as one of the tests below asks for it.
#[derive(Clone, Copy, Debug)]
struct Demand {
    between: Between,
    slots: u16,
}

fn demands(ports: u32, most: usize) -> impl Strategy<Value = Vec<Demand>> {
    let one = (0..ports, 0..ports, 1u16..=4).prop_map(|(input, output, slots)| Demand {
        between: Between { input, output, pair: 0 },
        slots,
    });
    prop::collection::vec(one, 1..most)
}

/// The slots granted to each demand, input and output, nothing sent in between.
fn granted(pipeline: &mut Pipeline, demands: &[Demand]) -> Vec<(u32, u32)> {
    let grant =
        |demand: &Demand| match pipeline.process(Header::Reserve(demand.slots), demand.between) {
            Outcome::Grant { send_slot, receive_slot, .. } => (send_slot, receive_slot),
            other => panic!("{other:?} for a reservation"),
        };
    demands.iter().map(grant).collect()
}

/// The earliest slot from which a run is free at both ports: by trying all, on plain tables.
fn earliest_fit(demands: &[Demand], ports: u32) -> Vec<u32> {
    let mut taken = vec![[vec![false; 2_000], vec![false; 2_000]]; ports as usize];
    let mut starts = Vec::new();
    for demand in demands {
        let (input, output) = (demand.between.input as usize, demand.between.output as usize);
        let length = usize::from(demand.slots);
        let is_free = |start: &usize| {
            (*start..start + length).all(|slot| !taken[input][0][slot] && !taken[output][1][slot])
        };
        let start = (0..1_900).find(is_free).expect("there is room");
        (start..start + length).for_each(|slot| {
            taken[input][0][slot] = true;
            taken[output][1][slot] = true;
        });
        starts.push(start as u32);
    }
    starts
}

/// Whether two bursts are for the same input or output.
fn shares(one: &Demand, other: &Demand) -> bool {
    one.between.input == other.between.input || one.between.output == other.between.output
}

/// The longest queue, in packets, of an output to which packets come in these slots, one leaving each.
fn backlog(arrivals: &[(u32, u16)]) -> u32 {
    let last = arrivals.iter().map(|&(start, slots)| start + u32::from(slots)).max().unwrap_or(0);
    let (mut queue, mut longest) = (0u32, 0);
    for slot in 0..last {
        let come =
            arrivals.iter().filter(|&&(start, n)| (start..start + u32::from(n)).contains(&slot));
        queue += come.count() as u32;
        longest = longest.max(queue);
        queue = queue.saturating_sub(1);
    }
    longest
}

proptest! {
    /// I03: what is reserved is what was asked for and has not come, and nothing is left at the end.
    #[test]
    fn i03_counters_are_what_was_asked_for_less_what_came(
        demands in demands(5, 60),
        order in any::<u64>(),
    ) {
        let mut pipeline = Pipeline::new(settings(5, Accounting::Flagged));
        let mut owed = vec![0u64; demands.len()];
        let mut chance = kernel::Stream::new(order, "test", 0);
        let (mut next, mut left) = (0, 0);
        while next < demands.len() || left > 0 {
            let may_send: Vec<_> = (0..next).filter(|&index| owed[index] > 0).collect();
            if may_send.is_empty() || (next < demands.len() && chance.below(2) == 0) {
                pipeline.process(Header::Reserve(demands[next].slots), demands[next].between);
                owed[next] = demands[next].slots.into();
                left += owed[next];
                next += 1;
            } else {
                let index = may_send[chance.below(may_send.len() as u64) as usize];
                let outcome = pipeline.process(Header::Data(None), demands[index].between);
                prop_assert_eq!(outcome, Outcome::Forward);
                owed[index] -= 1;
                left -= 1;
            }
            for port in 0..5 {
                let at = |side: fn(&Between) -> u32| -> u64 {
                    let here = demands.iter().zip(&owed).filter(|(d, _)| side(&d.between) == port);
                    here.map(|(_, &owed)| owed).sum()
                };
                prop_assert_eq!(u64::from(pipeline.input().get(port)), at(|b| b.input));
                prop_assert_eq!(u64::from(pipeline.output().get(port)), at(|b| b.output));
            }
        }
        prop_assert_eq!(pipeline.input().sum() + pipeline.output().sum(), 0);
        prop_assert_eq!(pipeline.input().underflows, 0);
    }

    /// I06, I09, and the line rate: grants of one port follow each other without gap or overlap.
    #[test]
    fn i06_i09_grants_of_a_port_are_disjoint_and_in_order(demands in demands(6, 80)) {
        let mut pipeline = Pipeline::new(settings(6, Accounting::Flagged));
        let slots = granted(&mut pipeline, &demands);
        for port in 0..6 {
            let (mut at_input, mut at_output) = (0, 0);
            for (demand, &(send, receive)) in demands.iter().zip(&slots) {
                if demand.between.input == port {
                    prop_assert_eq!(send, at_input);
                    at_input += u32::from(demand.slots);
                }
                if demand.between.output == port {
                    prop_assert_eq!(receive, at_output);
                    at_output += u32::from(demand.slots);
                }
            }
        }
    }

    /// Grants of an output are never above its line's rate: where each packet comes in its slot, the kth
    /// since the output was idle comes k slots after that, at the earliest, whenever they were asked for.
    #[test]
    fn i06_grants_of_an_output_are_never_above_line_rate(
        demands in prop::collection::vec((1u16..=16, 0u64..9_000), 1..60),
    ) {
        // A thousandth of a slot is the unit of time.
        let count = demands.len() as u32;
        let mut pipeline = Pipeline::new(settings(count, Accounting::Flagged));
        let (mut now, mut idle_at, mut came) = (0, 0, 0);
        let mut coming: Vec<(u64, u32)> = Vec::new();
        for (input, (slots, gap)) in (0..).zip(demands.into_iter().chain([(1, 1_000_000)])) {
            now += gap;
            coming.sort_unstable();
            let ripe = coming.partition_point(|&(at, _)| at <= now);
            for (at, from) in coming.drain(..ripe) {
                pipeline.process(Header::Data(None), Between { input: from, output: 0, pair: 0 });
                came += 1;
                prop_assert!(at >= idle_at + 1_000 * came, "packet {came} comes at {at}");
            }
            if input == count {
                break;
            }
            if coming.is_empty() {
                (idle_at, came) = (now, 0);
            }
            let between = Between { input, output: 0, pair: 0 };
            let Outcome::Grant { send_slot, receive_slot, .. } =
                pipeline.process(Header::Reserve(slots), between)
            else {
                panic!("every reservation is granted");
            };
            let first = u64::from(send_slot.max(receive_slot));
            coming.extend((1..=u64::from(slots)).map(|k| (now + 1_000 * (first + k), input)));
        }
        prop_assert_eq!(pipeline.output().get(0), 0);
    }

    /// M11: the bitmaps find what trying all slots finds.
    #[test]
    fn m11_matching_is_the_earliest_fit(demands in demands(5, 40)) {
        let mut matching = Matching::new(5, SLOT, Span::ZERO);
        let found: Vec<_> = demands
            .iter()
            .map(|demand| matching.reserve(Time::ZERO, demand.slots, demand.between))
            .collect();
        prop_assert_eq!(found, earliest_fit(&demands, 5));
    }

    /// M11: what of it is over does not wait any more, to the slot.
    #[test]
    fn m11_only_slots_to_come_wait(demands in demands(3, 40), later in 0u64..200) {
        let mut matching = Matching::new(3, SLOT, Span::ZERO);
        let mut ends = [Vec::new(), Vec::new(), Vec::new()];
        for demand in &demands {
            let start = matching.reserve(Time::ZERO, demand.slots, demand.between);
            let taken = (start..).take(demand.slots.into());
            ends[demand.between.output as usize].extend(taken.map(|slot| u64::from(slot) + 1));
        }
        let now = Time::ZERO + SLOT * later;
        for (output, ends) in (0..).zip(&ends) {
            let left = ends.iter().filter(|&&end| end > later).count();
            prop_assert_eq!(matching.waiting(now, output) as usize, left);
        }
    }

    /// M11, I13: at random instants, no two bursts of a port are given one slot, by either schedule of
    /// instants.
    #[test]
    fn i13_schedules_of_instants_give_no_slot_twice(
        demands in demands(4, 60),
        gaps in prop::collection::vec(0u64..400_000, 60),
    ) {
        let lead = Span::from_us(1);
        let (mut ideal, mut matching) = (Ideal::new(4, SLOT, lead), Matching::new(4, SLOT, lead));
        let mut now = Time::ZERO;
        let mut bursts: Vec<(Demand, Time)> = Vec::new();
        let mut matched: Vec<(Demand, u64)> = Vec::new();
        for (demand, gap) in demands.iter().zip(gaps) {
            now += Span::from_ps(gap);
            // Matching knows whole slots since the beginning.
            let slots = matching.reserve(now, demand.slots, demand.between);
            let start = now + SLOT * u64::from(slots);
            prop_assert!(start >= now + lead, "sooner than it can come");
            let first = start.as_ps() / SLOT.as_ps();
            let end = first + u64::from(demand.slots);
            for (other, begin) in &matched {
                let apart = begin + u64::from(other.slots) <= first || end <= *begin;
                prop_assert!(!shares(demand, other) || apart, "{demand:?} and {other:?}");
            }
            matched.push((*demand, first));
            let slots = ideal.reserve(now, demand.slots, demand.between);
            let start = now + SLOT * u64::from(slots);
            prop_assert!(start >= now + Span::from_us(1), "sooner than it can come");
            let end = start + SLOT * u64::from(demand.slots);
            for (other, begin) in &bursts {
                let ended = *begin + SLOT * u64::from(other.slots) <= start;
                prop_assert!(!shares(demand, other) || ended || end <= *begin, "{demand:?} and {other:?}");
            }
            bursts.push((*demand, start));
        }
    }

    /// What the two counters cost (M04, M10): a burst goes at the later of two slots, so it may come
    /// when another does. No more wait at an output than came late, and a burst: those that had their
    /// turn there before, and were held up at their own inputs.
    #[test]
    fn m04_collisions_are_bounded_by_what_was_held_up(demands in demands(4, 40)) {
        let mut pipeline = Pipeline::new(settings(4, Accounting::Flagged));
        let slots = granted(&mut pipeline, &demands);
        for output in 0..4 {
            let here = demands.iter().zip(&slots).filter(|(d, _)| d.between.output == output);
            let arrivals: Vec<_> =
                here.clone().map(|(d, &(send, receive))| (send.max(receive), d.slots)).collect();
            let late = here.filter(|(_, (send, receive))| send > receive);
            let late: u32 = late.map(|(d, _)| u32::from(d.slots)).sum();
            let found = backlog(&arrivals);
            prop_assert!(found <= late + 1, "{found} packets wait, {late} came late");
        }
    }

    /// M10: with one slot for both ports nothing waits but the packet that goes.
    #[test]
    fn i13_the_ideal_schedule_has_no_collisions(demands in demands(4, 40)) {
        let mut ideal = Ideal::new(4, SLOT, Span::ZERO);
        let starts: Vec<_> = demands
            .iter()
            .map(|demand| ideal.reserve(Time::ZERO, demand.slots, demand.between))
            .collect();
        for output in 0..4 {
            let here = demands.iter().zip(&starts).filter(|(d, _)| d.between.output == output);
            let arrivals: Vec<_> = here.map(|(d, &start)| (start, d.slots)).collect();
            prop_assert!(backlog(&arrivals) <= 1);
        }
    }
}

/// Where the exact schedule has no choice, PL2's is the same: with one sender, or one receiver.
#[test]
fn a_single_port_is_filled_as_by_the_earliest_fit() {
    for ports in [1, 4] {
        for is_incast in [true, false] {
            let demands: Vec<_> = (0..30u32)
                .map(|number| {
                    let (one, other) = (0, number % ports);
                    let (input, output) = if is_incast { (other, one) } else { (one, other) };
                    Demand {
                        between: Between { input, output, pair: 0 },
                        slots: 1 + (number % 4) as u16,
                    }
                })
                .collect();
            let mut pipeline = Pipeline::new(settings(4, Accounting::Flagged));
            let slots = granted(&mut pipeline, &demands);
            let chosen: Vec<_> = slots.iter().map(|&(send, receive)| send.max(receive)).collect();
            assert_eq!(chosen, earliest_fit(&demands, 4));
        }
    }
}

/// M13: each duplicate that is counted twice leaves the counters too low; to the letter they wrap.
#[test]
fn m13_only_flags_keep_the_counters_right_when_bursts_come_twice() {
    let place = Place { thread: 0, burst: 0, index: 0 };
    let between = Between { input: 0, output: 1, pair: 0 };
    for (accounting, expected) in
        [(Accounting::Flagged, 3), (Accounting::Saturating, 2), (Accounting::Literal, 2)]
    {
        let mut pipeline = Pipeline::new(settings(2, accounting));
        pipeline.process(Header::Reserve(1), between);
        pipeline.process(Header::Reserve(3), between);
        pipeline.process(Header::Data(Some(Tag::Unsolicited(place))), between);
        pipeline.process(Header::Data(Some(Tag::AgainUncounted(place))), between);
        assert_eq!(pipeline.output().get(1), expected, "{accounting:?}");
    }
    // Copies as well as ordinary data; and what is reserved then brings the counter back.
    for tag in [None, Some(Tag::Unsolicited(place))] {
        let mut literal = Pipeline::new(settings(2, Accounting::Literal));
        literal.process(Header::Data(tag), between);
        let below = u32::MAX;
        assert_eq!(literal.output().get(1), below, "one below zero is minutes of slots");
        let Outcome::Grant { send_slot, receive_slot, .. } =
            literal.process(Header::Reserve(4), between)
        else {
            panic!("every reservation is granted");
        };
        assert_eq!((send_slot, receive_slot), (below, below));
        assert_eq!((literal.input().get(0), literal.output().get(1)), (3, 3));
    }
}

/// I03 at the other end: a counter that is full stays so, and what was added is what it took.
#[test]
fn i03_a_full_counter_stays_full_and_is_still_accounted_for() {
    let mut registers = Registers::new(1);
    registers.set(0, u32::MAX - 2);
    for (operation, expected) in [
        (Operation::add(4), u32::MAX),
        (Operation::add(1), u32::MAX),
        (Operation::take(3), u32::MAX - 3),
        (Operation::add(5).wrapping(), 1),
    ] {
        registers.operate(0, operation);
        assert_eq!(registers.get(0), expected, "{operation:?}");
    }
    let Registers { added, taken, .. } = registers;
    assert_eq!(added - taken, (1 << 32) + 1, "all but what went around");
}

/// M07: taken off when it leaves, the counter holds what waits as well.
#[test]
fn m07_at_egress_a_packet_is_counted_until_it_leaves() {
    let at_egress = Settings { decrement: Decrement::Egress, ..settings(2, Accounting::Flagged) };
    let mut pipeline = Pipeline::new(at_egress);
    let between = Between { input: 0, output: 1, pair: 0 };
    pipeline.process(Header::Reserve(2), between);
    pipeline.process(Header::Data(None), between);
    assert_eq!((pipeline.input().get(0), pipeline.output().get(1)), (1, 2));
    pipeline.leaves(None, 1);
    assert_eq!((pipeline.input().get(0), pipeline.output().get(1)), (1, 1));
}

/// M10 as it is printed: both counters set to the larger. The gap at the other port stays for ever.
#[test]
fn m10_counters_set_to_the_larger_keep_slots_that_nobody_uses() {
    let (mut input, mut output) = ([0u32; 2], [0u32; 2]);
    let mut reserve = |from: usize, to: usize, slots: u32| {
        let slot = input[from].max(output[to]);
        (input[from], output[to]) = (slot + slots, slot + slots);
    };
    reserve(0, 0, 4);
    reserve(1, 0, 1);
    // All five packets come, and each takes one off at both of its ports.
    input[0] -= 4;
    input[1] -= 1;
    output[0] -= 5;
    assert_eq!((input, output), ([0, 4], [0, 0]), "node 1 waits for four slots of nothing");
}
