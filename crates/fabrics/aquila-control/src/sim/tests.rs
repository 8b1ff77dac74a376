//! Whole Cliques from power-on.

mod upgrade;

use std::collections::BTreeSet;

use aquila::pipeline::compute::connected;
use aquila::tables::Condition;
use aquila::tables::compute::compute;
use aquila::turns::TurnTable;
use proptest::prelude::*;
use proptest::sample::Index;

use super::journal::{Booted, replay};
use super::*;
use crate::apps::election::Application;
use crate::expand::tables;
use crate::firmware::State;
use crate::flash::Trial;
use crate::session::Versions;

fn second(seconds: u64) -> Time {
    Time::ZERO + ms(1_000 * seconds)
}

/// Goes on until all are ready; what must hold whatever happened.
#[track_caller]
fn check(sim: &mut Sim) -> Results {
    let is_done = sim.run();
    let results = sim.results();
    assert!(is_done, "{} ready of {}: {:?}", results.ready_count, results.tins.len(), results.lost);
    assert_eq!(results.passed_unready, 0, "I82");
    assert_eq!(results.out_of_memory, 0, "I74");
    assert!(results.memory_peak() <= 2 << 20, "I74");
    let images = controller::images(
        &controller::clique(&sim.topology),
        sim.constellation().base().expect("a copy runs"),
    );
    for (tin, image) in (0..).zip(&images) {
        let Some(firmware) = sim.firmware(tin) else { continue };
        assert_eq!(firmware.state(), State::Tcp, "TiN {tin}");
        for register in crate::apps::front_end::order::owned() {
            let chip = &sim.chips()[usize::from(tin)].registers;
            assert!(chip.differing(image, register).is_empty(), "{} of TiN {tin}", register.name);
        }
    }
    results
}

/// Each proxy was reached itself before, and is a neighbour of its target.
#[track_caller]
fn check_order(sim: &Sim, results: &Results) {
    let mut reached = BTreeSet::new();
    for change in &results.changes {
        match change.stage {
            Stage::Tcp => {
                reached.insert(change.tin);
            }
            Stage::Pmos => {
                let (proxy, port) = change.via.unwrap();
                assert!(reached.contains(&proxy), "{change:?}");
                assert_eq!(sim.topology.far(proxy, port).unwrap().tin, change.tin);
            }
            _ => {}
        }
    }
}

/// Registers are then those of a Clique in which everything works, as computed without any of this.
#[track_caller]
fn check_tables(sim: &Sim) {
    let chips: Vec<_> = sim.chips().iter().map(|chip| chip.registers.clone()).collect();
    let condition = Condition::healthy(&sim.topology);
    let expected = compute(&sim.topology, &TurnTable::P1, &condition);
    assert!(tables(sim.topology.shape(), &chips).unwrap() == expected);
}

#[track_caller]
fn check_clique(shape: &Shape, count: u16) -> Results {
    let config = Config::new(shape, connected(shape.tins(), count), 1);
    let mut sim = Sim::new(config);
    let results = check(&mut sim);
    check_order(&sim, &results);
    check_tables(&sim);
    assert_eq!(results.waves().iter().sum::<usize>(), usize::from(shape.tins()));
    // All but the connected went through a proxy, and then over the Clique.
    for (tin, found) in (0..).zip(&results.tins) {
        assert_eq!(found.proxy.is_none(), sim.config.connected.contains(&tin), "TiN {tin}");
        assert!(found.connected.is_some());
    }
    results
}

#[test]
fn slow_m801_m815_i82_the_tiny_clique_boots() {
    for count in [1, 2, 18] {
        check_clique(&Shape::TINY, count);
    }
}

#[test]
fn slow_m801_m815_i82_the_mini_clique_boots() {
    for count in [1, 4, 68] {
        check_clique(&Shape::MINI, count);
    }
}

/// Sessions over the version that was asked for alone, and the same registers in the end.
#[test]
fn slow_m615_a_clique_boots_over_either_version_of_ip() {
    for versions in [Versions::V4, Versions::V6, Versions::Both] {
        let mut config = Config::new(&Shape::TINY, vec![4, 11], 1);
        config.manager.versions = versions;
        // Sessions are lost, and come back over the same.
        config.faults = vec![(second(30), Fault::Restart { tin: 4 })];
        let mut sim = Sim::new(config);
        // Its silence is noticed after 75 s.
        sim.run_to(second(120));
        let results = check(&mut sim);
        check_order(&sim, &results);
        check_tables(&sim);
        let [v4, v6] = results.packets;
        // With both, calls alternate until a TiN has power.
        assert_eq!((v4 > 0, v6 > 0), (versions != Versions::V6, versions.has_v6()), "{versions}");
        assert_eq!(results.sessions.tcp_sessions, 18 + 1);
    }
}

/// A DHCP server that tells no address of IPv6: who calls both reaches all TiNs, who calls IPv6 alone none.
#[test]
fn slow_m615_a_call_that_nobody_answers_is_followed_by_one_over_the_other_version() {
    let run = |versions| {
        let mut config = Config::new(&Shape::TINY, vec![4, 11], 1);
        (config.manager.versions, config.limit) = (versions, second(600));
        let mut sim = Sim::new(config);
        sim.server = sim.server.clone().telling_v6(false);
        sim
    };
    let results = check(&mut run(Versions::Both));
    assert_eq!(results.sessions.tcp_sessions, 18);
    assert!(results.packets[0] > 0 && results.packets[1] > 0);
    let mut alone = run(Versions::V6);
    assert!(!alone.run());
    let results = alone.results();
    assert_eq!((results.sessions.tcp_sessions, results.packets[0]), (0, 0));
    assert!(results.packets[1] > 0);
}

#[test]
fn slow_m801_the_same_seed_is_the_same_run_and_another_is_not() {
    let run = |seed| {
        let mut config = Config::new(&Shape::TINY, vec![4], seed);
        config.mos_lost = 10_000;
        let results = check(&mut Sim::new(config));
        (results.changes, results.events, results.words, results.crossed)
    };
    assert!(run(5) == run(5));
    assert!(run(5).0 != run(6).0);
}

/// Fig. 6: TiNs 1 and 3 of a pod are connected; TiN 3 boots 2, then 4; TiN 4 boots 5.
#[test]
fn slow_x29_the_worked_example_of_the_paper_is_a_possible_run() {
    // A pod of five, of which each is wired to those before and behind it, as the figure has it: other links are broken.
    let shape = Shape { tins_per_pod: 5, pods: 1, local_ports: 4, global_ports: 0, ..Shape::FULL };
    let topology = Topology::new(&shape, aquila::topology::Fibres::Grid).unwrap();
    // The figure counts from 1.
    let mut config = Config::new(&shape, vec![0, 2], 1);
    config.manager.targets_max = 1;
    config.power_on = ms(60_000);
    let wired = [(0, 1), (1, 2), (2, 3), (3, 4)];
    for (at, link) in (0..).zip(topology.links()) {
        if !wired.contains(&(link.low.tin, link.high.tin)) {
            config.faults.push((Time::ZERO, Fault::Link { link: at, is_up: false }));
        }
    }
    let mut by_three = 0;
    for seed in 0..40 {
        let mut sim = Sim::new(Config { seed, ..config.clone() });
        let results = check(&mut sim);
        check_order(&sim, &results);
        let proxies: Vec<_> = results.tins.iter().map(|tin| tin.proxy.map(|way| way.0)).collect();
        // 2 may have been booted by 1 as well.
        assert!([Some(0), Some(2)].contains(&proxies[1]));
        assert_eq!(
            [proxies[0], proxies[2], proxies[3], proxies[4]],
            [None, None, Some(2), Some(3)]
        );
        by_three += u32::from(proxies[1] == Some(2));
        // Over the Clique afterwards: there is no other way to it.
        assert!(results.crossed > 0);
        assert_eq!(results.waves(), [2, 2, 1]);
    }
    assert!(by_three > 0, "in some run 3 boots 2 and 4");
}

#[test]
fn slow_m609_i77_a_restart_costs_no_packet_and_no_bootstrap() {
    let mut sim = Sim::new(Config::new(&Shape::TINY, vec![0], 1));
    let before = check(&mut sim);
    let chips = sim.chips().to_vec();
    let at = sim.now();
    for tin in [0, 7, 17] {
        sim.fault(Fault::Restart { tin });
    }
    let back = |sim: &Sim| [0, 7, 17].iter().all(|&tin| sim.stage(tin) == Stage::Ready);
    let lost = |sim: &Sim| [0, 7, 17].iter().all(|&tin| sim.stage(tin) != Stage::Ready);
    assert!(sim.run_until(lost) || sim.run_until(back));
    assert!(sim.run_until(back));
    let results = check(&mut sim);
    // 5 s of start, and silence is noticed within 75 s; no address was asked for, nobody was a target, nothing was written.
    assert!(sim.now() - at < ms(120_000), "{}", (sim.now() - at).as_seconds());
    assert_eq!(results.leases, before.leases);
    assert_eq!(results.sessions.pmos_sessions, before.sessions.pmos_sessions);
    assert_eq!(results.entries, before.entries, "I76");
    assert!(before.frames > 0 && results.frames >= before.frames, "what is counted stays counted");
    for (tin, (chip, old)) in sim.chips().iter().zip(&chips).enumerate() {
        for register in crate::expand::owned() {
            assert!(chip.registers.differing(&old.registers, register).is_empty(), "TiN {tin}");
        }
    }
}

#[test]
fn slow_m611_a_cold_start_is_a_bootstrap_and_the_rest_goes_on() {
    let mut sim = Sim::new(Config::new(&Shape::TINY, vec![0, 5], 1));
    let before = check(&mut sim);
    for tin in [5, 11] {
        sim.fault(Fault::Power { tin, is_on: false });
    }
    sim.run_to(sim.now() + ms(300_000));
    assert!(sim.is_done(), "the rest has ways without them");
    for tin in [5, 11] {
        assert_ne!(sim.stage(tin), Stage::Ready);
        sim.fault(Fault::Power { tin, is_on: true });
    }
    let results = check(&mut sim);
    assert!(results.leases.answers[1] >= before.leases.answers[1] + 2);
    check_tables(&sim);
}

#[test]
fn slow_m813_a_dead_proxy_s_targets_are_booted_by_others() {
    // One connected TiN; words are slow, so that its neighbours are still targets when they lose their proxy.
    let mut config = Config::new(&Shape::TINY, vec![0], 3);
    config.mos_interval = Span::from_us(2_000);
    let mut sim = Sim::new(config);
    // A target that is a proxy itself, whose targets have begun.
    let is_proxy = |sim: &Sim| {
        sim.results.changes.iter().rev().find_map(|change| {
            change.via.filter(|way| way.0 != 0 && sim.stage(change.tin) == Stage::Pmos)
        })
    };
    assert!(sim.run_until(|sim| is_proxy(sim).is_some()));
    let (proxy, _) = is_proxy(&sim).unwrap();
    sim.fault(Fault::Power { tin: proxy, is_on: false });
    let results = check(&mut sim);
    assert!(results.sessions.pmos_lost > 0);
    sim.fault(Fault::Power { tin: proxy, is_on: true });
    check(&mut sim);
    check_tables(&sim);
}

/// What its neighbours say at the instant of its death goes another way, or nowhere. Found by random starts: with these
/// links broken much of what TiNs say passes others.
#[test]
fn slow_i82_nothing_passes_a_tin_at_the_instant_at_which_it_dies() {
    let broken: &[u32] = &[
        99, 31, 15, 83, 36, 121, 130, 101, 15, 23, 39, 115, 134, 39, 55, 82, 110, 49, 84, 121, 1,
        99, 68, 23, 103,
    ];
    let mut config = Config::new(&Shape::TINY, vec![2, 8, 14], 3);
    let breaks = |&link: &u32| (Time::ZERO, Fault::Link { link, is_up: false });
    config.faults = broken.iter().map(breaks).collect();
    let mut sim = Sim::new(config);
    check(&mut sim);
    for tin in 0..18 {
        sim.fault(Fault::Power { tin, is_on: false });
        check(&mut sim);
        sim.fault(Fault::Power { tin, is_on: true });
        check(&mut sim);
    }
}

#[test]
fn slow_m813_another_controller_takes_over_in_the_middle() {
    let mut config = Config::new(&Shape::TINY, vec![0], 3);
    config.mos_interval = Span::from_us(2_000);
    config.faults = vec![(second(60), Fault::Controller), (second(150), Fault::Controller)];
    let mut sim = Sim::new(config);
    sim.run_to(second(200));
    check(&mut sim);
    check_tables(&sim);
}

/// X12 at its size: `cargo test --release -p rackloom-aquila-control --lib -- --ignored the_full_clique --nocapture`.
#[test]
#[ignore = "half a minute and more"]
fn m801_x12_the_full_clique_boots() {
    let results = check_clique(&Shape::FULL, 512);
    assert!(results.memory_peak() <= 2 << 20);
}

/// Chips that are written with what the journal says hold what the Clique's chips do, stage by stage.
#[test]
fn slow_m729_the_journal_says_what_chips_are_written_with_and_when() {
    let mut config = Config::new(&Shape::TINY, vec![0, 7], 1);
    let link = 5;
    config.faults = vec![
        (second(1), Fault::Link { link, is_up: false }),
        (second(30), Fault::Power { tin: 9, is_on: false }),
        (second(60), Fault::Power { tin: 9, is_on: true }),
    ];
    let mut clique = Booted::new(config);
    let registers = |clique: &Booted| -> Vec<_> {
        clique.chips().iter().map(|chip| chip.registers.clone()).collect()
    };
    let mut files = registers(&clique);
    let mut condition = Condition::healthy(clique.topology());
    let healthy = compute(clique.topology(), &TurnTable::P1, &condition);
    assert!(tables(clique.topology().shape(), &files).unwrap() == healthy);
    let entries = clique.run_to(second(29));
    assert!(clique.is_done());
    assert!(entries.is_sorted_by_key(|entry| entry.time));
    let when = |is_it: &dyn Fn(&What) -> bool| {
        entries.iter().find(|entry| is_it(&entry.what)).map(|entry| entry.time)
    };
    let stages = [
        when(&|what| *what == What::Fault(Fault::Link { link, is_up: false })),
        when(&|what| matches!(what, What::LinkSeen { .. })),
        when(&|what| matches!(what, What::RowWritten { .. })),
        when(&|what| matches!(what, What::BatchWritten { .. })),
        when(&|what| matches!(what, What::Written { .. })),
        when(&|what| matches!(what, What::BatchComplete { .. })),
    ];
    assert_eq!(stages[0], Some(second(1)));
    assert!(stages.is_sorted() && stages[5] < Some(second(29)), "{stages:?}");
    entries.iter().for_each(|entry| replay(entry, &mut files));
    condition.set_link(link, aquila::tables::condition::State::Dead);
    let damaged = compute(clique.topology(), &TurnTable::P1, &condition);
    assert!(tables(clique.topology().shape(), &files).unwrap() == damaged);
    let entries = clique.run_to(second(600));
    assert!(clique.is_done());
    entries.iter().for_each(|entry| replay(entry, &mut files));
    for (tin, (file, chip)) in files.iter().zip(registers(&clique)).enumerate() {
        for register in crate::expand::owned() {
            assert!(file.differing(&chip, register).is_empty(), "{} of TiN {tin}", register.name);
        }
    }
    assert!(tables(clique.topology().shape(), &files).unwrap() == damaged);
}

/// A start of the tiny Clique: a seed, the connected TiNs, broken links, of a million words how many are lost, and what
/// happens when: a second, a kind of fault, where.
type Start = (u64, BTreeSet<u16>, Vec<Index>, u32, Vec<(u64, usize, Index)>);

fn starts(mos_lost: &'static [u32]) -> impl Strategy<Value = Start> {
    (
        any::<u64>(),
        prop::collection::btree_set(0..18u16, 1..4),
        prop::collection::vec(any::<Index>(), 0..30),
        prop::sample::select(mos_lost),
        prop::collection::vec((0..240u64, 0..8usize, any::<Index>()), 0..8),
    )
}

fn check_start((seed, set, broken, mos_lost, faults): Start) {
    let mut config = Config::new(&Shape::TINY, set.iter().copied().collect(), seed);
    config.mos_lost = mos_lost;
    config.mos_interval = Span::from_us(500);
    config.limit = second(7_200);
    config.manager.versions = [Versions::V4, Versions::V6, Versions::Both][seed as usize % 3];
    let topology = Topology::new(&Shape::TINY, aquila::topology::Fibres::Grid).unwrap();
    let mut links: Vec<bool> = vec![true; topology.links().len()];
    for link in broken {
        let link = link.index(links.len());
        links[link] = false;
        // Not if that cuts the Clique.
        links[link] = !is_connected(&topology, &links);
        if !links[link] {
            config.faults.push((Time::ZERO, Fault::Link { link: link as u32, is_up: false }));
        }
    }
    for (at, kind, which) in faults {
        let (fault, after) = fault(kind, which, &links, &set);
        config.faults.push((second(at), fault));
        config.faults.extend(after.map(|after| (second(at + 20), after)));
    }
    let mut sim = Sim::new(config);
    sim.run_to(second(300));
    let results = check(&mut sim);
    assert_eq!(results.without_image, 0, "M617");
    // A TiN whose power was cut while it restarted may have been away for too long, and ended it.
    let has_failed = results.upgraded.values().any(|one| one.failed.is_some());
    if let Some(plan) = results.plan.filter(|_| !has_failed) {
        for tin in (0..18).filter_map(|tin| sim.firmware(tin)) {
            assert_eq!(tin.version(), plan.header.version, "M617");
        }
    }
    let is_on_trial = |chip: &Chip| matches!(chip.flash.trial(), Trial::Due | Trial::Runs);
    assert!(!sim.chips().iter().any(is_on_trial), "M617");
}

/// A fault, and what ends it, if something has to.
fn fault(
    kind: usize,
    which: Index,
    links: &[bool],
    connected: &BTreeSet<u16>,
) -> (Fault, Option<Fault>) {
    let tin = which.index(18) as u16;
    let link = which.index(links.len()) as u32;
    let both = |fault: &dyn Fn(bool) -> Fault| (fault(false), Some(fault(true)));
    match kind {
        0 => (Fault::Restart { tin }, None),
        1 => both(&|is_on| Fault::Power { tin, is_on }),
        2 => (Fault::Controller, None),
        4 => {
            let name = (Application::ALL[which.index(4)], (which.index(8) / 4) as u8);
            both(&|runs| Fault::Instance { name, runs })
        }
        7 => {
            let (version, at_once) = (2 + which.index(3) as u16, 1 + which.index(6) as u8);
            // One image of three never connects.
            let code = if which.index(9) < 3 { Code::Silent } else { Code::Whole };
            (Fault::Upgrade { version, restart: Restart::Processor, at_once, code }, None)
        }
        5 => both(&|runs| Fault::Base { copy: which.index(2) as u8, runs }),
        3 if links[link as usize] => both(&|is_up| Fault::Link { link, is_up }),
        _ if connected.contains(&tin) => both(&|is_up| Fault::Ethernet { tin, is_up }),
        _ => (Fault::Restart { tin }, None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// From any set of connected TiNs, if the links that work connect all: with words lost, and processors, chips, links
    /// and the controller failing while it goes on.
    #[test]
    fn slow_i81_all_become_ready(start in starts(&[0, 500])) {
        check_start(start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// The same a thousand times, with up to six times as many words lost:
    /// `cargo test --release -p rackloom-aquila-control --lib -- --ignored a_thousand_starts`
    #[test]
    #[ignore = "minutes"]
    fn i81_a_thousand_starts(start in starts(&[0, 500, 3_000])) {
        check_start(start);
    }
}

fn is_connected(topology: &Topology, links: &[bool]) -> bool {
    let mut reached = BTreeSet::from([0]);
    loop {
        let before = reached.len();
        for (link, _) in topology.links().iter().zip(links).filter(|(_, works)| **works) {
            if reached.contains(&link.low.tin) || reached.contains(&link.high.tin) {
                reached.extend([link.low.tin, link.high.tin]);
            }
        }
        if reached.len() == before {
            return before == usize::from(topology.shape().tins());
        }
    }
}
