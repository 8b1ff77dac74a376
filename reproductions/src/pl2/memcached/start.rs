//! memcached beside TCP that has just begun, with windows of all that receivers allow (§6.2.1, Figs 3 and 4).
//!
//! Its first packets overflow the port, and most connections wait for a time-out. What a run comes to so depends on how long
//! it is.

use report::Unit;
use report::page::{Axis, Block, Plot};

use super::super::incast::Faster;
use super::cases::{Background, CUBIC, Case, Moment, PL2, Variant};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot};
use crate::paper::part;
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Seconds of the longest run, by CUBIC's clock.
const LONGEST: u64 = 30;
/// Lengths of runs that rows tell of, in seconds.
const TOLD: [u64; 3] = [10, 20, 30];

/// By seed: what a run of PL2 comes to, which is always as fast, and what one of CUBIC has come to after each second.
struct Begun {
    runs: Vec<(Moment, Vec<Moment>)>,
}

impl Begun {
    fn carry(effort: Effort, watch: &mut Watch<'_>) -> Result<Self, Failure> {
        let case = |fabric| Case::new(fabric, Background::Tcp, 4, effort);
        let faster = Faster(if effort == Effort::Full { 1 } else { 20 });
        let begun = case(CUBIC)
            .varied(Variant::FullWindows)
            .begun(faster)
            .lasting(LONGEST * 1_000 / faster.0);
        let seconds: Vec<f64> =
            (1..=LONGEST).map(|second| second as f64 / faster.0 as f64).collect();
        let whole = [case(PL2).seconds()];
        let carry = |case: Case, until: &[f64], watch: &mut Watch<'_>| {
            let jobs = with_seeds(&[case], effort.seeds());
            spread(&jobs, watch, |(case, seed), pulse| case.course(until, *seed, pulse))
        };
        let pl2 = carry(case(PL2), &whole, &mut part(watch, 0.0..0.1))?;
        let cubic = carry(begun, &seconds, &mut part(watch, 0.1..1.0))?;
        Ok(Self { runs: pl2.into_iter().map(|moments| moments[0]).zip(cubic).collect() })
    }

    /// Of what PL2 and CUBIC have come to after so many seconds.
    fn after(&self, second: u64, get: impl Fn(&Moment, &Moment) -> f64) -> Vec<f64> {
        self.runs.iter().map(|(pl2, cubic)| get(pl2, &cubic[second as usize - 1])).collect()
    }

    fn downlink(&self, second: u64) -> Vec<f64> {
        self.after(second, |_, cubic| cubic.background)
    }

    fn rates(&self, second: u64) -> Vec<f64> {
        self.after(second, |pl2, cubic| pl2.rate / cubic.rate)
    }

    fn tails(&self, second: u64) -> Vec<f64> {
        self.after(second, |pl2, cubic| cubic.p99 / pl2.p99)
    }
}

/// What Figs 3 and 4 have beside four hosts, by how long a run is.
pub(in crate::pl2) fn beside_start(
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../../pl2/fig3-start.claims.toml"));
    let begun = Begun::carry(effort, watch)?;
    let mut put = |word: &str, second: u64, runs: &[f64]| {
        sheet.measure(&format!("fig3-start.{word}-{second}"), Measured::mean(runs));
    };
    for second in TOLD {
        put("downlink", second, &begun.downlink(second));
        put("more", second, &begun.after(second, |pl2, cubic| pl2.background - cubic.background));
        put("rate", second, &begun.rates(second));
        put("p99-cubic", second, &begun.after(second, |_, cubic| cubic.p99));
        put("p99-ratio", second, &begun.tails(second));
    }
    let text = "One client asks for values of 4 KiB, one at a time, beside four hosts that each send it 12 TCP flows that \
                never end. Windows of CUBIC are all that receivers allow when they begin, and memcached begins with them.";
    let blocks = vec![Block::Plots(plots(&begun))];
    Ok(findings("memcached beside TCP that has just begun", text, blocks, sheet))
}

/// What a run comes to, by how long it is.
fn plots(begun: &Begun) -> Vec<Plot> {
    let by_length = |name: &str, get: &dyn Fn(u64) -> Vec<f64>| {
        let point = |second: u64| (second as f64, Spread::of(&get(second)));
        curve(name.to_owned(), &(1..=LONGEST).map(point).collect::<Vec<_>>())
    };
    let x = || Axis::linear("A run of", Unit::Seconds);
    let note = "Bars: least and most over the seeds.";
    let pl2 = |second| begun.after(second, |pl2, _| pl2.background);
    vec![
        plot(
            "Background of four hosts",
            note,
            x(),
            Axis::linear("Background", Unit::BitsPerSecond),
            vec![by_length("PL2", &pl2), by_length("CUBIC", &|second| begun.downlink(second))],
        ),
        plot(
            "memcached, PL2 by CUBIC",
            note,
            x(),
            Axis::linear("Ratio", Unit::Ratio),
            vec![
                by_length("Calls a second", &|second| begun.rates(second)),
                by_length("99th percentile, CUBIC by PL2", &|second| begun.tails(second)),
            ],
        ),
    ]
}
