//! Rules that stand before routes: an access list (M402, M808, M903).

use ipnet::IpNet;

use super::fields::Fields;
use super::plan::Plan;
use super::{Interface, Reason};

/// What a rule does with what it fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// To the control processor.
    Punt(Reason),
    /// Nowhere.
    Drop,
    /// No rule behind it counts.
    Permit,
    /// Its cells are traced; the rules behind it count.
    Trace,
}

/// A rule: what it does not say fits anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The interface that it came by.
    pub from: Option<Interface>,
    /// The type in Ethernet's header.
    pub ether_type: Option<u16>,
    /// A prefix of its source.
    pub source: Option<IpNet>,
    /// A prefix of its destination.
    pub destination: Option<IpNet>,
    /// The number of what is in the IP packet.
    pub protocol: Option<u8>,
    /// The port that it is for: of the first fragment, or of what is whole.
    pub to_port: Option<u16>,
    /// What is done.
    pub action: Action,
}

impl Rule {
    /// One that fits everything.
    #[must_use]
    pub const fn new(action: Action) -> Self {
        Self {
            from: None,
            ether_type: None,
            source: None,
            destination: None,
            protocol: None,
            to_port: None,
            action,
        }
    }

    /// Whether it fits.
    #[must_use]
    pub fn fits(&self, fields: &Fields, from: Interface) -> bool {
        let ip = fields.ip.as_ref();
        let fits = |wanted: Option<bool>| wanted != Some(false);
        let of_ip = |is_asked: bool, found: Option<bool>| !is_asked || found == Some(true);
        fits(self.from.map(|wanted| wanted == from))
            && fits(self.ether_type.map(|wanted| wanted == fields.ether_type))
            && of_ip(
                self.source.is_some(),
                self.source.zip(ip).map(|(net, ip)| net.contains(&ip.source)),
            )
            && of_ip(
                self.destination.is_some(),
                self.destination.zip(ip).map(|(net, ip)| net.contains(&ip.destination)),
            )
            && of_ip(self.protocol.is_some(), ip.map(|ip| Some(ip.protocol) == self.protocol))
            && of_ip(
                self.to_port.is_some(),
                ip.and_then(|ip| ip.ports).map(|(_, to)| Some(to) == self.to_port),
            )
    }
}

/// What is for the control processor of a TiN, or for hosts' gateway, is trapped, whatever routes say: the firmware installs
/// this as soon as it knows its address, so that the controller can reach it before there are any routes (M808).
#[must_use]
pub fn trap(plan: &Plan, tin: u16) -> Vec<Rule> {
    let own = Plan::VERSIONS.map(|version| plan.ip(tin, Interface::Control, version));
    let gateways = [super::plan::GATEWAY_V4.into(), super::plan::GATEWAY_V6.into()];
    let to = |address: std::net::IpAddr| Rule {
        destination: Some(address.into()),
        ..Rule::new(Action::Punt(Reason::Trapped))
    };
    let asks = Rule {
        destination: Some(super::control::SOLICITED),
        protocol: Some(super::fields::ICMP_V6),
        ..Rule::new(Action::Punt(Reason::WhoHas))
    };
    own.into_iter().chain(gateways).map(to).chain([asks]).collect()
}
