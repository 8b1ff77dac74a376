//! What fails in a run, as the engine knows it: links and TiNs.
//!
//! Models: Aquila App. A.1 (M922): modules, cables, bundles, line cards, chassis and racks take with them what is in
//! them or runs through them.

use std::collections::BTreeMap;

use ::rack::{Component, Fault, Group, Problem};
use kernel::{Span, Time};

use super::graph;
use crate::config::{Plan, SENDS_ONCE};
use crate::topology::packaging::{Packaging, Part};

/// The least time for which a link or a TiN is out (our choice: what was on a link when it went down is over by
/// then; links are trained anew in far more).
const OUTAGE_MIN: Span = Span::from_us(2);

impl Plan {
    /// The plan of a run in which `faults` happen.
    ///
    /// # Errors
    /// Each of them that cannot, and why: its key is the fault's index.
    pub fn with_faults(self, faults: &[Fault]) -> Result<Self, Vec<Problem>> {
        if faults.is_empty() {
            return Ok(Self { faults: Vec::new(), ..self });
        }
        if !self.config.transport.table().recovers() {
            Fault::refuse_all(faults, &format!("would fail, but {SENDS_ONCE}"))?;
        }
        let graph = graph(&self);
        let names = Names::new(&self);
        let (mut all, mut problems) = (Vec::new(), Vec::new());
        for (index, fault) in faults.iter().enumerate() {
            let mut wrong = |problem: Problem| problems.push(problem.below(&index.to_string()));
            let components = match fault.component {
                Component::Group(group, number) => names.expand(group, number),
                component => graph.parts(component).map(|_| vec![component]),
            };
            let is_host = matches!(fault.component, Component::Node(_) | Component::NodeLink(_));
            let is_short = fault.until.is_some_and(|until| until < fault.at + OUTAGE_MIN);
            if is_short && !is_host {
                let message = format!(
                    "{} is to be back after less than {OUTAGE_MIN}; expected more: links are trained anew",
                    fault.component
                );
                wrong(Problem::new("until", message));
            }
            match components {
                Ok(components) => {
                    let of = |component| Fault { component, ..*fault };
                    all.extend(components.into_iter().map(of));
                }
                Err(problem) => wrong(problem),
            }
        }
        if problems.is_empty() { Ok(Self { faults: all, ..self }) } else { Err(problems) }
    }
}

/// A part of a Clique that its control plane knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hardware {
    /// A link between TiNs, by its index.
    Link(u32),
    /// A TiN.
    Tin(u16),
}

impl Plan {
    /// The plan of a run in which a part of the equipment fails for good.
    #[must_use]
    pub fn failing(self, part: Part, at: Time) -> Self {
        let components = Names::new(&self).of(part).into_iter();
        let faults = components.map(|component| Fault { component, at, until: None }).collect();
        Self { faults, ..self }
    }

    /// What goes down and comes back in a run of links between TiNs and TiNs, by time: when, what, whether it works from
    /// then on. What several faults take out works when the last of them is over.
    #[must_use]
    pub fn outages(&self) -> Vec<(Time, Hardware, bool)> {
        let links = Names::new(self).links;
        let index: BTreeMap<(u32, u32, u32), u32> = (0..)
            .zip(links)
            .filter_map(|(index, link)| match link {
                Component::Link { a, b, link } => Some(((a.min(b), a.max(b), link), index)),
                _ => None,
            })
            .collect();
        let part = |component: Component| match component {
            Component::Switch(tin) | Component::Leaf(tin) => Some(Hardware::Tin(tin as u16)),
            Component::Link { a, b, link } => {
                index.get(&(a.min(b), a.max(b), link)).map(|&index| Hardware::Link(index))
            }
            _ => None,
        };
        // What comes back at an instant does so before what goes down then.
        let mut changes = Vec::new();
        for fault in &self.faults {
            let Some(part) = part(fault.component) else { continue };
            changes.push((fault.at, false, part));
            changes.extend(fault.until.map(|until| (until, true, part)));
        }
        changes.sort_by_key(|&(time, works, part)| (time, !works, part));
        let mut down: BTreeMap<Hardware, u32> = BTreeMap::new();
        let mut outages = Vec::new();
        for (time, works, part) in changes {
            let count = down.entry(part).or_insert(0);
            *count = if works { *count - 1 } else { *count + 1 };
            match (works, *count) {
                (true, 0) => outages.push((time, part, true)),
                (false, 1) => outages.push((time, part, false)),
                _ => {}
            }
        }
        outages
    }
}

/// Equipment by the names that the engine's graph has for what is in it.
struct Names {
    packaging: Packaging,
    /// By link: as the graph names it.
    links: Vec<Component>,
    parts: Vec<Part>,
}

impl Names {
    fn new(plan: &Plan) -> Self {
        let mut copies = BTreeMap::new();
        let links = plan.topology.links().iter().map(|link| {
            let [a, b] = [link.low, link.high].map(|end| plan.nodes() + u32::from(end.tin));
            let copy = copies.entry((a, b)).or_insert(0);
            *copy += 1;
            Component::Link { a, b, link: *copy - 1 }
        });
        let links: Vec<_> = links.collect();
        let packaging = Packaging::new(&plan.topology);
        let parts = packaging.parts(links.len() as u32).collect();
        Self { packaging, links, parts }
    }

    /// What fails with a piece of equipment.
    fn expand(&self, group: Group, number: u32) -> Result<Vec<Component>, Problem> {
        let of_group = |part: &&Part| group_of(**part).is_some_and(|(found, _)| found == group);
        let is_it = |part: &&Part| group_of(**part) == Some((group, number));
        let Some(&part) = self.parts.iter().find(is_it) else {
            let count = self.parts.iter().filter(of_group).count();
            let component = Component::Group(group, number);
            let message = format!("there is no {component}; this Clique has {count}, from 0");
            return Err(Problem::new("", message));
        };
        Ok(self.of(part))
    }

    /// What is in a part, and runs through it.
    fn of(&self, part: Part) -> Vec<Component> {
        let links = self.packaging.links(part).into_iter();
        let tins = self.packaging.tins(part);
        links
            .map(|link| self.links[link as usize])
            .chain(tins.map(|tin| Component::Switch(tin.into())))
            .collect()
    }
}

/// What scenarios call a part, if it is a group.
fn group_of(part: Part) -> Option<(Group, u32)> {
    Some(match part {
        Part::Module(index) => (Group::Module, index),
        Part::Cable(index) => (Group::Cable, index),
        Part::Bundle(index) => (Group::Bundle, index),
        Part::Card(index) => (Group::Card, index.into()),
        Part::Chassis(index) => (Group::Chassis, index.into()),
        Part::Rack(index) => (Group::Rack, index.into()),
        Part::Link(_) | Part::Tin(_) => return None,
    })
}
