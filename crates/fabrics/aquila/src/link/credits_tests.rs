//! Credits under lost, doubled and late updates, and lost cells.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::credits::{MODULUS, Overrun, Receiver, Sender, UNITS_MAX, units};

/// What happens next on a link of one channel.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A cell of so many units goes out, if it may.
    Send(u16),
    /// What has been under way longest arrives.
    Arrive,
    /// It is lost.
    Lose,
    /// The oldest cell leaves the buffer.
    Free,
    /// An update is sent.
    Advertise,
    /// The oldest update under way arrives.
    Update,
    /// It is lost.
    LoseUpdate,
    /// It arrives, and once more later.
    Double,
    /// The newest under way arrives before the others.
    Overtake,
    /// The sender says what it has used, in order with its cells.
    Synchronise,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (1..=10u16).prop_map(Event::Send),
        4 => Just(Event::Arrive),
        1 => Just(Event::Lose),
        4 => Just(Event::Free),
        3 => Just(Event::Advertise),
        3 => Just(Event::Update),
        1 => Just(Event::LoseUpdate),
        1 => Just(Event::Double),
        1 => Just(Event::Overtake),
        1 => Just(Event::Synchronise),
    ];
    prop::collection::vec(event, 0..2_000)
}

/// On the wire from sender to receiver.
#[derive(Clone, Copy)]
enum Wire {
    Cell(u16),
    Consumed(u16),
}

/// A link of one channel, with what an outsider knows of it.
struct Link {
    sender: Sender,
    receiver: Receiver,
    size: u16,
    wire: VecDeque<Wire>,
    updates: VecDeque<u16>,
    buffer: VecDeque<u16>,
    /// Lost, and not yet made good.
    lost: u16,
}

impl Link {
    fn new(size: u16) -> Self {
        let mut link = Self {
            sender: Sender::new(),
            receiver: Receiver::new(size),
            size,
            wire: VecDeque::new(),
            updates: VecDeque::new(),
            buffer: VecDeque::new(),
            lost: 0,
        };
        let limit = link.receiver.advertise();
        link.sender.update(limit);
        link
    }

    fn occupied(&self) -> u16 {
        self.buffer.iter().sum()
    }

    fn under_way(&self) -> u16 {
        let cell = |wire: &Wire| if let Wire::Cell(units) = wire { *units } else { 0 };
        self.wire.iter().map(cell).sum()
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Send(units) if self.sender.can_send(units) => {
                self.sender.send(units);
                self.wire.push_back(Wire::Cell(units));
            }
            Event::Send(_) => {}
            Event::Arrive => match self.wire.pop_front() {
                Some(Wire::Cell(units)) => {
                    self.receiver.receive(units).unwrap();
                    self.buffer.push_back(units);
                }
                Some(Wire::Consumed(consumed)) => {
                    // All that was lost before it, exactly.
                    let behind = self.receiver.synchronise(consumed);
                    assert_eq!(behind, self.lost);
                    self.lost = 0;
                }
                None => {}
            },
            Event::Lose => {
                if let Some(Wire::Cell(units)) = self.wire.pop_front() {
                    self.lost += units;
                }
            }
            Event::Free => {
                if let Some(units) = self.buffer.pop_front() {
                    self.receiver.free(units);
                }
            }
            Event::Advertise => self.updates.push_back(self.receiver.advertise()),
            Event::Update => self.update(0),
            Event::LoseUpdate => drop(self.updates.pop_front()),
            Event::Double => {
                if let Some(&limit) = self.updates.front() {
                    self.sender.update(limit);
                }
            }
            Event::Overtake => self.update(self.updates.len().saturating_sub(1)),
            Event::Synchronise => self.wire.push_back(Wire::Consumed(self.sender.consumed())),
        }
        // So that no update is as old as the counts are wide.
        while self.updates.len() > 20 {
            self.update(0);
        }
        self.check();
    }

    fn update(&mut self, index: usize) {
        if let Some(limit) = self.updates.remove(index) {
            self.sender.update(limit);
        }
    }

    /// I02 and I03.
    fn check(&self) {
        assert!(self.occupied() <= self.size, "{} of {}", self.occupied(), self.size);
        let used = self.sender.credit() + self.under_way() + self.occupied() + self.lost;
        // What is freed and not known at the sender is the rest.
        assert!(used <= self.size, "{used} of {}", self.size);
    }

    /// Everything arrives, nothing more is lost.
    fn drain(&mut self) {
        self.step(Event::Synchronise);
        while !self.wire.is_empty() {
            self.step(Event::Arrive);
        }
        while !self.buffer.is_empty() {
            self.step(Event::Free);
        }
        self.step(Event::Advertise);
        while !self.updates.is_empty() {
            self.update(0);
        }
    }
}

proptest! {
    #[test]
    fn slow_i01_i02_i03_credits_come_home_whatever_is_lost(
        events in events(),
        size in 10..=UNITS_MAX / 8,
    ) {
        let mut link = Link::new(size);
        for event in events {
            link.step(event);
        }
        link.drain();
        prop_assert_eq!(link.sender.credit(), size);
        prop_assert_eq!(link.receiver.room(), size);
    }
}

#[test]
fn i01_a_cell_needs_credit_for_all_of_it() {
    let mut link = Link::new(15);
    link.step(Event::Send(10));
    assert!(link.sender.can_send(5) && !link.sender.can_send(6));
    link.step(Event::Send(6));
    assert_eq!(link.wire.len(), 1);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "6 units with a credit of 5")]
fn i01_a_sender_that_does_not_ask_panics() {
    let mut sender = Sender::new();
    sender.update(5);
    sender.send(6);
}

#[test]
fn i02_what_was_not_granted_is_refused() {
    let mut receiver = Receiver::new(10);
    assert_eq!(receiver.receive(10), Ok(()));
    assert_eq!(receiver.receive(1), Err(Overrun));
    receiver.free(1);
    assert_eq!(receiver.receive(1), Ok(()));
}

#[test]
fn m212_counts_go_round() {
    let mut link = Link::new(80);
    for _ in 0..10 * u32::from(MODULUS) {
        link.step(Event::Send(7));
        for event in [Event::Arrive, Event::Free, Event::Advertise, Event::Update] {
            link.step(event);
        }
    }
    assert_eq!(link.sender.credit(), 80);
}

#[test]
fn m216_a_late_count_of_what_was_used_changes_nothing() {
    let mut link = Link::new(80);
    let early = link.sender.consumed();
    for _ in 0..5 {
        link.step(Event::Send(10));
        link.step(Event::Arrive);
    }
    let before = link.receiver;
    assert_eq!(link.receiver.synchronise(early), 0);
    assert_eq!(link.receiver, before);
}

#[test]
fn m212_units_of_cells() {
    assert_eq!([16, 24, 48, 152, 160].map(units), [1, 2, 3, 10, 10]);
}
