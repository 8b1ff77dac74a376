//! Tracing with the real switches and the real handshake.

use super::*;
use crate::trace::measure::{Load, Planted, Run, run, run_reads};

/// Packets between random TiNs of a Clique, a tenth of a microsecond apart.
fn sent(
    clique: &Clique,
    planted: Planted,
    packets: u64,
    length: u16,
    is_traced: bool,
    seed: u64,
) -> Run {
    let load = Load { packets, length, gap: Span::from_ns(100), is_traced, pod: None };
    let settings = Settings { records_per_second: 100_000_000, ..Settings::default() };
    run(&clique.topology, &clique.tables, planted, (&load, &settings), seed)
}

/// I93: one record a switch that a traced cell crosses, and none changes what happens.
#[test]
fn i93_tracing_records_every_crossing_and_changes_nothing() {
    let clique = Clique::new(&Shape::MINI);
    let sent = |is_traced| sent(&clique, Planted::Nothing, 300, 4_160, is_traced, 1);
    let (traced, plain) = (sent(true), sent(false));
    let (counts, heard) = (traced.switches.counts(), traced.collector.heard());
    assert_eq!(plain.collector.heard().records, 0);
    assert_eq!(counts, plain.switches.counts());
    assert_eq!(traced.switches.endpoints().packets(), plain.switches.endpoints().packets());
    // Every cell's way is whole, and leads from its source to its destination.
    assert_eq!((heard.records, heard.lost, heard.refused), (counts.hops, 0, 0));
    assert_eq!((heard.journeys, heard.arrived), (counts.delivered, counts.delivered));
    for journey in &traced.journeys {
        let mut tins = journey.steps.iter().map(|step| step.tin);
        let ends = [journey.from, journey.to].map(|end| clique.shape().tin(end.pod(), end.tin()));
        assert_eq!((tins.clone().next(), tins.next_back()), (Some(ends[0]), Some(ends[1])));
        let hops: Vec<u8> = journey.steps.iter().map(|step| 16 - step.hops).collect();
        assert_eq!(hops, (1..=hops.len() as u8).collect::<Vec<_>>(), "{journey}");
    }
    assert_eq!(traced.collector.suspects(), []);
}

/// M904: the cells of a packet, put together: a request, an answer, and all of its data, in order.
#[test]
fn m904_the_cells_of_packets_are_put_together() {
    let clique = Clique::new(&Shape::TINY);
    let packets = stitch(&sent(&clique, Planted::Nothing, 300, 1_500, true, 2).journeys);
    assert_eq!(packets.len(), 300);
    for packet in &packets {
        let (request, answer) = (packet.request.as_ref().unwrap(), packet.answer.as_ref().unwrap());
        assert_eq!((request.from, request.to), (answer.to, answer.from));
        // 148 bytes a cell.
        let indices: Vec<u8> = packet.data.iter().map(|&(index, _)| index).collect();
        assert_eq!(indices, (0..11).collect::<Vec<_>>());
        let ends = (request.from, request.to);
        assert!(packet.data.iter().all(|(_, cell)| (cell.from, cell.to) == ends));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// X23: with switches and handshake, a link that loses cells silently, or an entry that leads astray, is named.
    #[test]
    fn slow_x23_what_is_planted_under_real_traffic_is_named(seed: u64, is_link: bool) {
        let clique = Clique::new(&Shape::TINY);
        let shape = *clique.shape();
        let mut stream = Stream::new(seed, "test/plant", 0);
        let links = clique.links();
        let (from, _) = links[stream.below(links.len() as u64) as usize];
        // Where cells are injected, to another pod: by whatever port should not.
        let (tin, port) = (from.tin, shape.external_ports());
        let pods = u64::from(shape.pods);
        let pod = (shape.split(tin).0 + 1 + stream.below(pods - 1) as u16) % shape.pods;
        let entry = clique.tables.entry(clique.tables.block(tin, port, 0), pod);
        let row = clique.tables.by_index(entry);
        let right = row.minimal_ports() | row.other_ports();
        let wrong = (0..shape.external_ports()).find(|&port| right >> port & 1 == 0);
        let (planted, culprit) = match (is_link, wrong) {
            (false, Some(wrong)) => {
                let row = Row { minimal: [wrong; 8], ..Row::EMPTY };
                (
                    Planted::Entry((tin, port, 0, pod), row),
                    Culprit::Entry { tin, port, rvc: 0, component: pod },
                )
            }
            _ => (
                Planted::Loss(from, 0.3),
                Culprit::Link { tin: from.tin, port: from.port },
            ),
        };
        let run = sent(&clique, planted, 2_000, 1_500, true, seed);
        run.switches.check_home().map_err(TestCaseError::fail)?;
        let is_lossy = run.switches.counts().lost_silently > 0;
        prop_assert_eq!(is_lossy, matches!(planted, Planted::Loss(..)));
        let culprits: Vec<_> =
            run.collector.suspects().iter().map(|suspect| suspect.culprit).collect();
        prop_assert_eq!(culprits, [culprit]);
    }
}

/// M904: cells of the same ends, one soon after the other, have the same pointers again and again, and their records come in
/// whatever order TiNs send them in: none is taken for another, and of a sound Clique nothing is named.
#[test]
fn m904_cells_with_the_same_pointers_are_told_apart() {
    let clique = Clique::new(&Shape::TINY);
    let settings = Settings { records_per_second: 100_000_000, ..Settings::default() };
    for packets in [300, 30_000] {
        let gap = Span::from_ns(100);
        let load = Load { packets, length: 1_024, gap, is_traced: true, pod: Some(1) };
        let ends = (&load, &settings);
        let run = run(&clique.topology, &clique.tables, Planted::Nothing, ends, 1);
        let (counts, heard) = (run.switches.counts(), run.collector.heard());
        assert_eq!((heard.records, heard.late, heard.lost), (counts.hops, 0, 0));
        assert_eq!((heard.journeys, heard.arrived), (counts.delivered, counts.delivered));
        let begin = |journey: &&Journey| journey.steps[0].hops == 15;
        assert_eq!(run.journeys.iter().filter(begin).count() as u64, counts.delivered);
        let mut keys: Vec<_> = run
            .journeys
            .iter()
            .map(|journey| (journey.from, journey.to, journey.kind as u8, journey.word))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len() < run.journeys.len(), packets > 300, "{} keys", keys.len());
        assert_eq!(run.collector.suspects(), []);
    }
}

/// X23: of the full Clique, by the packets that the criterion allows: 10,000.
#[test]
fn slow_x23_a_link_of_the_full_clique_is_named() {
    let clique = Clique::new(&Shape::FULL);
    let (from, _) = clique.links()[15_000];
    let run = sent(&clique, Planted::Loss(from, 0.2), 10_000, 1_500, true, 1);
    let culprits: Vec<_> = run.collector.suspects().iter().map(|suspect| suspect.culprit).collect();
    assert_eq!(culprits, [Culprit::Link { tin: from.tin, port: from.port }]);
}

/// X23, M501: reads of remote memory carry the bit in their requests and in all that is answered, and so a link that loses
/// cells silently is named; of a sound Clique nothing is.
#[test]
fn x23_traced_reads_of_memory_name_a_link() {
    let clique = Clique::new(&Shape::TINY);
    let (from, _) = clique.links()[40];
    let load =
        Load { packets: 3_000, length: 512, gap: Span::from_ns(100), is_traced: true, pod: None };
    let settings = Settings { records_per_second: 100_000_000, ..Settings::default() };
    for (planted, culprit) in [
        (Planted::Nothing, None),
        (Planted::Loss(from, 0.2), Some(Culprit::Link { tin: from.tin, port: from.port })),
    ] {
        let run = run_reads(&clique.topology, &clique.tables, planted, (&load, &settings), 1);
        let (counts, heard) = (run.switches.counts(), run.collector.heard());
        assert_eq!((heard.records, heard.lost, heard.refused), (counts.hops, 0, 0));
        assert_eq!((heard.journeys, heard.arrived), (counts.injected, counts.delivered));
        assert_eq!(counts.lost_silently > 0, culprit.is_some());
        let of = |kind| run.journeys.iter().filter(|journey| journey.kind == kind).count();
        // Four answers of 128 bytes to each request that comes.
        let asked = run.switches.endpoints().counts().requests;
        assert_eq!(of(CellKind::Resp) as u64, 4 * asked);
        assert!(of(CellKind::Req) >= 3_000);
        let suspects = run.collector.suspects();
        let found: Vec<_> = suspects.iter().map(|suspect| suspect.culprit).collect();
        assert_eq!(found, culprit.into_iter().collect::<Vec<_>>());
    }
}
