//! Published figures, the tolerance that ours are held to, and the verdict.
//!
//! Each experiment has a file of claims beside its scenario. The code measures; the file says what
//! was published, where, how far ours may be from it, and, where it is known, why ours differs.

use std::collections::BTreeMap;

use report::{Cause, Claim, Kind, Unit, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A file of claims.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// How long the experiment takes.
    #[serde(default)]
    takes: Takes,
    claim: Vec<Published>,
}

/// How long an experiment takes on one core, in seconds; for estimates alone.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Takes {
    /// With fewer flows than the paper.
    pub quick: f64,
    /// At the paper's size.
    pub full: f64,
}

/// One published figure.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Unique in its paper: experiment and word.
    pub id: String,
    /// What the row says, and so whether it counts.
    pub kind: RowKind,
    /// The published claim that it carries, unique in its paper: what several rows carry counts once. Of a
    /// sensitivity, the claim that it is another reading of, where it is one's alone.
    pub of: Option<String>,
    /// Where the paper says it.
    pub section: String,
    /// What it says, in our words.
    pub what: String,
    /// What the figure measures.
    #[serde(default)]
    pub unit: Measure,
    /// The figure in SI units, or the paper's words where it gives none.
    pub published: Value,
    /// How far ours may be from it; absent for what cannot be run.
    pub tolerance: Option<Tolerance>,
    /// Of a tolerance with one end: why it has one, and how far is too far beyond it.
    pub one_sided: Option<OneSided>,
    /// Why ours is not theirs, for the case that it is not.
    pub differs: Option<String>,
    /// How well that is known. Without it: not at all.
    pub cause: Option<KnownCause>,
    /// Why it cannot be run.
    pub not_run: Option<String>,
    /// What else to know.
    pub note: Option<String>,
}

/// How well it is known why a row differs, as the files name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownCause {
    /// Something was changed, and the difference went away, or fell to what is said.
    Tested,
    /// It follows from arithmetic, or from what is not published.
    Argued,
    /// It is not known, or not all of it.
    Open,
}

impl KnownCause {
    fn cause(self) -> Cause {
        match self {
            Self::Tested => Cause::Tested,
            Self::Argued => Cause::Argued,
            Self::Open => Cause::Open,
        }
    }
}

/// What a row says, as the files name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// Something that the paper has found.
    Claim,
    /// What cannot differ while the model is sound.
    Check,
    /// A claim under another reading than the paper's stated configuration.
    Sensitivity,
    /// A figure to which an input was fitted.
    Input,
}

impl RowKind {
    fn kind(self) -> Kind {
        match self {
            Self::Claim => Kind::Claim,
            Self::Check => Kind::Check,
            Self::Sensitivity => Kind::Sensitivity,
            Self::Input => Kind::Input,
        }
    }
}

/// Why a tolerance has one end, and where it ends nonetheless.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneSided {
    /// The paper's words, which name one side alone.
    pub says: String,
    /// Beyond this it would hold for another reason than the paper's, and so differs.
    pub beyond: Beyond,
}

/// How far is too far where the paper names one side.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Beyond {
    /// This figure.
    Figure(f64),
    /// Nothing is, for this reason.
    Nothing(String),
}

impl OneSided {
    fn figure(&self) -> Option<f64> {
        match self.beyond {
            Beyond::Figure(figure) => Some(figure),
            Beyond::Nothing(_) => None,
        }
    }
}

/// What a figure measures, as the files name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A number of things.
    #[default]
    Count,
    /// A quotient of like quantities.
    Ratio,
    /// A part of a whole.
    Share,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
    /// Cells.
    Cells,
    /// Watts.
    Watts,
}

impl Measure {
    fn unit(self) -> Unit {
        match self {
            Self::Count => Unit::Count,
            Self::Ratio => Unit::Ratio,
            Self::Share => Unit::Share,
            Self::Seconds => Unit::Seconds,
            Self::Bytes => Unit::Bytes,
            Self::BitsPerSecond => Unit::BitsPerSecond,
            Self::Cells => Unit::Cells,
            Self::Watts => Unit::Watts,
        }
    }
}

/// How far ours may be from the published figure.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// Not at all, but for the rounding of binary fractions.
    Exact,
    /// By this share of it, either way.
    Relative(f64),
    /// By this much, either way.
    Absolute(f64),
    /// From the one to the other.
    Between(f64, f64),
    /// Not below.
    AtLeast(f64),
    /// Not above.
    AtMost(f64),
    /// The paper gives no number, only how it runs; ours says whether it runs so.
    Shape,
}

/// Share by which a number that is exact in decimals may be off in binary.
const BINARY: f64 = 1e-9;

impl Tolerance {
    /// Whether `ours` is within it. A shape is judged by who measures it.
    fn holds(self, published: &Value, ours: f64) -> bool {
        let theirs = published.as_f64();
        let near = |margin: f64| theirs.is_some_and(|theirs| (ours - theirs).abs() <= margin);
        let size = theirs.unwrap_or(0.0).abs();
        match self {
            Self::Exact => near(size * BINARY),
            Self::Relative(share) => near(size * share * (1.0 + BINARY)),
            Self::Absolute(margin) => near(margin * (1.0 + BINARY)),
            Self::Between(low, high) => (low..=high).contains(&ours),
            Self::AtLeast(low) => ours >= low,
            Self::AtMost(high) => ours <= high,
            Self::Shape => false,
        }
    }

    /// Whether it has one end alone.
    #[must_use]
    pub fn is_one_sided(self) -> bool {
        matches!(self, Self::AtLeast(_) | Self::AtMost(_))
    }

    /// With the end that one-sided words of the paper leave out.
    fn bounded(self, other: Option<f64>) -> Self {
        match (self, other) {
            (Self::AtLeast(low), Some(high)) => Self::Between(low, high),
            (Self::AtMost(high), Some(low)) => Self::Between(low, high),
            _ => self,
        }
    }

    /// In words.
    fn words(self, unit: Unit) -> String {
        let show = |value: f64| unit.format(value);
        match self {
            Self::Exact => "exact".into(),
            Self::Relative(share) => format!("±{}", Unit::Share.format(share)),
            Self::Absolute(margin) if unit == Unit::Share => {
                format!("±{} points", Unit::Share.format(margin).trim_end_matches('%'))
            }
            Self::Absolute(margin) => format!("±{}", show(margin)),
            Self::Between(low, high) => unit.show(&json!([low, high])),
            Self::AtLeast(low) => format!("at least {}", show(low)),
            Self::AtMost(high) => format!("at most {}", show(high)),
            Self::Shape => "shape".into(),
        }
    }
}

/// What was measured for a claim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    ours: Value,
    interval: Value,
    /// For a shape: whether it runs as the paper says.
    shape: Option<Shape>,
    /// Whether ours is only known to be at least this.
    is_bound: bool,
}

/// Whether something runs as the paper says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// It does.
    Agrees,
    /// It does not.
    Disagrees,
}

impl Shape {
    /// Agrees if the condition holds.
    #[must_use]
    pub fn of(condition: impl Into<bool>) -> Self {
        if condition.into() { Self::Agrees } else { Self::Disagrees }
    }
}

impl Measured {
    /// One number that no chance is in.
    #[must_use]
    pub fn one(value: f64) -> Self {
        Self { ours: json!(value), interval: Value::Null, shape: None, is_bound: false }
    }

    /// The mean over seeds.
    #[must_use]
    pub fn mean(over_seeds: &[f64]) -> Self {
        let spread = Spread::of(over_seeds);
        Self { ours: json!(spread.mean), interval: spread.interval(), shape: None, is_bound: false }
    }

    /// The largest over seeds.
    #[must_use]
    pub fn largest(over_seeds: &[f64]) -> Self {
        let spread = Spread::of(over_seeds);
        Self { ours: json!(spread.high), interval: spread.interval(), shape: None, is_bound: false }
    }

    /// The smallest over seeds.
    #[must_use]
    pub fn smallest(over_seeds: &[f64]) -> Self {
        let spread = Spread::of(over_seeds);
        Self { ours: json!(spread.low), interval: spread.interval(), shape: None, is_bound: false }
    }

    /// In words, with whether it runs as the paper says.
    #[must_use]
    pub fn shape(words: impl Into<String>, shape: Shape) -> Self {
        Self {
            ours: Value::String(words.into()),
            interval: Value::Null,
            shape: Some(shape),
            is_bound: false,
        }
    }

    /// The mean over seeds, where each value is only known to be at least as large.
    #[must_use]
    pub fn at_least(over_seeds: &[f64]) -> Self {
        Self::mean(over_seeds).bound_if(true)
    }

    /// The same; only known to be at least as large, if `is_bound`.
    #[must_use]
    pub fn bound_if(self, is_bound: bool) -> Self {
        Self { is_bound, ..self }
    }
}

impl Measured {
    /// Ours as a table cell: a bound says that it is one.
    fn shown(&self, unit: Unit) -> Value {
        match self.ours.as_f64() {
            Some(least) if self.is_bound => Value::String(format!("≥ {}", unit.format(least))),
            _ => self.ours.clone(),
        }
    }
}

/// Values over seeds in three numbers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// Smallest.
    pub low: f64,
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub high: f64,
}

impl Spread {
    /// Of at least one value.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        assert!(!values.is_empty(), "the spread of no values");
        if values.iter().any(|value| value.is_nan()) {
            return Self { low: f64::NAN, mean: f64::NAN, high: f64::NAN };
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        // The mean of equal values may leave their range by a rounding.
        Self { low, mean: mean.clamp(low, high), high }
    }

    /// As a table cell: from the smallest to the largest.
    #[must_use]
    pub fn interval(self) -> Value {
        json!([self.low, self.high])
    }
}

/// The claims of one experiment while they are measured.
#[derive(Clone, Debug)]
pub struct Sheet {
    takes: Takes,
    published: Vec<Published>,
    measured: BTreeMap<String, Measured>,
}

impl Sheet {
    /// Reads a file of claims that is part of this crate.
    ///
    /// # Panics
    /// If it cannot be read: a mistake of ours that a test finds.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let file: File = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
        for claim in &file.claim {
            let id = &claim.id;
            let runs = claim.tolerance.is_some();
            assert!(runs != claim.not_run.is_some(), "{id} needs one of tolerance and not_run");
            let has_cause = claim.cause.is_some();
            assert!(
                !has_cause || claim.differs.is_some(),
                "{id} has a cause, and does not say which"
            );
        }
        Self { takes: file.takes, published: file.claim, measured: BTreeMap::new() }
    }

    /// How long its experiment takes.
    #[must_use]
    pub fn takes(&self) -> Takes {
        self.takes
    }

    /// The published figures, in the order of the file.
    #[must_use]
    pub fn published(&self) -> &[Published] {
        &self.published
    }

    /// The published number of claim `id`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn number(&self, id: &str) -> f64 {
        let claim = self.published.iter().find(|claim| claim.id == id);
        let number = claim.and_then(|claim| claim.published.as_f64());
        number.unwrap_or_else(|| panic!("{id} has no published number"))
    }

    /// Notes what was measured for claim `id`.
    ///
    /// # Panics
    /// If there is no such claim, or it is noted already.
    pub fn measure(&mut self, id: &str, measured: Measured) {
        assert!(self.published.iter().any(|claim| claim.id == id), "no claim {id}");
        let before = self.measured.insert(id.into(), measured);
        assert!(before.is_none(), "{id} measured twice");
    }

    /// What was measured, by claim.
    #[must_use]
    pub fn measured(&self) -> &BTreeMap<String, Measured> {
        &self.measured
    }

    /// Notes what an earlier run measured, of the claims that there are still; the claims that can be run
    /// and were not measured then.
    #[must_use]
    pub fn recall(&mut self, measured: &BTreeMap<String, Measured>) -> Vec<String> {
        let mut missing = Vec::new();
        for claim in &self.published {
            match measured.get(&claim.id) {
                Some(found) => drop(self.measured.insert(claim.id.clone(), found.clone())),
                None if claim.tolerance.is_some() => missing.push(claim.id.clone()),
                None => {}
            }
        }
        missing
    }

    /// The rows of the table, in the order of the file.
    ///
    /// # Panics
    /// If a claim that can be run was not measured.
    #[must_use]
    pub fn finish(mut self) -> Vec<Claim> {
        let published = std::mem::take(&mut self.published);
        published.into_iter().map(|claim| judge(&claim, self.measured.remove(&claim.id))).collect()
    }
}

/// A tolerance in words, with what is too far beyond one that has one end.
fn words(tolerance: Tolerance, beyond: Option<f64>, unit: Unit) -> String {
    let ends = tolerance.words(unit);
    match (tolerance, beyond) {
        (Tolerance::AtLeast(_), Some(high)) => format!("{ends}, up to {}", unit.format(high)),
        (Tolerance::AtMost(_), Some(low)) => format!("{ends}, down to {}", unit.format(low)),
        _ => ends,
    }
}

/// The row of one claim.
fn judge(claim: &Published, measured: Option<Measured>) -> Claim {
    let unit = claim.unit.unit();
    let other = claim.one_sided.as_ref().and_then(OneSided::figure);
    let (tolerance, verdict, note) = match (claim.tolerance, &measured) {
        (None, _) => ("–".into(), Verdict::NotRun, claim.not_run.clone()),
        (Some(_), None) => panic!("{} was not measured", claim.id),
        (Some(tolerance), Some(measured)) => {
            let bounded = tolerance.bounded(other);
            let holds = match measured.shape {
                Some(shape) => shape == Shape::Agrees,
                None => {
                    // Null: no number, but a bound that unfinished flows leave. It agrees with nothing.
                    let ours = measured.ours.as_f64();
                    // What is larger than a lower bound is within a tolerance that has no upper end alone.
                    let is_known = !measured.is_bound || matches!(bounded, Tolerance::AtLeast(_));
                    is_known && ours.is_some_and(|ours| bounded.holds(&claim.published, ours))
                }
            };
            let unknown = || {
                Some(match measured.ours {
                    Value::Null => "Measured flows were unfinished: only a bound is known.".into(),
                    _ => "No cause is known yet.".to_string(),
                })
            };
            match holds {
                true => (words(tolerance, other, unit), Verdict::Reproduced, claim.note.clone()),
                false => {
                    let why = claim.differs.clone().or_else(unknown);
                    (words(tolerance, other, unit), Verdict::Differs, why)
                }
            }
        }
    };
    let (ours, interval) = measured
        .map_or((Value::Null, Value::Null), |measured| (measured.shown(unit), measured.interval));
    let differs = verdict == Verdict::Differs && claim.kind == RowKind::Claim;
    Claim {
        claim: claim.id.clone(),
        section: claim.section.clone(),
        what: claim.what.clone(),
        unit,
        published: claim.published.clone(),
        ours,
        interval,
        tolerance,
        verdict,
        cause: differs.then(|| claim.cause.map_or(Cause::Open, KnownCause::cause)),
        note: note.unwrap_or_default(),
        kind: claim.kind.kind(),
        of: claim.of.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[claim]]
        id = "a"
        kind = "claim"
        of = "a number"
        section = "§1"
        what = "A number"
        unit = "seconds"
        published = 2.0
        tolerance = { relative = 0.1 }
        differs = "because"
        cause = "tested"

        [[claim]]
        id = "b"
        kind = "claim"
        of = "else"
        section = "§2"
        what = "Something else"
        published = "faster"
        not_run = "needs another rack"
    "#;

    #[track_caller]
    fn check(tolerance: Tolerance, rows: &[(f64, bool)]) {
        for &(ours, holds) in rows {
            assert_eq!(tolerance.holds(&json!(10.0), ours), holds, "{tolerance:?} {ours}");
        }
    }

    #[test]
    fn tolerances_have_two_sides_where_there_is_a_number() {
        check(Tolerance::Exact, &[(10.0, true), (10.000_001, false), (9.999_999, false)]);
        check(
            Tolerance::Relative(0.1),
            &[(9.0, true), (11.0, true), (8.99, false), (11.01, false)],
        );
        check(Tolerance::Absolute(0.5), &[(9.5, true), (10.5, true), (9.4, false), (10.6, false)]);
        check(Tolerance::Between(9.0, 12.0), &[(9.0, true), (12.0, true), (8.9, false)]);
        check(Tolerance::AtLeast(9.0), &[(9.0, true), (100.0, true), (8.9, false)]);
        check(Tolerance::AtMost(9.0), &[(9.0, true), (0.0, true), (9.1, false)]);
    }

    #[track_caller]
    fn first(measured: Measured) -> Claim {
        let mut sheet = Sheet::read(FILE);
        sheet.measure("a", measured);
        sheet.finish().remove(0)
    }

    #[test]
    fn a_claim_within_its_tolerance_is_reproduced_and_one_outside_differs_with_its_cause() {
        let claim = first(Measured::mean(&[1.9, 2.1]));
        assert_eq!((claim.verdict, claim.note.as_str()), (Verdict::Reproduced, ""));
        assert_eq!(claim.cause, None);
        assert_eq!(claim.interval, json!([1.9, 2.1]));
        assert_eq!(claim.tolerance, "±10%");
        let claim = first(Measured::one(3.0));
        assert_eq!((claim.verdict, claim.note.as_str()), (Verdict::Differs, "because"));
        assert_eq!(claim.cause, Some(Cause::Tested));
        let claim = first(Measured::shape("falls", Shape::Disagrees));
        assert_eq!(claim.verdict, Verdict::Differs);
    }

    #[test]
    fn a_lower_bound_agrees_only_with_what_has_no_upper_end() {
        let claim = first(Measured::at_least(&[2.0, 2.0]));
        assert_eq!((claim.verdict, claim.ours), (Verdict::Differs, json!("≥ 2 s")));
        let file = FILE.replace("relative = 0.1", "at_least = 1.5");
        let judged = |seconds: f64| {
            let mut sheet = Sheet::read(&file);
            sheet.measure("a", Measured::at_least(&[seconds]));
            sheet.finish().remove(0).verdict
        };
        assert_eq!((judged(1.6), judged(1.4)), (Verdict::Reproduced, Verdict::Differs));
    }

    #[test]
    fn what_passes_by_far_too_much_passes_for_another_reason_and_differs() {
        let file = FILE.replace(
            "tolerance = { relative = 0.1 }",
            "tolerance = { at_least = 1.5 }\none_sided = { says = \"more\", beyond = 4.0 }",
        );
        let judged = |seconds: f64| {
            let mut sheet = Sheet::read(&file);
            sheet.measure("a", Measured::one(seconds));
            let claim = sheet.finish().remove(0);
            assert_eq!(claim.tolerance, "at least 1.50 s, up to 4 s");
            claim.verdict
        };
        assert_eq!(judged(1.4), Verdict::Differs);
        assert_eq!(judged(3.9), Verdict::Reproduced);
        assert_eq!(judged(4.1), Verdict::Differs);
        let mut sheet = Sheet::read(&file);
        sheet.measure("a", Measured::at_least(&[2.0]));
        assert_eq!(sheet.finish()[0].verdict, Verdict::Differs, "it may be beyond");
    }

    #[test]
    fn what_was_measured_can_be_judged_later() {
        let mut sheet = Sheet::read(FILE);
        sheet.measure("a", Measured::mean(&[1.9, 2.1]));
        let stored = serde_json::to_string(sheet.measured()).unwrap();
        let recalled: BTreeMap<String, Measured> = serde_json::from_str(&stored).unwrap();
        let mut again = Sheet::read(FILE);
        assert!(again.recall(&recalled).is_empty());
        assert_eq!(again.finish(), sheet.finish());
        assert_eq!(Sheet::read(FILE).recall(&BTreeMap::new()), ["a"], "b cannot be run");
    }

    #[test]
    fn what_cannot_be_run_says_why() {
        let mut sheet = Sheet::read(FILE);
        sheet.measure("a", Measured::one(2.0));
        let claim = sheet.finish().remove(1);
        assert_eq!(claim.verdict, Verdict::NotRun);
        assert_eq!(claim.note, "needs another rack");
        assert!(claim.ours.is_null());
    }

    #[test]
    fn a_difference_without_a_known_cause_says_so() {
        let text = FILE.replace("differs = \"because\"", "").replace("cause = \"tested\"", "");
        let mut sheet = Sheet::read(&text);
        sheet.measure("a", Measured::one(3.0));
        let claim = sheet.finish().remove(0);
        assert_eq!(
            (claim.note.as_str(), claim.cause),
            ("No cause is known yet.", Some(Cause::Open))
        );
    }

    #[test]
    #[should_panic(expected = "a was not measured")]
    fn a_claim_that_was_forgotten_is_found() {
        let _ = Sheet::read(FILE).finish();
    }
}
