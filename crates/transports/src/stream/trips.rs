//! Round-trip times in the network, measured where the summary asks for them.
//!
//! Models: Aquila §5.1's measure of a fabric: from the NIC's stamp of a segment to that of its acknowledgment, less what
//! the segment was at the other host before the acknowledgment left. What that waits there for the host's own line is
//! counted with the network.

use kernel::{Histogram, Span};
use packets::{Outbox, PRIORITIES, Packet};
use serde_json::{Value, json};

use super::sack::Report;

/// Round trips by class; none where nobody asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Trips(Vec<Histogram>);

impl Trips {
    pub(super) fn new(is_on: bool) -> Self {
        Self(if is_on { vec![Histogram::new(); PRIORITIES.into()] } else { Vec::new() })
    }

    /// An acknowledgment has come.
    #[inline]
    pub(super) fn note(&mut self, packet: &Packet, out: &Outbox, class: u8) {
        if !self.0.is_empty() {
            let class = usize::from(class).min(self.0.len() - 1);
            let hosts = Report::decode(packet).endpoint + out.since_arrival();
            let all = out.now() - packet.stamp;
            self.0[class].record((all - hosts.min(all)).as_ps());
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| own.merge(other));
    }

    /// What the summary says of them.
    pub(super) fn details(&self) -> Option<(String, Value)> {
        let seconds = |trips: &Histogram, share| {
            trips.quantile(share).map(|ps| Span::from_ps(ps).as_seconds())
        };
        let row = |(class, trips): (usize, &Histogram)| {
            let row = json!({
                "count": trips.count(),
                "p50_seconds": seconds(trips, 0.5),
                "p99_seconds": seconds(trips, 0.99),
                "p999_seconds": seconds(trips, 0.999),
            });
            (format!("class_{class}"), row)
        };
        let rows = self.0.iter().enumerate().filter(|(_, trips)| !trips.is_empty()).map(row);
        (!self.0.is_empty()).then(|| ("round_trips".to_owned(), Value::Object(rows.collect())))
    }
}
