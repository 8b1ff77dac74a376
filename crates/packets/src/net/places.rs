//! Numbers by port and flow, looked up by index alone.
//!
//! A flow has a row of pages, one for each few neighbouring ports; a page comes with the flow's first
//! number there and goes with the last. So a number is two loads away, and memory follows the ports at
//! which flows have something, beside a row of small integers for each flow that is open at a time.

use super::arena::NONE;
use crate::packet::FlowKey;

/// Ports of a page: one cache line of numbers (our choice).
const PAGE: usize = 16;

/// A table of numbers below [`NONE`].
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Pages of a row.
    width: usize,
    /// By flow, then by port over [`PAGE`]: the page, or [`NONE`].
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

    /// Makes room for a flow.
    pub(super) fn open(&mut self, flow: FlowKey) {
        let end = (flow.index() + 1) * self.width;
        if self.rows.len() < end {
            self.rows.resize(end, NONE);
        }
    }

    #[inline]
    fn row(&self, port: u32, flow: FlowKey) -> usize {
        flow.index() * self.width + port as usize / PAGE
    }

    /// The number of a port and a flow, or [`NONE`].
    #[inline]
    pub(super) fn get(&self, port: u32, flow: FlowKey) -> u32 {
        match self.rows[self.row(port, flow)] {
            NONE => NONE,
            page => self.pages[page as usize][port as usize % PAGE],
        }
    }

    /// Sets a number that is not set.
    pub(super) fn insert(&mut self, port: u32, flow: FlowKey, number: u32) {
        let row = self.row(port, flow);
        if self.rows[row] == NONE {
            self.rows[row] = self.free.pop().unwrap_or_else(|| {
                self.pages.push([NONE; PAGE]);
                u32::try_from(self.pages.len() - 1).expect("fewer than 2^32 pages")
            });
        }
        let place = &mut self.pages[self.rows[row] as usize][port as usize % PAGE];
        debug_assert!(*place == NONE, "port {port} and flow {} have a number", flow.get());
        *place = number;
    }

    /// Clears a number that is set.
    pub(super) fn remove(&mut self, port: u32, flow: FlowKey) {
        let row = self.row(port, flow);
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
            (0..5).for_each(|flow| places.open(FlowKey::new(flow)));
            for (number, (port, flow)) in (0..).zip(steps) {
                let key = FlowKey::new(flow);
                if map.remove(&(port, flow)).is_some() {
                    places.remove(port, key);
                } else {
                    map.insert((port, flow), number);
                    places.insert(port, key, number);
                }
                for port in 0..70 {
                    for flow in 0..5 {
                        let expected = map.get(&(port, flow)).copied().unwrap_or(NONE);
                        prop_assert_eq!(places.get(port, FlowKey::new(flow)), expected);
                    }
                }
            }
            let pages: std::collections::BTreeSet<_> =
                map.keys().map(|&(port, flow)| (port / PAGE as u32, flow)).collect();
            prop_assert_eq!(places.pages.len() - places.free.len(), pages.len());
        }
    }
}
