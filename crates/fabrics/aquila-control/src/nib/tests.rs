//! The base against a map, and subscribers that come and go.

use proptest::prelude::*;

use super::*;

/// What a subscriber knows.
#[derive(Clone, Default, Debug)]
struct Subscriber {
    seen: u64,
    rows: BTreeMap<Key, Vec<u8>>,
}

impl Subscriber {
    fn take(&mut self, nib: &Nib, tables: &[Table]) {
        let Changes { is_everything, changes, version, .. } = nib.since(self.seen, tables);
        if is_everything {
            self.rows.clear();
        }
        let mut last = if is_everything { 0 } else { self.seen };
        for Change { version, key, value } in changes {
            assert!(version > last, "in order, and nothing that was seen");
            last = version;
            match value {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
        assert!(last <= version);
        self.seen = version;
    }
}

fn keys() -> impl Strategy<Value = Key> {
    (0..3usize, 0..12u8).prop_map(|(table, key)| (Table::ALL[table], vec![key]))
}

fn writes() -> impl Strategy<Value = Write> {
    let value = prop::collection::vec(0..3u8, 0..80);
    let expected = prop_oneof![4 => Just(None), 1 => (0..40u64).prop_map(Some)];
    (keys(), prop::option::of(value), expected).prop_map(|(key, value, expected)| Write {
        key,
        value,
        expected,
    })
}

proptest! {
    #[test]
    fn m702_a_subscriber_that_comes_back_at_any_version_knows_the_same(
        batches in prop::collection::vec(prop::collection::vec(writes(), 0..6), 0..60),
        away in prop::collection::vec(0..60usize, 4),
    ) {
        let mut nib = Nib::new();
        let mut naive = BTreeMap::<Key, Vec<u8>>::new();
        let tables = &Table::ALL[..2];
        // One that is always there, and some that leave at some batch.
        let mut steady = Subscriber::default();
        let mut left = vec![Subscriber::default(); away.len()];
        for (number, writes) in batches.iter().enumerate() {
            let versions: Vec<u64> = writes.iter()
                .map(|write| nib.get(write.key.0, &write.key.1).map_or(0, |row| row.0)).collect();
            let fits = writes.iter().zip(&versions).all(|(w, &v)| w.expected.is_none_or(|e| e == v));
            let before = nib.version();
            prop_assert_eq!(nib.apply(nib.batch() + 1, writes).is_ok(), fits);
            if fits {
                for Write { key, value, .. } in writes.clone() {
                    match value {
                        Some(value) => naive.insert(key, value),
                        None => naive.remove(&key),
                    };
                }
            } else {
                prop_assert_eq!(nib.version(), before);
            }
            steady.take(&nib, tables);
            for (subscriber, &away) in left.iter_mut().zip(&away) {
                if number < away {
                    subscriber.take(&nib, tables);
                }
            }
        }
        let expected: BTreeMap<_, _> = naive.clone().into_iter().filter(|(k, _)| tables.contains(&k.0)).collect();
        for mut subscriber in left.into_iter().chain([steady, Subscriber::default()]) {
            subscriber.take(&nib, tables);
            prop_assert_eq!(&subscriber.rows, &expected);
        }
        // The rows themselves, and what they take.
        for (key, value) in &naive {
            prop_assert_eq!(&nib.get(key.0, &key.1).unwrap().1, value);
        }
        let sizes = nib.sizes();
        prop_assert_eq!(sizes.rows, naive.len() as u64);
        prop_assert_eq!(sizes.raw, naive.values().map(|value| value.len() as u64).sum::<u64>());
        prop_assert!(sizes.stored <= sizes.raw);
    }
}

#[test]
fn i72_batches_apply_in_sequence_and_whole() {
    let mut nib = Nib::new();
    let first = [Write::set(Table::Link, b"a", b"up"), Write::set(Table::Link, b"b", b"up")];
    let refused = Refused::Sequence { found: 2, expected: 1 };
    assert_eq!(nib.apply(2, &first), Err(refused));
    assert_eq!((nib.version(), nib.apply(1, &first)), (0, Ok(2)));
    assert_eq!(nib.apply(1, &first), Err(Refused::Sequence { found: 1, expected: 2 }));
    // The second of two writes does not fit: the first is not done either.
    let guarded = Write { expected: Some(1), ..Write::set(Table::Link, b"b", b"down") };
    let second = [Write::delete(Table::Link, b"a"), guarded];
    assert_eq!(nib.apply(2, &second), Err(Refused::Version { write: 1, found: 2, expected: 1 }));
    assert_eq!(nib.get(Table::Link, b"a"), Some((1, b"up".to_vec())));
    // Only if it is not there.
    let new = Write { expected: Some(0), ..Write::set(Table::Node, b"a", b"1") };
    assert_eq!(nib.write(std::slice::from_ref(&new)), Ok(3));
    assert!(nib.write(&[new]).is_err());
    assert_eq!(nib.batch(), 1);
}

#[test]
fn m702_who_was_away_for_too_many_deletions_gets_everything() {
    let mut nib = Nib::new();
    let key = |number: u32| number.to_be_bytes();
    nib.write(&[Write::set(Table::Node, b"stays", b"1")]).unwrap();
    let mut away = Subscriber::default();
    for number in 0..2 * DELETIONS_MAX as u32 {
        nib.write(&[Write::set(Table::Node, &key(number), b"x")]).unwrap();
        if number == 5 {
            away.take(&nib, &Table::ALL);
        }
        nib.write(&[Write::delete(Table::Node, &key(number))]).unwrap();
    }
    assert!(nib.log.len() <= DELETIONS_MAX + 1 && nib.deleted.len() <= DELETIONS_MAX);
    assert!(nib.since(away.seen, &Table::ALL).is_everything);
    away.take(&nib, &Table::ALL);
    assert_eq!(away.rows.len(), 1);
    // One of another base, which was further.
    let mut foreign = Subscriber { seen: u64::MAX, ..away.clone() };
    foreign.take(&nib, &Table::ALL);
    assert_eq!((foreign.seen, foreign.rows), (away.seen, away.rows));
}

#[test]
fn m702_m726_rows_are_kept_compressed() {
    let mut nib = Nib::new();
    nib.write(&[Write::set(Table::GnetFlow, b"row", &[7; 960])]).unwrap();
    let Sizes { rows, raw, stored } = nib.sizes();
    assert_eq!((rows, raw), (1, 960));
    assert!(stored < 100, "{stored} bytes");
    assert_eq!(nib.get(Table::GnetFlow, b"row").unwrap().1, [7; 960]);
    nib.write(&[Write::delete(Table::GnetFlow, b"row")]).unwrap();
    assert_eq!(nib.sizes(), Sizes::default());
}

/// Whoever follows a base from version to version holds what it holds, and tells its own subscribers the same.
#[test]
fn m702_a_copy_that_follows_is_the_same_base() {
    let tables = Table::ALL;
    let (mut base, mut copy) = (Nib::new(), Nib::new());
    let mut stream = kernel::Stream::new(7, "writes", 0);
    for round in 0..200 {
        for _ in 0..stream.below(4) {
            let key = [stream.below(8) as u8];
            let table = tables[stream.below(3) as usize];
            base.write(&[match stream.below(3) {
                0 => Write::delete(table, &key),
                _ => Write::set(table, &key, &[round; 40]),
            }])
            .expect("they expect nothing of rows");
        }
        // What comes twice changes nothing.
        let changes = base.since(copy.version(), &tables);
        copy.follow(&changes);
        copy.follow(&changes);
        let seen = stream.below(base.version() + 1);
        assert_eq!(copy.since(seen, &tables), base.since(seen, &tables));
        assert_eq!(copy.sizes(), base.sizes());
    }
    // Of another base, everything is new.
    let mut other = Nib::with_layout(LAYOUT + 1);
    other.write(&[Write::set(Table::Node, &[9], &[1])]).expect("it expects nothing");
    copy.follow(&Changes { is_everything: true, ..other.since(0, &tables) });
    assert_eq!(copy.since(0, &tables).changes, other.since(0, &tables).changes);
    assert_eq!(copy.since(0, &tables).layout, LAYOUT + 1);
}

#[test]
fn m726_values_are_kept_elsewhere_packed() {
    for value in [&[][..], &[7], &[7; 960], b"what does not get smaller"] {
        let kept = pack(value);
        assert!(kept.len() <= value.len() + 1);
        assert_eq!(unpack(&kept).as_deref(), Some(value));
    }
    // Nothing; of no kind; without its length; of another length; longer than any; not compressed at all.
    let kept = pack(&[7; 960]);
    let longer = [&[1], &961u32.to_be_bytes()[..], &kept[5..]].concat();
    for bad in [&[][..], &[2, 0], &kept[..4], &longer, &[1, 255, 255, 255, 255, 0], &kept[..9]] {
        assert_eq!(unpack(bad), None);
    }
}
