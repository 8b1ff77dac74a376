//! What a run tells of traced packets, or operations on remote memory (M901 to M904): records of all TiNs, which a
//! collector hears at the end.
//!
//! Times in records are true: the clocks of a run's TiNs are right.

use std::sync::Arc;

use kernel::Time;
use serde_json::{Map, Value};

use crate::cells::trace::{RECORD_BYTES, Record};
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Switches};
use crate::tables::Tables;
use crate::tables::journal::Journal;
use crate::topology::Topology;
use crate::trace::{Collector, Reporter, Sampler, Settings};

/// What is traced of a Clique, or of a part.
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
    /// What a controller writes besides.
    journal: Option<Arc<Journal>>,
    /// Packets, or operations.
    taken: u64,
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
            journal: None,
            taken: 0,
        }
    }

    /// A controller writes these entries in the run.
    pub(super) fn follow(&mut self, journal: Option<Arc<Journal>>) {
        self.journal = journal;
    }

    /// Whether the next packet or operation of a TiN is traced.
    pub(super) fn takes(&mut self, tin: u16) -> bool {
        let takes = self.samplers[usize::from(tin)].takes();
        self.taken += u64::from(takes);
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
        self.taken += other.taken;
    }

    /// All records, full datagrams and others.
    fn all(&self) -> Vec<u8> {
        let rest = self.reporters.iter().flat_map(|reporter| reporter.clone().flush());
        self.sent.iter().copied().chain(rest.flatten()).collect()
    }

    /// What there is to say when a run has come to `now`; nothing, if nothing is to be traced. `taken` is the key of how many
    /// were.
    pub(super) fn say(
        &self,
        taken: &str,
        (topology, now): (&Topology, Time),
        details: &mut Map<String, Value>,
    ) {
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
        if let Some(journal) = &self.journal {
            collector.allow(journal);
        }
        let mut journeys = Vec::new();
        for (.., bytes) in records {
            collector.hear(bytes, &mut journeys);
            journeys.clear();
        }
        let end = Some(now.as_ps() / TICK.as_ps()).filter(|_| now < Time::NEVER);
        collector.finish(end, &mut journeys);
        let (heard, suspects) = (collector.heard(), collector.suspects());
        let mut say = |key: &str, value: Value| details.insert(key.into(), value);
        say(taken, self.taken.into());
        say("traced_cells", heard.journeys.into());
        say("trace_records", heard.records.into());
        say("trace_suspects", suspects.len().into());
        if !suspects.is_empty() {
            let names: Vec<_> = suspects.iter().map(ToString::to_string).collect();
            say("trace_suspected", names.join("; ").into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rma::open_loop::{Issue, OpenLoop};
    use crate::rma::{Access, Kind};
    use crate::switch::cell::Watch;
    use crate::switch::settings::Settings as Chip;
    use crate::tables::{Condition, compute::compute};
    use crate::topology::{Fibres, Shape};
    use crate::turns::TurnTable;
    use kernel::Span;

    /// X23: what a run says of a link that loses a fifth of its cells: it is named, from reads of remote memory of which
    /// one in two is traced; also if the run ends with cells under way.
    #[test]
    fn x23_a_run_names_a_link_from_reads_of_memory() {
        let topology = Topology::new(&Shape::TINY, Fibres::Metres(30)).unwrap();
        let tables = compute(&topology, &TurnTable::P1, &Condition::healthy(&topology));
        let (tables, tins) = (Arc::new(tables), topology.shape().tins());
        let own: Vec<u16> = (0..tins).collect();
        let ends = OpenLoop::new(topology.shape(), &crate::config::Rma::default(), &own, 16, 1);
        let chip = Arc::new(Chip::default());
        let mut switches = Switches::new(&topology, Arc::clone(&tables), chip, &own, 1, ends);
        let link = topology.links()[20].low;
        switches.set_silent_loss(link.tin, link.port, 0.2, 1);
        let settings = Settings { one_in: 2, records_per_second: 100_000_000 };
        let mut tracing = Tracing::new(&settings, tins, tables, 1);
        let mut now = Time::ZERO;
        for read in 0..4_000u64 {
            let at = Time::ZERO + Span::from_ns(100 * read);
            let (from, to) = ((read % 18) as u16, (read * 7 % 18 + 5) as u16 % tins);
            switches.run(at);
            let watch = Watch::new(tracing.takes(from), false);
            switches.act(from, at, |ends, wishes| {
                let access = ends.access((to, 1), Kind::Read, 512);
                let access = Access { watch, ..access };
                ends.ask(Issue { from: (from, 0), access, at, end: None }, wishes);
            });
            tracing.hear(&mut switches);
            now = at;
        }
        let said = |tracing: &Tracing, now: Time| {
            let mut details = Map::new();
            tracing.say("traced_operations", (&topology, now), &mut details);
            details
        };
        let cut = said(&tracing, now);
        switches.run(Time::NEVER);
        tracing.hear(&mut switches);
        let link = format!("link out of TiN {}, port {}:", link.tin, link.port);
        for details in [cut, said(&tracing, Time::NEVER)] {
            assert!((1_800..2_200).contains(&details["traced_operations"].as_u64().unwrap()));
            assert_eq!(details["trace_suspects"], 1, "{details:?}");
            let named = details["trace_suspected"].as_str().unwrap();
            assert!(named.starts_with(&link), "{named} for {link}");
        }
    }
}
