//! What the control plane writes beside a run, held against tables that are computed at once.

use aquila::config::{Control, Maintenance, Profile};
use aquila::tables::condition::State;
use kernel::Stream;

use super::*;

fn planned(profile: Profile, maintenance: Vec<Maintenance>) -> Plan {
    let sdn = Sdn { maintenance, ..Sdn::default() };
    let config = aquila::Config {
        profile: Some(profile),
        control: Control::Sdn,
        sdn,
        ..aquila::Config::default()
    };
    config.plan().unwrap()
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// The tables behind the writes of a journal until an instant are those that are computed under a condition, at all TiNs
/// that are not dead.
#[track_caller]
fn check_tables(plan: &Plan, journal: &Journal, until: Time, condition: &Condition) {
    let topology = &plan.topology;
    let healthy = compute(topology, &plan.turns, &Condition::healthy(topology));
    let count = journal.writes().partition_point(|write| write.at <= until);
    let written = healthy.after(&journal.writes()[..count]);
    let expected = compute(topology, &plan.turns, condition);
    for tin in 0..topology.shape().tins() {
        let is_same = condition.tin(tin) == State::Dead || written.is_same_at(tin, &expected);
        assert!(is_same, "I75: TiN {tin} at {until}");
    }
}

/// I75, I72: after links have failed, come back and failed, the tables that the controller has written are those that are
/// computed at once; links failing at random, also while others are being repaired.
#[test]
fn slow_i75_m729_what_is_written_equals_what_is_computed() {
    for (profile, cases) in [(Profile::Tiny, 6), (Profile::Mini, 2)] {
        let plan = planned(profile, Vec::new());
        let links = plan.topology.links().len() as u64;
        for seed in 0..cases {
            let mut stream = Stream::new(seed, "test/beside", profile as u64);
            let mut condition = Condition::healthy(&plan.topology);
            let (mut faults, mut at) = (Vec::new(), 1_000);
            for _ in 0..6 {
                // Some within a repair, some long after it.
                at += [100, 3_000, 400_000][stream.below(3) as usize];
                let link = stream.below(links) as u32;
                let is_up = condition.link(link) == State::Dead;
                condition.set_link(link, if is_up { State::Live } else { State::Dead });
                faults.push((us(at), Fault::Link { link, is_up }));
            }
            let (journal, clique) = watch(&plan, &faults, seed);
            assert!(clique.unwrap().is_settled());
            check_tables(&plan, &journal, Time::NEVER, &condition);
            assert!(journal.writes()[0].at > faults[0].0, "it holds what is computed before");
            assert!(journal.repairs.iter().all(|repair| repair.until.is_some()));
        }
    }
}

/// M729: of three failures a few milliseconds apart each is repaired before the next, and said to be.
#[test]
fn m729_repairs_that_are_over_before_the_next_failure_are_told_apart() {
    let plan = planned(Profile::Tiny, Vec::new());
    let at = [1_000, 9_000, 17_000];
    let fails = |(link, at): (u32, u64)| (us(at), Fault::Link { link: link * 7, is_up: false });
    let faults: Vec<_> = (1..).zip(at).map(fails).collect();
    let (journal, _) = watch(&plan, &faults, 1);
    let since: Vec<Time> = journal.repairs.iter().map(|repair| repair.since).collect();
    assert_eq!(since, at.map(us));
    for repair in &journal.repairs {
        let took = repair.took().expect("it is over");
        assert!(took < Span::from_us(8_000), "{took}");
    }
}

/// M611, M815: a TiN that loses its power is led round; one that gets it back is programmed from nothing.
#[test]
fn slow_m611_a_tin_loses_its_power_and_comes_back() {
    let plan = planned(Profile::Tiny, Vec::new());
    let (off, on) = (us(1_000), us(40_000_000));
    let faults = [false, true].map(|is_on| Fault::Power { tin: 5, is_on });
    let (journal, _) = watch(&plan, &[(off, faults[0]), (on, faults[1])], 1);
    let mut condition = Condition::healthy(&plan.topology);
    check_tables(&plan, &journal, Time::NEVER, &condition);
    assert!(journal.writes().iter().any(|write| write.change == Change::Reset));
    // While it is off its neighbours know its links to be dead; the controller still hopes for it.
    for (link, ends) in (0..).zip(plan.topology.links()) {
        if ends.low.tin == 5 || ends.high.tin == 5 {
            condition.set_link(link, State::Dead);
        }
    }
    condition.set_tin(5, State::Dead);
    check_tables(&plan, &journal, us(30_000_000), &condition);
    assert!(journal.repairs.iter().all(|repair| repair.until.is_some()), "{:?}", journal.repairs);
}

/// I76, I77, M609: processors that start again write nothing, and there is nothing to repair.
#[test]
fn i76_i77_m609_a_restart_writes_nothing() {
    let restart =
        |tin| Maintenance { at: Span::from_us(500), restart: Some(tin), ..Maintenance::default() };
    let journal = journal(&planned(Profile::Tiny, vec![restart(3), restart(7)]), 1);
    assert_eq!(journal.writes(), []);
    assert_eq!(journal.repairs, []);
}

/// M617, M609, I76: all TiNs get another version while nothing is written; a link that dies meanwhile is repaired as ever.
#[test]
fn slow_m617_m609_i76_an_upgrade_writes_nothing_and_delays_no_repair() {
    let upgrade = Maintenance { upgrade: Some(2), at_once: Some(6), ..Maintenance::default() };
    let plan = planned(Profile::Tiny, vec![upgrade]);
    let journal = journal(&plan, 1);
    assert_eq!((journal.writes(), &journal.repairs[..]), (&[][..], &[][..]));
    assert_eq!(journal.upgrades.len(), 18);
    for upgrade in &journal.upgrades {
        let took = upgrade.until.expect("it is back") - upgrade.since;
        assert!((5.0..12.0).contains(&took.as_seconds()), "{took}");
    }
    // Beside blocks of an image, of which the flash takes 50 ms each, a repair takes as long as without, but for a request
    // that is under way.
    let took = |with: bool| {
        let (restart, code) = (Restart::Processor, Code::Whole);
        let asks = Fault::Upgrade { version: 2, restart, at_once: 18, code };
        let fails = Fault::Link { link: 7, is_up: false };
        let faults = [(us(0), asks), (us(1_500_000), fails)];
        let (journal, clique) = watch(&plan, if with { &faults } else { &faults[1..] }, 1);
        assert_eq!(clique.unwrap().upgraded().len(), if with { 18 } else { 0 });
        assert_eq!(journal.repairs.len(), 1);
        journal.repairs[0].took().expect("it is over")
    };
    let (with, without) = (took(true), took(false));
    assert!(with < without + Span::from_us(2_000), "{with} with an upgrade, {without} without");
}

/// M730: a drain and its end are written in batches, and lead back to the tables that were there.
#[test]
fn m730_what_is_drained_and_put_back_leaves_the_tables_as_they_were() {
    let drain = Maintenance {
        at: Span::from_us(500),
        until: Some(Span::from_us(800_000)),
        drain_tin: Some(4),
        ..Maintenance::default()
    };
    let plan = planned(Profile::Tiny, vec![drain]);
    let journal = journal(&plan, 1);
    let healthy = Condition::healthy(&plan.topology);
    let mut drained = healthy.clone();
    drained.set_tin(4, State::Drained);
    check_tables(&plan, &journal, us(799_999), &drained);
    check_tables(&plan, &journal, Time::NEVER, &healthy);
    assert_eq!(journal.repairs.len(), 2);
    assert!(journal.repairs.iter().all(|repair| repair.took() > Some(Span::ZERO)));
    assert!(journal.batches.len() > 2, "M728: {} batches", journal.batches.len());
}

/// The same events later are the same writes later, whatever the controller does by its clock meanwhile.
#[test]
fn the_same_failures_later_are_repaired_alike() {
    let plan = planned(Profile::Tiny, Vec::new());
    let at = |later: Span| {
        let fails = [(0, 4), (700, 9)];
        let faults = fails.map(|(at, link)| (us(at) + later, Fault::Link { link, is_up: false }));
        let journal = watch(&plan, &faults, 1).0;
        let writes = journal.writes().iter();
        writes
            .map(|write| (write.at - (Time::ZERO + later), *write))
            .map(|(at, write)| (at, write.tin, write.change))
            .collect::<Vec<_>>()
    };
    assert_eq!(at(Span::ZERO), at(Span::from_ps(1_234_567_890_123)));
}

/// With the least and the largest of all times, and with one way in alone, the Clique comes up and a failure is repaired.
#[test]
fn any_times_that_a_scenario_may_have_repair_a_failure() {
    let us = Span::from_us;
    let all = [
        Sdn { network: us(1), message: us(1), hop: Span::from_ns(1), ..Sdn::default() },
        Sdn { network: us(100_000), message: us(100_000), hop: us(1_000), ..Sdn::default() },
        Sdn { entry_time: Span::ZERO, start_time: us(1), connected: 1, ..Sdn::default() },
        Sdn { entry_time: us(1_000), mos_interval: us(1_000), connected: 18, ..Sdn::default() },
    ];
    for sdn in all {
        assert_eq!(sdn.check(&Shape::TINY), []);
        let mut plan = planned(Profile::Tiny, Vec::new());
        plan.config.sdn = sdn.clone();
        let fails = (Time::ZERO, Fault::Link { link: 5, is_up: false });
        let (journal, _) = watch(&plan, &[fails], 1);
        assert!(journal.repairs[0].took().is_some(), "{sdn:?}");
    }
}
