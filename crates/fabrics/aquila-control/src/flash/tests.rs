//! Images in a flash whose power may go at any byte.

use proptest::prelude::*;

use super::*;

/// Of images that are chosen. Unit: s.
const TRIAL: u16 = 60;

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
    flash.activate(*now, image.header.version, TRIAL)
}

#[test]
fn m617_an_image_runs_once_it_was_chosen() {
    let mut flash = Flash::default();
    assert_eq!(flash.start(GENERATION).map(|header| header.version), Some(FACTORY));
    let (image, mut now) = (small(7, 10_000), Time::ZERO);
    send(&mut flash, &mut now, &image).unwrap();
    // Two whole blocks and one of 1808 bytes: 50 ms each.
    assert_eq!(now, at(150_000));
    assert_eq!(flash.trial(), Trial::Due);
    assert_eq!(flash.start(GENERATION), Some(image.header));
    assert_eq!((flash.trial(), flash.trial_time()), (Trial::Runs, Some(Span::from_us(60_000_000))));
    // What ran before stands beside it, and stays until this one is confirmed.
    assert_eq!(flash.staged().header, Some(Image::new(FACTORY, GENERATION).header));
    assert!(flash.staged().is_verified);
    assert_eq!(flash.activate(now, FACTORY, 0), Err(Status::OnTrial));
    assert_eq!(flash.stage(now, GENERATION, &image.header), Err(Status::OnTrial));
    assert_eq!(flash.confirm(FACTORY), Err(Status::NotNext));
    flash.confirm(7).unwrap();
    flash.confirm(7).unwrap();
    assert_eq!((flash.trial(), flash.trial_time()), (Trial::Kept, None));
    // It starts as often as one likes, and can be gone back from, for good.
    (0..9).for_each(|_| assert_eq!(flash.start(GENERATION), Some(image.header)));
    flash.activate(now, FACTORY, 0).unwrap();
    (0..9).for_each(|_| assert_eq!(flash.start(GENERATION).unwrap().version, FACTORY));
    assert_eq!(flash.trial(), Trial::Kept);
}

#[test]
fn m617_an_image_that_is_not_confirmed_gives_way() {
    // After so many starts, or when its time is over.
    for expires in [false, true] {
        let (mut flash, image) = (Flash::default(), small(7, 10_000));
        let mut now = Time::ZERO;
        send(&mut flash, &mut now, &image).unwrap();
        let starts = if expires { 1 } else { TRIAL_STARTS };
        (0..starts).for_each(|_| assert_eq!(flash.start(GENERATION), Some(image.header)));
        if expires {
            flash.expire();
        }
        (0..3).for_each(|_| assert_eq!(flash.start(GENERATION).unwrap().version, FACTORY));
        assert_eq!((flash.trial(), flash.trial_time()), (Trial::Back, None));
        // It is there still, may be tried again, and is confirmed then.
        let staged = Staged { header: Some(image.header), blocks: 3, is_verified: true };
        assert_eq!(flash.staged(), staged);
        flash.activate(now, 7, TRIAL).unwrap();
        assert_eq!(flash.confirm(7), Err(Status::NotNext), "it has not started");
        assert_eq!((flash.start(GENERATION), flash.confirm(7)), (Some(image.header), Ok(())));
        assert_eq!(flash.trial(), Trial::Kept);
    }
    // Where there is nothing whole to go back to it stays.
    let (mut flash, image) = (Flash::default(), small(7, 10_000));
    send(&mut flash, &mut Time::ZERO.clone(), &image).unwrap();
    flash.erase(sector(0, 3));
    (0..5).for_each(|_| assert_eq!(flash.start(GENERATION), Some(image.header)));
    assert_eq!(flash.trial(), Trial::Kept);
}

/// What is done to a flash, while the power lasts.
type Act = fn(&mut Flash);

/// Whenever the power goes while an image is chosen, started, confirmed, given up and gone back from: after each byte that
/// is programmed. One of two images starts, whole, and it is the one that ran, or that which is to.
#[test]
fn m617_one_whole_image_starts_at_every_moment_of_a_trial() {
    const OLD: u16 = 100;
    const NEW: u16 = 7;
    let start: Act = |flash| {
        let _ = flash.start(GENERATION);
    };
    let choose: Act = |flash| {
        let _ = flash.activate(at(9_000_000), NEW, TRIAL);
    };
    let confirm: Act = |flash| {
        let _ = flash.confirm(NEW);
    };
    let expire: Act = Flash::expire;
    // What is done first, what the power goes in, and what may start then.
    let rows: [(&[Act], Act, &[u16]); 7] = [
        (&[], choose, &[OLD, NEW]),
        (&[choose], start, &[NEW]),
        (&[choose, start], confirm, &[NEW]),
        (&[choose, start, confirm], start, &[NEW]),
        (&[choose, start], expire, &[OLD, NEW]),
        (&[choose, start, expire], start, &[OLD]),
        (&[choose, start, start], start, &[OLD]),
    ];
    let mut staged = Flash::holding(&small(OLD, 6_000));
    let (image, mut now) = (small(NEW, 9_000), Time::ZERO);
    send(&mut staged, &mut now, &image).unwrap();
    // As it was before it was chosen.
    staged.select(Record::default());
    for (before, act, may_start) in rows {
        let mut flash = staged.clone();
        before.iter().for_each(|act| act(&mut flash));
        let mut is_whole = false;
        for power in 0.. {
            let mut cut = flash.clone();
            cut.power = Some(power);
            act(&mut cut);
            is_whole = cut.power != Some(0);
            cut.power = None;
            let started = cut.start(GENERATION).expect("one is whole");
            assert!(may_start.contains(&started.version), "{power} bytes: {started:?}");
            assert_eq!(cut.checksum(cut.chosen(), &started), started.checksum);
            // Whatever has become of it: unless it is confirmed, the old one runs after so many starts.
            let is_kept = cut.trial() == Trial::Kept;
            (0..TRIAL_STARTS).for_each(|_| start(&mut cut));
            let runs = cut.start(GENERATION).unwrap().version;
            assert_eq!(runs, if is_kept { started.version } else { OLD }, "{power} bytes");
            if is_whole {
                break;
            }
        }
        assert!(is_whole);
    }
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
    assert_eq!(flash.activate(at(100_000), 2, TRIAL), Err(Status::NotNext), "it is not verified");
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
                // The power may go in this, too: it is asked again.
                while started == Some(image.header) && flash.trial() != Trial::Kept {
                    flash.power = cuts.next();
                    let _ = flash.confirm(image.header.version);
                    flash.power = None;
                }
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
