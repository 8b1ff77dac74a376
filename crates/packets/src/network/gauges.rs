//! The time series of a packet network.

use kernel::Bytes;
use rack::{Gauge, GaugeKind};

use crate::net::Net;

/// Columns, in the order in which [`Gauges::sample`] writes them.
pub(crate) const COLUMNS: &[Gauge] = &[
    Gauge {
        name: "open_flows",
        meaning: "Flows offered and not yet delivered",
        kind: GaugeKind::Level,
    },
    Gauge {
        name: "queued_packets",
        meaning: "Packets queued in all switches",
        kind: GaugeKind::Level,
    },
    Gauge {
        name: "queue_max_bytes",
        meaning: "Longest queue of a switch port since the last sample",
        kind: GaugeKind::Peak,
    },
    Gauge { name: "packets", meaning: "Packets in the network", kind: GaugeKind::Level },
    Gauge { name: "hops", meaning: "Packets with payload sent on a link", kind: GaugeKind::Count },
    Gauge { name: "packet_hops", meaning: "Packets sent on a link", kind: GaugeKind::Count },
    Gauge { name: "drops", meaning: "Packets dropped in the network", kind: GaugeKind::Count },
    Gauge { name: "marked", meaning: "Packets marked by switches", kind: GaugeKind::Count },
    Gauge { name: "trimmed", meaning: "Packets cut to the header", kind: GaugeKind::Count },
    Gauge {
        name: "delivered_bytes",
        meaning: "Application bytes handed to receivers",
        kind: GaugeKind::Count,
    },
];

/// Running counts, in the order of the columns that are counts.
type Running = [u64; 6];

/// What a sampling interval starts from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    last: Running,
}

impl Gauges {
    /// Writes one row, of all parts together, and starts the next interval.
    pub(crate) fn sample<'a>(
        &mut self,
        row: &mut [f64],
        nets: impl Iterator<Item = &'a mut Net>,
        open: u64,
        delivered: Bytes,
    ) {
        let mut running = [0, 0, 0, 0, 0, delivered.get()];
        let mut levels = [open, 0, 0, 0];
        for net in nets {
            let counts = &mut net.counts;
            let counted =
                [counts.payload_hops, counts.hops, counts.drops(), counts.marked, counts.trimmed];
            running.iter_mut().zip(counted).for_each(|(sum, count)| *sum += count);
            levels[1] += counts.queued;
            levels[2] = levels[2].max(std::mem::take(&mut counts.queue_peak).into());
            levels[3] += u64::from(net.arena.live());
        }
        let since = running.iter().zip(&self.last).map(|(now, last)| now - last);
        for (cell, value) in row.iter_mut().zip(levels.into_iter().chain(since)) {
            *cell = value as f64;
        }
        self.last = running;
    }
}
