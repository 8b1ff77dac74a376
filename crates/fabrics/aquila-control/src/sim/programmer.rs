//! The least that can stand behind the seam: computes what all chips are to hold, and writes it.
//!
//! Models: Aquila §4.2, §4.3, §4.4 (M610, M811, M815, I82): tables by [`aquila::tables`] and [`expand`], of TiNs that are
//! ready, and for TiNs that are being programmed, through which nothing passes yet. It stands where the front end of
//! [`crate::apps`] does, and says and hears the same.
//!
//! **Our choice**: all changes of some seconds are worked out at once; what a chip holds is made sure of by digests
//! whenever a session begins.

use std::collections::VecDeque;

use aquila::address::{Address, Endpoint};
use aquila::pipeline::Interface;
use aquila::pipeline::plan::{Plan, Version};
use aquila::tables::compute::routes;
use aquila::tables::condition::State;
use aquila::tables::flows::{Flows, InputClass};
use aquila::tables::{Condition, Escape, components};
use aquila::topology::Topology;
use aquila::turns::TurnTable;
use ipnet::IpNet;

use super::path::set_flows;
use crate::apps::session::{Over, Progress, Request, Session};
use crate::expand::{Solution, difference, expand, owned};
use crate::registers::Register;
use crate::registers::file::{BLOCK_ENTRIES, RegisterFile};
use crate::registers::map::{INDEXED_MEMBER, INDEXED_SUBNET, IP_FLOW, ROUTE};
use crate::rpc::{Caller, Item, Outcome, pack};

/// What has to be programmed by PMOS before a TiN is called through the Clique.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Enough {
    /// All of its tables.
    #[default]
    Tables,
    /// Routes from its control processor, and how packets get to it: the rest goes over TCP (M811).
    Path,
}

/// What is done with a TiN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Task {
    /// Nothing: it holds what it is to hold.
    Rest,
    /// Digests were asked for.
    Compare,
    /// Blocks that differ are read.
    Read,
    /// Entries are written.
    Write,
}

/// A TiN, as the programmer knows it.
#[derive(Debug)]
struct Node {
    session: Option<Over>,
    boot: Option<u32>,
    /// Whether it has been ready, and may be passed through.
    is_ready: bool,
    links: u64,
    /// What it holds, as far as is known.
    believed: RegisterFile,
    /// What it is to hold.
    wanted: Option<RegisterFile>,
    caller: Caller,
    task: Task,
    queue: VecDeque<Vec<Item>>,
    /// The chip has not done what it was asked to: that is tried again with the next solution.
    is_refused: bool,
    /// The session manager knows that enough, or all, is written.
    is_told: bool,
}

/// The programmer.
#[derive(Debug)]
pub struct Programmer {
    topology: Topology,
    plan: Plan,
    connected: Vec<u16>,
    outside: IpNet,
    enough: Enough,
    nodes: Vec<Node>,
    /// By TiN: ready TiNs that have a way to it which passes ready TiNs alone, and are connected to the datacenter's network.
    exits: Vec<Vec<u16>>,
    /// Of the last solution.
    solved: Option<(Condition, Flows, Escape)>,
    /// Whether something has changed since.
    pub is_stale: bool,
    /// How often all tables were worked out.
    pub solutions: u64,
    /// Entries that were written.
    pub entries: u64,
}

/// What the programmer says.
#[derive(Debug, Default)]
pub struct Said {
    /// For the session manager.
    pub requests: Vec<Request>,
    /// The same.
    pub progress: Vec<Progress>,
}

fn registers() -> impl Iterator<Item = &'static Register> {
    owned().into_iter().chain([
        IP_FLOW.register(),
        INDEXED_SUBNET.register(),
        INDEXED_MEMBER.register(),
    ])
}

impl Programmer {
    /// A programmer of a Clique with these TiNs connected to the datacenter's network, for a controller in `outside`.
    #[must_use]
    pub fn new(topology: &Topology, connected: &[u16], outside: IpNet, enough: Enough) -> Self {
        let node = |_| Node {
            session: None,
            boot: None,
            is_ready: false,
            links: u64::MAX,
            believed: RegisterFile::new(),
            wanted: None,
            caller: Caller::new(),
            task: Task::Rest,
            queue: VecDeque::new(),
            is_refused: false,
            is_told: false,
        };
        Self {
            nodes: (0..topology.shape().tins()).map(node).collect(),
            plan: Plan::new(topology.shape(), 2),
            topology: topology.clone(),
            connected: connected.to_vec(),
            outside,
            enough,
            exits: vec![Vec::new(); usize::from(topology.shape().tins())],
            solved: None,
            is_stale: false,
            solutions: 0,
            entries: 0,
        }
    }

    /// The session manager has told something.
    pub fn hear(&mut self, session: Session, said: &mut Said) {
        match session {
            Session::Up { tin, over, boot } => {
                let node = self.node(tin);
                if node.boot.replace(boot).is_some_and(|before| before != boot) {
                    node.believed = RegisterFile::new();
                    node.is_ready = false;
                }
                (node.session, node.is_told, node.caller) = (Some(over), false, Caller::new());
                self.is_stale = true;
                self.compare(tin);
                self.send(tin, said);
            }
            Session::Down { tin } => {
                let node = self.node(tin);
                (node.session, node.task) = (None, Task::Rest);
                node.queue.clear();
                node.caller.end();
                self.is_stale = true;
            }
            Session::Answer { tin, bytes } => {
                let Ok(outcomes) = self.node(tin).caller.receive(&bytes) else { return };
                self.on_outcomes(tin, outcomes);
                self.send(tin, said);
            }
        }
    }

    /// All TiNs are ready, in cold starts of these numbers, and hold what they are to hold; that.
    pub fn presume(&mut self, boot: impl Fn(u16) -> u32) -> Vec<RegisterFile> {
        for (tin, node) in (0..).zip(&mut self.nodes) {
            (node.session, node.boot, node.is_ready) = (Some(Over::Tcp), Some(boot(tin)), true);
        }
        self.solve(&mut Said::default());
        let image = |node: &Node| node.wanted.clone().expect("it was worked out");
        let images = self.nodes.iter().map(image).collect();
        for tin in 0..self.topology.shape().tins() {
            self.hear(Session::Down { tin }, &mut Said::default());
        }
        images
    }

    /// The ports of a TiN that are up.
    pub fn set_links(&mut self, tin: u16, up: u64) {
        let node = self.node(tin);
        self.is_stale |= node.links != up;
        self.node(tin).links = up;
    }

    /// Whether a TiN may be passed through.
    pub fn set_ready(&mut self, tin: u16, is_ready: bool) {
        self.is_stale |= self.node(tin).is_ready != is_ready;
        self.node(tin).is_ready = is_ready;
    }

    /// In which cold start a TiN has been ready; `None`: it may not be passed through.
    #[must_use]
    pub fn ready_boot(&self, tin: u16) -> Option<u32> {
        let node = &self.nodes[usize::from(tin)];
        node.boot.filter(|_| node.is_ready)
    }

    /// Whether all that is wanted has been written, wherever there is a session.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !self.is_stale
            && self.nodes.iter().all(|node| node.session.is_none() || node.task == Task::Rest)
    }

    /// What a TiN is to hold.
    #[must_use]
    pub fn wanted(&self, tin: u16) -> Option<&RegisterFile> {
        self.nodes[usize::from(tin)].wanted.as_ref()
    }

    /// Ready TiNs, connected to the datacenter's network, that have a way to a TiN.
    #[must_use]
    pub fn exits(&self, tin: u16) -> &[u16] {
        &self.exits[usize::from(tin)]
    }

    fn node(&mut self, tin: u16) -> &mut Node {
        &mut self.nodes[usize::from(tin)]
    }

    /// Works out what all chips are to hold (I82: what is not ready is passed by nobody).
    pub fn solve(&mut self, said: &mut Said) {
        self.is_stale = false;
        self.solutions += 1;
        let mut condition = self.condition();
        self.part(&mut condition);
        let turns = TurnTable::P1;
        let flows = routes(&self.topology, &turns, &condition);
        let escape = Escape::compute(&self.topology, &condition);
        let before = self.solved.take();
        let topology = self.topology.clone();
        for tin in 0..topology.shape().tins() {
            let is_same = before.as_ref().is_some_and(|(old, old_flows, old_escape)| {
                same_condition(&topology, tin, old, &condition)
                    && same_flows(tin, old_flows, &flows)
                    && same_escape(&topology, tin, old_escape, &escape)
            });
            if self.nodes[usize::from(tin)].session.is_none() {
                continue;
            }
            if !is_same || self.node(tin).wanted.is_none() {
                let mut image = RegisterFile::new();
                let (topology, turns) = (&topology, &turns);
                let (condition, flows, escape) = (&condition, &flows, &escape);
                let solution = Solution { topology, turns, condition, flows, escape };
                expand(&solution, tin, &mut image);
                self.node(tin).wanted = Some(image);
            }
            self.set_ip(tin);
            if self.node(tin).task == Task::Rest {
                self.write(tin);
                self.send(tin, said);
            }
        }
        self.solved = Some((condition, flows, escape));
    }

    fn condition(&self) -> Condition {
        let mut condition = Condition::healthy(&self.topology);
        for (tin, node) in (0..).zip(&self.nodes) {
            let state = match (node.is_ready, node.session) {
                (true, _) => State::Live,
                (false, Some(_)) => State::Drained,
                (false, None) => State::Dead,
            };
            condition.set_tin(tin, state);
        }
        for (at, link) in (0..).zip(self.topology.links()) {
            let is_up = |end: aquila::topology::Far| {
                let node = &self.nodes[usize::from(end.tin)];
                node.session.is_none() || node.links >> end.port & 1 == 1
            };
            if !(is_up(link.low) && is_up(link.high)) {
                condition.set_link(at, State::Dead);
            }
        }
        condition
    }

    /// Sees to it that nothing passes a TiN that is not ready (I82). What is drained has ways of its own, and up*/down*
    /// routes would join through it what is ready in several parts, each of which has a way out of its own; so it keeps
    /// its links to one part alone, and none to others that are not ready.
    fn part(&mut self, condition: &mut Condition) {
        let tins = self.topology.shape().tins();
        let mut parts: Vec<Option<u16>> = vec![None; usize::from(tins)];
        let is_live = |condition: &Condition, tin: u16| condition.tin(tin) == State::Live;
        for first in (0..tins).filter(|&tin| is_live(condition, tin)) {
            let mut next = vec![first];
            while let Some(tin) = next.pop() {
                if parts[usize::from(tin)].is_none() {
                    parts[usize::from(tin)] = Some(first);
                    let fars = neighbours(&self.topology, condition, tin);
                    next.extend(fars.filter(|&far| is_live(condition, far)));
                }
            }
        }
        let exit_of = |part: u16, parts: &[Option<u16>]| -> Vec<u16> {
            let is_of = |&exit: &u16| parts[usize::from(exit)] == Some(part);
            self.connected.iter().copied().filter(is_of).collect()
        };
        for tin in 0..tins {
            if condition.tin(tin) != State::Drained {
                continue;
            }
            let fars =
                neighbours(&self.topology, condition, tin).filter(|&far| is_live(condition, far));
            let mut joined: Vec<u16> = fars.filter_map(|far| parts[usize::from(far)]).collect();
            joined.sort_unstable();
            // A part that has a way out, if there is one.
            let with_exit = joined.iter().copied().find(|&part| !exit_of(part, &parts).is_empty());
            let part = with_exit.or(joined.first().copied());
            for port in 0..self.topology.shape().external_ports() {
                let (Some(link), Some(far)) =
                    (self.topology.link(tin, port), self.topology.far(tin, port))
                else {
                    continue;
                };
                if !is_live(condition, far.tin) || parts[usize::from(far.tin)] != part {
                    condition.set_link(link, State::Dead);
                }
            }
            parts[usize::from(tin)] = part;
        }
        // What is drained was given a part, but is no exit for others.
        let live: Vec<Option<u16>> = (0..tins)
            .map(|tin| parts[usize::from(tin)].filter(|_| is_live(condition, tin)))
            .collect();
        let exits = |part: &Option<u16>| part.map(|part| exit_of(part, &live)).unwrap_or_default();
        self.exits = parts.iter().map(exits).collect();
    }

    /// Which way a TiN's packets to the controller leave: by itself, or by a ready TiN that can, one of its pod if there is.
    fn set_ip(&mut self, tin: u16) {
        let shape = *self.topology.shape();
        let exits = self.exits[usize::from(tin)].clone();
        let pod = |tin: u16| shape.split(tin).0;
        let mates: Vec<u16> = exits.iter().copied().filter(|&exit| pod(exit) == pod(tin)).collect();
        let among = if mates.is_empty() { &exits } else { &mates };
        let exit = match self.connected.contains(&tin) {
            true => Some(tin),
            false => among.get(usize::from(tin) % among.len().max(1)).copied(),
        };
        let address =
            |tin: u16, endpoint: Endpoint| -> Address { self.plan.address(tin, endpoint) };
        let members: Vec<Address> =
            (0..shape.tins()).map(|tin| address(tin, Endpoint::CONTROL_IP)).collect();
        let outside: Vec<_> = exit
            .map(|exit| (self.outside, address(exit, Endpoint::ETHERNET)))
            .into_iter()
            .collect();
        let subnet = self.plan.subnet(Interface::Control, Version::V4);
        let wanted = self.node(tin).wanted.as_mut().expect("it was worked out");
        set_flows(wanted, subnet, &members, &outside);
    }

    /// Asks what a chip holds, by digests (M610).
    fn compare(&mut self, tin: u16) {
        let digests = |register: &Register| Item::Digests {
            address: register.base,
            count: register.entries().div_ceil(BLOCK_ENTRIES) as u16,
        };
        let node = self.node(tin);
        node.task = Task::Compare;
        node.queue = pack(registers().map(digests)).into();
    }

    /// Writes what differs, in what is enough for now.
    fn write(&mut self, tin: u16) {
        let enough = self.enough;
        let port = u32::from(self.topology.shape().external_ports() + 16);
        let node = self.node(tin);
        let Some(wanted) = &node.wanted else { return };
        let registers: Vec<&Register> = registers().collect();
        let is_first = node.session == Some(Over::Pmos) && enough == Enough::Path;
        let items = if is_first {
            // Of the routes, those from the control processor's own port alone.
            let mut image = wanted.clone();
            image.reset(ROUTE.register());
            for at in 0..80 {
                image.set(ROUTE, [port, 0, at], wanted.get(ROUTE, [port, 0, at]));
            }
            difference(&node.believed, &image, &registers)
        } else {
            difference(&node.believed, wanted, &registers)
        };
        node.queue = pack(items).into();
        (node.task, node.is_refused) = (Task::Write, false);
    }

    fn on_outcomes(&mut self, tin: u16, outcomes: Vec<(Item, Outcome)>) {
        let mut written = 0;
        let node = &mut self.nodes[usize::from(tin)];
        for (item, outcome) in outcomes {
            match (item, outcome) {
                (Item::Write { address, entry }, Outcome::Written) => {
                    written += 1;
                    node.believed.write(address, &entry).expect("the chip has such an entry");
                }
                (Item::WriteBlock { address, size, bytes }, Outcome::Written) => {
                    written += bytes.len() as u64 / u64::from(size);
                    let done = node.believed.write_block(address, size.into(), &bytes);
                    done.expect("the chip has such entries");
                }
                (Item::ReadBlock { address, count }, Outcome::Entries(bytes)) => {
                    let size = bytes.len() / usize::from(count);
                    let done = node.believed.write_block(address, size, &bytes);
                    done.expect("the chip has such entries");
                }
                (Item::Digests { address, count }, Outcome::Digests(found)) => {
                    let expected = node.believed.digests(address, count.into());
                    let expected = expected.expect("the register has such blocks");
                    let differ =
                        (0..).zip(found.iter().zip(&expected)).filter(|(_, (a, b))| a != b);
                    let reads: Vec<Item> = differ.map(|(block, _)| read(address, block)).collect();
                    node.queue.extend(pack(reads));
                }
                _ => node.is_refused = true,
            }
        }
        self.entries += written;
    }

    /// Sends the next request, or goes on to the next task.
    fn send(&mut self, tin: u16, said: &mut Said) {
        loop {
            let enough = self.enough;
            let node = self.node(tin);
            if node.caller.under_way().is_some() || node.session.is_none() {
                return;
            }
            if let Some(items) = node.queue.pop_front() {
                let bytes = node.caller.send(items).expect("nothing is under way").to_vec();
                said.requests.push(Request { tin, bytes });
                return;
            }
            match node.task {
                Task::Rest => return,
                Task::Compare => node.task = Task::Read,
                Task::Read if node.wanted.is_none() => {
                    node.task = Task::Rest;
                    return;
                }
                Task::Read => self.write(tin),
                Task::Write => {
                    node.task = Task::Rest;
                    let wanted = node.wanted.as_ref().expect("it was written");
                    let is_whole = registers()
                        .all(|register| node.believed.differing(wanted, register).is_empty());
                    let is_path = node.session == Some(Over::Pmos) && enough == Enough::Path;
                    if !is_whole && !is_path && !node.is_refused {
                        // There is another solution meanwhile.
                        self.write(tin);
                        continue;
                    }
                    if !node.is_told && !node.is_refused {
                        node.is_told = true;
                        said.progress.push(match node.session {
                            Some(Over::Tcp) => Progress::Complete { tin },
                            _ => Progress::Enough { tin },
                        });
                    }
                    return;
                }
            }
        }
    }
}

/// Reads a block of a register.
fn read(address: u32, block: u32) -> Item {
    let (register, _) = crate::registers::find(address).expect("it was asked about");
    let register = &crate::registers::map::REGISTERS[register];
    let first = block * BLOCK_ENTRIES;
    let count = (register.entries() - first).min(BLOCK_ENTRIES) as u16;
    Item::ReadBlock { address: register.base + first * register.entry_bytes(), count }
}

/// TiNs to which a TiN has links that work.
fn neighbours(topology: &Topology, condition: &Condition, tin: u16) -> impl Iterator<Item = u16> {
    (0..topology.shape().external_ports()).filter_map(move |port| {
        let link = topology.link(tin, port)?;
        (condition.link(link) == State::Live).then(|| topology.far(tin, port).map(|far| far.tin))?
    })
}

fn same_flows(tin: u16, old: &Flows, new: &Flows) -> bool {
    InputClass::ALL.into_iter().all(|class| {
        class.channels().all(|rvc| {
            (0..components(new.shape()))
                .all(|at| old.get(tin, class, rvc, at) == new.get(tin, class, rvc, at))
        })
    })
}

fn same_escape(topology: &Topology, tin: u16, old: &Escape, new: &Escape) -> bool {
    let is_same = |to| {
        [false, true].into_iter().all(|down| old.port(tin, down, to) == new.port(tin, down, to))
    };
    let ports = 0..topology.shape().external_ports();
    let mut fars = ports.filter_map(|port| topology.far(tin, port));
    old.order(tin) == new.order(tin)
        && (0..topology.shape().tins()).all(is_same)
        && fars.all(|far| {
            old.has(far.tin) == new.has(far.tin)
                && old.is_down(tin, far.tin) == new.is_down(tin, far.tin)
        })
}

/// Whether the TiN, its links and its neighbours are as they were.
fn same_condition(topology: &Topology, tin: u16, old: &Condition, new: &Condition) -> bool {
    old.tin(tin) == new.tin(tin)
        && (0..topology.shape().external_ports()).all(|port| {
            let (Some(link), Some(far)) = (topology.link(tin, port), topology.far(tin, port))
            else {
                return true;
            };
            old.link(link) == new.link(link) && old.tin(far.tin) == new.tin(far.tin)
        })
}
