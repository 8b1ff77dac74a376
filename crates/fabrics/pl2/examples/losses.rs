//! What lost frames leave reserved, at a port that is never silent: five hosts with twelve threads each send
//! 5.8 MB a thread to one host, while links lose packets at random. Printed are who tracks what was granted, the
//! share of the line's slots that are used, the largest slot in a grant, and payload a second, which also
//! depends on how the transport retransmits what got lost.
//!
//!     cargo run --release --package rackloom-pl2 --example losses

use std::ops::ControlFlow;

use kernel::{Bytes, Time};
use pl2::config::Tracking;
use pl2::transport::Transport;
use pl2::{Config, Rack};
use rack::{Class, Completion, Fabric, Flow, FlowId, NodeId, Probe};
use serde_json::Value;
use transports::raw::{self, Losses};

/// When the last flow ended.
#[derive(Default)]
struct Last(Time);

impl Probe for Last {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.0 = self.0.max(completion.end);
        ControlFlow::Continue(())
    }
}

/// Bytes of a flow.
const SIZE: Bytes = Bytes::new(4_000 * 1_458);

fn flows() -> Vec<Flow> {
    let all = (1..=5).flat_map(|src| (0..12).map(move |_| src));
    let flow = |(id, src): (u64, u32)| Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(0),
        size: SIZE,
        start: Time::ZERO,
        class: Class::new(0),
    };
    (0..).zip(all).map(flow).collect()
}

#[expect(clippy::print_stdout, reason = "it is what the example is for")]
fn main() {
    println!("{:<9} {:<9} {:>9} {:>9} {:>9}", "loss", "tracking", "line used", "slot max", "Gbps");
    for loss_rate in [0.0, 0.00001, 0.0001, 0.001, 0.01] {
        for tracking in [Tracking::None, Tracking::Pairs] {
            let raw = raw::Config { losses: Losses::Repeat, ..raw::Config::default() };
            let mut config =
                Config { loss_rate, transport: Transport::Raw(raw), ..Config::default() };
            config.recovery.tracking = Some(tracking);
            let plan = config.plan().expect("a good table");
            let slot = plan.config.slot;
            let mut rack = Rack::new(plan, 1);
            let flows = flows();
            flows.iter().for_each(|flow| rack.offer(flow));
            let mut last = Last::default();
            let _ = rack.advance(Time::NEVER, &mut last);
            let details = rack.details();
            let count = |key: &str| details.get(key).and_then(Value::as_u64).unwrap_or(0);
            let unused = count("slots_leaked").max(count("slots_reset"));
            let used = slot * (count("slots_granted") - unused);
            let seconds = last.0.as_seconds();
            let gbps = SIZE.get() as f64 * flows.len() as f64 * 8.0 / seconds / 1e9;
            let line_used = used.as_seconds() / seconds;
            let who = format!("{tracking:?}").to_lowercase();
            println!("{loss_rate:<9} {who:<9} {line_used:9.2} {:9} {gbps:9.1}", count("slot_max"));
        }
    }
}
