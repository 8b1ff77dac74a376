//! TCP with its congestion control switched off: the receiver's window alone bounds what is under way.
//!
//! Models: what PL2 §4.5 and §5 run over their reservations: the byte stream with its
//! acknowledgments and retransmissions, and no window of the sender's own. Without something below
//! that keeps senders apart it fills every queue up to the receivers' windows.

use kernel::{Span, Time};
use packets::Surroundings;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stream::Stream;
use crate::stream::config::{Config as StreamConfig, Echo};
use crate::stream::congestion::{Acked, Congestion, Signal, Start};

/// TCP endpoints without congestion control.
pub type Uncontrolled = Stream<Unbounded>;

/// TCP without congestion control.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Floor of the retransmission timeout. Unit: time. Default 200 ms (Linux's, as `newreno` has it;
    /// PL2 does not say).
    pub rto_min: Span,
    /// The byte stream. Its `initial_window` plays no part.
    pub stream: StreamConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self { rto_min: Span::from_us(200_000), stream: StreamConfig::default() }
    }
}

impl Config {
    /// What is wrong with the table.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        self.stream.with(self.rto_min, Vec::new())
    }

    /// The endpoints of all hosts.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub fn build(&self, around: &Surroundings) -> Result<Uncontrolled, Vec<Problem>> {
        let problems = self.check();
        if !problems.is_empty() {
            return Err(problems);
        }
        let plan = self.stream.plan(self.rto_min, Echo::None);
        Ok(Stream::with_plan(plan, (), around))
    }
}

/// No window at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unbounded;

impl Congestion for Unbounded {
    const NAME: &'static str = "uncontrolled";
    type Plan = ();

    fn new((): &(), _: &Start) -> Self {
        Self
    }

    #[inline]
    fn window(&self) -> u64 {
        u64::MAX
    }

    #[inline]
    fn acked(&mut self, (): &(), _: &Acked) {}

    fn congested(&mut self, (): &(), _: Signal, _: u64, _: Time) {}

    fn syn_lost(&mut self, _: &Start) {}
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Rate};
    use packets::config::Queues;
    use rack::Fabric;

    use super::*;
    use crate::networked::{carry, network, permutation, star};

    fn config(handshake: bool) -> Config {
        let stream = StreamConfig { handshake, ..StreamConfig::default() };
        Config { rto_min: Span::from_us(1_000), stream }
    }

    #[test]
    fn the_line_is_full_from_the_first_packet_on() {
        let plan = star(4, Queues::default()).plan().unwrap();
        let mut network =
            network(plan, 1, |around| config(false).build(around).expect("a good table"));
        // 1,448 B of payload in each packet of 1,500 B; nothing waits for acknowledgments, which have
        // lines of their own: hosts 0 and 2 send, 1 and 3 answer.
        let mut flows = permutation(4, 1, 1_448 * 200);
        flows.retain(|flow| flow.src.get() % 2 == 0);
        let ends = carry(&mut network, &flows);
        let line = Rate::from_gbps(10);
        let alone = line.send_time(Bytes::new(1_500)) * 200;
        let rest = (ends.last() - Time::ZERO) - alone;
        // The last packet's way: two wires, a switch's 500 ns, and its time on the second line.
        let way = Span::from_ns(1_500) + line.send_time(Bytes::new(1_500));
        assert_eq!(rest, way);
    }

    #[test]
    fn the_receivers_buffer_bounds_what_is_under_way() {
        let window = Bytes::new(1_448 * 2);
        let mut config = config(false);
        config.stream.receive_window = window;
        let plan = star(2, Queues::default()).plan().unwrap();
        let mut network = network(plan, 1, |around| config.build(around).expect("a good table"));
        let ends = carry(&mut network, &permutation(2, 1, 1_448 * 100));
        // Two packets a round trip of at least 3 us: no more than 2.6 Gbps each way.
        assert!(ends.share(2, Rate::from_gbps(10)) < 0.8, "{}", ends.share(2, Rate::from_gbps(10)));
    }

    #[test]
    fn what_is_lost_is_sent_again() {
        let net = packets::Config { loss_rate: 0.01, ..star(4, Queues::default()) };
        let mut network = network(net.plan().unwrap(), 1, |around| {
            config(true).build(around).expect("a good table")
        });
        let ends = carry(&mut network, &permutation(4, 1, 1_448 * 500));
        assert_eq!(ends.completed.len(), 4);
        assert!(network.totals().retransmissions > 0);
    }
}
