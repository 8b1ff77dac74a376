//! The messages of a run by size: what Figs 12 and 13 show.

use rack::results::{FlowEnd, FlowRecord, FlowSink};
use scenario::Sink;

use crate::runs::quantile;

/// Parts of equally many messages into which a run's are cut (the axis of Figs 12 and 13 has ten).
pub(super) const TENTHS: usize = 10;

/// A message that was delivered.
#[derive(Clone, Copy, Debug)]
struct Message {
    id: u64,
    size: u64,
    /// Its completion time by that in the idle network.
    slowdown: f64,
}

/// Keeps the messages that were delivered.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    messages: Vec<Message>,
}

impl FlowSink for Messages {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        if let (true, FlowEnd::Completed { at, ideal, .. }) = (record.measured, record.end) {
            let fct = at - record.flow.start;
            self.messages.push(Message {
                id: record.flow.id.get(),
                size: record.flow.size.get(),
                slowdown: fct.as_ps() as f64 / ideal.as_ps() as f64,
            });
        }
        Ok(())
    }
}

impl Sink for Messages {}

/// The median and the 99th percentile of slowdowns.
#[derive(Clone, Copy, PartialEq, Debug)]
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
#[derive(Clone, PartialEq, Debug)]
pub(super) struct BySize {
    /// The shortest half.
    pub(super) half: Slowdown,
    /// By tenths, the shortest first.
    pub(super) tenths: Vec<Slowdown>,
}

impl Messages {
    /// The messages from number `first` on, by size.
    ///
    /// # Panics
    /// If they are fewer than ten.
    pub(super) fn by_size(mut self, first: u64) -> BySize {
        self.messages.retain(|message| message.id >= first);
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
    use super::*;

    #[test]
    fn messages_are_cut_into_tenths_by_size_without_the_warm_up() {
        // Message `n` of 5 to 24 has size 100 - n, and is slowed down as many times as it has bytes.
        let message = |id: u64| Message { id, size: 100 - id, slowdown: (100 - id) as f64 };
        let by_size = Messages { messages: (0..25).map(message).collect() }.by_size(5);
        let of = |low: f64, high: f64| Slowdown { median: low, p99: high };
        assert_eq!(by_size.tenths.len(), TENTHS);
        assert_eq!((by_size.tenths[0], by_size.tenths[9]), (of(76.0, 77.0), of(94.0, 95.0)));
        assert_eq!(by_size.half, of(80.0, 85.0));
    }
}
