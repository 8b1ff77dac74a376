//! What is sent to a chip so that it holds what is wanted.

use std::collections::{BTreeSet, VecDeque};

use super::order;
use crate::registers::Entry;
use crate::registers::file::RegisterFile;
use crate::rpc::{Item, pack};

/// Requests that make a chip hold what is wanted.
#[derive(Debug)]
pub struct Plan {
    /// In order.
    pub requests: VecDeque<Vec<Item>>,
    /// How many of them are the first ones (M811).
    pub first: usize,
    /// Whether a way leads out of the Clique by what they write.
    pub leads_out: bool,
    /// Something else is wanted by now: the first ones are finished all the same.
    pub is_outdated: bool,
}

impl Plan {
    /// What makes `image` of what a chip holds, but for entries that it does not take. Ports from `terminals` on are those
    /// of the TiN's own endpoints.
    #[must_use]
    pub fn new(
        held: &RegisterFile,
        image: &RegisterFile,
        terminals: u8,
        leads_out: bool,
        refused: &BTreeSet<u32>,
    ) -> Self {
        let order = order::order(held, image, terminals);
        let wanted =
            |items: Vec<Item>| items.into_iter().flat_map(|item| without_refused(item, refused));
        let first = pack(wanted(order.first));
        Self {
            first: first.len(),
            requests: first.into_iter().chain(pack(wanted(order.rest))).collect(),
            leads_out,
            is_outdated: false,
        }
    }
}

/// An item without entries that the chip does not take.
fn without_refused(item: Item, refused: &BTreeSet<u32>) -> Vec<Item> {
    match &item {
        Item::Write { address, .. } if refused.contains(address) => Vec::new(),
        Item::WriteBlock { address, size, bytes } => {
            let end = address + bytes.len() as u32;
            if refused.range(address..&end).next().is_none() {
                return vec![item];
            }
            let entries = (*address..).step_by((*size).into());
            let entries = entries.zip(bytes.chunks(usize::from(*size)));
            let entries = entries.filter(|(address, _)| !refused.contains(address));
            let write = |(address, entry): (u32, &[u8])| {
                let entry = Entry::from_bytes(entry).expect("an entry's size");
                Item::Write { address, entry }
            };
            entries.map(write).collect()
        }
        _ => vec![item],
    }
}
