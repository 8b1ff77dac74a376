//! The estimate of memory against what is allocated.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; this one leaves all to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel::{Bytes, Span, Time};
use rack::{Class, Fabric, Flow, FlowId, NodeId};
use shoal::config::Transport;
use shoal::schedule::Order;
use shoal::{Config, Rack};

/// Counts what is allocated now, and the most since it was asked to.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most that a rack takes from its plan until all nodes have sent for some epochs.
fn measured(config: &Config) -> u64 {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mut rack = Rack::new(config.plan().expect("the configuration is sound"), 1);
    for node in 0..config.nodes {
        rack.offer(&Flow {
            id: FlowId::new(u64::from(node)),
            src: NodeId::new(node),
            dst: NodeId::new((node + 1) % config.nodes),
            size: Bytes::new(10_000_000),
            start: Time::ZERO,
            class: Class::new(0),
        });
    }
    rack.advance(Time::ZERO + config.slot * 600, &mut ());
    let most = MOST.load(Ordering::Relaxed) - before;
    most as u64
}

// One test: what others allocate at the same time would count.
#[test]
fn the_estimate_of_memory_is_within_a_factor_of_two_and_takes_none() {
    let config = |nodes| Config { nodes, ..Config::default() };
    let far = Span::from_us(3);
    for config in [
        config(64),
        config(512),
        config(1_024),
        Config { channels: 1, ..config(200) },
        Config { classes: 4, ..config(256) },
        Config { transport: Transport::Reliable, ..config(256) },
        Config { bit_error_rate: 1e-6, classes: 2, ..config(128) },
        Config { wire_latency: far, ..config(128) },
        Config { wire_latency: far, queue_limit: 9, schedule: Order::Cyclic, ..config(256) },
    ] {
        let (estimate, measured) = (config.memory().get(), measured(&config));
        let ratio = estimate as f64 / measured as f64;
        assert!((0.5..2.0).contains(&ratio), "{estimate} for {measured}: {config:?}");
    }
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let most = u32::MAX;
    for config in [
        config(1_000_000_000),
        config(most),
        Config { channels: most, classes: most, ..config(most) },
        Config { channels: 0, classes: 0, slot: Span::ZERO, ..config(0) },
        Config { wire_latency: Span::from_ps(u64::MAX), slot: Span::from_ps(1), ..config(most) },
        Config {
            wire_latency: Span::from_ps(u64::MAX),
            slot: Span::from_ps(1),
            bit_error_rate: 1.0,
            schedule: Order::Cyclic,
            ..config(most)
        },
    ] {
        let estimate = config.memory();
        assert!(config.nodes == 0 || estimate > Bytes::new(1 << 50), "{estimate}: {config:?}");
    }
    assert!(MOST.load(Ordering::Relaxed) - before < 1_000, "the estimate takes memory itself");
}
