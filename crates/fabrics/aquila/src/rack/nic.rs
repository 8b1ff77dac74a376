//! What is at the TiNs: the NIC that hosts share, and IP.
//!
//! Models: Aquila §2, §5.1 (U32): packets of the hosts of a TiN come into its ingress buffer one after the other, by
//! turns.

use std::collections::VecDeque;

use kernel::{Bytes, Rate, Time};

use crate::ip::{Arrival, Engine};
use crate::switch::cell::Cell;
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Room, Wishes};

/// A packet on its way from a host into the ingress buffer.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    arrival: Arrival,
    /// When its last byte has come over the host's line. Unit: ps.
    whole_at: u64,
}

/// The NIC of a TiN, which its hosts share.
#[derive(Clone, Debug, Default)]
struct Nic {
    /// By host: packets whose headers have come.
    waiting: [VecDeque<Incoming>; 2],
    /// Until when it takes the packet at hand. Unit: ps.
    busy_until: u64,
    /// The wake that was asked for last. Unit: ps.
    armed: u64,
    /// The host that is asked first.
    turn: usize,
    /// Whether its TiN is dead.
    is_dead: bool,
}

/// What is at the TiNs.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    pub(super) ip: Engine,
    nics: Vec<Nic>,
    rate: Rate,
}

impl Cores {
    pub(super) fn new(ip: Engine, tins: u16, rate: Rate) -> Self {
        Self { ip, nics: vec![Nic::default(); tins.into()], rate }
    }

    /// The header of a packet has come over the line of a host. False if its TiN is dead.
    pub(super) fn arrive(
        &mut self,
        (tin, host): (u16, usize),
        arrival: Arrival,
        wishes: &mut Wishes,
    ) -> bool {
        let nic = &mut self.nics[usize::from(tin)];
        if nic.is_dead {
            return false;
        }
        nic.waiting[host].push_back(Incoming { arrival, whole_at: arrival.whole_at.as_ps() });
        self.take_in(tin, wishes);
        true
    }

    /// A TiN has died: gives the packets that waited at its NIC.
    pub(super) fn die(&mut self, tin: u16, wishes: &mut Wishes) -> Vec<u32> {
        self.ip.reset(tin, wishes);
        let nic = std::mem::take(&mut self.nics[usize::from(tin)]);
        self.nics[usize::from(tin)].is_dead = true;
        nic.waiting.into_iter().flatten().map(|incoming| incoming.arrival.packet).collect()
    }

    /// A TiN works.
    pub(super) fn revive(&mut self, tin: u16) {
        self.nics[usize::from(tin)].is_dead = false;
    }

    /// Lets packets into the ingress buffer, one after the other.
    fn take_in(&mut self, tin: u16, wishes: &mut Wishes) {
        let end = wishes.now().as_ps() + TICK.as_ps() - 1;
        let nic = &mut self.nics[usize::from(tin)];
        while nic.busy_until <= end {
            let turns = [nic.turn, 1 - nic.turn];
            let Some(host) = turns.into_iter().find(|&host| !nic.waiting[host].is_empty()) else {
                return;
            };
            let Some(incoming) = nic.waiting[host].pop_front() else { return };
            nic.turn = 1 - host;
            let begun = nic.busy_until.max(wishes.now().as_ps());
            let bytes = Bytes::new(incoming.arrival.length.into());
            let whole = incoming.whole_at.max(begun + self.rate.send_time(bytes).as_ps());
            nic.busy_until = whole;
            let arrival = Arrival { whole_at: Time::from_ps(whole), ..incoming.arrival };
            self.ip.arrive(tin, &arrival, wishes);
        }
        if nic.waiting.iter().any(|packets| !packets.is_empty()) && nic.armed != nic.busy_until {
            nic.armed = nic.busy_until;
            wishes.wake_at(Time::from_ps(nic.busy_until));
        }
    }
}

impl Endpoints for Cores {
    fn deliver(&mut self, tin: u16, terminal: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        if self.nics[usize::from(tin)].is_dead {
            return;
        }
        self.ip.deliver(tin, terminal, cell, at, wishes);
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        self.ip.inject(tin, terminal, room, wishes)
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        self.take_in(tin, wishes);
        self.ip.wake(tin, wishes);
    }
}
