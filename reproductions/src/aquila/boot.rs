//! A Clique that boots itself, from power-on (§4.4): what the command shows of it, and the experiments count.

use std::ops::ControlFlow;

pub use aquila::config::Profile;
use aquila::pipeline::compute::connected;
use aquila::topology::{Fibres, Shape, Topology};
use aquila_control::bootstrap::{Settings, Stage};
use aquila_control::flash::Code;
use aquila_control::rpc::Restart;
pub use aquila_control::session::Versions;
use aquila_control::sim::path::Lost;
use aquila_control::sim::results::{Results, Tin};
use aquila_control::sim::{Config, Fault, Sim};
use kernel::{Span, Time};
use rack::Problem;
use report::page::{Axis, Block, Page, Plot, PlotSeries, SeriesStyle, TableBlock, Tile};
use report::{Cell, Column, ResultsTable, TableColumn, Tone, Unit};
use serde_json::{Value, json};

use super::upgrade;

/// How often it is asked whether to go on. Unit: simulated time.
const STEP: Span = Span::from_us(250_000);
/// Longest of times that things may take (our choice): longer ones overflow sums of them.
const TIME_MAX: Span = Span::from_us(1_000_000_000);
/// The latest that is simulated (our choice): some eleven days.
const LIMIT_MAX: Span = Span::from_us(1_000_000_000_000);

/// A bootstrap that is asked for.
#[derive(Clone, Debug)]
pub struct Boot {
    /// How large it is (§2, App. A).
    pub profile: Profile,
    /// TiNs connected to the datacenter's network; `None`: as many of a profile's as 512 of 576.
    pub connected: Option<u16>,
    /// How many TiNs a proxy boots at once.
    pub targets: u8,
    /// From one management ordered set to the next.
    pub mos_interval: Span,
    /// How long a control processor takes for an entry of a register.
    pub entry_time: Span,
    /// Of a million ordered sets, how many are lost.
    pub mos_lost: u32,
    /// Of all that is drawn.
    pub seed: u64,
    /// What happens: TIME:KIND or TIME:KIND:NUMBER.
    pub faults: Vec<String>,
    /// How many TiNs at once get another version of the firmware.
    pub at_once: u8,
    /// Over which versions of IP TiNs are called.
    pub versions: Versions,
    /// After so long it is given up.
    pub limit: Span,
}

impl Default for Boot {
    /// The full Clique of the paper, with the times of [`super::bootstrap`].
    fn default() -> Self {
        Self {
            profile: Profile::Full,
            connected: None,
            targets: Settings::default().targets_max as u8,
            mos_interval: super::bootstrap::MOS_INTERVAL,
            entry_time: super::bootstrap::ENTRY_TIME,
            mos_lost: 0,
            seed: 1,
            faults: Vec::new(),
            at_once: 4,
            versions: Versions::default(),
            limit: Span::from_us(86_400_000_000),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    boot: Boot,
    shape: Shape,
    connected: Vec<u16>,
    /// What was found.
    pub results: Results,
    /// Whether all TiNs became ready and hold what they are to hold.
    pub is_done: bool,
    /// It was stopped from outside.
    pub is_interrupted: bool,
}

impl Boot {
    /// What is simulated.
    ///
    /// # Errors
    /// Every key that makes no sense.
    pub fn config(&self) -> Result<Config, Vec<Problem>> {
        let mut problems = Vec::new();
        let shape = self.profile.shape();
        let count = self.connected.unwrap_or((u32::from(shape.tins()) * 512 / 576) as u16);
        if !(1..=shape.tins()).contains(&count) {
            let message = format!(
                "{count}; expected 1 to {}: the TiNs of this profile, at least one of which is reached",
                shape.tins()
            );
            problems.push(Problem::new("connected", message));
        }
        let mut time = |key: &str, time: Span, least: Span, most: Span| {
            if !(least..=most).contains(&time) {
                problems.push(Problem::new(key, format!("{time}; expected {least} to {most}")));
            }
        };
        time("mos-interval", self.mos_interval, Span::from_ns(1), TIME_MAX);
        time("entry-time", self.entry_time, Span::ZERO, TIME_MAX);
        time("limit", self.limit, Span::from_ns(1), LIMIT_MAX);
        if self.mos_lost > 500_000 {
            let message = format!("{} of a million; expected 0 to 500000", self.mos_lost);
            problems.push(Problem::new("mos-lost", message));
        }
        if self.targets == 0 {
            problems.push(Problem::new("targets", "0; expected 1 to 255"));
        }
        if self.at_once == 0 {
            problems.push(Problem::new("at-once", "0; expected 1 to 255"));
        }
        let links = Topology::new(&shape, Fibres::Grid).map_or(0, |built| built.links().len());
        let mut faults = Vec::new();
        for text in &self.faults {
            match fault(text, shape.tins(), links as u32, self.at_once) {
                Ok(fault) => faults.push(fault),
                Err(message) => problems.push(Problem::new("fault", message)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        faults.sort_by_key(|&(time, _)| time);
        let mut config = Config::new(&shape, connected(shape.tins(), count), self.seed);
        config.mos_interval = self.mos_interval;
        config.entry_time = self.entry_time;
        config.mos_lost = self.mos_lost;
        config.faults = faults;
        config.limit = Time::ZERO + self.limit;
        config.manager.versions = self.versions;
        config.manager.targets_max = usize::from(self.targets);
        config.manager = config.manager.with_times(config.mos_interval, config.entry_time);
        config.front_end = config.front_end.with_entry_time(config.entry_time);
        Ok(config)
    }

    /// Boots it. `watch` hears how many TiNs are ready, of how many, and the simulated time; a break stops it.
    ///
    /// # Errors
    /// Every key that makes no sense.
    pub fn run(
        &self,
        watch: &mut dyn FnMut(u64, u64, Time) -> ControlFlow<()>,
    ) -> Result<Outcome, Vec<Problem>> {
        let config = self.config()?;
        let (shape, connected) = (config.shape, config.connected.clone());
        let tins = u64::from(shape.tins());
        let last = config.faults.last().map(|&(time, _)| time);
        let mut sim = Sim::new(config);
        let mut is_interrupted = false;
        let is_done = loop {
            // What happens at an instant has not happened when it is that time.
            let is_over = last.is_none_or(|last| sim.now() > last);
            if is_over && sim.is_done() {
                break true;
            }
            let ready = sim.ready_count() as u64;
            if watch(ready, tins, sim.now()).is_break() {
                is_interrupted = true;
                break false;
            }
            if !sim.run_for(STEP) {
                break sim.is_done();
            }
        };
        let results = sim.results();
        Ok(Outcome { boot: self.clone(), shape, connected, results, is_done, is_interrupted })
    }
}

/// A fault as it is written on the command line.
fn fault(text: &str, tins: u16, links: u32, at_once: u8) -> Result<(Time, Fault), String> {
    const KINDS: &str = "link-down, link-up, ethernet-down, ethernet-up, restart, power-off, power-on, \
                         upgrade, upgrade-cold, upgrade-silent with a number, or controller";
    let bad =
        |what: &str| format!("`{text}`: {what}; expected TIME:KIND:NUMBER, as 60 s:power-off:7");
    let mut parts = text.split(':');
    let time = parts.next().unwrap_or_default().parse::<Span>();
    let time = time.map_err(|error| bad(&error.to_string()))?;
    if time > LIMIT_MAX {
        return Err(bad(&format!("its time is later than {LIMIT_MAX}")));
    }
    let kind = parts.next().unwrap_or_default();
    let number = parts.next().map(str::parse::<u32>);
    if parts.next().is_some() || matches!(number, Some(Err(_))) {
        return Err(bad("its last part is no number"));
    }
    let number = number.and_then(Result::ok);
    let which = |count: u32, what: &str| match number {
        Some(number) if number < count => Ok(number),
        Some(number) => Err(format!("`{text}`: {what} {number}; expected 0 to {}", count - 1)),
        None => Err(bad("no number")),
    };
    let tin = || which(tins.into(), "TiN").map(|tin| tin as u16);
    let link = || which(links, "link");
    let version = || match number.map(u16::try_from) {
        Some(Ok(version @ 1..)) => Ok(version),
        _ => Err(bad("its number is no version of firmware, 1 to 65535")),
    };
    let fault = match kind {
        "link-down" | "link-up" => Fault::Link { link: link()?, is_up: kind == "link-up" },
        "ethernet-down" | "ethernet-up" => {
            Fault::Ethernet { tin: tin()?, is_up: kind == "ethernet-up" }
        }
        "restart" => Fault::Restart { tin: tin()? },
        "power-off" | "power-on" => Fault::Power { tin: tin()?, is_on: kind == "power-on" },
        "upgrade" | "upgrade-cold" | "upgrade-silent" => {
            let (restart, code) = match kind {
                "upgrade-cold" => (Restart::Chip, Code::Whole),
                "upgrade-silent" => (Restart::Processor, Code::Silent),
                _ => (Restart::Processor, Code::Whole),
            };
            Fault::Upgrade { version: version()?, restart, at_once, code }
        }
        "controller" if number.is_none() => Fault::Controller,
        other => return Err(format!("`{text}`: kind `{other}`; expected {KINDS}")),
    };
    Ok((Time::ZERO + time, fault))
}

/// The least, the one in the middle and the largest of sorted times. Unit: s.
pub(super) fn extremes(times: &[Span]) -> [Value; 3] {
    let at = |index: usize| times.get(index).map_or(Value::Null, |time| json!(time.as_seconds()));
    [at(0), at(times.len() / 2), at(times.len().saturating_sub(1))]
}

impl Outcome {
    /// From the first TiN's power to the last that became ready; `None`: not all did. Unit: s.
    #[must_use]
    pub fn total(&self) -> Option<f64> {
        Some((self.results.all_ready? - Time::ZERO).as_seconds())
    }

    /// From the beginning of programming until ready, sorted: those connected to the datacenter's network, and the others.
    #[must_use]
    pub fn times(&self) -> [Vec<Span>; 2] {
        [
            self.results.times(|tin| tin.proxy.is_none()),
            self.results.times(|tin| tin.proxy.is_some()),
        ]
    }

    /// All figures.
    #[must_use]
    pub fn summary(&self, version: &str) -> Value {
        let Self { boot, results, .. } = self;
        let [direct, pmos] = self.times();
        let all = results.times(|_| true);
        let figures = |times: &[Span]| {
            let [min, median, max] = extremes(times);
            json!({ "tins": times.len(), "min": min, "median": median, "max": max })
        };
        let lost: serde_json::Map<String, Value> = Lost::ALL
            .iter()
            .zip(results.lost)
            .map(|(why, count)| (format!("{why:?}").to_lowercase(), json!(count)))
            .collect();
        let mut summary = json!({
            "rackloom_version": version,
            "profile": boot.profile.to_string(),
            "tins": self.shape.tins(),
            "connected": self.connected.len(),
            "targets": boot.targets,
            "ip": boot.versions.to_string(),
            "seed": boot.seed,
            "mos_interval_seconds": boot.mos_interval.as_seconds(),
            "entry_seconds": boot.entry_time.as_seconds(),
            "mos_lost_per_million": boot.mos_lost,
            "faults": boot.faults,
            "done": self.is_done,
            "interrupted": self.is_interrupted,
            "ready": results.ready_count,
            "total_seconds": self.total(),
            "simulated_seconds": (results.end - Time::ZERO).as_seconds(),
            "waves": results.waves(),
            "bootstrap_seconds": {
                "all": figures(&all), "direct": figures(&direct), "pmos": figures(&pmos),
            },
            "proxies": self.proxies(),
            "memory_peak_bytes": results.memory_peak(),
            "pmos": {
                "words": results.words, "words_lost": results.words_lost,
                "frames": results.frames, "frames_sent_again": results.frames_again,
                "sessions": results.sessions.pmos_sessions, "sessions_lost": results.sessions.pmos_lost,
            },
            "tcp": {
                "calls": results.sessions.calls, "sessions": results.sessions.tcp_sessions,
                "sessions_lost": results.sessions.tcp_lost,
            },
            "entries_written": results.entries,
            "batches": results.batches,
            "nib": {
                "rows": results.base.rows, "raw_bytes": results.base.raw,
                "stored_bytes": results.base.stored,
            },
            "packets": {
                "ipv4": results.packets[0], "ipv6": results.packets[1], "crossed": results.crossed,
                "passed_unready": results.passed_unready, "lost": lost },
            "events": results.events,
        });
        if let Some(upgrade) = upgrade::summary(results) {
            summary["upgrade"] = upgrade;
        }
        summary
    }

    /// TiNs through which others were booted.
    fn proxies(&self) -> usize {
        let of = |tin: &Tin| tin.proxy.map(|(proxy, _)| proxy);
        let all: std::collections::BTreeSet<u16> =
            self.results.tins.iter().filter_map(of).collect();
        all.len()
    }

    /// What people read.
    #[must_use]
    pub fn table(&self) -> ResultsTable {
        let columns = [("what", ""), ("value", "Value")];
        let mut table =
            ResultsTable::new(columns.map(|(key, head)| Column::new(key, head)).to_vec());
        let summary = self.summary("");
        let get = |path: &str| path.split('.').fold(&summary, |value, key| &value[key]).clone();
        let mut put = |what: &str, cell: Cell| table.push(vec![Cell::text(what), cell]);
        put(
            "TiNs ready",
            Cell::text(format!("{} of {}", self.results.ready_count, self.shape.tins())),
        );
        put("Connected to the datacenter's network", Cell::new(get("connected"), Unit::Count));
        put("All ready after", minutes(&get("total_seconds")));
        let waves: Vec<String> = self.results.waves().iter().map(ToString::to_string).collect();
        put("TiNs by wave", Cell::text(waves.join(", ")));
        put("Proxies", Cell::new(get("proxies"), Unit::Count));
        for (what, key) in [("direct", "direct"), ("by PMOS", "pmos")] {
            for (which, word) in [("min", "shortest"), ("median", "median"), ("max", "longest")] {
                let value = get(&format!("bootstrap_seconds.{key}.{which}"));
                put(&format!("Bootstrap of a TiN, {what}, {word}"), minutes(&value));
            }
        }
        put("Most memory of a firmware", Cell::new(get("memory_peak_bytes"), Unit::Bytes));
        put("Entries of registers written", Cell::new(get("entries_written"), Unit::Count));
        put("Batches of routes", Cell::new(get("batches"), Unit::Count));
        put("PMOS frames", Cell::new(get("pmos.frames"), Unit::Count));
        put("PMOS frames sent again", Cell::new(get("pmos.frames_sent_again"), Unit::Count));
        put("Packets through the Clique", Cell::new(get("packets.crossed"), Unit::Count));
        put(
            "Of these by a TiN that was not ready",
            Cell::new(get("packets.passed_unready"), Unit::Count),
        );
        put("Base, raw", Cell::new(get("nib.raw_bytes"), Unit::Bytes));
        put("Base, as kept", Cell::new(get("nib.stored_bytes"), Unit::Bytes));
        upgrade::put(&self.results, &mut table);
        table
    }

    /// A row a TiN.
    #[must_use]
    pub fn rows(&self) -> Vec<TableColumn> {
        let tins = &self.results.tins;
        let count =
            |name: &str, description, of: &dyn Fn(usize, &Tin) -> Option<u64>| TableColumn {
                name: name.into(),
                unit: if name == "memory_peak_bytes" { "bytes" } else { "" },
                description,
                values: tins.iter().enumerate().map(|(at, tin)| json!(of(at, tin))).collect(),
            };
        let time = |name: &str, description, of: &dyn Fn(&Tin) -> Option<Time>| {
            let seconds = |tin: &Tin| of(tin).map(|time| (time - Time::ZERO).as_seconds());
            let values = tins.iter().map(|tin| json!(seconds(tin))).collect();
            TableColumn { name: name.into(), unit: "s", description, values }
        };
        let wave = |_: usize, tin: &Tin| (tin.wave != u16::MAX).then_some(u64::from(tin.wave));
        let connected = |at: usize, _: &Tin| Some(u64::from(self.connected.contains(&(at as u16))));
        let mut columns = vec![
            count("tin", "Number of the TiN.", &|at, _| Some(at as u64)),
            count("pod", "Its pod.", &|at, _| Some(self.shape.split(at as u16).0.into())),
            count("connected", "1: it is connected to the datacenter's network.", &connected),
            count(
                "wave",
                "Proxies between it and the datacenter's network when it was programmed.",
                &wave,
            ),
            count("proxy", "The TiN through which it was programmed first.", &|_, tin| {
                tin.proxy.map(|(proxy, _)| proxy.into())
            }),
            count("proxy_port", "That TiN's port.", &|_, tin| {
                tin.proxy.map(|(_, port)| port.into())
            }),
            count("tries", "How often its programming was begun by PMOS.", &|_, tin| {
                Some(tin.tries.into())
            }),
            time("powered_s", "When it was switched on.", &|tin| Some(tin.powered)),
            time("addressed_s", "When the controller knew that it had an address.", &|tin| {
                tin.addressed
            }),
            time("begun_s", "When its programming began.", &|tin| tin.begun),
            time("connected_s", "When its session over TCP began.", &|tin| tin.connected),
            time("ready_s", "When it was ready for the first time.", &|tin| tin.ready),
            count(
                "memory_peak_bytes",
                "The most memory that its firmware had in use.",
                &|_, tin| Some(tin.memory_peak.into()),
            ),
        ];
        columns.extend(upgrade::columns(&self.results));
        columns
    }

    /// The report. `command`: what to type to obtain it again.
    #[must_use]
    pub fn page(&self, command: &str) -> Page {
        let title = format!("Bootstrap of a Clique of {} TiNs", self.shape.tins());
        let lead = format!(
            "{} TiNs are connected to the datacenter's network; the others are reached through those that are \
             there already (§4.4).",
            self.connected.len()
        );
        let mut page = Page { title, lead, sections: Vec::new() };
        let mut overview = Vec::new();
        if !self.is_done {
            overview.push(Block::Text(
                "Not all TiNs became ready: the figures cover the time up to the end of the run."
                    .into(),
            ));
        }
        overview.push(Block::Tiles(self.tiles()));
        page.push("Key figures", overview);
        page.push(
            "Who booted whom, and when",
            vec![Block::Plots(vec![self.stages(), self.tree()])],
        );
        if let Some(plot) = upgrade::plot(&self.results) {
            page.push("Another version of the firmware", vec![Block::Plots(vec![plot])]);
        }
        page.push("All figures", vec![Block::table(self.table())]);
        let packets =
            ResultsTable::new(vec![Column::new("why", "Lost"), Column::new("packets", "Packets")]);
        let lost =
            Lost::ALL.iter().zip(self.results.lost).fold(packets, |mut table, (why, count)| {
                table.push(vec![Cell::text(why.text()), Cell::new(count, Unit::Count)]);
                table
            });
        let note = "Calls of TiNs that cannot be reached yet are among these.".into();
        let lost = TableBlock { title: "Packets of the control plane".into(), note, table: lost };
        page.push("Packets", vec![Block::Table(lost)]);
        page.push(
            "Provenance",
            vec![Block::Source { title: "Command to repeat this".into(), text: command.into() }],
        );
        page
    }

    fn tiles(&self) -> Vec<Tile> {
        let tile = |label: &str, value: String, note: String| Tile {
            label: label.into(),
            value,
            note,
            tone: Tone::Plain,
        };
        let longest = |times: &[Span]| {
            times.last().map_or("–".into(), |time| Unit::Seconds.format(time.as_seconds()))
        };
        let [direct, pmos] = self.times();
        let total = self.total().map_or("–".into(), |total| Unit::Seconds.format(total));
        vec![
            tile("All ready after", total, format!("{} waves", self.results.waves().len())),
            tile("Longest, direct", longest(&direct), format!("{} TiNs", direct.len())),
            tile("Longest, by PMOS", longest(&pmos), format!("{} TiNs", pmos.len())),
            tile(
                "Most memory of a firmware",
                Unit::Bytes.format(self.results.memory_peak().into()),
                "of 2 MiB".into(),
            ),
        ]
    }

    /// TiNs that became ready, in the order in which they did.
    fn order(&self) -> Vec<usize> {
        let tins = &self.results.tins;
        let mut order: Vec<usize> =
            (0..tins.len()).filter(|&at| tins[at].ready.is_some()).collect();
        order.sort_by_key(|&at| (tins[at].ready, at));
        order
    }

    /// By TiN: from one stage to the next.
    fn stages(&self) -> Plot {
        type Of = fn(&Tin) -> Option<Time>;
        let stages: [(&str, Of, Of); 4] = [
            ("Without an address", |tin| Some(tin.powered), |tin| tin.addressed.or(tin.begun)),
            ("Addressed, waiting", |tin| tin.addressed, |tin| tin.begun),
            ("By PMOS", |tin| tin.proxy.and(tin.begun), |tin| tin.connected),
            ("Over TCP", |tin| tin.connected, |tin| tin.ready),
        ];
        let order = self.order();
        let series = stages.map(|(name, from, to)| {
            let mut points = Vec::new();
            for (rank, &at) in (1..).zip(&order) {
                let tin = &self.results.tins[at];
                if let (Some(from), Some(to)) = (from(tin), to(tin)) {
                    let seconds = |time: Time| (time - Time::ZERO).as_seconds();
                    points
                        .extend([(seconds(from), f64::from(rank)), (seconds(to), f64::from(rank))]);
                }
            }
            PlotSeries::new(name, SeriesStyle::Segments, points)
        });
        Plot {
            title: "Stages of each TiN".into(),
            note: "A line a TiN, from its power to ready, in the order in which they became ready."
                .into(),
            x: Axis::linear("Time since the first power", Unit::Seconds),
            y: Axis::linear("TiNs in order", Unit::Count),
            series: series.to_vec(),
        }
    }

    /// From each proxy to whom it has booted: when its own session began, and when the other was ready.
    fn tree(&self) -> Plot {
        let tins = &self.results.tins;
        let mut series = Vec::new();
        for wave in 1..self.results.waves().len() {
            let mut points = Vec::new();
            for (at, tin) in
                tins.iter().enumerate().filter(|(_, tin)| usize::from(tin.wave) == wave)
            {
                let Some((proxy, _)) = tin.proxy else { continue };
                let seconds = |time: Time| (time - Time::ZERO).as_seconds();
                let (Some(begun), Some(ready)) = (tin.begun, tin.ready) else { continue };
                points.extend([(seconds(begun), f64::from(proxy)), (seconds(ready), at as f64)]);
            }
            series.push(PlotSeries::new(format!("Wave {wave}"), SeriesStyle::Segments, points));
        }
        Plot {
            title: "From proxy to target".into(),
            note: "A line from the proxy, when it began to program a TiN, to that TiN, when it was ready.".into(),
            x: Axis::linear("Time since the first power", Unit::Seconds),
            y: Axis::linear("TiN", Unit::Count),
            series,
        }
    }

    /// TiNs with which an upgrade has ended, and why.
    #[must_use]
    pub fn not_upgraded(&self) -> Vec<(u16, String)> {
        upgrade::failed(&self.results)
    }

    /// TiNs at a stage at the end, for whom it did not come to ready.
    #[must_use]
    pub fn left(&self) -> Vec<(u16, Stage)> {
        let mut last = vec![Stage::Waiting; self.results.tins.len()];
        for change in &self.results.changes {
            last[usize::from(change.tin)] = change.stage;
        }
        (0..).zip(last).filter(|(_, stage)| *stage != Stage::Ready).collect()
    }
}

/// Seconds as minutes, for people.
pub(super) fn minutes(seconds: &Value) -> Cell {
    let text = match seconds.as_f64() {
        Some(seconds) if seconds >= 120.0 => format!("{:.1} min", seconds / 60.0),
        Some(seconds) => format!("{seconds:.3} s"),
        None => "–".into(),
    };
    Cell { value: seconds.clone(), text, tone: Tone::Plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny() -> Boot {
        Boot { profile: Profile::Tiny, connected: Some(2), ..Boot::default() }
    }

    #[test]
    fn a_tiny_clique_boots_and_its_faces_agree() {
        let outcome = tiny().run(&mut |_, _, _| ControlFlow::Continue(())).unwrap();
        assert!(outcome.is_done && outcome.left().is_empty());
        let summary = outcome.summary("0");
        assert_eq!(summary["ready"], 18);
        assert_eq!(summary["waves"][0], 2);
        assert_eq!(summary["packets"]["passed_unready"], 0);
        let rows = outcome.rows();
        assert_eq!(rows[4].name, "proxy");
        assert_eq!(rows[4].values.iter().filter(|proxy| proxy.is_null()).count(), 2);
        assert!(outcome.page("x").to_html().contains("Who booted whom"));
    }

    /// M617: all TiNs run another version, and every face of the results says when; without it none of them says anything.
    #[test]
    fn m617_an_upgrade_is_in_all_faces_of_the_results() {
        let faults = vec!["400 s:upgrade:2".to_owned()];
        let quick = Span::from_us(10);
        let boot = Boot { faults, mos_interval: quick, entry_time: Span::ZERO, ..tiny() };
        let outcome = boot.run(&mut |_, _, _| ControlFlow::Continue(())).unwrap();
        let summary = outcome.summary("0");
        assert!(outcome.is_done && outcome.not_upgraded().is_empty());
        assert_eq!(
            (&summary["upgrade"]["done"], &summary["upgrade"]["version"]),
            (&json!(18), &json!(2))
        );
        // 64 blocks of 4 KiB, a tenth slower than flash takes them, 50 ms each.
        let sent = summary["upgrade"]["image_seconds"]["min"].as_f64().unwrap();
        assert!((3.4..4.0).contains(&sent), "{sent}");
        let rows = outcome.rows();
        assert_eq!(rows.last().unwrap().values, vec![json!(2); 18]);
        assert!(outcome.page("x").to_html().contains("Upgrade of each TiN"));
        assert!(outcome.table().to_text(Default::default()).contains("TiNs upgraded"));
        let without = Boot { faults: Vec::new(), ..boot };
        let without = without.run(&mut |_, _, _| ControlFlow::Continue(())).unwrap();
        assert!(without.summary("0").get("upgrade").is_none());
        assert_eq!(without.rows().len() + 4, rows.len());
    }

    /// M617: an image that never connects gives way to the one before it, which every face of the results says.
    #[test]
    fn m617_an_image_that_never_connects_is_in_the_results() {
        let faults = vec!["400 s:upgrade-silent:2".to_owned()];
        let quick = Span::from_us(10);
        let boot =
            Boot { faults, at_once: 1, mos_interval: quick, entry_time: Span::ZERO, ..tiny() };
        let outcome = boot.run(&mut |_, _, _| ControlFlow::Continue(())).unwrap();
        assert!(outcome.is_done && outcome.left().is_empty());
        let failed = outcome.not_upgraded();
        assert_eq!(failed.len(), 1);
        assert!(failed[0].1.contains("the one before it runs again"), "{failed:?}");
        let summary = outcome.summary("0");
        assert_eq!(summary["upgrade"]["failed"][0]["tin"], failed[0].0);
        assert!(outcome.table().to_text(Default::default()).contains("runs again"));
        // It was told to restart, and is back with the version that it had; the others had no part in it.
        let rows = outcome.rows();
        let firmware = &rows.last().unwrap().values;
        assert_eq!(firmware.iter().filter(|runs| **runs == json!(1)).count(), 1);
    }

    #[test]
    fn all_problems_are_said_at_once() {
        let bad = Boot {
            mos_interval: Span::ZERO,
            entry_time: TIME_MAX + TIME_MAX,
            limit: Span::ZERO,
            connected: Some(19),
            at_once: 0,
            faults: ["x", "1 s:power-off:18", "1 s:melt:2", "1 s:controller:2", "1 s:upgrade:0"]
                .map(str::to_owned)
                .to_vec(),
            ..tiny()
        };
        let problems = bad.config().unwrap_err();
        assert_eq!(problems.len(), 10, "{problems:?}");
        let none = Boot { connected: Some(0), ..tiny() };
        assert_eq!(none.config().unwrap_err()[0].key, "connected");
    }

    #[test]
    fn whoever_watches_can_stop_it() {
        let outcome = tiny().run(&mut |_, _, _| ControlFlow::Break(())).unwrap();
        assert!(outcome.is_interrupted && !outcome.is_done);
    }
}
