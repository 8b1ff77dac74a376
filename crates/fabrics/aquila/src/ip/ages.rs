//! Places of a buffer in the order in which they were taken, so that the oldest is known: time-outs look there.

/// No place.
const NONE: u32 = u32::MAX;

/// Places by age: a list through an array.
#[derive(Clone, Debug)]
pub(crate) struct Ages {
    /// By place: the one before and the one behind.
    links: Vec<[u32; 2]>,
    oldest: u32,
    newest: u32,
}

impl Default for Ages {
    fn default() -> Self {
        Self { links: Vec::new(), oldest: NONE, newest: NONE }
    }
}

impl Ages {
    /// Puts a place behind all others. Whether there was none.
    pub(crate) fn push(&mut self, place: u32) -> bool {
        let is_first = self.oldest == NONE;
        if self.links.len() <= place as usize {
            self.links.resize(place as usize + 1, [NONE; 2]);
        }
        self.links[place as usize] = [self.newest, NONE];
        match is_first {
            true => self.oldest = place,
            false => self.links[self.newest as usize][1] = place,
        }
        self.newest = place;
        is_first
    }

    /// Takes a place out, which is in it.
    pub(crate) fn remove(&mut self, place: u32) {
        let [before, behind] = self.links[place as usize];
        match before {
            NONE => self.oldest = behind,
            before => self.links[before as usize][1] = behind,
        }
        match behind {
            NONE => self.newest = before,
            behind => self.links[behind as usize][0] = before,
        }
    }

    /// The oldest.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_queue_from_which_any_may_leave(steps in prop::collection::vec((0..8u32, any::<bool>()), 0..60)) {
            let (mut ages, mut model) = (Ages::default(), Vec::new());
            for (place, is_in) in steps {
                let found = model.iter().position(|&other| other == place);
                match (is_in, found) {
                    (true, None) => {
                        prop_assert_eq!(ages.push(place), model.is_empty());
                        model.push(place);
                    }
                    (false, Some(at)) => {
                        ages.remove(place);
                        model.remove(at);
                    }
                    _ => {}
                }
                prop_assert_eq!(ages.oldest(), model.first().copied());
            }
        }
    }
}
