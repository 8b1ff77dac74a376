//! What is due at which switch.
//!
//! Each switch has a list of its own, so that the order in which two of them act within an instant is the
//! driver's alone; at one switch what is due at once is done in the order in which it was noted.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use ::rack::topology::PortId;
use kernel::{Slab, Time};
use packets::{Handle, Packet};

/// What is due at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// A node's packet, by its place among those on their way, is in its leaf whole.
    Store { leaf: u16, place: u32 },
    /// A switch is clocked, by its unit.
    Cycle(u32),
    /// A packet goes out of a spine to the queue of a port.
    Emit(Handle, PortId),
    /// A node's packet, by its place, goes to the queue of its port.
    Deliver { place: u32, port: PortId },
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Time,
    number: u64,
    task: Task,
}

impl Due {
    fn key(&self) -> (Time, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The lists of all switches.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    switches: Vec<BinaryHeap<Reverse<Due>>>,
    noted: u64,
}

impl Agenda {
    pub(super) fn new(switches: usize) -> Self {
        Self { switches: vec![BinaryHeap::new(); switches], noted: 0 }
    }

    pub(super) fn push(&mut self, switch: usize, at: Time, task: Task) {
        self.noted += 1;
        self.switches[switch].push(Reverse(Due { at, number: self.noted, task }));
    }

    /// The next task of a switch that is due by `now`.
    pub(super) fn pop(&mut self, switch: usize, now: Time) -> Option<Task> {
        let list = &mut self.switches[switch];
        if list.peek()?.0.at > now {
            return None;
        }
        list.pop().map(|Reverse(due)| due.task)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.switches.iter().all(BinaryHeap::is_empty)
    }
}

/// Packets that wait for a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    packets: Slab<Packet>,
}

impl Waiting {
    pub(super) fn put(&mut self, packet: Packet) -> u32 {
        self.packets.insert(packet)
    }

    pub(super) fn take(&mut self, place: u32) -> Packet {
        self.packets.release(place);
        self.packets[place as usize]
    }
}
