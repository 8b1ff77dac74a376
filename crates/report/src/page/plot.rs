//! A plot as data: what is drawn, not how.
//!
//! The page's script turns this into a chart in the reader's colours. Here the data is made fit to
//! be drawn: what has no place on the axes is left out, and long series are thinned to what a
//! screen can show without losing a peak.

use serde_json::{Value, json};

use crate::Unit;

/// Points kept of one series. Our choice: as many as a wide plot has pixels.
const POINTS_MAX: usize = 1000;

/// A chart.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// Below the title: what to see, what was left out; may be empty.
    pub note: String,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// What is drawn, first first in the legend.
    pub series: Vec<PlotSeries>,
}

/// One axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// What it shows, without unit.
    pub label: String,
    /// The unit of the values.
    pub unit: Unit,
    /// How values lie along it.
    pub scale: Scale,
}

/// How values lie along an axis.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Scale {
    /// Evenly, from zero.
    #[default]
    Linear,
    /// By their logarithm; values of zero and below are left out.
    Log,
    /// Named places; a value is an index.
    Named(Vec<String>),
}

/// One curve, set of points or set of bars.
#[derive(Clone, Debug, Default)]
pub struct PlotSeries {
    /// In the legend.
    pub name: String,
    /// Horizontal and vertical value.
    pub points: Vec<(f64, f64)>,
    /// Lowest and highest vertical value at each point, for error bars; or empty.
    pub intervals: Vec<(f64, f64)>,
    /// How far each point is to be taken as it stands; or empty: all of them are.
    pub marks: Vec<Mark>,
    /// How it is drawn.
    pub style: SeriesStyle,
    /// Which colour of the palette. `None`: by the series' place in the plot; published points and
    /// bounds then have the colour of the text. Series that belong together share one.
    pub hue: Option<usize>,
}

/// How far a point is to be taken as it stands. All but the first are drawn hollow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mark {
    /// It is what it says.
    #[default]
    Exact,
    /// The figure is known to be no less.
    AtLeast,
    /// The figure is known to be no more.
    AtMost,
    /// Of a run that was offered more than it carried: times grow with its length.
    Saturated,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SeriesStyle {
    /// A vertical line at each point, whatever its height: something happened.
    Event,
    /// A line; with marks while the points are few.
    #[default]
    Line,
    /// A dashed line.
    Dashed,
    /// A dotted line.
    Dotted,
    /// A line that keeps each value until the next.
    Steps,
    /// Marks alone.
    Points,
    /// A line from each point of even place to the one after it, and from there none: what lasted from when to when, who
    /// belongs to whom.
    Segments,
    /// Hollow marks: somebody else's figures beside ours.
    Published,
    /// Bars; several such series are stacked.
    Bars,
    /// A level that is not to be crossed: a dashed line right across at the height of the first
    /// point.
    Bound,
}

impl Axis {
    /// An evenly divided axis from zero.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Log }
    }

    /// An axis of named places.
    pub fn named(label: impl Into<String>, names: Vec<String>) -> Self {
        Self { label: label.into(), unit: Unit::Count, scale: Scale::Named(names) }
    }

    /// Whether `value` has a place on it.
    pub(crate) fn holds(&self, value: f64) -> bool {
        value.is_finite() && (self.scale != Scale::Log || value > 0.0)
    }

    /// As `charts.js` takes it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let scales: Vec<_> =
            self.unit.scales().iter().map(|&(scale, name)| json!([scale, name])).collect();
        let (kind, names) = match &self.scale {
            Scale::Linear => ("linear", None),
            Scale::Log => ("log", None),
            Scale::Named(names) => ("named", Some(names)),
        };
        json!({
            "label": self.label,
            "kind": kind,
            "names": names,
            "scales": scales,
        })
    }
}

impl Mark {
    /// For the page's script.
    fn word(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::AtLeast => "at least",
            Self::AtMost => "at most",
            Self::Saturated => "saturated",
        }
    }
}

impl PlotSeries {
    /// A series without error bars, in a colour of its own.
    pub fn new(name: impl Into<String>, style: SeriesStyle, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, style, ..Self::default() }
    }

    /// The same series in colour number `hue` of the palette.
    #[must_use]
    pub fn in_hue(self, hue: usize) -> Self {
        Self { hue: Some(hue), ..self }
    }

    /// The points that have a place on both axes, each with its interval, thinned.
    fn drawn(&self, x: &Axis, y: &Axis) -> Vec<Point> {
        let all = self.points.iter().enumerate().map(|(index, &(x, y))| Point {
            x,
            y,
            interval: self.intervals.get(index).copied(),
            mark: self.marks.get(index).copied().unwrap_or_default(),
        });
        let fits = |point: &Point| x.holds(point.x) && y.holds(point.y);
        if self.style == SeriesStyle::Segments {
            let all: Vec<Point> = all.collect();
            let (pairs, _) = all.as_chunks::<2>();
            return pairs.iter().filter(|pair| pair.iter().all(fits)).flatten().copied().collect();
        }
        thin(all.filter(fits).collect(), POINTS_MAX)
    }

    fn to_json(&self, place: usize, x: &Axis, y: &Axis) -> Value {
        let points = self.drawn(x, y);
        let column =
            |get: fn(&Point) -> f64| points.iter().map(|p| rounded(get(p))).collect::<Value>();
        let style = match self.style {
            SeriesStyle::Line => "line",
            SeriesStyle::Dashed => "dashed",
            SeriesStyle::Dotted => "dotted",
            SeriesStyle::Steps => "steps",
            SeriesStyle::Points => "points",
            SeriesStyle::Segments => "segments",
            SeriesStyle::Published => "published",
            SeriesStyle::Bars => "bars",
            SeriesStyle::Bound => "bound",
            SeriesStyle::Event => "event",
        };
        let is_inked =
            matches!(self.style, SeriesStyle::Published | SeriesStyle::Bound | SeriesStyle::Event);
        let hue = if is_inked { self.hue } else { Some(self.hue.unwrap_or(place)) };
        let mut series = json!({
            "name": self.name,
            "style": style,
            "hue": hue,
            "x": column(|p| p.x),
            "y": column(|p| p.y),
        });
        if !self.intervals.is_empty() {
            series["low"] = column(|p| p.interval.map_or(p.y, |(low, _)| low));
            series["high"] = column(|p| p.interval.map_or(p.y, |(_, high)| high));
        }
        if points.iter().any(|point| point.mark != Mark::Exact) {
            series["marks"] = points.iter().map(|point| point.mark.word()).collect();
        }
        series
    }
}

impl Plot {
    /// Whether no series but bounds has a point to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_curve =
            |series: &&PlotSeries| !matches!(series.style, SeriesStyle::Bound | SeriesStyle::Event);
        let curves = self.series.iter().filter(is_curve);
        curves.into_iter().all(|series| series.drawn(&self.x, &self.y).is_empty())
    }

    /// For the page's script.
    pub(super) fn to_json(&self) -> Value {
        let series = self.series.iter().enumerate();
        let series: Vec<_> =
            series.map(|(place, series)| series.to_json(place, &self.x, &self.y)).collect();
        json!({
            "title": self.title,
            "x": self.x.to_json(),
            "y": self.y.to_json(),
            "series": series,
        })
    }
}

/// A point about to be drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Point {
    x: f64,
    y: f64,
    interval: Option<(f64, f64)>,
    mark: Mark,
}

/// At most `limit` of the points, in order: the first, the last, and of each run of neighbours the
/// lowest and the highest, so that no peak is lost.
fn thin(points: Vec<Point>, limit: usize) -> Vec<Point> {
    if points.len() <= limit {
        return points;
    }
    let runs = (limit - 2) / 2;
    let inner = &points[1..points.len() - 1];
    let mut kept = vec![points[0]];
    for run in 0..runs {
        let chunk = &inner[inner.len() * run / runs..inner.len() * (run + 1) / runs];
        let height = |&a: &usize, &b: &usize| chunk[a].y.total_cmp(&chunk[b].y);
        let lowest = (0..chunk.len()).min_by(height).expect("a run has points");
        let highest = (0..chunk.len()).max_by(height).expect("a run has points");
        kept.push(chunk[lowest.min(highest)]);
        if lowest != highest {
            kept.push(chunk[lowest.max(highest)]);
        }
    }
    kept.push(points[points.len() - 1]);
    kept
}

/// Six significant digits: finer than any screen, and half the size in the page.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().expect("a printed number reads back")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: usize, height: impl Fn(usize) -> f64) -> Vec<Point> {
        (0..count)
            .map(|i| Point { x: i as f64, y: height(i), interval: None, mark: Mark::Exact })
            .collect()
    }

    #[test]
    fn thinning_keeps_ends_order_and_every_single_peak() {
        for peak in [1, 777, 49_998] {
            let all = line(50_000, |i| if i == peak { 9.0 } else { (i % 7) as f64 / 10.0 });
            let kept = thin(all.clone(), POINTS_MAX);
            assert!(kept.len() <= POINTS_MAX, "{} points", kept.len());
            assert_eq!((kept[0], kept[kept.len() - 1]), (all[0], all[49_999]));
            assert!(kept.windows(2).all(|pair| pair[0].x < pair[1].x));
            assert!(kept.iter().any(|point| point.y == 9.0), "peak at {peak} lost");
        }
    }

    #[test]
    fn few_points_are_all_kept() {
        for count in [0, 1, 2, 999, 1000] {
            let all = line(count, |i| i as f64);
            assert_eq!(thin(all.clone(), POINTS_MAX), all);
        }
    }

    #[test]
    fn what_has_no_place_on_the_axes_is_left_out() {
        let plot = Plot {
            x: Axis::log("size", Unit::Bytes),
            y: Axis::linear("share", Unit::Share),
            series: vec![PlotSeries::new(
                "a",
                SeriesStyle::Line,
                vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, f64::INFINITY), (4.0, -1.0), (8.0, 0.0)],
            )],
            ..Plot::default()
        };
        let json = plot.to_json();
        assert_eq!(json["series"][0]["x"], json!([4.0, 8.0]));
        assert_eq!(json["series"][0]["y"], json!([-1.0, 0.0]));
        assert!(!plot.is_empty());
    }

    #[test]
    fn segments_stay_in_pairs_however_many() {
        let mut points: Vec<_> = (0..3_000).map(|at| (f64::from(at), f64::from(at % 5))).collect();
        points[7].1 = f64::NAN;
        let series = PlotSeries::new("a", SeriesStyle::Segments, points);
        let json = Plot { series: vec![series], ..Plot::default() }.to_json();
        let x: Vec<f64> = serde_json::from_value(json["series"][0]["x"].clone()).unwrap();
        let expected: Vec<f64> = (0..3_000).filter(|at| at / 2 != 3).map(f64::from).collect();
        assert_eq!(x, expected);
    }

    #[test]
    fn a_bound_alone_is_no_plot() {
        let bound = PlotSeries::new("bound", SeriesStyle::Bound, vec![(0.0, 11.0)]);
        assert!(Plot { series: vec![bound], ..Plot::default() }.is_empty());
    }

    #[test]
    fn numbers_are_short_and_close() {
        for value in [0.0, 1.0 / 3.0, 123_456_789.0, 2.5e-9, -7.0] {
            let error = (rounded(value) - value).abs();
            assert!(error <= value.abs() * 5e-6, "{value} became {}", rounded(value));
        }
        assert_eq!(serde_json::to_string(&rounded(1.0 / 3.0)).unwrap(), "0.333333");
    }
}
