//! What is outside the Clique: the datacenter's network, with its DHCP server, and the four shards of the inter-block
//! routing controllers (M704, M803).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aquila::pipeline::Interface;
use aquila::pipeline::plan::Plan;
use aquila_control::apps::inter_block::{Message, SHARDS};
use aquila_control::dhcp;
use aquila_control::session::{Addresses, Versions};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use kernel::{Span, Time};

use super::{Event, Part, add, life};
use crate::cluster::{Cluster, Role};
use crate::links::Links;
use crate::proto::control::message::What;
use crate::proto::control::{Dhcp, Looked};

/// Of the DHCP server, and of the spine's switches (our choice).
const SERVER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const SPINE: Ipv4Addr = Ipv4Addr::new(172, 16, 1, 1);
/// What is reached outside: the controllers' subnets (our choice).
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 0);
const OUTSIDE_LENGTH: u8 = 24;
const OUTSIDE_V6: Ipv6Addr = Ipv6Addr::new(0xfd48, 0, 0, 0, 0, 0, 0, 0);
const OUTSIDE_V6_LENGTH: u8 = 64;
/// How often a shard says that it is there (our choice; what it has said stands for 30 s).
const ALIVE: Span = Span::from_us(1_000_000);

/// The addresses of a front end: each instance has its own, so that what is said to one does not end the other's sessions.
#[must_use]
pub fn controller(instance: u8) -> Addresses {
    let place = 1 + 16 * u32::from(instance);
    let v6 = Ipv6Addr::from(u128::from(OUTSIDE_V6) + u128::from(place));
    Addresses { v4: Ipv4Addr::from(u32::from(OUTSIDE) + place), v6: Some(v6) }
}

/// What is reached outside.
///
/// # Panics
/// Never: they are prefixes.
pub fn outside(versions: Versions) -> impl Iterator<Item = IpNet> {
    let v4 = IpNet::V4(Ipv4Net::new_assert(OUTSIDE, OUTSIDE_LENGTH));
    let v6 = IpNet::V6(Ipv6Net::new_assert(OUTSIDE_V6, OUTSIDE_V6_LENGTH));
    [v4].into_iter().chain(versions.has_v6().then_some(v6))
}

/// The front end that has an address.
#[must_use]
pub fn instance_of(address: IpAddr, count: u8) -> Option<u8> {
    (0..count).find(|&instance| controller(instance).contains(address))
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
            server: dhcp::Server::for_ever(&plan, SERVER).telling_v6(cluster.versions.has_v6()),
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
            let version = self.version;
            let reach = outside(self.cluster.versions).map(|prefix| {
                let members = members.clone();
                Message::Reach { shard, version, prefix, members }
            });
            for message in [Message::Alive { shard }].into_iter().chain(reach) {
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
