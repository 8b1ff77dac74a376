//! Shares of a flow whose paths are listed, each with its part of the flow.
//!
//! Models: R2C2 §3.3.1's examples (claims I07, X04): a flow that weighted load balancing divides over
//! two paths one to two, and the flow of Fig. 4 that is divided over two paths of different lengths.

use rack::topology::PortId;

/// The share of each link that the paths cross, by port. The parts are relative to each other.
///
/// ```
/// use r2c2::routing::of_paths;
/// use rack::topology::PortId;
/// let [a, b, c] = [0, 1, 2].map(PortId::new);
/// // Both paths cross the first link.
/// let shares = of_paths(&[(1.0, vec![a, b]), (3.0, vec![a, c])]);
/// assert_eq!(shares, [(a, 1.0), (b, 0.25), (c, 0.75)]);
/// ```
///
/// # Panics
/// Unless every part is above zero.
#[must_use]
pub fn of_paths(paths: &[(f64, Vec<PortId>)]) -> Vec<(PortId, f64)> {
    assert!(paths.iter().all(|&(part, _)| part > 0.0), "a path without a part of the flow");
    let all: f64 = paths.iter().map(|&(part, _)| part).sum();
    let crossing = |(part, ports): &(f64, Vec<PortId>)| {
        let share = part / all;
        ports.iter().map(move |&port| (port, share)).collect::<Vec<_>>()
    };
    let mut shares: Vec<(PortId, f64)> = paths.iter().flat_map(crossing).collect();
    shares.sort_by_key(|&(port, _)| port);
    shares.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        sum.1 += if same { next.1 } else { 0.0 };
        same
    });
    shares
}
