//! From a Clique's links and what of them works to its routing tables: a plain function.
//!
//! Models: Aquila §3.2, §4.2 (M303 to M306, M308, M315 to M318, M724, M725). Computes flows by class of input
//! port and then, as the controller's front end does, the table of each port from them.
//!
//! To another pod: a TiN's own global ports that lead there; else the local ports to TiNs that have one. Other
//! ways are global ports to other pods, from channel 0 only, and, where cells are injected, local ports to
//! other TiNs; so a cell makes at most two hops inside a pod, and two between pods, at most eight in all.
//! Inside a pod: the links to the TiN; other ways are TiNs from which the second hop is a legal turn.
//!
//! With failures the same holds of what is left: an output is offered only if the TiN behind it can send on
//! by an output that is offered there. Where no shortest way of the healthy Clique is left, the shortest
//! that is stands in its place. Where a pod has no way at all its cells need an escape channel.

use super::condition::State;
use super::flows::{Flow, Flows, InputClass};
use super::slots::{Slots, ports};
use super::{Builder, Condition, Escape, Tables, components};
use crate::topology::{PortKind, Shape, Topology};
use crate::turns::{HopType, TurnTable};

/// The tables of all switches.
#[must_use]
pub fn compute(topology: &Topology, turns: &TurnTable, condition: &Condition) -> Tables {
    let flows = routes(topology, turns, condition);
    expand(topology, condition, &flows)
}

/// The tables of all switches from flows by class: what a class has, without what leads back to where a
/// port's cells come from (M725), in slots.
#[must_use]
pub fn expand(topology: &Topology, condition: &Condition, flows: &Flows) -> Tables {
    let shape = topology.shape();
    let mut builder = Builder::new(shape, Escape::compute(topology, condition));
    for tin in (0..shape.tins()).filter(|&tin| condition.tin(tin) != State::Dead) {
        let slots = Slots::of(topology, tin);
        for (class, back, ports) in alike(shape, |port| input(topology, condition, tin, port)) {
            for rvc in class.channels() {
                let flow = |component| flows.get(tin, class, rvc, component).without(back);
                let block = (0..components(shape))
                    .map(|component| builder.row(slots.row(flow(component), component)))
                    .collect();
                let block = builder.block(block);
                for &port in &ports {
                    builder.install(tin, port, rvc, block);
                }
            }
        }
    }
    builder.build()
}

/// Input ports that have the same tables, with their class and what leads back from them, by the first of them: all
/// terminal ones, and those that lead to the same TiN. What `of` knows nothing of is left out.
#[must_use]
pub fn alike(
    shape: &Shape,
    of: impl Fn(u8) -> Option<(InputClass, u64)>,
) -> Vec<(InputClass, u64, Vec<u8>)> {
    let mut alike: Vec<(InputClass, u64, Vec<u8>)> = Vec::new();
    for port in 0..shape.ports() {
        let Some(input) = of(port) else { continue };
        match alike.iter_mut().find(|(class, back, _)| (*class, *back) == input) {
            Some((.., ports)) => ports.push(port),
            None => alike.push((input.0, input.1, vec![port])),
        }
    }
    alike
}

/// The class of an input port and the ports that lead back to where its cells come from; `None`: none come.
#[must_use]
pub fn input(
    topology: &Topology,
    condition: &Condition,
    tin: u16,
    port: u8,
) -> Option<(InputClass, u64)> {
    let kind = topology.kind(port);
    if kind == PortKind::Terminal {
        return Some((InputClass::Terminal, 0));
    }
    let far = live(topology, condition, tin, port)?;
    let place = |tin: u16| topology.shape().split(tin).1;
    let class = match kind {
        PortKind::Local => InputClass::Local(HopType::of(place(far), place(tin))),
        _ => InputClass::Global,
    };
    Some((class, toward(topology, tin, far)))
}

/// What a link leads to, if both it and that TiN are not dead.
fn live(topology: &Topology, condition: &Condition, tin: u16, port: u8) -> Option<u16> {
    let (link, far) = (topology.link(tin, port)?, topology.far(tin, port)?);
    let is_dead = condition.link(link) == State::Dead || condition.tin(far.tin) == State::Dead;
    (!is_dead).then_some(far.tin)
}

/// The ports of a TiN that lead to another, dead or not.
fn toward(topology: &Topology, tin: u16, to: u16) -> u64 {
    let ports = 0..topology.shape().external_ports();
    let ports = ports.filter(|&port| topology.far(tin, port).is_some_and(|far| far.tin == to));
    ports.fold(0, |mask, port| mask | 1 << port)
}

/// The flows of all switches.
#[must_use]
pub fn routes(topology: &Topology, turns: &TurnTable, condition: &Condition) -> Flows {
    let known = Known::new(topology, turns, condition);
    let mut flows = Flows::new(topology.shape());
    let all = vec![true; usize::from(topology.shape().pods)];
    known.recompute(&mut flows, &all);
    flows
}

/// Makes the flows of one condition those of another, and computes only what a change can reach (M729): the pods at the
/// ends of what has changed, and pods whose cells took a detour over these, if there is none any more or again. The
/// pods whose flows may have changed.
pub fn update(
    flows: &mut Flows,
    topology: &Topology,
    turns: &TurnTable,
    before: &Condition,
    after: &Condition,
) -> Vec<bool> {
    let shape = topology.shape();
    let mut pods = vec![false; usize::from(shape.pods)];
    let mut mark = |tin: u16| pods[usize::from(shape.split(tin).0)] = true;
    for tin in (0..shape.tins()).filter(|&tin| before.tin(tin) != after.tin(tin)) {
        mark(tin);
        let far = |port| topology.far(tin, port).map(|far| far.tin);
        (0..shape.external_ports()).filter_map(far).for_each(&mut mark);
        if after.tin(tin) == State::Dead {
            flows.clear(tin);
        }
    }
    for (index, link) in (0..).zip(topology.links()) {
        if before.link(index) != after.link(index) {
            mark(link.low.tin);
            mark(link.high.tin);
        }
    }
    Known::new(topology, turns, after).recompute(flows, &pods)
}

/// What routes are made of.
struct Known<'a> {
    topology: &'a Topology,
    turns: &'a TurnTable,
    condition: &'a Condition,
    shape: &'a Shape,
    /// By TiN and pod: global ports that lead there and may be passed through.
    direct: Vec<u64>,
    /// By TiN and place in its pod: local ports that lead there and live.
    local: Vec<u64>,
    /// By pod and pod: places with a direct port that may be passed through.
    gateways: Vec<u16>,
}

impl<'a> Known<'a> {
    fn new(topology: &'a Topology, turns: &'a TurnTable, condition: &'a Condition) -> Self {
        let shape = topology.shape();
        let (tins, pods) = (usize::from(shape.tins()), usize::from(shape.pods));
        let mut known = Self {
            topology,
            turns,
            condition,
            shape,
            direct: vec![0; tins * pods],
            local: vec![0; tins * usize::from(shape.tins_per_pod)],
            gateways: vec![0; pods * pods],
        };
        for tin in 0..shape.tins() {
            for port in 0..shape.external_ports() {
                let Some(far) = live(topology, condition, tin, port) else { continue };
                let link = topology.link(tin, port).expect("it lives");
                if condition.tin(tin) == State::Dead || condition.link(link) != State::Live {
                    continue;
                }
                let (pod, place) = shape.split(far);
                if topology.kind(port) == PortKind::Local {
                    let at =
                        usize::from(tin) * usize::from(shape.tins_per_pod) + usize::from(place);
                    known.local[at] |= 1 << port;
                } else if condition.tin(far) == State::Live {
                    known.direct[usize::from(tin) * pods + usize::from(pod)] |= 1 << port;
                    if condition.tin(tin) == State::Live {
                        let (own, place) = shape.split(tin);
                        known.gateways[usize::from(own) * pods + usize::from(pod)] |= 1 << place;
                    }
                }
            }
        }
        known
    }

    /// Computes the flows of the TiNs of some pods; the pods of all that may have changed.
    fn recompute(&self, flows: &mut Flows, pods: &[bool]) -> Vec<bool> {
        let shape = self.shape;
        let lives = |tin: &u16| self.condition.tin(*tin) != State::Dead;
        let of = |pods: &[bool], to: u16| -> Vec<u16> {
            let pods = (0..shape.pods).filter(|&pod| pod != to && pods[usize::from(pod)]);
            let tins = |pod| (0..shape.tins_per_pod).map(move |place| shape.tin(pod, place));
            pods.flat_map(tins).filter(lives).collect()
        };
        let mut reached = pods.to_vec();
        for pod in 0..shape.pods {
            let near = of(pods, pod);
            // Whether a detour over a TiN is one.
            let leads =
                |flows: &Flows, tin| flows.get(tin, InputClass::Global, 0, pod).minimal != 0;
            let led: Vec<bool> = near.iter().map(|&tin| leads(flows, tin)).collect();
            self.second_pod(flows, pod, near.iter().copied());
            let mut further = pods.to_vec();
            let changed = near.iter().zip(led).filter(|&(&tin, led)| leads(flows, tin) != led);
            for (&tin, _) in changed {
                for port in shape.local_ports..shape.external_ports() {
                    let Some(far) = self.topology.far(tin, port) else { continue };
                    further[usize::from(shape.split(far.tin).0)] = true;
                }
            }
            let tins = of(&further, pod);
            for &tin in &tins {
                let detours = self.detours(flows, tin, pod);
                for hop in HopType::ALL {
                    let flow = self.on_the_way(tin, hop, pod, detours);
                    flows.set(tin, InputClass::Local(hop), 0, pod, flow);
                }
            }
            for &tin in &tins {
                let flow = self.injected(flows, tin, pod);
                flows.set(tin, InputClass::Terminal, 0, pod, flow);
            }
            reached.iter_mut().zip(further).for_each(|(reached, further)| *reached |= further);
        }
        for tin in (0..shape.tins()).filter(lives) {
            let (pod, own) = shape.split(tin);
            if !pods[usize::from(pod)] {
                continue;
            }
            for to in (0..shape.tins_per_pod).filter(|&to| to != own) {
                for class in InputClass::ALL {
                    let flow = self.inside(tin, class, to);
                    for rvc in class.channels() {
                        flows.set(tin, class, rvc, shape.pods + to, flow);
                    }
                }
            }
        }
        reached
    }

    /// Global ports of a TiN that lead to a pod.
    fn direct(&self, tin: u16, pod: u16) -> u64 {
        self.direct[usize::from(tin) * usize::from(self.shape.pods) + usize::from(pod)]
    }

    /// Local ports of a TiN that lead to a place of its pod.
    fn local(&self, tin: u16, place: u16) -> u64 {
        self.local[usize::from(tin) * usize::from(self.shape.tins_per_pod) + usize::from(place)]
    }

    /// Places of a TiN's pod that cells may pass through, without itself.
    fn passable(&self, tin: u16) -> impl Iterator<Item = u16> {
        let (pod, own) = self.shape.split(tin);
        let places = (0..self.shape.tins_per_pod).filter(move |&place| place != own);
        places.filter(move |&p| self.condition.tin(self.shape.tin(pod, p)) == State::Live)
    }

    /// Local ports to places of which `wanted` is true, after a hop of type `from`, if there was one.
    fn locals(&self, tin: u16, from: Option<HopType>, wanted: impl Fn(u16) -> bool) -> u64 {
        let own = self.shape.split(tin).1;
        let may =
            |place: u16| from.is_none_or(|from| self.turns.allows(from, HopType::of(own, place)));
        let places = self.passable(tin).filter(|&place| may(place) && wanted(place));
        places.fold(0, |mask, place| mask | self.local(tin, place))
    }

    /// Local ports to the TiNs of a pod that have a direct port to another.
    fn to_gateways(&self, tin: u16, from: Option<HopType>, pod: u16) -> u64 {
        let own = usize::from(self.shape.split(tin).0) * usize::from(self.shape.pods);
        let gateways = self.gateways[own + usize::from(pod)];
        self.locals(tin, from, |place| gateways >> place & 1 != 0)
    }

    /// Local ports to places that can go on to `pod` if the cell comes there on channel `rvc`, as `flows` has
    /// it so far: on shortest ways alone, or on any.
    fn to_passable(&self, flows: &Flows, tin: u16, rvc: u8, pod: u16, by: Ways) -> u64 {
        let (own_pod, own) = self.shape.split(tin);
        self.locals(tin, None, |place| {
            let next = self.shape.tin(own_pod, place);
            let class = InputClass::Local(HopType::of(own, place));
            let onward = flows.get(next, class, rvc, pod).without(self.local(next, own));
            match by {
                Ways::Shortest => onward.minimal != 0,
                Ways::Any => onward.all() != 0,
            }
        })
    }

    /// On channel 1, after the first hop between pods: to `pod` by the shortest way (M304).
    fn second_pod(&self, flows: &mut Flows, pod: u16, tins: impl Iterator<Item = u16> + Clone) {
        let shortest = |tin: u16, from: Option<HopType>| match self.direct(tin, pod) {
            0 => self.to_gateways(tin, from, pod),
            direct => direct,
        };
        for tin in tins.clone() {
            for hop in HopType::ALL {
                let flow = Flow { minimal: shortest(tin, Some(hop)), others: 0 };
                flows.set(tin, InputClass::Local(hop), 1, pod, flow);
            }
        }
        for tin in tins {
            let minimal = match shortest(tin, None) {
                0 => self.to_passable(flows, tin, 1, pod, Ways::Shortest),
                shortest => shortest,
            };
            flows.set(tin, InputClass::Global, 0, pod, Flow { minimal, others: 0 });
        }
    }

    /// Global ports to other pods from which the cell can go on to `pod`.
    fn detours(&self, flows: &Flows, tin: u16, pod: u16) -> u64 {
        let own = self.shape.split(tin).0;
        let pods = (0..self.shape.pods).filter(|&by| by != pod && by != own);
        let outputs = pods.flat_map(|by| ports(self.direct(tin, by)));
        let goes_on = |&port: &u8| {
            let far = self.topology.far(tin, port).expect("the port is wired");
            flows.get(far.tin, InputClass::Global, 0, pod).minimal != 0
        };
        outputs.filter(goes_on).fold(0, |mask, port| mask | 1 << port)
    }

    /// On channel 0 after a hop inside the source pod.
    fn on_the_way(&self, tin: u16, hop: HopType, pod: u16, detours: u64) -> Flow {
        let minimal = match self.direct(tin, pod) {
            0 => self.to_gateways(tin, Some(hop), pod),
            direct => direct,
        };
        if minimal != 0 {
            return Flow { minimal, others: detours & !minimal };
        }
        // No direct way is left: over another pod.
        Flow { minimal: detours, others: 0 }
    }

    /// Where a cell is injected.
    fn injected(&self, flows: &Flows, tin: u16, pod: u16) -> Flow {
        let detours = self.detours(flows, tin, pod);
        let by = |ways| self.to_passable(flows, tin, 0, pod, ways);
        let direct = self.direct(tin, pod);
        let minimal = match (direct, self.to_gateways(tin, None, pod), detours) {
            (0, 0, 0) => by(Ways::Shortest),
            (0, 0, detours) => detours,
            (0, gateways, _) => gateways,
            (direct, _, _) => direct,
        };
        let others = (detours | by(Ways::Any)) & !minimal;
        Flow { minimal, others }
    }

    /// To another place of the own pod (M316, M317).
    fn inside(&self, tin: u16, class: InputClass, to: u16) -> Flow {
        let (pod, own) = self.shape.split(tin);
        let direct = match self.condition.tin(self.shape.tin(pod, to)) {
            State::Dead => return Flow::default(),
            _ => self.local(tin, to),
        };
        if let InputClass::Local(hop) = class {
            let may = self.turns.allows(hop, HopType::of(own, to));
            return Flow { minimal: if may { direct } else { 0 }, others: 0 };
        }
        let detours = self.locals(tin, None, |by| {
            let goes_on = self.local(self.shape.tin(pod, by), to) != 0;
            by != to && goes_on && self.turns.allows(HopType::of(own, by), HopType::of(by, to))
        });
        match direct {
            0 => Flow { minimal: detours, others: 0 },
            _ => Flow { minimal: direct, others: detours },
        }
    }
}

/// By which ways a TiN must be able to go on.
#[derive(Clone, Copy)]
enum Ways {
    Shortest,
    Any,
}
