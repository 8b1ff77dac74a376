//! Small scenarios of every fabric with faults keep their books, whatever is drawn.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod small;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kernel::Stream;

use small::End;

/// How many are run; the fuzz target looks further.
const COUNT: u64 = 400;

#[test]
fn small_scenarios_with_faults_keep_their_books() {
    let mut counts = [0; 4];
    let mut wrong = Vec::new();
    for seed in 0..COUNT {
        let mut stream = Stream::new(seed, "small runs", 0);
        let text = small::scenario(&mut |below| stream.below(below.max(1)));
        match catch_unwind(AssertUnwindSafe(|| small::run(&text, 20_000))) {
            Ok(end) => counts[end as usize] += 1,
            Err(_) => wrong.push(format!("seed {seed}:\n{text}")),
        }
    }
    let [refused, ran, cut, broke] = counts;
    assert!(
        wrong.is_empty(),
        "{} of {COUNT}\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    // Faults that a fabric cannot have are refused; most of them it can have.
    let said = format!("{refused} refused, {ran} ran, {cut} cut, {broke} broke");
    assert!(ran > COUNT / 4 && refused > 0 && refused < COUNT * 2 / 3, "{said}");
    let _ = End::Ran;
}
