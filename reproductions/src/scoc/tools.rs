//! What the command computes outside the paper's experiments: route allocation, a switch on a bench of
//! its own, and how fast the switches run.

use kernel::Bytes;
use rack::Problem;
use report::{Cell, Column, ResultsTable, Unit};
use scoc::routes::{Choice, Shape, equation_1, expected_one_round, throughput};
use scoc::{ChipConfig, Config, CrrdTable, FlatTable, HieraTable, OutputQueuedTable, SwitchTable};
use serde_json::json;
use switching::{Arrivals, Bench, Pattern, Phase, Sizes, Traffic, patterns};

/// Algorithms F and F′ (§4.C) on random permutations, beside Eq. 1.
///
/// # Errors
/// Every key that makes no sense.
pub fn routes(
    (ports, routes): (usize, usize),
    rounds: &[usize],
    permutations: u64,
    seed: u64,
) -> Result<ResultsTable, Vec<Problem>> {
    let mut problems = Vec::new();
    let shape = Shape { ports, routes };
    if let Err(message) = shape.check() {
        problems.push(Problem::new("routes", message));
    }
    if permutations == 0 {
        problems.push(Problem::new("permutations", "0; a mean needs at least one"));
    }
    if rounds.contains(&0) {
        problems.push(Problem::new("rounds", "0; an allocation has at least one round"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let columns = [("method", "Method"), ("throughput", "Throughput")];
    let mut table = ResultsTable::new(columns.map(|(key, head)| Column::new(key, head)).to_vec());
    let mut put = |name: String, value: f64| {
        table.push(vec![Cell::text(name), Cell::new(json!(value), Unit::Share)]);
    };
    for &rounds in rounds {
        let found = throughput(shape, Choice::Blind { rounds }, permutations, seed);
        let plural = if rounds == 1 { "" } else { "s" };
        put(format!("F, {rounds} round{plural}"), found);
    }
    put("F′".into(), throughput(shape, Choice::Common, permutations, seed));
    put("Eq. 1: F, 1 round".into(), equation_1(routes));
    put("F, 1 round, many groups".into(), expected_one_round(routes));
    Ok(table)
}

/// What is put on a bench, and what it is fed.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The switch, by its `kind` in scenario files.
    pub switch: String,
    /// Its ports.
    pub ports: u32,
    /// The pattern of traffic, by name.
    pub pattern: String,
    /// Connections `input:output:share` instead of a pattern.
    pub connections: Vec<String>,
    /// Share of the time that lines are busy; 1 is always.
    pub load: f64,
    /// Packets.
    pub packet: Bytes,
    /// Packet times not measured, and measured.
    pub window: (u64, u64),
    /// Seed of all chance.
    pub seed: u64,
}

/// Patterns by name.
const PATTERNS: [&str; 11] = [
    "uniform",
    "diagonal",
    "log-diagonal",
    "partitioned",
    "bit-reverse",
    "bit-complement",
    "shuffle",
    "transpose",
    "random-permutation",
    "unbalanced:SHARE",
    "hot-spot:SHARE",
];
/// Ports of a part of partitioned traffic (§4.E).
const PART: usize = 8;

/// The switches by name, the crossbars with SCOC's speed-up as in §3.A.
fn switch(name: &str) -> Option<SwitchTable> {
    Some(match name {
        "scoc" => SwitchTable::Scoc(ChipConfig::default()),
        "flat" => SwitchTable::Flat(FlatTable::default()),
        "flat-fast" => {
            let port_rate = ChipConfig::default().rate_without_speed_up();
            SwitchTable::Flat(FlatTable { port_rate, ..FlatTable::default() })
        }
        "hiera" => SwitchTable::Hiera(HieraTable::default()),
        "crrd" => SwitchTable::Crrd(CrrdTable::default()),
        "output-queued" => SwitchTable::OutputQueued(OutputQueuedTable {}),
        _ => return None,
    })
}

/// Switches by name.
const SWITCHES: [&str; 6] = ["scoc", "flat", "flat-fast", "hiera", "crrd", "output-queued"];

/// The pattern of this name; the wrong name or a number of ports that it does not go with, in words.
fn pattern(name: &str, ports: usize, seed: u64) -> Result<Pattern, String> {
    let of_bits = |permute: fn(usize) -> Vec<usize>| match ports.is_power_of_two() {
        true => Ok(Pattern::Permutation(permute(ports))),
        false => Err(format!("{name} needs a power of two of ports, not {ports}")),
    };
    let (name, share) = match name.split_once(':') {
        Some((name, share)) => (name, Some(share)),
        None => (name, None),
    };
    let none = || format!("no pattern {name}; there are {}", PATTERNS.join(", "));
    if share.is_some() != matches!(name, "unbalanced" | "hot-spot") {
        return Err(none());
    }
    let share = match share.unwrap_or("0").parse() {
        Ok(share) => share,
        Err(_) => return Err(format!("{name}: no share; expected, for example, {name}:0.05")),
    };
    let pattern = match name {
        "unbalanced" => Pattern::Unbalanced { sink: (0..ports).collect(), share },
        "hot-spot" => Pattern::HotSpot { output: 0, share },
        "uniform" => Pattern::Uniform,
        "diagonal" => Pattern::Diagonal,
        "log-diagonal" => Pattern::LogDiagonal,
        "partitioned" => Pattern::Partitioned(PART),
        "bit-reverse" => of_bits(patterns::bit_reverse)?,
        "bit-complement" => of_bits(patterns::bit_complement)?,
        "shuffle" => of_bits(patterns::shuffle)?,
        "transpose" => of_bits(patterns::transpose)?,
        "random-permutation" => {
            let mut stream = kernel::Stream::new(seed, "scoc/bench/permutation", 0);
            Pattern::Permutation(patterns::random_permutation(ports, &mut stream))
        }
        _ => return Err(none()),
    };
    pattern.check(ports).map(|()| pattern)
}

/// A connection `input:output:share`.
fn connection(text: &str) -> Result<(usize, usize, f64), String> {
    let wrong = || format!("{text} is no connection; expected, for example, 0:8:0.5");
    let parts: Vec<&str> = text.split(':').collect();
    let [input, output, share] = parts[..] else { return Err(wrong()) };
    let port = |text: &str| text.parse().map_err(|_| wrong());
    Ok((port(input)?, port(output)?, share.parse().map_err(|_| wrong())?))
}

impl Trial {
    /// Its traffic.
    fn traffic(&self) -> Result<Traffic, Problem> {
        let ports = self.ports as usize;
        let pattern = if self.connections.is_empty() {
            pattern(&self.pattern, ports, self.seed)
                .map_err(|message| Problem::new("pattern", message))?
        } else {
            let list: Result<Vec<_>, _> =
                self.connections.iter().map(|text| connection(text)).collect();
            list.and_then(|list| Pattern::connections(ports, &list))
                .map_err(|message| Problem::new("connection", message))?
        };
        if !(self.load > 0.0 && self.load <= 1.0) {
            let message = format!("{}; expected a load above 0, at most 1", self.load);
            return Err(Problem::new("load", message));
        }
        let arrivals = match self.load {
            1.0 => Arrivals::Saturated,
            load => Arrivals::Drifting(load),
        };
        let sizes = Sizes::Fixed(self.packet);
        Ok(Traffic { pattern, arrivals, sizes, phase: Phase::Random })
    }

    /// Runs it: throughput, delay and loads as a table of one row.
    ///
    /// # Errors
    /// Every key that makes no sense.
    pub fn run(&self) -> Result<ResultsTable, Vec<Problem>> {
        let mut problems = Vec::new();
        let table = switch(&self.switch);
        if table.is_none() {
            let message = format!("no switch {}; there are {}", self.switch, SWITCHES.join(", "));
            problems.push(Problem::new("switch", message));
        }
        let switch = table.unwrap_or_else(|| Config::default().switch);
        let config =
            Config { nodes: self.ports, segment: self.packet, switch, ..Config::default() };
        let planned = config.plan();
        let named = |problem: Problem| match problem.key.as_str() {
            "nodes" => Problem { key: "ports".into(), ..problem },
            "segment" => Problem { key: "packet".into(), ..problem },
            _ => problem,
        };
        let traffic = match planned {
            Ok(_) => self.traffic().map_err(|problem| problems.push(problem)).ok(),
            Err(ref wrong) => {
                problems.extend(wrong.iter().cloned().map(named));
                None
            }
        };
        if self.window.1 == 0 {
            problems.push(Problem::new("packet-times", "0; something must be measured"));
        }
        match (planned, traffic) {
            (Ok(plan), Some(traffic)) if problems.is_empty() => Ok(self.measure(&plan, traffic)),
            _ => Err(problems),
        }
    }

    fn measure(&self, plan: &scoc::Plan, traffic: Traffic) -> ResultsTable {
        let (switch, line) = plan.switch(self.seed);
        let mut bench = Bench::new(switch, line, traffic, self.seed);
        let packet = line.cycle_from(line.send_time(self.packet));
        let measured = bench.run(self.window.0 * packet, self.window.1 * packet);
        let ports = self.ports as usize;
        let at = |ticks: u64| line.seconds(ticks as f64);
        let cells = [
            ("switch", "Switch", Cell::text(&self.switch)),
            ("ports", "Ports", Cell::new(self.ports, Unit::Count)),
            ("offered", "Offered", Cell::new(json!(self.load), Unit::Share)),
            ("throughput", "Carried", Cell::new(json!(measured.throughput(ports)), Unit::Share)),
            (
                "delay_mean",
                "Delay, mean",
                Cell::new(json!(line.seconds(measured.delay.mean().unwrap_or(0.0))), Unit::Seconds),
            ),
            (
                "delay_p99",
                "Delay, 99 %",
                Cell::new(json!(at(measured.delay.quantile(0.99).unwrap_or(0))), Unit::Seconds),
            ),
            (
                "delay_max",
                "Delay, largest",
                Cell::new(json!(at(measured.delay.max().unwrap_or(0))), Unit::Seconds),
            ),
            ("packets", "Packets", Cell::new(measured.packets, Unit::Count)),
        ];
        let columns = cells.iter().map(|(key, head, _)| Column::new(*key, *head)).collect();
        let mut table = ResultsTable::new(columns);
        table.push(cells.into_iter().map(|(.., cell)| cell).collect());
        table
    }
}

/// A benchmark: a switch under uniform traffic at a load of 0.9, packets of 288 B (§4.E).
#[derive(Clone, Debug)]
pub struct Speed {
    /// `switch-scoc-128`, …
    pub name: String,
    /// Ports of the switch.
    pub ports: u32,
    switch: &'static str,
    /// Packet times: enough for about a second.
    packet_times: u64,
}

/// What a benchmark got done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Cycles of the switch's clock, or its slots.
    pub cycles: u64,
    /// Packets that left.
    pub packets: u64,
}

impl Speed {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let sizes = [(128, 8_000), (512, 1_500)];
        let switches = ["scoc", "flat-fast", "hiera", "crrd", "output-queued"];
        let one = |switch, ports, packet_times| {
            let name = format!("switch-{switch}-{ports}");
            Self { name, ports, switch, packet_times }
        };
        sizes
            .into_iter()
            .flat_map(|(ports, times)| switches.map(|switch| one(switch, ports, times)))
            .collect()
    }

    /// Runs it.
    ///
    /// # Panics
    /// If the model breaks an invariant.
    #[must_use]
    pub fn run(&self) -> Work {
        let switch = switch(self.switch).expect("the benchmarks name switches that there are");
        let config = Config { nodes: self.ports, switch, ..Config::default() };
        let plan = config.plan().expect("the benchmarks' switches are sound");
        let (switch, line) = plan.switch(1);
        let traffic = Traffic {
            pattern: Pattern::Uniform,
            arrivals: Arrivals::Bernoulli(0.9),
            sizes: Sizes::Fixed(config.segment),
            phase: Phase::Random,
        };
        let mut bench = Bench::new(switch, line, traffic, 1);
        let packet = line.cycle_from(line.send_time(config.segment));
        let packets = bench.run(0, self.packet_times * packet).packets;
        Work { cycles: bench.cycle(), packets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial() -> Trial {
        Trial {
            switch: "scoc".into(),
            ports: 32,
            pattern: "uniform".into(),
            connections: Vec::new(),
            load: 0.5,
            packet: Bytes::new(288),
            window: (20, 200),
            seed: 1,
        }
    }

    #[track_caller]
    fn check_refused(trial: &Trial, key: &str, part: &str) {
        let problems = trial.run().unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].key, key, "{problems:?}");
        assert!(problems[0].message.contains(part), "{problems:?}");
    }

    #[test]
    fn a_switch_below_saturation_carries_what_it_is_offered() {
        for switch in SWITCHES {
            let table = Trial { switch: switch.into(), ..trial() }.run().unwrap();
            let carried = table.rows[0][3].value.as_f64().unwrap();
            assert!((carried - 0.5).abs() < 0.05, "{switch}: {carried}");
        }
    }

    #[test]
    fn a_hot_spot_and_unbalanced_traffic_are_patterns_with_a_share() {
        for pattern in ["hot-spot:0.01", "unbalanced:0.5"] {
            let table = Trial { pattern: pattern.into(), ..trial() }.run().unwrap();
            let carried = table.rows[0][3].value.as_f64().unwrap();
            assert!((carried - 0.5).abs() < 0.05, "{pattern}: {carried}");
        }
    }

    #[test]
    fn bad_trials_are_refused_in_words() {
        let rows = ["0:8:0.7", "0:9:0.7"].map(String::from).to_vec();
        let beyond = Trial { connections: rows, ..trial() };
        check_refused(&beyond, "connection", "input 0: its connections ask for 1.400 times");
        let unclear = Trial { connections: vec!["0-8".into()], ..trial() };
        check_refused(&unclear, "connection", "expected, for example");
        check_refused(&Trial { ports: 30, ..trial() }, "ports", "groups of 4 do not divide 30");
        let large = Trial { packet: Bytes::new(321), ..trial() };
        check_refused(&large, "packet", "at most 320 B");
        let odd = Trial { ports: 24, pattern: "transpose".into(), ..trial() };
        check_refused(&odd, "pattern", "power of two");
        for pattern in ["ring", "ring:1", "uniform:1", "hot-spot"] {
            let wrong = Trial { pattern: pattern.into(), ..trial() };
            check_refused(&wrong, "pattern", "there are uniform");
        }
        let beyond = Trial { pattern: "hot-spot:2".into(), ..trial() };
        check_refused(&beyond, "pattern", "2 is no share");
        let unclear = Trial { pattern: "unbalanced:x".into(), ..trial() };
        check_refused(&unclear, "pattern", "expected, for example, unbalanced:0.05");
        check_refused(&Trial { load: 1.5, ..trial() }, "load", "at most 1");
    }

    #[test]
    fn f_comes_between_its_bounds() {
        let table = routes((128, 4), &[1, 2], 200, 1).unwrap();
        let values: Vec<f64> =
            table.rows.iter().map(|row| row[1].value.as_f64().unwrap()).collect();
        let [one, two, common, equation, expected] = values[..] else { panic!("{values:?}") };
        assert!(one < two && two < common, "{values:?}");
        assert!((one - expected).abs() < 0.01 && equation > one, "{values:?}");
        assert_eq!(routes((128, 5), &[1], 1, 1).unwrap_err()[0].key, "routes");
    }
}
