//! The messages of a run by size: what Figs 12 and 13 show.

use rack::results::{FlowEnd, FlowRecord, FlowSink};
use scenario::Sink;
use serde::{Deserialize, Serialize};

use crate::runs::quantile;

/// Parts of equally many messages into which a run's are cut (the axis of Figs 12 and 13 has ten).
pub(super) const TENTHS: usize = 10;

/// A message that is measured.
#[derive(Clone, Copy, Debug)]
struct Message {
    id: u64,
    size: u64,
    /// Its completion time by that in the idle network; infinite if it was unfinished when the run ended,
    /// so that a quantile among such messages is not finite either.
    slowdown: f64,
}

/// Keeps the messages that are measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    messages: Vec<Message>,
}

impl FlowSink for Messages {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        if !record.measured {
            return Ok(());
        }
        let slowdown = match record.end {
            FlowEnd::Completed { at, ideal, .. } => {
                (at - record.flow.start).as_ps() as f64 / ideal.as_ps() as f64
            }
            FlowEnd::Failed { .. } | FlowEnd::Unfinished { .. } => f64::INFINITY,
        };
        let (id, size) = (record.flow.id.get(), record.flow.size.get());
        self.messages.push(Message { id, size, slowdown });
        Ok(())
    }
}

impl Sink for Messages {}

/// The median and the 99th percentile of slowdowns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Slowdown {
    pub(super) median: f64,
    pub(super) p99: f64,
}

impl Slowdown {
    fn of(messages: &[Message]) -> Self {
        let slowdowns: Vec<_> = messages.iter().map(|message| message.slowdown).collect();
        Self { median: quantile(&slowdowns, 0.5), p99: quantile(&slowdowns, 0.99) }
    }
}

/// What a run made of its messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct BySize {
    /// The shortest half.
    pub(super) half: Slowdown,
    /// By tenths, the shortest first.
    pub(super) tenths: Vec<Slowdown>,
}

impl Messages {
    /// The messages by size.
    ///
    /// # Panics
    /// If they are fewer than ten.
    pub(super) fn by_size(mut self) -> BySize {
        self.messages.sort_by_key(|message| (message.size, message.id));
        let count = self.messages.len();
        assert!(count >= TENTHS, "{count} messages have no tenths");
        let part = |from: usize, to: usize, of: usize| {
            Slowdown::of(&self.messages[count * from / of..count * to / of])
        };
        let tenths = (0..TENTHS).map(|tenth| part(tenth, tenth + 1, TENTHS)).collect();
        BySize { half: part(0, 1, 2), tenths }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Span, Time};
    use rack::{Class, Flow, FlowId, NodeId};

    use super::*;

    fn of(low: f64, high: f64) -> Slowdown {
        Slowdown { median: low, p99: high }
    }

    #[test]
    fn messages_are_cut_into_tenths_by_size() {
        // Message `n` of 5 to 24 has size 100 - n, and is slowed down as many times as it has bytes.
        let message = |id: u64| Message { id, size: 100 - id, slowdown: (100 - id) as f64 };
        let by_size = Messages { messages: (5..25).map(message).collect() }.by_size();
        assert_eq!(by_size.tenths.len(), TENTHS);
        assert_eq!((by_size.tenths[0], by_size.tenths[9]), (of(76.0, 77.0), of(94.0, 95.0)));
        assert_eq!(by_size.half, of(80.0, 85.0));
    }

    #[test]
    fn a_message_counts_if_it_is_measured_and_one_that_is_unfinished_is_the_slowest() {
        let mut messages = Messages::default();
        let ideal = Span::from_ns(100);
        let mut put = |id: u64, measured: bool, end: Option<u64>| {
            let flow = Flow {
                id: FlowId::new(id),
                src: NodeId::new(0),
                dst: NodeId::new(1),
                size: Bytes::new(1 + id),
                start: Time::ZERO + Span::from_us(1),
                class: Class::new(0),
            };
            let unfinished = FlowEnd::Unfinished { delivered: Bytes::ZERO, ideal };
            let end = end.map_or(unfinished, |times| FlowEnd::Completed {
                at: flow.start + ideal * times,
                ideal,
                stages: &[],
            });
            messages.record(&FlowRecord { flow: &flow, measured, end }).unwrap();
        };
        put(0, false, Some(99));
        (1..10).for_each(|id| put(id, true, Some(id)));
        put(10, true, None);
        put(11, false, None);
        let by_size = messages.by_size();
        assert_eq!(by_size.half, of(3.0, 5.0));
        assert_eq!((by_size.tenths[8], by_size.tenths[9].p99), (of(9.0, 9.0), f64::INFINITY));
    }
}
