//! Cables between TiNs: within an agent, or to TiNs of others.
//!
//! A cable is lit while both its ends have power, that is while both agents run: they tell each other ten times a second
//! that they do. It then carries ordered sets, and cells a while later, as a link that comes up (M603).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use aquila::topology::Topology;
use aquila_control::firmware::chip::LinkState;
use aquila_control::pmos::Frame;
use kernel::{Span, Time};

use crate::cluster::Cluster;

/// How often agents say that they are there, and after how long in silence they are not (our choice).
pub const LIT: Span = Span::from_us(100_000);
const DARK: Span = Span::from_us(2_000_000);

/// All cables to one agent's TiNs.
#[derive(Clone, Copy, Debug)]
struct Bundle {
    /// Which life of it, and when it was heard last; none: it is dark.
    heard: Option<(u64, Time)>,
    since: Time,
    state: LinkState,
}

/// One direction of a cable, at its near end.
#[derive(Clone, Debug, Default)]
struct Wire {
    /// The frame on it, and when its last word will have gone.
    frame: Option<(Time, Frame)>,
    /// When the words of acknowledgements will have gone, which go between those of the frame.
    acks: Time,
}

/// What goes out of a port, and when its last word has gone.
type Leaving = Reverse<(Time, u16, u8, bool)>;

/// All cables of an agent.
#[derive(Debug)]
pub struct Cables {
    bundles: Vec<Bundle>,
    agent_of: Vec<u8>,
    wires: BTreeMap<(u16, u8), Wire>,
    acks: BTreeMap<(u16, u8), Vec<Frame>>,
    leaving: BinaryHeap<Leaving>,
    interval: Span,
    lock: Span,
    up: Span,
}

impl Cables {
    pub fn new(cluster: &Cluster, own: u8, agents: u8) -> Self {
        let tins = cluster.profile.shape().tins();
        let dark = Bundle { heard: None, since: Time::ZERO, state: LinkState::Down };
        let mut bundles = vec![dark; usize::from(agents)];
        bundles[usize::from(own)].heard = Some((0, Time::ZERO));
        Self {
            bundles,
            agent_of: (0..tins).map(|tin| cluster.agent_of(tin)).collect(),
            wires: BTreeMap::new(),
            acks: BTreeMap::new(),
            leaving: BinaryHeap::new(),
            interval: cluster.times.mos_interval,
            lock: cluster.times.lock,
            up: cluster.times.up,
        }
    }

    /// The agent at the other end of a TiN's port.
    pub fn agent_of(&self, tin: u16) -> u8 {
        self.agent_of[usize::from(tin)]
    }

    /// Another agent is there. True: its cables have been cut since it was heard last, as it lives anew.
    pub fn hear(&mut self, now: Time, agent: u8, life: u64) {
        let Some(bundle) = self.bundles.get_mut(usize::from(agent)) else { return };
        if bundle.heard.is_none_or(|(of, _)| of != life) {
            (bundle.since, bundle.state) = (now, LinkState::Down);
        }
        bundle.heard = Some((life, now));
    }

    /// How far the cable to a TiN is.
    pub fn state(&self, far: u16) -> LinkState {
        // Where nothing is heard the port goes on trying.
        self.bundles[usize::from(self.agent_of(far))].state.max(LinkState::Training)
    }

    /// Agents whose cables have got further, or are dark.
    pub fn on_time(&mut self, now: Time, own: u8) -> Vec<u8> {
        let (lock, up) = (self.lock, self.up);
        let mut changed = Vec::new();
        for (agent, bundle) in (0..).zip(&mut self.bundles) {
            let is_dark = |(_, at): (u64, Time)| agent != own && now - at >= DARK;
            bundle.heard = bundle.heard.filter(|&heard| !is_dark(heard));
            let state = match bundle.heard {
                None => LinkState::Training,
                Some(_) if now - bundle.since >= lock + up => LinkState::Up,
                Some(_) if now - bundle.since >= lock => LinkState::Locked,
                Some(_) => LinkState::Training,
            };
            if state != bundle.state {
                bundle.state = state;
                changed.push(agent);
            }
        }
        changed
    }

    /// What was on a wire is gone.
    pub fn clear(&mut self, tin: u16, port: u8) {
        self.wires.remove(&(tin, port));
        self.acks.remove(&(tin, port));
    }

    /// Whether a frame can go out of a port.
    pub fn is_free(&self, tin: u16, port: u8) -> bool {
        self.wires.get(&(tin, port)).is_none_or(|wire| wire.frame.is_none())
    }

    /// A frame goes out of a port, as so many words.
    pub fn put(&mut self, now: Time, tin: u16, port: u8, frame: Frame, words: usize) {
        let words = self.interval * words as u64;
        let wire = self.wires.entry((tin, port)).or_default();
        if frame.kind.is_data() {
            let gone = now.max(wire.acks) + words;
            wire.frame = Some((gone, frame));
            self.leaving.push(Reverse((gone, tin, port, true)));
        } else {
            // Its words go before what is left of the frame's.
            wire.acks = now.max(wire.acks) + words;
            if let Some((gone, _)) = &mut wire.frame {
                *gone += words;
            }
            self.leaving.push(Reverse((wire.acks, tin, port, false)));
            self.acks.entry((tin, port)).or_default().push(frame);
        }
    }

    /// The next frame whose last word has gone, and whether its port is free now.
    pub fn gone(&mut self, now: Time) -> Option<(u16, u8, Frame, bool)> {
        while let Some(&Reverse((at, tin, port, is_data))) = self.leaving.peek() {
            if at > now {
                return None;
            }
            self.leaving.pop();
            if !is_data {
                let acks = self.acks.get_mut(&(tin, port)).filter(|acks| !acks.is_empty());
                if let Some(acks) = acks {
                    return Some((tin, port, acks.remove(0), false));
                }
                continue;
            }
            let Some(wire) = self.wires.get_mut(&(tin, port)) else { continue };
            match wire.frame.take() {
                // Acknowledgements have gone between its words.
                Some((gone, frame)) if gone > now => {
                    wire.frame = Some((gone, frame));
                    self.leaving.push(Reverse((gone, tin, port, true)));
                }
                Some((_, frame)) => return Some((tin, port, frame, true)),
                None => {}
            }
        }
        None
    }

    /// When [`Cables::gone`] has something.
    pub fn deadline(&self) -> Option<Time> {
        self.leaving.peek().map(|Reverse((at, ..))| *at)
    }
}

/// The ports of a TiN whose cables lead to an agent's TiNs.
pub fn ports_to(cables: &Cables, topology: &Topology, tin: u16, agent: u8) -> Vec<(u8, u16)> {
    let ports = 0..topology.shape().external_ports();
    let far = |port| Some((port, topology.far(tin, port)?.tin));
    ports.filter_map(far).filter(|&(_, far)| cables.agent_of(far) == agent).collect()
}
