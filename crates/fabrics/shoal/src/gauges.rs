//! The time series of a Shoal rack.

use kernel::Bytes;
use rack::{Gauge, GaugeKind, Totals};

/// Columns, in the order in which [`Gauges::sample`] writes them.
pub(crate) const COLUMNS: &[Gauge] = &[
    Gauge {
        name: "open_flows",
        meaning: "Flows offered and not yet delivered",
        kind: GaugeKind::Level,
    },
    Gauge { name: "queued_cells", meaning: "Cells queued in all nodes", kind: GaugeKind::Level },
    Gauge {
        name: "queue_max_cells",
        meaning: "Longest single queue since the last sample",
        kind: GaugeKind::Peak,
    },
    Gauge {
        name: "queue_max_bytes",
        meaning: "Longest single queue since the last sample, in bytes on the wire",
        kind: GaugeKind::Peak,
    },
    Gauge {
        name: "node_queued_max_cells",
        meaning: "Most cells queued in one node since the last sample",
        kind: GaugeKind::Peak,
    },
    Gauge { name: "hops", meaning: "Payload cells sent on a link", kind: GaugeKind::Count },
    Gauge {
        name: "cell_slots",
        meaning: "Cells the schedule has room for, empty ones too",
        kind: GaugeKind::Count,
    },
    Gauge {
        name: "delivered_bytes",
        meaning: "Application bytes of flows completed",
        kind: GaugeKind::Count,
    },
];

/// What a sampling interval starts from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    last: Totals,
}

impl Gauges {
    /// Writes one row and starts the next interval: with the longest queue and the fullest node since the
    /// last, and the cells queued. A cell has the size `cell`.
    pub(crate) fn sample(
        &mut self,
        row: &mut [f64],
        (queue, node): (u32, u32),
        queued: u64,
        cell: Bytes,
        totals: &Totals,
        open: u64,
    ) {
        let values = [
            open,
            queued,
            u64::from(queue),
            (cell * u64::from(queue)).get(),
            u64::from(node),
            totals.hops - self.last.hops,
            totals.events - self.last.events,
            (totals.delivered - self.last.delivered).get(),
        ];
        for (cell, value) in row.iter_mut().zip(values) {
            *cell = value as f64;
        }
        self.last = *totals;
    }
}
