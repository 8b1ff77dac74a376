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
    /// Messages and segments that made no sense: dropped.
    pub(super) unexpected: u64,
    pub(super) dropped: u64,
    pub(super) marked: u64,
    pub(super) queue_max: u32,
    pub(super) spine_max: usize,
}

impl Switches {
    /// In the idle rack all credit is back.
    fn check_credits(&self) -> Result<(), String> {
        let lines = self.layout.leaves * self.layout.spines;
        let all = |plane| {
            let places = self.units[unit(0, plane)].places();
            places.map(|places| lines * places)
        };
        let data = self.ingress.credits();
        let messages: usize = self.message_credits.iter().map(|&credits| credits as usize).sum();
        let found = (data, Some(messages));
        let expected = (all(Plane::Data), all(Plane::Control));
        if self.is_idle() && found != expected {
            return Err(format!("credits of {found:?} are back of {expected:?}"));
        }
        Ok(())
    }

    /// Whether nothing happens any more by itself.
    fn is_idle(&self) -> bool {
        self.agenda.is_empty() && self.under_way() == 0 && self.egress.is_released()
    }

    /// Segments and messages that were sent and not heard.
    fn under_way(&self) -> u64 {
        let c = &self.counts;
        let sent = c.segments + c.requests + c.credits + c.acknowledgments;
        let heard = c.segments_heard + c.requests_heard + c.credits_heard + c.acknowledgments_heard;
        sent - heard - c.unexpected.min(sent - heard)
    }

    fn check_kept(&self) -> Result<(), String> {
        let Counts { entered, stored, whole, delivered, .. } = self.counts;
        let (waiting, assembling) = (self.ingress.waiting(), self.egress.assembling());
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
        if self.is_idle() && kept > 0 {
            return Err(format!("{kept} packets wait for nothing"));
        }
        Ok(())
    }

    /// Checks what is too slow to check each time.
    pub(super) fn check_all(&self) -> Result<(), String> {
        self.check_kept()?;
        let held: usize = self.units.iter().map(Clocked::held).sum();
        if self.is_idle() && held + self.egress.asks() > 0 {
            let asks = self.egress.asks();
            return Err(format!("{held} packets in spines and {asks} requests wait for nothing"));
        }
        self.check_credits()?;
        self.units.iter().try_for_each(Clocked::check)
    }

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
