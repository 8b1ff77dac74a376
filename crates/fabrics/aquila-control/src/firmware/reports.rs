//! Registers that are reported again and again (M605).

use kernel::{Span, Time};

use crate::memory::{Charge, Memory, Purpose};

/// A list, as the controller set it.
#[derive(Debug)]
struct List {
    _room: Charge,
    period: Span,
    addresses: Vec<u32>,
    next: Time,
}

/// The firmware's list. It is gone when the session ends: the firmware keeps nothing (M608).
#[derive(Debug, Default)]
pub struct Reports {
    list: Option<List>,
    /// Lists that did not fit the memory, and reports for which there was no room.
    pub refused: u64,
}

impl Reports {
    /// Sets the list; without a period or addresses there is none.
    pub fn set(&mut self, memory: &Memory, now: Time, seconds: u16, addresses: Vec<u32>) {
        self.list = None;
        if seconds == 0 || addresses.is_empty() {
            return;
        }
        let period = Span::from_us(u64::from(seconds) * 1_000_000);
        match memory.charge(Purpose::Other, 4 * addresses.len()) {
            Ok(room) => {
                let next = now + period;
                self.list = Some(List { _room: room, period, addresses, next });
            }
            Err(_) => self.refused += 1,
        }
    }

    /// Forgets the list.
    pub fn clear(&mut self) {
        self.list = None;
    }

    /// When [`Reports::due`] has something.
    pub fn deadline(&self) -> Option<Time> {
        self.list.as_ref().map(|list| list.next)
    }

    /// What is to be reported now.
    pub fn due(&mut self, now: Time) -> Vec<u32> {
        match &mut self.list {
            Some(list) if list.next <= now => {
                list.next = now + list.period;
                list.addresses.clone()
            }
            _ => Vec::new(),
        }
    }
}
