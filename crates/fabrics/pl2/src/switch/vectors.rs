//! The vectors of `vectors/switch.json`, replayed: frames in, frames out, registers after.
//!
//! They come from another writing of Algorithm 1, `vectors/make.py`, which says what they hold.

use serde::Deserialize;

use super::frames::{Decision, Passed, leave, process};
use super::{Accounting, Decrement, Pipeline, Settings};

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    settings: Given,
    before: Held,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Given {
    ports: u32,
    drop_above: u32,
    accounting: Accounting,
    decrement: Decrement,
    /// Whether pairs have registers of their own.
    #[serde(default)]
    pairs: bool,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Held {
    r#in: Vec<u32>,
    out: Vec<u32>,
    /// From each port in turn to all; empty if pairs have none.
    #[serde(default)]
    pairs: Vec<u32>,
}

#[derive(Deserialize)]
struct Step {
    port: u32,
    frame: String,
    verdict: String,
    out_port: Option<u32>,
    out_frame: Option<String>,
    /// Whether a frame that came in, or that leaves, is counted then.
    #[serde(default = "yes")]
    counted: bool,
    #[serde(flatten)]
    after: Held,
}

fn yes() -> bool {
    true
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn pipeline(case: &Case) -> Pipeline {
    let mut pipeline = Pipeline::new(Settings {
        ports: case.settings.ports,
        drop_above: case.settings.drop_above,
        accounting: case.settings.accounting,
        decrement: case.settings.decrement,
        increment: 1,
        pairs: if case.settings.pairs { case.settings.ports.pow(2) } else { 0 },
    });
    let Pipeline { input, output, pairs, .. } = &mut pipeline;
    let Held { r#in, out, pairs: of_pairs } = &case.before;
    for (registers, values) in [(input, r#in), (output, out), (pairs, of_pairs)] {
        (0..).zip(values).for_each(|(index, &value)| {
            registers.set(index, value);
        });
    }
    pipeline
}

/// One step: what becomes of the frame, the registers after it, and that each array was touched once at
/// most (I08).
#[track_caller]
fn check(pipeline: &mut Pipeline, step: &Step, place: &str) {
    let operations = |pipeline: &Pipeline| {
        [pipeline.input(), pipeline.output(), pipeline.pairs()].map(|array| array.operations)
    };
    let before = operations(pipeline);
    let frame = bytes(&step.frame);
    let passed = if step.counted { Passed::Counted } else { Passed::Uncounted };
    if step.verdict == "leaves" {
        leave(pipeline, step.port, &frame, passed);
    } else {
        let expected = match step.verdict.as_str() {
            "drop" => Decision::Drop,
            _ => Decision::Send {
                port: step.out_port.unwrap(),
                frame: bytes(step.out_frame.as_ref().unwrap()),
                passed,
            },
        };
        assert_eq!(process(pipeline, step.port, &frame), expected, "{place}");
    }
    let held = Held {
        r#in: pipeline.input().cells().to_vec(),
        out: pipeline.output().cells().to_vec(),
        pairs: pipeline.pairs().cells().to_vec(),
    };
    assert_eq!(held, step.after, "{place}");
    for (before, after) in before.into_iter().zip(operations(pipeline)) {
        assert!(after - before <= 1, "{place}");
    }
}

#[test]
fn m06_m07_m12_m13_the_vectors_hold() {
    let file: File = serde_json::from_str(include_str!("../../vectors/switch.json")).unwrap();
    let mut steps = [0, 0];
    for case in &file.cases {
        let mut pipeline = pipeline(case);
        for (number, step) in case.steps.iter().enumerate() {
            check(&mut pipeline, step, &format!("{}, step {number}", case.name));
            steps[usize::from(case.settings.decrement == Decrement::Egress)] += 1;
        }
    }
    assert!(steps.iter().all(|&steps| steps > 200), "{steps:?} steps in all");
}
