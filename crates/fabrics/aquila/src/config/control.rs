//! The key `control` and the `[fabric.sdn]` table: who fills the routing tables, and how long that takes.
//!
//! The fabric does not know the control plane. These keys are what a scenario says of it; whoever builds a rack of a
//! plan makes of them what is written to tables when ([`crate::tables::journal`]).

use kernel::Span;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pipeline::compute::connected;
use crate::topology::packaging::{Packaging, Part};
use crate::topology::{Shape, Topology};

/// Who fills the routing tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// A function, at once, and again `convergence` after something has failed or come back.
    #[default]
    Ideal,
    /// The controller of Aquila §4, register by register, in a Clique that it has booted before the run begins.
    Sdn,
}

/// Times of the control plane, and what it is told to do: for `control = "sdn"`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sdn {
    /// TiNs with a link to the datacenter's network, by which the controller reaches the Clique (Aquila §4.4), spread
    /// evenly. Default 0: two a pod, on different cards (our choice; the paper gives no number).
    pub connected: u16,
    /// From the controller to such a TiN. Unit: time. Default 100 us (our choice). 1 us to 100 ms.
    pub network: Span,
    /// From one TiN to the next, for the control plane's packets. Unit: time. Default 1 us (our choice). 1 ns
    /// to 1 ms.
    pub hop: Span,
    /// From one part of the controller to another, which are on servers of their own. Unit: time. Default 200 us (our
    /// choice). 1 us to 100 ms: leases of 3 s must be renewed in time.
    pub message: Span,
    /// What a control processor takes for each entry of a register that is written. Unit: time. Default 2 us (our
    /// choice: some hundreds of cycles of its Cortex-M7). Up to 1 ms.
    pub entry_time: Span,
    /// How long a control processor takes to start again. Unit: time. Default 5 s (our choice, M609). 1 us to
    /// 600 s.
    pub start_time: Span,
    /// From one management ordered set to the next on a link, by which a TiN is programmed that has lost its power
    /// (§4.4). Unit: time. Default 10 us (our choice). 100 ns to 1 ms.
    pub mos_interval: Span,
    /// What the flash of a control processor takes for a block of 4 KiB of its firmware, for `upgrade`. Unit: time. Default
    /// 50 ms (data sheets of serial NOR flash). 1 us to 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_time: Option<Span>,
    /// What operators do in the run.
    pub maintenance: Vec<Maintenance>,
}

impl Default for Sdn {
    fn default() -> Self {
        Self {
            connected: 0,
            network: Span::from_us(100),
            hop: Span::from_us(1),
            message: Span::from_us(200),
            entry_time: Span::from_us(2),
            start_time: Span::from_us(5_000_000),
            mos_interval: Span::from_us(10),
            block_time: None,
            maintenance: Vec::new(),
        }
    }
}

/// What an operator does: one of `drain_tin`, `drain_module`, `drain_cable`, `drain_bundle`, `drain_card`, `restart` and
/// `upgrade`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Maintenance {
    /// When, from the start of the run. Unit: time. Default 0 ns.
    pub at: Span,
    /// When what was drained is put back, from the start of the run. Unit: time. Default: never. After `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// The TiN that no others' cells are to pass through (M730). From 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_tin: Option<u16>,
    /// The optical module whose links no cells are to take. From 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_module: Option<u32>,
    /// The cable whose links no cells are to take. From 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_cable: Option<u32>,
    /// The bundle of cables whose links no cells are to take. From 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_bundle: Option<u32>,
    /// The line card through whose TiNs no others' cells are to pass. From 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_card: Option<u32>,
    /// The TiN whose control processor starts again while its chip goes on (M609). From 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<u16>,
    /// The version of the firmware that all TiNs are to run: each gets it and starts its control processor again, while its
    /// chip goes on (M617). 1 to 65535; chips leave the factory with 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<u16>,
    /// How many TiNs at once get it, for `upgrade`. Default 4 (our choice). At least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u8>,
}

/// What an operator does, by what the Clique consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// No cells are to take these links, nor pass through these TiNs.
    Drain {
        /// Links, by index.
        links: Vec<u32>,
        /// TiNs.
        tins: Vec<u16>,
    },
    /// The control processor of a TiN starts again.
    Restart {
        /// The TiN.
        tin: u16,
    },
    /// All TiNs get another version of the firmware.
    Upgrade {
        /// Which.
        version: u16,
        /// How many at once.
        at_once: u8,
    },
}

impl Maintenance {
    /// What it comes to.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub fn work(&self, topology: &Topology) -> Result<Work, Problem> {
        let tins = topology.shape().tins();
        let drains = [
            self.drain_tin.map(|tin| ("drain_tin", Part::Tin(tin))),
            self.drain_module.map(|module| ("drain_module", Part::Module(module))),
            self.drain_cable.map(|cable| ("drain_cable", Part::Cable(cable))),
            self.drain_bundle.map(|bundle| ("drain_bundle", Part::Bundle(bundle))),
            self.drain_card
                .map(|card| ("drain_card", Part::Card(card.try_into().unwrap_or(u16::MAX)))),
        ];
        let mut drains = drains.into_iter().flatten();
        let wrong = |key: &str, message: String| Err(Problem::new(key, message));
        if let Some(until) = self.until.filter(|until| *until <= self.at) {
            return wrong("until", format!("{until}; expected a time after at, {}", self.at));
        }
        if let Some(version) = self.upgrade {
            return self.upgrade_to(version, drains.next().is_some() || self.restart.is_some());
        }
        if self.at_once.is_some() {
            return wrong("at_once", "is for an upgrade; add upgrade".into());
        }
        let (work, key, found) = match (drains.next(), drains.next(), self.restart) {
            (Some((key, part)), None, None) => {
                let packaging = Packaging::new(topology);
                let links = topology.links().len() as u32;
                if !packaging.parts(links).any(|known| known == part) {
                    let like = |known: &Part| {
                        std::mem::discriminant(known) == std::mem::discriminant(&part)
                    };
                    let count = packaging.parts(links).filter(like).count();
                    return wrong(
                        key,
                        format!("there is no such part; this Clique has {count}, from 0"),
                    );
                }
                let links = packaging.links(part);
                let tins: Vec<u16> = packaging.tins(part).collect();
                (Work::Drain { links, tins }, key, None)
            }
            (None, _, Some(tin)) => (Work::Restart { tin }, "restart", Some(tin)),
            (None, _, None) => {
                let keys = "drain_tin, drain_module, drain_cable, drain_bundle, drain_card, restart or upgrade";
                return wrong("", format!("names nothing to do; add {keys}"));
            }
            _ => return wrong("", "names more than one thing; write two tables".to_string()),
        };
        if let (Some(_), "restart") = (self.until, key) {
            return wrong("until", "is for what is drained; a restart takes sdn.start_time".into());
        }
        match found.filter(|&tin| tin >= tins) {
            Some(tin) => wrong(key, format!("{tin}; expected a TiN from 0 to {}", tins - 1)),
            None => Ok(work),
        }
    }
}

impl Maintenance {
    /// The same of an upgrade; whether the table names something else, too.
    fn upgrade_to(&self, version: u16, has_other: bool) -> Result<Work, Problem> {
        let at_once = self.at_once.unwrap_or(AT_ONCE);
        let problem = if has_other {
            ("", "names more than one thing; write two tables")
        } else if self.until.is_some() {
            ("until", "is for what is drained; write another upgrade to go back")
        } else if version == 0 {
            ("upgrade", "0; expected a version, 1 to 65535")
        } else if at_once == 0 {
            ("at_once", "0; expected 1 to 255")
        } else {
            return Ok(Work::Upgrade { version, at_once });
        };
        Err(Problem::new(problem.0, problem.1.to_owned()))
    }
}

/// How many TiNs at once get another version of the firmware (our choice).
const AT_ONCE: u8 = 4;
/// Bounds of [`Sdn::block_time`].
const BLOCK_TIMES: [Span; 2] = [Span::from_us(1), Span::from_us(1_000_000)];

/// A key with a time, and its bounds.
type Bound = (&'static str, fn(&Sdn) -> Span, Span, Span);

/// Bounds of times, by key.
const BOUNDS: [Bound; 6] = [
    ("network", |sdn| sdn.network, Span::from_us(1), Span::from_us(100_000)),
    ("hop", |sdn| sdn.hop, Span::from_ns(1), Span::from_us(1_000)),
    ("entry_time", |sdn| sdn.entry_time, Span::ZERO, Span::from_us(1_000)),
    ("message", |sdn| sdn.message, Span::from_us(1), Span::from_us(100_000)),
    ("start_time", |sdn| sdn.start_time, Span::from_us(1), Span::from_us(600_000_000)),
    ("mos_interval", |sdn| sdn.mos_interval, Span::from_ns(100), Span::from_us(1_000)),
];

impl Sdn {
    /// Every mistake in it that can be seen without the Clique's links.
    #[must_use]
    pub fn check(&self, shape: &Shape) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, of, least, most) in BOUNDS {
            let found = of(self);
            if !(least..=most).contains(&found) {
                let message = format!("{found}; expected {least} to {most}");
                problems.push(Problem::new(key, message));
            }
        }
        let [least, most] = BLOCK_TIMES;
        if let Some(found) = self.block_time.filter(|found| !(least..=most).contains(found)) {
            let message = format!("{found}; expected {least} to {most}");
            problems.push(Problem::new("block_time", message));
        }
        let tins = u32::from(shape.tins_per_pod) * u32::from(shape.pods);
        if u32::from(self.connected) > tins {
            let message = format!("{}; this Clique has {tins} TiNs", self.connected);
            problems.push(Problem::new("connected", message));
        }
        problems
    }

    /// What operators do, and when; until when, if it ends.
    ///
    /// # Errors
    /// Every table that is wrong, and why.
    pub fn works(&self, topology: &Topology) -> Result<Vec<(Maintenance, Work)>, Vec<Problem>> {
        let (mut works, mut problems) = (Vec::new(), Vec::new());
        for (index, maintenance) in self.maintenance.iter().enumerate() {
            match maintenance.work(topology) {
                Ok(work) => works.push((*maintenance, work)),
                Err(problem) => {
                    problems.push(problem.below(&format!("maintenance[{index}]")));
                }
            }
        }
        if problems.is_empty() { Ok(works) } else { Err(problems) }
    }

    /// TiNs that are connected to the datacenter's network.
    #[must_use]
    pub fn connected(&self, shape: &Shape) -> Vec<u16> {
        let count = match self.connected {
            0 => shape.tins_per_pod.min(2) * shape.pods,
            count => count,
        };
        connected(shape.tins(), count)
    }
}
