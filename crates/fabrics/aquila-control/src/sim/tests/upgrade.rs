//! Another version of the firmware on a Clique that is up (M617).

use super::*;
use crate::apps::front_end::upgrade::Failure;
use crate::flash::{Header, IMAGE_BYTES, TRIAL_STARTS};
use crate::sim::journal::What;
use crate::sim::results::Upgraded;

/// A tiny Clique that is up, and what is noted of it.
fn up() -> Booted {
    let mut config = Config::new(&Shape::TINY, vec![0, 9], 3);
    config.limit = second(40_000);
    Booted::new(config)
}

/// Goes on until nothing more comes of it; what was noted.
#[track_caller]
fn finish(clique: &mut Booted, limit: u64) -> Vec<crate::sim::journal::Entry> {
    let mut entries = Vec::new();
    let until = clique.now() + ms(1_000 * limit);
    while !clique.is_settled() {
        let at = clique.now() + ms(250);
        assert!(at < until, "{:?}", clique.sim.results().upgraded);
        entries.extend(clique.run_to(at));
    }
    entries
}

fn asks(version: u16, restart: Restart, at_once: u8) -> Fault {
    Fault::Upgrade { version, restart, at_once, code: Code::Whole }
}

/// How the image that was chosen stands, of all.
fn trials(clique: &Booted) -> Vec<Trial> {
    clique.chips().iter().map(|chip| chip.flash.trial()).collect()
}

fn versions(clique: &Booted) -> Vec<u16> {
    let tins = 0..clique.chips().len() as u16;
    tins.map(|tin| clique.sim.firmware(tin).map_or(0, Firmware::version)).collect()
}

fn writes(entries: &[crate::sim::journal::Entry]) -> usize {
    let is_write = |what: &What| matches!(what, What::Written { .. } | What::Cold { .. });
    entries.iter().filter(|entry| is_write(&entry.what)).count()
}

/// M609, I76, I77: while all TiNs get another version of the firmware nothing is written to any register, nobody is booted
/// by PMOS, and of neighbours one restarts at a time.
#[test]
fn slow_m617_m609_i76_i77_a_rolling_upgrade_writes_nothing() {
    let mut clique = up();
    let before = clique.sim.results();
    clique.fault(asks(2, Restart::Processor, 3));
    let entries = finish(&mut clique, 400);
    assert_eq!(versions(&clique), [2; 18]);
    assert_eq!(trials(&clique), [Trial::Kept; 18], "all were heard of");
    assert_eq!(writes(&entries), 0, "I76");
    let after = clique.sim.results();
    assert_eq!(after.sessions.pmos_sessions, before.sessions.pmos_sessions, "I77");
    assert_eq!((after.batches, after.entries), (before.batches, before.entries));
    assert_eq!((after.without_image, after.out_of_memory, after.passed_unready), (0, 0, 0));
    // The image takes as long as 4 KiB each 55 ms, a restart 5 s; and no more than three at once.
    let all: Vec<Upgraded> = after.upgraded.values().copied().collect();
    assert_eq!(all.len(), 18);
    let sent = f64::from(IMAGE_BYTES) / 4_096.0 * 0.055;
    for (one, two) in all.iter().flat_map(|one| all.iter().map(move |two| (one, two))) {
        let (begun, restarted, done) =
            (one.begun.unwrap(), one.restarted.unwrap(), one.done.unwrap());
        assert!((restarted - begun).as_seconds() > sent - 0.06);
        assert!((done - restarted).as_seconds() > 5.0 && (done - restarted).as_seconds() < 12.0);
        let at = two.begun.unwrap();
        let under_way = |other: &&Upgraded| other.begun.unwrap() <= at && at < other.done.unwrap();
        assert!(all.iter().filter(under_way).count() <= 3);
    }
    let tins: Vec<(u16, Upgraded)> = after.upgraded.iter().map(|(&t, &u)| (t, u)).collect();
    for &(tin, one) in &tins {
        let fars = (0..Shape::TINY.external_ports()).filter_map(|p| clique.topology().far(tin, p));
        for far in fars {
            let two = after.upgraded[&far.tin];
            let overlap = one.restarted < two.done && two.restarted < one.done;
            assert!(!overlap || far.tin == tin, "TiNs {tin} and {} restart together", far.tin);
        }
    }
}

/// M611: with their chips TiNs lose what they hold, and are booted again, one after the other.
#[test]
fn slow_m617_m611_a_cold_upgrade_boots_each_tin_again() {
    let mut clique = up();
    clique.fault(asks(7, Restart::Chip, 8));
    let entries = finish(&mut clique, 20_000);
    assert_eq!(versions(&clique), [7; 18]);
    assert_eq!(trials(&clique), [Trial::Kept; 18], "also by PMOS");
    let cold = entries.iter().filter(|entry| matches!(entry.what, What::Cold { .. })).count();
    assert_eq!(cold, 18);
    assert!(writes(&entries) > 18 * 10);
    let mut times: Vec<_> = clique.sim.results().upgraded.into_values().collect();
    times.sort_by_key(|one| one.restarted);
    for pair in times.windows(2) {
        assert!(pair[0].done <= pair[1].restarted, "{pair:?}");
    }
}

/// Whatever breaks meanwhile: what the flash holds is not sent again, and all run the new version at the end.
#[test]
fn slow_m617_an_upgrade_outlives_power_cuts_restarts_and_controllers() {
    let mut clique = up();
    clique.fault(asks(2, Restart::Processor, 18));
    let later = |clique: &mut Booted, milliseconds| {
        clique.run_to(clique.now() + ms(milliseconds));
    };
    later(&mut clique, 1_500);
    let staged = |clique: &Booted, tin: usize| clique.chips()[tin].flash.staged();
    let blocks = staged(&clique, 5).blocks;
    assert!((5..60).contains(&blocks), "{blocks}");
    clique.fault(Fault::Power { tin: 5, is_on: false });
    clique.fault(Fault::Restart { tin: 6 });
    later(&mut clique, 500);
    clique.fault(Fault::Power { tin: 5, is_on: true });
    clique.fault(Fault::Controller);
    let kept = staged(&clique, 5);
    assert!(kept.header.is_some() && kept.blocks >= blocks, "{kept:?}");
    later(&mut clique, 9_000);
    clique.fault(Fault::Controller);
    finish(&mut clique, 2_000);
    assert_eq!(versions(&clique), [2; 18]);
    let results = clique.sim.results();
    assert!(results.upgraded.values().all(|one| one.failed.is_none() && one.runs == 2));
}

/// An image that is for others, or is not what its header says, ends it at the first TiN, and nothing restarts.
#[test]
fn slow_m617_a_bad_image_ends_it_and_the_old_one_goes_on() {
    let good = Image::new(2, GENERATION);
    let other = Image::new(2, GENERATION + 1);
    let header = Header { checksum: good.header.checksum ^ 1, ..good.header };
    let damaged = good.with_header(header);
    for (image, why) in [(other, Failure::Generation), (damaged, Failure::Damaged)] {
        let mut clique = up();
        clique.sim.upgrade(&image, Restart::Processor, 1);
        let entries = finish(&mut clique, 60);
        assert_eq!(writes(&entries), 0);
        assert_eq!(versions(&clique), [1; 18]);
        let upgraded = clique.sim.results().upgraded;
        let failed: Vec<_> = upgraded.values().filter_map(|one| one.failed).collect();
        assert_eq!((failed, upgraded.len()), (vec![why], 1));
        // Another plan may do better.
        clique.fault(asks(3, Restart::Processor, 6));
        finish(&mut clique, 400);
        assert_eq!(versions(&clique), [3; 18]);
    }
}

/// An image that starts and never connects gives way to the one before it; the upgrade ends, no register is written, no TiN
/// is booted by PMOS, and another plan may do better.
#[test]
fn slow_m617_m609_an_image_that_never_connects_is_rolled_back() {
    for at_once in [1, 4] {
        let mut clique = up();
        let before = clique.sim.results();
        let (restart, code) = (Restart::Processor, Code::Silent);
        clique.fault(Fault::Upgrade { version: 2, restart, at_once, code });
        let entries = finish(&mut clique, 400);
        assert_eq!((writes(&entries), versions(&clique)), (0, vec![1; 18]));
        let after = clique.sim.results();
        assert_eq!(after.sessions.pmos_sessions, before.sessions.pmos_sessions, "I77");
        assert_eq!((after.entries, after.without_image), (before.entries, 0));
        let failed: Vec<(u16, Upgraded)> =
            clique.upgraded().into_iter().filter(|(_, one)| one.failed.is_some()).collect();
        assert!((1..=usize::from(at_once)).contains(&failed.len()), "{failed:?}");
        for (tin, one) in failed {
            assert_eq!((one.failed, one.runs), (Some(Failure::RolledBack), 1));
            let is_ready = What::Stage { tin, stage: Stage::Ready };
            let restarted = one.restarted.unwrap();
            let mut after = entries.iter().filter(|entry| entry.time > restarted);
            let back = after.find(|entry| entry.what == is_ready).unwrap().time;
            // A restart of 5 s before the trial, of two minutes, and one after it.
            let took = (back - restarted).as_seconds();
            assert!((130.0..145.0).contains(&took), "{took}");
        }
        let back = trials(&clique).into_iter().filter(|&trial| trial == Trial::Back).count();
        assert!((1..=usize::from(at_once)).contains(&back));
        // The same version again, with an image that does connect.
        clique.fault(asks(2, Restart::Processor, 6));
        finish(&mut clique, 400);
        assert_eq!((versions(&clique), trials(&clique)), (vec![2; 18], vec![Trial::Kept; 18]));
    }
}

/// One power cut during a trial is not held against an image, another is.
#[test]
fn slow_m617_an_image_on_trial_starts_twice_and_not_more() {
    for cuts in [TRIAL_STARTS - 1, TRIAL_STARTS] {
        let mut clique = up();
        clique.fault(asks(2, Restart::Processor, 1));
        let restarted = |clique: &Booted| {
            let upgraded = clique.upgraded();
            upgraded.iter().find(|(_, one)| one.restarted.is_some()).map(|&(tin, _)| tin)
        };
        let tin = loop {
            clique.run_to(clique.now() + ms(10));
            if let Some(tin) = restarted(&clique) {
                break tin;
            }
        };
        for _ in 0..cuts {
            // It starts after 5 s, and has no session yet.
            while clique.sim.firmware(tin).is_none_or(|firmware| firmware.version() != 2) {
                clique.run_to(clique.now() + ms(1));
            }
            clique.fault(Fault::Power { tin, is_on: false });
            clique.fault(Fault::Power { tin, is_on: true });
        }
        clique.run_to(clique.now() + ms(6_000));
        let (runs, trial) = if cuts < TRIAL_STARTS { (2, Trial::Runs) } else { (1, Trial::Back) };
        let held = (clique.sim.firmware(tin).unwrap().version(), trials(&clique)[usize::from(tin)]);
        assert!(held == (runs, trial) || held == (runs, Trial::Kept), "{held:?}");
        finish(&mut clique, 2_000);
        let (failed, count) =
            if cuts < TRIAL_STARTS { (None, 18) } else { (Some(Failure::RolledBack), 0) };
        assert_eq!(clique.sim.results().upgraded[&tin].failed, failed);
        let upgraded = versions(&clique).into_iter().filter(|&version| version == 2).count();
        assert_eq!(upgraded, count);
    }
}

/// What runs for a plan that another one has followed is kept, whatever becomes of that one.
#[test]
fn slow_m617_an_image_of_a_plan_that_was_followed_is_kept() {
    let mut clique = up();
    clique.fault(asks(2, Restart::Processor, 2));
    let due = loop {
        clique.run_to(clique.now() + ms(10));
        let due: Vec<usize> = (0..)
            .zip(trials(&clique))
            .filter(|&(_, trial)| trial == Trial::Due)
            .map(|(tin, _)| tin)
            .collect();
        if due.len() == 2 {
            break due;
        }
    };
    let (restart, code) = (Restart::Processor, Code::Silent);
    clique.fault(Fault::Upgrade { version: 3, restart, at_once: 1, code });
    finish(&mut clique, 400);
    clique.run_to(clique.now() + ms(200_000));
    let mut expected = [1; 18];
    due.iter().for_each(|&tin| expected[tin] = 2);
    assert_eq!(versions(&clique), expected);
    let is_on_trial = |trial: &Trial| matches!(trial, Trial::Due | Trial::Runs);
    assert!(!trials(&clique).iter().any(is_on_trial));
}

/// A TiN whose chip is of another generation has no session, by whatever way, and the others are booted.
#[test]
fn slow_m617_a_chip_of_another_generation_is_refused() {
    let mut sim = Sim::new(Config::new(&Shape::TINY, vec![0, 9], 3));
    for tin in [4, 9] {
        let chip = sim.chips[tin].clone();
        sim.chips[tin] = chip.of_generation(GENERATION + 1);
    }
    sim.run_to(second(120));
    let results = sim.results();
    assert_eq!(results.ready_count, 16);
    assert!(sim.stage(4) != Stage::Ready && sim.stage(9) != Stage::Ready);
    assert!(results.sessions.other_generations > 2, "{:?}", results.sessions);
    assert_eq!(results.sessions.malformed, 0);
}
