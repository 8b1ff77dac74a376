//! Figures for papers: plots as SVG and as PDF, drawn from the same data as those of the page.
//!
//! Leaves out: what only a screen can do, such as values under the pointer; the page has it.
//!
//! plotters lays axes out and writes SVG, and draws on a page of PDF (`sheet`). Letters are measured by the one font that
//! comes along, so that a figure is the same bytes on every machine, whatever fonts it has.

mod draw;
mod sheet;
mod ticks;

use crate::page::Plot;

/// Liberation Sans 2.1.5 (SIL Open Font License 1.1, which lies beside it), with the widths of Arial.
const FONT: &[u8] = include_bytes!("../../assets/liberation-sans.ttf");

/// `plots` as one SVG document, side by side. Plots of curves have axes; those of one bar a series, which
/// share their names, have a row for each name; one legend serves all.
#[must_use]
pub fn svg(plots: &[Plot]) -> String {
    draw::svg(plots)
}

/// The same as PDF of one page, its letters as outlines.
#[must_use]
pub fn pdf(plots: &[Plot]) -> Vec<u8> {
    draw::pdf(plots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;
    use crate::page::{Axis, Mark, PlotSeries, SeriesStyle};

    fn curves() -> Plot {
        let one = PlotSeries {
            intervals: vec![(1.0, 3.0), (3.0, 5.0)],
            marks: vec![Mark::Exact, Mark::AtLeast],
            ..PlotSeries::new("Shoal & <b>", SeriesStyle::Line, vec![(0.2, 2.0), (0.8, 4.0)])
        };
        let two = PlotSeries::new("NDP", SeriesStyle::Dashed, vec![(0.2, 20.0), (0.8, 400.0)]);
        let event = PlotSeries::new("Fault", SeriesStyle::Event, vec![(0.5, 0.0)]);
        Plot {
            title: "Slowdown".into(),
            x: Axis::linear("Load", Unit::Share),
            y: Axis::log("Slowdown, 99 %", Unit::Ratio),
            series: vec![one, two, event],
            ..Plot::default()
        }
    }

    fn bars() -> Plot {
        let bar = |at: usize, name: &str, value: f64| {
            PlotSeries::new(name, SeriesStyle::Bars, vec![(at as f64, value)]).in_hue(at)
        };
        Plot {
            title: "Power".into(),
            x: Axis::named("", vec!["Shoal & <b>".into(), "NDP".into()]),
            y: Axis::linear("Power", Unit::Watts),
            series: vec![bar(0, "Shoal & <b>", 638.0), bar(1, "NDP", 2_180.0)],
            ..Plot::default()
        }
    }

    #[test]
    fn a_figure_has_every_name_and_escapes_them() {
        let svg = svg(&[curves(), bars()]);
        for text in ["Shoal &amp; &lt;b&gt;", "NDP", "Load", "638 W", "2.18 kW", "100", "20%"] {
            assert!(svg.contains(text), "{text:?} is not in {svg}");
        }
        assert!(!svg.contains("<b>"));
        // Each text asks for the font by which it was measured first.
        let fonts = svg.matches("font-family=\"Liberation Sans, ").count();
        assert_eq!(fonts, svg.matches("<text").count());
        assert!(svg.ends_with("</svg>\n"), "{}", &svg[svg.len() - 20..]);
    }

    #[test]
    fn the_same_plots_are_the_same_bytes() {
        assert_eq!(svg(&[curves()]), svg(&[curves()]));
        assert_eq!(pdf(&[curves(), bars()]), pdf(&[curves(), bars()]));
    }

    #[test]
    fn a_pdf_is_drawn_where_the_svg_is() {
        // Whatever draws: a bar of the PDF has the corners of that of the SVG.
        let (svg, pdf) = (svg(&[bars()]), String::from_utf8(pdf(&[bars()])).unwrap());
        let bar = svg.split("<rect ").find(|part| part.contains("#0072B2")).unwrap();
        let value = |name: &str| -> i64 {
            let (_, rest) = bar.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let (left, top) = (value("x"), value("y"));
        assert!(pdf.contains(&format!("0.000 0.447 0.698 rg\n{left} {top} m\n")), "{left} {top}");
    }

    #[test]
    fn a_curve_that_is_higher_is_drawn_higher() {
        let plot = |height: f64| {
            let line = PlotSeries::new("a", SeriesStyle::Points, vec![(0.5, height)]);
            let top = PlotSeries::new("b", SeriesStyle::Points, vec![(1.0, 100.0)]);
            let (x, y) = (Axis::linear("x", Unit::Count), Axis::linear("y", Unit::Count));
            Plot { x, y, series: vec![line, top], ..Plot::default() }
        };
        let mark = |height| draw::marks(&plot(height))[0];
        let (low, high) = (mark(10.0), mark(60.0));
        assert_eq!(low.0, high.0);
        // Pixels count from the top; half the axis is half the height of the plot, to a pixel.
        let whole = mark(0.0).1 - mark(100.0).1;
        let part = f64::from(low.1 - high.1) / f64::from(whole);
        assert!((part - 0.5).abs() < 0.01, "{part}");
    }

    #[test]
    fn whatever_is_in_a_plot_it_can_be_drawn() {
        let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-300, 1e300];
        for y in [Axis::linear("y", Unit::Seconds), Axis::log("y", Unit::Bytes)] {
            let points = odd.iter().map(|value| (*value, *value)).collect();
            let series = vec![PlotSeries::new("", SeriesStyle::Line, points)];
            let x = Axis::named("", vec!["\u{1b}[2J".repeat(100)]);
            let plot = Plot { x, y, series, ..Plot::default() };
            let plots = [plot, Plot::default()];
            assert!(svg(&plots).ends_with("</svg>\n") && pdf(&plots).ends_with(b"%%EOF\n"));
        }
        assert!(svg(&[]).ends_with("</svg>\n"));
    }
}
