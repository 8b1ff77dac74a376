//! The `sizes` table: how large flows are.

use kernel::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problems::{Problems, check_flow};
use crate::workload::limits::FLOW_MAX;
use crate::workload::sizes::{Pareto, Sizes};
use crate::workload::tables::{Published, Reading, SizeTable};

/// How large flows are.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SizesConfig {
    /// Every flow the same.
    Fixed(FixedSizes),
    /// Heavy-tailed: P(X > x) = (scale / x)^shape.
    Pareto(ParetoSizes),
    /// A published distribution by its name or a common name, such as "W4".
    Table(TableSizes),
    /// A distribution written out.
    Points(PointSizes),
}

/// Every flow the same.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixedSizes {
    /// Size of a flow. Unit: bytes of payload. At least 1 B. No default.
    pub size: Bytes,
}

/// A Pareto distribution; the defaults are those of Shoal §7.3 and R2C2 §5.2.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ParetoSizes {
    /// Tail index. Default 1.05 (Shoal §7.3). Above 1; with `truncation = "rescale"` above 0.
    pub shape: f64,
    /// Mean of the untruncated distribution, or with `truncation = "rescale"` of the truncated one.
    /// Unit: bytes. Default 100 KB (Shoal §7.3).
    pub mean: Bytes,
    /// No flow is larger. Unit: bytes. At most 1 TiB. Default: none, as published; a million draws then offer about
    /// half of the nominal load, for their mean is seldom reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<Bytes>,
    /// What a cap does to the mean. Default "cut".
    pub truncation: Truncation,
}

/// What a cap does to the mean of a Pareto distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Truncation {
    /// The scale stays, the mean falls.
    #[default]
    Cut,
    /// The scale rises until the mean is the stated one.
    Rescale,
}

impl Default for ParetoSizes {
    fn default() -> Self {
        Self { shape: 1.05, mean: Bytes::new(100_000), cap: None, truncation: Truncation::Cut }
    }
}

/// A published distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSizes {
    /// Its name or a common name: `rackloom list workloads` shows them. No default.
    pub name: String,
    /// How the table is read; the mean depends on it. Default: the reading that reproduces the
    /// published mean, or that of the tool that published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
}

/// A distribution written out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PointSizes {
    /// Pairs of size in bytes and share of flows at or below it; neither may decrease, the last
    /// share is 1. No default.
    pub points: Vec<(u64, f64)>,
    /// How the table is read. Default "linear".
    #[serde(default = "linear")]
    pub reading: Reading,
}

fn linear() -> Reading {
    Reading::Linear
}

impl Default for SizesConfig {
    /// The paper's heavy tail (Shoal §7.3).
    fn default() -> Self {
        Self::Pareto(ParetoSizes::default())
    }
}

impl SizesConfig {
    /// The distribution, if nothing is wrong.
    pub(super) fn build(&self, problems: &mut Problems) -> Option<Sizes> {
        match self {
            Self::Fixed(FixedSizes { size }) => {
                if *size == Bytes::ZERO {
                    problems.add("size", "found 0 B; a flow carries at least 1 B");
                    return None;
                }
                check_flow("size", *size, problems);
                Some(Sizes::Fixed(*size))
            }
            Self::Pareto(pareto) => pareto.build(problems).map(Sizes::Pareto),
            Self::Table(table) => table.build(problems),
            Self::Points(PointSizes { points, reading }) => {
                match SizeTable::new(points.clone(), *reading) {
                    Ok(table) if table.max() > FLOW_MAX => {
                        check_flow("points", table.max(), problems);
                        None
                    }
                    Ok(table) => Some(Sizes::Table { table, name: "points".into() }),
                    Err(message) => {
                        problems.add("points", message);
                        None
                    }
                }
            }
        }
    }
}

/// Tail indices that numbers can tell apart (our choice): below all flows are the smallest or the largest,
/// above all are one size.
const SHAPES: std::ops::RangeInclusive<f64> = 0.01..=1_000.0;

impl ParetoSizes {
    fn build(&self, problems: &mut Problems) -> Option<Pareto> {
        let found = problems.count();
        let (shape, mean) = (self.shape, self.mean.get() as f64);
        let rescaled = self.truncation == Truncation::Rescale;
        if !shape.is_finite() || shape <= 0.0 {
            problems.add("shape", format!("found {shape}; expected a number above 1"));
        } else if !(SHAPES).contains(&shape) {
            let (least, most) = (SHAPES.start(), SHAPES.end());
            problems
                .add("shape", format!("found {shape}; expected a number from {least} to {most}"));
        } else if shape <= 1.0 && !rescaled {
            problems.add(
                "shape",
                format!(
                    "found {shape}; at or below 1 the mean is infinite: use a larger shape, or a \
                     cap with truncation = \"rescale\""
                ),
            );
        }
        if self.mean == Bytes::ZERO {
            problems.add("mean", "found 0 B; expected a mean above zero, such as \"100 KB\"");
        }
        check_flow("mean", self.mean, problems);
        if let Some(cap) = self.cap {
            check_flow("cap", cap, problems);
        }
        if rescaled && self.cap.is_none() {
            problems.add("truncation", "found \"rescale\" without a cap; add cap = \"1 GB\", say");
        }
        // Without rescaling the smallest flow lies below the mean, so this bound serves both.
        if let Some(cap) = self.cap.filter(|&cap| cap <= self.mean) {
            problems.add("cap", format!("found {cap}; expected more than the mean, {}", self.mean));
        }
        if problems.count() > found {
            return None;
        }
        Some(match (self.cap.map(|cap| cap.get() as f64), self.truncation) {
            (None, _) => Pareto::unbounded(shape, mean),
            (Some(cap), Truncation::Cut) => Pareto::cut(shape, mean, cap),
            (Some(cap), Truncation::Rescale) => Pareto::rescaled(shape, mean, cap),
        })
    }
}

impl TableSizes {
    fn build(&self, problems: &mut Problems) -> Option<Sizes> {
        let found = Published::named(&self.name);
        let names = |tables: &[&Published]| -> String {
            tables.iter().map(|table| table.name).collect::<Vec<_>>().join(", ")
        };
        match found.as_slice() {
            [table] => {
                let reading = self.reading.unwrap_or(table.reading);
                Some(Sizes::Table { table: table.table(reading), name: table.name.into() })
            }
            [] => {
                let all: Vec<_> = crate::workload::tables::PUBLISHED.iter().collect();
                let message =
                    format!("unknown table {:?}; expected one of {}", self.name, names(&all));
                problems.add("name", message);
                None
            }
            several => {
                let message = format!("{:?} may mean {}; say which", self.name, names(several));
                problems.add("name", message);
                None
            }
        }
    }
}
