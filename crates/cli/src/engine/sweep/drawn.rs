//! Figures of a sweep: any key of the summary over an axis of the grid, or over another key.

use std::path::{Path, PathBuf};

use kernel::{Bytes, Rate, Span};
use rack::results::Figure;
use report::page::{Axis as PlotAxis, Mark, Plot, PlotSeries, Scale, SeriesStyle};
use report::summary::{figure, interval, label};
use report::{FileError, Unit, figures, write_atomically};
use scenario::{BadInput, Located};
use serde_json::Value;

use super::files::FIGURES;
use super::{Axis, Mean, Swept};

/// What is drawn of a sweep, beside what is always.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Drawing {
    /// Keys of the summary, such as `slowdown.all.p99`: a figure each, and one of all side by side.
    pub keys: Vec<String>,
    /// A key of the grid or of the summary. Default: the first of the grid.
    pub over: Option<String>,
    /// Whether values along the horizontal axis lie by their logarithm.
    pub log_x: bool,
    /// Whether those along the vertical axis do.
    pub log_y: bool,
}

/// Hues of the palette: lines beyond are dashed, so that no two look alike.
const HUES: usize = 8;

/// Figures by their names as files.
type Figures = Vec<(String, Vec<Plot>)>;

/// The figures of `drawing`, by their names as files.
///
/// # Errors
/// Which keys no summary has, with those that are like them.
pub fn draw(swept: &Swept, drawing: &Drawing) -> Result<Figures, BadInput> {
    let (figures, problems) = draw_what_is_there(swept, drawing);
    BadInput::unless_empty(problems)?;
    Ok(figures)
}

/// The figures of those keys that some summary has, and what is wrong with the others.
pub(super) fn draw_what_is_there(swept: &Swept, drawing: &Drawing) -> (Figures, Vec<Located>) {
    let means = swept.means();
    let over =
        drawing.over.as_deref().or(swept.axes_of_means().first().map(|axis| axis.key.as_str()));
    let over = over.unwrap_or(FABRIC);
    let is_axis = over == FABRIC || swept.axes_of_means().iter().any(|a| a.key == over);
    let is_figure = |key: &str| {
        means.iter().filter_map(|mean| mean.summary.as_ref()).any(|summary| has(summary, key))
    };
    let (mut keys, unknown): (Vec<&str>, Vec<&str>) =
        drawing.keys.iter().map(String::as_str).partition(|key| is_figure(key));
    let mut problems: Vec<_> =
        unknown.into_iter().map(|key| no_number(swept, "--plot", key)).collect();
    if !is_axis && !is_figure(over) {
        problems.push(no_number(swept, "--over", over));
        keys.clear();
    }
    let plot = |key: &str| plot(swept, &means, key, over, drawing);
    let mut all: Figures =
        keys.into_iter().map(|key| (file_name(key, over), vec![plot(key)])).collect();
    if all.len() > 1 {
        let together = all.iter().flat_map(|(_, plots)| plots.clone()).collect();
        all.push(("overview".into(), together));
    }
    (all, problems)
}

fn no_number(swept: &Swept, option: &str, key: &str) -> Located {
    let hint = scenario::suggest(key, &known_keys(swept));
    let message = format!("no summary of this sweep has such a number; {hint}");
    Located::whole(&format!("{option} {key}"), message)
}

/// Writes figures as SVG and PDF into `folder`; the names of the files.
///
/// # Errors
/// When they cannot be written.
pub(super) fn write(
    folder: &Path,
    drawn: &[(String, Vec<Plot>)],
) -> Result<Vec<PathBuf>, FileError> {
    let other = |source| FileError::new(folder, source);
    let mut written = Vec::new();
    if !drawn.is_empty() {
        std::fs::create_dir_all(folder).map_err(other)?;
    }
    for (name, plots) in drawn {
        let svg = figures::svg(plots);
        let pdf = figures::pdf(plots);
        for (ending, bytes) in [("svg", svg.as_bytes()), ("pdf", &pdf)] {
            let path = folder.join(format!("{name}.{ending}"));
            write_atomically(&path, bytes)?;
            written.push(path);
        }
    }
    Ok(written)
}

/// What stands for an axis where the grid has none: the fabrics.
pub(super) const FABRIC: &str = "fabric";

fn file_name(key: &str, over: &str) -> String {
    let name = if over == FABRIC { key.to_string() } else { format!("{key}-over-{over}") };
    crate::engine::slug(&name)
}

fn has(summary: &Value, key: &str) -> bool {
    figure(summary, key).number().is_some()
}

/// The keys of numbers in the summaries, for suggestions.
fn known_keys(swept: &Swept) -> Vec<String> {
    let mut keys = Vec::new();
    let first = swept.points.iter().find_map(|point| point.outcome.summary());
    let mut walk = vec![(String::new(), first)];
    while let Some((path, value)) = walk.pop() {
        match value {
            Some(Value::Object(table)) => walk.extend(table.iter().rev().map(|(key, value)| {
                (if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, Some(value))
            })),
            Some(Value::Number(_)) => keys.push(path),
            _ => {}
        }
    }
    keys
}

/// Whether anything has run with this value of an axis.
fn has_run(means: &[Mean], axis: usize, value: &str) -> bool {
    means.iter().any(|mean| mean.summary.is_some() && mean.settings[axis] == value)
}

/// One figure: a line for each fabric and combination of the other settings. What is the same wherever it
/// is looked at is a bar for each of them.
pub(super) fn plot(
    swept: &Swept,
    means: &[Mean],
    key: &str,
    over: &str,
    drawing: &Drawing,
) -> Plot {
    let axes = swept.axes_of_means();
    let position = axes.iter().position(|axis| axis.key == over);
    let places =
        position.map(|index| Places::of(axes[index], |value| has_run(means, index, value)));
    let mut lines: Vec<PlotSeries> = Vec::new();
    for mean in means {
        let Some(summary) = &mean.summary else { continue };
        let line = line_of(&mut lines, &name(mean, &axes, over));
        let x = match (&places, position) {
            (Some(places), Some(index)) => places.at(&mean.settings[index]),
            _ if over == FABRIC => Some(0.0),
            _ => figure(summary, over).number(),
        };
        let found = figure(summary, key);
        let (Some(x), Some(y)) = (x, found.number()) else { continue };
        line.points.push((x, y));
        line.intervals.push(interval(summary, key).unwrap_or((y, y)));
        line.marks.push(mark(summary, key, found));
    }
    for line in &mut lines {
        if line.intervals.iter().all(|(low, high)| low == high) {
            line.intervals.clear();
        }
    }
    let unit = Unit::of_key(key);
    let title = label(key);
    let notes = note(&lines);
    let is_level = |line: &PlotSeries| {
        line.intervals.is_empty() && line.points.windows(2).all(|pair| pair[0].1 == pair[1].1)
    };
    let is_summary_key = places.is_none() && over != FABRIC;
    if !is_summary_key && lines.iter().all(is_level) {
        return bars(lines, title, unit, notes);
    }
    let log = |wanted: bool, axis: PlotAxis| match axis.scale {
        Scale::Linear if wanted => PlotAxis { scale: Scale::Log, ..axis },
        _ => axis,
    };
    let x = match places {
        Some(places) => places.axis(over),
        None => PlotAxis::linear(label(over), Unit::of_key(over)),
    };
    Plot {
        title: title.clone(),
        note: notes,
        x: log(drawing.log_x, x),
        y: log(drawing.log_y, PlotAxis::linear(title, unit)),
        series: lines,
    }
}

/// A bar for each line, whose figure is the same at all of its points.
fn bars(lines: Vec<PlotSeries>, title: String, unit: Unit, note: String) -> Plot {
    let names = lines.iter().map(|line| line.name.clone()).collect();
    let series = lines.into_iter().enumerate().map(|(at, line)| {
        let points = line.points.first().map(|point| (at as f64, point.1)).into_iter().collect();
        PlotSeries::new(line.name, SeriesStyle::Bars, points).in_hue(at)
    });
    Plot {
        title: title.clone(),
        note,
        x: PlotAxis::named("", names),
        y: PlotAxis::linear(title, unit),
        series: series.collect(),
    }
}

fn line_of<'a>(lines: &'a mut Vec<PlotSeries>, name: &str) -> &'a mut PlotSeries {
    let at = lines.iter().position(|line| line.name == name).unwrap_or_else(|| {
        let hue = lines.len();
        let style =
            if (hue / HUES).is_multiple_of(2) { SeriesStyle::Line } else { SeriesStyle::Dashed };
        lines.push(PlotSeries::new(name, style, Vec::new()).in_hue(hue));
        hue
    });
    &mut lines[at]
}

/// The fabric, and the settings along which the figure does not go.
fn name(mean: &Mean, axes: &[&Axis], over: &str) -> String {
    let others = axes.iter().zip(&mean.settings).filter(|(axis, _)| axis.key != over);
    let others = others.map(|(axis, value)| format!("{} = {value}", axis.key));
    std::iter::once(mean.label.clone()).chain(others).collect::<Vec<_>>().join(", ")
}

fn mark(summary: &Value, key: &str, found: Figure) -> Mark {
    let grows = ["fct.", "slowdown", "goodput."].iter().any(|family| key.starts_with(family));
    match found {
        Figure::AtLeast(_) => Mark::AtLeast,
        Figure::AtMost(_) => Mark::AtMost,
        _ if grows && summary["saturated"] == Value::Bool(true) => Mark::Saturated,
        _ => Mark::Exact,
    }
}

fn note(lines: &[PlotSeries]) -> String {
    let has =
        |wanted: &[Mark]| lines.iter().flat_map(|line| &line.marks).any(|m| wanted.contains(m));
    let parts = [
        (lines.iter().any(|line| !line.intervals.is_empty()), "Bars: 95 % intervals over seeds."),
        (
            has(&[Mark::Saturated]),
            "Hollow: saturated, the figure grows with the length of the run.",
        ),
        (has(&[Mark::AtLeast, Mark::AtMost]), "Hollow with an arrow: only a bound is known."),
    ];
    let parts: Vec<_> = parts.iter().filter(|part| part.0).map(|part| part.1).collect();
    parts.join(" ")
}

/// Where the values of an axis lie.
struct Places {
    values: Vec<String>,
    /// `None`: they are names.
    numbers: Option<(Vec<f64>, Unit)>,
}

impl Places {
    /// The places of the values that are `drawn`. One that could not run is no place, or a misspelt number
    /// would make names of all the others.
    fn of(axis: &Axis, drawn: impl Fn(&str) -> bool) -> Self {
        let values: Vec<String> =
            axis.values.iter().filter(|value| drawn(value)).cloned().collect();
        let all = |read: fn(&str) -> Option<f64>| {
            values.iter().map(|value| read(value)).collect::<Option<Vec<f64>>>()
        };
        let unit = if axis.key.ends_with("load") { Unit::Share } else { Unit::of_key(&axis.key) };
        let numbers = all(|text| text.parse().ok())
            .map(|numbers| (numbers, unit))
            .or_else(|| all(seconds).map(|numbers| (numbers, Unit::Seconds)))
            .or_else(|| all(bytes).map(|numbers| (numbers, Unit::Bytes)))
            .or_else(|| all(bits).map(|numbers| (numbers, Unit::BitsPerSecond)));
        Self { values, numbers }
    }

    fn at(&self, value: &str) -> Option<f64> {
        let index = self.values.iter().position(|known| known == value)?;
        Some(self.numbers.as_ref().map_or(index as f64, |(numbers, _)| numbers[index]))
    }

    fn axis(self, key: &str) -> PlotAxis {
        let title = match key {
            "workload.load" => "Load".into(),
            key => label(key),
        };
        match self.numbers {
            Some((_, unit)) => PlotAxis::linear(title, unit),
            None => PlotAxis::named(title, self.values),
        }
    }
}

fn quoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

fn seconds(text: &str) -> Option<f64> {
    quoted(text).parse::<Span>().ok().map(|span| span.as_seconds())
}

fn bytes(text: &str) -> Option<f64> {
    quoted(text).parse::<Bytes>().ok().map(|bytes| bytes.get() as f64)
}

fn bits(text: &str) -> Option<f64> {
    quoted(text).parse::<Rate>().ok().map(|rate| rate.as_bps() as f64)
}

/// The plots that the page of every sweep has.
pub(super) fn usual(swept: &Swept, means: &[Mean]) -> Vec<Plot> {
    let over = swept.axes_of_means().first().map_or(FABRIC, |axis| axis.key.as_str());
    let plot = |(key, _): &(&str, &str)| plot(swept, means, key, over, &Drawing::default());
    FIGURES.iter().map(plot).filter(|plot| !plot.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, Point};
    use super::*;
    use serde_json::json;

    /// Two fabrics at three loads with two seeds; the second is saturated at the last.
    fn swept() -> Swept {
        let axis = Axis {
            key: "workload.load".into(),
            values: ["0.2", "0.5", "0.8"].map(String::from).to_vec(),
        };
        let mut points = Vec::new();
        for (step, load) in axis.values.iter().enumerate() {
            for (fabric, label) in ["Shoal", "NDP"].into_iter().enumerate() {
                for seed in [1, 2] {
                    let at = (step + 1) as f64 * (fabric + 1) as f64 + seed as f64;
                    let bound = fabric == 1 && step == 2;
                    let mut p99 = json!({ "count": 5, "unfinished": 0, "p99": at });
                    if bound {
                        p99 = json!({ "count": 5, "unfinished": 1, "p99": null, "at_least": { "p99": at } });
                    }
                    let summary = json!({
                        "seed": seed, "event_hash": "00", "saturated": fabric == 1 && step > 0,
                        "slowdown": { "all": p99 },
                        "equipment": { "power_watts": 100.0 * (fabric + 1) as f64 },
                    });
                    points.push(Point {
                        settings: vec![load.clone()],
                        label: label.into(),
                        seed,
                        hash: String::new(),
                        base: String::new(),
                        outcome: Outcome::Done(summary),
                    });
                }
            }
        }
        Swept {
            name: "s".into(),
            axes: vec![axis],
            points,
            directory: PathBuf::new(),
            undrawn: Vec::new(),
        }
    }

    fn drawing(keys: &[&str]) -> Drawing {
        Drawing { keys: keys.iter().map(ToString::to_string).collect(), ..Drawing::default() }
    }

    #[test]
    fn a_line_a_fabric_with_means_and_intervals_over_seeds() {
        let drawn = draw(&swept(), &drawing(&["slowdown.all.p99"])).unwrap();
        assert_eq!(drawn.len(), 1);
        assert_eq!(drawn[0].0, "slowdown.all.p99-over-workload.load");
        let plot = &drawn[0].1[0];
        let names: Vec<_> = plot.series.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["Shoal", "NDP"]);
        // Seeds 1 and 2: the mean is 1.5 above what the setting gives.
        assert_eq!(plot.series[0].points, [(0.2, 2.5), (0.5, 3.5), (0.8, 4.5)]);
        let (low, high) = plot.series[0].intervals[0];
        // Student's t with one degree of freedom is 12.706; the standard error of two values one apart is 1/2.
        assert!(
            (high - 2.5 - 12.706 / 2.0).abs() < 1e-3 && (2.5 - low - 12.706 / 2.0).abs() < 1e-3
        );
        assert_eq!(plot.series[1].marks, [Mark::Exact, Mark::Saturated, Mark::AtLeast]);
        assert_eq!((plot.x.label.as_str(), plot.x.unit), ("Load", Unit::Share));
    }

    #[test]
    fn a_value_that_could_not_run_leaves_the_others_numbers() {
        let mut swept = swept();
        swept.axes[0].values.insert(1, "half".into());
        let refused = Point {
            settings: vec!["half".into()],
            outcome: Outcome::Failed("found the text \"half\"".into()),
            ..swept.points[0].clone()
        };
        swept.points.push(refused);
        let drawn = draw(&swept, &drawing(&["slowdown.all.p99"])).unwrap();
        let plot = &drawn[0].1[0];
        assert_eq!((&plot.x.scale, plot.x.unit), (&Scale::Linear, Unit::Share));
        assert_eq!(plot.series[0].points, [(0.2, 2.5), (0.5, 3.5), (0.8, 4.5)]);
    }

    #[test]
    fn what_no_setting_changes_is_a_bar_a_fabric_and_all_stand_side_by_side() {
        let keys = ["slowdown.all.p99", "equipment.power_watts"];
        let drawn = draw(&swept(), &Drawing { log_y: true, ..drawing(&keys) }).unwrap();
        let names: Vec<_> =
            drawn.iter().map(|(name, plots)| (name.as_str(), plots.len())).collect();
        let expected = [
            ("slowdown.all.p99-over-workload.load", 1),
            ("equipment.power_watts-over-workload.load", 1),
            ("overview", 2),
        ];
        assert_eq!(names, expected);
        assert_eq!(drawn[0].1[0].y.scale, Scale::Log);
        let power = &drawn[1].1[0];
        assert!(power.series.iter().all(|series| series.style == SeriesStyle::Bars));
        let heights: Vec<_> = power.series.iter().map(|series| series.points[0].1).collect();
        assert_eq!(heights, [100.0, 200.0]);
    }

    #[test]
    fn a_figure_goes_over_another_key_of_the_summary() {
        let over = Some("equipment.power_watts".to_string());
        let drawn = draw(&swept(), &Drawing { over, ..drawing(&["slowdown.all.p99"]) }).unwrap();
        let plot = &drawn[0].1[0];
        assert_eq!(plot.series.len(), 6, "a line for each load and fabric: {:?}", plot.series);
        assert_eq!(plot.series[0].points[0].0, 100.0);
        assert_eq!((plot.x.unit, plot.x.label.as_str()), (Unit::Watts, "Power of the network"));
    }

    #[test]
    fn keys_that_no_summary_has_are_told() {
        let bad = draw(&swept(), &drawing(&["slowdown.all.p98", "nodes"])).unwrap_err().to_string();
        assert!(bad.contains("--plot slowdown.all.p98: no summary of this sweep has"), "{bad}");
        assert!(bad.contains("did you mean \"slowdown.all.p99\"?"), "{bad}");
        assert!(bad.contains("--plot nodes: "), "{bad}");
    }

    #[test]
    fn a_key_that_no_summary_has_costs_its_own_figure_alone() {
        let keys = drawing(&["nodes", "slowdown.all.p99"]);
        let (drawn, problems) = draw_what_is_there(&swept(), &keys);
        let alone = draw(&swept(), &drawing(&["slowdown.all.p99"])).unwrap();
        assert_eq!(format!("{drawn:?}"), format!("{alone:?}"));
        assert_eq!(problems.len(), 1, "{problems:?}");
        let over = Drawing { over: Some("nodes".into()), ..keys };
        let (drawn, problems) = draw_what_is_there(&swept(), &over);
        assert_eq!((drawn.len(), problems.len()), (0, 2), "nothing to draw them over");
    }

    #[test]
    fn values_with_units_lie_where_they_should() {
        let axis = |values: &[&str]| Axis {
            key: "fabric.guard".into(),
            values: values.iter().map(ToString::to_string).collect(),
        };
        let places = Places::of(&axis(&["2.5 ns", "'1 us'"]), |_| true);
        assert_eq!((places.at("2.5 ns"), places.at("'1 us'")), (Some(2.5e-9), Some(1e-6)));
        assert_eq!(Places::of(&axis(&["10 KB", "1 MB"]), |_| true).at("1 MB"), Some(1e6));
        assert_eq!(Places::of(&axis(&["10 Gbps", "1 Tbps"]), |_| true).at("1 Tbps"), Some(1e12));
        assert_eq!(Places::of(&axis(&["ecmp", "spray"]), |_| true).at("spray"), Some(1.0));
    }
}
