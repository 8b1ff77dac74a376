//! What the chip is built from, with every policy of the paper as a switch.
//!
//! Defaults are the chip's (§5) but for the number of ports, 128 as in the experiments (§4.E).

use kernel::{Bytes, Rate};
use rack::{Estimate, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switching::Line;

/// How an input group picks the port that gets a grant (§3.A).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputChoice {
    /// Uniformly at random: the chip.
    Random,
    /// Round robin over the ports: X2, starves ports.
    RoundRobin,
    /// The port that was picked least recently: X3, starves ports that also have other grants.
    OldestLink,
}

/// How an output group picks the port that may grant (§3.A, §4.D).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputChoice {
    /// The port that was picked least recently: the chip, mode 1.
    OldestLink,
    /// Uniformly at random: mode 2.
    Random,
    /// Round robin over the ports: considered and not built.
    RoundRobin,
}

/// In which order an output group grants (§3.A, microbenchmark 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantOrder {
    /// Each output picks an input group, then the group picks one of its outputs: the chip.
    OutputFirst,
    /// The group picks an input group, then one of its outputs that can grant it: X4.
    GroupFirst,
}

/// How an output's turns are shared out (§2.B, weightage).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shares {
    /// A group gets as many grants in a row as it has ports that ask: the chip.
    PerPort,
    /// One grant a turn: X5.
    PerGroup,
}

/// What a busy requestor may ask for (§2.C, §2.D).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Requesting {
    /// Nothing: X6, and X1 with one transfer for each input.
    Selective,
    /// For the oldest packet of each of its inputs: the chip.
    OldestFake,
    /// For every packet.
    UnlimitedFakes,
}

/// How many packets an input sends at a time (§2.A, §3.A).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transfers {
    /// One on each route, a word of each in turn: the chip.
    Multiple,
    /// One.
    Single,
}

/// What the middle stage is made of (§2.A).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Crossbars {
    /// One crossbar, used by the routes in turn: the chip.
    Shared,
    /// One crossbar for each route, its words narrower by the number of routes.
    Separate,
}

/// From when on a packet that still arrives may be sent (§4.E).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CutThrough {
    /// As soon as no word can be missing when its turn comes: our choice, for the crossbar reads
    /// faster than the line delivers, which the paper does not discuss.
    NoUnderrun,
    /// As soon as its first bit is there: what the paper's 61 ns for every size amounts to.
    FirstBit,
    /// When it is there whole.
    StoreAndForward,
}

/// A chip.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChipConfig {
    /// Ports: the nodes of a rack. Default 128 (§4.E; the chip itself has 136). A multiple of
    /// `ports_per_group`.
    #[serde(skip)]
    pub ports: usize,
    /// Ports in a group, n. Default 4 (§2.A). From 1 to 16; divides the ports.
    #[schemars(range(min = 1, max = 16))]
    pub ports_per_group: usize,
    /// Routes between two groups, m. Default 4 (§2.A). From 1 to 16.
    #[schemars(range(min = 1, max = 16))]
    pub routes: usize,
    /// Word of the shared crossbar, w. Unit: bytes. Default 40 B (§5). Separate crossbars have words
    /// of this size divided by `routes`.
    pub word: Bytes,
    /// The largest packet. Unit: bytes. Default 320 B (§5). At most 65,535 B.
    pub packet_max: Bytes,
    /// Clock. Unit: cycles a second. Default 454,000,000 (§5).
    #[schemars(range(min = 1))]
    pub clock_hertz: u64,
    /// Rate of each line. Default 25 Gbps (§5), which gives the speed-up of 1.45.
    #[serde(skip)]
    pub line_rate: Rate,
    /// Packets for which an input has room. Default 16 (§5). At most 65,535.
    #[schemars(range(min = 1, max = 65535))]
    pub input_packets: usize,
    /// Packets for which an output has room. Default 12 (§5). At least 1.
    #[schemars(range(min = 1))]
    pub output_packets: usize,
    /// Packets of an input, from the oldest, that may ask. Default: all; two in the ETE switch (§5).
    /// At least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub window: Option<usize>,
    /// The middle stage. Default shared.
    pub crossbars: Crossbars,
    /// Transfers of an input at a time. Default multiple, which needs the shared crossbar.
    pub transfers: Transfers,
    /// What busy requestors ask for. Default the oldest packet of each input.
    pub requesting: Requesting,
    /// Order of granting. Default output first.
    pub grant_order: GrantOrder,
    /// Between what an output divides its turns. Default ports.
    pub shares: Shares,
    /// How an output group picks. Default oldest link first.
    pub output_choice: OutputChoice,
    /// How an input group picks. Default at random.
    pub input_choice: InputChoice,
    /// When an output may begin to send a packet. Default when no word can be missing.
    pub cut_through: CutThrough,
    /// Cycles after which a packet at the head of its input goes before all others at its output
    /// (§4.D names the mechanism without detail). Default: never. At least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub aging_cycles: Option<u64>,
}

impl Default for ChipConfig {
    fn default() -> Self {
        Self {
            ports: 128,
            ports_per_group: 4,
            routes: 4,
            word: Bytes::new(40),
            packet_max: Bytes::new(320),
            clock_hertz: 454_000_000,
            line_rate: Rate::from_gbps(25),
            input_packets: 16,
            output_packets: 12,
            window: None,
            crossbars: Crossbars::Shared,
            transfers: Transfers::Multiple,
            requesting: Requesting::OldestFake,
            grant_order: GrantOrder::OutputFirst,
            shares: Shares::PerPort,
            output_choice: OutputChoice::OldestLink,
            input_choice: InputChoice::Random,
            cut_through: CutThrough::NoUnderrun,
            aging_cycles: None,
        }
    }
}

/// Ports and routes of a group that one word of 16 bits has room for.
const GROUP_MAX: usize = 16;
/// Groups for which a row of requests has room.
pub(crate) const GROUPS_MAX: usize = 1024;

/// A configuration that was checked, with what follows from it.
#[derive(Clone, PartialEq, Debug)]
pub struct ChipPlan {
    /// The configuration.
    pub config: ChipConfig,
    /// The lines.
    pub line: Line,
    /// Groups, r.
    pub groups: usize,
    /// Bytes of a word on one route.
    pub word: Bytes,
    /// Words of the largest packet.
    pub words_max: u64,
    /// For each port its group and its place there.
    pub(crate) seats: Seats,
}

/// Where each port sits: looked up, for a division takes longer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seats(Box<[Seat]>);

/// Where a port sits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    group: u16,
    place: u16,
}

impl Seats {
    fn new(ports: usize, per_group: usize) -> Self {
        let seat =
            |port| Seat { group: (port / per_group) as u16, place: (port % per_group) as u16 };
        Self((0..ports).map(seat).collect())
    }

    /// The group of a port.
    #[inline]
    pub(crate) fn group(&self, port: usize) -> usize {
        usize::from(self.0[port].group)
    }

    /// The place of a port in its group.
    #[inline]
    pub(crate) fn place(&self, port: usize) -> usize {
        usize::from(self.0[port].place)
    }

    /// The group of a port, and the port as a bit of its group's ports.
    #[inline]
    pub(crate) fn bit(&self, port: usize) -> (usize, u16) {
        let Seat { group, place } = self.0[port];
        (usize::from(group), 1 << place)
    }
}

/// What a pair of an input and a group takes: who holds packets for it, and its weightage.
const PAIR: u64 = 24;
/// A place for a packet at an input: the packet, and its entry in the order of age.
const PLACE: u64 = 64;
/// A cycle that the chip looks ahead.
const CYCLE: u64 = 32;

impl ChipConfig {
    /// What a chip of so many ports takes. Unit: bytes.
    #[must_use]
    pub fn memory(&self, ports: u64) -> Bytes {
        let groups = ports.div_ceil((self.ports_per_group as u64).max(1));
        let places = ports.saturating_mul(self.input_packets as u64);
        Estimate::new()
            .and(ports.saturating_mul(groups), PAIR)
            .and(places, PLACE)
            .and(self.horizon_max(), CYCLE)
            .bytes()
    }

    /// Cycles for which the largest packet is on its line, or crossing, at the most.
    fn horizon_max(&self) -> u64 {
        let on_line = u128::from(self.packet_max.bits()) * u128::from(self.clock_hertz)
            / u128::from(self.line_rate.as_bps().max(1));
        let crossing =
            self.packet_max.get().saturating_mul(self.routes as u64) / self.word.get().max(1);
        u64::try_from(on_line).unwrap_or(u64::MAX).max(crossing)
    }
    /// The line rate at which the crossbar has no speed-up.
    #[must_use]
    pub fn rate_without_speed_up(&self) -> Rate {
        let share = self.word.bits() * self.clock_hertz / self.ports_per_group as u64;
        Rate::from_bps(share)
    }

    /// Checks everything.
    ///
    /// # Errors
    /// Every problem.
    pub fn plan(&self) -> Result<ChipPlan, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, message: String| problems.push(Problem::new(key, message));
        self.check_shape(&mut refuse);
        self.check_sizes(&mut refuse);
        if !problems.is_empty() {
            return Err(problems);
        }
        let word = match self.crossbars {
            Crossbars::Shared => self.word,
            Crossbars::Separate => self.word / self.routes as u64,
        };
        Ok(ChipPlan {
            line: Line::clocked(self.line_rate, self.clock_hertz),
            groups: self.ports / self.ports_per_group,
            word,
            words_max: self.packet_max.get().div_ceil(word.get()),
            seats: Seats::new(self.ports, self.ports_per_group),
            config: self.clone(),
        })
    }

    fn check_shape(&self, refuse: &mut impl FnMut(&str, String)) {
        let (ports, group, routes) = (self.ports, self.ports_per_group, self.routes);
        if !(1..=GROUP_MAX).contains(&group) {
            refuse("ports_per_group", format!("a group has 1 to {GROUP_MAX} ports, not {group}"));
        } else if ports == 0 || !ports.is_multiple_of(group) {
            let near = (ports.div_ceil(group) * group).max(group);
            refuse("ports", format!("groups of {group} do not divide {ports} ports; try {near}"));
        } else if ports / group > GROUPS_MAX || ports > usize::from(u16::MAX) {
            refuse("ports", format!("{ports} ports make more than {GROUPS_MAX} groups"));
        }
        if !(1..=GROUP_MAX).contains(&routes) {
            refuse("routes", format!("there are 1 to {GROUP_MAX} routes, not {routes}"));
        }
        if self.transfers == Transfers::Multiple && self.crossbars == Crossbars::Separate {
            let message = "an input that feeds separate crossbars sends one packet at a time; set \
                           transfers = \"single\"";
            refuse("transfers", message.into());
        }
        if self.crossbars == Crossbars::Separate
            && routes > 0
            && !self.word.get().is_multiple_of(routes as u64)
        {
            refuse("word", format!("{} do not divide over {routes} crossbars", self.word));
        }
    }

    fn check_sizes(&self, refuse: &mut impl FnMut(&str, String)) {
        let mut positive = |key: &str, value: u64| {
            if value == 0 {
                refuse(key, "must be more than zero".into());
            }
        };
        positive("word", self.word.get());
        positive("packet_max", self.packet_max.get());
        positive("clock_hertz", self.clock_hertz);
        positive("line_rate", self.line_rate.as_bps());
        positive("input_packets", self.input_packets as u64);
        positive("output_packets", self.output_packets as u64);
        if let Err(message) = Line::check_clock(self.line_rate, self.clock_hertz) {
            refuse("clock_hertz", message.into());
        }
        let mut positive = |key: &str, value: u64| {
            if value == 0 {
                refuse(key, "must be more than zero".into());
            }
        };
        positive("window", self.window.unwrap_or(1) as u64);
        positive("aging_cycles", self.aging_cycles.unwrap_or(1));
        if self.input_packets > INPUT_PACKETS_BOUND {
            let (found, most) = (self.input_packets, INPUT_PACKETS_BOUND);
            refuse(
                "input_packets",
                format!("{found} are more than the {most} of an input's memory"),
            );
        }
        if self.packet_max.get() > PACKET_BOUND {
            let found = self.packet_max;
            refuse("packet_max", format!("{found} is more than the {PACKET_BOUND} B of a packet"));
        }
        let (rate, clock) = (self.line_rate.as_bps(), self.clock_hertz);
        let bits = u128::from(self.packet_max.bits());
        if rate > 0 && bits * u128::from(clock) / u128::from(rate) > ARRIVAL_CYCLES_BOUND {
            let (line, packet) = (self.line_rate, self.packet_max);
            let message = format!(
                "{line}: a packet of {packet} would arrive over more than {ARRIVAL_CYCLES_BOUND} \
                 cycles of a clock of {clock} Hz; expected, for example, \"25 Gbps\""
            );
            refuse("line_rate", message);
        }
    }
}

/// Packets for which the model's addresses of 16 bits have room at an input (our choice).
const INPUT_PACKETS_BOUND: usize = u16::MAX as usize;
/// The largest packet that the model has room for: 16 bits of length (our choice).
const PACKET_BOUND: u64 = u16::MAX as u64;

/// Most cycles over which a packet may arrive: the model looks that far ahead (our choice).
const ARRIVAL_CYCLES_BOUND: u128 = 1 << 16;

impl ChipPlan {
    /// Words of a packet of `size`.
    #[inline]
    #[must_use]
    pub fn words(&self, size: Bytes) -> u64 {
        size.get().div_ceil(self.word.get())
    }

    /// Checks a size of packet.
    ///
    /// # Errors
    /// In words.
    pub fn check_packet(&self, size: Bytes) -> Result<(), Problem> {
        let most = self.config.packet_max;
        match size > Bytes::ZERO && size <= most {
            true => Ok(()),
            false => Err(Problem::new(
                "packet",
                format!("a packet has 1 B to {most} here, not {size}; cut it into segments"),
            )),
        }
    }

    /// The group of a port.
    #[must_use]
    pub fn group(&self, port: usize) -> usize {
        self.seats.group(port)
    }

    /// The place of a port in its group.
    #[must_use]
    pub fn place(&self, port: usize) -> usize {
        self.seats.place(port)
    }

    /// Cycles between two words of a packet on a route.
    #[inline]
    #[must_use]
    pub fn stride(&self) -> u64 {
        match self.config.crossbars {
            Crossbars::Shared => self.config.routes as u64,
            Crossbars::Separate => 1,
        }
    }

    /// Cycles from a request to the first word: request, grant, accept, memory read, and in a
    /// shared crossbar the wait for the route's colour (§2.B, §2.D; M19).
    #[inline]
    #[must_use]
    pub fn first_word(&self) -> u64 {
        match self.config.crossbars {
            Crossbars::Separate => SCHEDULING,
            // The colour of the request comes round every `routes` cycles.
            Crossbars::Shared => SCHEDULING.next_multiple_of(self.config.routes as u64),
        }
    }

    /// Whether a grant keeps its group's route until it is known whether it is accepted. Not where
    /// every packet is one word on the only route: then the next grant's word follows in the next
    /// cycle, whatever became of this one.
    #[inline]
    #[must_use]
    pub fn reserves_routes(&self) -> bool {
        self.words_max > 1 || self.config.routes > 1
    }
}

/// Cycles from a request to the first word on the crossbar: grant, accept, memory read and the
/// first of the two cycles that follow the accept (§2.B).
pub(crate) const SCHEDULING: u64 = 4;
/// Cycles from a request to the accept that it leads to (§2.B).
pub(crate) const ACCEPT: u64 = 2;
/// How many cycles before its last word a port or route may ask again (§2.C: four cycles before the
/// last word enters; M21: so that the next first word follows the last without a gap).
pub(crate) const EARLY: u64 = SCHEDULING - 1;
