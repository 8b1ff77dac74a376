//! One or two hosts at a TiN (§2, §5.1; X25), with hosts.

use report::Unit;
use serde_json::{Value, json};

use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::runs::{self, Collected, ScenarioFile, number, quantile, run_into};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/aquila/hosts.toml",
    text: include_str!("../../aquila/hosts.toml"),
};
/// TiNs of the scenario's Clique, and of the half one.
const TINS: u64 = 68;
const HALF: u64 = 288;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// Every host sends all it can, to all others in turn by chance.
    Full,
    /// The same in messages of one packet.
    Packets,
    /// The same where a port asks for four times as much before it is there.
    Asking,
    /// Every host sends to one other all it can.
    Permuted,
    /// The same in a Clique with four links between two pods, as much as a NIC takes.
    Wide,
    /// Messages at the same load of a TiN.
    Light,
}

/// A run: hosts of a TiN.
fn measure(
    (what, each): (What, u64),
    effort: Effort,
    seed: u64,
    pulse: &mut crate::spread::Pulse<'_>,
) -> Result<f64, Failure> {
    let times = if effort == Effort::Quick { 1 } else { 4 };
    let mut settings =
        vec![("fabric.hosts_per_tin", json!(each)), ("fabric.nodes", json!(TINS * each))];
    match what {
        What::Full => return sent(each, ("64 KB", &[]), times, seed, pulse),
        What::Packets => return sent(each, ("4 KB", &[]), times, seed, pulse),
        What::Asking => {
            let more = [
                ("fabric.ip.egress_buffer", json!("1 MB")),
                ("fabric.ip.window", json!("256 KiB")),
            ];
            return sent(each, ("64 KB", &more), times, seed, pulse);
        }
        What::Permuted => {}
        What::Wide => {
            settings.push(("fabric.profile", json!("half")));
            settings.push(("fabric.nodes", json!(HALF * each)));
        }
        What::Light => {
            settings.push(("workload", messages(30.0 / each as f64, "4 KB")));
            settings.push(("run.flows", json!(4_000 * times)));
        }
    }
    if what != What::Light {
        settings.push(("workload.size", json!(format!("{} KB", 600 * times))));
    }
    let scenario = FILE.with(&settings, seed)?;
    let mut flows = Collected::default();
    run_into(&scenario, &mut flows, pulse)?;
    Ok(match what {
        What::Light => quantile(&flows.seconds(), 0.5),
        _ => {
            let done = flows.flows.iter();
            let rates: Vec<f64> =
                done.map(|done| done.flow.size.bits() as f64 / done.fct().as_seconds()).collect();
            quantile(&rates, 0.5)
        }
    })
}

/// Messages of one size that come at random, this many Gbps from each host.
fn messages(gbps: f64, size: &str) -> Value {
    json!({
        "kind": "poisson", "load": 1.0, "load_rate": format!("{gbps} Gbps"),
        "sizes": { "kind": "fixed", "size": size },
    })
}

/// What a host delivers where a tenth more than its line is offered, in messages of a size, with `more` settings: from
/// 200 us on, when queues have filled, for 200 us (four times as long for `times` 4). Unit: bit/s.
fn sent(
    each: u64,
    (size, more): (&str, &[(&'static str, Value)]),
    times: u64,
    seed: u64,
    pulse: &mut crate::spread::Pulse<'_>,
) -> Result<f64, Failure> {
    let span = 200 * times;
    let mut until = |us: u64| -> Result<f64, Failure> {
        let mut settings = vec![
            ("fabric.hosts_per_tin", json!(each)),
            ("fabric.nodes", json!(TINS * each)),
            ("workload", messages(110.0 / each as f64, size)),
            ("run.time", json!(format!("{us} us"))),
        ];
        settings.extend_from_slice(more);
        Ok(number(&runs::run(&FILE.with(&settings, seed)?, pulse)?, "bytes.delivered"))
    };
    let bytes = until(200 + span)? - until(200)?;
    Ok(bytes * 8.0 / (span as f64 * 1e-6) / (TINS * each) as f64)
}

/// One and two hosts at a TiN.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/hosts.claims.toml"));
    let both = [What::Full, What::Packets, What::Permuted, What::Light];
    let both = both.map(|what| [(what, 1), (what, 2)]).into_iter().flatten();
    let cases: Vec<_> = both.chain([(What::Asking, 2), (What::Wide, 1)]).collect();
    let jobs = with_seeds(&cases, effort.seeds_of_longest());
    let found = spread(&jobs, watch, |&(case, seed), pulse| measure(case, effort, seed, pulse))?;
    let of = |wanted: (What, u64)| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((case, _), _)| *case == wanted).map(|(_, &value)| value).collect()
    };
    let (one, two) = (of((What::Full, 1)), of((What::Full, 2)));
    sheet.measure("hosts.one", Measured::mean(&one));
    sheet.measure("hosts.two", Measured::mean(&two));
    sheet.measure("hosts.one-packets", Measured::mean(&of((What::Packets, 1))));
    sheet.measure("hosts.two-packets", Measured::mean(&of((What::Packets, 2))));
    sheet.measure("hosts.two-asking", Measured::mean(&of((What::Asking, 2))));
    sheet.measure("hosts.one-permutation", Measured::mean(&of((What::Permuted, 1))));
    sheet.measure("hosts.two-permutation", Measured::mean(&of((What::Permuted, 2))));
    sheet.measure("hosts.one-half", Measured::mean(&of((What::Wide, 1))));
    let later: Vec<f64> =
        of((What::Light, 2)).iter().zip(of((What::Light, 1))).map(|(two, one)| two / one).collect();
    sheet.measure("hosts.latency", Measured::mean(&later));
    let row = |each: u64| -> Vec<Value> {
        let mean = |what| json!(Spread::of(&of((what, each))).mean);
        vec![json!(each), mean(What::Full), mean(What::Permuted), mean(What::Light)]
    };
    let columns = [
        ("hosts", "Hosts of a TiN", Unit::Count),
        ("rate", "A host when all send to all", Unit::BitsPerSecond),
        ("flow", "A host's flow when each sends to one", Unit::BitsPerSecond),
        ("time", "Message of 4 KB at 30 Gbps a TiN, median", Unit::Seconds),
    ];
    let blocks = vec![table("Means over seeds", &columns, vec![row(1), row(2)])];
    let text = "A mini Clique with one or two hosts at each of its 68 TiNs, under Swift: messages of 64 KB to \
                all, a tenth more than the line takes; a permutation of long flows; and messages of 4 KB at the same \
                load of a TiN.";
    Ok(findings("One or two hosts at a TiN", text, blocks, sheet))
}
