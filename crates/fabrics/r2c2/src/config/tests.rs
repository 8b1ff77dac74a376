//! What is refused, and what the message says.

use kernel::Time;
use proptest::prelude::*;
use rack::{Class, Component, Fabric, Fault, Flow, FlowId, NodeId};

use super::*;

#[track_caller]
fn check(change: impl FnOnce(&mut Config), expected: &str) {
    let mut config = Config::default();
    change(&mut config);
    let problems = config.plan().expect_err("it is refused");
    let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|problem| problem.contains(expected)), "{found:?}");
}

#[test]
fn bad_keys_are_named_with_a_remedy() {
    check(|c| c.mtu = Bytes::new(36), "mtu: 36 B; expected more than the header's 36 B");
    check(|c| c.burst = Bytes::new(1), "burst: 1 B; expected at least a packet of 1.5 KB");
    check(|c| c.headroom = 1.0, "headroom: 1.0; expected from 0 to 0.99");
    check(|c| c.classes.clear(), "classes: no class; expected one or more");
    check(|c| c.trees = 16, "trees: 16; expected from 1 to 15");
    check(|c| c.broadcast_priority = 8, "broadcast_priority: 8; expected from 0 to 7");
    check(|c| c.demand.gain_shift = 17, "demand.gain_shift: 17; expected from 0 to 16");
    check(
        |c| c.recovery.pause = Span::ZERO,
        "recovery.pause: 0 ps; expected at least 100 ns, at most 86400 s",
    );
    check(|c| c.discovery.missed = 0, "discovery.missed: 0; expected from 1 to 1000");
    check(|c| c.nodes = 100, "nodes: 100, but the topology makes 512");
}

/// Greetings more often than links carry them would wait in ever longer queues. One of 16 bytes takes 12.8 ns
/// at 10 Gbps.
#[test]
fn greetings_take_a_tenth_of_a_link_at_the_most() {
    let interval = |ps| Discovery { interval: Span::from_ps(ps), ..Discovery::default() };
    check(
        |c| c.discovery = interval(127_999),
        "discovery.interval: 127.999 ns, and a greeting takes 12.8 ns of the slowest link; expected 128 ns",
    );
    let enough = Config { discovery: interval(128_000), ..Config::default() };
    assert!(enough.plan().is_ok());
}

/// Asks to pause at once.
struct Impatient;

impl rack::Probe for Impatient {
    fn poll(&mut self) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Break(())
    }
}

/// A number of each of these, or any.
fn around(bounds: &'static [u64]) -> impl Strategy<Value = u64> {
    let near = (prop::sample::select(bounds), -2i64..=2);
    let near = near.prop_map(|(bound, by)| bound.saturating_add_signed(by));
    prop_oneof![
        60 => Just(None),
        2 => near.prop_map(Some),
        1 => prop::sample::select(&[0, 1, u64::MAX / 2, u64::MAX][..]).prop_map(Some),
        1 => any::<u64>().prop_map(Some),
    ]
    .prop_map(|value| value.unwrap_or(UNSET))
}

/// Stands for a key that keeps its default.
const UNSET: u64 = 0x5eed_5eed_5eed_5eed;

/// Times near the bounds, in picoseconds.
const SPANS: &[u64] = &[
    100_000,
    1_000_000,
    127_999,
    500_000_000,
    1_000_000_000_000,
    86_400_000_000_000_000,
    2_592_000_000_000_000_000,
    18_446_744_000_000_000_000,
];
const RATES: &[u64] =
    &[1, 1_000, 10_000_000, 4_294_967_295_000, 10_000_000_000, 1_000_000_000_000_000];
const SIZES: &[u64] = &[36, 64, 1_500, 3_000, 9_216, 2_000_000, 1 << 32, 1 << 40, 1 << 61];
const COUNTS: &[u64] = &[1, 10, 11, 15, 16, 17, 255, 1_000, 10_000, 65_535, 1 << 31, 1 << 32];
const PARTS: &[f64] = &[
    0.0,
    -0.0,
    1e-300,
    0.05,
    0.5,
    0.98,
    0.99,
    0.999_999,
    1.0,
    2.0,
    1e300,
    -1.0,
    f64::NAN,
    f64::INFINITY,
];

/// Sets a key, unless it keeps its default.
fn set<T>(key: &mut T, value: u64, make: impl FnOnce(u64) -> T) {
    if value != UNSET {
        *key = make(value);
    }
}

fn extreme() -> impl Strategy<Value = Config> {
    let spans = prop::collection::vec(around(SPANS), 8);
    let rates = prop::collection::vec(around(RATES), 4);
    let sizes = prop::collection::vec(around(SIZES), 3);
    let counts = prop::collection::vec(around(COUNTS), 10);
    let parts = prop::collection::vec((prop::bool::weighted(0.05), prop::sample::select(PARTS)), 5);
    (spans, rates, sizes, counts, parts, any::<[bool; 5]>()).prop_map(
        |(spans, rates, sizes, counts, parts, is)| {
            let (span, part) = (Span::from_ps, |at: usize, usual| {
                let (is_set, value): (bool, f64) = parts[at];
                if is_set { value } else { usual }
            });
            let mut config = Config::default();
            let mut torus = Torus { dimensions: vec![4, 4, 4], ..Torus::default() };
            set(&mut torus.rate, rates[0], Rate::from_bps);
            set(&mut torus.delay, spans[0], span);
            let Torus { dimensions, rate, delay } = torus.clone();
            let mesh = rack::topology::Mesh { dimensions, rate, delay };
            config.topology = if is[0] { Shape::Torus(torus) } else { Shape::Mesh(mesh) };
            set(&mut config.interval, spans[1], span);
            set(&mut config.node_latency, spans[2], span);
            set(&mut config.recovery.patience, spans[3], span);
            set(&mut config.recovery.pause, spans[4], span);
            set(&mut config.discovery.interval, spans[5], span);
            set(&mut config.discovery.hold, spans[6], span);
            set(&mut config.load_rate, rates[1], Rate::from_bps);
            set(&mut config.initial_rate, rates[2], Rate::from_bps);
            set(&mut config.classes[0].application_rate, rates[3], |bps| Some(Rate::from_bps(bps)));
            set(&mut config.mtu, sizes[0], Bytes::new);
            set(&mut config.burst, sizes[1], Bytes::new);
            set(&mut config.port_buffer, sizes[2], Bytes::new);
            set(&mut config.nodes, counts[0], |count| count as u32);
            set(&mut config.trees, counts[1], |count| count as u8);
            set(&mut config.broadcast_priority, counts[2], |count| count as u8);
            set(&mut config.demand.gain_shift, counts[3], |count| count as u32);
            set(&mut config.demand.margin_percent, counts[4], |count| count);
            set(&mut config.discovery.missed, counts[5], |count| count as u16);
            set(&mut config.classes[0].priority, counts[6], |count| count as u8);
            let weight = |count| NonZeroU8::new(count as u8).unwrap_or(NonZeroU8::MAX);
            set(&mut config.classes[0].weight, counts[7], weight);
            config.start = if is[1] { Start::Share } else { Start::Link };
            config.batch = if is[2] { Batch::Lasting } else { Batch::All };
            config.headroom = part(0, 0.05);
            config.loss_rate = part(1, 0.0);
            config.bit_error_rate = part(2, 0.0);
            if is[3] && is[4] {
                let mut search = Selection::default();
                set(&mut search.period, spans[7], span);
                set(&mut search.population, counts[8], |count| count as u32);
                set(&mut search.patience, counts[9], |count| count as u32);
                search.mutation = part(3, 0.01);
                search.least_gain = part(4, 0.01);
                config.selection = Some(search);
            }
            config
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the values, there is a plan or a problem with a key, at once; and what has a plan
    /// runs, with and without a failure.
    #[test]
    fn slow_extreme_values_end_as_a_plan_or_as_problems(config in extreme(), seed in any::<u64>()) {
        let begin = std::time::Instant::now();
        prop_assert!(config.memory() < Bytes::new(100_000_000));
        let plan = match config.plan() {
            Ok(plan) => plan,
            Err(problems) => {

                prop_assert!(!problems.is_empty());
                prop_assert!(problems.iter().all(|wrong| wrong.message.contains("expected")
                    || wrong.message.contains("remove")), "{:?}", problems);
                return Ok(());
            }
        };
        let link = Component::Link { a: 0, b: 1, link: 0 };
        let at = Time::ZERO + Span::from_us(1);
        let fault = Fault { component: link, at, until: Some(at + Span::from_us(3)) };
        for faults in [&[][..], &[fault]] {
            let mut rack = crate::Rack::new(plan.clone().with_faults(faults).unwrap(), seed);
            for id in 0..6u32 {
                let flow = Flow {
                    id: FlowId::new(id.into()),
                    src: NodeId::new(id),
                    dst: NodeId::new(id + 1),
                    size: Bytes::new([1, 10_000, 1 << 40][id as usize % 3]),
                    start: Time::ZERO,
                    class: Class::new(0),
                };
                prop_assert!(rack.ideal_fct(&flow) > Span::ZERO);
                rack.offer(&flow);
            }
            for ps in [1_000_000, 10_000_000, 2_000_000_000, 2_592_000_000_000_000_000] {
                rack.advance(Time::from_ps(ps), &mut Impatient);
            }
            rack.check().unwrap();
        }
        let took = begin.elapsed();
        prop_assert!(took.as_secs() < 60, "{:?} for {:?}", took, config);
    }
}

/// A demand is estimated over an interval.
#[test]
fn m23_an_application_without_an_interval_is_refused() {
    let usual = super::Class::default;
    let limited = super::Class { application_rate: Some(Rate::from_gbps(1)), ..usual() };
    check(
        |c| (c.interval, c.classes) = (Span::ZERO, vec![usual(), limited]),
        "classes[1].application_rate: 1 Gbps with interval = 0 ns; expected an interval",
    );
}

#[test]
fn m53_what_a_controller_excludes_is_refused() {
    let config = || Config { controller: Some(511), ..Config::default() };
    assert!(config().plan().is_ok());
    let keys = |config: Config| -> Vec<String> {
        config.plan().unwrap_err().into_iter().map(|problem| problem.key).collect()
    };
    assert_eq!(keys(Config { controller: Some(512), ..config() }), ["controller"]);
    let selection = Some(Selection::default());
    assert_eq!(keys(Config { start: Start::Share, selection, ..config() }), ["start", "selection"]);
}
