//! What is known of what a chip holds, by the digests of its blocks and by reads.

use std::collections::VecDeque;

use super::intent::Intent;
use super::{Counts, order};
use crate::registers::file::{BLOCK_ENTRIES, RegisterFile};
use crate::registers::map::{REGISTERS, SIDEBAND_ALLOWED};
use crate::registers::{Register, find};
use crate::rpc::{Item, Outcome};

/// What is known of what the chip holds.
#[derive(Debug)]
pub enum Held {
    /// Nothing: digests are to be asked for, or on their way.
    Unknown,
    /// Blocks are read into what was found equal.
    Read(Box<RegisterFile>, VecDeque<Vec<Item>>),
    /// All of it.
    Known(Box<RegisterFile>),
    /// What is wanted.
    Equal,
}

/// The request for the digests of all that is set of a TiN.
#[must_use]
pub fn digests(intent: &Intent) -> Vec<Item> {
    let of = |register: &&Register| {
        let count = register.entries().div_ceil(BLOCK_ENTRIES) as u16;
        Item::Digests { address: register.base, count }
    };
    let sideband = intent.sidebands().map(|_| SIDEBAND_ALLOWED.register());
    order::owned().iter().chain(&sideband).map(of).collect()
}

/// What a chip holds, as far as the digests of its blocks tell, and reads of the other blocks. A block is known if it is
/// as in an image, or as after a cold start: of a chip that has just started nothing is read, which by PMOS would take
/// longer than to write it.
#[must_use]
pub fn compare(image: RegisterFile, pairs: &[(Item, Outcome)]) -> (RegisterFile, Vec<Item>) {
    let (blank, mut held) = (RegisterFile::new(), image);
    let mut reads = Vec::new();
    for (item, outcome) in pairs {
        let Item::Digests { address, count } = *item else { continue };
        let register = &REGISTERS[find(address).expect("we have asked for it").0];
        let digests = |of: &RegisterFile| {
            of.digests(address, count.into()).expect("we have asked for blocks that there are")
        };
        for (place, (own, reset)) in (0..).zip(digests(&held).into_iter().zip(digests(&blank))) {
            let found = match outcome {
                Outcome::Digests(found) => found.get(place as usize).copied(),
                _ => None,
            };
            let first = place * BLOCK_ENTRIES;
            let address = address + first * register.entry_bytes();
            if found == Some(own) {
                continue;
            }
            if found == Some(reset) {
                held.reset_block(address).expect("we have asked for it");
            } else {
                let count = (register.entries() - first).min(BLOCK_ENTRIES) as u16;
                reads.push(Item::ReadBlock { address, count });
            }
        }
    }
    (held, reads)
}

/// Takes over what was read; whether it was.
#[must_use]
pub fn patch(held: &mut RegisterFile, pair: &(Item, Outcome), counts: &mut Counts) -> bool {
    let (Item::ReadBlock { address, count }, Outcome::Entries(bytes)) = pair else { return false };
    counts.read += u64::from(*count);
    held.write_block(*address, bytes.len() / usize::from(*count).max(1), bytes).is_ok()
}
