//! Tests of guard band, slots, start and clock loss.

use kernel::Time;
use proptest::prelude::*;
use rack::NodeId;

use super::bootstrap::Event;
use super::protocols::{DTP, DTP_PROTOTYPE, PROTOCOLS, Precision, WHITE_RABBIT};
use super::*;
use crate::clos::hardware::{CLOCK_RECOVERY_FAST, CYCLE_10G, CYCLE_50G};

const fn ps(count: u64) -> Span {
    Span::from_ps(count)
}

/// §7.1: 512 nodes, four channels of 25 Gbps.
fn simulated() -> SlotTiming {
    SlotTiming::new(ps(23_250), ps(2_750), Bytes::ZERO, Rate::from_gbps(25)).unwrap()
}

/// §6.1: 10 Gbps, 12 cycles of which 1 is guard band and 24 B are the MAC's.
fn prototype() -> SlotTiming {
    SlotTiming::new(CYCLE_10G * 12, CYCLE_10G, Bytes::new(24), Rate::from_gbps(10)).unwrap()
}

/// §7.1: "2.5 ns switch reconfiguration delay and 0.25 ns": 0.2 ns of wires and 50 ps of clocks.
fn needed() -> GuardBand {
    GuardBand {
        reconfiguration: ps(2_500),
        propagation_spread: propagation_spread(WIRE_TOLERANCE_DEFAULT),
        synchronisation: WHITE_RABBIT.allowance(CYCLE_50G, 1),
        clock_recovery: Span::ZERO,
    }
}

#[test]
fn s40_the_guard_band_of_the_paper_is_the_sum_of_its_parts() {
    assert_eq!(propagation_spread(WIRE_TOLERANCE_DEFAULT), ps(200));
    assert_eq!(needed().total(), ps(2_750));
    let optical = GuardBand { clock_recovery: CLOCK_RECOVERY_FAST, ..needed() };
    assert_eq!(optical.total(), ps(3_375));
    assert_eq!(Millimetres::new(3_000).propagation(), Span::from_ns(15)); // §3.4: 10 to 15 ns
}

#[test]
fn s41_the_simulated_rack_has_the_slot_of_the_paper() {
    let timing = simulated();
    assert_eq!(timing.usable(), ps(20_500));
    assert_eq!(timing.cell(), Bytes::new(64));
    assert_eq!(slots_per_epoch(512, 4), 128);
    assert_eq!(timing.epoch(128), ps(2_976_000)); // "2.9 us"
    assert!((timing.duty_cycle() - 20.5 / 23.25).abs() < 1e-12); // 88 %, "90 Gbps" of 100
    assert_eq!(timing.gap(Bytes::new(64)), ps(2_770)); // 64 B take 20.48 of the 20.5 ns
}

#[test]
fn s41_the_prototype_has_the_slot_of_the_paper() {
    let timing = prototype();
    assert_eq!(timing.slot(), ps(76_800));
    assert_eq!(timing.usable(), ps(51_200));
    assert_eq!(timing.cell(), Bytes::new(64));
    assert_eq!(timing.epoch(slots_per_epoch(8, 1)), ps(537_600)); // "0.53 us"
    assert_eq!(timing.duty_cycle(), 8.0 / 12.0);
}

#[test]
fn s41_epochs_shrink_with_channels() {
    let rows = [(8, 1, 7), (511, 1, 510), (512, 1, 511), (512, 2, 256), (1024, 4, 256), (2, 4, 1)];
    for (nodes, channels, slots) in rows {
        assert_eq!(slots_per_epoch(nodes, channels), slots, "{nodes} nodes, {channels} channels");
    }
}

#[test]
fn s43_a_guard_band_that_covers_everything_is_accepted() {
    assert_eq!(simulated().check_guard(Bytes::new(64), needed()), Ok(()));
    // The 0.02 ns that 64 B leave of the slot are there to be used, and not a picosecond more.
    let wider = GuardBand { synchronisation: ps(70), ..needed() };
    assert_eq!(simulated().check_guard(Bytes::new(64), wider), Ok(()));
    let prototype_needs = GuardBand {
        reconfiguration: CYCLE_10G,
        synchronisation: DTP_PROTOTYPE.allowance(CYCLE_10G, 3),
        ..GuardBand::default()
    };
    assert_eq!(prototype().check_guard(Bytes::new(64), prototype_needs), Ok(()));
}

#[test]
fn s43_a_clipped_cell_is_named_to_the_picosecond() {
    let wider = GuardBand { synchronisation: ps(71), ..needed() };
    let clipped = simulated().check_guard(Bytes::new(64), wider).unwrap_err();
    assert_eq!((clipped.clipped, clipped.available), (ps(1), ps(2_770)));
    let message = clipped.to_string();
    assert!(message.starts_with("each cell would be clipped by 1 ps"), "{message}");
    // DTP as its authors bound it is far too coarse for such slots.
    let coarse = GuardBand { synchronisation: DTP.allowance(CYCLE_50G, 1), ..needed() };
    let clipped = simulated().check_guard(Bytes::new(64), coarse).unwrap_err();
    assert_eq!(clipped.clipped, ps(2_500 + 200 + 10_240 - 2_770));
}

#[test]
fn s41_slots_that_cannot_be_are_named() {
    let (gbps, none) = (Rate::from_gbps(25), Bytes::ZERO);
    let rows = [
        (ps(2_750), ps(2_750), none, gbps, "slot"),
        (ps(3_000), ps(2_750), none, gbps, "slot"), // 0.25 ns are not a byte
        (ps(23_250), ps(2_750), Bytes::new(64), gbps, "slot"),
        (ps(23_250), ps(2_750), none, Rate::from_bps(0), "node_rate"),
    ];
    for (slot, guard, framing, rate, key) in rows {
        let problem = SlotTiming::new(slot, guard, framing, rate).unwrap_err();
        assert_eq!(problem.key, key, "{problem}");
    }
    assert!(SlotTiming::for_cell(none, ps(1), none, gbps).is_err());
    assert!(SlotTiming::for_cell(Bytes::new(64), ps(1), none, Rate::from_bps(0)).is_err());
}

#[test]
fn s44_protocols_are_as_precise_as_published() {
    let rows = [(WHITE_RABBIT, 5, 50), (DTP, 1, 25_600), (DTP, 3, 76_800), (DTP_PROTOTYPE, 3, 0)];
    for (protocol, hops, allowance) in rows {
        assert_eq!(protocol.allowance(CYCLE_10G, hops), ps(allowance), "{}", protocol.name);
    }
    assert!(PROTOCOLS.iter().all(|protocol| !protocol.source.is_empty()));
    assert!(PROTOCOLS.iter().any(|protocol| protocol.precision == Precision::SamePeriod));
}

#[test]
fn s45_the_switches_hold_slot_1_until_all_nodes_are_precise() {
    let mut start = Bootstrap::new(3, 2, ps(50));
    let node = NodeId::new;
    let at = Time::from_ps;
    let steps = [
        (Event::Precision(node(0), ps(50)), Phase::Synchronising { missing: 2 }),
        (Event::Precision(node(1), ps(51)), Phase::Synchronising { missing: 2 }),
        (Event::Precision(node(2), ps(10)), Phase::Synchronising { missing: 1 }),
        (Event::Precision(node(0), ps(80)), Phase::Synchronising { missing: 2 }), // lost it again
        (Event::Precision(node(0), ps(40)), Phase::Synchronising { missing: 1 }),
        (Event::Precision(node(1), ps(49)), Phase::Signalling { missing: 2 }),
        (Event::Precision(node(1), ps(99)), Phase::Signalling { missing: 2 }), // too late to matter
        (Event::Signal(1), Phase::Signalling { missing: 1 }),
        (Event::Signal(1), Phase::Signalling { missing: 1 }),
        (Event::Signal(0), Phase::Running { since: at(9) }),
        (Event::Signal(1), Phase::Running { since: at(9) }),
    ];
    for (index, (event, phase)) in steps.into_iter().enumerate() {
        assert_eq!(start.step(at(index as u64), event), phase, "step {index}");
        assert_eq!(start.is_stepping(1), index >= 7, "step {index}");
    }
    assert!(start.is_stepping(0));
}

#[test]
#[should_panic(expected = "switch 0 sees the signal while 2 nodes synchronise")]
fn s45_nobody_signals_early() {
    let _ = Bootstrap::new(2, 1, ps(50)).step(Time::ZERO, Event::Signal(0));
}

#[test]
fn s46_a_start_goes_round_the_ring() {
    // 512 nodes, 654.4 ns from node to node, 9 cycles to pass a message on, 8 rounds.
    let timing = BootstrapTiming {
        nodes: 512,
        hop: ps(654_400),
        relay: CYCLE_50G * 9,
        rounds: 8,
        to_last_switch: ps(300_000),
    };
    let round = 512 * (654_400 + 23_040);
    assert_eq!(timing.round(), ps(round)); // 0.35 ms
    assert_eq!(timing.synchronised(), ps(8 * round));
    assert_eq!(timing.agreed(), ps(9 * round));
    assert_eq!(timing.running(), ps(9 * round + 300_000));
}

/// A loss after which clocks drift 9.2 ns a millisecond apart.
fn loss(takeover: Span, resynchronisation: Span) -> ClockLoss {
    ClockLoss {
        precision: ps(50),
        before: ps(50),
        drift_per_billion: clock::DRIFT_PER_BILLION_FREE,
        takeover,
        resynchronisation,
    }
}

#[test]
fn s47_clocks_drift_apart_until_another_master_takes_over() {
    let loss = loss(Span::from_us(10), Span::from_us(5));
    // 2 × 4.6 ppm: 9.2 ps a microsecond.
    let rows = [
        (0, 50),
        (1_000_000, 60),
        (5_000_000, 96),
        (10_000_000, 142),
        (14_999_999, 142),
        (15_000_000, 50),
    ];
    for (after, error) in rows {
        assert_eq!(loss.phase_error(ps(after)), ps(error), "after {after} ps");
    }
}

#[test]
fn s48_a_takeover_within_the_margin_is_seamless() {
    let loss = loss(Span::from_us(10), Span::from_us(5));
    let seamless = Takeover::Seamless { worst: ps(142) };
    assert_eq!(loss.effect(ps(142), simulated().slot()), seamless);
    let margin = GuardBand { synchronisation: ps(50), ..needed() };
    assert_eq!(margin.synchronisation_margin(ps(2_842)), Some(ps(142)));
    assert_eq!(margin.synchronisation_margin(ps(2_699)), None);
}

#[test]
fn s48_a_late_takeover_clips_slots() {
    let loss = loss(Span::from_us(10), Span::from_us(5));
    // 92 ps of drift would be used up after 10 us, 91 after 9.89 us.
    let Takeover::Clipped { worst, from, slots } = loss.effect(ps(141), ps(23_250)) else {
        panic!("not clipped");
    };
    assert_eq!(worst, ps(142));
    assert_eq!(from, ps(426 * 23_250)); // the first slot after 91 / 9.2 us
    assert_eq!(slots, 646 - 426); // slots that begin within 15 us
}

proptest! {
    #[test]
    fn s43_cells_are_clipped_exactly_when_the_gap_is_too_short(
        slot in 10_000_u64..100_000, guard in 100_u64..9_000, needs in any::<[u16; 4]>()
    ) {
        let rate = Rate::from_gbps(100);
        let timing = SlotTiming::new(ps(slot), ps(guard), Bytes::ZERO, rate).unwrap();
        let [reconfiguration, propagation_spread, synchronisation, clock_recovery] =
            needs.map(|need| ps(u64::from(need) / 8));
        let needed =
            GuardBand { reconfiguration, propagation_spread, synchronisation, clock_recovery };
        let cell = timing.cell();
        // 100 Gbps is 80 ps a byte.
        let gap = slot - 80 * cell.get();
        prop_assert_eq!(timing.gap(cell), ps(gap));
        prop_assert!(gap >= guard && gap < guard + 80);
        match timing.check_guard(cell, needed) {
            Ok(()) => prop_assert!(needed.total() <= ps(gap)),
            Err(error) => prop_assert_eq!(error.clipped + ps(gap), needed.total()),
        }
    }

    #[test]
    fn s41_the_shortest_slot_for_a_cell_holds_it(
        cell in 1_u64..5_000, guard in 0_u64..50_000, framing in 0_u64..64, gbps in 1_u64..800
    ) {
        let rate = Rate::from_gbps(gbps);
        let (cell, framing) = (Bytes::new(cell), Bytes::new(framing));
        let timing = SlotTiming::for_cell(cell, ps(guard), framing, rate).unwrap();
        prop_assert_eq!(timing.cell(), cell);
        prop_assert!(timing.gap(cell) >= ps(guard));
    }

    #[test]
    fn s48_the_clipped_slots_are_those_whose_error_exceeds_the_margin(
        drift in 0_u64..100_000, takeover in 0_u64..3_000_000, resync in 0_u64..3_000_000,
        margin in 50_u64..300,
    ) {
        let loss = ClockLoss {
            precision: ps(50),
            before: ps(50),
            drift_per_billion: drift,
            takeover: ps(takeover),
            resynchronisation: ps(resync),
        };
        let slot = ps(23_250);
        let clipped = (0..300).filter(|&index| loss.phase_error(slot * index) > ps(margin));
        let clipped: Vec<u64> = clipped.collect();
        match loss.effect(ps(margin), slot) {
            Takeover::Seamless { .. } => prop_assert!(clipped.is_empty()),
            Takeover::Clipped { from, slots, worst } => {
                prop_assert_eq!(Some(from), clipped.first().map(|&index| slot * index));
                prop_assert_eq!(slots, clipped.len() as u64);
                prop_assert!(worst > ps(margin));
            }
        }
    }
}
