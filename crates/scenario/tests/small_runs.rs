//! Small scenarios of every fabric with faults keep their books, whatever is drawn.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod small;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kernel::Stream;

use small::End;

/// Runs so many of them; the fuzz target looks further.
fn hold(count: u64) {
    let mut counts = [0; 4];
    let mut wrong = Vec::new();
    for seed in 0..count {
        let mut stream = Stream::new(seed, "small runs", 0);
        let text = small::scenario(&mut |below| stream.below(below.max(1)));
        match catch_unwind(AssertUnwindSafe(|| small::run(&text, 20_000))) {
            Ok(end) => counts[end as usize] += 1,
            Err(_) => wrong.push(format!("seed {seed}:\n{text}")),
        }
    }
    let said = format!(
        "{} refused, {} ran, {} cut, {} broke",
        counts[End::Refused as usize],
        counts[End::Ran as usize],
        counts[End::Cut as usize],
        counts[End::Broke as usize]
    );
    let shown = wrong[..wrong.len().min(5)].join("\n");
    assert!(wrong.is_empty(), "{} of {count}\n{shown}", wrong.len());
    // Faults that a fabric cannot have are refused; most of them it can have.
    let (refused, ran) = (counts[End::Refused as usize], counts[End::Ran as usize]);
    assert!(ran > count / 4 && refused > 0 && refused < count * 2 / 3, "{said}");
}

#[test]
fn small_scenarios_with_faults_keep_their_books() {
    hold(400);
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_scenarios_with_faults_keep_their_books() {
    hold(10_000);
}
