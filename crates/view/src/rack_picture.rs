//! The network of a run as its record shows it: who is connected to whom, and what lines carried and how much waited
//! for them in each span of time.

use std::collections::BTreeSet;

use rack::trace::Lines;
use serde_json::{Value, json};

/// A node at the end of a line, without the number of the line, of several between two nodes: `spine 0 (link 3)`;
/// without its NIC, where the node passes on what others send: `node 3 (NIC)`; and without its terminal port, where a
/// line is between a switch and what is in the same chip: `leaf 2 (terminal 5)`.
fn node_of(end: &str) -> &str {
    end.split_once(" (").map_or(end, |(node, _)| node)
}

/// The picture of `lines`: spans in which a line carried nothing are left out.
pub fn picture(lines: &Lines) -> Value {
    let ends = lines
        .lines
        .iter()
        .flat_map(|line| [&line.place.from, &line.place.to].map(|end| node_of(end)));
    let nodes: BTreeSet<&str> = ends.collect();
    let links = lines.lines.iter().map(|line| {
        let filled = line.spans.iter().enumerate().filter(|(_, span)| span.carried > 0);
        json!({
            "from": node_of(&line.place.from),
            "to": node_of(&line.place.to),
            "name": line.place.to_string(),
            "spans": filled.map(|(at, span)| json!([at, span.carried, span.waiting])).collect::<Value>(),
        })
    });
    json!({
        "nodes": nodes,
        "links": links.collect::<Value>(),
        "spans": lines.lines.iter().map(|line| line.spans.len()).max().unwrap_or(0),
        "step_seconds": lines.span.as_seconds(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Span;
    use rack::trace::{ETHERNET, Line, LineSpan, Place};

    #[test]
    fn lines_lead_to_nodes_and_say_what_they_carried_when() {
        let place = Place {
            port: 3,
            link_type: ETHERNET,
            from: "node 0".into(),
            to: "leaf 0 (link 1)".into(),
        };
        let spans = [(0, 0), (2_200, 700), (0, 0), (1_100, 40)];
        let spans = spans.map(|(carried, waiting)| LineSpan { carried, waiting }).to_vec();
        let lines = Lines { span: Span::from_us(4), lines: vec![Line { place, spans }] };
        let expected = json!({
            "nodes": ["leaf 0", "node 0"],
            "links": [{
                "from": "node 0",
                "to": "leaf 0",
                "name": "node 0 to leaf 0 (link 1)",
                "spans": [[1, 2_200, 700], [3, 1_100, 40]],
            }],
            "spans": 4,
            "step_seconds": 4e-6,
        });
        assert_eq!(picture(&lines), expected);
    }

    /// In a torus: two nodes, not four; and no more for what is in the chip of a switch.
    #[test]
    fn the_line_of_a_nodes_own_nic_begins_and_ends_at_the_node() {
        let line = |from: &str, to: &str| Line {
            place: Place { port: 0, link_type: ETHERNET, from: from.into(), to: to.into() },
            spans: vec![LineSpan { carried: 1, waiting: 0 }],
        };
        let inside = line("leaf 2", "leaf 2 (terminal 5)");
        let lines = vec![line("node 0 (NIC)", "node 0"), line("node 0", "node 1"), inside];
        let found = picture(&Lines { span: Span::from_us(1), lines });
        assert_eq!(found["nodes"], json!(["leaf 2", "node 0", "node 1"]));
        assert_eq!(
            (&found["links"][0]["from"], &found["links"][0]["to"]),
            (&json!("node 0"), &json!("node 0"))
        );
        assert_eq!(found["links"][0]["name"], "node 0 (NIC) to node 0");
    }

    #[test]
    fn a_record_of_nothing_is_a_picture_of_nothing() {
        let found = picture(&Lines::default());
        assert_eq!((&found["nodes"], &found["spans"]), (&json!([]), &json!(0)));
    }
}
