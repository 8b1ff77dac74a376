//! What the hosts count.

use kernel::Histogram;
use serde_json::{Map, Value, json};

use crate::wire::CONTROL_BYTES;

/// Counts over all hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Bursts that were formed, and packets in them.
    pub(crate) bursts: u64,
    pub(crate) packets: u64,
    /// Bursts that went before their grant.
    pub(crate) unsolicited: u64,
    /// Bursts that went again, counted and not counted by the switch.
    pub(crate) again: u64,
    pub(crate) again_uncounted: u64,
    /// Reservations sent, and those of them that were retransmitted.
    pub(crate) reservations: u64,
    pub(crate) repeats: u64,
    /// Bursts that were dropped, as no reservation of them was answered.
    pub(crate) unanswered: u64,
    /// Grants that came, and those of them that nobody waited for.
    pub(crate) grants: u64,
    pub(crate) grants_late: u64,
    /// Packets that came twice.
    pub(crate) duplicates: u64,
    /// Packets that went for nobody: their flow was over.
    pub(crate) orphans: u64,
    /// Slots given back, and those of them that grants showed to have leaked.
    pub(crate) given_back: u64,
    pub(crate) leaked: u64,
    /// From a thread's reservation to its grant, in picoseconds.
    pub(crate) exchange: Histogram,
    /// Slots chosen, in counts of the switch.
    pub(crate) chosen: Histogram,
}

impl Counts {
    /// Adds those of other hosts.
    pub(crate) fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.bursts, other.bursts),
            (&mut self.packets, other.packets),
            (&mut self.unsolicited, other.unsolicited),
            (&mut self.again, other.again),
            (&mut self.again_uncounted, other.again_uncounted),
            (&mut self.reservations, other.reservations),
            (&mut self.repeats, other.repeats),
            (&mut self.unanswered, other.unanswered),
            (&mut self.grants, other.grants),
            (&mut self.grants_late, other.grants_late),
            (&mut self.duplicates, other.duplicates),
            (&mut self.orphans, other.orphans),
            (&mut self.given_back, other.given_back),
            (&mut self.leaked, other.leaked),
        ];
        sums.into_iter().for_each(|(sum, count)| *sum += count);
        self.exchange.merge(&other.exchange);
        self.chosen.merge(&other.chosen);
    }

    /// The summary's keys.
    pub(crate) fn details(&self) -> Map<String, Value> {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
        for (key, count) in [
            ("bursts", self.bursts),
            ("burst_packets", self.packets),
            ("bursts_unsolicited", self.unsolicited),
            ("bursts_sent_again", self.again),
            ("bursts_sent_again_uncounted", self.again_uncounted),
            ("bursts_unanswered", self.unanswered),
            ("reservations", self.reservations),
            ("reservations_repeated", self.repeats),
            ("grants_received", self.grants),
            ("grants_late", self.grants_late),
            ("duplicates", self.duplicates),
            ("orphans", self.orphans),
            ("slots_offered_back", self.given_back),
            ("slots_leaked", self.leaked),
            ("control_bytes", (self.reservations + self.grants) * CONTROL_BYTES as u64),
        ] {
            put(key, json!(count));
        }
        let seconds = |ps: Option<u64>| json!(ps.unwrap_or(0) as f64 / 1e12);
        let exchange = &self.exchange;
        put("exchange_min_seconds", seconds(exchange.min()));
        put("exchange_p50_seconds", seconds(exchange.quantile(0.5)));
        put("exchange_p99_seconds", seconds(exchange.quantile(0.99)));
        put("exchange_max_seconds", seconds(exchange.max()));
        for (key, share) in [("slot_p50", 0.5), ("slot_p99", 0.99)] {
            put(key, json!(self.chosen.quantile(share).unwrap_or(0)));
        }
        put("slot_max", json!(self.chosen.max().unwrap_or(0)));
        map
    }
}
