//! Where an axis has its ticks, what stands at them, and how far it reaches.
//!
//! The same rules as in the page's script (`assets/report.js`), so that a figure on paper reads like the
//! one on the page.

use crate::Unit;
use crate::page::{Axis, Scale};

/// An axis as it is drawn. Positions are values, their decimal logarithms on a logarithmic axis.
pub(super) struct Ruler {
    /// Lowest and highest position.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Position and text of each tick.
    pub ticks: Vec<(f64, String)>,
    /// Below or beside the axis, with the unit.
    pub title: String,
    is_log: bool,
}

/// Decades below which a logarithmic axis has the ticks of a linear one.
const FEW_DECADES: f64 = 0.7;
/// Ticks that a linear axis has, about.
const TICKS: f64 = 5.0;

impl Ruler {
    /// The ruler of `axis` that has a place for all of `values`.
    pub fn new(axis: &Axis, values: &[f64]) -> Self {
        match &axis.scale {
            Scale::Named(names) => Self {
                low: -0.5,
                high: names.len() as f64 - 0.5,
                ticks: names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| (at as f64, name.clone()))
                    .collect(),
                title: axis.label.clone(),
                is_log: false,
            },
            Scale::Log => Self::log(axis, values),
            Scale::Linear => Self::linear(axis, values),
        }
    }

    /// Where `value` lies, if it has a place.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = if self.is_log { value.log10() } else { value };
        place.is_finite().then_some(place)
    }

    /// Where `value` lies, at an end of the axis if it lies beyond.
    pub fn place_within(&self, value: f64) -> f64 {
        let place = if self.is_log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        place.clamp(self.low, self.high)
    }

    /// The text of the tick at `place`.
    pub fn text(&self, place: f64) -> &str {
        let near = self.ticks.iter().min_by(|a, b| {
            let distance = |tick: &(f64, String)| (tick.0 - place).abs();
            distance(a).total_cmp(&distance(b))
        });
        near.map_or("", |(_, text)| text)
    }

    fn linear(axis: &Axis, values: &[f64]) -> Self {
        let found = |fold: fn(f64, f64) -> f64| values.iter().copied().fold(0.0, fold);
        let (least, most) = (found(f64::min), found(f64::max));
        let span = if most > least { most - least } else { 1.0 };
        let is_whole_share = axis.unit == Unit::Share && most <= 1.0;
        let room = span * if is_whole_share { 0.01 } else { 0.05 };
        let low = if least < 0.0 { least - room } else { 0.0 };
        let high = if most > least { most + room } else { 1.0 };
        let ticks = linear_ticks(low, high);
        let (scale, name) = scale_of(axis.unit, ticks.last().copied().unwrap_or(1.0));
        let bare = if name == "%" { "%" } else { "" };
        let text = |tick: f64| format!("{}{bare}", plain(tick / scale));
        Self {
            low,
            high,
            title: titled(&axis.label, if name == "%" { "" } else { name }),
            ticks: ticks.into_iter().map(|tick| (tick, text(tick))).collect(),
            is_log: false,
        }
    }

    fn log(axis: &Axis, values: &[f64]) -> Self {
        let logs = || values.iter().filter(|value| **value > 0.0).map(|value| value.log10());
        let (least, most) =
            (logs().fold(f64::INFINITY, f64::min), logs().fold(-f64::INFINITY, f64::max));
        let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
        let room = ((most - least) * 0.04).max(0.05);
        let (low, high) = (least - room, most + room);
        let ticks = log_ticks(low, high).into_iter();
        Self {
            low,
            high,
            ticks: ticks.map(|tick| (tick.log10(), axis.unit.format(tick))).collect(),
            // Each tick says its unit, as they differ.
            title: axis.label.clone(),
            is_log: true,
        }
    }
}

fn titled(label: &str, unit: &str) -> String {
    if unit.is_empty() { label.into() } else { format!("{label} ({unit})") }
}

/// The multiple of `unit` in which `value` reads well.
fn scale_of(unit: Unit, value: f64) -> (f64, &'static str) {
    let scales = unit.scales();
    let fits = |scale: &&(f64, &'static str)| value.abs() * 1.0005 >= scale.0;
    *scales.iter().find(fits).or(scales.last()).expect("a unit has scales")
}

/// A round number in full, without the noise of a division.
fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|part| part * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.75).unwrap_or(power * 10.0);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

/// Values, not their logarithms; the ends are logarithms.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = high - low;
    if decades < FEW_DECADES {
        let ticks = linear_ticks(10f64.powf(low), 10f64.powf(high));
        return ticks.into_iter().filter(|tick| *tick > 0.0).collect();
    }
    let parts: &[f64] = match decades {
        d if d > 2.2 => &[1.0],
        d if d > 1.3 => &[1.0, 3.0],
        _ => &[1.0, 2.0, 5.0],
    };
    let every = (decades / 8.0).ceil() as i32;
    let powers = (low.floor() as i32..=high.floor() as i32).filter(|power| power % every == 0);
    let ticks = powers.flat_map(|power| parts.iter().map(move |part| part * 10f64.powi(power)));
    ticks.filter(|tick| (low - 1e-9..=high + 1e-9).contains(&tick.log10())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(axis: &Axis, values: &[f64], title: &str, ticks: &[&str]) {
        let ruler = Ruler::new(axis, values);
        let texts: Vec<_> = ruler.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!((ruler.title.as_str(), texts.as_slice()), (title, ticks));
        for value in values {
            let place = ruler.place(*value).unwrap();
            assert!((ruler.low..=ruler.high).contains(&place), "{value} at {place}");
        }
    }

    #[test]
    fn ticks_are_round_and_the_unit_is_named_once() {
        let load = Axis::linear("Load", Unit::Share);
        check(&load, &[0.2, 0.8], "Load", &["0%", "20%", "40%", "60%", "80%"]);
        let time = Axis::linear("FCT", Unit::Seconds);
        check(&time, &[3e-6, 42e-6], "FCT (µs)", &["0", "10", "20", "30", "40"]);
        let ratio = Axis::linear("Slowdown", Unit::Ratio);
        let halves = ["0", "0.5", "1", "1.5", "2", "2.5", "3"];
        check(&ratio, &[1.0, 3.0], "Slowdown", &halves);
    }

    #[test]
    fn a_logarithmic_axis_has_ticks_at_powers_or_between() {
        let ratio = Axis::log("Slowdown", Unit::Ratio);
        check(&ratio, &[2.0, 1_500.0], "Slowdown", &["10", "100", "1,000"]);
        check(&ratio, &[1.0, 12.0], "Slowdown", &["1", "2", "5", "10"]);
        let time = Axis::log("FCT", Unit::Seconds);
        check(&time, &[2e-6, 3e-6], "FCT", &["2 µs", "2.50 µs", "3 µs"]);
    }

    #[test]
    fn nothing_to_show_is_an_axis_all_the_same() {
        for axis in [Axis::linear("a", Unit::Count), Axis::log("a", Unit::Count)] {
            let ruler = Ruler::new(&axis, &[]);
            assert!(ruler.low < ruler.high && !ruler.ticks.is_empty(), "{:?}", axis.scale);
        }
    }
}
