//! Folded Clos networks of switches with a given number of ports.
//!
//! Models: one switch; leaf and spine; three tiers of pods (Al-Fares et al., "A scalable, commodity
//! data center network architecture", SIGCOMM 2008: k³/4 hosts of k-port switches). Where fewer than
//! the most hosts are wanted, the upper tier has fewer switches with several links to each lower
//! one. The last leaf may be part empty.

use kernel::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Builder, DEGREE_MAX, Link, Tier, Topology, Vertex};
use crate::Problem;

/// All hosts at one switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SingleSwitch {
    /// Hosts. Default 32 (our choice: one chassis). At least 2.
    #[schemars(range(min = 2))]
    pub hosts: u32,
    /// Rate of a host's link. Unit: bit/s. Default 50 Gbps (Shoal §7.3).
    pub rate: Rate,
    /// Propagation of a link. Unit: time. Default 20 ns: 4 m of wire at 5 ns/m (Shoal §3.4).
    pub delay: Span,
}

impl Default for SingleSwitch {
    fn default() -> Self {
        Self { hosts: 32, rate: Rate::from_gbps(50), delay: Span::from_ns(20) }
    }
}

/// Leaf switches, each joined to every spine switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LeafSpine {
    /// Hosts. Default 512 (Shoal §7.1). At least 2.
    #[schemars(range(min = 2))]
    pub hosts: u32,
    /// Ports of a switch. Default 64 (Shoal §5). A multiple of `oversubscription` + 1.
    #[schemars(range(min = 2))]
    pub radix: u32,
    /// Ports of a leaf towards hosts for each towards a spine. Default 1: full bisection (Shoal
    /// §7.3). At least 1.
    #[schemars(range(min = 1))]
    pub oversubscription: u32,
    /// Rate of a link. Unit: bit/s. Default 50 Gbps (Shoal §7.3).
    pub rate: Rate,
    /// Rate of a link between switches; 0 bps: that of a host's link. Unit: bit/s. Default 0 bps.
    pub trunk_rate: Rate,
    /// Propagation of a link. Unit: time. Default 20 ns: 4 m of wire at 5 ns/m (Shoal §3.4).
    pub delay: Span,
}

impl Default for LeafSpine {
    fn default() -> Self {
        Self {
            hosts: 512,
            radix: 64,
            oversubscription: 1,
            rate: Rate::from_gbps(50),
            trunk_rate: Rate::default(),
            delay: Span::from_ns(20),
        }
    }
}

/// Pods of leaf and spine switches, joined by core switches: the k-ary fat tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThreeTier {
    /// Hosts. Default 432: all that 12-port switches join (the network of the NDP paper's
    /// simulations). At least 2.
    #[schemars(range(min = 2))]
    pub hosts: u32,
    /// Ports of a switch. Default 12. Even, and a multiple of `oversubscription` + 1.
    #[schemars(range(min = 2))]
    pub radix: u32,
    /// Ports of a leaf towards hosts for each towards a spine. Default 1: full bisection. At least 1.
    #[schemars(range(min = 1))]
    pub oversubscription: u32,
    /// Rate of a link. Unit: bit/s. Default 50 Gbps (Shoal §7.3).
    pub rate: Rate,
    /// Rate of a link between switches; 0 bps: that of a host's link. Unit: bit/s. Default 0 bps.
    pub trunk_rate: Rate,
    /// Propagation of a link. Unit: time. Default 20 ns: 4 m of wire at 5 ns/m (Shoal §3.4).
    pub delay: Span,
}

impl Default for ThreeTier {
    fn default() -> Self {
        Self {
            hosts: 432,
            radix: 12,
            oversubscription: 1,
            rate: Rate::from_gbps(50),
            trunk_rate: Rate::default(),
            delay: Span::from_ns(20),
        }
    }
}

/// Ports of a leaf towards hosts and towards spines.
#[derive(Clone, Copy)]
struct Split {
    down: u32,
    up: u32,
}

/// Most ports of a switch: as many as a vertex may have.
const RADIX_MAX: u32 = DEGREE_MAX;

/// Divides the ports of a leaf.
fn split(radix: u32, oversubscription: u32) -> Result<Split, Problem> {
    if oversubscription == 0 {
        let message = "an oversubscription of zero; expected 1 (none) or more";
        return Err(Problem::new("oversubscription", message));
    }
    if radix > RADIX_MAX {
        let message = format!("switches of {radix} ports; expected at most {RADIX_MAX}");
        return Err(Problem::new("radix", message));
    }
    let parts = oversubscription.saturating_add(1);
    let up = radix / parts;
    if up == 0 || !radix.is_multiple_of(parts) {
        let message = format!(
            "a leaf of {radix} ports does not divide {oversubscription} to 1; expected a multiple of \
             {}",
            u64::from(oversubscription) + 1
        );
        return Err(Problem::new("radix", message));
    }
    Ok(Split { down: radix - up, up })
}

/// How many switches there are, links between them and ports of each.
pub(super) struct Counts {
    pub(super) switches: u64,
    pub(super) trunks: u64,
    pub(super) radix: u64,
}

/// How many switches of each tier two tiers take.
struct TwoTiers {
    split: Split,
    leaves: u32,
    spines: u32,
}

/// How many switches of each tier three tiers take.
struct ThreeTiers {
    split: Split,
    leaves: u32,
    pods: u32,
    /// Cores that spine number `j` of each pod reaches.
    group: u32,
}

/// The fewest upper switches of `radix` ports that take `up` links from each of `lowers` lower
/// switches, the same number from each: a divisor of `up`.
fn uppers(up: u32, lowers: u32, radix: u32) -> Option<u32> {
    (1..=up).find(|count| {
        up.is_multiple_of(*count) && u64::from(lowers) * u64::from(up / count) <= radix.into()
    })
}

fn trunk(rate: Rate, trunk_rate: Rate, delay: Span) -> Link {
    Link { rate: if trunk_rate == Rate::default() { rate } else { trunk_rate }, delay }
}

/// Attaches `hosts` hosts to leaves, `down` to each in turn.
fn attach(build: &mut Builder, leaves: &[Vertex], hosts: u32, down: u32, link: Link) {
    for host in 0..hosts {
        build.link(Vertex::new(host), leaves[(host / down) as usize], link);
    }
}

impl SingleSwitch {
    /// The topology.
    ///
    /// # Errors
    /// Every problem, as [`Builder::build`].
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        let mut build = Builder::new(self.hosts);
        let leaves = [build.switch(Tier::Leaf)];
        let link = Link { rate: self.rate, delay: self.delay };
        attach(&mut build, &leaves, self.hosts, u32::MAX, link);
        build.build()
    }
}

impl LeafSpine {
    /// How many of each there are.
    fn tiers(&self) -> Result<TwoTiers, Problem> {
        let split = split(self.radix, self.oversubscription)?;
        let leaves = self.hosts.div_ceil(split.down);
        let spines = uppers(split.up, leaves, self.radix).ok_or_else(|| {
            let most = u64::from(split.down) * u64::from(self.radix);
            let message = format!(
                "{} hosts do not fit two tiers of {}-port switches; expected at most {most}, more \
                 ports or three tiers",
                self.hosts, self.radix
            );
            Problem::new("hosts", message)
        })?;
        Ok(TwoTiers { split, leaves, spines })
    }

    pub(super) fn counts(&self) -> Result<Counts, Problem> {
        let TwoTiers { split, leaves, spines } = self.tiers()?;
        Ok(Counts {
            switches: u64::from(leaves) + u64::from(spines),
            trunks: u64::from(leaves) * u64::from(split.up),
            radix: self.radix.into(),
        })
    }

    /// The topology.
    ///
    /// # Errors
    /// If switches of so many ports cannot join so many hosts; and as [`Builder::build`].
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        let TwoTiers { split: Split { down, up }, leaves, spines: spine_count } =
            self.tiers().map_err(|problem| vec![problem])?;
        let mut build = Builder::new(self.hosts);
        let leaves = build.switches(Tier::Leaf, leaves);
        let spines = build.switches(Tier::Spine, spine_count);
        attach(&mut build, &leaves, self.hosts, down, Link { rate: self.rate, delay: self.delay });
        let trunk = trunk(self.rate, self.trunk_rate, self.delay);
        for &leaf in &leaves {
            for _ in 0..up / spine_count {
                spines.iter().for_each(|&spine| build.link(leaf, spine, trunk));
            }
        }
        build.build()
    }
}

impl ThreeTier {
    /// How many of each there are.
    fn tiers(&self) -> Result<ThreeTiers, Problem> {
        let split = split(self.radix, self.oversubscription)?;
        if self.radix % 2 == 1 {
            let message =
                format!("{} ports; a spine needs half of them up: an even number", self.radix);
            return Err(Problem::new("radix", message));
        }
        let half = self.radix / 2;
        let pods = self.hosts.div_ceil(split.down.saturating_mul(half));
        let group = uppers(half, pods, self.radix).ok_or_else(|| {
            let most = u64::from(split.down) * u64::from(half) * u64::from(self.radix);
            let message = format!(
                "{} hosts do not fit three tiers of {}-port switches; expected at most {most}, or \
                 more ports",
                self.hosts, self.radix
            );
            Problem::new("hosts", message)
        })?;
        Ok(ThreeTiers { split, leaves: self.hosts.div_ceil(split.down), pods, group })
    }

    pub(super) fn counts(&self) -> Result<Counts, Problem> {
        let ThreeTiers { split, leaves, pods, group } = self.tiers()?;
        let (leaves, pods, up) = (u64::from(leaves), u64::from(pods), u64::from(split.up));
        let half = u64::from(self.radix / 2);
        Ok(Counts {
            switches: leaves + pods * up + u64::from(group) * up,
            trunks: leaves * up + pods * up * half,
            radix: self.radix.into(),
        })
    }

    /// The topology.
    ///
    /// # Errors
    /// If switches of so many ports cannot join so many hosts; and as [`Builder::build`].
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        let ThreeTiers { split: Split { down, up }, leaves, pods, group } =
            self.tiers().map_err(|problem| vec![problem])?;
        let half = self.radix / 2;
        let mut build = Builder::new(self.hosts);
        let leaves = build.switches(Tier::Leaf, leaves);
        let spines = build.switches(Tier::Spine, pods * up);
        let cores = build.switches(Tier::Core, group * up);
        attach(&mut build, &leaves, self.hosts, down, Link { rate: self.rate, delay: self.delay });
        let trunk = trunk(self.rate, self.trunk_rate, self.delay);
        for (leaf, &vertex) in leaves.iter().enumerate() {
            let pod = leaf / half as usize;
            for spine in &spines[pod * up as usize..][..up as usize] {
                build.link(vertex, *spine, trunk);
            }
        }
        for (spine, &vertex) in spines.iter().enumerate() {
            let place = spine % up as usize;
            for link in 0..half {
                let core = place * group as usize + (link % group) as usize;
                build.link(vertex, cores[core], trunk);
            }
        }
        build.build()
    }
}
