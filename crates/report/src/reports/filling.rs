//! Whether a run ended while the network was still filling.
//!
//! Leaves out: trends slower than a quarter of the run, and those that noise hides.

use rack::results::RunResult;

/// The gauge that tells: every fabric has it.
const OPEN_FLOWS: &str = "open_flows";
/// By what part the last quarter's mean exceeds that of the one before if the network still fills
/// (our choice: five per cent in a quarter of a run cannot be a steady state).
const RISE: f64 = 0.05;
/// And by how many standard deviations, were open flows Poisson-distributed (our choice).
const DEVIATIONS: f64 = 3.0;

/// What to tell the reader if flows still piled up when the run ended.
pub(super) fn notice(run: &RunResult) -> Option<String> {
    let column = run.series.gauges.iter().position(|gauge| gauge.name == OPEN_FLOWS)?;
    let end = *run.series.seconds.last()?;
    let mean = |from: f64, to: f64| {
        let rows = run.series.seconds.iter().zip(&run.series.values);
        let inside = rows.filter(|&(&at, _)| at > from * end && at <= to * end);
        let (sum, count) =
            inside.fold((0.0, 0u32), |(sum, count), (_, row)| (sum + row[column], count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    let (before, last) = (mean(0.5, 0.75)?, mean(0.75, 1.0)?);
    let rises = last - before > RISE * before && last - before > DEVIATIONS * before.sqrt();
    rises.then(|| {
        format!(
            "The network was still filling: in the last quarter of the run {last:.0} flows were open \
             on average, {before:.0} in the one before. A longer run, or a longer warm-up, may give \
             other figures."
        )
    })
}

#[cfg(test)]
mod tests {
    use rack::results::SeriesTable;
    use rack::{Gauge, GaugeKind};

    use super::*;

    fn run(open: impl Fn(f64) -> f64) -> RunResult {
        let gauge = Gauge { name: OPEN_FLOWS, meaning: "", kind: GaugeKind::Level };
        let seconds: Vec<f64> = (1..=100).map(f64::from).collect();
        let values = seconds.iter().map(|&at| vec![open(at)]).collect();
        RunResult {
            label: String::new(),
            scenario: String::new(),
            summary: serde_json::Value::Null,
            stages: Vec::new(),
            bins: Vec::new(),
            cdfs: Vec::new(),
            series: SeriesTable { gauges: vec![gauge], seconds, values },
            tables: Vec::new(),
        }
    }

    #[test]
    fn a_run_that_ends_on_a_slope_says_so() {
        let text = notice(&run(|at| 10.0 * at)).unwrap();
        assert!(text.contains("880 flows") && text.contains("630 in the one before"), "{text}");
    }

    #[test]
    fn a_steady_run_one_that_drains_and_one_without_flows_say_nothing() {
        assert_eq!(notice(&run(|at| if at < 40.0 { at } else { 40.0 })), None);
        assert_eq!(notice(&run(|at| 100.0 - at)), None);
        assert_eq!(notice(&run(|_| 0.0)), None);
        // From 16 flows to 18: within what chance does.
        assert_eq!(notice(&run(|at| if at <= 75.0 { 16.0 } else { 18.0 })), None);
    }
}
