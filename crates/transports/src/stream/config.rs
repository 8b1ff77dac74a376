//! The `stream` table that all transports of the TCP family share.

use kernel::{Bytes, Span};
use packets::PRIORITIES;
use packets::config::MTU_MAX;
use rack::{NodeId, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timeout::Limits;

/// What the sender learns of missing segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Selective acknowledgments: RFC 2018 and RFC 6675.
    #[default]
    Sack,
    /// Duplicate acknowledgments alone: NewReno's recovery, RFC 6582.
    Duplicates,
    /// Duplicate acknowledgments alone, of which the third has one segment sent again; nothing new goes for those that
    /// follow, and the next acknowledgment of new data ends the recovery, whatever else is missing (RFC 5681 §3.2, as
    /// libvma has it with CUBIC: `tcp_receive` of `src/vma/lwip/tcp_in.c`). Of several segments lost in a window each of
    /// the others takes three more duplicates, or a timeout.
    Single,
}

/// A byte stream over packets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Largest packet, headers included. Unit: bytes. Default 1500 B (Shoal §7.3). Not above the
    /// network's.
    pub mtu: Bytes,
    /// Headers of a packet. Unit: bytes. Default 52 B: IPv4 20 B, TCP 20 B, timestamps 12 B (RFC 791,
    /// 9293, 7323). Selective acknowledgments come on top, 4 B and 8 B a block (RFC 2018).
    pub header: Bytes,
    /// Whether a connection opens with SYN and SYN-ACK before data flows. Default true (RFC 9293
    /// §3.5). False: the hosts keep connections open, each flow has one of them to itself. Where flows share
    /// `connections`, each of those opens once.
    pub handshake: bool,
    /// Connections that each host keeps open to each other, on which flows are messages, one behind the other. Default
    /// 0: a connection for each flow. From 0 to 256.
    #[schemars(range(max = 256))]
    pub connections: u32,
    /// Of connections that stay open: whether a segment that is not full waits while another is not acknowledged (RFC
    /// 896). Default false: TCP_NODELAY, as applications of a rack have it.
    pub nagle: bool,
    /// Initial window. Unit: segments. Default 10 (RFC 6928). Shoal §7.3 used 35. From 1 to 65,535.
    #[schemars(range(min = 1, max = 65535))]
    pub initial_window: u32,
    /// The receiver's buffer, which bounds the window. Unit: bytes. Default 6 MB (6,291,456 B, what
    /// Linux grows to: `tcp_rmem`). From one segment to 65,535.
    pub receive_window: Bytes,
    /// How the sender learns of missing segments. Default sack (RFC 6675).
    pub recovery: Recovery,
    /// Whether packets carry timestamps, so that retransmitted segments too give samples of the
    /// round-trip time. Default true (RFC 7323). False: Karn's rule (RFC 6298 §3); the header should
    /// then be 12 B less.
    pub timestamps: bool,
    /// Acknowledge every so many segments at the latest. Unit: segments. Default 1: each (our choice,
    /// as simulators of racks do); 2 is what RFC 5681 §4.2 allows. From 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub ack_segments: u32,
    /// Acknowledge after this time at the latest. Unit: time. Default 40 ms (Linux's least; RFC 1122
    /// §4.2.3.2 allows 500 ms). Plays no part where every segment is acknowledged.
    pub ack_delay: Span,
    /// Retransmission timeout before the first sample. Unit: time. Default 1 s (RFC 6298 §2.1).
    pub rto_initial: Span,
    /// Ceiling of the retransmission timeout. Unit: time. Default 60 s (RFC 6298 §2.5).
    pub rto_max: Span,
    /// Granularity of the sender's clock. Unit: time. Default 1 us (our choice: a present host's
    /// timer; RFC 6298 §2 calls it G).
    pub clock_granularity: Span,
    /// Queue of the network for all packets of this transport; 0 is the most urgent. Default 1.
    #[schemars(range(max = 7))]
    pub priority: u8,
    /// Queues of the network for flows of class 0, class 1 and so on (`class` of the workload), in place of `priority`;
    /// classes beyond the last have its queue. The most urgent go first at a host's own line. Default: none, all flows
    /// have `priority`. Up to 8.
    pub class_priorities: Vec<u8>,
    /// Whether the summary tells of round trips in the network, by class: from a segment's first bit on its host's line to
    /// the arrival of its acknowledgment, less what was spent in hosts. Default false.
    pub round_trips: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1500),
            header: Bytes::new(52),
            handshake: true,
            connections: 0,
            nagle: false,
            initial_window: 10,
            receive_window: Bytes::new(6_291_456),
            recovery: Recovery::default(),
            timestamps: true,
            ack_segments: 1,
            ack_delay: Span::from_us(40_000),
            rto_initial: Span::from_us(1_000_000),
            rto_max: Span::from_us(60_000_000),
            clock_granularity: Span::from_us(1),
            priority: 1,
            class_priorities: Vec::new(),
            round_trips: false,
        }
    }
}

/// How the receiver tells the sender of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Echo {
    /// Packets are not marked.
    None,
    /// From a mark until the sender has answered (RFC 3168 §6.1.3).
    UntilAnswered,
    /// For each packet as it came (RFC 8257 §3.2).
    Each,
}

/// The checked table with what follows from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Bytes of a full segment.
    pub(crate) segment: u16,
    pub(crate) header: u16,
    pub(crate) handshake: bool,
    pub(crate) connections: u32,
    pub(crate) nagle: bool,
    /// Initial window in bytes.
    pub(crate) initial_window: u64,
    /// Segments that fit the receiver's buffer.
    pub(crate) receive_window: u64,
    pub(crate) recovery: Recovery,
    pub(crate) timestamps: bool,
    pub(crate) ack_segments: u32,
    pub(crate) ack_delay: Span,
    pub(crate) timeout: Limits,
    pub(crate) priorities: Priorities,
    pub(crate) round_trips: bool,
    pub(crate) echo: Echo,
}

/// The queues of flows, by class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priorities {
    /// By class, the last for all others.
    of: [u8; CLASSES],
    /// Whether they differ.
    has_levels: bool,
}

/// Classes that can be told apart.
const CLASSES: usize = PRIORITIES as usize;

impl Priorities {
    fn new(config: &Config) -> Self {
        let classes = &config.class_priorities;
        let last = classes.last().copied().unwrap_or(config.priority);
        let of = std::array::from_fn(|class| classes.get(class).copied().unwrap_or(last));
        Self { of, has_levels: of.iter().any(|&priority| priority != of[0]) }
    }

    /// The queue of a class.
    #[inline]
    pub(crate) fn of(&self, class: u8) -> u8 {
        self.of[usize::from(class).min(CLASSES - 1)]
    }

    /// Lists of turns that each host has.
    #[inline]
    pub(crate) fn levels(&self) -> usize {
        if self.has_levels { CLASSES } else { 1 }
    }

    /// The list of a host's flows of a class.
    #[inline]
    pub(crate) fn place(&self, host: NodeId, class: u8) -> usize {
        let level = if self.has_levels { self.of(class) } else { 0 };
        host.index() * self.levels() + usize::from(level)
    }

    /// A host's list of a level, from the most urgent, and the queue of the flows in it.
    #[inline]
    pub(crate) fn level(&self, host: NodeId, level: usize) -> (usize, u8) {
        let priority = if self.has_levels { level as u8 } else { self.of[0] };
        (host.index() * self.levels() + level, priority)
    }
}

/// Most segments under way: selective acknowledgments count in 16 bits.
const WINDOW_MAX: u64 = 65_535;
/// Most connections from one host to another (our choice).
const CONNECTIONS_MAX: u32 = 256;
/// Least bytes of headers: an IP and a TCP header without options (RFC 791, RFC 9293).
const HEADER_MIN: Bytes = Bytes::new(40);

impl Config {
    /// Application bytes of a full segment; 0 where the headers leave no room.
    fn segment(&self) -> u64 {
        self.mtu.get().saturating_sub(self.header.get())
    }

    /// What is wrong with the table.
    pub(crate) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, key: &str, message: String| {
            if bad {
                problems.push(Problem::new(key, message));
            }
        };
        refuse(
            self.mtu > MTU_MAX || self.mtu <= self.header,
            "mtu",
            format!(
                "{}; expected more than the header's {} and at most {MTU_MAX}",
                self.mtu, self.header
            ),
        );
        refuse(
            self.header < HEADER_MIN,
            "header",
            format!("{}; expected {HEADER_MIN} or more", self.header),
        );
        let segments = self.receive_window.get().checked_div(self.segment());
        refuse(
            !segments.is_none_or(|count| (1..=WINDOW_MAX).contains(&count)),
            "receive_window",
            format!(
                "{} are {} segments; expected 1 to {WINDOW_MAX}",
                self.receive_window,
                segments.unwrap_or(0)
            ),
        );
        refuse(
            !(1..=WINDOW_MAX).contains(&u64::from(self.initial_window)),
            "initial_window",
            format!("{} segments; expected 1 to {WINDOW_MAX}", self.initial_window),
        );
        refuse(
            self.connections > CONNECTIONS_MAX,
            "connections",
            format!("{}; expected 0 to {CONNECTIONS_MAX}", self.connections),
        );
        refuse(
            self.connections > 0 && !self.class_priorities.is_empty(),
            "connections",
            "flows of all classes share them; leave class_priorities out".into(),
        );
        refuse(
            self.nagle && self.connections == 0,
            "nagle",
            "each flow has a connection of its own, whose last segment waits for nothing; set connections".into(),
        );
        refuse(
            !(1..=64).contains(&self.ack_segments),
            "ack_segments",
            format!("{}; expected 1 to 64", self.ack_segments),
        );
        refuse(
            self.ack_segments > 1 && self.ack_delay == Span::ZERO,
            "ack_delay",
            "acknowledgments wait for more segments, but for no time; set ack_segments to 1".into(),
        );
        refuse(
            self.rto_initial == Span::ZERO || self.rto_initial > self.rto_max,
            "rto_initial",
            format!(
                "{}; expected more than 0 and at most rto_max, {}",
                self.rto_initial, self.rto_max
            ),
        );
        refuse(
            self.priority >= PRIORITIES,
            "priority",
            format!("{}; expected 0 to {}", self.priority, PRIORITIES - 1),
        );
        let classes = &self.class_priorities;
        refuse(
            classes.len() > CLASSES || classes.iter().any(|&p| p >= PRIORITIES),
            "class_priorities",
            format!("{classes:?}; expected up to {CLASSES}, each from 0 to {}", PRIORITIES - 1),
        );
        problems
    }

    /// What is wrong with a floor of the timeout, whose key stands in the transport's own table.
    pub(crate) fn check_rto_min(&self, rto_min: Span) -> Option<Problem> {
        (rto_min == Span::ZERO || rto_min > self.rto_max).then(|| {
            let message =
                format!("{rto_min}; expected more than 0 and at most rto_max, {}", self.rto_max);
            Problem::new("rto_min", message)
        })
    }

    /// All problems of a transport's table: its own, and those of this one below it.
    pub(crate) fn with(&self, rto_min: Span, own: Vec<Problem>) -> Vec<Problem> {
        let stream = self.check().into_iter().map(|problem| problem.below("stream"));
        own.into_iter().chain(self.check_rto_min(rto_min)).chain(stream).collect()
    }

    /// The plan; the table has been checked.
    pub(crate) fn plan(&self, rto_min: Span, echo: Echo) -> Plan {
        let small = |bytes: u64| u16::try_from(bytes).expect("a packet was checked to fit 16 bits");
        let segment = self.segment();
        Plan {
            segment: small(segment),
            header: small(self.header.get()),
            handshake: self.handshake,
            connections: self.connections,
            nagle: self.nagle,
            initial_window: u64::from(self.initial_window) * segment,
            receive_window: self.receive_window.get() / segment,
            recovery: self.recovery,
            timestamps: self.timestamps,
            ack_segments: self.ack_segments,
            ack_delay: self.ack_delay,
            timeout: Limits {
                initial: self.rto_initial,
                min: rto_min,
                max: self.rto_max,
                granularity: self.clock_granularity,
            },
            priorities: Priorities::new(self),
            round_trips: self.round_trips,
            echo,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Config), expected: &[&str]) {
        let mut config = Config::default();
        change(&mut config);
        let found: Vec<_> = config.check().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_mistake_has_its_message() {
        check(|_| (), &[]);
        check(
            |c| c.mtu = Bytes::new(10_000),
            &["mtu: 10 KB; expected more than the header's 52 B and at most 9.216 KB"],
        );
        check(
            |c| c.mtu = Bytes::new(52),
            &["mtu: 52 B; expected more than the header's 52 B and at most 9.216 KB"],
        );
        check(|c| c.header = Bytes::new(20), &["header: 20 B; expected 40 B or more"]);
        check(
            |c| c.receive_window = Bytes::new(100),
            &["receive_window: 100 B are 0 segments; expected 1 to 65535"],
        );
        check(|c| c.connections = 257, &["connections: 257; expected 0 to 256"]);
        check(
            |c| (c.connections, c.class_priorities) = (1, vec![0, 1]),
            &["connections: flows of all classes share them; leave class_priorities out"],
        );
        check(
            |c| c.nagle = true,
            &[
                "nagle: each flow has a connection of its own, whose last segment waits for nothing; set connections",
            ],
        );
        check(|c| c.initial_window = 0, &["initial_window: 0 segments; expected 1 to 65535"]);
        check(|c| c.ack_segments = 65, &["ack_segments: 65; expected 1 to 64"]);
        check(
            |c| (c.ack_segments, c.ack_delay) = (2, Span::ZERO),
            &[
                "ack_delay: acknowledgments wait for more segments, but for no time; set ack_segments to 1",
            ],
        );
        check(
            |c| c.rto_initial = Span::ZERO,
            &["rto_initial: 0 ps; expected more than 0 and at most rto_max, 60 s"],
        );
        check(|c| c.priority = 8, &["priority: 8; expected 0 to 7"]);
        check(
            |c| c.class_priorities = vec![1, 8],
            &["class_priorities: [1, 8]; expected up to 8, each from 0 to 7"],
        );
    }

    #[test]
    fn classes_have_their_queues() {
        let plan = |classes: &[u8]| {
            let class_priorities = classes.to_vec();
            Config { class_priorities, ..Config::default() }.plan(Span::from_us(1), Echo::None)
        };
        let all = |classes: &[u8]| [0, 1, 2, 255].map(|class| plan(classes).priorities.of(class));
        assert_eq!(all(&[]), [1; 4]);
        assert_eq!(all(&[3]), [3; 4]);
        assert_eq!(all(&[2, 5]), [2, 5, 5, 5]);
        let host = NodeId::new(4);
        for classes in [&[][..], &[3], &[2, 5], &[0, 7, 1]] {
            let priorities = plan(classes).priorities;
            let levels: Vec<_> =
                (0..priorities.levels()).map(|l| priorities.level(host, l)).collect();
            for class in 0..4 {
                let expected = (priorities.place(host, class), priorities.of(class));
                assert!(levels.contains(&expected), "{classes:?}, class {class}: {levels:?}");
            }
        }
    }

    #[test]
    fn the_floor_of_the_timeout_is_checked_against_its_ceiling() {
        let config = Config::default();
        assert_eq!(config.check_rto_min(Span::from_us(1)), None);
        assert!(config.check_rto_min(Span::ZERO).is_some());
        assert!(config.check_rto_min(Span::from_us(70_000_000)).is_some());
    }

    #[test]
    fn a_table_reads_back_and_refuses_unknown_keys() {
        let text = serde_json::to_string(&Config::default()).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), Config::default());
        assert!(serde_json::from_str::<Config>(r#"{"mss": 1460}"#).is_err());
    }
}
