//! Messages, and both ends.

use kernel::Time;
use proptest::prelude::*;

use super::*;
use crate::flash::{BLOCK_BYTES, Flash, GENERATION, Image};
use crate::memory::{Memory, Purpose};
use crate::registers::file::RegisterFile;
use crate::registers::map::*;
use crate::registers::{Register, Word};

fn entries() -> impl Strategy<Value = Entry> {
    (0..6u32, any::<[u8; 32]>())
        .prop_map(|(power, bytes)| Entry::from_bytes(&bytes[..1 << power]).unwrap())
}

/// Addresses, most of them of registers.
fn addresses() -> impl Strategy<Value = u32> {
    let near = (0..REGISTERS.len(), any::<u32>(), 0..20u32).prop_map(|(register, at, off)| {
        let register: &Register = &REGISTERS[register];
        let entry = register.base + at % register.entries() * register.entry_bytes();
        if off == 0 { entry.wrapping_add(1) } else { entry }
    });
    prop_oneof![9 => near, 1 => any::<u32>()]
}

fn items() -> impl Strategy<Value = Item> {
    let size = prop::sample::select(&[1u8, 2, 4, 8, 16, 32, 0, 3][..]);
    let block = (addresses(), size, prop::collection::vec(any::<u8>(), 0..200));
    prop_oneof![
        addresses().prop_map(|address| Item::Read { address }),
        (addresses(), entries()).prop_map(|(address, entry)| Item::Write { address, entry }),
        (addresses(), any::<u16>()).prop_map(|(address, count)| Item::ReadBlock { address, count }),
        (addresses(), 0..9u16).prop_map(|(address, count)| Item::ReadBlock { address, count }),
        block.prop_map(|(address, size, bytes)| Item::WriteBlock { address, size, bytes }),
        (addresses(), 0..70u16).prop_map(|(address, count)| Item::Digests { address, count }),
        flash_items(),
    ]
}

fn headers() -> impl Strategy<Value = Header> {
    any::<[u8; Header::BYTES]>().prop_map(|bytes| Header::decode(&bytes))
}

fn flash_items() -> impl Strategy<Value = Item> {
    let block = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..200));
    let restart = prop::sample::select(&[Restart::Processor, Restart::Chip][..]);
    prop_oneof![
        Just(Item::Flash),
        headers().prop_map(Item::Stage),
        block.prop_map(|(offset, bytes)| Item::Store { offset, bytes }),
        Just(Item::Verify),
        (any::<u16>(), restart, any::<u16>())
            .prop_map(|(version, restart, trial)| Item::Activate { version, restart, trial }),
        any::<u16>().prop_map(|version| Item::Confirm { version }),
    ]
}

fn trials() -> impl Strategy<Value = Trial> {
    prop::sample::select(&Trial::ALL[..])
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        prop::sample::select(&Status::ALL[1..]).prop_map(Outcome::Failed),
        Just(Outcome::Written),
        entries().prop_map(Outcome::Entry),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Outcome::Entries),
        prop::collection::vec(any::<u64>(), 0..40).prop_map(Outcome::Digests),
        (any::<u16>(), headers(), any::<u32>(), any::<bool>(), trials(), any::<u32>()).prop_map(
            |(running, header, blocks, is_verified, trial, records)| {
                let staged = Staged { header: Some(header), blocks, is_verified };
                Outcome::Flash { running, staged, trial, records }
            }
        ),
        (any::<u16>(), trials()).prop_map(|(running, trial)| {
            Outcome::Flash { running, staged: Staged::default(), trial, records: 1 }
        }),
    ]
}

/// Whatever a reader makes of bytes, it is what they say.
fn check_bytes(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Ok(answer) = Answer::decode(bytes) {
        assert_eq!(answer.encode(), bytes);
    }
}

proptest! {
    #[test]
    fn m606_messages_come_back_and_no_cut_one_is_taken(
        sequence in any::<u32>(),
        items in prop::collection::vec(items(), 0..40),
        outcomes in prop::collection::vec(outcomes(), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let request = Request { sequence, items };
        let bytes = request.encode();
        prop_assert_eq!(bytes.len(), HEADER_BYTES + request.items.iter().map(Item::size).sum::<usize>());
        prop_assert!(Request::decode(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(Answer::decode(&bytes).is_err());
        prop_assert_eq!(Request::decode(&bytes), Ok(request));
        let answer = Answer { sequence, outcomes };
        let bytes = answer.encode();
        prop_assert_eq!(bytes.len(), HEADER_BYTES + answer.outcomes.iter().map(Outcome::size).sum::<usize>());
        prop_assert!(Answer::decode(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert_eq!(Answer::decode(&bytes), Ok(answer));
    }

    #[test]
    fn m606_damaged_messages_are_refused_or_written_back_the_same(
        items in prop::collection::vec(items(), 0..10),
        outcomes in prop::collection::vec(outcomes(), 0..10),
        (at, by) in (any::<prop::sample::Index>(), 1..=255u8),
    ) {
        for mut bytes in [Request { sequence: 1, items }.encode(), Answer { sequence: 1, outcomes }.encode()] {
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            check_bytes(&bytes);
        }
    }

    /// The agent against the register file itself, item by item; twice the same bytes do it once.
    #[test]
    fn m606_each_item_is_done_whole_or_not_at_all(
        requests in prop::collection::vec(prop::collection::vec(items(), 0..30), 1..6),
    ) {
        let memory = Memory::default();
        let (mut caller, mut agent) = (Caller::new(), Agent::new(&memory).unwrap());
        let (mut file, mut direct) = (RegisterFile::new(), RegisterFile::new());
        let mut flash = Flash::default();
        for items in requests {
            let bytes = caller.send(items).unwrap().to_vec();
            prop_assert_eq!(caller.send(Vec::new()).unwrap_err(), NotSent::Busy(Request::decode(&bytes).unwrap().sequence));
            let answer = agent.receive(Time::ZERO, &mut file, &mut flash, &bytes).unwrap().to_vec();
            prop_assert!(answer.len() <= MESSAGE_BYTES_MAX);
            let before = file.clone();
            prop_assert_eq!(agent.receive(Time::ZERO, &mut file, &mut flash, caller.under_way().unwrap()).unwrap(), &answer[..]);
            prop_assert!(file == before);
            for (item, outcome) in caller.receive(&answer).unwrap() {
                let expected = match &item {
                    Item::Read { address } => direct.read(*address).map(Outcome::Entry),
                    Item::Write { address, entry } => {
                        direct.write(*address, entry).map(|()| Outcome::Written)
                    }
                    Item::ReadBlock { address, count } => {
                        direct.read_block(*address, (*count).into()).map(Outcome::Entries)
                    }
                    Item::WriteBlock { address, size, bytes } => {
                        direct.write_block(*address, (*size).into(), bytes).map(|()| Outcome::Written)
                    }
                    Item::Digests { address, count } => {
                        direct.digests(*address, (*count).into()).map(Outcome::Digests)
                    }
                    // Registers are not touched by these.
                    _ => continue,
                };
                if outcome != Outcome::Failed(Status::NoRoom) {
                    prop_assert_eq!(expected.unwrap_or_else(Outcome::Failed), outcome);
                }
            }
            prop_assert!(file == direct);
            // What comes late answers nothing.
            prop_assert!(caller.receive(&answer).is_err());
        }
        prop_assert_eq!(memory.used(), 2 * 65_536 + 8);
    }

    #[test]
    fn i73_what_is_packed_fits_and_keeps_its_order(items in prop::collection::vec(items(), 0..400)) {
        let requests = pack(items.clone());
        prop_assert_eq!(requests.concat(), items);
        for request in requests {
            let size = HEADER_BYTES + request.iter().map(Item::size).sum::<usize>();
            prop_assert!(size <= MESSAGE_BYTES_MAX);
        }
    }
}

#[test]
fn m606_an_answer_without_room_says_so_and_the_rest_is_done() {
    let memory = Memory::default();
    let (mut caller, mut agent) = (Caller::new(), Agent::new(&memory).unwrap());
    let (mut file, mut flash) = (RegisterFile::new(), Flash::default());
    let base = ROUTE.register().base;
    let read = |count| Item::ReadBlock { address: base, count };
    let mode = CLASS_MODE.address([3]).unwrap();
    // 64 KiB less the header: 2047 entries of 32 bytes fit, and not one more.
    let written = Item::Write { address: mode, entry: 2u8.to_entry() };
    let bytes = caller.send(vec![read(2_048), read(2_047), written]).unwrap().to_vec();
    let answer = agent.receive(Time::ZERO, &mut file, &mut flash, &bytes).unwrap().to_vec();
    let outcomes: Vec<_> = caller.receive(&answer).unwrap().into_iter().map(|(_, o)| o).collect();
    assert_eq!(outcomes[0], Outcome::Failed(Status::NoRoom));
    assert_eq!(outcomes[1], Outcome::Entries(vec![0xFF; 2_047 * 32]));
    assert_eq!(outcomes[2], Outcome::Written);
    assert_eq!(file.get(CLASS_MODE, [3]), 2);
    // Neither is in one request with the other: both would not fit the answer.
    assert_eq!(pack([read(1_500), read(1_500)]).len(), 2);
}

#[test]
fn m606_i73_too_large_requests_are_not_sent_and_answers_must_fit() {
    let mut caller = Caller::new();
    let block = Item::WriteBlock { address: 0, size: 1, bytes: vec![0; 65_520] };
    assert_eq!(caller.send(vec![block]), Err(NotSent::Size(16 + 8 + 65_520)));
    let address = CLASS_MODE.register().base;
    let sent = caller.send(vec![Item::ReadBlock { address, count: 3 }]).unwrap();
    let sequence = Request::decode(sent).unwrap().sequence;
    let answer = |outcomes| Answer { sequence, outcomes }.encode();
    for wrong in [vec![], vec![Outcome::Written], vec![Outcome::Entries(vec![0; 2])]] {
        assert_eq!(caller.receive(&answer(wrong)), Err(Late::Outcome(0)));
    }
    let right = vec![Outcome::Entries(vec![0; 3])];
    let error = caller.receive(&answer([right.clone(), vec![Outcome::Written]].concat()));
    assert_eq!(error, Err(Late::Outcome(1)));
    assert_eq!(caller.receive(&answer(right)).unwrap().len(), 1);
}

#[test]
fn m606_i74_an_agent_without_memory_does_not_start() {
    let memory = Memory::new(100_000);
    assert_eq!(Agent::new(&memory).unwrap_err().purpose, Purpose::Rpc);
    assert_eq!(memory.used(), 0);
}

#[test]
fn m606_another_request_of_the_same_number_is_done() {
    let mut agent = Agent::new(&Memory::default()).unwrap();
    let (mut file, mut flash) = (RegisterFile::new(), Flash::default());
    let address = CLASS_MODE.address([0]).unwrap();
    for mode in [1u8, 2] {
        let items = vec![Item::Write { address, entry: mode.to_entry() }];
        agent
            .receive(Time::ZERO, &mut file, &mut flash, &Request { sequence: 9, items }.encode())
            .unwrap();
        assert_eq!(file.get(CLASS_MODE, [0]), mode);
    }
}

#[test]
fn m606_a_register_that_does_not_exist_is_refused_and_the_rest_is_done() {
    let (mut caller, mut agent) = (Caller::new(), Agent::new(&Memory::default()).unwrap());
    let (mut file, mut flash) = (RegisterFile::new(), Flash::default());
    let nowhere = 0xFFFF_0000;
    let mode = CLASS_MODE.address([3]).unwrap();
    let block = Item::WriteBlock { address: nowhere, size: 1, bytes: vec![1; 8] };
    let items = vec![
        Item::Write { address: nowhere, entry: 2u8.to_entry() },
        block,
        Item::Read { address: nowhere },
        Item::ReadBlock { address: nowhere, count: 2 },
        Item::Digests { address: nowhere, count: 1 },
        Item::Write { address: mode, entry: 2u8.to_entry() },
    ];
    let bytes = caller.send(items).unwrap().to_vec();
    let answer = agent.receive(Time::ZERO, &mut file, &mut flash, &bytes).unwrap().to_vec();
    let outcomes: Vec<_> = caller.receive(&answer).unwrap().into_iter().map(|(_, o)| o).collect();
    assert_eq!(outcomes[..5], vec![Outcome::Failed(Status::Unknown); 5]);
    assert_eq!(outcomes[5], Outcome::Written);
    let mut expected = RegisterFile::new();
    expected.set(CLASS_MODE, [3], 2);
    assert!(file == expected, "something else was written");
}

#[test]
fn m606_a_request_cut_short_anywhere_changes_nothing() {
    let mut agent = Agent::new(&Memory::default()).unwrap();
    let (mut file, mut flash) = (RegisterFile::new(), Flash::default());
    let address = CLASS_MODE.address([0]).unwrap();
    let write = |mode: u8| Item::Write { address, entry: mode.to_entry() };
    let bytes = Request { sequence: 1, items: vec![write(1), write(2)] }.encode();
    for length in 0..bytes.len() {
        assert!(agent.receive(Time::ZERO, &mut file, &mut flash, &bytes[..length]).is_err());
        // Nor if its header says that this is all.
        let mut short = bytes[..length].to_vec();
        if length >= HEADER_BYTES {
            short[8..12].copy_from_slice(&(length as u32).to_be_bytes());
        }
        assert!(agent.receive(Time::ZERO, &mut file, &mut flash, &short).is_err());
    }
    assert!(file == RegisterFile::new());
}

/// M617: over requests an image comes into the flash as it does by hand, once however often they come.
#[test]
fn m617_an_image_is_staged_verified_and_chosen_by_requests() {
    let (mut caller, mut agent) = (Caller::new(), Agent::new(&Memory::default()).unwrap());
    let (mut file, mut flash) = (RegisterFile::new(), Flash::default());
    let mut now = Time::ZERO;
    let mut ask = |item: Item| {
        let bytes = caller.send(vec![item]).unwrap().to_vec();
        let answer = agent.receive(now, &mut file, &mut flash, &bytes).unwrap().to_vec();
        let again = agent.receive(now, &mut file, &mut flash, &bytes).unwrap();
        assert_eq!(again, answer);
        now += crate::flash::BLOCK_TIME;
        let restart = agent.take_restart();
        (caller.receive(&answer).unwrap().remove(0).1, restart, agent.other_generations())
    };
    let image = Image::new(2, GENERATION);
    let other = Header { generation: GENERATION + 1, ..image.header };
    let refused = (Outcome::Failed(Status::Generation), None, 1);
    assert_eq!(ask(Item::Stage(other)), refused);
    let done = (Outcome::Written, None, 1);
    assert_eq!(ask(Item::Stage(image.header)), done);
    for block in 0..image.header.blocks() {
        let (offset, bytes) = (block * BLOCK_BYTES, image.block(block).to_vec());
        assert_eq!(ask(Item::Store { offset, bytes }), done);
    }
    assert_eq!(ask(Item::Verify), done);
    let staged = Staged { header: Some(image.header), blocks: 64, is_verified: true };
    let trial = Trial::Kept;
    assert_eq!(ask(Item::Flash).0, Outcome::Flash { running: 1, staged, trial, records: 1 });
    let activate = Item::Activate { version: 2, restart: Restart::Processor, trial: 9 };
    assert_eq!(ask(activate.clone()), (Outcome::Written, Some(Restart::Processor), 1));
    // It has not started yet; and until it is confirmed nothing takes the place of what ran before.
    let trial = Trial::Due;
    assert!(
        matches!(ask(Item::Flash).0, Outcome::Flash { running: 2, trial: t, .. } if t == trial)
    );
    assert_eq!(ask(Item::Confirm { version: 2 }).0, Outcome::Failed(Status::NotNext));
    for item in [Item::Stage(image.header), Item::Verify, activate] {
        assert_eq!(ask(item).0, Outcome::Failed(Status::OnTrial));
    }
}
