//! What leaves and spines count, and what must add up.

use serde_json::{Map, Value, json};

use super::{Plane, Switches, unit};
use crate::network::message::SIZE;
use crate::network::spine::Clocked;

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) segments: u64,
    pub(super) requests: u64,
    pub(super) credits: u64,
    pub(super) acknowledgments: u64,
    /// What leaves heard of these.
    pub(super) segments_heard: u64,
    pub(super) requests_heard: u64,
    pub(super) credits_heard: u64,
    pub(super) acknowledgments_heard: u64,
    /// Packets of nodes: taken from their lines, whole in their queues, whole at the other end, on their
    /// way to the line of their destination.
    pub(super) entered: u64,
    pub(super) stored: u64,
    pub(super) whole: u64,
    pub(super) delivered: u64,
    /// Words of room told, and those heard, whether or not they made sense.
    pub(super) words: u64,
    pub(super) words_heard: u64,
    /// Messages, segments and words that made no sense: dropped.
    pub(super) unexpected: u64,
    pub(super) dropped: u64,
    pub(super) marked: u64,
    pub(super) queue_max: u32,
    pub(super) spine_max: usize,
}

impl Counts {
    /// Adds what was counted in another part of the network.
    pub(super) fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.segments, other.segments),
            (&mut self.requests, other.requests),
            (&mut self.credits, other.credits),
            (&mut self.acknowledgments, other.acknowledgments),
            (&mut self.segments_heard, other.segments_heard),
            (&mut self.requests_heard, other.requests_heard),
            (&mut self.credits_heard, other.credits_heard),
            (&mut self.acknowledgments_heard, other.acknowledgments_heard),
            (&mut self.entered, other.entered),
            (&mut self.stored, other.stored),
            (&mut self.whole, other.whole),
            (&mut self.delivered, other.delivered),
            (&mut self.words, other.words),
            (&mut self.words_heard, other.words_heard),
            (&mut self.unexpected, other.unexpected),
            (&mut self.dropped, other.dropped),
            (&mut self.marked, other.marked),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum += more);
        self.queue_max = self.queue_max.max(other.queue_max);
        self.spine_max = self.spine_max.max(other.spine_max);
    }

    /// Segments, messages and words that were sent and not heard.
    fn under_way(&self) -> u64 {
        let sent = self.segments + self.requests + self.credits + self.acknowledgments;
        let heard = self.segments_heard
            + self.requests_heard
            + self.credits_heard
            + self.acknowledgments_heard;
        let lost = self.unexpected.min(sent - heard);
        sent - heard - lost + self.words - self.words_heard
    }
}

/// What the parts of a network keep, all together.
struct Whole<'a> {
    parts: &'a [&'a Switches],
    counts: Counts,
    /// Whether nothing happens any more by itself.
    is_idle: bool,
}

/// Checks what is too slow to check each time, in all parts of a network.
pub(super) fn check_all(parts: &[&Switches]) -> Result<(), String> {
    let mut counts = Counts::default();
    parts.iter().for_each(|part| counts.add(&part.counts));
    let is_quiet = |part: &&Switches| part.agenda.is_empty() && part.egress.is_released();
    let is_idle = counts.under_way() == 0 && parts.iter().all(is_quiet);
    let whole = Whole { parts, counts, is_idle };
    whole.check_kept()?;
    let held: usize = whole.sum(|part| part.units.iter().map(Clocked::held).sum());
    let asks = whole.sum(|part| part.egress.asks());
    if is_idle && held + asks > 0 {
        return Err(format!("{held} packets in spines and {asks} requests wait for nothing"));
    }
    whole.check_credits()?;
    parts.iter().flat_map(|part| &part.units).try_for_each(Clocked::check)
}

impl Whole<'_> {
    fn sum(&self, of: impl Fn(&Switches) -> usize) -> usize {
        self.parts.iter().map(|part| of(part)).sum()
    }

    /// In the idle rack all credit is back. Each part has that of its own leaves, and that of the others from
    /// the start.
    fn check_credits(&self) -> Result<(), String> {
        let Some(first) = self.parts.first().filter(|_| self.is_idle) else { return Ok(()) };
        let lines = first.layout.leaves * first.layout.spines * self.parts.len();
        let all = |plane| first.units[unit(0, plane)].places().map(|places| lines * places);
        let data: Option<usize> = self.parts.iter().map(|part| part.ingress.credits()).sum();
        let messages = self.sum(|part| part.message_credits.iter().map(|&c| c as usize).sum());
        let found = (data, Some(messages));
        let expected = (all(Plane::Data), all(Plane::Control));
        if found != expected {
            return Err(format!("credits of {found:?} are back of {expected:?}"));
        }
        Ok(())
    }

    fn check_kept(&self) -> Result<(), String> {
        let Counts { entered, stored, whole, delivered, .. } = self.counts;
        let waiting = self.sum(|part| part.ingress.waiting());
        let assembling = self.sum(|part| part.egress.assembling());
        let (kept, between) = (entered - delivered, stored - whole);
        // What was granted still waits until its leaf hears so.
        let (least, most) = (waiting.max(assembling) as u64, (waiting + assembling) as u64);
        if !(least..=most).contains(&between) {
            let (enter, leave) = (entered - stored, whole - delivered);
            return Err(format!(
                "{kept} packets are kept: {enter} enter, {waiting} wait, {assembling} are granted, \
                 {leave} leave"
            ));
        }
        if self.is_idle && kept > 0 {
            return Err(format!("{kept} packets wait for nothing"));
        }
        Ok(())
    }
}

impl Switches {
    /// What the leaves and spines add to the summary.
    pub(super) fn summary(&self) -> Map<String, Value> {
        let counts = &self.counts;
        let steps: u64 = self.units.iter().map(|unit| unit.steps).sum();
        let values = [
            ("segments", json!(counts.segments)),
            ("requests", json!(counts.requests)),
            ("credits", json!(counts.credits)),
            ("acknowledgments", json!(counts.acknowledgments)),
            ("message_bytes", json!(SIZE)),
            ("dropped_at_leaves", json!(counts.dropped)),
            ("marked_at_leaves", json!(counts.marked)),
            ("leaf_queue_max_bytes", json!(counts.queue_max)),
            ("spine_max_packets", json!(counts.spine_max)),
            ("spine_cycles", json!(steps)),
            ("unexpected_messages", json!(counts.unexpected)),
        ];
        values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}
