//! Rows as bytes, and what is done with them.

use proptest::prelude::*;

use super::*;
use crate::flash::{BLOCK_TIME, Flash, GENERATION, Header};
use crate::nib::Nib;

fn stages() -> impl Strategy<Value = Stage> {
    prop_oneof![
        prop::sample::select(vec![Stage::Idle, Stage::Sending, Stage::Restarting, Stage::Done]),
        prop::sample::select(Stage::FAILURES.to_vec()).prop_map(Stage::Failed),
    ]
}

proptest! {
    #[test]
    fn m617_rows_come_back_and_no_others_are_taken(
        (runs, number, stage) in (any::<u16>(), any::<u32>(), stages()),
        header in any::<[u8; Header::BYTES]>(),
        at_once in 1..=255u8,
        bytes in prop::collection::vec(any::<u8>(), 0..24),
    ) {
        let row = FirmwareRow { runs, number, stage };
        prop_assert_eq!(FirmwareRow::decode(&row.encode()), Some(row));
        let plan = PlanRow { number, header: Header::decode(&header), restart: Restart::Chip, at_once };
        prop_assert_eq!(PlanRow::decode(&plan.encode()), plan.header.fits().then_some(plan));
        if let Some(row) = FirmwareRow::decode(&bytes) {
            prop_assert_eq!(row.encode(), &bytes[..]);
        }
        if let Some(plan) = PlanRow::decode(&bytes) {
            prop_assert_eq!(plan.encode(), &bytes[..]);
        }
    }
}

/// The image is in the base in parts, and those of the plan before are not.
#[test]
fn m617_a_plan_takes_the_place_of_the_one_before() {
    let mut base = Nib::new();
    for version in [2, 3] {
        let image = Image::new(version, GENERATION);
        base.write(&PlanRow::writes(&base, &image, Restart::Processor, 4)).unwrap();
        let mut upgrade = Upgrade::default();
        upgrade.learn(&base.since(0, &[Table::Firmware]));
        assert_eq!(upgrade.image.as_ref(), Some(&image));
        assert_eq!(upgrade.plan.map(|plan| plan.number), Some(u32::from(version) - 1));
        // 256 KiB in parts of 32 KiB, and the plan.
        assert_eq!(
            base.since(0, &[Table::Firmware]).changes.iter().filter(|c| c.value.is_some()).count(),
            9
        );
    }
}

/// A TiN of which an upgrade asks, by its flash.
struct Upgraded {
    now: Time,
    work: Work,
    image: Image,
    flash: Flash,
}

impl Upgraded {
    /// One whose image is chosen, and whose restart is due.
    fn chosen() -> Self {
        let (mut flash, image) = (Flash::default(), Image::new(2, GENERATION));
        let mut now = Time::ZERO;
        flash.stage(now, GENERATION, &image.header).unwrap();
        for block in 0..image.header.blocks() {
            flash.store(now, block * crate::flash::BLOCK_BYTES, image.block(block)).unwrap();
            now += BLOCK_TIME;
        }
        flash.verify(now).unwrap();
        flash.activate(now, 2, 120).unwrap();
        Self { now, work: Work::restarted(now, 1_000_000), image, flash }
    }

    /// It says that it runs what it ran before; what its flash says is looked at.
    fn runs_old(&mut self) -> News {
        self.work.is_old(self.now);
        let asked = self.work.next(self.now, &self.image, (Restart::Processor, 120), true);
        assert_eq!(asked, Ok(Item::Flash));
        let (running, staged) = (self.flash.running().unwrap().version, self.flash.staged());
        let (trial, records) = (self.flash.trial(), self.flash.records());
        let flash = Outcome::Flash { running, staged, trial, records };
        self.work.answered(self.now, &self.image, 1, &flash)
    }
}

/// M617: whoever takes over may have sessions of before a restart that is due, however many: they are none after it.
#[test]
fn m617_sessions_before_a_restart_that_is_due_are_not_held_against_it() {
    let mut tin = Upgraded::chosen();
    for _ in 0..5 {
        assert_eq!(tin.runs_old(), News::Restarts);
    }
    assert_eq!(tin.flash.start(GENERATION), Some(tin.image.header));
    tin.work.is_new(tin.now, 2);
    assert!(tin.work.is_on_trial());
}

/// M617: one that has gone back to what it ran before has failed, by what its flash says.
#[test]
fn m617_a_trial_that_has_ended_is_told_from_a_restart_that_is_due() {
    let mut tin = Upgraded::chosen();
    assert_eq!(tin.runs_old(), News::Restarts);
    for _ in 0..=crate::flash::TRIAL_STARTS {
        let _ = tin.flash.start(GENERATION);
    }
    assert_eq!(tin.runs_old(), News::Failed(Failure::RolledBack));
}

/// M617: one that comes back twice with nothing chosen runs what it ran before.
#[test]
fn m617_a_tin_that_restarts_twice_for_nothing_has_failed() {
    let mut tin = Upgraded::chosen();
    tin.flash = Flash::default();
    assert_eq!(tin.runs_old(), News::Nothing);
    assert!(tin.work.is_sending());
    assert_eq!(tin.runs_old(), News::Failed(Failure::Old));
}
