//! Which of the schedules a switch runs: PL2's, or one that its hardware cannot.
//!
//! Models: claims M05 to M14 in [`Pipeline`]; M10 in [`Ideal`] and M11 in [`Matching`], so that the
//! price of the hardware's two limitations can be measured.

use kernel::Time;

use super::ideal::Ideal;
use super::matching::Matching;
use super::pipeline::{Between, Header, Outcome, Pipeline};
use crate::wire::Tag;

/// A schedule with its state.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a switch, looked at with every packet")]
pub enum Scheduler {
    /// Algorithm 1.
    Counters(Pipeline),
    /// Both ports at once.
    Ideal(Instants<Ideal>),
    /// The earliest slots that are free at both.
    Matching(Instants<Matching>),
}

/// A schedule that goes by a clock: data passes without a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instants<S> {
    /// The schedule.
    pub schedule: S,
    /// Slots that are taken at an output above which unsolicited packets are dropped (T).
    pub drop_above: u32,
}

impl Scheduler {
    /// Lets data pass, or drops it.
    #[inline]
    pub fn data(&mut self, now: Time, tag: Option<Tag>, between: Between) -> Outcome {
        match self {
            Self::Counters(pipeline) => pipeline.data(tag, between),
            _ => self.process(now, Header::Data(tag), between),
        }
    }

    /// Lets a frame pass.
    #[inline(never)]
    pub fn process(&mut self, now: Time, header: Header, between: Between) -> Outcome {
        match self {
            Self::Counters(pipeline) => pipeline.process(header, between),
            Self::Ideal(ideal) => {
                let Instants { schedule, drop_above } = ideal;
                let waiting = |schedule: &mut Ideal| schedule.waiting(now, between.output);
                let reserve = |schedule: &mut Ideal, demand| schedule.reserve(now, demand, between);
                by_clock(schedule, *drop_above, header, waiting, reserve)
            }
            Self::Matching(matching) => {
                let Instants { schedule, drop_above } = matching;
                let waiting = |schedule: &mut Matching| schedule.waiting(now, between.output);
                let reserve =
                    |schedule: &mut Matching, demand| schedule.reserve(now, demand, between);
                by_clock(schedule, *drop_above, header, waiting, reserve)
            }
        }
    }

    /// The first bit of data leaves by the port of `output`.
    #[inline]
    pub fn leaves(&mut self, tag: Option<Tag>, output: u32) {
        if let Self::Counters(pipeline) = self {
            pipeline.leaves(tag, output);
        }
    }

    /// The counters, where the schedule has some.
    #[must_use]
    pub fn pipeline(&self) -> Option<&Pipeline> {
        match self {
            Self::Counters(pipeline) => Some(pipeline),
            _ => None,
        }
    }

    /// The same, for the control plane.
    pub fn pipeline_mut(&mut self) -> Option<&mut Pipeline> {
        match self {
            Self::Counters(pipeline) => Some(pipeline),
            _ => None,
        }
    }
}

/// A schedule of instants gives one slot for both ports, and forgets slots by itself.
fn by_clock<S>(
    schedule: &mut S,
    drop_above: u32,
    header: Header,
    waiting: impl Fn(&mut S) -> u32,
    reserve: impl Fn(&mut S, u16) -> u32,
) -> Outcome {
    match header {
        Header::Reserve(demand) => {
            let slot = reserve(schedule, demand);
            // With its own slots, which may be in a gap before those of others.
            let is_crowded = waiting(schedule) > drop_above;
            Outcome::Grant { send_slot: slot, receive_slot: slot, pair_slots: 0, is_crowded }
        }
        Header::Data(Some(Tag::Unsolicited(_))) if waiting(schedule) > drop_above => Outcome::Drop,
        Header::Data(_) | Header::Other => Outcome::Forward,
        Header::Reset(_) => Outcome::Return,
    }
}
