//! The `[fabric.ip]` table.

use kernel::{Bytes, Rate, Span};
use packets::PRIORITIES;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cells::ip::{DATA_CELLS_MAX, DATA_HEADER_BYTES, LENGTH_MAX};
use crate::link::header::{CELL_MAX, HEADER_BYTES};

/// IP over GNet: buffers at both ends of the fabric, and the handshake by which packets cross it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ip {
    /// Rate of a NIC, which the hosts of a TiN share, and of the Ethernet port. Unit: bit/s. Default 100 Gbps
    /// (Aquila §3.6, §5.1).
    pub port_rate: Rate,
    /// Largest IP packet. Unit: bytes. Default 4160 B: a value of 4 KiB fits one (our choice, U31). From 64 B to
    /// 16383 B, and at most 127 cells.
    pub mtu: Bytes,
    /// Class of service of packets of the hosts' transports: 7 goes first, 5 to 7 take the channels of what is to be fast,
    /// 0 goes when nothing else does. Default 1 (our choice, M427). From 0 to 7.
    #[schemars(range(max = 7))]
    pub class_of_service: u8,
    /// Classes of service of packets of priority 0, priority 1 and so on, in place of `class_of_service`; priorities beyond
    /// the last have its class. Priorities are what `transport.stream.class_priorities` makes of the workload's classes of
    /// flows: with [0, 1] there and [7, 1] here flows of class 0 are urgent, and others are bulk traffic. Default: none,
    /// all packets have `class_of_service`. Up to 8, each from 0 to 7.
    pub classes_of_service: Vec<u8>,
    /// Buffer of a TiN for packets that wait to be asked for, in segments of 256 B. Unit: bytes. Default: 2 MiB for
    /// each 100 Gbps of `port_rate` (our choice, U25: Aquila §3.3 says that it is much larger than that at the other end),
    /// 64 KiB at the least. From 64 KiB to 64 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_buffer: Option<Bytes>,
    /// How much of the free part of it one class of service may hold, as a factor. Default 1 (our choice, U25). From
    /// 0.01 to 100.
    #[schemars(range(min = 0.01, max = 100.0))]
    pub ingress_share: f64,
    /// Buffer of a port in which packets are put together. Unit: bytes. Default: 256 KiB for each 100 Gbps of `port_rate`,
    /// what the port sends while a packet is asked for and comes, and as much again for what comes out of order (our
    /// choice, U26), two of the largest packets at the least. From there to 64 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_buffer: Option<Bytes>,
    /// Most bytes that are asked for and not there yet, of a port. Unit: bytes. Default: 64 KiB for each 100 Gbps of
    /// `port_rate`, which are 5 us of it (our choice, U27), one of the largest packets at the least. From there to
    /// `egress_buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// Depth of a queue of requests above which one more is answered by: drop it. Default 1024 (our choice, U29).
    /// Above `mark_above`. Well above `queue_limit`: nothing is dropped, requests wait in the fabric.
    pub drop_above: u32,
    /// Depth of a queue of requests above which packets of it are marked (ECN) as they leave. Default 64 (our choice,
    /// U29).
    pub mark_above: u32,
    /// What counts as the depth that `drop_above` and `mark_above` are about. Default requests (our choice, U58: Aquila
    /// §3.3 speaks of the depth of queues).
    pub depth: Depth,
    /// Requests that a queue holds; more wait in the fabric. Default 2048 (our choice, M411). Up to 65536.
    #[schemars(range(max = 65_536))]
    pub queue_limit: u32,
    /// Shares of the classes of service 0 to 6 of a port, by bytes; class 7 goes first. Default 1 each (our choice,
    /// U28). From 1 to 255.
    pub weights: [u8; 7],
    /// What the two hosts of a TiN have in equal shares where both want its NIC, in either direction. Default packets
    /// (our choice, U32).
    pub sharing: Sharing,
    /// Largest packets that are asked for at once after a port was idle; then as fast as its line is. Default 2 (our
    /// choice, U28). From 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub burst: u32,
    /// Whether a packet's request goes once its header is there. Default true (Aquila §3.3: before the whole packet is
    /// there; when then is our choice, U56). False: when all of it is there.
    pub early_requests: bool,
    /// Which packets keep their order. Default source: those of a source, port and class of service (our choice, U24).
    pub order: Order,
    /// Whether packets wait until they are asked for. Default true (Aquila §3.3). False, to measure what that is for:
    /// their cells go at once, and a packet that finds no room where it goes is lost there (our choice).
    pub solicitation: bool,
    /// How long a packet waits until it is asked for. Unit: time. Default 10 ms (our choice, U30). More than
    /// `reassembly_timeout`.
    pub request_timeout: Span,
    /// How long a packet that was asked for may take to come. Unit: time. Default 1 ms (our choice, U30). Up to 1 s.
    pub reassembly_timeout: Span,
    /// Bytes of data cells' own header. Unit: bytes. Default 4 B (our choice, U22); 0 B: none, as the paper reckons
    /// (Aquila §6).
    pub data_header: Bytes,
}

/// What counts as the depth of a queue of requests (U58).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Depth {
    /// Requests that wait.
    #[default]
    Requests,
    /// Bytes that they ask for, in largest packets (`mtu`): so many of these, or as many bytes of smaller ones.
    Bytes,
}

/// What two hosts that share a NIC have equal shares of (U32).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// A packet each, by turns, however long it is.
    #[default]
    Packets,
    /// Bytes: the one goes first that has had fewer while both wanted the NIC.
    Bytes,
}

/// Which packets keep their order (U24).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Those from one address to one port in one class of service.
    #[default]
    Source,
    /// Those of them whose flows have the same hash of 12 bits.
    Hash,
    /// None: a packet leaves when it is whole, to measure what order costs.
    None,
}

impl Default for Ip {
    fn default() -> Self {
        Self {
            port_rate: Rate::from_gbps(100),
            mtu: Bytes::new(4_160),
            class_of_service: 1,
            classes_of_service: Vec::new(),
            ingress_buffer: None,
            ingress_share: 1.0,
            egress_buffer: None,
            window: None,
            drop_above: 1_024,
            mark_above: 64,
            depth: Depth::default(),
            queue_limit: 2_048,
            weights: [1; 7],
            sharing: Sharing::default(),
            burst: 2,
            early_requests: true,
            order: Order::default(),
            solicitation: true,
            request_timeout: Span::from_us(10_000),
            reassembly_timeout: Span::from_us(1_000),
            data_header: Bytes::new(DATA_HEADER_BYTES.into()),
        }
    }
}

/// The line that buffers are given for (our choice, U25 to U27), and what they are for it.
const PORT: Rate = Rate::from_gbps(100);
const INGRESS_DEFAULT: Bytes = Bytes::new(2 << 20);
const EGRESS_DEFAULT: Bytes = Bytes::new(256 << 10);
const WINDOW_DEFAULT: Bytes = Bytes::new(64 << 10);
/// Smallest and largest ingress buffer (our choice: its places have 20 bits and 256 B each).
const INGRESS: [Bytes; 2] = [Bytes::new(64 << 10), Bytes::new(64 << 20)];
/// Slowest and fastest port (our choice).
const RATES: [Rate; 2] = [Rate::from_gbps(1), Rate::from_gbps(1_000)];
/// Smallest MTU (our choice: what Ethernet carries at the least).
const MTU_MIN: Bytes = Bytes::new(64);
/// Most requests that a queue holds (our choice).
const QUEUE_MAX: u32 = 65_536;
/// Most packets that are asked for at once (our choice).
const BURST_MAX: u32 = 64;
/// Longest time-out (our choice).
const TIMEOUT_MAX: Span = Span::from_us(1_000_000);

impl Ip {
    /// Classes of service by priority.
    #[must_use]
    pub fn by_priority(&self) -> [u8; PRIORITIES as usize] {
        let classes = &self.classes_of_service;
        let last = classes.last().copied().unwrap_or(self.class_of_service);
        std::array::from_fn(|priority| classes.get(priority).copied().unwrap_or(last))
    }

    /// What a port of 100 Gbps has, for `port_rate`.
    fn for_rate(&self, bytes: Bytes) -> Bytes {
        let scaled = u128::from(bytes.get()) * u128::from(self.port_rate.as_bps());
        Bytes::new((scaled / u128::from(PORT.as_bps())) as u64)
    }

    /// Buffer of a TiN for packets that wait to be asked for.
    #[must_use]
    pub fn ingress_buffer(&self) -> Bytes {
        let default = || self.for_rate(INGRESS_DEFAULT).max(INGRESS[0]);
        self.ingress_buffer.unwrap_or_else(default)
    }

    /// Buffer of a port in which packets are put together.
    #[must_use]
    pub fn egress_buffer(&self) -> Bytes {
        self.egress_buffer.unwrap_or_else(|| self.for_rate(EGRESS_DEFAULT).max(self.mtu * 2))
    }

    /// Most bytes that are asked for and not there yet, of a port.
    #[must_use]
    pub fn window(&self) -> Bytes {
        self.window.unwrap_or_else(|| self.for_rate(WINDOW_DEFAULT).max(self.mtu))
    }

    /// The same with nothing left open.
    #[must_use]
    pub(super) fn resolved(&self) -> Self {
        Self {
            ingress_buffer: Some(self.ingress_buffer()),
            egress_buffer: Some(self.egress_buffer()),
            window: Some(self.window()),
            ..self.clone()
        }
    }

    /// Payload of a data cell. Unit: bytes.
    #[must_use]
    pub fn cell_payload(&self) -> u32 {
        u32::from(CELL_MAX - HEADER_BYTES) - self.data_header.get() as u32
    }

    /// Every mistake in it.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |is_bad: bool, key: &str, message: String| {
            if is_bad {
                problems.push(Problem::new(key, message));
            }
        };
        let rate = self.port_rate;
        let message = format!("{rate}; expected {} to {}", RATES[0], RATES[1]);
        refuse(!(RATES[0]..=RATES[1]).contains(&rate), "port_rate", message);
        let header = Bytes::new(DATA_HEADER_BYTES.into());
        let has_header = [Bytes::ZERO, header].contains(&self.data_header);
        let message = format!("{}; expected {header}, or 0 B", self.data_header);
        refuse(!has_header, "data_header", message);
        let payload = if has_header { u64::from(self.cell_payload()) } else { 1 };
        let most =
            Bytes::new(LENGTH_MAX.into()).min(Bytes::new(payload * u64::from(DATA_CELLS_MAX)));
        let message = format!("{}; expected {MTU_MIN} to {most}", self.mtu);
        let is_mtu = (MTU_MIN..=most).contains(&self.mtu);
        refuse(!is_mtu, "mtu", message);
        // The others follow from the rate, if it is one.
        if RATES[0] <= rate && rate <= RATES[1] {
            self.check_buffers(is_mtu, &mut refuse);
        }
        self.check_queues(&mut refuse);
        problems
    }

    fn check_buffers(&self, is_mtu: bool, refuse: &mut impl FnMut(bool, &str, String)) {
        let [ingress, egress, window] =
            [self.ingress_buffer(), self.egress_buffer(), self.window()];
        let message = format!("{ingress}; expected {} to {}", INGRESS[0], INGRESS[1]);
        refuse(!(INGRESS[0]..=INGRESS[1]).contains(&ingress), "ingress_buffer", message);
        let message = format!("{}; expected 0.01 to 100", self.ingress_share);
        refuse(!(0.01..=100.0).contains(&self.ingress_share), "ingress_share", message);
        let least = self.mtu * 2;
        let message = format!(
            "{egress}; expected {least}, two of the largest packets (mtu), to {}",
            INGRESS[1]
        );
        let is_buffer = (least..=INGRESS[1]).contains(&egress);
        refuse(is_mtu && !is_buffer, "egress_buffer", message);
        let message = format!(
            "{window}; expected {}, the largest packet (mtu), to {egress}, what they are put together in (egress_buffer)",
            self.mtu
        );
        let is_window = (self.mtu..=egress).contains(&window);
        refuse(is_mtu && is_buffer && !is_window, "window", message);
    }

    fn check_queues(&self, refuse: &mut impl FnMut(bool, &str, String)) {
        let class = self.class_of_service;
        refuse(class > 7, "class_of_service", format!("{class}; expected 0 to 7"));
        let classes = &self.classes_of_service;
        let is_good =
            classes.len() <= usize::from(PRIORITIES) && classes.iter().all(|&class| class <= 7);
        let message = format!("{classes:?}; expected up to {PRIORITIES} classes, each from 0 to 7");
        refuse(!is_good, "classes_of_service", message);
        let limit = self.queue_limit;
        let message = format!("{limit}; expected 2 to {QUEUE_MAX}");
        refuse(!(2..=QUEUE_MAX).contains(&limit), "queue_limit", message);
        let drop = self.drop_above;
        let message = format!(
            "{}; expected less than drop_above, {drop}: hosts are to slow down before packets are lost (Aquila §3.3)",
            self.mark_above
        );
        refuse(self.mark_above >= drop, "mark_above", message);
        if let Some(class) = self.weights.iter().position(|&weight| weight == 0) {
            let message = "0; expected 1 to 255: a class without a share would never be served";
            refuse(true, &format!("weights[{class}]"), message.into());
        }
        let burst = self.burst;
        let message = format!("{burst}; expected 1 to {BURST_MAX} packets");
        refuse(!(1..=BURST_MAX).contains(&burst), "burst", message);
        let [come, ask] = [self.reassembly_timeout, self.request_timeout];
        let message = format!("{come}; expected, for example, \"1 ms\", up to {TIMEOUT_MAX}");
        refuse(come == Span::ZERO || come > TIMEOUT_MAX, "reassembly_timeout", message);
        let message = format!(
            "{ask}; expected more than reassembly_timeout, {come}, up to {TIMEOUT_MAX}: what was asked for is to be \
             there when it is looked for"
        );
        refuse(ask <= come || ask > TIMEOUT_MAX, "request_timeout", message);
    }
}
