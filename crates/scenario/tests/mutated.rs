//! Mutated scenarios: a thousand of them, each refused with a list of problems or read. Never a panic, an
//! abort or silence.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::PathBuf;

use kernel::{Bytes, Stream};
use scenario::{Argument, Document, Format, Registry, Scenario};

/// How many mutated scenarios are tried.
const COUNT: u64 = 1_000;
/// Values from beyond the edges of what a key takes.
const VALUES: [&str; 26] = [
    "0",
    "-1",
    "1",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e308",
    "-0.0",
    "nan",
    "inf",
    "0.5",
    "''",
    "'0 s'",
    "'1 ps'",
    "'18446744 s'",
    "'1 bps'",
    "'18446744073 Gbps'",
    "'18446744073709551615 B'",
    "'1 B'",
    "true",
    "[]",
    "{}",
    "[[[[1]]]]",
    "1979-05-27",
];
/// Text that stands between others in such files.
const TOKENS: [&str; 16] = [
    "[", "]", "{", "}", "=", "'", "\"", "\n", ",", ".", "#", " ns", " Gbps", " KB", "\u{0}",
    "\u{202e}",
];

/// The project's own scenarios, by name.
fn scenarios() -> Vec<(String, String)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    assert!(paths.len() > 5, "{paths:?}");
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(path).unwrap());
    paths.into_iter().map(read).collect()
}

/// Changes `text` in one place.
fn mutate(text: &str, stream: &mut Stream) -> String {
    let mut below = |count: usize| stream.below(count.max(1) as u64) as usize;
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let line = below(lines.len());
    let assigned: Vec<usize> = (0..lines.len()).filter(|&l| lines[l].contains('=')).collect();
    match below(8) {
        // A value, or the part of one that stands after a key.
        0..=2 => {
            let line = assigned[below(assigned.len())];
            let places: Vec<_> = lines[line].match_indices('=').map(|(at, _)| at).collect();
            let at = places[below(places.len())];
            let rest = &lines[line][at + 1..];
            let end = rest.find([',', '}']).map_or(lines[line].len(), |end| at + 1 + end);
            lines[line].replace_range(at + 1..end, &format!(" {}", VALUES[below(VALUES.len())]));
        }
        // A number grows or shrinks, its unit stays.
        3 => {
            let line = assigned[below(assigned.len())];
            let digit = lines[line].find(|c: char| c.is_ascii_digit()).unwrap_or(lines[line].len());
            let more = ["0", "00000", "999999999", ".", "-", "e9"][below(6)];
            lines[line].insert_str(digit, more);
        }
        // A key is misspelt, a line lost, or written twice.
        4 => {
            let at = lines[line].char_indices().nth(below(6)).map_or(0, |(at, _)| at);
            lines[line].insert(at, 'x');
        }
        5 => drop(lines.remove(line)),
        6 => {
            let copy = lines[below(lines.len())].clone();
            lines.insert(line, copy);
        }
        // A token, anywhere.
        _ => {
            let count = lines[line].chars().count() + 1;
            let nth = below(count);
            let end = lines[line].len();
            let at = lines[line].char_indices().nth(nth).map_or(end, |(at, _)| at);
            lines[line].insert_str(at, TOKENS[below(TOKENS.len())]);
        }
    }
    lines.join("\n") + "\n"
}

/// Reads it; a list of problems is never empty, nor are they without words.
fn read(name: &str, text: &str, arguments: &[Argument], what: &str) -> bool {
    // What would take longer to plan than a test may is refused for its memory.
    let registry = Registry::standard().with_memory(Bytes::new(32 << 20));
    let document = Document::parse(name, text, Format::Toml);
    let read = || document.and_then(|document| Scenario::read(document, arguments, &registry));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    let outcome = outcome.unwrap_or_else(|_| panic!("{what}: a panic for\n{text}"));
    match outcome {
        Ok(scenario) => {
            let resolved = scenario.to_toml();
            let again = Document::parse("resolved", &resolved, Format::Toml).unwrap();
            let again = Scenario::read(again, &[], &registry);
            let again = again.unwrap_or_else(|bad| panic!("{what}: {bad} for\n{resolved}"));
            assert_eq!(again.to_toml(), resolved, "{what}");
            true
        }
        Err(bad) => {
            assert!(!bad.problems().is_empty(), "{what}");
            for problem in bad.problems() {
                assert!(
                    !problem.message().is_empty(),
                    "{what}: a problem without words for\n{text}"
                );
                assert!(problem.to_string().len() < 5_000, "{what}: {problem}");
            }
            false
        }
    }
}

#[test]
fn a_thousand_mutated_scenarios_are_read_or_refused_with_words() {
    let all = scenarios();
    let mut counts = [0; 2];
    for seed in 0..COUNT {
        let (name, text) = &all[seed as usize % all.len()];
        let mut stream = Stream::new(seed, "mutated", 0);
        let mut text = text.clone();
        for _ in 0..=stream.below(2) {
            text = mutate(&text, &mut stream);
        }
        counts[usize::from(read(name, &text, &[], &format!("seed {seed}")))] += 1;
    }
    // A test that refuses all, or nothing, would test little.
    assert!(counts.iter().all(|&count| count > COUNT / 20), "{counts:?} refused and read");
}

#[test]
fn settings_of_any_key_to_any_value_are_taken_or_refused_with_words() {
    let all = scenarios();
    let keys = [
        "seed",
        "run.flows",
        "run.time",
        "workload",
        "workload.load",
        "fabric",
        "fabric.nodes",
        "fault",
        "fabric[1].label",
        "fabric[99]",
        "a..b",
        "run[0].time",
    ];
    for seed in 0..COUNT / 4 {
        let (name, text) = &all[seed as usize % all.len()];
        let mut stream = Stream::new(seed, "settings", 0);
        let key = keys[stream.below(keys.len() as u64) as usize];
        let value = VALUES[stream.below(VALUES.len() as u64) as usize];
        let setting = format!("{key}={value}");
        let arguments = [Argument::parse(&setting).unwrap()];
        read(name, text, &arguments, &format!("{name} with {setting}"));
    }
}
