//! Effective iterations and route allocation (§4.B, §4.C; Figs. 8 and 9, Eq. 1).

use kernel::Stream;
use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries, Scale, SeriesStyle};
use scoc::routes::{
    Choice, Shape, allocate, effective_iterations, equation_1, expected_one_round, throughput,
};
use switching::patterns;

use super::SEEDS;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{self, findings};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Fig. 8.
pub(super) fn iterations() -> Findings {
    let mut sheet = Sheet::read(include_str!("../../scoc/fig8.claims.toml"));
    for (id, words) in [("fig8.one-word", 1), ("fig8.two-words", 2), ("fig8.eight-words", 8)] {
        sheet.measure(id, Measured::one(effective_iterations(words)));
    }
    let points = (1..=16).map(|words| (words as f64, effective_iterations(words))).collect();
    let plot = Plot {
        title: "Effective iterations".into(),
        note: "Largest of i t / (t + i - 1) over i up to t.".into(),
        x: axis("words of a transfer", Unit::Count, Scale::Linear),
        y: axis("effective iterations", Unit::Count, Scale::Linear),
        series: vec![PlotSeries::new("SCOC", SeriesStyle::Line, points)],
    };
    let text = "A packet asks in every cycle until it is served, so retries are iterations that \
                cost idle cycles, fewer in proportion the longer the packet.";
    findings("Effective iterations", text, vec![Block::Plots(vec![plot])], sheet)
}

fn axis(label: &str, unit: Unit, scale: Scale) -> Axis {
    Axis { label: label.into(), unit, scale }
}

/// Permutations behind each mean (the paper: 20,000), divided over the seeds.
const fn permutations(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 1_000,
        Effort::Full => 20_000,
    }
}

/// Rounds of F that the paper draws.
const ROUNDS: [usize; 3] = [1, 2, 3];
/// Its numbers of middle switches.
const ROUTES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Rounds after which more bring nothing to speak of, beyond those.
const MANY_ROUNDS: usize = 8;
/// Routes for which the paper says that ports do not matter.
const PRACTICAL: usize = 16;

/// What one round of F routes of a permutation, four routes.
fn routed(permute: fn(usize) -> Vec<usize>, each: u64, seed: u64) -> f64 {
    let shape = Shape { ports: 128, routes: 4 };
    let mut source = vec![0; shape.ports];
    for (input, output) in permute(shape.ports).into_iter().enumerate() {
        source[output] = input;
    }
    let once = |order| {
        let mut stream = Stream::new(seed, "reproductions/scoc/of-bits", order);
        let routes = allocate(shape, &source, Choice::Blind { rounds: 1 }, &mut stream);
        routes.iter().flatten().count()
    };
    (0..each).map(once).sum::<usize>() as f64 / (each as f64 * shape.ports as f64)
}

/// Of bit reverse and transpose, which spread each group over four: the lower, for each seed.
fn of_bits(each: u64) -> Vec<f64> {
    let least = |seed| {
        let of = |permute| routed(permute, each, seed);
        of(patterns::bit_reverse).min(of(patterns::transpose))
    };
    (1..=SEEDS).map(least).collect()
}

/// Fig. 9 and Eq. 1.
pub(super) fn allocation(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../scoc/fig9.claims.toml"));
    let choices: Vec<Choice> =
        ROUNDS.map(|rounds| Choice::Blind { rounds }).into_iter().chain([Choice::Common]).collect();
    let small = choices
        .iter()
        .flat_map(|&choice| ROUTES.map(|routes| (Shape { ports: 128, routes }, choice)));
    let large = ROUTES.map(|routes| (Shape { ports: 1024, routes }, Choice::Blind { rounds: 1 }));
    let many = (Shape { ports: 128, routes: 4 }, Choice::Blind { rounds: MANY_ROUNDS });
    let points: Vec<_> = small.chain(large).chain([many]).collect();
    let each = permutations(effort) / SEEDS;
    let jobs = with_seeds(&points, SEEDS);
    let found = spread(&jobs, watch, |&((shape, choice), seed), _| {
        Ok(throughput(shape, choice, each, seed))
    })?;
    let of = |shape: Shape, choice: Choice| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((point, _), _)| *point == (shape, choice)).map(|(_, &share)| share).collect()
    };
    let at = |ports, routes, rounds| of(Shape { ports, routes }, Choice::Blind { rounds });
    for (id, rounds) in [("one-round", 1), ("two-rounds", 2), ("three-rounds", 3)] {
        sheet.measure(&format!("fig9.{id}"), Measured::mean(&at(128, 4, rounds)));
    }
    let more = at(128, 4, MANY_ROUNDS).into_iter().zip(at(128, 4, 3));
    let gain: Vec<f64> = more.map(|(many, three)| many - three).collect();
    sheet.measure("fig9.more-rounds", Measured::mean(&gain));
    sheet.measure("fig9.of-bits", Measured::mean(&of_bits(each)));
    sheet.measure("fig9.one-route", Measured::smallest(&at(128, 1, 1)));
    sheet.measure("fig9.all-routes", Measured::smallest(&at(128, 128, 1)));
    let mean = |ports, routes| Spread::of(&at(ports, routes, 1)).mean;
    let practical = ROUTES.iter().filter(|&&routes| routes <= PRACTICAL);
    let difference = practical.map(|&routes| (mean(1024, routes) - mean(128, routes)).abs());
    sheet.measure("fig9.ports", Measured::one(difference.fold(0.0, f64::max)));
    let beside = |expected: f64| expected / mean(1024, 4) - 1.0;
    sheet.measure("fig9.equation", Measured::one(beside(equation_1(4))));
    sheet.measure("fig9.ours", Measured::one(beside(expected_one_round(4))));
    let plot = Plot {
        title: "Connections that get a route".into(),
        note: "Random permutations of 128 ports; bars from the smallest to the largest seed."
            .into(),
        x: axis("middle switches m", Unit::Count, Scale::Log),
        y: axis("throughput", Unit::Share, Scale::Linear),
        series: curves(&choices, &of),
    };
    let text = "How many connections of a permutation find a route when outputs pick blindly among \
                their group's (F), so many rounds, or among those that both ends have (F′).";
    Ok(findings("Route allocation", text, vec![Block::Plots(vec![plot])], sheet))
}

fn curves(choices: &[Choice], of: &dyn Fn(Shape, Choice) -> Vec<f64>) -> Vec<PlotSeries> {
    let name = |choice: &Choice| match choice {
        Choice::Blind { rounds } => format!("F, k = {rounds}"),
        Choice::Common => "F′".into(),
    };
    let curve = |choice: &Choice| {
        let spread = |routes| Spread::of(&of(Shape { ports: 128, routes }, *choice));
        drawing::curve(name(choice), &ROUTES.map(|routes| (routes as f64, spread(routes))))
    };
    let line = |name: &str, of: fn(usize) -> f64| {
        let points = ROUTES.iter().map(|&routes| (routes as f64, of(routes))).collect();
        PlotSeries::new(name, SeriesStyle::Line, points)
    };
    let equations =
        [line("Eq. 1", equation_1), line("our expectation for k = 1", expected_one_round)];
    choices.iter().map(curve).chain(equations).collect()
}
