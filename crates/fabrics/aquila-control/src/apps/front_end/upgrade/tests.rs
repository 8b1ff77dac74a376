//! Rows as bytes, and what is done with them.

use proptest::prelude::*;

use super::*;
use crate::flash::{GENERATION, Header};
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
