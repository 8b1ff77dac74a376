//! Throughput and the longest queue of an incast under each schedule of the switch, for 1 to 5 senders:
//! what the hardware's limits cost.
//!
//!     cargo run --release --package rackloom-pl2 --example loads

use std::ops::ControlFlow;

use kernel::{Bytes, Span, Time};
use pl2::config::{Outstanding, Pending, Schedule, TimeStamps};
use pl2::switch::Decrement;
use pl2::transport::Transport;
use pl2::{Config, Rack};
use rack::{Class, Completion, Fabric, Flow, FlowId, NodeId, Probe};

/// When the last flow ended.
#[derive(Default)]
struct Last(Time);

impl Probe for Last {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.0 = self.0.max(completion.end);
        ControlFlow::Continue(())
    }
}

/// Twelve flows a sender, 1,500 packets each.
fn flows(senders: u32) -> impl Iterator<Item = Flow> {
    let all = (1..=senders).flat_map(|src| (0..12).map(move |_| src));
    (0..).zip(all).map(|(id, src)| Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(0),
        size: Bytes::new(1_500 * 1_458),
        start: Time::ZERO,
        class: Class::new(0),
    })
}

#[expect(clippy::print_stdout, reason = "it is what the example is for")]
fn main() {
    let raw = || Transport::Raw(transports::raw::Config::default());
    let usual = || Config { transport: raw(), ..Config::default() };
    let with = |change: fn(&mut Config)| {
        let mut config = usual();
        change(&mut config);
        config
    };
    let rows = [
        ("counters", usual()),
        ("counters, t = 0", with(|c| c.unsolicited_below = 0)),
        ("counters, at ingress", with(|c| c.switch.decrement = Decrement::Ingress)),
        ("counters, TCP above", with(|c| c.transport = Transport::default())),
        ("counters, a destination each", with(|c| c.outstanding = Outstanding::Destination)),
        (
            "… at ingress",
            with(|c| {
                c.outstanding = Outstanding::Destination;
                c.switch.decrement = Decrement::Ingress;
            }),
        ),
        (
            "… Eq. 1 to the letter",
            with(|c| {
                c.switch.decrement = Decrement::Ingress;
                c.host.pending = Pending::AtGrant;
            }),
        ),
        (
            "… software time stamps",
            with(|c| {
                c.switch.decrement = Decrement::Ingress;
                c.host.time_stamps = TimeStamps::Software;
            }),
        ),
        (
            "… TCP, slots of 123.04 ns",
            with(|c| {
                c.switch.decrement = Decrement::Ingress;
                c.transport = Transport::default();
                c.slot = Span::from_ps(123_040);
            }),
        ),
        ("ideal", with(|c| c.switch.schedule = Schedule::Ideal)),
        ("matching", with(|c| c.switch.schedule = Schedule::Matching)),
    ];
    println!("{:<30} senders: Gbps of payload, longest queue in KB, dropped and sent again", "");
    for (name, config) in rows {
        print!("{name:<30}");
        for senders in 1..=5 {
            let mut rack = Rack::new(config.plan().expect("a good table"), 1);
            let mut last = Last::default();
            let bytes: u64 =
                flows(senders).inspect(|flow| rack.offer(flow)).map(|f| f.size.get()).sum();
            let _ = rack.advance(Time::NEVER, &mut last);
            let totals = rack.totals();
            let gbps = bytes as f64 * 8.0 / last.0.as_seconds() / 1e9;
            let kilobytes = totals.queue_max.get() as f64 / 1e3;
            print!(" | {gbps:5.1} {kilobytes:6.1} {:4}", totals.drops);
        }
        println!();
    }
}
