//! The inputs' packet memories and the arrays of what may ask.
//!
//! Models: SCOC §2.B (M07): an input keeps its packets in a memory and lists those that may ask, oldest
//! first, as pairs of destination and address. All inputs share flat tables here.

use switching::Packet;

/// A packet that may ask.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) destination: u16,
    /// Where it lies in its input's memory.
    pub(crate) address: u16,
}

/// The memories and arrays of all inputs.
#[derive(Clone, Debug)]
pub(crate) struct Arrays {
    /// Packets for which an input has room.
    places: usize,
    /// `port * places + address`: a packet, and the cycle from which on it may ask.
    memory: Vec<(Packet, u64)>,
    /// `port * places + index`: addresses that are free, the next to be used last.
    spare: Vec<u16>,
    /// For each input how many addresses are free.
    spare_count: Vec<u16>,
    /// `port * places + place`: packets that may ask, oldest first.
    listed: Vec<Entry>,
    /// For each input how many are listed.
    lengths: Vec<u16>,
    /// Packets that have entered and have not left.
    held: usize,
}

impl Arrays {
    /// Empty memories for `ports` inputs, each of `places` packets.
    pub(crate) fn new(ports: usize, places: usize) -> Self {
        let count = u16::try_from(places).expect("the plan bounds an input's memory");
        Self {
            places,
            memory: vec![Default::default(); ports * places],
            spare: (0..ports).flat_map(|_| (0..count).rev()).collect(),
            spare_count: vec![count; ports],
            listed: vec![Entry::default(); ports * places],
            lengths: vec![0; ports],
            held: 0,
        }
    }

    /// Packets for which an input has room.
    #[inline]
    pub(crate) fn places_free(&self, port: usize) -> usize {
        usize::from(self.spare_count[port])
    }

    /// Whether an input has room for one packet more.
    #[inline]
    pub(crate) fn has_room(&self, port: usize) -> bool {
        self.places_free(port) > 0
    }

    /// Puts a packet that may ask from `cycle` on into its input's memory: its address.
    #[inline]
    pub(crate) fn store(&mut self, packet: Packet, cycle: u64) -> u16 {
        let port = usize::from(packet.source);
        assert!(self.has_room(port), "no room at input {port}");
        self.held += 1;
        self.spare_count[port] -= 1;
        let address = self.spare[port * self.places + usize::from(self.spare_count[port])];
        self.memory[port * self.places + usize::from(address)] = (packet, cycle);
        address
    }

    /// Frees an address.
    #[inline]
    pub(crate) fn free(&mut self, port: usize, address: u16) {
        self.spare[port * self.places + usize::from(self.spare_count[port])] = address;
        self.spare_count[port] += 1;
    }

    /// Lists a packet that may ask from now on, after all others: its place.
    #[inline]
    pub(crate) fn list(&mut self, port: usize, address: u16) -> usize {
        let (packet, _) = self.memory[port * self.places + usize::from(address)];
        let place = usize::from(self.lengths[port]);
        self.listed[port * self.places + place] =
            Entry { destination: packet.destination, address };
        self.lengths[port] += 1;
        place
    }

    /// Strikes the entry at `place` off an input's list: its packet.
    #[inline]
    pub(crate) fn strike(&mut self, port: usize, place: usize) -> (Packet, u16) {
        let first = port * self.places;
        let length = usize::from(self.lengths[port]);
        let list = &mut self.listed[first..first + length];
        let address = list[place].address;
        list.copy_within(place + 1.., place);
        self.lengths[port] -= 1;
        self.held -= 1;
        (self.memory[first + usize::from(address)].0, address)
    }

    /// An input's packets that may ask, oldest first.
    #[inline]
    pub(crate) fn of(&self, port: usize) -> &[Entry] {
        &self.listed[port * self.places..][..usize::from(self.lengths[port])]
    }

    /// The cycle from which on an entry's packet may ask.
    pub(crate) fn since(&self, port: usize, entry: Entry) -> u64 {
        self.memory[port * self.places + usize::from(entry.address)].1
    }

    /// Packets that have entered and have not left.
    pub(crate) fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use kernel::Bytes;
    use proptest::prelude::*;
    use switching::Ticks;

    use super::*;

    /// Numbers of the packets that an input lists.
    fn numbers(arrays: &Arrays, port: usize) -> Vec<u32> {
        let number = |entry: &Entry| {
            arrays.memory[port * arrays.places + usize::from(entry.address)].0.sequence
        };
        arrays.of(port).iter().map(number).collect()
    }

    proptest! {
        #[test]
        fn behaves_as_a_list_for_each_input(
            steps in prop::collection::vec((0usize..3, any::<bool>(), any::<usize>()), 0..200),
        ) {
            let mut arrays = Arrays::new(3, 5);
            let (mut model, mut gone) = (vec![Vec::new(); 3], vec![Vec::new(); 3]);
            for (number, (port, enter, pick)) in (0..).zip(steps) {
                if enter && arrays.has_room(port) {
                    let mut packet = Packet::new(port, 7, Bytes::new(3), Ticks::new(0));
                    packet.sequence = number;
                    let address = arrays.store(packet, u64::from(number));
                    let place = arrays.list(port, address);
                    prop_assert_eq!(place, model[port].len());
                    model[port].push(number);
                } else if !model[port].is_empty() {
                    let place = pick % model[port].len();
                    let (packet, address) = arrays.strike(port, place);
                    prop_assert_eq!(packet.sequence, model[port].remove(place));
                    gone[port].push(address);
                } else if let Some(address) = gone[port].pop() {
                    arrays.free(port, address);
                }
                prop_assert_eq!(&numbers(&arrays, port), &model[port]);
                let taken = model[port].len() + gone[port].len();
                prop_assert_eq!(arrays.has_room(port), taken < 5);
            }
            prop_assert_eq!(arrays.held(), model.iter().map(Vec::len).sum::<usize>());
        }
    }
}
