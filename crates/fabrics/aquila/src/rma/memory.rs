//! Memory of a host that others may reach, and who may.
//!
//! Models: Aquila §3.4 (M504, M506, M514, M515): memory is registered in regions, which can be revoked; a request names
//! a region and is signed. **Our choice**: a region has a secret of its own; each process that may ask has a number and
//! a key made from both (a [`Grant`]), by which it signs each request with HMAC-SHA-256, cut to 128 bits. A number is
//! never used for another region, so a revoked one stays refused.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::cells::rma::{Operation, Request, Status, TAG_BYTES};

/// A secret of 128 bits.
pub type Secret = [u8; 16];

/// What a region may be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permissions {
    /// To be read.
    pub read: bool,
    /// To be written.
    pub write: bool,
    /// Atomic operations.
    pub atomic: bool,
}

impl Permissions {
    /// All of it.
    pub const ALL: Self = Self { read: true, write: true, atomic: true };
    /// To be read, and nothing else.
    pub const READ: Self = Self { read: true, write: false, atomic: false };

    const fn allow(self, operation: Operation) -> bool {
        match operation {
            Operation::Read => self.read,
            Operation::Write => self.write,
            Operation::CompareAndSwap | Operation::FetchAndAdd => self.atomic,
        }
    }
}

/// By what a process asks for a region: given to it by the region's owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The region.
    pub region: u32,
    /// The process.
    pub key: u32,
    /// What it signs with.
    pub secret: Secret,
}

/// A region.
#[derive(Clone, Copy, Debug)]
struct Region {
    number: u32,
    base: u64,
    length: u64,
    permissions: Permissions,
    secret: Secret,
}

/// Places of regions that a number tells apart; the rest of it counts uses.
const PLACES: u32 = 1 << 12;

/// A host's memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What its regions' secrets are made from.
    seed: u64,
    most: usize,
    /// By place.
    regions: Vec<Option<Region>>,
    registered: u32,
    /// What is in it, if somebody looks.
    bytes: Vec<u8>,
    /// Words that atomic operations have changed, where nobody looks at the rest.
    words: BTreeMap<u64, u64>,
}

/// The first 16 bytes of a signature.
fn sign(secret: &Secret, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("keys of any length are taken");
    parts.iter().for_each(|part| mac.update(part));
    let whole = mac.finalize().into_bytes();
    std::array::from_fn(|at| whole[at])
}

/// The tag of a request from one GNet address to another: of everything in it but the tag.
pub(super) fn tag(request: &Request, (from, to): (u16, u16), secret: &Secret) -> [u8; TAG_BYTES] {
    let untagged = Request { tag: [0; TAG_BYTES], ..*request };
    let bytes = untagged.encode();
    sign(secret, &[&from.to_be_bytes(), &to.to_be_bytes(), &bytes])
}

impl Memory {
    /// Nothing registered, of at most so many regions.
    pub(super) fn new(seed: u64, most: u16) -> Self {
        Self {
            seed,
            most: most.into(),
            regions: Vec::new(),
            registered: 0,
            bytes: Vec::new(),
            words: BTreeMap::new(),
        }
    }

    /// Registers memory from `base` on; the region's number. `None` if there are too many.
    pub fn register(&mut self, base: u64, length: u64, permissions: Permissions) -> Option<u32> {
        let place = match self.regions.iter().position(Option::is_none) {
            Some(place) => place,
            None if self.regions.len() < self.most => {
                self.regions.push(None);
                self.regions.len() - 1
            }
            None => return None,
        };
        let number = self.registered % (1 << 20) * PLACES + place as u32;
        self.registered += 1;
        let secret = sign(&[0; 16], &[&self.seed.to_be_bytes(), &number.to_be_bytes()]);
        self.regions[place] = Some(Region { number, base, length, permissions, secret });
        Some(number)
    }

    /// Nobody reaches a region any more. Whether there was one.
    pub fn revoke(&mut self, region: u32) -> bool {
        let place = self.regions.get_mut((region % PLACES) as usize);
        place.and_then(|place| place.take_if(|known| known.number == region)).is_some()
    }

    /// What a process asks for a region by; `None` if there is none.
    #[must_use]
    pub fn grant(&self, region: u32, key: u32) -> Option<Grant> {
        let secret = sign(&self.find(region)?.secret, &[&key.to_be_bytes()]);
        Some(Grant { region, key, secret })
    }

    fn find(&self, region: u32) -> Option<&Region> {
        let place = self.regions.get((region % PLACES) as usize)?;
        place.as_ref().filter(|known| known.number == region)
    }

    /// The address that a request is for, if it may have it (I63).
    pub(super) fn allow(&self, request: &Request, ends: (u16, u16)) -> Result<u64, Status> {
        let region = self.find(request.region).ok_or(Status::NoRegion)?;
        let secret = sign(&region.secret, &[&request.key.to_be_bytes()]);
        if tag(request, ends, &secret) != request.tag {
            return Err(Status::BadTag);
        }
        if !region.permissions.allow(request.operation) {
            return Err(Status::Forbidden);
        }
        let end = request.address.checked_add(request.length.into());
        if end.is_none_or(|end| end > region.length) {
            return Err(Status::OutOfBounds);
        }
        let address = region.base + request.address;
        let is_word = address.is_multiple_of(8) && request.length == 8;
        if request.operation.is_atomic() && !is_word {
            return Err(Status::OutOfBounds);
        }
        Ok(address)
    }

    /// Lets what is in it be looked at from now on: so many bytes, all zero.
    pub fn fill(&mut self, bytes: usize) {
        self.bytes = vec![0; bytes];
    }

    /// What is in it, if somebody looks.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What is in it, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The bytes there, if somebody looks and it has them.
    pub(super) fn read(&self, address: u64, length: usize) -> &[u8] {
        let first = usize::try_from(address).unwrap_or(usize::MAX);
        self.bytes.get(first..first.saturating_add(length)).unwrap_or(&[])
    }

    /// Puts bytes there, if somebody looks and it has room for them.
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) {
        let first = usize::try_from(address).unwrap_or(usize::MAX);
        if let Some(there) = self.bytes.get_mut(first..first.saturating_add(bytes.len())) {
            there.copy_from_slice(bytes);
        }
    }

    /// Does an atomic operation on a word; what it was before.
    pub(super) fn change(&mut self, address: u64, operation: Operation, operands: [u64; 2]) -> u64 {
        let old = match self.read(address, 8).first_chunk() {
            Some(&bytes) => u64::from_be_bytes(bytes),
            None => self.words.get(&address).copied().unwrap_or(0),
        };
        let new = match operation {
            Operation::FetchAndAdd => old.wrapping_add(operands[0]),
            Operation::CompareAndSwap if old == operands[0] => operands[1],
            _ => return old,
        };
        match self.bytes.is_empty() {
            true => drop(self.words.insert(address, new)),
            false => self.write(address, &new.to_be_bytes()),
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: (u16, u16) = (8, 72);

    fn request(grant: &Grant, operation: Operation, address: u64, length: u16) -> Request {
        let mut request = Request {
            operation,
            class_of_service: 7,
            is_low_latency: true,
            is_marked: false,
            length,
            slot: 3,
            segment: 1,
            generation: 9,
            region: grant.region,
            key: grant.key,
            address,
            tag: [0; TAG_BYTES],
            operands: [0; 2],
        };
        request.tag = tag(&request, ENDS, &grant.secret);
        request
    }

    /// RFC 4231, test case 2: keys and data of any length; and ours is its first half.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        let whole = mac.finalize().into_bytes();
        assert_eq!(whole[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        let secret = [7; 16];
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
        mac.update(b"ab");
        assert_eq!(mac.finalize().into_bytes()[..16], sign(&secret, &[b"a", b"b"]));
    }

    #[test]
    fn i63_m506_only_what_is_granted_is_reached() {
        let mut memory = Memory::new(1, 4);
        let region = memory.register(0x1000, 4_096, Permissions::READ).unwrap();
        let grant = memory.grant(region, 5).unwrap();
        let ask = |memory: &Memory, request: Request| memory.allow(&request, ENDS);
        let fine = request(&grant, Operation::Read, 96, 4_000);
        assert_eq!(ask(&memory, fine), Ok(0x1000 + 96));
        let refused = |request, status| assert_eq!(ask(&memory, request), Err(status));
        refused(request(&grant, Operation::Read, 97, 4_000), Status::OutOfBounds);
        refused(request(&grant, Operation::Read, u64::MAX, 1), Status::OutOfBounds);
        refused(request(&grant, Operation::Write, 0, 1), Status::Forbidden);
        refused(request(&grant, Operation::FetchAndAdd, 0, 8), Status::Forbidden);
        // Any change of a signed request, and a key that is another's.
        refused(Request { address: 0, ..fine }, Status::BadTag);
        refused(Request { slot: 4, ..fine }, Status::BadTag);
        refused(Request { key: 6, ..fine }, Status::BadTag);
        assert_eq!(memory.allow(&fine, (9, 72)), Err(Status::BadTag), "from another host");
        let guess = Grant { secret: [0; 16], ..grant };
        refused(request(&guess, Operation::Read, 0, 1), Status::BadTag);
        refused(Request { region: region + 1, ..fine }, Status::NoRegion);
        assert!(memory.revoke(region) && !memory.revoke(region));
        assert_eq!(ask(&memory, fine), Err(Status::NoRegion));
    }

    /// M515: a place that is used again has another number, so that old grants stay void.
    #[test]
    fn m515_regions_are_limited_and_numbers_are_not_used_again() {
        let mut memory = Memory::new(1, 3);
        let numbers: Vec<_> =
            (0..3).map(|_| memory.register(0, 8, Permissions::ALL).unwrap()).collect();
        assert_eq!(memory.register(0, 8, Permissions::ALL), None);
        let old = memory.grant(numbers[1], 1).unwrap();
        memory.revoke(numbers[1]);
        let new = memory.register(0, 8, Permissions::ALL).unwrap();
        assert!(!numbers.contains(&new));
        let asked = request(&old, Operation::Read, 0, 8);
        assert_eq!(memory.allow(&asked, ENDS), Err(Status::NoRegion));
        assert_eq!(memory.grant(numbers[1], 1), None);
    }

    #[test]
    fn m510_atomic_operations_return_what_was_there() {
        for size in [0, 64] {
            let mut memory = Memory::new(1, 3);
            memory.fill(size);
            use Operation::{CompareAndSwap, FetchAndAdd};
            assert_eq!(memory.change(8, FetchAndAdd, [5, 0]), 0);
            assert_eq!(memory.change(8, FetchAndAdd, [u64::MAX, 0]), 5, "it wraps");
            assert_eq!(memory.change(8, CompareAndSwap, [4, 9]), 4, "swapped");
            assert_eq!(memory.change(8, CompareAndSwap, [4, 7]), 9, "not swapped");
            assert_eq!(memory.change(8, FetchAndAdd, [0, 0]), 9);
        }
        let mut memory = Memory::new(1, 3);
        let region = memory.register(0, 64, Permissions::ALL).unwrap();
        let grant = memory.grant(region, 5).unwrap();
        let ask =
            |at, length| memory.allow(&request(&grant, Operation::FetchAndAdd, at, length), ENDS);
        assert_eq!(ask(16, 8), Ok(16));
        assert_eq!((ask(12, 8), ask(16, 4)), (Err(Status::OutOfBounds), Err(Status::OutOfBounds)));
    }
}
