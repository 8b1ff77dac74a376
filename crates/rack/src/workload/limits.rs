//! How large and how late flows may be, whatever the workload.

use kernel::{Bytes, Span, Time};

/// No flow is larger: 1 TiB (our choice: at 10 Gbps it takes a quarter of an hour alone, and sizes in bits
/// and sums over all flows of a run stay within 64 bits).
pub const FLOW_MAX: Bytes = Bytes::new(1 << 40);
/// No flow starts later: where a run ends at the latest.
pub const START_MAX: Time = crate::run::TIME_MAX;
/// No time between two things that a workload does is longer: as long as a run.
pub const SPAN_MAX: Span = Span::from_ps(START_MAX.as_ps());
/// Most nodes that a workload is drawn for: as many as a graph may have vertices (our choice).
pub const NODES_MAX: u32 = 1 << 20;
/// Most flows that a workload may announce: far more than any run carries (our choice), so that numbers of
/// several workloads stay within 64 bits.
pub const FLOWS_MAX: u64 = 1_000_000_000_000_000;
/// Most flows that a list, or a drawn round, may hold in memory: about a gigabyte, with what waits for what
/// (our choice).
pub const LISTED_MAX: u64 = 4_000_000;
