//! What is outside the Clique: the datacenter's network, with its DHCP server, and the four shards of the inter-block
//! routing controllers (M704, M803).

use std::net::{IpAddr, Ipv4Addr};

use aquila::pipeline::Interface;
use aquila::pipeline::plan::Plan;
use aquila_control::apps::inter_block::{Message, SHARDS};
use aquila_control::dhcp;
use ipnet::{IpNet, Ipv4Net};
use kernel::{Span, Time};

use super::{Event, Part, add, life};
use crate::cluster::{Cluster, Role};
use crate::links::Links;
use crate::proto::control::message::What;
use crate::proto::control::{Dhcp, Looked};

/// Of the DHCP server, and of the spine's switches (our choice).
const SERVER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const SPINE: Ipv4Addr = Ipv4Addr::new(172, 16, 1, 1);
/// What is reached outside: the controllers' subnet (our choice).
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 0);
const OUTSIDE_LENGTH: u8 = 24;
/// How often a shard says that it is there (our choice; what it has said stands for 30 s).
const ALIVE: Span = Span::from_us(1_000_000);

/// The address of a front end: each instance has its own, so that what is said to one does not end the other's sessions.
#[must_use]
pub fn controller(instance: u8) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(OUTSIDE) + 1 + 16 * u32::from(instance))
}

/// What is reached outside.
///
/// # Panics
/// Never: it is a prefix.
#[must_use]
pub fn outside() -> IpNet {
    IpNet::V4(Ipv4Net::new(OUTSIDE, OUTSIDE_LENGTH).expect("the length is one"))
}

/// The front end that has an address.
#[must_use]
pub fn instance_of(address: Ipv4Addr, count: u8) -> Option<u8> {
    (0..count).find(|&instance| controller(instance) == address)
}

/// What is outside.
pub struct Datacenter {
    plan: Plan,
    cluster: Cluster,
    server: dhcp::Server,
    speaks: Time,
    version: u64,
    said: u64,
    told: u64,
    malformed: u64,
}

impl Datacenter {
    pub fn new(cluster: &Cluster) -> Self {
        let plan = Plan::new(&cluster.profile.shape(), 2);
        Self {
            plan,
            cluster: cluster.clone(),
            server: dhcp::Server::for_ever(&plan, SERVER),
            speaks: Time::ZERO,
            // What is said in this life is later than what was said in others.
            version: life(),
            said: 0,
            told: 0,
            malformed: 0,
        }
    }

    fn on_dhcp(&mut self, asked: Dhcp, links: &mut Links) {
        let Dhcp { tin, instance, bytes } = asked;
        let message = match tin {
            // A switch of the spine relays what comes from a TiN.
            Some(_) => dhcp::relay(SPINE, &bytes).ok(),
            None => Some(bytes),
        };
        let answer = message.and_then(|message| self.server.receive(&message));
        let Some(answer) = answer else {
            self.malformed += 1;
            return;
        };
        let known =
            tin.map(|tin| u16::try_from(tin).ok().filter(|&t| t < self.plan.shape().tins()));
        match known {
            Some(None) => self.malformed += 1,
            Some(Some(tin)) => {
                let ethernet = self.plan.ethernet(tin, Interface::Control);
                let bytes = dhcp::to_client(SPINE, ethernet, &answer);
                let to = (Role::Agent, self.cluster.agent_of(tin));
                links.send(to, What::Dhcp(Dhcp { tin: Some(tin.into()), instance, bytes }));
            }
            None => {
                let Ok(to) = u8::try_from(instance) else { return };
                let bytes = answer;
                links.send((Role::FrontEnd, to), What::Dhcp(Dhcp { tin: None, instance, bytes }));
            }
        }
    }
}

impl Part for Datacenter {
    fn on_event(&mut self, _: Time, event: Event, links: &mut Links) {
        match event {
            Event::Message(What::Dhcp(asked)) => self.on_dhcp(asked, links),
            Event::Message(What::Tell(_)) => self.told += 1,
            Event::Message(_) => self.malformed += 1,
            _ => {}
        }
    }

    fn on_time(&mut self, now: Time, links: &mut Links) {
        if now < self.speaks {
            return;
        }
        self.speaks = now + ALIVE;
        let members: Vec<_> = self.cluster.connected.iter().map(|&tin| (tin, 1)).collect();
        for shard in 0..SHARDS {
            let (prefix, members, version) = (outside(), members.clone(), self.version);
            let reach = Message::Reach { shard, version, prefix, members };
            for message in [Message::Alive { shard }, reach] {
                for instance in 0..self.cluster.count(Role::InterBlock) {
                    self.said += 1;
                    links.send((Role::InterBlock, instance), What::Hear(message.encode()));
                }
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        Some(self.speaks)
    }

    fn look(&self, looked: &mut Looked) {
        let dhcp::Counts { malformed, unknown, others, answers } = self.server.counts;
        for (name, value) in ["dhcp_offers", "dhcp_acks", "dhcp_naks"].into_iter().zip(answers) {
            add(looked, name, value);
        }
        add(looked, "dhcp_unknown", unknown + others);
        add(looked, "malformed", malformed + self.malformed);
        add(looked, "shards_said", self.said);
        add(looked, "shards_told", self.told);
    }
}

/// The address at a place of a packet of IPv4.
pub fn address_at(packet: &[u8], at: usize) -> Option<IpAddr> {
    let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
    Some(IpAddr::V4(bytes.into()))
}
