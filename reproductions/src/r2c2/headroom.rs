//! What the bandwidth left free brings and costs (§5.2, Fig. 17).

use report::Unit;
use report::page::{Axis, Block};

use super::racks::{Carried, Case, Rack, carry_longest, long_quotients, losses, quotients};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot};
use crate::{Effort, Failure, Findings, Watch};

/// Parts of a link (§5.2: from none to 20 %; those between are our choice).
const HEADROOMS: [f64; 4] = [0.0, 0.05, 0.1, 0.2];
/// τ in nanoseconds.
const GAP: u64 = 1_000;

/// What runs with some headroom, by its place in [`HEADROOMS`], have of what those without have.
type Quotients = dyn Fn(&[Vec<Carried>], usize) -> Vec<f64>;

/// The place of the reading by which claims are judged.
const LASTING: usize = 1;

/// With more headroom, of what there is with 5 %: the 99th percentile of short flows, and the throughput of long ones.
fn beyond(of: &[Vec<Carried>], index: usize) -> [Vec<f64>; 2] {
    [quotients(&of[index], &of[1], Carried::short_p99), long_quotients(&of[index], &of[1])]
}

/// Whether each further step of headroom costs long flows throughput.
fn penalty(of: &[Vec<Carried>]) -> Measured {
    let mean = |index: usize| Spread::of(&long_quotients(&of[index], &of[0])).mean;
    let means = [1, 2, 3].map(mean);
    let words = means.map(|mean| Unit::Ratio.format(mean)).join(", ");
    Measured::shape(words, Shape::of(means.is_sorted_by(|less, more| less > more)))
}

/// Fig. 17.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig17.claims.toml"));
    let racks = [(Rack::R2c2, ""), (Rack::Lasting, "-lasting"), (Rack::Linked, "-linked")];
    let of_a_rack = |&(rack, _): &(Rack, &str)| {
        let usual = Case::new(rack, GAP);
        HEADROOMS.map(|headroom| Case { headroom, ..usual })
    };
    let mut cases: Vec<Case> = racks.iter().flat_map(of_a_rack).collect();
    let of_claims = Case::new(Rack::Lasting, GAP);
    cases.extend([0.0, 0.05].map(|headroom| Case { headroom, ..of_claims }.longer()));
    let runs = carry_longest(&cases, effort, watch)?;
    let (runs, longer) = runs.split_at(racks.len() * HEADROOMS.len());
    let groups: Vec<&[Vec<Carried>]> = runs.chunks(HEADROOMS.len()).collect();
    let short =
        |of: &[Vec<Carried>], index: usize| quotients(&of[index], &of[0], Carried::short_p99);
    let long = |of: &[Vec<Carried>], index: usize| long_quotients(&of[index], &of[0]);
    let readings = racks.map(|(_, reading)| reading);
    let measured = groups.iter().copied().zip(readings).chain([(longer, "-longer")]);
    for (place, (of, reading)) in measured.enumerate() {
        let mut put = |word: &str, lost: Vec<f64>| {
            sheet.measure(&format!("fig17.{word}{reading}"), Measured::mean(&lost));
        };
        put("short", losses(short(of, 1)));
        put("long", losses(long(of, 1)));
        if place == LASTING {
            // What the text says of more than 5 %.
            for (index, percent) in [(2, 10), (3, 20)] {
                let [fct, rate] = beyond(of, index);
                sheet.measure(&format!("fig17.short-{percent}"), Measured::mean(&fct));
                sheet.measure(&format!("fig17.long-{percent}"), Measured::mean(&rate));
            }
            sheet.measure("fig17.penalty", penalty(of));
        }
    }
    let line = |get: &Quotients| -> Vec<_> {
        let of_a_rack = |(of, (rack, _)): (&&[Vec<Carried>], (Rack, &str))| {
            let points = HEADROOMS.iter().enumerate();
            let points = points.map(|(index, &headroom)| (headroom, Spread::of(&get(of, index))));
            curve(rack.name(), &points.collect::<Vec<_>>())
        };
        groups.iter().zip(racks).map(of_a_rack).collect()
    };
    let x = || Axis::linear("Headroom", Unit::Share);
    let note = "Of that without headroom, seed by seed; bars: least and most over the seeds.";
    let (fct, rate) = ("FCT p99, short flows", "Throughput, long flows");
    let plots = vec![
        plot("Fig. 17a", note, x(), Axis::linear(fct, Unit::Ratio), line(&short)),
        plot("Fig. 17b", note, x(), Axis::linear(rate, Unit::Ratio), line(&long)),
    ];
    let text = "The runs of Figs 10 and 11 with more or less of each link left free.";
    Ok(findings("Headroom", text, vec![Block::Plots(plots)], sheet))
}
