//! Draws plots with plotters.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::{
    BLACK, Cartesian2d, ChartBuilder, ChartContext, Circle, Color, DrawingArea, DrawingBackend,
    IntoDrawingArea, PathElement, Polygon, RGBColor, Rectangle, SVGBackend, ShapeStyle, Text,
    WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, IntoTextStyle, TextStyle, register_font};

use super::FONT;
use super::sheet::{self, Sheet};
use super::ticks::Ruler;
use crate::page::{Mark, Plot, PlotSeries, Scale, SeriesStyle};
use crate::terminal::printable_line;
use crate::units::MISSING;

/// plotters places things at whole pixels. Drawn this much larger, and shown smaller, they lie where they
/// should.
const FINE: i32 = 20;
/// The font by which letters are measured, and those with letters as wide: any other may be wider than its room.
const FAMILY: &str = "Liberation Sans, Arial, Helvetica, sans-serif";
/// The page's colours (`assets/report.css`), which people with any colour vision tell apart.
const HUES: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xb8, 0x57, 0x8a),
    RGBColor(0xc9, 0x87, 0x00),
    RGBColor(0x4a, 0x9f, 0xd1),
    RGBColor(0x7a, 0x6a, 0x2f),
    RGBColor(0x6b, 0x70, 0x77),
];
const GRID: RGBColor = RGBColor(0xe2, 0xe4, 0xe7);
const SOFT: RGBColor = RGBColor(0x5b, 0x62, 0x6a);
/// Sizes in pixels, our choice: as wide as the text of a page of two columns, letters of 8 points there.
const HEIGHT: i32 = 340;
const CURVES_WIDTH: i32 = 430;
const BARS_WIDTH: i32 = 150;
const MARGIN: i32 = 10;
/// Below and left of the axes.
const BELOW: i32 = 44;
const BESIDE: i32 = 60;
/// From one line of a legend to the next, at most.
const ROW: i32 = 19;
/// Characters of a name that are shown.
const NAME_MAX: usize = 36;

type Area<B> = DrawingArea<B, Shift>;
type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<Places, Places>>;
type Pixel = (i32, i32);

/// A ruler as plotters knows it.
struct Places {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Places {
    fn of(ruler: &Ruler) -> Self {
        let ticks = ruler.ticks.iter().map(|tick| tick.0).collect();
        Self { low: ruler.low, high: ruler.high, ticks }
    }
}

impl Ranged for Places {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        from + (f64::from(to - from) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// Drawing into memory with a font that is there.
const DRAWN: &str = "drawing into memory does not fail";

/// Whether a plot is one bar a series: rows beside the legend, not axes.
fn is_bars(plot: &Plot) -> bool {
    let is_bar =
        |series: &PlotSeries| series.style == SeriesStyle::Bars && series.points.len() <= 1;
    matches!(plot.x.scale, Scale::Named(_)) && plot.series.iter().all(is_bar)
}

/// One line of the legend.
struct Name<'a> {
    text: String,
    /// What it is compared by: shown names may be cut.
    name: &'a str,
    look: Look,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    style: SeriesStyle,
    /// `None`: in the colour of the text.
    hue: Option<usize>,
    /// How far to the right of its place, so that intervals of several series at one place are told apart.
    aside: i32,
}

impl Look {
    fn of(place: usize, series: &PlotSeries) -> Self {
        let inked = matches!(
            series.style,
            SeriesStyle::Published | SeriesStyle::Bound | SeriesStyle::Event
        );
        let hue = if inked { series.hue } else { Some(series.hue.unwrap_or(place)) };
        Self { style: series.style, hue, aside: 0 }
    }

    fn colour(self) -> RGBColor {
        self.hue.map_or(RGBColor(0x22, 0x26, 0x2b), |hue| HUES[hue % HUES.len()])
    }

    fn stroke(self, width: f64) -> ShapeStyle {
        self.colour().stroke_width((width * f64::from(FINE)).round() as u32)
    }

    /// Lengths of dash and gap in pixels.
    fn dash(self) -> Option<(i32, i32)> {
        match self.style {
            SeriesStyle::Dashed => Some((6, 4)),
            SeriesStyle::Dotted => Some((2, 3)),
            SeriesStyle::Bound => Some((5, 3)),
            SeriesStyle::Event => Some((2, 3)),
            _ => None,
        }
    }

    fn has_line(self) -> bool {
        !matches!(self.style, SeriesStyle::Points | SeriesStyle::Published | SeriesStyle::Bars)
    }
}

/// The whole document as SVG.
pub(super) fn svg(plots: &[Plot]) -> String {
    let sheet = Contents::new(plots);
    let mut text = String::new();
    sheet.draw(SVGBackend::with_string(&mut text, sheet.size()));
    in_pixels(&text, sheet.width)
}

/// The whole document as PDF.
pub(super) fn pdf(plots: &[Plot]) -> Vec<u8> {
    let sheet = Contents::new(plots);
    let drawn = Rc::new(RefCell::new(String::new()));
    sheet.draw(Sheet::new(sheet.size(), drawn.clone()));
    let drawn = drawn.borrow();
    sheet::document(sheet.size(), FINE.into(), &drawn)
}

/// What a document holds, and its width in pixels.
struct Contents<'a> {
    curves: Vec<&'a Plot>,
    bars: Vec<&'a Plot>,
    names: Vec<Name<'a>>,
    legend: i32,
    width: i32,
}

impl<'a> Contents<'a> {
    fn new(plots: &'a [Plot]) -> Self {
        use_font();
        let (bars, curves): (Vec<&Plot>, Vec<&Plot>) = plots.iter().partition(|plot| is_bars(plot));
        let names = names(curves.iter().chain(&bars).copied());
        let legend = legend_width(&names);
        let parts = curves.len() as i32 * CURVES_WIDTH + bars.len() as i32 * BARS_WIDTH;
        Self { curves, bars, names, legend, width: 2 * MARGIN + parts + legend }
    }

    fn size(&self) -> (u32, u32) {
        ((self.width * FINE) as u32, (HEIGHT * FINE) as u32)
    }

    fn draw<B: DrawingBackend>(&self, backend: B) {
        let root = backend.into_drawing_area();
        root.fill(&WHITE).expect(DRAWN);
        let mut left = MARGIN;
        let mut part = |wide: i32| {
            let area = cut(&root, left, wide);
            left += wide;
            area
        };
        for plot in &self.curves {
            draw_curves(&part(CURVES_WIDTH), plot);
        }
        let rows = Rows::new(self.names.len(), !self.bars.is_empty());
        draw_legend(&part(self.legend), &self.names, &rows);
        for plot in &self.bars {
            draw_bars(&part(BARS_WIDTH), plot, &self.names, &rows);
        }
        root.present().expect(DRAWN);
    }
}

fn cut<B: DrawingBackend>(root: &Area<B>, left: i32, wide: i32) -> Area<B> {
    root.clone().shrink((left * FINE, 0), (wide * FINE, HEIGHT * FINE))
}

/// The document in pixels of its own, however finely it is drawn.
fn in_pixels(text: &str, width: i32) -> String {
    let (fine_width, fine_height) = (width * FINE, HEIGHT * FINE);
    let fine = format!("width=\"{fine_width}\" height=\"{fine_height}\"");
    assert!(text.contains(&fine), "plotters says the size of its document in other words");
    text.replacen(&fine, &format!("width=\"{width}\" height=\"{HEIGHT}\""), 1)
}

/// Tells plotters of the font that it measures by.
fn use_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let known = register_font(FAMILY, FontStyle::Normal, FONT);
        assert!(known.is_ok(), "the font that comes along cannot be read");
    });
}

fn font(size: f64) -> TextStyle<'static> {
    // plotters calls size what a line takes, of which letters have so much.
    (FAMILY, size * 1.24 * f64::from(FINE)).into_text_style(&(1, 1)).color(&BLACK)
}

fn anchored(size: f64, colour: RGBColor, horizontal: HPos) -> TextStyle<'static> {
    let style = TextStyle { color: colour.to_backend_color(), ..font(size) };
    style.pos(Pos::new(horizontal, VPos::Center))
}

/// Each name once, in the order in which they come.
fn names<'a>(plots: impl Iterator<Item = &'a Plot>) -> Vec<Name<'a>> {
    let mut names: Vec<Name<'a>> = Vec::new();
    for plot in plots {
        for (place, series) in plot.series.iter().enumerate() {
            if !series.points.is_empty() && !names.iter().any(|name| name.name == series.name) {
                let shown = printable_line(&series.name);
                let text = if shown.chars().count() > NAME_MAX {
                    shown.chars().take(NAME_MAX - 1).chain(['…']).collect()
                } else {
                    shown.into_owned()
                };
                names.push(Name { text, name: &series.name, look: Look::of(place, series) });
            }
        }
    }
    names
}

/// Pixels of an em in a legend.
const LETTERS: f64 = 11.0;
/// The sample of a line, and the room around it.
const SAMPLE: i32 = 22;

fn legend_width(names: &[Name<'_>]) -> i32 {
    let wide = |name: &Name<'_>| (sheet::text_width(&name.text) * LETTERS).ceil() as i32;
    names.iter().map(wide).max().map_or(0, |wide| wide + SAMPLE + 16)
}

/// Where the rows of the legend, and of bars beside it, lie.
struct Rows {
    top: i32,
    step: i32,
}

impl Rows {
    fn new(count: usize, has_bars: bool) -> Self {
        let room = (HEIGHT - MARGIN - BELOW) * FINE;
        let step = room / count.max(1) as i32;
        let step = if has_bars { step.min(2 * ROW * FINE) } else { step.min(ROW * FINE) };
        Self { top: MARGIN * FINE, step }
    }

    fn middle(&self, row: usize) -> i32 {
        self.top + self.step * row as i32 + self.step / 2
    }
}

fn draw_legend<B: DrawingBackend>(area: &Area<B>, names: &[Name<'_>], rows: &Rows) {
    for (row, name) in names.iter().enumerate() {
        let middle = rows.middle(row);
        let (from, to) = (6 * FINE, (6 + SAMPLE) * FINE);
        if name.look.has_line() {
            line(area, &[(from, middle), (to, middle)], name.look, 1.6);
        }
        if name.look.style == SeriesStyle::Bars {
            let half = 4 * FINE;
            let corners = [(from + half, middle - half), (to - half, middle + half)];
            area.draw(&Rectangle::new(corners, name.look.colour().filled())).expect(DRAWN);
        } else if has_marks(name.look.style) {
            symbol(area, ((from + to) / 2, middle), name.look, Mark::Exact);
        }
        let style = anchored(LETTERS, BLACK, HPos::Left);
        area.draw(&Text::new(name.text.clone(), (to + 6 * FINE, middle), style)).expect(DRAWN);
    }
}

fn draw_bars<B: DrawingBackend>(area: &Area<B>, plot: &Plot, names: &[Name<'_>], rows: &Rows) {
    let value = |name: &Name<'_>| {
        let series = plot.series.iter().find(|series| series.name == name.name)?;
        series.points.first().map(|point| point.1).filter(|value| value.is_finite())
    };
    let most = names.iter().filter_map(value).fold(0.0, f64::max);
    // The value stands behind its bar.
    let room = f64::from((BARS_WIDTH - 66) * FINE);
    for (row, name) in names.iter().enumerate() {
        let middle = rows.middle(row);
        let half = (rows.step * 3 / 10).min(7 * FINE);
        let found = value(name);
        let long =
            found.map_or(0, |value| (value.max(0.0) / most.max(f64::MIN_POSITIVE) * room) as i32);
        if long > 0 {
            let corners = [(0, middle - half), (long, middle + half)];
            area.draw(&Rectangle::new(corners, name.look.colour().filled())).expect(DRAWN);
        }
        let text = found.map_or(MISSING.into(), |value| plot.y.unit.format(value));
        let style = anchored(10.5, SOFT, HPos::Left);
        area.draw(&Text::new(text, (long + 5 * FINE, middle), style)).expect(DRAWN);
    }
    let style = anchored(11.5, BLACK, HPos::Left);
    let below = (HEIGHT - BELOW / 3) * FINE;
    area.draw(&Text::new(shown(&plot.y.label), (0, below), style)).expect(DRAWN);
}

fn shown(text: &str) -> String {
    printable_line(text).into_owned()
}

/// Points that have a place, with their interval and mark.
struct Placed {
    at: (f64, f64),
    interval: Option<(f64, f64)>,
    mark: Mark,
}

/// Both axes of a plot.
struct Frame {
    x: Ruler,
    y: Ruler,
}

impl Frame {
    fn new(plot: &Plot) -> Self {
        let fits = |&(x, y): &(f64, f64)| plot.x.holds(x) && plot.y.holds(y);
        let is_curve =
            |series: &&PlotSeries| !matches!(series.style, SeriesStyle::Event | SeriesStyle::Bound);
        let points = || plot.series.iter().filter(is_curve).flat_map(|series| &series.points);
        let xs: Vec<f64> = points().filter(|point| fits(point)).map(|point| point.0).collect();
        let levels = plot.series.iter().filter(|series| series.style != SeriesStyle::Event);
        let mut ys: Vec<f64> = levels
            .clone()
            .flat_map(|series| &series.points)
            .filter(|point| fits(point))
            .map(|point| point.1)
            .collect();
        // An interval that reaches below what a logarithmic axis has ends at the axis.
        ys.extend(
            levels
                .flat_map(|s| s.intervals.iter().flat_map(|&(low, high)| [low, high]))
                .filter(|value| plot.y.holds(*value)),
        );
        Self { x: Ruler::new(&plot.x, &xs), y: Ruler::new(&plot.y, &ys) }
    }

    fn placed(&self, plot: &Plot, series: &PlotSeries) -> Vec<Placed> {
        let place = |(index, &(x, y)): (usize, &(f64, f64))| {
            let holds = plot.x.holds(x) && (plot.y.holds(y) || series.style == SeriesStyle::Event);
            let y =
                if series.style == SeriesStyle::Event { self.y.low } else { self.y.place(y)? };
            let at = (self.x.place(x)?, y);
            let ends =
                |&(low, high): &(f64, f64)| (self.y.place_within(low), self.y.place_within(high));
            let interval = series.intervals.get(index).map(ends);
            let mark = series.marks.get(index).copied().unwrap_or_default();
            // A place that a list of names lacks.
            let is_on = (self.x.low..=self.x.high).contains(&at.0);
            (holds && is_on).then_some(Placed { at, interval, mark })
        };
        series.points.iter().enumerate().filter_map(place).collect()
    }
}

fn draw_curves<B: DrawingBackend>(area: &Area<B>, plot: &Plot) {
    let frame = Frame::new(plot);
    let chart = axes(area, &frame);
    let intervals = plot.series.iter().filter(|series| !series.intervals.is_empty()).count() as i32;
    let mut next = 0;
    for (place, series) in plot.series.iter().enumerate() {
        let mut look = Look::of(place, series);
        if !series.intervals.is_empty() {
            look.aside = (2 * next + 1 - intervals) * BESIDE_OTHERS / 2;
            next += 1;
        }
        draw_series(area, &chart, &frame, plot, (series, look));
    }
}

fn axes<'a, B: DrawingBackend>(area: &'a Area<B>, frame: &Frame) -> Chart<'a, B> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(MARGIN * FINE)
        .margin_right(MARGIN * FINE)
        .x_label_area_size(BELOW * FINE)
        .y_label_area_size(BESIDE * FINE)
        .build_cartesian_2d(Places::of(&frame.x), Places::of(&frame.y))
        .expect(DRAWN);
    let (x, y) = (&frame.x, &frame.y);
    chart
        .configure_mesh()
        .bold_line_style(GRID.stroke_width(FINE as u32 * 4 / 5))
        .light_line_style(GRID.stroke_width(0))
        .axis_style(SOFT.stroke_width(FINE as u32))
        .set_all_tick_mark_size(4 * FINE)
        .x_labels(x.ticks.len().max(1))
        .y_labels(y.ticks.len().max(1))
        .x_label_formatter(&|place| shown(x.text(*place)))
        .y_label_formatter(&|place| shown(y.text(*place)))
        .x_desc(shown(&x.title))
        .y_desc(shown(&y.title))
        .label_style(font(10.5))
        .axis_desc_style(font(11.5))
        .draw()
        .expect(DRAWN);
    chart
}

fn has_marks(style: SeriesStyle) -> bool {
    !matches!(
        style,
        SeriesStyle::Steps
            | SeriesStyle::Segments
            | SeriesStyle::Event
            | SeriesStyle::Bound
            | SeriesStyle::Bars
    )
}

/// From the interval of one series to that of the next at the same place.
const BESIDE_OTHERS: i32 = 2 * FINE;

/// Lines of at most so many points get a mark at each, as on the page.
const MARKED_POINTS: usize = 40;

fn draw_series<B: DrawingBackend>(
    area: &Area<B>,
    chart: &Chart<'_, B>,
    frame: &Frame,
    plot: &Plot,
    (series, look): (&PlotSeries, Look),
) {
    let placed = frame.placed(plot, series);
    // The chart counts pixels from the corner of the document, the area from its own.
    let (left, top) = area.get_base_pixel();
    let pixel = |at: (f64, f64)| {
        let (x, y) = chart.backend_coord(&at);
        (x - left + look.aside, y - top)
    };
    match look.style {
        SeriesStyle::Event => {
            for point in &placed {
                let ends = [(point.at.0, frame.y.low), (point.at.0, frame.y.high)].map(pixel);
                line(area, &ends, look, 1.2);
            }
            return;
        }
        SeriesStyle::Bound => {
            if let Some(point) = placed.first() {
                let ends = [(frame.x.low, point.at.1), (frame.x.high, point.at.1)].map(pixel);
                line(area, &ends, look, 1.2);
            }
            return;
        }
        SeriesStyle::Segments => {
            for pair in series.points.chunks_exact(2) {
                let alone = PlotSeries { points: pair.to_vec(), ..PlotSeries::default() };
                let ends: Vec<Pixel> =
                    frame.placed(plot, &alone).iter().map(|point| pixel(point.at)).collect();
                line(area, &ends, look, 1.6);
            }
            return;
        }
        SeriesStyle::Bars => {
            for point in &placed {
                let corners = [(point.at.0 - 0.35, frame.y.low), (point.at.0 + 0.35, point.at.1)];
                let corners = corners.map(pixel);
                area.draw(&Rectangle::new(corners, look.colour().filled())).expect(DRAWN);
            }
        }
        _ => {}
    }
    if look.has_line() {
        let mut path: Vec<Pixel> = Vec::new();
        for at in placed.iter().map(|point| pixel(point.at)) {
            if let Some(&(x, _)) = path.last().filter(|_| look.style == SeriesStyle::Steps) {
                path.push((x, at.1));
            }
            path.push(at);
        }
        line(area, &path, look, 1.6);
    }
    for point in &placed {
        if let Some((low, high)) = point.interval {
            whisker(area, pixel((point.at.0, low)), pixel((point.at.0, high)), look);
        }
    }
    if has_marks(look.style) && (!look.has_line() || placed.len() <= MARKED_POINTS) {
        for point in &placed {
            symbol(area, pixel(point.at), look, point.mark);
        }
    }
}

/// A line through `path`, in dashes where its look says so.
fn line<B: DrawingBackend>(area: &Area<B>, path: &[Pixel], look: Look, width: f64) {
    let stroke = look.stroke(width);
    let draw = |path: Vec<Pixel>| area.draw(&PathElement::new(path, stroke)).expect(DRAWN);
    let Some((dash, gap)) = look.dash() else {
        if path.len() > 1 {
            draw(path.to_vec());
        }
        return;
    };
    dashes(path, f64::from(dash * FINE), f64::from(gap * FINE)).into_iter().for_each(draw);
}

/// `path` cut into dashes, which go round its corners.
fn dashes(path: &[Pixel], dash: f64, gap: f64) -> Vec<Vec<Pixel>> {
    let mut all: Vec<Vec<Pixel>> = Vec::new();
    let (mut left, mut is_drawn) = (dash, true);
    for pair in path.windows(2) {
        let [from, to] = [pair[0], pair[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let (wide, high) = (to.0 - from.0, to.1 - from.1);
        let long = wide.hypot(high);
        let mut done = 0.0;
        let at = |done: f64| {
            let share = if long > 0.0 { done / long } else { 1.0 };
            ((from.0 + wide * share).round() as i32, (from.1 + high * share).round() as i32)
        };
        if is_drawn && all.is_empty() {
            all.push(vec![pair[0]]);
        }
        while done + left <= long {
            done += left;
            let place = at(done);
            if is_drawn {
                all.last_mut().expect("a dash is under way").push(place);
            } else {
                all.push(vec![place]);
            }
            is_drawn = !is_drawn;
            left = if is_drawn { dash } else { gap };
        }
        left -= long - done;
        if is_drawn {
            all.last_mut().expect("a dash is under way").push(pair[1]);
        }
    }
    // A corner at which a dash begins or ends stands in it twice.
    all.iter_mut().for_each(Vec::dedup);
    all.retain(|dash| dash.len() > 1);
    all
}

/// An interval: a line with a short one across at each end.
fn whisker<B: DrawingBackend>(area: &Area<B>, low: Pixel, high: Pixel, look: Look) {
    if low == high {
        return;
    }
    let half = 3 * FINE;
    let stroke = look.stroke(1.0);
    let across = |(x, y): Pixel| vec![(x - half, y), (x + half, y)];
    for path in [vec![low, high], across(low), across(high)] {
        area.draw(&PathElement::new(path, stroke)).expect(DRAWN);
    }
}

/// Corners around the middle, in sixteenths of a symbol's radius; none is a circle.
const SYMBOLS: [&[(i32, i32)]; 8] = [
    &[],
    &[(-14, -14), (14, -14), (14, 14), (-14, 14)],
    &[(0, -20), (18, 0), (0, 20), (-18, 0)],
    &[(0, -19), (18, 14), (-18, 14)],
    &[(0, 19), (18, -14), (-18, -14)],
    &[(-18, 0), (14, -18), (14, 18)],
    &[
        (-6, -18),
        (6, -18),
        (6, -6),
        (18, -6),
        (18, 6),
        (6, 6),
        (6, 18),
        (-6, 18),
        (-6, 6),
        (-18, 6),
        (-18, -6),
        (-6, -6),
    ],
    &[(18, 0), (-14, -18), (-14, 18)],
];

/// The mark of a point: hollow where the figure is not to be taken as it stands, with an arrow where it is a
/// bound.
fn symbol<B: DrawingBackend>(area: &Area<B>, (x, y): Pixel, look: Look, mark: Mark) {
    let shape = look.hue.map_or(SYMBOLS[2], |hue| SYMBOLS[hue % SYMBOLS.len()]);
    let radius = FINE * 17 / 5;
    let is_hollow = mark != Mark::Exact || look.style == SeriesStyle::Published;
    let fill = if is_hollow { WHITE.filled() } else { look.colour().filled() };
    let edge = look.stroke(1.2);
    if shape.is_empty() {
        area.draw(&Circle::new((x, y), radius, fill)).expect(DRAWN);
        area.draw(&Circle::new((x, y), radius, edge)).expect(DRAWN);
    } else {
        let corner = |&(dx, dy): &(i32, i32)| (x + dx * radius / 16, y + dy * radius / 16);
        let mut corners: Vec<Pixel> = shape.iter().map(corner).collect();
        area.draw(&Polygon::new(corners.clone(), fill)).expect(DRAWN);
        corners.push(corners[0]);
        area.draw(&PathElement::new(corners, edge)).expect(DRAWN);
    }
    let up = match mark {
        Mark::AtLeast => -1,
        Mark::AtMost => 1,
        Mark::Exact | Mark::Saturated => return,
    };
    let (from, to, barb) = (y + up * 5 * FINE, y + up * 12 * FINE, 3 * FINE);
    let head = vec![(x - barb, to - up * barb), (x, to), (x + barb, to - up * barb)];
    for path in [vec![(x, from), (x, to)], head] {
        area.draw(&PathElement::new(path, edge)).expect(DRAWN);
    }
}

/// Where the points of the first series of a plot of curves are drawn.
#[cfg(test)]
pub(super) fn marks(plot: &Plot) -> Vec<Pixel> {
    use_font();
    let mut text = String::new();
    let size = ((CURVES_WIDTH * FINE) as u32, (HEIGHT * FINE) as u32);
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    let frame = Frame::new(plot);
    let chart = axes(&area, &frame);
    frame.placed(plot, &plot.series[0]).iter().map(|p| chart.backend_coord(&p.at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_cover_their_share_of_a_path_and_go_round_corners() {
        let path = [(0, 0), (1_000, 0), (1_000, 500)];
        let cut = dashes(&path, 60.0, 40.0);
        let length = |dash: &Vec<Pixel>| -> f64 {
            let step = |pair: &[Pixel]| {
                f64::from(pair[1].0 - pair[0].0).hypot(f64::from(pair[1].1 - pair[0].1))
            };
            dash.windows(2).map(step).sum()
        };
        assert_eq!(cut.len(), 15);
        for dash in &cut {
            assert!((length(dash) - 60.0).abs() < 2.0, "{dash:?}");
        }
        assert!(dashes(&[], 1.0, 1.0).is_empty() && dashes(&[(1, 1), (1, 1)], 1.0, 1.0).is_empty());
    }
}
