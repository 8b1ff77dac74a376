//! Each node in a thread of its own, and bytes between them.

use kernel::{Bytes, Span, Stream, Time};
use loopback::Config;
use rack::{Class, Flow, FlowId, NodeId};
use scenario::Registry;

use crate::racks::{LIGHT, Rack, read};

/// A hundred flows between random nodes, within some microseconds.
fn flows(nodes: u32) -> Vec<Flow> {
    let mut draw = Stream::new(5, "conformance/loopback", 0);
    let flow = |id: u64| {
        let src = draw.below(nodes.into()) as u32;
        let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
        Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            size: Bytes::new(1 + draw.below(9_000)),
            start: Time::from_ps(draw.below(20_000_000)),
            class: Class::new(0),
        }
    };
    (0..100).map(flow).collect()
}

/// A hundred flows arrive byte by byte; with a tenth of the messages lost and a tenth damaged too, where what
/// is lost is sent again.
pub fn carries(rack: &Rack, registry: &Registry) -> Result<(), String> {
    let scenario = read(&rack.table, "", LIGHT, "", registry)?;
    let plan = &scenario.fabrics[0].plan;
    let flows = flows(plan.nodes());
    for loses_one_in in [0, 20] {
        let network = plan.rack(&[], 7).map_err(|why| format!("{why:?}"))?;
        let nodes = network.apart().ok_or("it cannot be taken apart")?;
        if loses_one_in > 0 && !nodes.recovers {
            continue;
        }
        // Late by a few wires, where lateness is no loss.
        let ahead = (loses_one_in > 0).then_some(nodes.delay + Span::from_us(1));
        // Time-outs double.
        let limit = Span::from_us(1_000_000_000);
        let config = Config { loses_one_in, ahead, limit, ..Config::default() };
        let outcome = loopback::carry(nodes, &flows, config);
        let failed = outcome.ended.values().filter(|(_, failure)| failure.is_some()).count();
        let is_good = outcome.ended.len() == flows.len()
            && failed == 0
            && outcome.incomplete.is_empty()
            && outcome.wrong == 0
            && (loses_one_in == 0 || outcome.lost > 0 && outcome.damaged > 0);
        if !is_good {
            let ended = outcome.ended.len();
            return Err(format!(
                "{ended} of {} flows ended, {failed} failed: {outcome:?}",
                flows.len()
            ));
        }
    }
    Ok(())
}
