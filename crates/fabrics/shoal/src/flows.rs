//! The driver's list of open flows. Cells carry a flow's handle; what both halves of it report meets here.

use rack::Flow;

/// A flow that was offered and has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) flow: Flow,
    pub(crate) cells: u64,
    /// Sums of slots over its cells: taken into a queue, sent by the source.
    pub(crate) released: u128,
    pub(crate) sent: u128,
    /// Cells of it went out again.
    pub(crate) again: bool,
    /// How many of its cells had come when its destination forgot it, if that did.
    pub(crate) kept: Option<u64>,
}

/// All open flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenFlows {
    slots: Vec<Place>,
    free: Vec<u32>,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct Place {
    /// How many flows it was for before, so that late cells of those are told apart.
    generation: u8,
    open: Option<Open>,
}

/// Bits of a handle that are a place: more than a run lets be open at a time. Those above, up to bit 30, are
/// a generation.
const PLACE_BITS: u32 = 23;

impl OpenFlows {
    /// Adds a flow; gives its handle, of 31 bits.
    pub(crate) fn add(&mut self, open: Open) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Place::default());
            (self.slots.len() - 1) as u32
        });
        assert!(place < 1 << PLACE_BITS, "{place} flows are open at a time");
        let slot = &mut self.slots[place as usize];
        slot.open = Some(open);
        self.count += 1;
        place | u32::from(slot.generation) << PLACE_BITS
    }

    fn place(&self, handle: u32) -> Option<usize> {
        let place = (handle & ((1 << PLACE_BITS) - 1)) as usize;
        let slot = self.slots.get(place)?;
        (u32::from(slot.generation) == handle >> PLACE_BITS).then_some(place)
    }

    /// An open flow.
    pub(crate) fn get(&self, handle: u32) -> Option<&Open> {
        self.slots[self.place(handle)?].open.as_ref()
    }

    /// An open flow.
    pub(crate) fn get_mut(&mut self, handle: u32) -> Option<&mut Open> {
        let place = self.place(handle)?;
        self.slots[place].open.as_mut()
    }

    /// Takes a flow out.
    pub(crate) fn remove(&mut self, handle: u32) -> Option<Open> {
        let place = self.place(handle)?;
        let slot = &mut self.slots[place];
        let open = slot.open.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(place as u32);
        self.count -= 1;
        Some(open)
    }

    /// Takes a flow out whose handle is not to be used again: destinations may know of it for long.
    pub(crate) fn retire(&mut self, handle: u32) -> Option<Open> {
        let place = self.place(handle)?;
        let open = self.slots[place].open.take()?;
        self.count -= 1;
        Some(open)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// All of them, with their handles.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Open)> {
        (0..).zip(&self.slots).filter_map(|(place, slot): (u32, _)| {
            let open = slot.open.as_ref()?;
            Some((place | u32::from(slot.generation) << PLACE_BITS, open))
        })
    }
}
