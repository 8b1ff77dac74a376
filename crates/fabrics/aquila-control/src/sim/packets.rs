//! Packets of the control plane: by which chips they pass, and where they are lost.

use std::net::IpAddr;

use aquila::address::Endpoint;
use aquila::pipeline::Interface;
use kernel::Span;

use super::path::{self, Lost};
use super::{CONTROLLER, Parcel, Sim};
use crate::firmware;
use crate::session::ip;

impl Sim {
    /// A packet of the controller's: by the TiN's own link to the datacenter's network, or over one that is ready.
    pub(super) fn send_from_controller(&mut self, packet: Vec<u8>) {
        let Some((_, to)) = ip::addresses(&packet) else { return };
        self.results.packets[usize::from(to.is_ipv6())] += 1;
        let known = self.plan.of_ip(to);
        let Some((tin, Interface::Control)) = known else { return };
        let is_open = |&tin: &u16| {
            let node = &self.nodes[usize::from(tin)];
            node.is_on && node.is_ethernet_up
        };
        let own = Some(tin).filter(is_open);
        let entrance = own.or_else(|| {
            // As the routers of the datacenter's network were told: by those that have a way to it.
            let ready: Vec<u16> = self.exits(tin).iter().copied().filter(is_open).collect();
            ready.get(usize::from(tin) % ready.len().max(1)).copied()
        });
        let Some(entrance) = entrance else {
            self.lose(Lost::NoEntrance);
            return;
        };
        let chip = &self.chips[usize::from(entrance)];
        if chip.traps(to) {
            let input = firmware::Input::Trapped { by: Interface::Ethernet, packet };
            self.send_to(entrance, self.config.network, input);
            return;
        }
        match self.cross((entrance, Endpoint::ETHERNET), to, &packet) {
            Ok((end, after)) => {
                if !self.chips[usize::from(end.0)].traps(to) {
                    self.lose(Lost::Nobody);
                    return;
                }
                let input = firmware::Input::Trapped { by: Interface::Control, packet };
                self.send_to(end.0, self.config.network + after, input);
            }
            Err(lost) => self.lose(lost),
        }
    }

    /// A packet of a control processor's.
    pub(super) fn send_from_tin(&mut self, tin: u16, by: Interface, packet: Vec<u8>) {
        let to = ip::addresses(&packet).map(|(_, to)| to);
        let Some(to) = to.filter(|&to| CONTROLLER.contains(to)) else { return };
        self.results.packets[usize::from(to.is_ipv6())] += 1;
        let has_way = |sim: &Self, tin: u16| sim.nodes[usize::from(tin)].is_ethernet_up;
        let after = match by {
            Interface::Ethernet if has_way(self, tin) => Ok(Span::ZERO),
            Interface::Control => match self.cross((tin, Endpoint::CONTROL_IP), to, &packet) {
                Ok(((end, Endpoint::ETHERNET), after)) if has_way(self, end) => Ok(after),
                Ok(_) => Err(Lost::Nobody),
                Err(lost) => Err(lost),
            },
            _ => Err(Lost::Nobody),
        };
        match after {
            Ok(after) => {
                self.send(self.config.network + after, Parcel::Packet(packet));
            }
            Err(lost) => self.lose(lost),
        }
    }

    /// Where a packet comes out of the Clique, and after how long.
    fn cross(
        &mut self,
        from: (u16, Endpoint),
        to: IpAddr,
        packet: &[u8],
    ) -> Result<((u16, Endpoint), Span), Lost> {
        let chip = &self.chips[usize::from(from.0)];
        let hash = path::hash(packet);
        let address = path::flow(chip, to, hash).ok_or(Lost::NoFlow)?;
        let crosses = |tin: u16, port: u8| self.links.is_up(&self.topology, tin, port);
        let passed = path::follow(&self.topology, &self.chips, from, (address, hash), crosses)?;
        let last = passed.len() - 1;
        // I82.
        let between = passed.get(1..last).unwrap_or(&[]);
        let wrong = between.iter().filter(|&&tin| !self.ready[usize::from(tin)]).count();
        self.results.passed_unready += wrong as u64;
        self.results.crossed += 1;
        let after = self.config.hop * passed.len() as u64;
        Ok(((passed[last], address.endpoint()), after))
    }

    fn lose(&mut self, lost: Lost) {
        self.results.lost[lost as usize] += 1;
    }
}
