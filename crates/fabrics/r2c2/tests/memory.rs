//! What a rack takes in memory against the estimate, with an allocator that counts.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use kernel::{Bytes, Span, Time};
use r2c2::config::Start;
use r2c2::{Config, Rack};
use rack::topology::{Graph, Mesh, Shape, Torus};
use rack::{Class, Component, Fabric, Fault, Flow, FlowId, NodeId};

/// The system's allocator, which counts what is in use.
struct Counting;

static NOW: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc_zeroed(layout) }
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

/// Builds a rack, and lets each node send a little to another.
fn run(config: &Config, faults: &[Fault]) {
    let plan = config.plan().expect("it is a rack");
    let plan = plan.with_faults(faults).expect("it has that link");
    let nodes = plan.nodes();
    let mut rack = Rack::new(plan, 1);
    for node in 0..nodes {
        rack.offer(&Flow {
            id: FlowId::new(node.into()),
            src: NodeId::new(node),
            dst: NodeId::new((node + nodes / 2) % nodes),
            size: Bytes::new(1_000),
            start: Time::ZERO + Span::from_us(node.into()),
            class: Class::new(0),
        });
    }
    // Until all know of the failure, if there is one.
    rack.advance(Time::ZERO + Span::from_us(5_500), &mut ());
}

fn config(topology: Shape) -> Config {
    // So that shares are asked for at once.
    Config { topology, start: Start::Share, ..Config::default() }
}

fn torus(dimensions: &[u32]) -> Config {
    config(Shape::Torus(Torus { dimensions: dimensions.to_vec(), ..Torus::default() }))
}

fn mesh(dimensions: &[u32]) -> Config {
    config(Shape::Mesh(Mesh { dimensions: dimensions.to_vec(), ..Mesh::default() }))
}

/// Whether the estimate is good enough.
fn check(what: &str, estimate: Bytes, found: u64) -> bool {
    let ratio = estimate.get() as f64 / found as f64;
    eprintln!("{what}: {estimate} estimated, {found} B found, {ratio:.2}");
    (0.5..=2.0).contains(&ratio)
}

/// One test, as there is one count.
#[test]
fn memory_is_within_a_factor_of_two_of_its_estimate() {
    let ring = (0..200).map(|node| format!("{node},{},10 Gbps,100 ns\n", (node + 1) % 200));
    let chords = (0..200).map(|node| format!("{node},{},10 Gbps,100 ns\n", (node + 37) % 200));
    let edges = std::iter::once("a,b,rate,delay\n".into()).chain(ring).chain(chords).collect();
    let racks = [
        ("torus of 64", torus(&[4, 4, 4])),
        ("torus of 512", torus(&[8, 8, 8])),
        ("torus of 1,024 in two dimensions", torus(&[32, 32])),
        ("torus of 2,197", torus(&[13, 13, 13])),
        ("mesh of 512", mesh(&[8, 8, 8])),
        ("mesh of 1,000", mesh(&[10, 10, 10])),
        ("graph of 200", config(Shape::Graph(Graph { hosts: 200, edges, ..Graph::default() }))),
        ("torus of 512 with 15 trees", Config { trees: 15, ..torus(&[8, 8, 8]) }),
    ];
    let mut is_good = true;
    for (what, config) in racks {
        is_good &= check(what, config.memory(), most(|| run(&config, &[])));
    }
    let link = Component::Link { a: 0, b: 1, link: 0 };
    let fault = Fault { component: link, at: Time::ZERO, until: None };
    for (what, config) in
        [("failing torus of 512", torus(&[8, 8, 8])), ("failing mesh", mesh(&[9, 9, 9]))]
    {
        let estimate = config.memory().get() + config.failures_memory().get();
        is_good &= check(what, Bytes::new(estimate), most(|| run(&config, &[fault])));
    }
    assert!(is_good, "see above");
}
