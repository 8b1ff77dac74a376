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
        self.agenda.is_empty() && self.under_way == 0 && self.egress.is_released()
    }

    fn check_kept(&self) -> Result<(), String> {
        let (waiting, assembling) = (self.ingress.waiting(), self.egress.assembling());
        let found = self.entering + waiting + self.leaving + assembling;
        // What was granted still waits until its leaf hears so.
        let least = self.entering + self.leaving + waiting.max(assembling);
        if self.kept < least || self.kept > found {
            let Self { kept, entering, leaving, .. } = self;
            return Err(format!(
                "{kept} packets are kept: {entering} enter, {waiting} wait, {assembling} are \
                 granted, {leaving} leave"
            ));
        }
        if self.is_idle() && self.kept > 0 {
            return Err(format!("{} packets wait for nothing", self.kept));
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
        ];
        values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}
