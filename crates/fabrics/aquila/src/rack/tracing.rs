//! What a run tells of traced packets (M901 to M904): records of all TiNs, which a collector hears at the end.
//!
//! Times in records are true: the clocks of a run's TiNs are right.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::cells::trace::{RECORD_BYTES, Record};
use crate::switch::{Endpoints, Switches};
use crate::tables::Tables;
use crate::topology::Topology;
use crate::trace::{Collector, Reporter, Sampler, Settings};

/// Traced packets of a Clique, or of a part.
#[derive(Clone, Debug)]
pub(super) struct Tracing {
    settings: Settings,
    /// By TiN.
    samplers: Vec<Sampler>,
    reporters: Vec<Reporter>,
    /// What TiNs have sent, as bytes.
    sent: Vec<u8>,
    /// Tables that were installed, the first ones first.
    installed: Vec<Arc<Tables>>,
    packets: u64,
}

impl Tracing {
    pub(super) fn new(settings: &Settings, tins: u16, tables: Arc<Tables>, seed: u64) -> Self {
        Self {
            samplers: (0..tins).map(|tin| Sampler::new(settings.one_in, tin, seed)).collect(),
            reporters: (0..tins)
                .map(|tin| Reporter::new(tin, settings.records_per_second))
                .collect(),
            settings: settings.clone(),
            sent: Vec::new(),
            installed: vec![tables],
            packets: 0,
        }
    }

    /// Whether the next packet of a TiN is traced.
    pub(super) fn takes(&mut self, tin: u16) -> bool {
        let takes = self.samplers[usize::from(tin)].takes();
        self.packets += u64::from(takes);
        takes
    }

    /// Takes what switches have seen.
    pub(super) fn hear<E: Endpoints>(&mut self, switches: &mut Switches<E>) {
        for seen in switches.seen() {
            let full = self.reporters[usize::from(seen.tin)].report(&seen, seen.tick);
            self.sent.extend(full.into_iter().flatten());
        }
    }

    /// Other tables are installed.
    pub(super) fn install(&mut self, tables: Arc<Tables>) {
        self.installed.push(tables);
    }

    /// Adds what another part has.
    pub(super) fn add(&mut self, other: &Self) {
        self.sent.extend(other.all());
        self.packets += other.packets;
    }

    /// All records, full datagrams and others.
    fn all(&self) -> Vec<u8> {
        let rest = self.reporters.iter().flat_map(|reporter| reporter.clone().flush());
        self.sent.iter().copied().chain(rest.flatten()).collect()
    }

    /// What there is to say at the end; nothing, if nothing is to be traced.
    pub(super) fn say(&self, topology: &Topology, details: &mut Map<String, Value>) {
        if self.settings.one_in == 0 {
            return;
        }
        let all = self.all();
        let mut records: Vec<(u64, u16, &[u8])> = all
            .chunks(RECORD_BYTES)
            .filter_map(|bytes| {
                Record::decode(bytes).ok().map(|record| (record.ticks, record.tin, bytes))
            })
            .collect();
        // By time, as if each had come at once.
        records.sort_by_key(|&(ticks, tin, _)| (ticks, tin));
        let mut installed = self.installed.iter();
        let Some(first) = installed.next() else { return };
        let mut collector = Collector::new(topology, Arc::clone(first));
        installed.for_each(|tables| collector.install(Arc::clone(tables)));
        let mut journeys = Vec::new();
        for (.., bytes) in records {
            collector.hear(bytes, &mut journeys);
            journeys.clear();
        }
        collector.finish(&mut journeys);
        let (heard, suspects) = (collector.heard(), collector.suspects());
        let mut say = |key: &str, value: Value| details.insert(key.into(), value);
        say("traced_packets", self.packets.into());
        say("traced_cells", heard.journeys.into());
        say("trace_records", heard.records.into());
        say("trace_suspects", suspects.len().into());
        if !suspects.is_empty() {
            let names: Vec<_> = suspects.iter().map(ToString::to_string).collect();
            say("trace_suspected", names.join("; ").into());
        }
    }
}
