//! Numbers by port and lane, looked up by index alone.
//!
//! A lane has a row of pages, one for each few neighbouring ports; a page comes with the lane's first
//! number there and goes with the last. So a number is two loads away, and memory follows the ports at
//! which lanes have something, beside a row of small integers for each lane that is open at a time.

use super::arena::NONE;

/// What of a flow queues by itself: all of it, or one of its legs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lane(pub(crate) u32);

impl Lane {
    /// Its place, for an array.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Ports of a page: one cache line of numbers (our choice).
const PAGE: usize = 16;

/// A table of numbers below [`NONE`].
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Pages of a row.
    width: usize,
    /// By lane, then by port over [`PAGE`]: the page, or [`NONE`].
    rows: Vec<u32>,
    pages: Vec<[u32; PAGE]>,
    /// Pages not in use.
    free: Vec<u32>,
}

impl Places {
    /// A table for ports below `ports`.
    pub(super) fn new(ports: usize) -> Self {
        Self { width: ports.div_ceil(PAGE), rows: Vec::new(), pages: Vec::new(), free: Vec::new() }
    }

    /// Makes room for a lane.
    pub(super) fn open(&mut self, lane: Lane) {
        let end = (lane.index() + 1) * self.width;
        if self.rows.len() < end {
            self.rows.resize(end, NONE);
        }
    }

    #[inline]
    fn row(&self, port: u32, lane: Lane) -> usize {
        lane.index() * self.width + port as usize / PAGE
    }

    /// The number of a port and a lane, or [`NONE`].
    #[inline]
    pub(super) fn get(&self, port: u32, lane: Lane) -> u32 {
        match self.rows[self.row(port, lane)] {
            NONE => NONE,
            page => self.pages[page as usize][port as usize % PAGE],
        }
    }

    /// Sets a number that is not set.
    pub(super) fn insert(&mut self, port: u32, lane: Lane, number: u32) {
        let row = self.row(port, lane);
        if self.rows[row] == NONE {
            self.rows[row] = self.free.pop().unwrap_or_else(|| {
                self.pages.push([NONE; PAGE]);
                u32::try_from(self.pages.len() - 1).expect("fewer than 2^32 pages")
            });
        }
        let place = &mut self.pages[self.rows[row] as usize][port as usize % PAGE];
        debug_assert!(*place == NONE, "port {port} and lane {} have a number", lane.0);
        *place = number;
    }

    /// Clears a number that is set.
    pub(super) fn remove(&mut self, port: u32, lane: Lane) {
        let row = self.row(port, lane);
        let page = &mut self.pages[self.rows[row] as usize];
        debug_assert!(page[port as usize % PAGE] != NONE, "port {port} has no number to clear");
        page[port as usize % PAGE] = NONE;
        if page.iter().all(|&place| place == NONE) {
            self.free.push(std::mem::replace(&mut self.rows[row], NONE));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((0u32..70, 0u32..5), 1..400)) {
            let (mut places, mut map) = (Places::new(70), BTreeMap::new());
            (0..5).for_each(|flow| places.open(Lane(flow)));
            for (number, (port, flow)) in (0..).zip(steps) {
                let key = Lane(flow);
                if map.remove(&(port, flow)).is_some() {
                    places.remove(port, key);
                } else {
                    map.insert((port, flow), number);
                    places.insert(port, key, number);
                }
                for port in 0..70 {
                    for flow in 0..5 {
                        let expected = map.get(&(port, flow)).copied().unwrap_or(NONE);
                        prop_assert_eq!(places.get(port, Lane(flow)), expected);
                    }
                }
            }
            let pages: std::collections::BTreeSet<_> =
                map.keys().map(|&(port, flow)| (port / PAGE as u32, flow)).collect();
            prop_assert_eq!(places.pages.len() - places.free.len(), pages.len());
        }
    }
}
