//! What a summary says of the jobs of a workload.

use kernel::{Span, Time};
use serde_json::{Map, Value, json};

use super::figure::Figure;
use crate::workload::{Bound, JobState};

/// The jobs of a run that ended at `end`, by name; none where there are none.
pub(crate) fn summary(jobs: &[JobState], end: Time) -> Option<Value> {
    if jobs.is_empty() {
        return None;
    }
    let named = jobs.iter().map(|job| (job.name.clone(), one(job, end)));
    Some(Value::Object(named.collect()))
}

fn one(job: &JobState, end: Time) -> Value {
    let mut table = Map::new();
    table.insert("nodes".into(), json!(job.nodes.len()));
    table.insert("start_seconds".into(), json!(job.start.as_seconds()));
    let took = match job.end {
        Some(done) => Figure::Exact((done - job.start).as_seconds()),
        // A run that came to its limit first knows that it takes longer.
        None if end > job.start => Figure::AtLeast((end - job.start).as_seconds()),
        None => Figure::Missing,
    };
    took.put("seconds", &mut table);
    table.insert("flows".into(), json!(job.flows));
    table.insert("bytes".into(), json!(job.bytes.get()));
    if !job.bounds.is_empty() {
        // What bounds a job is known at its end alone.
        let seconds = |span: Span| job.end.map(|_| span.as_seconds());
        let part = |&(bound, span): &(Bound, Span)| {
            (format!("{}_seconds", bound.as_str()), json!(seconds(span)))
        };
        table.insert("bounded_by".into(), Value::Object(job.bounds.iter().map(part).collect()));
    }
    Value::Object(table)
}

#[cfg(test)]
mod tests {
    use kernel::Bytes;

    use super::*;
    use crate::NodeId;

    #[test]
    fn a_job_that_is_not_over_took_at_least_until_the_end_of_the_run() {
        let at = |us: u64| Time::from_ps(us * 1_000_000);
        let job = |end| JobState {
            name: "a".into(),
            nodes: vec![NodeId::new(4), NodeId::new(2)],
            start: at(10),
            end,
            flows: 3,
            bytes: Bytes::new(70),
            bounds: vec![(Bound::Compute, Span::from_us(15)), (Bound::AllReduce, Span::from_us(5))],
        };
        let of = |job: JobState, end| summary(&[job], end).expect("there is one")["a"].clone();
        let common = json!({
            "nodes": 2, "start_seconds": 1e-5, "seconds": 2e-5, "flows": 3, "bytes": 70,
            "bounded_by": { "compute_seconds": 1.5e-5, "all_reduce_seconds": 5e-6 },
        });
        assert_eq!(of(job(Some(at(30))), at(25)), common);
        let open = of(job(None), at(25));
        assert_eq!(
            open["bounded_by"],
            json!({ "compute_seconds": null, "all_reduce_seconds": null })
        );
        assert_eq!(
            (&open["seconds"], &open["at_least"]["seconds"]),
            (&Value::Null, &json!(1.5e-5))
        );
        let unborn = of(job(None), at(5));
        assert_eq!((&unborn["seconds"], unborn.get("at_least")), (&Value::Null, None));
        assert_eq!(summary(&[], at(5)), None);
    }
}
