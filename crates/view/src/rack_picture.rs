//! The network of a run as its record of packets shows it: who is connected to whom, and in each span of time what lines
//! carried of the recorded flows and how deep packets found the queues.

use std::collections::{BTreeMap, BTreeSet};

use rack::trace::Trace;
use serde_json::{Value, json};

/// Spans that the time of a record is divided into (our choice: places of a slider).
const SPANS: u64 = 120;

/// What a line did in one span.
#[derive(Clone, Copy, Default)]
struct Use {
    /// Bytes of recorded flows, headers included, whose sending began then.
    carried: u64,
    /// The deepest queue that a packet found on joining it then, in bytes.
    found: u64,
}

/// A node at the end of a line, without the number of the line, of several between two nodes: `spine 0 (link 3)`.
fn node_of(end: &str) -> &str {
    end.split_once(" (link ").map_or(end, |(node, _)| node)
}

/// The picture of `trace`.
pub fn picture(trace: &Trace) -> Value {
    let first = trace.hops.iter().map(|hop| hop.joined.as_ps()).min().unwrap_or(0);
    let last = trace.hops.iter().map(|hop| hop.sent.max(hop.started).as_ps()).max().unwrap_or(0);
    let step = ((last - first) / SPANS + 1).max(1);
    let mut uses: BTreeMap<(u32, u64), Use> = BTreeMap::new();
    for hop in &trace.hops {
        let found = uses.entry((hop.place, (hop.joined.as_ps() - first) / step)).or_default();
        found.found = found.found.max(hop.found_bytes.into());
        if hop.sent > hop.started {
            let at = (hop.started.as_ps() - first) / step;
            uses.entry((hop.place, at)).or_default().carried += u64::from(hop.bytes);
        }
    }
    let mut links: Vec<Vec<[u64; 3]>> = vec![Vec::new(); trace.places.len()];
    for (&(place, at), span) in &uses {
        links[place as usize].push([at, span.carried, span.found]);
    }
    let nodes: BTreeSet<&str> =
        trace.places.iter().flat_map(|place| [place.from.as_str(), node_of(&place.to)]).collect();
    let links = trace.places.iter().zip(links).map(|(place, spans)| {
        let (from, to) = (place.from.as_str(), node_of(&place.to));
        json!({ "from": from, "to": to, "name": place.to_string(), "spans": spans })
    });
    let seconds = |ps: u64| kernel::Span::from_ps(ps).as_seconds();
    json!({
        "nodes": nodes,
        "links": links.collect::<Value>(),
        "flows": trace.flows().len(),
        "spans": SPANS,
        "first_seconds": seconds(first),
        "step_seconds": seconds(step),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{Span, Time};
    use rack::FlowId;
    use rack::trace::{Hop, Outcome, Place};

    fn hop(joined: u64, started: u64, sent: u64, found_bytes: u32) -> Hop {
        let [joined, started, sent] = [joined, started, sent].map(Time::from_ps);
        Hop {
            flow: FlowId::new(4),
            packet: 0,
            hop: 0,
            is_data: true,
            to_source: false,
            is_again: false,
            offset: 0,
            payload: 1000,
            bytes: 1100,
            place: 0,
            is_last: true,
            is_marked: false,
            is_trimmed: false,
            outcome: Outcome::Arrived,
            joined,
            started,
            sent,
            arrived: sent,
            propagation: Span::ZERO,
            own: Span::ZERO,
            others: Span::ZERO,
            found_bytes,
            found_packets: 1,
            beside: Vec::new(),
            header: Vec::new(),
        }
    }

    #[test]
    fn bytes_stand_where_they_were_sent_and_depths_where_they_were_found() {
        let place = Place { port: 3, from: "node 0".into(), to: "leaf 0 (link 1)".into() };
        // Spans of 10 ps: 0 to 1,199.
        let hops = vec![hop(0, 5, 9, 0), hop(2, 9, 15, 700), hop(1_190, 1_195, 1_199, 40)];
        let found = picture(&Trace { hops, places: vec![place], ..Trace::default() });
        assert_eq!(found["nodes"], json!(["leaf 0", "node 0"]));
        assert_eq!(found["links"][0]["name"], "node 0 to leaf 0 (link 1)");
        assert_eq!(found["links"][0]["spans"], json!([[0, 2_200, 700], [119, 1_100, 40]]));
        assert_eq!((&found["step_seconds"], &found["flows"]), (&json!(1e-11), &json!(1)));
    }

    #[test]
    fn a_record_of_nothing_is_a_picture_of_nothing() {
        let found = picture(&Trace::default());
        assert_eq!((&found["nodes"], &found["links"]), (&json!([]), &json!([])));
    }
}
