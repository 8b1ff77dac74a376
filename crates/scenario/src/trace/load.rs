//! What a trace offers, and how it is stretched to offer something else.

use kernel::Time;
use rack::Problem;
use rack::workload::config::{Nominal, WorkloadContext};
use rack::workload::limits::START_MAX;
use rack::workload::trace::TraceRow;

/// What a trace offers by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offered {
    flows: u64,
    bytes: u128,
    /// The earliest and the latest start.
    first: Time,
    last: Time,
    /// The first row that waits for others; its start, and so the load, is up to the network.
    waiting: Option<usize>,
}

impl Offered {
    /// Of these flows, of which there is at least one.
    #[must_use]
    pub fn of(rows: &[TraceRow]) -> Self {
        Self {
            flows: rows.len() as u64,
            bytes: rows.iter().map(|row| u128::from(row.bytes)).sum(),
            first: rows.iter().map(|row| row.start).min().unwrap_or(Time::ZERO),
            last: rows.iter().map(|row| row.start).max().unwrap_or(Time::ZERO),
            waiting: rows.iter().position(|row| !row.after.is_empty()),
        }
    }

    /// Its load, over the time from its first start to its last; none if that is no time, or if
    /// flows wait for others.
    #[must_use]
    pub fn load(&self, context: &WorkloadContext) -> Option<f64> {
        if self.waiting.is_some() || self.last <= self.first {
            return None;
        }
        let seconds = (self.last - self.first).as_ps() as f64 / 1e12;
        Some(self.seconds_at_full_load(context) / seconds)
    }

    /// As a workload is described that is stretched to `load`, or carried as it is.
    #[must_use]
    pub fn nominal(&self, load: Option<f64>, context: &WorkloadContext) -> Nominal {
        Nominal {
            sizes: match self.flows {
                1 => "that of a trace of 1 flow".to_string(),
                flows => format!("those of a trace of {flows} flows"),
            },
            mean_bytes: Some(self.bytes as f64 / self.flows as f64),
            interarrival_seconds: None,
            load,
            load_rate: context.load_rate,
        }
    }

    /// How long all nodes together take to send it, each at the rate that load 1 refers to.
    fn seconds_at_full_load(&self, context: &WorkloadContext) -> f64 {
        let capacity = f64::from(context.nodes) * context.load_rate.as_bps() as f64;
        self.bytes as f64 * 8.0 / capacity
    }

    /// Stretches all gaps between starts by one factor, so that the flows come to `load`; sizes
    /// stay. The first flow then starts at zero.
    ///
    /// # Errors
    /// When there are no gaps to stretch, or they would become longer than a run.
    pub fn stretch(
        &self,
        rows: &mut [TraceRow],
        load: f64,
        context: &WorkloadContext,
    ) -> Result<(), Problem> {
        let complain = |message: String| Err(Problem::new("load", message));
        if !load.is_finite() || load <= 0.0 {
            return complain(format!("found {load}; expected a load above 0, such as 0.5"));
        }
        if let Some(row) = self.waiting {
            return complain(format!(
                "found {load}, but flows of this trace wait for others (flow {row} is the first), so the network \
                 decides what they offer; remove load"
            ));
        }
        let length = self.last - self.first;
        if length.as_ps() == 0 {
            return complain(format!(
                "found {load}, but all flows start at once, at {}: there are no gaps to stretch; remove load",
                self.first
            ));
        }
        let stretched = (self.seconds_at_full_load(context) / load * 1e12).round();
        if stretched < 1.0 || stretched > START_MAX.as_ps() as f64 {
            return complain(format!(
                "found {load}, at which its last flow starts after {:e} s; expected 1 ps to {START_MAX}",
                stretched / 1e12
            ));
        }
        // Whole numbers, so that no start drifts: the last is exact, each other is rounded down
        // once.
        let (stretched, length) = (stretched as u128, u128::from(length.as_ps()));
        for row in rows {
            let since = u128::from((row.start - self.first).as_ps());
            row.start = Time::from_ps((since * stretched / length) as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kernel::Rate;

    use super::*;

    /// Two nodes that send 1 GB/s each.
    const CONTEXT: WorkloadContext =
        WorkloadContext { nodes: 2, seed: 1, load_rate: Rate::from_gbps(8) };

    fn rows(starts: &[u64]) -> Vec<TraceRow> {
        let row = |&start| TraceRow {
            start: Time::from_ps(start),
            dst: 1,
            bytes: 1_000,
            ..TraceRow::default()
        };
        starts.iter().map(row).collect()
    }

    fn starts(rows: &[TraceRow]) -> Vec<u64> {
        rows.iter().map(|row| row.start.as_ps()).collect()
    }

    #[test]
    fn gaps_keep_their_proportions_and_sizes_stay() {
        // Four flows of 1000 bytes are 2 us of two nodes: within 4 us they are half of what there
        // is.
        let mut flows = rows(&[5_000_000, 6_000_000, 9_000_000, 6_000_000]);
        let offered = Offered::of(&flows);
        assert_eq!(offered.load(&CONTEXT), Some(0.5));
        offered.stretch(&mut flows, 0.25, &CONTEXT).unwrap();
        assert_eq!(starts(&flows), [0, 2_000_000, 8_000_000, 2_000_000]);
        assert_eq!(Offered::of(&flows).load(&CONTEXT), Some(0.25));
        assert!(flows.iter().all(|flow| flow.bytes == 1_000));
        assert_eq!(offered.nominal(Some(0.25), &CONTEXT).mean_bytes, Some(1_000.0));
    }

    #[test]
    fn what_has_no_load_cannot_be_stretched_to_one() {
        let says = |flows: &[TraceRow], load: f64| {
            let stretched = Offered::of(flows).stretch(&mut flows.to_vec(), load, &CONTEXT);
            stretched.unwrap_err().to_string()
        };
        let mut flows = rows(&[0, 10, 20]);
        for load in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let expected = format!("load: found {load}; expected a load above 0, such as 0.5");
            assert_eq!(says(&flows, load), expected);
        }
        assert!(
            says(&flows, 1e-30).starts_with("load: found 0.000000000000000000000000000001, at")
        );
        assert!(
            says(&flows, 1e30).ends_with("expected 1 ps to 2592000 s"),
            "{}",
            says(&flows, 1e30)
        );
        assert!(says(&rows(&[7, 7]), 0.5).contains("all flows start at once, at 7 ps"));
        flows[2].after = vec![0];
        assert!(says(&flows, 0.5).contains("wait for others (flow 2 is the first)"));
        assert_eq!(Offered::of(&flows).load(&CONTEXT), None);
    }
}
