//! The description, what is made of it, and the file.

use proptest::prelude::*;

use super::file::{BLOCK_ENTRIES, RegisterFile};
use super::map::*;
use super::*;

const DESCRIPTION: &str = include_str!("registers.toml");

#[test]
fn m604_what_is_checked_in_follows_from_the_description() {
    let expected = generate::generate(DESCRIPTION).unwrap();
    let remedy = "cargo run -p rackloom-aquila-control --example generate_registers";
    assert!(expected == include_str!("map.rs"), "map.rs is out of date: {remedy}");
}

/// A description with one register, changed.
#[track_caller]
fn check_refused(from: &str, to: &str, expected: &str) {
    let good = "version = 1\n[[register]]\nname = \"a.b\"\nbase = 32\nwidth = 16\n\
                dimensions = [4]\naccess = \"rw\"\nreset = 7\nmeaning = \"One.\"\n";
    assert!(generate::generate(good).is_ok());
    assert!(good.contains(from), "{from}");
    let error = generate::generate(&good.replace(from, to)).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn m604_descriptions_that_no_chip_could_have_are_refused() {
    check_refused("width = 16", "width = 12", "a.b: width 12; expected 8, 16");
    check_refused("base = 32", "base = 33", "base 0x21; expected a multiple of 2");
    check_refused("[4]", "[4, 0]", "none of them 0");
    check_refused("[4]", "[65536, 65536]", "behind 32 bits of address");
    check_refused("reset = 7", "reset = 65536", "a number that fits");
    check_refused("reset = 7", "reset = \"on\"", "zeros, ones or a number");
    check_refused("\"rw\"", "\"wo\"", "wo");
    check_refused("meaning", "maening", "maening");
    check_refused("a.b", "A", "lower case");
    let second = "[[register]]\nname = \"c\"\nbase = 38\nwidth = 8\naccess = \"ro\"\n\
                  reset = 0\nmeaning = \"Two.\"\n[[register]]";
    check_refused("[[register]]", second, "c: base 0x26 is in the register before it");
}

/// The text says the same as the tables that were made of it, by a reader that knows nothing of either.
#[test]
fn m604_names_addresses_and_sizes_are_those_of_the_description() {
    let table: toml::Table = DESCRIPTION.parse().unwrap();
    let entries = table["register"].as_array().unwrap();
    assert_eq!(entries.len(), REGISTERS.len());
    for entry in entries {
        let name = entry["name"].as_str().unwrap();
        let register = REGISTERS.iter().find(|register| register.name == name).unwrap();
        assert_eq!(entry["base"].as_integer(), Some(register.base.into()), "{name}");
        assert_eq!(entry["width"].as_integer(), Some(register.width.into()), "{name}");
        let sizes = entry.get("dimensions").and_then(toml::Value::as_array);
        let sizes: Vec<_> = sizes.into_iter().flatten().map(|s| s.as_integer().unwrap()).collect();
        let found: Vec<_> = register.dimensions.iter().map(|&size| i64::from(size)).collect();
        assert_eq!(sizes, found, "{name}");
        let is_read_only = register.access == Access::ReadOnly;
        assert_eq!(entry["access"].as_str().unwrap() == "ro", is_read_only, "{name}");
        assert_eq!(entry["meaning"].as_str(), Some(register.meaning), "{name}");
    }
}

#[test]
fn m604_every_register_is_found_at_its_ends_and_nowhere_else() {
    for (index, register) in REGISTERS.iter().enumerate() {
        let last = register.end() - register.entry_bytes();
        assert_eq!(find(register.base), Ok((index, 0)), "{}", register.name);
        assert_eq!(find(last), Ok((index, register.entries() - 1)), "{}", register.name);
        if register.width > 8 {
            assert_eq!(find(last + 1), Err(Status::Misaligned), "{}", register.name);
        }
        let next = REGISTERS.get(index + 1).map_or(u32::MAX, |next| next.base);
        if register.end() < next {
            assert_eq!(find(register.end()), Err(Status::Unknown), "{}", register.name);
        }
    }
    assert_eq!(find(u32::MAX), Err(Status::Unknown));
}

#[test]
fn m604_m608_registers_hold_their_reset_values_after_a_cold_start() {
    let file = RegisterFile::new();
    assert_eq!(file.get(ID_CHIP, []).to_be_bytes(), *b"tin1");
    assert_eq!(file.get(ID_DESCRIPTION, []), VERSION);
    assert_eq!(file.get(CLASS_DETOUR_WEIGHT, [9]), 200);
    assert_eq!(file.get(ROUTE, [63, 2, 79]), [0xFF; 32]);
    assert_eq!(file.get(RESPONDER, [0]), [0; 32]);
    assert_eq!(file.bytes(), 0);
}

#[track_caller]
fn check_write(file: &mut RegisterFile, address: u32, bytes: &[u8], size: usize, wanted: Status) {
    let before = file.clone();
    assert_eq!(file.write_block(address, size, bytes), Err(wanted));
    assert!(*file == before, "something was written");
}

#[test]
fn m604_what_cannot_be_written_changes_nothing() {
    let mut file = RegisterFile::new();
    let members = INDEXED_MEMBER.register();
    check_write(&mut file, 0xFFFF_0000, &[0; 4], 4, Status::Unknown);
    check_write(&mut file, members.base + 1, &[0; 2], 2, Status::Misaligned);
    check_write(&mut file, members.base, &[0; 4], 4, Status::Width);
    check_write(&mut file, members.base, &[0; 3], 2, Status::Width);
    // The first entries of the block are there, the last is not.
    check_write(&mut file, members.end() - 4, &[0; 6], 2, Status::OutOfRange);
    check_write(&mut file, LINK_STATE.register().base, &[3], 1, Status::ReadOnly);
    assert_eq!(file.read_block(members.end() - 4, 3), Err(Status::OutOfRange));
    assert_eq!(file.read_block(members.base, u32::MAX), Err(Status::OutOfRange));
    assert_eq!(file.digests(members.base, 65), Err(Status::OutOfRange));
    assert_eq!(file.digests(members.base, u32::MAX), Err(Status::OutOfRange));
    assert_eq!(file.write(members.base, &0x1234u16.to_entry()), Ok(()));
    assert_eq!(file.get(INDEXED_MEMBER, [0, 0]), 0x1234);
    // The chip itself may.
    file.set(LINK_STATE, [5], 3);
    assert_eq!(file.read(LINK_STATE.address([5]).unwrap()).unwrap().as_bytes(), [3]);
}

#[test]
fn m610_a_digest_is_the_checksum_of_256_entries() {
    let mut file = RegisterFile::new();
    let members = INDEXED_MEMBER.register();
    assert_eq!(members.entries() / BLOCK_ENTRIES, 64);
    let before = file.digests(members.base, 64).unwrap();
    file.set(INDEXED_MEMBER, [0, 300], 7);
    let after = file.digests(members.base, 64).unwrap();
    let differ: Vec<_> = (0..64).filter(|&block| before[block] != after[block]).collect();
    assert_eq!(differ, [1]);
    // What is written back as it was is as if nothing had been written.
    file.set(INDEXED_MEMBER, [0, 300], u16::MAX);
    assert_eq!(file.digests(members.base, 64).unwrap(), before);
    assert!(file == RegisterFile::new());
    // The check value of CRC-64/XZ in the catalogue of parametrised CRC algorithms.
    let digest = crc::Crc::<u64>::new(&crc::CRC_64_XZ);
    assert_eq!(digest.checksum(b"123456789"), 0x995d_c9bb_df19_39fa);
    assert_eq!(before[0], digest.checksum(&[0xFF; 512]));
    // A register of ten entries has a block of ten.
    let mode = CLASS_MODE.register();
    assert_eq!(file.digests(mode.base, 1).unwrap(), [digest.checksum(&[0; 10])]);
}

proptest! {
    /// The file against an array of bytes.
    #[test]
    fn m604_blocks_are_read_as_they_were_written(
        writes in prop::collection::vec((0..1024u32, prop::collection::vec(any::<u16>(), 0..600)), 0..12),
        (from, count) in (0..1024u32, 0..1024u32),
    ) {
        let mut file = RegisterFile::new();
        let base = GROUP_SLOT.register().base;
        let mut naive = vec![0u8; 2 * 2048];
        for (at, words) in writes {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            prop_assert_eq!(file.write_block(base + 2 * at, 2, &bytes), Ok(()));
            let first = 2 * at as usize;
            naive[first..first + bytes.len()].copy_from_slice(&bytes);
        }
        let range = 2 * from as usize..2 * (from + count) as usize;
        prop_assert_eq!(&file.read_block(base + 2 * from, count).unwrap()[..], &naive[range]);
    }
}
