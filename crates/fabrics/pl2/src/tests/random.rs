//! Random racks, transports and flows: all complete, nothing leaks, and a second run is the same.

use ::rack::Component;
use packets::config::Forwarding;
use proptest::prelude::*;

use super::*;
use crate::config::{
    Acknowledgments, Entering, GrantHandling, Outstanding, Recovery, Schedule, ShareBy, Switch,
    Tracking,
};
use crate::switch::{Accounting, Decrement};

fn any_switch() -> impl Strategy<Value = Switch> {
    let counters = (
        prop::sample::select(vec![Accounting::Flagged, Accounting::Saturating]),
        prop::sample::select(vec![Decrement::Ingress, Decrement::Egress]),
        20u32..200,
    )
        .prop_map(|(accounting, decrement, drop_above)| Switch {
            accounting,
            decrement,
            drop_above,
            ..Switch::default()
        });
    let clocks = (any::<bool>(), 20u32..200).prop_map(|(is_ideal, drop_above)| Switch {
        schedule: if is_ideal { Schedule::Ideal } else { Schedule::Matching },
        drop_above,
        ..Switch::default()
    });
    let forwarding =
        prop::sample::select(vec![Forwarding::StoreAndForward, Forwarding::CutThrough]);
    (prop_oneof![3 => counters, 1 => clocks], forwarding)
        .prop_map(|(switch, forwarding)| Switch { forwarding, ..switch })
}

/// Some hosts share ports; of some racks one or two nodes are outside.
fn any_ports() -> impl Strategy<Value = (u32, Option<Entering>)> {
    let by = prop::sample::select(vec![ShareBy::Slot, ShareBy::Increment]);
    let entering = (0u32..5, prop::option::of(0u32..5), 1u32..=90, by).prop_map(
        |(one, other, share_percent, by)| {
            let mut nodes: Vec<_> =
                [Some(one), other].into_iter().flatten().map(NodeId::new).collect();
            nodes.dedup();
            Entering { nodes, share_percent, by }
        },
    );
    (1u32..4, prop_oneof![2 => Just(None), 1 => entering.prop_map(Some)])
}

/// A rack with such ports; nodes that it does not have, or needs inside, are not outside.
fn with_ports(config: Config, (shared, entering): (u32, Option<Entering>)) -> Config {
    let entering = entering.map(|mut entering| {
        entering.nodes.retain(|node| node.get() < config.nodes);
        entering.nodes.truncate(config.nodes.saturating_sub(2) as usize);
        entering
    });
    let hosts_per_port = shared.try_into().expect("not zero");
    Config { hosts_per_port, entering, ..config }
}

pub(super) fn any_config() -> impl Strategy<Value = Config> {
    (any_own_ports(), any_ports()).prop_map(|(config, ports)| with_ports(config, ports))
}

fn any_own_ports() -> impl Strategy<Value = Config> {
    let threads = prop_oneof![8 => 1u32..5, 1 => Just(64)];
    let host = (threads, 1u32..=16, 0u32..20, any::<[bool; 3]>(), 2u32..9, 0u64..3);
    // By default the switch tracks pairs, where it can.
    let tracking =
        prop::sample::select(vec![None, Some(Tracking::None), Some(Tracking::Receivers)]);
    let loss = prop_oneof![2 => Just(0.0), 1 => Just(0.01), 1 => Just(0.05)];
    let transport = prop::sample::select(super::transports::all());
    (any_switch(), host, tracking, loss, transport).prop_map(
        |(switch, (threads, k, t, flags, nodes, cost), tracking, loss_rate, transport)| {
            let [is_nic, is_async, is_free] = flags;
            let recovery = Recovery { tracking, ..Recovery::default() };
            let mut config = Config {
                nodes,
                switch,
                threads,
                burst_packets: k,
                unsolicited_below: t,
                outstanding: if is_nic { Outstanding::Destination } else { Outstanding::Thread },
                grant_handling: if is_async {
                    GrantHandling::Async
                } else {
                    GrantHandling::SameThread
                },
                acknowledgments: if is_free {
                    Acknowledgments::Unreserved
                } else {
                    Acknowledgments::Reserved
                },
                recovery,
                loss_rate,
                transport,
                ..Config::default()
            };
            config.host.burst_cost = Span::from_us(cost);
            config
        },
    )
}

pub(super) fn any_flows() -> impl Strategy<Value = Vec<(u32, u32, u64, u64)>> {
    prop::collection::vec((0u32..100, 1u32..100, 1u64..60_000, 0u64..60), 1..40)
}

/// Each flow between two hosts of the rack, in order of their starts.
pub(super) fn flows_of(nodes: u32, drawn: &[(u32, u32, u64, u64)]) -> Vec<Flow> {
    let mut drawn = drawn.to_vec();
    drawn.sort_by_key(|&(_, _, _, start)| start);
    let flow = |(id, &(src, step, bytes, start)): (u64, &(u32, u32, u64, u64))| {
        let src = src % nodes;
        let dst = (src + 1 + step % (nodes - 1)) % nodes;
        flow(id, src, dst, bytes, Time::ZERO + Span::from_us(start))
    };
    (0..).zip(&drawn).map(flow).collect()
}

/// The link of some host is cut, for less time than anybody needs to know or for more, at last for longer than a
/// thread asks for a burst.
pub(super) fn any_cut() -> impl Strategy<Value = Fault> {
    let pause = prop::sample::select(vec![3u64, 40, 900, 2_500, 20_000]);
    (0u32..9, 0u64..100, pause).prop_map(|(node, at_us, pause_us)| {
        let at = Time::ZERO + Span::from_us(at_us);
        let component = Component::NodeLink(NodeId::new(node));
        Fault { component, at, until: Some(at + Span::from_us(pause_us)) }
    })
}

/// The same in a rack of so many hosts.
pub(super) fn in_rack(fault: Fault, nodes: u32) -> Fault {
    let Component::NodeLink(node) = fault.component else { return fault };
    Fault { component: Component::NodeLink(NodeId::new(node.get() % nodes)), ..fault }
}

/// The same hosts at a switch that tracks pairs, and whose control plane looks after nothing. T is out of reach,
/// near which hosts can only infer what was dropped.
fn unaudited(config: Config, patience_us: u64) -> Config {
    let switch = Switch {
        audit: Span::ZERO,
        drop_above: 1_000_000,
        forwarding: config.switch.forwarding,
        ..Switch::default()
    };
    let patience = Span::from_us(patience_us);
    let recovery = Recovery { tracking: Some(Tracking::Pairs), patience, ..config.recovery };
    Config { switch, recovery, transport: raw_repeating(), ..config }
}

/// The same flows once more, long after.
fn once_more(flows: &[Flow]) -> Vec<Flow> {
    let late = Span::from_us(50_000);
    let again = |flow: &Flow| Flow {
        id: FlowId::new(1_000 + flow.id.get()),
        start: flow.start + late,
        ..*flow
    };
    flows.iter().map(again).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn slow_random_racks_carry_all_and_forget_all(config in any_config(), drawn in any_flows()) {
        let flows = flows_of(config.nodes, &drawn);
        let outcome = carry(&config, &flows);
        let totals = outcome.rack.totals();
        let size = flows.iter().map(|flow| flow.size).sum::<Bytes>();
        prop_assert_eq!((totals.delivered, totals.lost), (size, Bytes::ZERO));
        if config.loss_rate == 0.0 {
            prop_assert_eq!(totals.drops, outcome.count("unsolicited_dropped"));
            prop_assert_eq!(outcome.count("reservations"), outcome.count("grants_received"));
        }
        if outcome.rack.plan().has_pairs() {
            prop_assert_eq!(outcome.count("counters_below_zero"), 0);
        }
        // I04: K packets at most.
        let (bursts, packets) = (outcome.count("bursts"), outcome.count("burst_packets"));
        prop_assert!(packets >= bursts && packets <= bursts * u64::from(config.burst_packets));
        let again = carry(&config, &flows);
        prop_assert_eq!(again.rack.totals().event_hash, totals.event_hash);
        prop_assert_eq!(again.ends, outcome.ends);
    }

    /// I03, M13: where nothing is lost and T is never reached, counters end at zero by themselves, never
    /// below, whatever the hosts are like and however often they ask for the same: no control plane looks
    /// after them here.
    #[test]
    fn slow_i03_random_racks_need_no_audit_where_nothing_is_lost(
        config in any_config(),
        drawn in any_flows(),
        decrement in prop::sample::select(vec![Decrement::Ingress, Decrement::Egress]),
        patience_us in prop::sample::select(vec![1u64, 2, 4, 67]),
    ) {
        let switch = Switch { decrement, drop_above: 1_000_000, audit: Span::ZERO, ..Switch::default() };
        let mut config = Config { switch, loss_rate: 0.0, ..config };
        config.recovery.patience = Span::from_us(patience_us);
        let outcome = carry(&config, &flows_of(config.nodes, &drawn));
        prop_assert_eq!(outcome.count("slots_left"), 0, "{:?}", outcome.rack.details());
        prop_assert_eq!(outcome.count("counters_below_zero"), 0, "{:?}", outcome.rack.details());
        prop_assert_eq!(outcome.rack.totals().drops, 0);
    }

    /// M14: where no frame gets lost and T is never reached, hosts and switch keep the same books, whatever the
    /// hosts are like: nothing is given back as leaked, no packet finds nothing reserved for it, and all ends when it
    /// does untracked.
    #[test]
    fn slow_m14_random_racks_that_lose_nothing_are_the_same_tracked(
        config in any_config(),
        drawn in any_flows(),
    ) {
        let switch = Switch { drop_above: 1_000_000, audit: Span::ZERO, ..Switch::default() };
        let mut config = Config { switch, loss_rate: 0.0, ..config };
        let mut run = |tracking| {
            config.recovery.tracking = Some(tracking);
            carry(&config, &flows_of(config.nodes, &drawn))
        };
        let (tracked, untracked) = (run(Tracking::Pairs), run(Tracking::None));
        prop_assert_eq!(tracked.count("slots_leaked"), 0);
        prop_assert_eq!(tracked.count("packets_uncounted"), 0);
        prop_assert_eq!(&tracked.ends, &untracked.ends);
        prop_assert_eq!(tracked.rack.details(), untracked.rack.details());
    }

    /// M14: whatever gets lost, what a busy pair leaks is found by its next grant, and hosts never give back
    /// what they still need: of a rack in which each pair speaks again at the end, nothing is left, and no
    /// packet found nothing reserved but those behind a reservation that got lost.
    #[test]
    fn slow_m14_random_racks_give_back_all_that_leaks(
        config in any_config(),
        drawn in any_flows(),
        loss_rate in prop::sample::select(vec![0.01, 0.1]),
    ) {
        let switch = Switch { drop_above: 1_000_000, ..Switch::default() };
        let mut config =
            Config { switch, loss_rate, transport: raw_repeating(), ..config };
        config.recovery.tracking = Some(Tracking::Pairs);
        let outcome = carry(&config, &flows_of(config.nodes, &drawn));
        let added = outcome.count("slots_granted");
        let increment = config.plan().expect("it has run").increment;
        let reset = outcome.count("slots_reset") / u64::from(increment);
        let back = outcome.count("slots_given_back") + reset;
        // Every loss costs a burst's slots at the most, and what is granted is used or given back.
        let lost = outcome.rack.totals().drops;
        let most = u64::from(config.burst_packets) * (lost + outcome.count("reservations_repeated"));
        prop_assert!(back <= most, "{back} of {added} slots given back, {lost} frames lost");
        prop_assert!(outcome.count("counters_below_zero") == 0, "{:?}", outcome.rack.details());
    }

    /// M14, I03: whatever is lost at a link that is cut for a while, without an audit: once each pair has spoken
    /// again nothing is left.
    #[test]
    fn slow_m14_random_racks_leave_nothing_once_all_have_spoken_again(
        config in any_config(),
        drawn in any_flows(),
        patience_us in prop::sample::select(vec![1u64, 2, 5, 67]),
        fault in any_cut(),
    ) {
        let mut config = unaudited(config, patience_us);
        config.loss_rate = 0.0;
        let mut flows = flows_of(config.nodes, &drawn);
        let again = once_more(&flows);
        flows.extend(again);
        let outcome = carry_with(&config, &[in_rack(fault, config.nodes)], &flows);
        prop_assert_eq!(&outcome.ends.failed, &[]);
        prop_assert_eq!(outcome.count("counters_below_zero"), 0, "{:?}", outcome.rack.details());
        prop_assert_eq!(outcome.count("slots_left"), 0, "{:?}", outcome.rack.details());
    }

    /// M14: hosts give back nothing that they need: where all wait for their grants, each packet that comes
    /// finds its slot reserved, whatever else is lost on lines, in full buffers and at a link that is cut,
    /// reservations, grants and what is given back among it, and however late grants are. And outputs count
    /// what their pairs do, as `carry_with` sees.
    #[test]
    fn slow_m14_random_hosts_give_back_nothing_that_they_need(
        config in any_config(),
        drawn in any_flows(),
        loss_rate in prop::sample::select(vec![0.0, 0.02, 0.2]),
        patience_us in prop::sample::select(vec![1u64, 2, 5, 67]),
        buffer in prop::sample::select(vec![15_000u64, 60_000, 1_500_000]),
        fault in any_cut(),
    ) {
        let mut config = unaudited(config, patience_us);
        config.switch.port_buffer = Bytes::new(buffer);
        (config.unsolicited_below, config.loss_rate) = (0, loss_rate);
        // Where a fifth is lost a host may ask in vain for the 100 ms after which it gives up, of which the link is cut for 20.
        config.failures.patience = config.failures.silence;
        let flows = flows_of(config.nodes, &drawn);
        let outcome = carry_with(&config, &[in_rack(fault, config.nodes)], &flows);
        prop_assert_eq!(&outcome.ends.failed, &[]);
        prop_assert_eq!(outcome.count("packets_uncounted"), 0, "{:?}", outcome.rack.details());
        prop_assert_eq!(outcome.count("counters_below_zero"), 0, "{:?}", outcome.rack.details());
    }

    /// I01, M24: of bursts nothing is lost for good, for what the switch drops above T is retransmitted: datagrams
    /// that nobody repeats all arrive, if T is far above t.
    #[test]
    fn slow_i01_random_racks_lose_nothing_for_good(config in any_config(), drawn in any_flows()) {
        let mut config = Config { transport: raw(), loss_rate: 0.0, ..config };
        config.switch.drop_above = config.switch.drop_above.max(100);
        let outcome = carry(&config, &flows_of(config.nodes, &drawn));
        prop_assert_eq!(outcome.rack.totals().drops, outcome.count("unsolicited_dropped"));
    }

    /// A host dies at any time, or is cut off, and comes back or does not: the flows of others complete, those that it
    /// has later do, no slot stays reserved, and all comes to rest, whether hosts find out by themselves or are
    /// told. (Messages on a connection fail with it, also those that it was given before its source knew. Under an
    /// oracle TCP whose receiver dies with all that it was sent goes on asking for the last acknowledgment.)
    #[test]
    fn slow_random_deaths_leave_nothing_reserved(
        config in any_config(),
        drawn in any_flows(),
        node in 0u32..9,
        at_us in 0u64..100,
        pause_us in prop::option::of(1u64..3_000),
        is_cut_off in any::<bool>(),
        is_told in any::<bool>(),
        is_raw in any::<bool>(),
    ) {
        let is_raw = is_told || is_raw;
        let transport = if is_raw { raw_repeating() } else { config.transport.clone() };
        // TCP waits for 1 s first, and as good as never finds all of six handshakes lost.
        let loss_rate = if is_raw { config.loss_rate } else { config.loss_rate.min(0.01) };
        let (patience, silence) = (Span::from_us(60_000_000), Span::from_us(200_000_000));
        let failures = Failures { oracle: is_told, patience, silence };
        let config = Config { transport, loss_rate, failures, ..config };
        let (mut flows, node) = (flows_of(config.nodes, &drawn), NodeId::new(node % config.nodes));
        let at = Time::ZERO + Span::from_us(at_us);
        let until = pause_us.map(|pause| at + Span::from_us(pause));
        let component =
            if is_cut_off { Component::NodeLink(node) } else { Component::Node(node) };
        let fault = Fault { component, at, until };
        let early = flows.len();
        // Long after, when all know that it is back: the same flows once more.
        let again = once_more(&flows);
        flows.extend(again.iter().filter(|_| until.is_some()));
        let outcome = carry_with(&config, &[fault], &flows);
        let is_of_node = |flow: &Flow| flow.src == node || flow.dst == node;
        let shares = super::transports::shares_connections(&config.transport);
        let is_early = |flow: &Flow| shares || flow.id.get() < early as u64;
        prop_assert!(outcome.ends.failed.iter().all(|flow| is_of_node(flow) && is_early(flow)));
        if outcome.rack.plan().has_pairs() {
            prop_assert_eq!(outcome.count("counters_below_zero"), 0);
        }
    }
}
