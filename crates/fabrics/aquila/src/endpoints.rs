//! IP and remote memory at the same TiNs.
//!
//! Models: Aquila §3.6 (M003, M102): each has terminal ports of its own, and nothing in common but the fabric.

use kernel::Time;

use crate::ip::open_loop::OpenLoop as Packets;
use crate::rma::open_loop::OpenLoop as Memory;
use crate::switch::cell::Cell;
use crate::switch::{Endpoints, Room, Switches, Wishes};

/// Terminal ports of remote memory; the others are IP's and the control processor's (M102).
const MEMORY: std::ops::Range<u8> = 8..16;

/// What is at the TiNs.
#[derive(Clone, Debug)]
pub struct Both {
    /// IP.
    pub ip: Packets,
    /// Remote memory.
    pub memory: Memory,
}

impl Endpoints for Both {
    fn deliver(&mut self, tin: u16, terminal: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        match MEMORY.contains(&terminal) {
            true => self.memory.deliver(tin, terminal, cell, at, wishes),
            false => self.ip.deliver(tin, terminal, cell, at, wishes),
        }
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        match MEMORY.contains(&terminal) {
            true => self.memory.inject(tin, terminal, room, wishes),
            false => self.ip.inject(tin, terminal, room, wishes),
        }
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        self.ip.wake(tin, wishes);
        self.memory.wake(tin, wishes);
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::lane_of;
    use crate::rma::host_of;

    /// I08: a request for memory that has to wait is at a port at which no clearance of IP arrives, though both are of
    /// one class.
    #[test]
    fn i08_m102_each_terminal_port_is_ip_s_or_memory_s() {
        for terminal in 0..17 {
            let is_memory = MEMORY.contains(&terminal);
            let takes = (host_of(terminal).is_some(), lane_of(terminal).is_some());
            assert_eq!(takes, (is_memory, !is_memory), "port {terminal}");
        }
    }
}
