//! Which queue of a port sends next.

use super::Net;
use super::port::LINK_QUEUE;
use crate::packet::PRIORITIES;

impl Net {
    /// The queue whose front packet goes next, if any may.
    #[inline]
    pub(super) fn pick(&mut self, port: u32) -> Option<u8> {
        let eligible = self.ports[port as usize].eligible();
        if eligible == 0 {
            return None;
        }
        let is_link = eligible >> LINK_QUEUE & 1 == 1;
        if is_link {
            return Some(LINK_QUEUE);
        }
        if let Some(quanta) = self.limits.quanta {
            return Some(self.pick_by_deficit(port, eligible, &quanta));
        }
        if let Some(trim) = self.limits.trim {
            return Some(self.pick_header_or_data(port, eligible, trim.ratio));
        }
        Some(eligible.trailing_zeros() as u8)
    }

    /// Headers before data, but data after `ratio` headers in a row (NDP §3.2).
    fn pick_header_or_data(&mut self, port: u32, eligible: u16, ratio: u16) -> u8 {
        let out = &mut self.ports[port as usize];
        let data = eligible & !1;
        let is_header = eligible & 1 == 1 && (data == 0 || out.headers_run < ratio);
        if is_header {
            out.headers_run = if data == 0 { 0 } else { out.headers_run + 1 };
            return 0;
        }
        out.headers_run = 0;
        data.trailing_zeros() as u8
    }

    /// Queues without a weight in order; the others in turn, each sending up to its quantum and what
    /// it has left from the last round.
    fn pick_by_deficit(&mut self, port: u32, eligible: u16, quanta: &[u32; 8]) -> u8 {
        let weighted = (0..PRIORITIES).filter(|&q| quanta[usize::from(q)] > 0);
        let weighted = weighted.fold(0u16, |mask, queue| mask | 1 << queue);
        if eligible & !weighted != 0 {
            return (eligible & !weighted).trailing_zeros() as u8;
        }
        let out = &mut self.ports[port as usize];
        let deficits = &mut self.deficits[port as usize];
        // A quantum is at least the largest packet, so one round is enough.
        for _ in 0..=PRIORITIES {
            let queue = usize::from(out.turn);
            if eligible >> queue & 1 == 1 {
                let front = self.arena.get(out.queues[queue].fifo.head());
                let size = u32::from(front.wire);
                if let Some(rest) = deficits[queue].checked_sub(size) {
                    // A queue that runs empty leaves nothing for its next visit.
                    let is_last = front_is_last(out.queues[queue].fifo);
                    deficits[queue] = if is_last { 0 } else { rest };
                    return out.turn;
                }
            } else {
                deficits[queue] = 0;
            }
            out.turn = (out.turn + 1) % PRIORITIES;
            let next = usize::from(out.turn);
            if eligible >> next & 1 == 1 {
                deficits[next] += quanta[next];
            }
        }
        unreachable!("no queue of {eligible:b} may send, with deficits {deficits:?}")
    }
}

fn front_is_last(fifo: super::arena::Fifo) -> bool {
    fifo.head() == fifo.tail()
}
