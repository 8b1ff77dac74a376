//! Images in a flash whose power may go at any byte.

use proptest::prelude::*;

use super::*;

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn small(version: u16, length: usize) -> Image {
    let bytes: Vec<u8> = (0..length).map(|at| (at * 31 + usize::from(version) * 7) as u8).collect();
    Image::of(version, GENERATION, bytes.into())
}

/// Sends what is not there yet; how far it came.
fn send(flash: &mut Flash, now: &mut Time, image: &Image) -> Result<(), Status> {
    if flash.staged().header != Some(image.header) {
        flash.stage(*now, GENERATION, &image.header)?;
    }
    while flash.staged().blocks < image.header.blocks() {
        let block = flash.staged().blocks;
        flash.store(*now, block * BLOCK_BYTES, image.block(block))?;
        *now += BLOCK_TIME;
        // That the block is there is seen by whatever is done next.
        let _ = flash.wait(*now);
        if flash.staged().blocks <= block {
            return Err(Status::Busy);
        }
    }
    flash.verify(*now)?;
    flash.activate(*now, image.header.version)
}

#[test]
fn m617_an_image_runs_once_it_was_chosen() {
    let mut flash = Flash::default();
    assert_eq!(flash.start(GENERATION).map(|header| header.version), Some(FACTORY));
    let (image, mut now) = (small(7, 10_000), Time::ZERO);
    send(&mut flash, &mut now, &image).unwrap();
    // Two whole blocks and one of 1808 bytes: 50 ms each.
    assert_eq!(now, at(150_000));
    assert_eq!(flash.start(GENERATION), Some(image.header));
    // What ran before stands beside it, and can be gone back to.
    assert_eq!(flash.staged().header, Some(Image::new(FACTORY, GENERATION).header));
    assert!(flash.staged().is_verified);
    flash.activate(now, FACTORY).unwrap();
    assert_eq!(flash.start(GENERATION).unwrap().version, FACTORY);
}

#[test]
fn m617_what_is_damaged_too_large_or_for_others_is_refused() {
    let mut flash = Flash::default();
    let (image, now) = (small(2, 5_000), Time::ZERO);
    let other = Header { generation: GENERATION + 1, ..image.header };
    assert_eq!(flash.stage(now, GENERATION, &other), Err(Status::Generation));
    for length in [0, IMAGE_BYTES_MAX + 1] {
        let header = Header { length, ..image.header };
        assert_eq!(flash.stage(now, GENERATION, &header), Err(Status::OutOfRange));
    }
    assert_eq!(flash.store(now, 0, image.block(0)), Err(Status::NotNext));
    assert_eq!(flash.verify(now), Err(Status::NotNext));
    flash.stage(now, GENERATION, &image.header).unwrap();
    assert_eq!(flash.store(now, BLOCK_BYTES, image.block(1)), Err(Status::NotNext));
    assert_eq!(flash.store(now, 0, &image.block(0)[1..]), Err(Status::Width));
    flash.store(now, 0, image.block(0)).unwrap();
    assert_eq!(flash.store(now, BLOCK_BYTES, image.block(1)), Err(Status::Busy));
    assert_eq!(flash.verify(at(49_999)), Err(Status::Busy));
    assert_eq!(flash.verify(at(50_000)), Err(Status::NotNext), "it has not come whole");
    let mut bytes = image.block(1).to_vec();
    bytes[3] ^= 4;
    flash.store(at(50_000), BLOCK_BYTES, &bytes).unwrap();
    assert_eq!(flash.activate(at(100_000), 2), Err(Status::NotNext), "it is not verified");
    assert_eq!(flash.verify(at(100_000)), Err(Status::Damaged));
    assert_eq!(flash.staged(), Staged::default(), "it is given up");
    assert_eq!(flash.start(GENERATION).unwrap().version, FACTORY);
    // A chip of another generation does not start it.
    assert_eq!(flash.start(GENERATION + 1), None);
}

#[test]
fn m617_a_block_under_way_when_the_power_goes_is_written_again() {
    let mut flash = Flash::default();
    let image = small(3, 9_000);
    flash.stage(at(0), GENERATION, &image.header).unwrap();
    flash.store(at(0), 0, image.block(0)).unwrap();
    flash.store(at(50_000), BLOCK_BYTES, image.block(1)).unwrap();
    flash.cut(at(80_000));
    assert_eq!((flash.staged().header, flash.staged().blocks), (Some(image.header), 1));
    send(&mut flash, &mut at(90_000), &image).unwrap();
    assert_eq!(flash.start(GENERATION), Some(image.header));
}

proptest! {
    /// Wherever the power goes: one of both images starts, whole; and what goes on from there comes to its end.
    #[test]
    fn m617_a_whole_image_starts_whenever_the_power_goes(
        lengths in prop::collection::vec(1..14_000usize, 1..4),
        cuts in prop::collection::vec(0..30_000usize, 0..12),
    ) {
        let old = small(100, 6_000);
        let (mut flash, mut now, mut runs) = (Flash::holding(&old), Time::ZERO, old.header);
        let mut cuts = cuts.into_iter();
        for (version, length) in (1..).zip(lengths) {
            let image = small(version, length);
            loop {
                flash.power = cuts.next();
                let is_cut = flash.power.is_some();
                let sent = send(&mut flash, &mut now, &image);
                let is_cut = is_cut && flash.power == Some(0);
                flash.cut(now);
                flash.power = None;
                let started = flash.start(GENERATION);
                prop_assert!(started == Some(runs) || started == Some(image.header));
                prop_assert!(sent.is_ok() || is_cut, "{:?}", sent);
                if started == Some(image.header) {
                    break;
                }
                prop_assert!(is_cut);
            }
            runs = image.header;
            prop_assert_eq!(flash.checksum(flash.chosen(), &runs), runs.checksum);
        }
    }

    /// What another flash makes of the sectors that have changed is the same.
    #[test]
    fn m617_a_flash_is_what_its_sectors_are(length in 1..20_000usize) {
        let (mut flash, image) = (Flash::default(), small(9, length));
        let mut kept: BTreeMap<u16, Sector> = flash.sectors().map(|(n, s)| (n, *s)).collect();
        send(&mut flash, &mut Time::ZERO.clone(), &image).unwrap();
        kept.extend(flash.changed());
        let mut other = Flash::from_sectors(kept);
        prop_assert_eq!(other.start(GENERATION), Some(image.header));
        prop_assert_eq!(other.staged(), flash.staged());
        prop_assert_eq!(flash.changed(), vec![]);
    }
}
