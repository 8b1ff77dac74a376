//! Two that share a line, and whose turn it is (§2, §5.1; U32, our choice).

use crate::config::Sharing;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// The one that did not go last.
    next: usize,
    /// Bytes that the first had more than the second since one of them last wanted nothing.
    ahead: i64,
}

impl Turn {
    /// Who goes first, and who goes if that one wants nothing.
    pub(crate) fn order(self, sharing: Sharing) -> [usize; 2] {
        let first = match (sharing, self.ahead) {
            (Sharing::Packets, _) | (Sharing::Bytes, 0) => self.next,
            (Sharing::Bytes, ahead) => usize::from(ahead > 0),
        };
        [first, 1 - first]
    }

    /// One of them has had so many bytes; whether the other one wanted some, too.
    pub(crate) fn took(&mut self, who: usize, bytes: u32, other_wants: bool) {
        self.next = 1 - who;
        let bytes = i64::from(bytes);
        self.ahead = match (other_wants, who) {
            (false, _) => 0,
            (true, 0) => self.ahead + bytes,
            (true, _) => self.ahead - bytes,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two have that always want more: 4160 B at a time, and 64 B.
    fn shares(sharing: Sharing) -> [u64; 2] {
        let (mut turn, mut had) = (Turn::default(), [0_u64; 2]);
        for _ in 0..100_000 {
            let [first, _] = turn.order(sharing);
            let bytes = [4_160, 64][first];
            had[first] += u64::from(bytes);
            turn.took(first, bytes, true);
        }
        had
    }

    #[test]
    fn u32_turns_are_of_packets_or_of_bytes() {
        let [long, short] = shares(Sharing::Packets);
        assert_eq!(long * 64, short * 4_160, "as many packets each");
        let [long, short] = shares(Sharing::Bytes);
        assert!(long.abs_diff(short) <= 4_160, "within a packet: {long} and {short} B");
    }

    #[test]
    fn u32_who_wanted_nothing_has_saved_nothing() {
        let mut turn = Turn::default();
        (0..100).for_each(|_| turn.took(0, 4_160, false));
        assert_eq!(turn.order(Sharing::Bytes), [1, 0], "the other one is next");
        turn.took(1, 64, true);
        assert_eq!(turn.order(Sharing::Bytes), [0, 1], "and has no more than its turn");
    }
}
