//! Connection matrices of htsim.
//!
//! A head says how many `Nodes`, `Connections` and `Triggers` there are. Then come flows, a line
//! each (`0->1 id 1 start 0 size 2000000`), times in picoseconds, and triggers. A flow starts at
//! its `start`, or when its `trigger` fires; it fires others when its last byte has arrived
//! (`recv_done_trigger`) or is acknowledged (`send_done_trigger`, half a round trip later): here
//! both are its end.
//!
//! What triggers mean as dependencies: all that one of kind `oneshot` starts wait for the one flow
//! that fires it; all that a `barrier` starts, for all that fire it; a `multishot` starts one flow
//! each time it is fired, so its flows form a chain where each fires it again. What else can be
//! written (a multishot that several flows fire at a time, say) depends on which flow ends first:
//! no list of dependencies says that, so it is refused.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read;

use kernel::Time;

use super::lines::Lines;
use super::rows::AFTER_BYTES;
use super::{At, Draft, Rows};

/// A line's flow.
struct Flow {
    line: usize,
    draft: Draft,
    /// What starts it, if no time does.
    trigger: Option<u64>,
    priority: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Oneshot,
    Multishot,
    Barrier,
}

#[derive(Default)]
struct Trigger {
    /// Where it says what it is, and what that is.
    kind: Option<(usize, Kind)>,
    count: u64,
    /// Flows whose end fires it, and flows that it starts, in the order of their lines.
    fired_by: Vec<usize>,
    starts: Vec<usize>,
}

/// A whole file.
#[derive(Default)]
struct Matrix {
    /// What the head says: nodes, connections, triggers.
    heads: [Option<u64>; 3],
    flows: Vec<Flow>,
    triggers: BTreeMap<u64, Trigger>,
    /// How many lines describe a trigger.
    described: u64,
}

const HEADS: [&str; 3] = ["Nodes", "Connections", "Triggers"];

/// Reads all flows into `rows`, problems included.
pub(super) fn read(file: impl Read, rows: &mut Rows<'_>) {
    let (mut lines, mut matrix) = (Lines::new(file), Matrix::default());
    while let Some((line, text, is_ended)) = lines.next(rows) {
        if !is_ended {
            rows.complain_of_torn_line(line);
        } else {
            matrix.take(line, text, rows);
        }
        if rows.is_enough() || !rows.have_room(matrix.flows.len() as u64, 0) {
            return;
        }
    }
    // Only a file whose lines are all right is worth a look as a whole.
    if rows.found() == 0 {
        matrix.check_heads(rows);
    }
    if rows.found() == 0 {
        matrix.connect(rows);
    }
    if rows.found() == 0 {
        matrix.hand_over(rows);
    }
}

impl Matrix {
    fn take(&mut self, line: usize, text: &str, rows: &mut Rows<'_>) {
        let mut words = text.split_whitespace();
        let Some(first) = words.next() else { return };
        let at = At::Line(line);
        if let Some(head) = HEADS.iter().position(|head| *head == first) {
            let number = value(at, first, words.next(), rows);
            self.heads[head] = Some(number);
        } else if let Some((src, dst)) = first.split_once("->") {
            self.flow(line, (src, dst), words, rows);
        } else if first == "trigger" {
            self.trigger(line, words, rows);
        } else if first == "Failures" || first == "failure" {
            if first == "failure" || value(at, first, words.next(), rows) > 0 {
                let message = "found failures; what breaks is no part of a trace: say it as [[fault]] in the \
                               scenario, and take these lines out";
                rows.complain(at, "", message);
            }
        } else {
            let message = format!(
                "found {first:?}; expected a line of a connection matrix: Nodes, Connections, Triggers, a flow \
                 such as \"0->1 id 1 start 0 size 2000000\", or trigger"
            );
            rows.complain(at, "", message);
        }
    }

    fn flow<'w>(
        &mut self,
        line: usize,
        (src, dst): (&str, &str),
        mut words: impl Iterator<Item = &'w str>,
        rows: &mut Rows<'_>,
    ) {
        let at = At::Line(line);
        let (mut start, mut size, mut trigger, mut priority) = (None, None, None, None);
        let mut fires = Vec::new();
        let before = rows.found();
        let (src, dst) = (rows.whole(at, "src", src), rows.whole(at, "dst", dst));
        while let Some(word) = words.next() {
            match word {
                "start" => start = Some(picoseconds(at, words.next(), rows)),
                "size" => size = Some(value(at, word, words.next(), rows)),
                "trigger" => trigger = Some(value(at, word, words.next(), rows)),
                "prio" => priority = Some(value(at, word, words.next(), rows)),
                "send_done_trigger" | "recv_done_trigger" => {
                    fires.push(value(at, word, words.next(), rows));
                }
                // Flows are told apart by their line.
                "id" => _ = value(at, word, words.next(), rows),
                _ => {
                    let message = format!(
                        "found {word:?}; expected one of id, start, size, trigger, send_done_trigger, \
                         recv_done_trigger and prio, each with its value"
                    );
                    return rows.complain(at, "", message);
                }
            }
            // One message a line: what follows a word that is wrong is read wrongly.
            if rows.found() > before {
                return;
            }
        }
        if start.is_some() == trigger.is_some() {
            let found = if start.is_some() {
                "both start and trigger"
            } else {
                "neither start nor trigger"
            };
            rows.complain(at, "", format!("found {found}; expected one of them"));
        }
        let Some(bytes) = size else {
            let message = "found no size; expected the flow's bytes, for here every flow ends";
            return rows.complain(at, "size", message);
        };
        let index = self.flows.len();
        for number in fires {
            self.triggers.entry(number).or_default().fired_by.push(index);
        }
        if let Some(number) = trigger {
            self.triggers.entry(number).or_default().starts.push(index);
        }
        let start = start.unwrap_or(Time::ZERO);
        let draft = Draft { start, src, dst, bytes, class: 0, after: Vec::new() };
        self.flows.push(Flow { line, draft, trigger, priority });
        // `take` counts them again when they are handed over; until then they lie here.
        rows.have_room(self.flows.len() as u64, size_of::<Flow>() as u64 + AFTER_BYTES);
    }

    fn trigger<'w>(
        &mut self,
        line: usize,
        mut words: impl Iterator<Item = &'w str>,
        rows: &mut Rows<'_>,
    ) {
        let at = At::Line(line);
        let (mut id, mut kind, mut count) = (None, None, 0);
        while let Some(word) = words.next() {
            match word {
                "id" => id = Some(value(at, word, words.next(), rows)),
                "count" => count = value(at, word, words.next(), rows),
                "oneshot" => kind = Some(Kind::Oneshot),
                "multishot" => kind = Some(Kind::Multishot),
                "barrier" => kind = Some(Kind::Barrier),
                _ => {
                    let message = format!(
                        "found {word:?}; expected id, count, oneshot, multishot or barrier"
                    );
                    return rows.complain(at, "trigger", message);
                }
            }
        }
        let (Some(id), Some(kind)) = (id, kind) else {
            let message = "expected a number and a kind, such as \"trigger id 1 oneshot\"";
            return rows.complain(at, "trigger", message);
        };
        self.described += 1;
        let trigger = self.triggers.entry(id).or_default();
        trigger.count = count;
        if let Some((earlier, _)) = trigger.kind.replace((line, kind)) {
            let message = format!("trigger {id} is also on line {earlier}; remove one");
            rows.complain(at, "trigger", message);
        }
        rows.have_room(self.flows.len() as u64, size_of::<Trigger>() as u64 + AFTER_BYTES);
    }

    /// Holds the head against the rest.
    fn check_heads(&self, rows: &mut Rows<'_>) {
        let found = [None, Some(self.flows.len() as u64), Some(self.described)];
        for ((head, said), found) in HEADS.iter().zip(self.heads).zip(found) {
            match (said, found) {
                (Some(said), Some(found)) if said != found => rows.complain_whole(format!(
                    "its head says {head} {said}, and there are {found}: it is cut off, or the head is wrong"
                )),
                (None, Some(found)) if found > 0 => rows.complain_whole(format!(
                    "has no line {head}; expected \"{head} {found}\" above the flows"
                )),
                _ => {}
            }
        }
        if let Some(nodes) = self.heads[0].filter(|&nodes| nodes > u64::from(rows.nodes())) {
            rows.complain_whole(format!(
                "is for {nodes} nodes and the rack has {}; expected at most as many: give the fabric {nodes} nodes",
                rows.nodes()
            ));
        }
        let mut priorities = self.flows.iter().map(|flow| flow.priority);
        let first = priorities.next().flatten();
        if let Some(other) = self.flows.iter().find(|flow| flow.priority != first) {
            let message = "found flows of several priorities; htsim's order what one receiver pulls, which \
                           no class here does: take prio out, or give the flows as CSV with a class";
            rows.complain(At::Line(other.line), "prio", message);
        }
    }

    /// Turns triggers into what flows wait for.
    fn connect(&mut self, rows: &mut Rows<'_>) {
        let triggers = std::mem::take(&mut self.triggers);
        for (id, trigger) in &triggers {
            if let Err((line, message)) = self.wait_for(*id, trigger, rows) {
                rows.complain(At::Line(line), "trigger", message);
            }
            if rows.is_enough() {
                return;
            }
        }
    }

    /// Makes what one trigger starts wait for what fires it; or where that makes no sense, and why.
    fn wait_for(
        &mut self,
        id: u64,
        trigger: &Trigger,
        rows: &mut Rows<'_>,
    ) -> Result<(), (usize, String)> {
        let Trigger { fired_by, starts, count, kind } = trigger;
        let Some((line, kind)) = *kind else {
            let named = starts.iter().chain(fired_by).min();
            let line = named.map_or(1, |&flow| self.flows[flow].line);
            let message = format!(
                "found trigger {id}, which no line describes; add \"trigger id {id} oneshot\""
            );
            return Err((line, message));
        };
        if starts.is_empty() {
            return Ok(());
        }
        if fired_by.is_empty() {
            let line = self.flows[starts[0]].line;
            let message = format!("waits for trigger {id}, which no flow fires; give it a start");
            return Err((line, message));
        }
        let fired = fired_by.len() as u64;
        match kind {
            Kind::Oneshot if fired > 1 => Err((
                line,
                format!(
                    "trigger {id} is oneshot and {fired} flows fire it; expected one, or a barrier with count \
                     {fired} if all of them must have ended"
                ),
            )),
            Kind::Barrier if *count != fired => Err((
                line,
                format!(
                    "barrier {id} waits for {count} ends and {fired} flows fire it; expected as many"
                ),
            )),
            Kind::Oneshot | Kind::Barrier => {
                let edges = fired.saturating_mul(starts.len() as u64);
                if rows.have_room(self.flows.len() as u64, edges.saturating_mul(AFTER_BYTES)) {
                    for &flow in starts {
                        let after = &mut self.flows[flow].draft.after;
                        after.extend(fired_by.iter().map(|&earlier| earlier as u64));
                    }
                }
                Ok(())
            }
            Kind::Multishot => self.chain(id, line, trigger),
        }
    }

    /// A multishot as a chain: one flow fires it first, and each that it starts fires it again.
    fn chain(&mut self, id: u64, line: usize, trigger: &Trigger) -> Result<(), (usize, String)> {
        let refused = |what: &str| {
            let message = format!(
                "trigger {id} is multishot and {what}: which flow starts when depends on which ends first, \
                 and no list of dependencies says that; expected one flow that fires it and then those that it \
                 starts, each once"
            );
            Err((line, message))
        };
        let Trigger { fired_by, starts, .. } = trigger;
        let (mut again, first): (Vec<usize>, Vec<usize>) =
            fired_by.iter().partition(|flow| starts.binary_search(flow).is_ok());
        let [first] = first[..] else { return refused("not one flow fires it first") };
        again.sort_unstable();
        if again.windows(2).any(|pair| pair[0] == pair[1]) {
            return refused("a flow fires it twice");
        }
        let mut earlier = first;
        for (position, &flow) in starts.iter().enumerate() {
            self.flows[flow].draft.after.push(earlier as u64);
            if again.binary_search(&flow).is_err() && position + 1 < starts.len() {
                return refused("a flow that it starts does not fire it again");
            }
            earlier = flow;
        }
        Ok(())
    }

    /// Hands the flows over in the order of their lines, but each after all that it waits for.
    fn hand_over(mut self, rows: &mut Rows<'_>) {
        let mut waiting: Vec<usize> =
            self.flows.iter().map(|flow| flow.draft.after.len()).collect();
        let mut dependents: Vec<Vec<u32>> = vec![Vec::new(); self.flows.len()];
        for (index, flow) in self.flows.iter().enumerate() {
            for &earlier in &flow.draft.after {
                dependents[earlier as usize].push(index as u32);
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..waiting.len()).filter(|&flow| waiting[flow] == 0).map(Reverse).collect();
        let mut numbers = vec![None; waiting.len()];
        while let Some(Reverse(index)) = ready.pop() {
            numbers[index] = Some(rows.count());
            let mut draft = std::mem::take(&mut self.flows[index].draft);
            for earlier in &mut draft.after {
                *earlier = numbers[*earlier as usize].expect("what it waits for went before");
            }
            let before = rows.found();
            rows.take(At::Line(self.flows[index].line), before, draft);
            if rows.is_enough() {
                return;
            }
            for &next in &dependents[index] {
                let next = next as usize;
                waiting[next] -= 1;
                if waiting[next] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        if let Some(stuck) = waiting.iter().position(|&left| left > 0) {
            let flow = &self.flows[stuck];
            let id = flow.trigger.unwrap_or_default();
            let message = format!(
                "waits, through trigger {id}, for a flow that waits for it: neither would ever start; give one a \
                 start"
            );
            rows.complain(At::Line(flow.line), "trigger", message);
        }
    }
}

/// The number after a word.
fn value(at: At, name: &str, text: Option<&str>, rows: &mut Rows<'_>) -> u64 {
    let Some(text) = text else {
        rows.complain(at, name, "value missing");
        return 0;
    };
    rows.whole(at, name, text)
}

/// A start. Older versions of htsim took microseconds with a fraction; a whole number does not
/// tell, a fraction does.
fn picoseconds(at: At, text: Option<&str>, rows: &mut Rows<'_>) -> Time {
    let text = text.unwrap_or("");
    if text.parse::<u64>().is_err() {
        let message = format!(
            "found {text:?}; expected a whole number of picoseconds, as htsim's versions of today read it (older \
             ones read microseconds)"
        );
        rows.complain(at, "start", message);
        return Time::ZERO;
    }
    rows.time(at, "start", &format!("{text} ps"))
}
