//! A rack in several parts, hosts and switch apart, is the same rack: they exchange nothing but frames.

use ::rack::Component;
use packets::Cut;
use proptest::prelude::*;

use super::random::{any_config, any_cut, any_flows, flows_of, in_rack};
use super::transports::shares_connections;
use super::*;

/// What ended, for a probe that pauses at nothing.
#[derive(Default)]
struct Quiet(Ends);

impl Probe for Quiet {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.0.completed(completion)
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.0.failed(flow, at, why)
    }

    fn may_pause(&self) -> bool {
        false
    }
}

/// All that a run tells, in so many parts; none: in one for the switch and one for each host.
fn story(
    config: &Config,
    faults: &[Fault],
    flows: &[Flow],
    parts: Option<usize>,
) -> (String, usize) {
    let plan = config.plan().unwrap().with_faults(faults).unwrap();
    let topology = plan.network.topology.clone();
    let mut rack = Rack::new(plan, 7);
    let cut = match parts {
        Some(parts) => Cut::balanced(&topology, parts),
        None => Cut::each(&topology),
    };
    let parts = rack.set_cut(&cut);
    let mut quiet = Quiet::default();
    flows.iter().for_each(|flow| rack.offer(flow));
    // Some senders go on asking hosts that are dead.
    rack.advance(Time::ZERO + Span::from_us(60_000), &mut quiet);
    rack.check().unwrap();
    let (totals, details, open) = (rack.totals(), rack.details(), rack.unfinished(usize::MAX));
    (format!("{:#?} {totals:#?} {details:#?} {open:#?}", quiet.0), parts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn slow_any_cut_of_a_random_rack_gives_the_same(
        config in any_config(),
        drawn in any_flows(),
        cut_link in prop::option::of(any_cut()),
        death in prop::option::of((0u32..9, 0u64..100, prop::option::of(1u64..3_000))),
    ) {
        let flows = flows_of(config.nodes, &drawn);
        let death = death.map(|(node, at_us, pause_us)| {
            let at = Time::ZERO + Span::from_us(at_us);
            let until = pause_us.map(|pause| at + Span::from_us(pause));
            Fault { component: Component::Node(NodeId::new(node % config.nodes)), at, until }
        });
        let cut_link = cut_link.map(|fault| in_rack(fault, config.nodes));
        let faults: Vec<_> = cut_link.into_iter().chain(death).collect();
        let (whole, _) = story(&config, &faults, &flows, Some(1));
        for parts in [Some(2), Some(3), None] {
            let (cut, count) = story(&config, &faults, &flows, parts);
            let is_whole = shares_connections(&config.transport);
            prop_assert_eq!(count == 1, is_whole, "{:?} in {} parts", config, count);
            if cut != whole {
                let line = whole.lines().zip(cut.lines()).find(|(a, b)| a != b);
                panic!("{count} parts: {line:#?}");
            }
        }
    }
}
