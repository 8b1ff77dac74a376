//! The board against the procedures of RFC 6675 written out segment by segment.

use proptest::prelude::*;

use super::*;

/// One segment as RFC 6675 speaks of it.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    sacked: bool,
}

/// RFC 6675 §4 to the letter, in time that grows with the square of the window.
#[derive(Clone, Debug, Default)]
struct Model {
    high_ack: u64,
    /// `HighRxt` plus one.
    high_rxt: u64,
    /// All below count as lost since a timeout.
    timed_out: u64,
    entries: Vec<Entry>,
}

impl Model {
    fn high_data(&self) -> u64 {
        self.entries.len() as u64
    }

    fn sacked(&self, segment: u64) -> bool {
        self.entries[segment as usize].sacked
    }

    /// IsLost: three discontiguous sequences, or more than two segments' bytes, above.
    fn is_lost(&self, segment: u64) -> bool {
        let above = segment + 1..self.high_data();
        let sacked = above.clone().filter(|&s| self.sacked(s)).count();
        let runs = above.filter(|&s| self.sacked(s) && !self.sacked(s - 1)).count();
        runs >= DUP_THRESH || sacked > DUP_THRESH - 1 || segment < self.timed_out
    }

    fn pipe(&self) -> u64 {
        let open = (self.high_ack..self.high_data()).filter(|&s| !self.sacked(s));
        open.map(|s| u64::from(!self.is_lost(s)) + u64::from(s < self.high_rxt)).sum()
    }

    fn candidates(&self) -> impl Iterator<Item = u64> + '_ {
        let highest = (0..self.high_data()).rev().find(|&s| self.sacked(s)).unwrap_or(0);
        (self.high_ack.max(self.high_rxt)..self.high_data())
            .filter(move |&s| !self.sacked(s) && (s < highest || s < self.timed_out))
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u8),
    Acknowledge(u8),
    Sack(u8, u8),
    SendAgain,
    Timeout,
    Recover,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u8..20).prop_map(Step::Send),
        2 => (0u8..100).prop_map(Step::Acknowledge),
        6 => (0u8..100, 1u8..6).prop_map(|(at, length)| Step::Sack(at, length)),
        4 => Just(Step::SendAgain),
        1 => Just(Step::Timeout),
        1 => Just(Step::Recover),
    ]
}

fn apply(step: Step, board: &mut Scoreboard, model: &mut Model) -> Result<(), TestCaseError> {
    match step {
        Step::Send(count) => {
            for _ in 0..count {
                prop_assert_eq!(board.send_new(), model.high_data());
                model.entries.push(Entry::default());
            }
        }
        Step::Acknowledge(percent) => {
            let ack = model.high_ack + board.flight() * u64::from(percent) / 100;
            let news = (model.high_ack..ack).filter(|&s| !model.sacked(s)).count() as u64;
            (model.high_ack..ack).for_each(|s| model.entries[s as usize].sacked = true);
            model.high_ack = ack;
            prop_assert_eq!(board.acknowledge(ack), news);
        }
        Step::Sack(percent, length) => {
            // The segment at HighACK itself is missing, or the number would be higher.
            let from = model.high_ack + 1 + board.flight() * u64::from(percent) / 100;
            let to = (from + u64::from(length)).min(model.high_data());
            let news = (from..to).filter(|&s| !model.sacked(s)).count() as u64;
            (from..to).for_each(|s| model.entries[s as usize].sacked = true);
            prop_assert_eq!(board.sack(from, to), news);
            board.update_lost();
        }
        Step::SendAgain => {
            let lost = model.candidates().find(|&s| model.is_lost(s));
            prop_assert_eq!(board.next_lost(), lost);
            let hole = board.next_hole();
            if lost.is_none() {
                prop_assert_eq!(hole, model.candidates().next());
            }
            if let Some(segment) = lost.or(hole) {
                board.send_again(segment);
                model.high_rxt = segment + 1;
            }
        }
        Step::Recover => {
            board.start_recovery();
            model.high_rxt = model.high_ack;
        }
        Step::Timeout => {
            board.declare_all_lost();
            model.timed_out = model.high_data();
            model.high_rxt = model.high_ack;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn the_board_follows_rfc_6675_segment_by_segment(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let (mut board, mut model) = (Scoreboard::default(), Model::default());
        for step in steps {
            apply(step, &mut board, &mut model)?;
            prop_assert_eq!((board.una(), board.next()), (model.high_ack, model.high_data()));
            prop_assert_eq!(board.pipe(), model.pipe(), "{:?} after {:?}", board, step);
            prop_assert_eq!(board.check(), Ok(()));
            let last = (model.high_ack..model.high_data()).rev().find(|&s| !model.sacked(s));
            prop_assert_eq!(board.last_hole(), last);
            let first_lost = board.flight() > 0 && model.is_lost(model.high_ack);
            prop_assert_eq!(board.is_first_lost(), first_lost);
        }
    }
}

/// Every pattern of arrivals among eight segments, in one block each: pipe and losses.
#[test]
fn every_pattern_of_eight_segments_is_counted_right() {
    for pattern in 0u64..256 {
        let (mut board, mut model) = (Scoreboard::default(), Model::default());
        for segment in 0..8 {
            board.send_new();
            model.entries.push(Entry { sacked: pattern >> segment & 1 == 1 });
        }
        let ack = u64::from(pattern.trailing_ones());
        board.acknowledge(ack);
        model.high_ack = ack;
        for segment in ack..8 {
            if model.sacked(segment) {
                board.sack(segment, segment + 1);
            }
        }
        board.update_lost();
        assert_eq!(board.pipe(), model.pipe(), "{pattern:08b}");
        let lost: Vec<_> = (ack..8).filter(|&s| !model.sacked(s) && model.is_lost(s)).collect();
        let mut found = Vec::new();
        while let Some(segment) = board.next_lost() {
            found.push(segment);
            board.send_again(segment);
        }
        assert_eq!(found, lost, "{pattern:08b}");
    }
}

#[test]
fn a_board_without_loss_holds_no_set() {
    let mut board = Scoreboard::default();
    for _ in 0..1_000 {
        board.send_new();
        board.send_new();
        board.acknowledge(board.una() + 2);
        assert!(board.sacked.is_empty());
    }
    assert_eq!((board.pipe(), board.flight()), (0, 0));
}
