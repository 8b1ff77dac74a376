//! How fast a flow could be in the idle rack: the yardstick of its slowdown, which no flow beats.
//!
//! A source hands its cells to whomever it meets next (§3.1), and the first it meets need not be on the
//! quickest way: a cell that something holds up for a slot may go straight to its destination and be
//! there first. So the yardstick is not what the flow takes alone. It is the least time that any choice
//! among the schedule's paths gives, with every queue empty.

use crate::schedule::Schedule;

/// Flows of so many cells and fewer look only at the ways that can be among their best: of most workloads
/// nearly all flows (our choice).
const FEW: usize = 32;

/// Slots from `origin`, in which a flow of `cells` from and to `ends` starts, to the one in which its
/// last cell is sent on its last hop, on the best of all paths.
///
/// By way of each other node a cell can arrive every epoch: at the node's first meeting with the
/// destination that comes `delay` slots or more after the source's first meeting with the node, and an
/// epoch after that, and so on. No two nodes are in each other's way. So the last cell's slot is that of
/// the smallest number at the given place in a union of arithmetic progressions with one step.
pub(crate) fn slots(
    schedule: &Schedule,
    ends: (u32, u32),
    cells: u64,
    origin: u64,
    delay: u32,
) -> u64 {
    if let Some(slots) = slots_of_few(schedule, ends, cells, origin, delay) {
        return slots;
    }
    let epoch = u64::from(schedule.slots());
    let mut arrivals = first_arrivals(schedule, ends, origin, delay);
    let ways = arrivals.len() as u64;
    let last = arrivals.iter().copied().max().unwrap_or(0);
    // What arrives until the last of the ways is in use.
    for way in 0..arrivals.len() {
        let first = arrivals[way];
        let again = ((last - first) / epoch).min(cells);
        arrivals.extend((1..=again).map(|round| first + round * epoch));
    }
    let early = arrivals.len() as u64;
    if cells <= early {
        return *arrivals.select_nth_unstable(cells as usize - 1).1;
    }
    // From then on one cell an epoch by each way.
    let (rounds, place) = ((cells - early - 1) / ways, (cells - early - 1) % ways);
    arrivals.truncate(ways as usize);
    for arrival in &mut arrivals {
        *arrival += ((last - *arrival) / epoch + 1) * epoch;
    }
    *arrivals.select_nth_unstable(place as usize).1 + rounds * epoch
}

/// The same for up to [`FEW`] cells, where none of them needs a way a second time. The source meets nodes in
/// the order of time, so that soon none is left that could be quicker.
fn slots_of_few(
    schedule: &Schedule,
    (source, destination): (u32, u32),
    cells: u64,
    origin: u64,
    delay: u32,
) -> Option<u64> {
    let count = usize::try_from(cells).ok().filter(|&count| count <= FEW)?;
    let (slots, channels) = (schedule.slots(), schedule.channels());
    let phase = ((origin - schedule.origin().get()) % u64::from(slots)) as u32;
    let slot = |from, to| schedule.slot_of(schedule.position(from, to));
    let wait = |from: u32, slot: u32| if slot >= from { slot - from } else { slot + slots - from };
    // The earliest arrivals, in order.
    let mut best = [u32::MAX; FEW];
    let mut found = 1;
    best[0] = wait(phase, slot(source, destination));
    for step in 0..slots {
        let passed_on = step + delay;
        if found == count && best[count - 1] <= passed_on {
            break;
        }
        let now = if phase + step >= slots { phase + step - slots } else { phase + step };
        let there = (now + delay) % slots;
        for position in now * channels..(now + 1) * channels {
            let Some(node) = schedule.peer(source, position).filter(|&node| node != destination)
            else {
                continue;
            };
            let arrival = passed_on + wait(there, slot(node, destination));
            if found < count {
                found += 1;
            } else if best[count - 1] <= arrival {
                continue;
            }
            let mut place = found - 1;
            while place > 0 && best[place - 1] > arrival {
                best[place] = best[place - 1];
                place -= 1;
            }
            best[place] = arrival;
        }
    }
    let is_each_way_used_once = best[count - 1] <= best[0].saturating_add(slots);
    (found == count && is_each_way_used_once).then(|| best[count - 1].into())
}

/// The same where the schedule may change meanwhile, whatever it changes to: a node hears one cell on each
/// channel in a slot.
pub(crate) fn slots_in_any_schedule(channels: u32, cells: u64) -> u64 {
    (cells - 1) / u64::from(channels)
}

/// By way of each node, the destination for the direct path: how many slots after `origin` the first cell
/// can be sent on its last hop.
fn first_arrivals(
    schedule: &Schedule,
    (source, destination): (u32, u32),
    origin: u64,
    delay: u32,
) -> Vec<u64> {
    let slots = schedule.slots();
    let phase = ((origin - schedule.origin().get()) % u64::from(slots)) as u32;
    let delay_phase = delay % slots;
    let wait = |from: u32, slot: u32| if slot >= from { slot - from } else { slot + slots - from };
    let slot = |from, to| schedule.slot_of(schedule.position(from, to));
    let others = (0..schedule.nodes()).filter(|&node| node != source);
    others
        .map(|node| {
            let met = slot(source, node);
            let sent = wait(phase, met);
            if node == destination {
                return u64::from(sent);
            }
            let there = met + delay_phase;
            let there = if there >= slots { there - slots } else { there };
            u64::from(sent) + u64::from(delay) + u64::from(wait(there, slot(node, destination)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use kernel::Stream;

    use super::*;
    use crate::schedule::Order;

    /// The same by flooding, slot by slot: the source gives a cell to everyone it meets, all pass them
    /// on, and the destination counts.
    fn flooded(
        schedule: &Schedule,
        (source, destination): (u32, u32),
        cells: u64,
        origin: u64,
        delay: u32,
    ) -> u64 {
        let channels = schedule.channels();
        let mut given: Vec<Vec<u64>> = vec![Vec::new(); schedule.nodes() as usize];
        let mut arrived = 0;
        for slot in origin.. {
            let phase = (slot % u64::from(schedule.slots())) as u32;
            for position in phase * channels..(phase + 1) * channels {
                for from in 0..schedule.nodes() {
                    match schedule.peer(from, position) {
                        Some(to) if from == source && to == destination => arrived += 1,
                        Some(to) if from == source => {
                            given[to as usize].push(slot + u64::from(delay));
                        }
                        Some(to) if to == destination => {
                            let held = &mut given[from as usize];
                            if let Some(at) = held.iter().position(|&there| there <= slot) {
                                held.remove(at);
                                arrived += 1;
                            }
                        }
                        _ => {}
                    }
                }
            }
            if arrived >= cells {
                return slot - origin;
            }
        }
        unreachable!("slots go on for ever")
    }

    #[test]
    fn the_yardstick_is_the_best_of_all_paths() {
        let mut draw = Stream::new(1, "test", 0);
        for _ in 0..4_000 {
            let largest = [15, 60][draw.below(2) as usize];
            let nodes = 2 + draw.below(largest) as u32;
            let channels = 1 + draw.below(5) as u32;
            let order = [Order::Cyclic, Order::PropagationAware][draw.below(2) as usize];
            let schedule = Schedule::new(nodes, channels, order);
            let source = draw.below(u64::from(nodes)) as u32;
            let step = 1 + draw.below(u64::from(nodes) - 1) as u32;
            let ends = (source, (source + step) % nodes);
            let most = [3, FEW as u64 + 8, 300][draw.below(3) as usize];
            let (cells, origin) = (1 + draw.below(most), draw.below(200));
            let longest = [3, 40][draw.below(2) as usize];
            let delay = 1 + draw.below(longest) as u32;
            let found = slots(&schedule, ends, cells, origin, delay);
            let expected = flooded(&schedule, ends, cells, origin, delay);
            assert_eq!(
                found, expected,
                "{nodes} nodes, {channels} channels, {ends:?}, {cells} cells from {origin}, {delay}"
            );
            assert!(slots_in_any_schedule(channels, cells) <= found);
        }
    }

    #[test]
    fn a_terabyte_in_the_slowest_rack_does_not_overflow() {
        let schedule = Schedule::new(2048, 1, Order::PropagationAware);
        let cells = (1 << 40) / 56;
        let found = slots(&schedule, (3, 9), cells, 0, 1 << 20);
        let rate = cells as f64 / found as f64;
        assert!((rate * 2048.0 / 2047.0 - 1.0).abs() < 1e-3, "{rate}");
        assert!(slots(&schedule, (3, 9), u64::MAX / 2, 0, 30) > u64::MAX / 2);
    }
}
