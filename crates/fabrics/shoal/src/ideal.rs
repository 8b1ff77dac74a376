//! How fast a flow could be alone in the idle rack: the yardstick of its slowdown.

use kernel::Slot;

use crate::schedule::Schedule;

/// The slot in which the last cell of a flow of `cells` is sent on its last hop, if the flow starts
/// in slot `origin`, has the rack to itself and sends in every position.
///
/// Each cell goes to the peer of its position and waits there for the next meeting with the
/// destination. A peer that gets several cells in a row passes one on each epoch, as fast as they
/// come; only the last round of positions can hold the last cell.
pub(crate) fn last_slot(
    schedule: &Schedule,
    source: u32,
    destination: u32,
    cells: u64,
    origin: u64,
    delay: u32,
) -> u64 {
    let positions = u64::from(schedule.positions());
    let channels = u64::from(schedule.channels());
    let busy = (0..schedule.positions()).filter(|&p| schedule.peer(source, p).is_some()).count();
    let rounds = (cells - 1) / busy as u64;
    let mut left = cells - rounds * busy as u64;
    let mut at = origin * channels + rounds * positions;
    let mut last = 0;
    // The round before the last one may end later: its cells, too, are candidates.
    if rounds > 0 {
        let missing = busy as u64 - left;
        left += missing;
        at -= positions_back(schedule, source, at, missing);
    }
    while left > 0 {
        if let Some(peer) = schedule.peer(source, (at % positions) as u32) {
            left -= 1;
            let sent = at / channels;
            let done = if peer == destination {
                sent
            } else {
                schedule.next_slot(peer, destination, Slot::new(sent + u64::from(delay))).get()
            };
            last = last.max(done);
        }
        at += 1;
    }
    last
}

/// How many positions before `at` hold `count` visits of `source` to a peer.
fn positions_back(schedule: &Schedule, source: u32, at: u64, count: u64) -> u64 {
    let positions = u64::from(schedule.positions());
    let (mut back, mut found) = (0, 0);
    while found < count {
        back += 1;
        found += u64::from(schedule.peer(source, ((at - back) % positions) as u32).is_some());
    }
    back
}
