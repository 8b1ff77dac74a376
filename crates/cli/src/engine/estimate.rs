//! What a run will take, before it is begun: memory from the configuration, time from a short probe.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use kernel::{Bytes, Time};
use rack::memory::binary;
use rack::run::Progress;
use report::{Cell, Column, ResultsTable, Unit};
use scenario::Scenario;

use super::{Failure, measure};

/// How long the probe of one fabric runs at most (our choice: what people wait for an answer).
const PROBE: Duration = Duration::from_secs(2);
/// Memory that a flow takes in the list of a workload that is known beforehand. Our choice, on the safe
/// side, as for traces.
const FLOW_BYTES: u64 = 256;

/// What a run of one fabric will take.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// What the fabric is called.
    pub label: String,
    /// Memory of the network, and of the list of flows where there is one. Open flows come on top.
    pub memory: Bytes,
    /// Seconds of this machine's time; `None` if the probe came to no end and saw none.
    pub seconds: Option<f64>,
    /// What that rests on.
    pub basis: String,
}

/// Estimates what a run of each fabric of `scenario` will take. `stop` is asked now and then.
///
/// # Errors
/// When the input is bad; or when it is told to stop.
pub fn estimate(scenario: &Scenario, stop: &dyn Fn() -> bool) -> Result<Vec<Estimate>, Failure> {
    let flows = flows(scenario)?;
    let one = |index: usize| {
        let alone = scenario.with_fabric(index);
        let memory = alone.memory(0).get().saturating_add(flows.get());
        let (seconds, basis) = probe(&alone, stop)?;
        let label = alone.fabrics[0].label.clone();
        Ok(Estimate { label, memory: Bytes::new(memory), seconds, basis })
    };
    (0..scenario.fabrics.len()).map(one).collect()
}

/// Memory that a run of the first fabric of `scenario` will take: its network, and the list of flows where
/// there is one. Open flows come on top.
///
/// # Errors
/// When its workload cannot be drawn.
pub fn memory(scenario: &Scenario) -> Result<Bytes, Failure> {
    Ok(Bytes::new(scenario.memory(0).get().saturating_add(flows(scenario)?.get())))
}

/// Memory of the list of flows, of a workload that is known beforehand.
fn flows(scenario: &Scenario) -> Result<Bytes, Failure> {
    let flows = scenario.draw()?.total().unwrap_or(0);
    Ok(Bytes::new(flows.saturating_mul(FLOW_BYTES)))
}

/// Runs for a while; the seconds that all of it would take, and what that rests on.
fn probe(scenario: &Scenario, stop: &dyn Fn() -> bool) -> Result<(Option<f64>, String), Failure> {
    let began = Instant::now();
    let limit = scenario.run.time.map(|span| Time::ZERO + span);
    let (mut first, mut last) = (None, 0.0f64);
    let mut is_cut = false;
    let run = measure(scenario, &mut |progress| {
        last = last.max(share_of(progress, limit));
        let now = began.elapsed();
        // Before it is asked for the first time a network is made, and a controller's tables are: that is done once.
        let since = *first.get_or_insert((now, last));
        is_cut = now - since.0 >= PROBE || stop();
        if is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if stop() {
        return Err(Failure::Interrupted);
    }
    let took = began.elapsed().as_secs_f64();
    Ok(match run {
        Err(failure @ (Failure::Input(_) | Failure::Internal(_))) => return Err(failure),
        Err(failure) => (None, format!("a probe broke after {took:.1} s: {failure}")),
        Ok(_) if !is_cut => (Some(took), "a probe that came to the end".into()),
        Ok(_) => {
            let (made, at) = first.map_or((took, last), |(now, share)| (now.as_secs_f64(), share));
            let all = extrapolate((made, at), (took, last));
            let ran = took - made;
            let basis = match all {
                Some(_) => {
                    let per_cent = (last - at) * 100.0;
                    format!(
                        "{made:.1} s to set up, and {ran:.1} s in which {per_cent:.2} % was done"
                    )
                }
                None => format!("no flow ended in a probe of {ran:.1} s"),
            };
            (all, basis)
        }
    })
}

/// When all would be done, of two instants with what was done by then: seconds, and a share. `None`: nothing was between
/// them.
fn extrapolate((began, at_first): (f64, f64), (now, at_last): (f64, f64)) -> Option<f64> {
    let done = at_last - at_first;
    (done > 0.0).then(|| began + (now - began) * (1.0 - at_first) / done)
}

/// How much of a run is done: of its flows or of its time, whichever ends it first.
fn share_of(progress: Progress, limit: Option<Time>) -> f64 {
    let flows = progress.total.map(|total| progress.ended as f64 / total.max(1) as f64);
    let time =
        limit.map(|limit| progress.now.as_seconds() / limit.as_seconds().max(f64::MIN_POSITIVE));
    [flows, time].into_iter().flatten().fold(0.0, f64::max).min(1.0)
}

/// The estimates as a table.
#[must_use]
pub fn table(estimates: &[Estimate]) -> ResultsTable {
    let columns = [
        ("fabric", "Fabric"),
        ("memory_bytes", "Memory, about"),
        ("seconds", "Time, about"),
        ("basis", "The time is from"),
    ];
    let columns = columns.map(|(key, title)| Column::new(key, title));
    let mut table = ResultsTable::new(columns.to_vec());
    for estimate in estimates {
        let mut memory = Cell::new(estimate.memory.get(), Unit::Bytes);
        memory.text = binary(estimate.memory);
        let seconds = serde_json::json!(estimate.seconds);
        table.push(vec![
            Cell::text(&estimate.label),
            memory,
            Cell::new(seconds, Unit::Seconds),
            Cell::text(&estimate.basis),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_once_is_not_multiplied() {
        // 14 s to set up, then 1 % in 2 s: 200 s more.
        assert_eq!(extrapolate((14.0, 0.0), (16.0, 0.01)), Some(214.0));
        // Half was done when it was first asked: a quarter more took 2 s, and so does the last.
        assert_eq!(extrapolate((1.0, 0.5), (3.0, 0.75)), Some(5.0));
        assert_eq!(extrapolate((1.0, 0.5), (3.0, 0.5)), None);
    }

    #[test]
    fn what_ends_a_run_first_says_how_far_it_is() {
        let progress = |ended, total, ps| Progress { ended, total, now: Time::from_ps(ps) };
        let limit = Some(Time::from_ps(1_000));
        assert_eq!(share_of(progress(5, Some(20), 900), None), 0.25);
        assert_eq!(share_of(progress(5, Some(20), 500), limit), 0.5);
        assert_eq!(share_of(progress(5, None, 250), limit), 0.25);
        assert_eq!(share_of(progress(5, None, 100), None), 0.0);
        assert_eq!(share_of(progress(30, Some(20), 0), None), 1.0);
    }
}
