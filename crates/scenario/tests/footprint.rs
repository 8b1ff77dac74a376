//! What a run of each fabric of the registry takes in memory, counted by the allocator, against the
//! estimate by which racks are refused before anything is allocated.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(unsafe_code, reason = "an allocator is unsafe by its trait; the system's does the work")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use kernel::Bytes;
use scenario::{Document, Format, Registry, Scenario};

/// The system's allocator, which counts what is in use.
struct Counting;

static NOW: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size() as u64;
        MOST.fetch_max(NOW.fetch_add(size, Ordering::Relaxed) + size, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that is in use while `work` goes on, beyond what was before.
fn most<T>(work: impl FnOnce() -> T) -> u64 {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    drop(work());
    MOST.load(Ordering::Relaxed) - before
}

/// Flows of a run; each is of two kilobytes.
const FLOWS: u64 = 300;
/// What each of them may take, in the driver and the fabric.
const FLOW: u64 = 4 << 10;
/// What each of them may take at each node that is told of it: R2C2's nodes know of all.
const TOLD: u64 = 24;
/// What the driver may take of its own: histograms, plots over time, the summary.
const DRIVER: u64 = 5 << 20;
/// Above so much an estimate is held from both sides.
const LARGE: u64 = 8 << 20;
/// By what an estimate may be above what is found: queues of pairs that no flow uses are not allocated, and
/// counted all the same.
const FACTOR: u64 = 8;

const NODE_FAILS: &str = "[[fault]]\nat = '2 us'\nnode = 1\n";

fn read(fabric: &str, faults: &str, registry: &Registry) -> Result<Scenario, String> {
    let text = format!(
        "[run]\ntime = '10 ms'\nwarm_up = 0.0\n[workload]\nkind = 'poisson'\nload = 0.2\nflows = {FLOWS}\n\
         sizes = {{ kind = 'fixed', size = '2 KB' }}\n{faults}[fabric]\n{fabric}\n"
    );
    let document = Document::parse("a.toml", &text, Format::Toml).map_err(|bad| bad.to_string())?;
    Scenario::read(document, &[], registry).map_err(|bad| bad.to_string())
}

/// Whether the estimate of a run is good; says both.
fn check(fabric: &str, faults: &str) -> bool {
    let registry = Registry::standard();
    // What is there once and for all, and no part of a run.
    drop(read("kind = 'scoc'\nnodes = 16", "", &registry));
    let (mut estimate, mut nodes) = (Bytes::ZERO, 0);
    let found = most(|| {
        let scenario =
            read(fabric, faults, &registry).unwrap_or_else(|bad| panic!("{fabric}: {bad}"));
        (estimate, nodes) = (scenario.memory(0), u64::from(scenario.nodes()));
        let run = scenario.execute(0, &mut (), &mut |_| ControlFlow::Continue(()));
        drop(run.unwrap_or_else(|bad| panic!("{fabric}: {bad}")));
    });
    let estimate = estimate.get();
    let told = if fabric.contains("'r2c2'") { TOLD * nodes } else { 0 };
    let is_enough = found <= estimate + DRIVER + FLOWS * (FLOW + told);
    let is_near = estimate < LARGE || estimate <= FACTOR * found;
    let said = if is_enough && is_near { "" } else { "  <-- wrong" };
    let ratio = estimate as f64 / found as f64;
    let name = fabric.replace('\n', " ") + if faults.is_empty() { "" } else { " with a fault" };
    eprintln!("{:8} KiB for {:8} KiB, {ratio:5.2}: {name}{said}", estimate >> 10, found >> 10);
    is_enough && is_near
}

/// Small and large racks of every kind, transport and topology.
fn racks() -> Vec<String> {
    let mut racks = Vec::new();
    let mut add = |text: String| racks.push(text);
    for nodes in [16, 256, 768] {
        add(format!("kind = 'shoal'\nnodes = {nodes}"));
        add(format!("kind = 'pl2'\nnodes = {nodes}\nswitch.registers = 1024"));
        add(format!("kind = 'scoc'\nnodes = {nodes}"));
        add(format!("kind = 'scoc'\nnodes = {nodes}\nswitch.kind = 'output-queued'"));
        add(format!("kind = 'packet-switched'\nnodes = {nodes}"));
        add(format!("kind = 'packet-switched'\nnodes = {nodes}\ntopology.kind = 'single-switch'"));
    }
    add("kind = 'shoal'\nnodes = 256\ntransport = 'reliable'".into());
    add("kind = 'pl2'\nnodes = 300\nthreads = 20\nswitch.registers = 1024".into());
    add("kind = 'pl2'\nnodes = 60\noutstanding = 'destination'".into());
    for switch in ["flat", "crrd", "hiera"] {
        for nodes in [16, 256] {
            add(format!("kind = 'scoc'\nnodes = {nodes}\nswitch.kind = '{switch}'"));
        }
    }
    add("kind = 'scoc-network'".into());
    for nodes in [16, 136, 500] {
        add(format!("kind = 'aquila'\nnodes = {nodes}"));
    }
    add("kind = 'aquila'\nprofile = 'full'\nnodes = 64".into());
    add("kind = 'packet-switched'\nnodes = 2048".into());
    add("kind = 'scoc'\nnodes = 2048\nswitch.kind = 'flat'".into());
    for transport in
        ["dctcp", "cubic", "newreno", "swift", "dcqcn", "ndp", "homa", "rds", "raw", "fluid"]
    {
        for nodes in [16, 512] {
            add(format!(
                "kind = 'packet-switched'\nnodes = {nodes}\ntransport.kind = '{transport}'"
            ));
        }
    }
    let grid = |kind: &str, sides: &[u32]| {
        format!(
            "topology = {{ kind = '{kind}', dimensions = {sides:?}, rate = '10 Gbps', delay = '100 ns' }}"
        )
    };
    for (kind, sides) in [
        ("torus", &[4, 4][..]),
        ("torus", &[8, 8, 8]),
        ("torus", &[10, 10, 10]),
        ("mesh", &[3, 5]),
        ("mesh", &[9, 9, 9]),
    ] {
        // Sets of next hops of a large torus take long to find.
        if sides.iter().product::<u32>() < 800 {
            add(format!("kind = 'packet-switched'\n{}", grid(kind, sides)));
        }
        add(format!("kind = 'r2c2'\n{}", grid(kind, sides)));
    }
    racks
}

/// One test, as there is one count.
#[test]
fn the_memory_of_every_fabric_is_bounded_by_its_estimate() {
    let mut is_good = true;
    let mut seen = BTreeSet::new();
    for rack in racks() {
        let kind = rack.split('\'').nth(1).unwrap().to_string();
        is_good &= check(&rack, "");
        let can_fail = read(&rack, NODE_FAILS, &Registry::standard()).is_ok();
        if can_fail {
            is_good &= check(&rack, NODE_FAILS);
        }
        seen.insert(kind);
    }
    let all: BTreeSet<String> =
        Registry::standard().fabrics().map(|fabric| fabric.name().to_string()).collect();
    assert_eq!(seen, all, "a rack of every fabric");
    assert!(is_good, "see above");
}
