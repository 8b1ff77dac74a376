//! One memcached client and its server beside hosts that send to the client: the runs.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::incast;
use super::super::racks::{LINE, LOST, NODES, Ran, at_ingress, goodput_between};
use super::super::rpcs::{Calls, Latencies};
use super::super::traces::WINDOW_MOST;
use crate::runs::{ScenarioFile, find_number, number, run_nth};
use crate::spread::Pulse;
use crate::{Effort, Failure};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/pl2/memcached.toml",
    text: include_str!("../../../pl2/memcached.toml"),
};

/// Hosts that send to the client, in the order in which they join in: memcached's own first (§6.2.1).
pub(super) const SENDERS: [u32; 4] = [5, 4, 3, 2];
/// The scenario's `[[fabric]]` entries.
pub(super) const NAMES: [&str; 2] = ["PL2", "Without PL2"];
pub(super) const PL2: usize = 0;
pub(super) const CUBIC: usize = 1;
/// Requests that the scenario's client may send: more than it can.
const ROUNDS: u64 = 1_000_000;
/// What the background of one host made on the testbed, in bit/s (§6.2.1).
const HALF: f64 = 50e9;
/// Somewhat less than that, which is about half of the line as well (our choice).
const NEARLY_HALF: f64 = 45e9;
/// What datagrams of all hosts together come to where they are little more than a port carries, 95.7 Gbps, in bit/s of
/// payload (chosen so that calls come as often as published).
const LITTLE_MORE: f64 = 112e9;
/// Ten datagrams of one packet each, of 1,500 B less the headers of IP and UDP (our choice: few beside what a port
/// holds, and a tenth of the flows that single ones would be).
const DATAGRAMS: &str = "14720 B";

/// What the background speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Background {
    Tcp,
    Udp,
}

/// A run but for its seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Case {
    fabric: usize,
    background: Background,
    /// How many hosts send.
    hosts: usize,
    variant: Variant,
    /// How long a run is, and when memcached begins.
    milliseconds: u64,
    start: u64,
    faster: incast::Faster,
}

/// What else a run varies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::pl2) enum Variant {
    /// Nothing.
    Usual,
    /// Values of 1 KiB.
    Small,
    /// CUBIC of RFC 9438, with Linux's time-outs.
    Linux,
    /// Counters that know nothing of queues.
    Ingress,
    /// Grants that count as current for two usual exchanges.
    Brief,
    /// Acknowledgments that go without reservation.
    Unreserved,
    /// Windows of CUBIC that are all that receivers allow at first.
    FullWindows,
    /// So many flows a host instead of twelve.
    Flows(u64),
    /// Hosts that send 50 Gbps of long messages, which come at random, instead of all they can (§6.1: "long running
    /// background flows"; 1 MB is our choice).
    Half,
    /// The same, 45 Gbps of them.
    NearlyHalf,
    /// The same as [`Self::Half`], and exchanges that cost the host nothing.
    HalfFreeExchanges,
    /// Messages of the same size, one every 160 µs: 50 Gbps.
    HalfEven,
    /// Hosts whose datagrams come ten at a time, at random, 50 Gbps of them, instead of all that they can send.
    Paced,
    /// The same, a sixth more of them in all than the port carries, from however many hosts.
    LittleMore,
    /// Threads that do nothing but send.
    Free,
    /// Exchanges that cost the host nothing.
    FreeExchanges,
    /// Slots that hold a grant besides the packet.
    Grants,
    /// Bursts of so many packets at the most.
    Bursts(u32),
    /// The same, and threads that do nothing but send.
    FreeBursts(u32),
}

impl Case {
    pub(super) fn new(fabric: usize, background: Background, hosts: usize, effort: Effort) -> Self {
        // Windows of CUBIC have filled the port by then; datagrams fill queues at once.
        let start = match (background, fabric) {
            (Background::Udp, _) => 1,
            (Background::Tcp, PL2) => 20,
            (Background::Tcp, _) if effort == Effort::Full => 500,
            (Background::Tcp, _) => 250,
        };
        // Calls that wait for time-outs take hundreds of milliseconds, and beside datagrams of four hosts
        // seconds.
        let quick = match (fabric, background, hosts) {
            (CUBIC, Background::Udp, 4) => 3_000,
            (CUBIC, Background::Udp, 2 | 3) => 800,
            (CUBIC, Background::Tcp, _) => 310,
            _ => 60,
        };
        let times = if effort == Effort::Full { 4 } else { 1 };
        let variant = Variant::Usual;
        let (milliseconds, faster) = (quick * times, Self::faster(effort));
        Self { fabric, background, hosts, variant, milliseconds, start, faster }
    }

    /// How much faster CUBIC's clock goes than VMA's: so little that losses, which come faster with it, leave the
    /// mean call as it is.
    fn faster(effort: Effort) -> incast::Faster {
        incast::Faster(if effort == Effort::Full { 10 } else { 20 })
    }

    /// The same with something else varied.
    pub(super) fn varied(self, variant: Variant) -> Self {
        Self { variant, ..self }
    }

    /// The same for so long.
    pub(super) fn lasting(self, milliseconds: u64) -> Self {
        Self { milliseconds, ..self }
    }

    /// The same from its beginning on, CUBIC's clock being so much faster than VMA's.
    pub(super) fn begun(self, faster: incast::Faster) -> Self {
        Self { start: 0, faster, ..self }
    }

    /// Size of a value in bytes.
    fn value(&self) -> u64 {
        if self.variant == Variant::Small { 1024 } else { 4096 }
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let classes = if self.background == Background::Udp { json!([1]) } else { json!([]) };
        let mut parts = vec![json!({
            "kind": "requests", "clients": 1, "servers": 1,
            "request": { "kind": "fixed", "size": "64 B" },
            "response": { "kind": "fixed", "size": format!("{} B", self.value()) },
            "service_time": "8.5 us", "outstanding": 1, "rounds": ROUNDS,
            "start": format!("{} ms", self.start),
        })];
        parts.extend(self.background());
        let mut settings = vec![
            ("workload.parts", json!(parts)),
            ("run.flows", json!(2 * ROUNDS)),
            ("run.time", json!(format!("{} ms", self.milliseconds))),
            ("fabric.0.transport.datagram_classes", classes.clone()),
            ("fabric.1.transport.datagram_classes", classes),
        ];
        // Beside datagrams nothing but time-outs matters, which are what they are.
        if self.background == Background::Tcp && self.variant != Variant::Linux {
            settings.extend(self.faster.settings([
                "fabric.1.transport.stream.clock.tick",
                "fabric.1.transport.stream.rto_min",
                "fabric.1.transport.stream.stream.rto_initial",
                "fabric.1.transport.stream.stream.ack_delay",
            ]));
        }
        match self.variant {
            Variant::Usual
            | Variant::Small
            | Variant::Flows(_)
            | Variant::Half
            | Variant::NearlyHalf
            | Variant::HalfEven
            | Variant::Paced
            | Variant::LittleMore => {}
            Variant::Linux => {
                let usual = json!({
                    "header": "78 B", "mtu": "1538 B", "timestamps": false, "ack_segments": 2,
                    "ack_delay": "100 ms", "handshake": false, "rto_initial": "200 ms",
                });
                settings.push(("fabric.1.transport.stream", json!({ "stream": usual })));
            }
            Variant::Ingress => settings.push(at_ingress("fabric.0.switch.decrement")),
            Variant::Brief => settings.push(("fabric.0.unsolicited_age", json!("4.1 us"))),
            Variant::Unreserved => {
                settings.push(("fabric.0.acknowledgments", json!("unreserved")));
            }
            Variant::FullWindows => {
                let key = "fabric.1.transport.stream.stream.initial_window";
                settings.push((key, json!(WINDOW_MOST)));
            }
            Variant::Free => settings.extend(incast::free()),
            Variant::FreeExchanges | Variant::HalfFreeExchanges => {
                settings.push(incast::free_exchanges());
            }
            Variant::Grants => {
                settings.push(("fabric.0.slot", json!(super::super::SLOT_WITH_GRANT)))
            }
            Variant::Bursts(packets) => settings.push(("fabric.0.burst_packets", json!(packets))),
            Variant::FreeBursts(packets) => {
                settings.push(("fabric.0.burst_packets", json!(packets)));
                settings.extend(incast::free());
            }
        }
        settings
    }

    /// What the hosts in the background send.
    fn background(&self) -> Option<Value> {
        let pattern = json!({ "kind": "gather", "senders": SENDERS[..self.hosts] });
        if self.hosts == 0 {
            return None;
        }
        let at_random = |size: &str, together: f64| {
            json!({
                "kind": "poisson", "class": 1, "pattern": pattern,
                "sizes": { "kind": "fixed", "size": size },
                "load": together / (LINE * NODES),
            })
        };
        let of_each = |rate: f64| rate * self.hosts as f64;
        let bulk = |size: &str, rounds: u64, period: &str| {
            json!({
                "kind": "bulk", "size": size, "class": 1, "pattern": pattern,
                "timing": { "rounds": rounds, "period": period },
            })
        };
        Some(match self.variant {
            Variant::Half | Variant::HalfFreeExchanges => at_random("1 MB", of_each(HALF)),
            Variant::NearlyHalf => at_random("1 MB", of_each(NEARLY_HALF)),
            Variant::Paced => at_random(DATAGRAMS, of_each(HALF)),
            Variant::LittleMore => at_random(DATAGRAMS, LITTLE_MORE),
            Variant::HalfEven => bulk("1 MB", self.milliseconds * 1_000 / 160, "160 us"),
            Variant::Flows(flows) => bulk("100 GB", flows, "1 ns"),
            _ => bulk("100 GB", 12, "1 ns"),
        })
    }

    pub(super) fn run(&self, seed: u64, pulse: &mut Pulse<'_>) -> Result<Carried, Failure> {
        self.as_run().carry(&self.settings(), seed, pulse)
    }

    /// How long a run is.
    pub(super) fn seconds(&self) -> f64 {
        self.as_run().seconds()
    }

    /// What the run comes to until each of these instants, in seconds.
    pub(super) fn course(
        &self,
        until: &[f64],
        seed: u64,
        pulse: &mut Pulse<'_>,
    ) -> Result<Vec<Moment>, Failure> {
        let run = self.as_run();
        let (result, calls) = run.result(&self.settings(), seed, pulse)?;
        let moment = |&to: &f64| {
            let Carried { calls, background, .. } = run.carried(&result, &calls, to);
            Moment { background, rate: calls.rate, p99: calls.quantile(0.99) }
        };
        Ok(until.iter().map(moment).collect())
    }

    fn as_run(&self) -> Run {
        let Self { fabric, milliseconds, start, .. } = *self;
        Run { file: FILE, fabric, value: self.value(), milliseconds, start }
    }
}

/// A scenario whose first flows are memcached's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) file: ScenarioFile,
    /// Which of its `[[fabric]]` entries.
    pub(super) fabric: usize,
    /// Size of a value in bytes.
    pub(super) value: u64,
    /// How long the run is, and from when it counts.
    pub(super) milliseconds: u64,
    pub(super) start: u64,
}

impl Run {
    /// Runs it with `settings`, among which are those of its length.
    pub(super) fn carry(
        &self,
        settings: &[(&'static str, Value)],
        seed: u64,
        pulse: &mut Pulse<'_>,
    ) -> Result<Carried, Failure> {
        let (result, calls) = self.result(settings, seed, pulse)?;
        Ok(self.carried(&result, &calls, self.seconds()))
    }

    fn result(
        &self,
        settings: &[(&'static str, Value)],
        seed: u64,
        pulse: &mut Pulse<'_>,
    ) -> Result<(Ran, Calls), Failure> {
        let scenario = self.file.with(settings, seed)?;
        let mut calls = Calls::new(2 * ROUNDS);
        let result = Ran::of(run_nth(&scenario, self.fabric, &mut calls, pulse)?);
        Ok((result, calls))
    }

    fn seconds(&self) -> f64 {
        self.milliseconds as f64 * 1e-3
    }

    /// What it came to until `to` seconds.
    fn carried(&self, result: &Ran, calls: &Calls, to: f64) -> Carried {
        let from = self.start as f64 * 1e-3;
        let calls = calls.between(from, to);
        let last = if to < self.seconds() { to } else { f64::INFINITY };
        let own = calls.rate * self.value as f64 * 8.0;
        Carried {
            background: goodput_between(result, from, last) - own,
            own,
            calls,
            drops: find_number(result, LOST).unwrap_or_else(|| number(result, "drops")),
        }
    }
}

/// What a run has come to until some instant: the background in bit/s, calls a second, and their 99th percentile in
/// seconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Moment {
    pub(super) background: f64,
    pub(super) rate: f64,
    pub(super) p99: f64,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Carried {
    pub(super) calls: Latencies,
    /// Payload of memcached and of the background, in bit/s.
    pub(super) own: f64,
    pub(super) background: f64,
    /// Packets, in all of the run.
    pub(super) drops: f64,
}
