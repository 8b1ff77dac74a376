//! What is at the TiNs: the NIC that hosts share, and IP; or remote memory, where that carries the flows.
//!
//! Models: Aquila §2, §5.1 (U32): packets of the hosts of a TiN come into its ingress buffer one after the other, by
//! turns.

use std::collections::VecDeque;

use kernel::{Bytes, Rate, Time};

use super::outside::ETHERNET;
use crate::config::{self, Sharing};
use crate::ip::turn::Turn;
use crate::ip::{Arrival, Engine};
use crate::rma;
use crate::switch::cell::Cell;
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Room, Switches, Wishes};

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
    turn: Turn,
    /// Whether its TiN is dead.
    is_dead: bool,
    /// By host: whether nothing leads to it.
    is_cut_off: [bool; 2],
}

/// What is at the TiNs.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    pub(super) ip: Engine,
    /// There where it carries the flows: no packet of IP comes then.
    pub(super) memory: Option<Box<rma::Engine>>,
    nics: Vec<Nic>,
    rate: Rate,
    sharing: Sharing,
}

impl Cores {
    pub(super) fn new(
        ip: Engine,
        memory: Option<Box<rma::Engine>>,
        tins: u16,
        config: &config::Ip,
    ) -> Self {
        let (rate, sharing) = (config.port_rate, config.sharing);
        Self { ip, memory, nics: vec![Nic::default(); tins.into()], rate, sharing }
    }

    /// Whether a TiN is dead.
    pub(super) fn is_dead(&self, tin: u16) -> bool {
        self.nics[usize::from(tin)].is_dead
    }

    /// The line of a host is down, or it is dead itself; or it works again.
    pub(super) fn set_line(&mut self, (tin, host): (u16, usize), works: bool) {
        self.nics[usize::from(tin)].is_cut_off[host] = !works;
    }

    /// Its memory, and whatever it asked for and was asked for, is not there any more.
    pub(super) fn reset_memory(&mut self, (tin, host): (u16, usize), wishes: &mut Wishes) {
        if let Some(memory) = &mut self.memory {
            memory.reset(tin, host, wishes);
        }
    }

    /// The header of a packet has come over the line of a host, or of the Ethernet port. False if its TiN is dead.
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
        // Its own line, and no host's.
        if host == ETHERNET {
            self.ip.arrive(tin, &arrival, wishes);
            return true;
        }
        nic.waiting[host].push_back(Incoming { arrival, whole_at: arrival.whole_at.as_ps() });
        self.take_in(tin, wishes);
        true
    }

    /// A TiN has died: gives the packets that waited at its NIC.
    pub(super) fn die(&mut self, tin: u16, wishes: &mut Wishes) -> Vec<u32> {
        self.ip.reset(tin, wishes);
        (0..2).for_each(|host| self.reset_memory((tin, host), wishes));
        let nic = std::mem::take(&mut self.nics[usize::from(tin)]);
        let state = &mut self.nics[usize::from(tin)];
        (state.is_dead, state.is_cut_off) = (true, nic.is_cut_off);
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
            let turns = nic.turn.order(self.sharing);
            let Some(host) = turns.into_iter().find(|&host| !nic.waiting[host].is_empty()) else {
                return;
            };
            let Some(incoming) = nic.waiting[host].pop_front() else { return };
            let other_waits = !nic.waiting[1 - host].is_empty();
            nic.turn.took(host, incoming.arrival.length.into(), other_waits);
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
        let nic = &self.nics[usize::from(tin)];
        if nic.is_dead {
            return;
        }
        match &mut self.memory {
            Some(memory) => {
                let host = rma::host_of(terminal);
                if !host.is_some_and(|host| nic.is_cut_off[host]) {
                    memory.deliver(tin, terminal, cell, at, wishes);
                }
            }
            None => self.ip.deliver(tin, terminal, cell, at, wishes),
        }
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        match &mut self.memory {
            Some(memory) => memory.inject(tin, terminal, room, wishes),
            None => self.ip.inject(tin, terminal, room, wishes),
        }
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        if let Some(memory) = &mut self.memory {
            return memory.wake(tin, wishes);
        }
        self.take_in(tin, wishes);
        self.ip.wake(tin, wishes);
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}
