//! memcached beside TCP that has just begun, with windows of all that receivers allow (§6.2.1, Figs 3 and 4).
//!
//! Its first packets overflow the port, and most connections wait for a time-out. What a run comes to so depends on how long
//! it is.

use report::Unit;
use report::page::{Axis, Block, Plot};

use super::super::incast::Faster;
use super::cases::{Background, CUBIC, Carried, Case, Moment, PL2, Variant};
use super::{over, p99, rate};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot};
use crate::paper::part;
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Seconds of the longest run, by CUBIC's clock.
const LONGEST: u64 = 30;
/// Lengths of runs that rows tell of, in seconds.
const TOLD: [u64; 3] = [10, 20, 30];

/// What runs of PL2 make, each whole, and what each of CUBIC's has made until each second.
struct Begun {
    pl2: Vec<Carried>,
    cubic: Vec<Vec<Moment>>,
}

impl Begun {
    fn carry(effort: Effort, watch: &mut Watch<'_>) -> Result<Self, Failure> {
        let case = |fabric| Case::new(fabric, Background::Tcp, 4, effort);
        let jobs = |case| with_seeds(&[case], effort.seeds());
        let pl2 = spread(&jobs(case(PL2)), &mut part(watch, 0.0..0.1), |(case, seed), pulse| {
            case.run(*seed, pulse)
        })?;
        let faster = Faster(if effort == Effort::Full { 1 } else { 20 });
        let begun = case(CUBIC)
            .varied(Variant::FullWindows)
            .from_the_beginning(faster)
            .lasting(LONGEST * 1_000 / faster.0);
        let until: Vec<f64> = (1..=LONGEST).map(|second| second as f64 / faster.0 as f64).collect();
        let cubic = spread(&jobs(begun), &mut part(watch, 0.1..1.0), |(case, seed), pulse| {
            case.course(&until, *seed, pulse)
        })?;
        Ok(Self { pl2, cubic })
    }

    /// Of CUBIC's runs until so many seconds, and of PL2's.
    fn with_pl2(
        &self,
        second: u64,
        cubic: impl Fn(&Moment) -> f64,
        pl2: impl Fn(&Carried) -> f64,
        both: impl Fn(f64, f64) -> f64,
    ) -> Vec<f64> {
        let runs = self.cubic_until(second, cubic);
        self.pl2.iter().zip(runs).map(|(run, cubic)| both(pl2(run), cubic)).collect()
    }

    fn cubic_until(&self, second: u64, get: impl Fn(&Moment) -> f64) -> Vec<f64> {
        self.cubic.iter().map(|run| get(&run[second as usize - 1])).collect()
    }

    fn more(&self, second: u64) -> Vec<f64> {
        let background = |run: &Carried| run.background;
        self.with_pl2(second, |moment| moment.background, background, |pl2, cubic| pl2 - cubic)
    }

    fn rates(&self, second: u64) -> Vec<f64> {
        self.with_pl2(second, |moment| moment.rate, rate, |pl2, cubic| pl2 / cubic)
    }

    fn tails(&self, second: u64) -> Vec<f64> {
        self.with_pl2(second, |moment| moment.p99, p99, |pl2, cubic| cubic / pl2)
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
        put("downlink", second, &begun.cubic_until(second, |moment| moment.background));
        put("more", second, &begun.more(second));
        put("rate", second, &begun.rates(second));
        put("p99-cubic", second, &begun.cubic_until(second, |moment| moment.p99));
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
    let cubic = |second| begun.cubic_until(second, |moment| moment.background);
    let pl2 = |_| over(&begun.pl2, |run| run.background);
    vec![
        plot(
            "Background of four hosts",
            note,
            x(),
            Axis::linear("Background", Unit::BitsPerSecond),
            vec![by_length("PL2", &pl2), by_length("CUBIC", &cubic)],
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
