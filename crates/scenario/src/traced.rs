//! `run.trace`: which flows a run records.

use std::fmt;
use std::io;
use std::str::FromStr;

use rack::results::{FlowRecord, FlowSink};
use rack::trace::Chooser;
use rack::{FlowId, Stage};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::execute::Sink;

/// The most flows that a run records (our choice: more than anybody looks at).
pub const FLOWS_MAX: usize = 10_000;

/// Which flows a run records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceChoice {
    /// So many of the measured flows that completed: those with the largest slowdown.
    Slowest(usize),
    /// These, by number.
    Flows(Vec<u64>),
}

impl TraceChoice {
    /// What picks them out as they end.
    #[must_use]
    pub fn chooser(&self) -> Chooser {
        match self {
            Self::Slowest(count) => Chooser::slowest(*count),
            Self::Flows(numbers) => {
                Chooser::flows(numbers.iter().copied().map(FlowId::new).collect())
            }
        }
    }
}

impl FromStr for TraceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "found {text:?}; expected \"slowest 100\", or the numbers of flows as in \"flows 3, 17\", \
                 1 to {FLOWS_MAX} of them"
            )
        };
        let fits = |count: usize| (1..=FLOWS_MAX).contains(&count);
        let (word, rest) = text.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
        match word {
            "slowest" => rest.trim().parse().ok().filter(|&count| fits(count)).map(Self::Slowest),
            "flows" => {
                let numbers: Result<Vec<u64>, _> =
                    rest.split(',').map(|number| number.trim().parse()).collect();
                let mut numbers = numbers.map_err(|_| wrong())?;
                numbers.sort_unstable();
                numbers.dedup();
                fits(numbers.len()).then_some(Self::Flows(numbers))
            }
            _ => None,
        }
        .ok_or_else(wrong)
    }
}

impl fmt::Display for TraceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slowest(count) => write!(f, "slowest {count}"),
            Self::Flows(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
                write!(f, "flows {}", numbers.join(", "))
            }
        }
    }
}

impl Serialize for TraceChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for TraceChoice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TraceChoice".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^\\s*(slowest\\s+\\d+|flows\\s+\\d+(\\s*,\\s*\\d+)*)\\s*$"
        })
    }
}

/// A sink, and beside it what picks out flows as they pass.
pub(crate) struct Watched<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) chooser: Chooser,
}

impl FlowSink for Watched<'_> {
    fn record(&mut self, record: &FlowRecord<'_>) -> io::Result<()> {
        self.chooser.record(record)?;
        self.sink.record(record)
    }
}

impl Sink for Watched<'_> {
    fn begin(&mut self, stages: &[Stage]) -> io::Result<()> {
        self.sink.begin(stages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same_in_order_and_once_each() {
        for (text, written) in [
            ("slowest 100", "slowest 100"),
            (" slowest   1 ", "slowest 1"),
            ("flows 3,17 , 3, 0", "flows 0, 3, 17"),
        ] {
            let choice: TraceChoice = text.parse().unwrap();
            assert_eq!(choice.to_string(), written);
            assert_eq!(written.parse(), Ok(choice));
        }
    }

    #[test]
    fn what_is_no_choice_is_refused_with_an_example() {
        for text in [
            "",
            "slowest",
            "slowest 0",
            "slowest -1",
            "slowest 10001",
            "flows",
            "flows a",
            "all 3",
            "slowest 1 2",
            "flows 1,,2",
        ] {
            let error = text.parse::<TraceChoice>().unwrap_err();
            assert!(error.contains("expected \"slowest 100\""), "{text}: {error}");
        }
    }
}
