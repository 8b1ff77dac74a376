//! Small scenarios of every fabric with faults, drawn number by number, and run to their end. Shared by
//! the ordinary tests and by the fuzz target `small_runs`.

#[path = "../racks/mod.rs"]
mod racks;

use std::ops::ControlFlow;
use std::sync::LazyLock;

use scenario::{Document, Error, Format, Registry, Scenario, schema};
use serde_json::Value;

const WORKLOADS: [&str; 8] = [
    "kind = 'poisson'\nload = 0.3\nflows = 60\nsizes = { kind = 'fixed', size = '2 KB' }",
    "kind = 'poisson'\nload = 0.9\nflows = 60\nsizes = { kind = 'fixed', size = '20 KB' }",
    "kind = 'poisson'\nload = 3\nflows = 60\nsizes = { kind = 'fixed', size = '64 B' }",
    "kind = 'poisson'\nload = 0.5\nflows = 60\nsizes = { kind = 'fixed', size = '1 B' }",
    "kind = 'incast'\nsenders = 5\nsize = '30 KB'",
    "kind = 'bulk'\npattern = { kind = 'permutation' }\nsize = '40 KB'",
    "kind = 'all_to_all'\nsize = '3 KB'",
    "kind = 'shuffle'\nsize = '20 KB'",
];
const COMPONENTS: [&str; 8] = [
    "node = 1",
    "node = 0",
    "node_link = 2",
    "switch = 0",
    "leaf = 0",
    "count = 1",
    "fraction = 0.5",
    "count = 2\nof = 'node_link'",
];

/// What scenarios are drawn from.
static DRAWN_FROM: LazyLock<(Vec<racks::Rack>, Value)> = LazyLock::new(|| {
    let registry = Registry::standard();
    (racks::all(&registry), schema::scenario(&registry))
});

/// A scenario in TOML; `draw` gives a number below its argument.
pub fn scenario(draw: &mut dyn FnMut(u64) -> u64) -> String {
    let (racks, schema) = &*DRAWN_FROM;
    let drawn = racks::drawn((racks, schema), &Registry::standard(), draw);
    let table = toml::Value::try_from(&drawn.table).expect("a table goes as TOML");
    let fabric = table.as_table().into_iter().flatten();
    let fabric = fabric.fold(format!("kind = '{}'", drawn.kind), |text, (key, value)| {
        format!("{text}\n{key} = {value}")
    });
    let workload = WORKLOADS[draw(WORKLOADS.len() as u64) as usize];
    let mut text = format!("seed = {}\n[run]\ntime = '{} us'\n", draw(1_000), 50 + draw(1_000));
    if draw(3) == 0 {
        text.push_str(&format!("flows = {}\n", 1 + draw(60)));
    }
    text.push_str(&format!("[workload]\n{workload}\n[fabric]\n{fabric}\n"));
    for _ in 0..draw(4) {
        // At the start, in the middle, at the very same time, and after the end.
        let at = draw(2) * draw(400_000);
        let component = COMPONENTS[draw(COMPONENTS.len() as u64) as usize];
        text.push_str(&format!("[[fault]]\nat = '{at} ns'\n{component}\n"));
        if draw(2) == 0 {
            text.push_str(&format!("until = '{} ns'\n", at + 1 + draw(200_000)));
        }
    }
    text
}

/// What became of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was refused, with words: a fabric has no leaf to fail, say.
    Refused,
    /// It ran; its books balance.
    Ran,
    /// It was told to end after so many reports of progress.
    Cut,
    /// It broke with words: flows that nothing moves.
    Broke,
}

/// Reads and runs it, for at most `reports` reports of progress. The driver holds the fabric's books
/// against its own.
///
/// # Panics
/// When the books do not balance, a check fails, or anything has no words.
pub fn run(text: &str, reports: u32) -> End {
    let document = Document::parse("small.toml", text, Format::Toml).expect("it is well-formed");
    let scenario = match Scenario::read(document, &[], &Registry::standard()) {
        Ok(scenario) => scenario,
        Err(bad) => {
            assert!(!bad.to_string().is_empty());
            return End::Refused;
        }
    };
    let mut left = reports;
    let outcome = scenario.execute(0, &mut (), &mut |_| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match outcome {
        Ok(_) if left == 0 => End::Cut,
        Ok(_) => End::Ran,
        Err(Error::Run(broken)) => {
            let words = broken.to_string();
            let is_mistake = words.contains("books") || words.contains("a check failed");
            assert!(!is_mistake && !words.is_empty(), "{words}\n{text}");
            End::Broke
        }
        Err(Error::Input(bad)) => panic!("it was read and is refused now: {bad}\n{text}"),
    }
}
