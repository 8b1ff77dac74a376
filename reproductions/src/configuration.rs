//! The one configuration under which a paper's claims are judged, and what stands beside it.
//!
//! Each paper's folder has it in `configuration.toml`, for people as much as for the page of all papers. Tests
//! hold the scenarios to its settings and the rows to its lists.

use serde::Deserialize;
use serde_json::Value;

/// A paper's `configuration.toml`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// In a sentence: what the claims are judged on.
    pub lead: String,
    /// What it consists of.
    #[serde(rename = "setting")]
    pub settings: Vec<Setting>,
    /// Other readings, whose rows are sensitivities.
    #[serde(default, rename = "reading")]
    pub readings: Vec<Reading>,
    /// Inputs that were fitted to a published figure.
    #[serde(default, rename = "input")]
    pub inputs: Vec<Input>,
    /// Claims that no one configuration meets together.
    #[serde(default, rename = "exclusive")]
    pub exclusive: Vec<Exclusive>,
}

/// One setting of the configuration.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// What is set, and to what.
    pub what: String,
    /// The paper's section, or that it is our choice, and why.
    pub source: String,
    /// Of which fabric a key is set; with `key` and `value` a test holds each scenario of the folder to it.
    pub fabric: Option<String>,
    /// The key, below the fabric.
    pub key: Option<String>,
    /// Its value.
    pub value: Option<Value>,
    /// Scenarios that have another one, with the reason in `source`.
    #[serde(default)]
    pub except: Vec<String>,
}

/// Another reading than the configuration's.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// What it changes, and why it is shown.
    pub what: String,
    /// Its rows: ids, in which one `*` stands for any letters.
    pub rows: Vec<String>,
}

/// An input that was fitted.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The input, and the figure to which it was fitted.
    pub what: String,
    /// The rows that show the figure, which follow from it and do not count.
    #[serde(default)]
    pub rows: Vec<String>,
}

/// Claims that exclude each other.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusive {
    /// The published claims.
    pub claims: Vec<String>,
    /// Why no configuration meets them all.
    pub why: String,
}

/// Whether a pattern of a list of rows means this row.
#[must_use]
pub fn means(pattern: &str, row: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            let rest = row.strip_prefix(start);
            rest.is_some_and(|rest| rest.ends_with(end))
        }
        None => pattern == row,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_rows_by_their_ends() {
        assert!(means("fig9.loss", "fig9.loss"));
        assert!(!means("fig9.loss", "fig9.loss-ingress"));
        assert!(means("*-ingress", "fig9.loss-ingress"));
        assert!(means("fig9.*", "fig9.loss"));
        assert!(!means("fig9.*", "fig10.loss"));
        assert!(means("fig15.*-100", "fig15.queue-100"));
        assert!(!means("fig15.*-100", "fig17.queue-100"));
    }
}
