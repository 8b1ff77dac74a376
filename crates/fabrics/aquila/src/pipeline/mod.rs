//! Input and output processing of IP packets at a TiN: from a frame to a GNet address, and back to a frame.
//!
//! Models: Aquila §3.3, §4.2, §4.4 (M401 to M405, M428, M722, M808): what comes in at the NIC, the Ethernet port or the
//! control processor's port is parsed ([`fields`]), held against rules ([`rules`]), and its address is looked up: the
//! longest prefix says an address, a weighted group, an indexed group, a punt or a drop ([`routes`]). Ethernet's header
//! stays here; where the packet leaves it gets another ([`rewrite`]). What is punted goes to the control processor, as
//! many a second as that can take ([`police`]), and it answers some of it ([`control`]).
//!
//! Beside the output to each host a management sideband leads past it ([`sideband`], M616).
//!
//! Tables are one thing, who computes them another: [`compute`] has plain functions for what a controller would install,
//! over the addresses of [`plan`].
//!
//! The packet passes once each way: the Clique is one hop of IP (M401, I51).

pub mod compute;
pub mod control;
pub mod fields;
pub mod plan;
pub mod police;
pub mod rewrite;
pub mod routes;
pub mod rules;
pub mod sideband;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kernel::Time;

use crate::address::{Address, Endpoint};
use fields::Fields;
use plan::Plan;
use police::Police;
use routes::{Found, Routes};
use rules::{Action, Rule};

/// A port of a TiN at which IP comes in and goes out (M006).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Interface {
    /// The Ethernet port.
    Ethernet = 0,
    /// Host 0.
    Host0 = 1,
    /// Host 1.
    Host1 = 2,
    /// The control processor.
    Control = 3,
}

impl Interface {
    /// All of them, by number.
    pub const ALL: [Self; 4] = [Self::Ethernet, Self::Host0, Self::Host1, Self::Control];

    /// Its endpoint.
    #[must_use]
    pub const fn endpoint(self) -> Endpoint {
        match self {
            Self::Ethernet => Endpoint::ETHERNET,
            Self::Host0 => Endpoint::HOST_0,
            Self::Host1 => Endpoint::HOST_1,
            Self::Control => Endpoint::CONTROL_IP,
        }
    }
}

/// Why something goes to the control processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Reason {
    /// It is for the control processor itself (M808).
    Trapped,
    /// Who has this address? (M403.)
    WhoHas,
    /// It has no hops left.
    NoHopsLeft,
    /// It is no IP packet, nor known otherwise (M403).
    NotIp,
    /// A route says so.
    Routed,
}

/// Why something is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Cause {
    /// It is no frame, or no packet.
    Malformed,
    /// A rule says so.
    Rule,
    /// No prefix has its address, or the address is nobody's in its subnet.
    NoRoute,
    /// A route says so.
    Routed,
    /// The control processor has no time for it.
    TooManyPunts,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The GNet address.
    pub to: Address,
    /// How it was found.
    pub by: By,
    /// Of its flow, below 2^12 (M408).
    pub flow_hash: u16,
    /// Whether its cells are traced (M903).
    pub is_traced: bool,
    /// Whether it goes with its Ethernet header, as no IP packet (M403).
    pub is_encapsulated: bool,
}

/// How a GNet address was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum By {
    /// The route names it.
    Address,
    /// A member of a weighted group (M404).
    Group,
    /// The member of an indexed group at the address's place (M405).
    Indexed,
    /// By its Ethernet address: no IP packet.
    Ethernet,
}

/// What input processing says of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It crosses the fabric.
    Forward(Way),
    /// It goes to the control processor of this TiN.
    Punt(Reason),
    /// It goes nowhere.
    Drop(Cause),
}

/// What becomes of packets that are no IP (§3.3: "either encapsulated or punted").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NotIp {
    /// To the control processor, all of them.
    #[default]
    Punt,
    /// As they are to the TiN that has their Ethernet address; others to the control processor.
    Encapsulate,
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames.
    pub frames: u64,
    /// Those that crossed, by how their address was found.
    pub forwarded: [u64; 4],
    /// Punts, by reason.
    pub punted: [u64; 5],
    /// Drops, by cause.
    pub dropped: [u64; 5],
}

/// Input processing at a TiN.
#[derive(Clone, Debug)]
pub struct Pipeline {
    tin: u16,
    rules: Vec<Rule>,
    routes: Arc<Routes>,
    plan: Plan,
    not_ip: NotIp,
    police: Police,
    counts: Counts,
}

impl Pipeline {
    /// That of a TiN, which traps what is for its control processor.
    #[must_use]
    pub fn new(tin: u16, plan: &Plan, routes: Arc<Routes>) -> Self {
        Self {
            tin,
            rules: rules::trap(plan, tin),
            routes,
            plan: *plan,
            not_ip: NotIp::default(),
            police: Police::default(),
            counts: Counts::default(),
        }
    }

    /// Other routes are installed.
    pub fn install(&mut self, routes: Arc<Routes>) {
        self.routes = routes;
    }

    /// Adds rules behind those that are there: the first that fits counts.
    pub fn add_rules(&mut self, rules: impl IntoIterator<Item = Rule>) {
        self.rules.extend(rules);
    }

    /// What becomes of packets that are no IP.
    pub fn set_not_ip(&mut self, not_ip: NotIp) {
        self.not_ip = not_ip;
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A frame has come in at an interface.
    pub fn receive(&mut self, now: Time, from: Interface, frame: &[u8]) -> Verdict {
        let verdict = match fields::parse(frame) {
            Ok(fields) if fields.is_whole() => self.look_up(&fields, from),
            Ok(_) => Verdict::Drop(Cause::Malformed),
            Err(_) => Verdict::Drop(Cause::Malformed),
        };
        self.admit(now, verdict)
    }

    /// What becomes of a packet by its fields alone: the same for all packets of a flow as long as nothing else is
    /// installed, but for their hops.
    #[must_use]
    pub fn look_up(&self, fields: &Fields, from: Interface) -> Verdict {
        let mut is_traced = false;
        for rule in self.rules.iter().filter(|rule| rule.fits(fields, from)) {
            match rule.action {
                Action::Punt(reason) => return Verdict::Punt(reason),
                Action::Drop => return Verdict::Drop(Cause::Rule),
                Action::Permit => break,
                Action::Trace => is_traced = true,
            }
        }
        let Some(ip) = &fields.ip else {
            return self.look_up_frame(fields, is_traced);
        };
        if ip.hops_left <= 1 {
            return Verdict::Punt(Reason::NoHopsLeft);
        }
        // A TiN's own hash, so that the next choice of the same flow is another one (U17).
        let hash = ip.hash(u64::from(self.tin) + 1);
        let way = |to, by| {
            let flow_hash = (ip.hash(0) & 0xFFF) as u16;
            Verdict::Forward(Way { to, by, flow_hash, is_traced, is_encapsulated: false })
        };
        match self.routes.look_up(ip.destination, hash) {
            Found::Address(to) => way(to, By::Address),
            Found::Group(to) => way(to, By::Group),
            Found::Indexed(to) => way(to, By::Indexed),
            Found::Punt => Verdict::Punt(Reason::Routed),
            Found::Drop => Verdict::Drop(Cause::Routed),
            Found::Nothing => Verdict::Drop(Cause::NoRoute),
        }
    }

    /// What becomes of a frame without an IP packet.
    fn look_up_frame(&self, fields: &Fields, is_traced: bool) -> Verdict {
        if fields.ether_type == fields::ARP {
            return Verdict::Punt(Reason::WhoHas);
        }
        let there = self.plan.of_ethernet(fields.to).filter(|_| self.not_ip == NotIp::Encapsulate);
        match there {
            Some((tin, interface)) => Verdict::Forward(Way {
                to: self.plan.address(tin, interface.endpoint()),
                by: By::Ethernet,
                flow_hash: 0,
                is_traced,
                is_encapsulated: true,
            }),
            None => Verdict::Punt(Reason::NotIp),
        }
    }

    /// Counts a verdict, and drops punts for which the control processor has no time.
    fn admit(&mut self, now: Time, verdict: Verdict) -> Verdict {
        let verdict = match verdict {
            Verdict::Punt(_) if !self.police.takes(now) => Verdict::Drop(Cause::TooManyPunts),
            verdict => verdict,
        };
        self.counts.frames += 1;
        match verdict {
            Verdict::Forward(way) => self.counts.forwarded[way.by as usize] += 1,
            Verdict::Punt(reason) => self.counts.punted[reason as usize] += 1,
            Verdict::Drop(cause) => self.counts.dropped[cause as usize] += 1,
        }
        verdict
    }
}
