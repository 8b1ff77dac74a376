//! Small scenarios of every fabric with faults, drawn number by number, and run to their end. Shared by
//! the ordinary tests and by the fuzz target `small_runs`.

use std::ops::ControlFlow;

use scenario::{Document, Error, Format, Registry, Scenario};

/// Fabrics of eight to sixteen nodes, small enough to run a thousand of them.
const FABRICS: [&str; 20] = [
    "kind = 'shoal'\nnodes = 8",
    "kind = 'shoal'\nnodes = 16\nchannels = 4",
    "kind = 'shoal'\nnodes = 16\nradix = 8",
    "kind = 'shoal'\nnodes = 16\nradix = 8\ntransport = 'none'",
    "kind = 'shoal'\nnodes = 8\nbit_error_rate = 1e-6",
    "kind = 'packet-switched'\nnodes = 8",
    "kind = 'packet-switched'\nnodes = 8\ntransport.kind = 'dctcp'",
    "kind = 'packet-switched'\nnodes = 8\ntransport.kind = 'cubic'",
    "kind = 'packet-switched'\nnodes = 8\ntransport.kind = 'swift'",
    "kind = 'packet-switched'\nnodes = 8\ntransport.kind = 'dcqcn'",
    "kind = 'packet-switched'\nnodes = 8\ntransport.kind = 'ndp'",
    "kind = 'packet-switched'\nnodes = 8\ntransport.kind = 'homa'",
    "kind = 'packet-switched'\nnodes = 8\ntransport.kind = 'rds'",
    "kind = 'packet-switched'\nnodes = 8\ntransport = { kind = 'raw', losses = 'repeat' }",
    "kind = 'packet-switched'\nnodes = 8\ntransport = { kind = 'raw', losses = 'forget' }",
    "kind = 'pl2'\nnodes = 8",
    "kind = 'pl2'\nnodes = 8\ntransport = { kind = 'raw', losses = 'repeat' }\nloss_rate = 0.01",
    "kind = 'r2c2'\ntopology = { kind = 'torus', dimensions = [3, 3], rate = '10 Gbps', delay = '100 ns' }",
    "kind = 'scoc'\nnodes = 16",
    "kind = 'scoc-network'",
];
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

/// A scenario in TOML; `draw` gives a number below its argument.
pub fn scenario(draw: &mut dyn FnMut(u64) -> u64) -> String {
    let mut pick = |from: &[&str]| from[draw(from.len() as u64) as usize].to_string();
    let (fabric, workload) = (pick(&FABRICS), pick(&WORKLOADS));
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
