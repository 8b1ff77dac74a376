//! Whatever updates and counts say, a sender uses no more than it was told of, and a receiver takes no more than
//! it has space for.
#![no_main]

use aquila::link::credits::{Receiver, Sender, UNITS_MAX};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

/// What happens at either end; numbers are as foreign as they come.
#[derive(Arbitrary, Debug)]
enum Event {
    Update(u16),
    Send(u8),
    Receive(u16),
    Free,
    Advertise,
    Synchronise(u16),
}

/// A buffer and what happens.
#[derive(Arbitrary, Debug)]
struct Input {
    units: u16,
    events: Vec<Event>,
}

fuzz_target!(|input: Input| {
    let size = input.units % (UNITS_MAX + 1);
    let (mut sender, mut receiver) = (Sender::new(), Receiver::new(size));
    let mut held: Vec<u16> = Vec::new();
    for event in input.events {
        match event {
            Event::Update(limit) => sender.update(limit),
            Event::Send(units) if sender.can_send(units.into()) => {
                let before = sender.credit();
                sender.send(units.into());
                assert_eq!(sender.credit(), before - u16::from(units));
            }
            Event::Send(_) => {}
            Event::Receive(units) => {
                if receiver.receive(units).is_ok() {
                    held.push(units);
                }
            }
            Event::Free => {
                if let Some(units) = held.pop() {
                    receiver.free(units);
                }
            }
            Event::Advertise => {
                receiver.advertise();
                assert_eq!(receiver.unsaid(), 0);
            }
            Event::Synchronise(consumed) => {
                let before = receiver.room();
                receiver.synchronise(consumed);
                assert_eq!(receiver.room(), before, "what is lost is granted again");
            }
        }
        let occupied: u16 = held.iter().sum();
        assert!(occupied + receiver.room() == size, "{occupied} and {}", receiver.room());
    }
});
