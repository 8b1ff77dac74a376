//! Exact arithmetic against plain integers, and every panic with its numbers.

use std::panic::{UnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::*;

#[test]
fn the_papers_quantities_are_exact() {
    let time = |text: &str| text.parse::<Span>().unwrap().as_ps();
    assert_eq!(time("6.4 ns"), 6_400);
    assert_eq!(time("20.48 ns"), 20_480);
    assert_eq!(time("2.75 ns"), 2_750);
    assert_eq!(time("1.57 us"), 1_570_000);
    assert_eq!("28 Gbps".parse::<Rate>().unwrap().as_bps(), 28_000_000_000);
    assert_eq!(Rate::from_gbps(28).to_string(), "28 Gbps");
    // A 64-byte cell on a 25 Gbps channel takes exactly 20.48 ns.
    assert_eq!(Rate::from_gbps(25).send_time(Bytes::new(64)).to_string(), "20.48 ns");
}

#[test]
fn conversions_are_what_their_names_say() {
    assert_eq!(Span::from_ns(3), Span::from_ps(3_000));
    assert_eq!(Span::from_us(3), Span::from_ps(3_000_000));
    assert_eq!(Time::from_ps(1_500_000_000_000).as_seconds(), 1.5);
    assert_eq!(Span::from_us(250).as_seconds(), 250e-6);
    assert_eq!(Bytes::new(64).bits(), 512);
    assert_eq!((Time::ZERO.as_ps(), Time::NEVER.as_ps()), (0, u64::MAX));
    assert_eq!(Bytes::ZERO.get() + Span::ZERO.as_ps(), 0);
}

#[test]
fn operators_keep_the_unit_that_makes_sense() {
    let (early, late) = (Time::from_ps(40), Time::from_ps(100));
    assert_eq!(late - early, Span::from_ps(60));
    assert_eq!(late - Span::from_ps(60), early);
    assert_eq!(early + Span::from_ps(60), late);
    let mut now = early;
    now += Span::from_ps(60);
    assert_eq!(now, late);
    let size: Bytes = [Bytes::new(1), Bytes::new(2)].into_iter().sum();
    assert_eq!(
        (size * 4, size / 2, Bytes::new(7) % size),
        (Bytes::new(12), Bytes::new(1), Bytes::new(1))
    );
    assert_eq!(Rate::from_gbps(100) / Rate::from_gbps(25), 4);
    let mut span = Span::from_ps(10);
    span += Span::from_ps(5);
    span -= Span::from_ps(1);
    assert_eq!((span, span.div_ceil(Span::from_ps(5))), (Span::from_ps(14), 3));
}

#[test]
fn debug_prints_as_people_write() {
    let found = format!("{:?} {:?}", Time::from_ps(1_500), Bytes::new(64));
    assert_eq!(found, "1.5 ns 64 B");
}

#[track_caller]
fn check_panics<T>(expected: &str, action: impl FnOnce() -> T + UnwindSafe) {
    let Err(panic) = catch_unwind(action) else { panic!("no panic: {expected}") };
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    assert_eq!(text.as_deref(), Some(expected));
}

#[test]
fn mistakes_panic_with_their_numbers() {
    let (max, one) = (Span::from_ps(u64::MAX), Span::from_ps(1));
    check_panics("18446744.073709551615 s plus 1 ps overflows", || max + one);
    check_panics("18446744.073709551615 s plus 1 ps overflows", || Time::NEVER + one);
    check_panics("3 ps minus 5 ps overflows", || Time::from_ps(3) - Time::from_ps(5));
    check_panics("3 B minus 5 B overflows", || Bytes::new(3) - Bytes::new(5));
    check_panics("18446744.073709551615 s times 2 overflows", || max * 2);
    check_panics("1 ps divided into spans of zero", || one.div_ceil(Span::ZERO));
    check_panics("size in bits overflows 64 bits", || Bytes::new(u64::MAX).bits());
    check_panics("sending 1 B at a rate of zero", || Rate::default().send_time(Bytes::new(1)));
    check_panics("a link needs a rate above zero", || LinkClock::new(Rate::default()));
    check_panics("1 GB at 1 bps overflows time", || {
        Rate::from_bps(1).send_time(Bytes::new(1_000_000_000))
    });
    check_panics("1 GB at 1 bps overflows time", || {
        LinkClock::new(Rate::from_bps(1)).send(Bytes::new(1_000_000_000))
    });
    check_panics("18446744.073709551615 s at 1000000 Tbps overflows bytes", || {
        Rate::from_gbps(1_000_000_000).bytes_in(Span::from_ps(u64::MAX))
    });
    check_panics("a span in nanoseconds overflows 64 bits of picoseconds", || {
        Span::from_ns(u64::MAX)
    });
    check_panics("a span in microseconds overflows 64 bits of picoseconds", || {
        Span::from_us(1 << 50)
    });
    check_panics("a rate in gigabits overflows 64 bits of bits per second", || {
        Rate::from_gbps(1 << 40)
    });
}

proptest! {
    #[test]
    fn a_link_clock_is_exact_to_a_picosecond_over_any_run(
        bps in 1u64..4_000_000_000_000,
        sizes in prop::collection::vec(1u64..100_000, 1..300),
    ) {
        // Rates of at least 1 Mbps, so that the run fits 64 bits of picoseconds.
        let bps = bps.max(1_000_000);
        let mut clock = LinkClock::new(Rate::from_bps(bps));
        let (mut spent, mut bytes) = (Span::ZERO, 0u128);
        for size in sizes {
            spent += clock.send(Bytes::new(size));
            bytes += u128::from(size);
            let exact = bytes * 8 * u128::from(PS_PER_SECOND) / u128::from(bps);
            prop_assert_eq!(u128::from(spent.as_ps()), exact);
        }
    }

    #[test]
    fn a_single_send_is_the_exact_time_rounded_up(bps in 1_000u64.., size in 0u64..1_000_000) {
        let found = u128::from(Rate::from_bps(bps).send_time(Bytes::new(size)).as_ps());
        let work = u128::from(size) * 8 * u128::from(PS_PER_SECOND);
        prop_assert!(found * u128::from(bps) >= work);
        prop_assert!(found == 0 || (found - 1) * u128::from(bps) < work);
    }

    #[test]
    fn bytes_in_a_span_are_those_that_can_be_sent(bps in 1u64..10_000_000_000_000, ps in 0u64..1 << 60) {
        let (rate, span) = (Rate::from_bps(bps), Span::from_ps(ps));
        let fits = rate.bytes_in(span);
        let work = |bytes: u64| u128::from(bytes) * 8 * u128::from(PS_PER_SECOND);
        let budget = u128::from(bps) * u128::from(ps);
        prop_assert!(work(fits.get()) <= budget && work(fits.get() + 1) > budget);
    }
}
