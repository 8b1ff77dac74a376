//! What the control plane writes beside a run, held against tables that are computed at once.

use aquila::Config;
use aquila::config::{Control, Maintenance, Profile, Sdn};
use aquila::tables::condition::State;
use kernel::Stream;

use super::*;

fn config(profile: Profile, sdn: Sdn) -> Config {
    Config { profile: Some(profile), control: Control::Sdn, sdn, ..Config::default() }
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Runs faults by the world itself: what is written, and the tables behind it.
#[track_caller]
fn check(plan: &Plan, faults: &[(Time, Fault)], condition: &Condition) -> Vec<Write> {
    let topology = &plan.topology;
    let shape = topology.shape();
    let mut world = World::new(topology, &plan.config.sdn);
    assert!(held(plan, &mut world).is_empty(), "I75: a booted Clique holds what is computed");
    let start = world.now;
    for &(time, fault) in faults {
        world.plan(start + (time - Time::ZERO), fault);
    }
    let last = faults.iter().map(|&(time, _)| time).max().unwrap();
    world.run_to(start + (last - Time::ZERO));
    finish(&mut world);
    assert!(world.is_settled(), "not settled {:?} after the last of {faults:?}", PATIENCE);
    let all = std::mem::take(&mut world.written);
    let writes: Vec<Write> =
        all.iter().filter_map(|w| changes(shape, w, Time::ZERO + (w.at - start))).collect();
    let journal = Journal::new(writes);
    let healthy = compute(topology, &plan.turns, &Condition::healthy(topology));
    let written = healthy.after(journal.writes());
    let expected = compute(topology, &plan.turns, condition);
    for tin in (0..shape.tins()).filter(|&tin| condition.tin(tin) != State::Dead) {
        assert!(written.is_same_at(tin, &expected), "I75: TiN {tin} after {faults:?}");
    }
    journal.writes().to_vec()
}

/// I75, I72: after links have failed, come back and failed, the tables that the controller has written are those that are
/// computed at once; links failing at random, also while others are being repaired.
#[test]
fn slow_i75_m729_what_is_written_equals_what_is_computed() {
    for (profile, cases) in [(Profile::Tiny, 6), (Profile::Mini, 2)] {
        let plan = config(profile, Sdn::default()).plan().unwrap();
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
                faults.push((us(at), Fault::Link(link, is_up)));
            }
            let writes = check(&plan, &faults, &condition);
            assert!(!writes.is_empty());
        }
    }
}

/// M611, M815: a TiN that loses its power is led round; one that gets it back is programmed from nothing.
#[test]
fn slow_m611_a_tin_loses_its_power_and_comes_back() {
    let plan = config(Profile::Tiny, Sdn::default()).plan().unwrap();
    let mut condition = Condition::healthy(&plan.topology);
    let off = (us(1_000), Fault::Tin(5, false));
    let back = (us(40_000_000), Fault::Tin(5, true));
    let writes = check(&plan, &[off, back], &condition);
    assert!(writes.iter().any(|write| write.change == Change::Reset));
    // While it is off its neighbours know its links to be dead; the controller still hopes for it.
    for link in 0..plan.topology.links().len() as u32 {
        let ends = plan.topology.links()[link as usize];
        if ends.low.tin == 5 || ends.high.tin == 5 {
            condition.set_link(link, State::Dead);
        }
    }
    let mut world = World::new(&plan.topology, &plan.config.sdn);
    let start = world.now;
    world.plan(start + Span::from_us(1_000), off.1);
    world.run_to(start + Span::from_us(30_000_000));
    let writes: Vec<Write> = std::mem::take(&mut world.written)
        .iter()
        .filter_map(|w| changes(plan.topology.shape(), w, w.at))
        .collect();
    let healthy = compute(&plan.topology, &plan.turns, &Condition::healthy(&plan.topology));
    let (written, expected) =
        (healthy.after(&writes), compute(&plan.topology, &plan.turns, &condition));
    for tin in (0..18).filter(|&tin| tin != 5) {
        // No cell for it goes anywhere, however that is said.
        let is_same = written.is_same_at(tin, &expected);
        assert!(is_same, "TiN {tin}");
    }
}

/// I76, I77, M609: processors that start again write nothing, and there is nothing to repair.
#[test]
fn i76_i77_m609_a_restart_writes_nothing() {
    let sdn = Sdn {
        maintenance: [3, 7]
            .map(|tin| Maintenance {
                at: Span::from_us(500),
                restart: Some(tin),
                ..Maintenance::default()
            })
            .to_vec(),
        ..Sdn::default()
    };
    let journal = journal(&config(Profile::Tiny, sdn).plan().unwrap());
    assert_eq!(journal.writes(), []);
    assert_eq!(journal.repairs, []);
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
    let sdn = Sdn { maintenance: vec![drain], ..Sdn::default() };
    let plan = config(Profile::Tiny, sdn).plan().unwrap();
    let journal = journal(&plan);
    let healthy = compute(&plan.topology, &plan.turns, &Condition::healthy(&plan.topology));
    let mut drained = Condition::healthy(&plan.topology);
    drained.set_tin(4, State::Drained);
    let drained = compute(&plan.topology, &plan.turns, &drained);
    let half = journal.writes().partition_point(|write| write.at < us(800_000));
    let (between, after) =
        (healthy.after(&journal.writes()[..half]), healthy.after(journal.writes()));
    for tin in 0..plan.topology.shape().tins() {
        assert!(between.is_same_at(tin, &drained), "TiN {tin}, drained");
        assert!(after.is_same_at(tin, &healthy), "TiN {tin}, put back");
    }
    assert!(half > 0 && half < journal.writes().len());
    assert_eq!(journal.repairs.len(), 2);
    assert!(journal.repairs.iter().all(|repair| repair.took() > Some(Span::ZERO)));
    assert!(journal.batches.len() > 2, "M728: {} batches", journal.batches.len());
}
