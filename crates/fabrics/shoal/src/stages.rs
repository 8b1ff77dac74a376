//! Where a completion time goes.

use kernel::{Span, Time};
use rack::Stage;

use crate::flows::Open;

/// The parts of a completion time, in order.
pub(crate) const STAGES: &[Stage] = &[
    Stage { name: "backlog", meaning: "At the source, before release into a queue (Eq. 2)" },
    Stage { name: "source_queue", meaning: "In a queue of the source, for the next node" },
    Stage { name: "propagation", meaning: "On the wire and through switches and NICs, all hops" },
    Stage { name: "intermediate_queue", meaning: "In a queue of the intermediate node" },
    Stage { name: "reassembly", meaning: "At the destination, until the last cell is there" },
    Stage { name: "recovery", meaning: "All of the time of a flow that had a cell sent again" },
];

/// What the slots of a run are worth in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotTimes {
    pub(crate) slot: Span,
    /// From the start of the slot in which a cell is sent to its last bit at the receiver.
    pub(crate) hop: Span,
}

impl SlotTimes {
    /// Start of a slot.
    pub(crate) fn start_of(&self, slot: u64) -> Time {
        Time::ZERO + self.slot * slot
    }

    /// First slot that starts at `time` or later.
    pub(crate) fn slot_from(&self, time: Time) -> u64 {
        (time - Time::ZERO).div_ceil(self.slot)
    }
}

impl Open {
    /// Divides the completion time over [`STAGES`]. For each cell the time from the flow's start to
    /// its end is a sum of five parts; each part is averaged over the cells. The receiver tells the sum over
    /// the cells of the slots in which they were sent on the last hop, and how many took the direct path.
    pub(crate) fn stages(
        &self,
        end: Time,
        (last_hop, direct): (u128, u64),
        times: SlotTimes,
    ) -> [Span; 6] {
        if self.again {
            let all = end - self.flow.start;
            return [Span::ZERO, Span::ZERO, Span::ZERO, Span::ZERO, Span::ZERO, all];
        }
        let cells = i128::from(self.cells);
        let slot = i128::from(times.slot.as_ps());
        let hop = i128::from(times.hop.as_ps());
        let relayed = cells - i128::from(direct);
        let mean = |total: i128| Span::from_ps(u64::try_from(total / cells).unwrap_or(0));
        let last = last_hop as i128;
        let (released, sent) = (self.released as i128, self.sent as i128);
        let start = i128::from(self.flow.start.as_ps());
        let end = i128::from(end.as_ps());
        [
            mean(released * slot - start * cells),
            mean((sent - released) * slot),
            mean((cells + relayed) * hop),
            mean((last - sent) * slot - relayed * hop),
            mean((end - hop) * cells - last * slot),
            Span::ZERO,
        ]
    }
}
