//! Lists of flows of HPCC's simulator (SIGCOMM 2019), which others on ns-3 read as well.
//!
//! The first line says how many flows follow, each a line `src dst priority port bytes start`,
//! times in seconds. What stands below is no flow; the list that comes with HPCC holds more lines
//! than it counts. The priority group becomes the class; the port only tells flows apart.

use std::io::Read;

use super::lines::Lines;
use super::{At, Draft, Rows};

/// What a line holds.
const VALUES: [&str; 6] = ["src", "dst", "priority", "port", "bytes", "start"];

/// Reads all flows into `rows`, problems included.
pub(super) fn read(file: impl Read, rows: &mut Rows<'_>) {
    let mut lines = Lines::new(file);
    let Some((line, text, is_ended)) = lines.next(rows) else { return };
    let Ok(count) = text.parse::<u64>() else {
        let message = format!(
            "found {text:?}; expected how many flows there are, alone on the first line, as in a flow.txt of \
             HPCC; if it is a table, say format = \"csv\""
        );
        return rows.complain(At::Line(line), "", message);
    };
    if !is_ended && count > 0 {
        return rows.complain_of_torn_line(line);
    }
    for number in 0..count {
        let before = rows.found();
        let Some((line, text, is_ended)) = lines.next(rows) else {
            if rows.found() == before {
                let message = format!(
                    "ends after {number} flows; its first line says {count}: it is cut off, or the count is wrong"
                );
                rows.complain_whole(message);
            }
            return;
        };
        if !is_ended {
            return rows.complain_of_torn_line(line);
        }
        let values: Vec<&str> = text.split_whitespace().collect();
        take(line, &values, rows);
        if rows.is_enough() {
            return;
        }
    }
}

fn take(line: usize, values: &[&str], rows: &mut Rows<'_>) {
    let (at, before) = (At::Line(line), rows.found());
    let [src, dst, priority, port, bytes, start] = values else {
        let message = format!(
            "found {} values; expected {}: {}",
            values.len(),
            VALUES.len(),
            VALUES.join(" ")
        );
        return rows.complain(at, "", message);
    };
    rows.whole(at, "port", port);
    let draft = Draft {
        start: rows.instant(at, "start", start, ("s", 1e12)),
        src: rows.whole(at, "src", src),
        dst: rows.whole(at, "dst", dst),
        bytes: rows.whole(at, "bytes", bytes),
        class: rows.whole(at, "priority", priority),
        after: Vec::new(),
    };
    rows.take(at, before, draft);
}
