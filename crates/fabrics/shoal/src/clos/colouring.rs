//! Uplinks for circuits, so that no two share one.
//!
//! Models: Shoal §3.2 (claim S12): "each switch's schedule is contention-free". The paper
//! decomposes its example by hand (Fig. 4) and gives no method. In one position of the schedule the
//! circuits are the edges of a bipartite multigraph, from leaf to leaf; an uplink is a colour,
//! which no leaf may use twice on either side. By König's theorem as many colours as a leaf has
//! nodes suffice.
//!
//! Which of the many colourings matters: a node should meet its peers over all spines evenly, or a
//! broken spine would cut off some nodes and spare others. So each circuit names the uplink that it
//! prefers, by a formula that spreads evenly and collides only where leaves are not full;
//! collisions are then resolved along alternating paths.

/// A circuit between two leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Circuit {
    /// The leaf of the sender.
    pub from: u32,
    /// The leaf of the receiver.
    pub to: u32,
    /// The colour it would like.
    pub preferred: u32,
}

/// No circuit has this colour here.
const FREE: u32 = u32::MAX;

/// Colours the circuits of one position after the other, with the same memory.
#[derive(Clone, Debug)]
pub struct Colouring {
    colours: u32,
    /// `outgoing[leaf * colours + colour]` is the circuit that leaves there; [`FREE`]: none.
    outgoing: Vec<u32>,
    /// The same for the circuit that arrives.
    incoming: Vec<u32>,
    /// The colour of each circuit; [`FREE`]: none yet.
    colour_of: Vec<u32>,
}

impl Colouring {
    /// For circuits between `leaves` leaves.
    #[must_use]
    pub fn new(leaves: u32, colours: u32) -> Self {
        let table = vec![FREE; (leaves * colours) as usize];
        Self { colours, outgoing: table.clone(), incoming: table, colour_of: Vec::new() }
    }

    /// A colour below `colours` for each circuit, no two the same at a leaf on the same side.
    ///
    /// # Panics
    /// If a leaf has more circuits on one side than there are colours.
    pub fn colour(&mut self, circuits: &[Circuit]) -> &[u32] {
        self.outgoing.fill(FREE);
        self.incoming.fill(FREE);
        self.colour_of.clear();
        self.colour_of.resize(circuits.len(), FREE);
        for (index, circuit) in circuits.iter().enumerate() {
            let colour = circuit.preferred % self.colours;
            if self.is_free(circuit, colour) {
                self.paint(circuits, index as u32, colour);
            }
        }
        for index in 0..circuits.len() {
            if self.colour_of[index] == FREE {
                self.resolve(circuits, index as u32);
            }
        }
        &self.colour_of
    }

    /// Colours one more circuit, changing others where it must.
    fn resolve(&mut self, circuits: &[Circuit], index: u32) {
        let circuit = &circuits[index as usize];
        let mut wishes = self.wishes(circuit.preferred);
        if let Some(colour) = wishes.find(|&colour| self.is_free(circuit, colour)) {
            return self.paint(circuits, index, colour);
        }
        let free_at_start = self.first_free(&self.outgoing, circuit.from, circuit.preferred);
        let free_at_end = self.first_free(&self.incoming, circuit.to, circuit.preferred);
        self.swap_path(circuits, circuit.to, free_at_start, free_at_end);
        self.paint(circuits, index, free_at_start);
    }

    /// Swaps two colours along the path that arrives at leaf `end` with the first of them. The
    /// second is free there, so the path is no ring; and it reaches the senders' side only with the
    /// first, so it never touches a sender that has the first one free.
    fn swap_path(&mut self, circuits: &[Circuit], end: u32, first: u32, second: u32) {
        let mut path = Vec::new();
        let mut receiver = end;
        loop {
            let arriving = self.incoming[self.at(receiver, first)];
            if arriving == FREE {
                break;
            }
            path.push(arriving);
            let sender = circuits[arriving as usize].from;
            let leaving = self.outgoing[self.at(sender, second)];
            if leaving == FREE {
                break;
            }
            path.push(leaving);
            receiver = circuits[leaving as usize].to;
            assert!(path.len() <= circuits.len(), "an alternating path of {} circuits", path.len());
        }
        for &index in &path {
            let circuit = circuits[index as usize];
            let colour = self.colour_of[index as usize];
            let (out, into) = (self.at(circuit.from, colour), self.at(circuit.to, colour));
            self.outgoing[out] = FREE;
            self.incoming[into] = FREE;
        }
        for index in path {
            let swapped = first + second - self.colour_of[index as usize];
            self.paint(circuits, index, swapped);
        }
    }

    /// Gives a circuit a colour that is free for it.
    fn paint(&mut self, circuits: &[Circuit], index: u32, colour: u32) {
        let circuit = circuits[index as usize];
        let (out, into) = (self.at(circuit.from, colour), self.at(circuit.to, colour));
        self.outgoing[out] = index;
        self.incoming[into] = index;
        self.colour_of[index as usize] = colour;
    }

    fn is_free(&self, circuit: &Circuit, colour: u32) -> bool {
        self.outgoing[self.at(circuit.from, colour)] == FREE
            && self.incoming[self.at(circuit.to, colour)] == FREE
    }

    /// The colours in the order in which a circuit wants them: always beginning at 0 would load
    /// the first uplinks with all collisions.
    fn wishes(&self, preferred: u32) -> impl Iterator<Item = u32> + use<> {
        let colours = self.colours;
        (preferred..preferred + colours).map(move |colour| colour % colours)
    }

    fn first_free(&self, side: &[u32], leaf: u32, preferred: u32) -> u32 {
        let free = |colour: &u32| side[self.at(leaf, *colour)] == FREE;
        self.wishes(preferred).find(free).unwrap_or_else(|| {
            panic!("leaf {leaf} has more circuits on one side than {} uplinks", self.colours)
        })
    }

    fn at(&self, leaf: u32, colour: u32) -> usize {
        (leaf * self.colours + colour) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(leaves: u32, colours: u32, circuits: &[Circuit]) -> Vec<u32> {
        let mut colouring = Colouring::new(leaves, colours);
        let found = colouring.colour(circuits).to_vec();
        for (index, circuit) in circuits.iter().enumerate() {
            assert!(found[index] < colours);
            for (other, second) in circuits.iter().enumerate().skip(index + 1) {
                let meet = circuit.from == second.from || circuit.to == second.to;
                assert!(!meet || found[index] != found[other], "{circuit:?} and {second:?}");
            }
        }
        found
    }

    fn circuit(from: u32, to: u32, preferred: u32) -> Circuit {
        Circuit { from, to, preferred }
    }

    #[test]
    fn s12_a_preference_without_conflict_is_kept() {
        let circuits = [circuit(0, 1, 1), circuit(0, 1, 0), circuit(1, 0, 1), circuit(1, 0, 0)];
        assert_eq!(check(2, 2, &circuits), [1, 0, 1, 0]);
    }

    #[test]
    fn s12_a_conflict_is_resolved_along_a_path() {
        // The last one finds colour 1 free where it starts and colour 0 free where it ends.
        let circuits = [
            circuit(0, 0, 0),
            circuit(1, 0, 1),
            circuit(1, 1, 0),
            circuit(2, 1, 1),
            circuit(2, 2, 0),
            circuit(0, 2, 0),
        ];
        assert_eq!(check(3, 2, &circuits).len(), 6);
    }

    #[test]
    #[should_panic(expected = "leaf 0 has more circuits on one side than 1 uplinks")]
    fn s12_more_circuits_than_uplinks_are_our_mistake() {
        let circuits = [circuit(0, 0, 0), circuit(0, 1, 0)];
        let _ = Colouring::new(2, 1).colour(&circuits);
    }

    /// Colours, the receiver of each sender, and the colour that each would like.
    fn any_permutation() -> impl Strategy<Value = (u32, Vec<u32>, Vec<u32>)> {
        (1_u32..9, 1_u32..9).prop_flat_map(|(colours, leaves)| {
            let receivers: Vec<u32> = (0..colours * leaves).collect();
            let preferences = proptest::collection::vec(0..colours, receivers.len());
            (Just(colours), Just(receivers).prop_shuffle(), preferences)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        // Nodes in random order on both sides, in leaves of equal size: every leaf is full, the
        // hardest case, and the preferences are as bad as they can be.
        #[test]
        fn s12_any_full_permutation_is_coloured(
            (colours, receivers, preferences) in any_permutation()
        ) {
            let leaves = receivers.len() as u32 / colours;
            let circuits: Vec<Circuit> = receivers
                .iter()
                .zip(preferences)
                .enumerate()
                .map(|(node, (receiver, preferred))| {
                    circuit(node as u32 / colours, receiver / colours, preferred)
                })
                .collect();
            check(leaves, colours, &circuits);
        }
    }
}
