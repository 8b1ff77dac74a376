//! How much headline figures depend on what the paper leaves open: choices of the fabric's README, *Where the paper is
//! silent*.

use aquila::config::{Ip, Order};
use aquila::link::classes::Mode;
use aquila::raw::Pattern;
use aquila::switch::settings::Settings;
use aquila::topology::placement::{Placement, places};
use aquila::topology::{Fibres, Shape};
use kernel::{Bytes, Rate};
use report::Unit;
use report::page::Block;
use serde_json::{Value, json};

use super::bursts::messages;
use super::clique::{BULK, Clique, HOSTS};
use super::lookups::{self, testbed};
use super::throughput::{Offered, TRAIN, carried};
use crate::drawing;
use crate::spread::{Pulse, spread};
use crate::{Failure, Watch};

/// A choice, another way.
struct Variant {
    id: &'static str,
    what: &'static str,
    change: fn(&mut Settings, &mut Ip),
    /// Fibres, and whether hosts are at the first TiNs.
    fibres: Fibres,
    placement: Placement,
}

const fn variant(
    id: &'static str,
    what: &'static str,
    change: fn(&mut Settings, &mut Ip),
) -> Variant {
    Variant { id, what, change, fibres: Fibres::Grid, placement: Placement::Even }
}

/// All of them; the first is ours.
const VARIANTS: [Variant; 28] = [
    variant("", "ours", |_, _| {}),
    variant("U02", "crossbar as fast as a port", |s, _| s.switch.speedup = 1.0),
    variant("U02", "crossbar 1.28 times as fast", |s, _| s.switch.speedup = 1.28),
    variant("U03", "buffers of channels twice as deep", |s, _| {
        s.link.local_buffer = s.link.local_buffer * 2;
        s.link.global_buffer = s.link.global_buffer * 2;
    }),
    variant("U04", "output queues of 4 cells", |s, _| s.switch.output_queue = Bytes::new(640)),
    variant("U04, U15", "output queues of 4 cells, bias of 1", |s, _| {
        s.switch.output_queue = Bytes::new(640);
        s.switch.detour_bias = Bytes::new(160);
    }),
    variant("U06", "fibres of 23.58 Gbps", |s, _| {
        s.link.global_rate = Rate::from_bps(23_580_000_000);
    }),
    variant("U08", "terminal ports of 25 Gbps", |s, _| {
        s.switch.terminal_rate = Rate::from_gbps(25);
    }),
    Variant { fibres: Fibres::Metres(30), ..variant("U11", "all fibres of 30 m", |_, _| {}) },
    Variant { fibres: Fibres::Metres(100), ..variant("U11", "all fibres of 100 m", |_, _| {}) },
    variant("U15", "weight of longer ways 1", |s, _| s.switch.detour_weight = 1.0),
    variant("U15", "weight of longer ways 4", |s, _| s.switch.detour_weight = 4.0),
    variant("U15", "bias of 1 cell", |s, _| s.switch.detour_bias = Bytes::new(160)),
    variant("U15", "bias of 4 cells", |s, _| s.switch.detour_bias = Bytes::new(640)),
    variant("U18", "requests by a hash over all ways", |s, _| {
        s.classes[0].mode = Mode::Deterministic;
        s.classes[5].mode = Mode::Deterministic;
    }),
    variant("U22", "no header of data cells", |_, ip| ip.data_header = Bytes::ZERO),
    variant("U24", "order by a hash of flows", |_, ip| ip.order = Order::Hash),
    variant("U25", "ingress buffer of 512 KiB", |_, ip| {
        ip.ingress_buffer = Some(Bytes::new(512 << 10));
    }),
    variant("U26", "egress buffer of 128 KiB", |_, ip| {
        ip.egress_buffer = Some(Bytes::new(128 << 10));
    }),
    variant("U27", "window of 32 KiB", |_, ip| ip.window = Some(Bytes::new(32 << 10))),
    variant("U27", "window of 256 KiB", |_, ip| ip.window = Some(Bytes::new(256 << 10))),
    variant("U28", "a bucket of one packet", |_, ip| ip.burst = 1),
    variant("U29", "drop above 256, mark above 16", |_, ip| {
        ip.drop_above = 256;
        ip.mark_above = 16;
    }),
    variant("U56", "requests once packets are whole", |_, ip| ip.early_requests = false),
    variant("U16", "ways drawn once", |s, _| s.switch.draw_again = kernel::Span::ZERO),
    variant("U07", "8 B announce a cell", |s, _| s.link.start_of_cell = Bytes::new(8)),
    variant("U01", "one iteration of a match", |s, _| s.switch.iterations = 1),
    Variant {
        placement: Placement::Packed,
        ..variant("U43", "hosts at the first TiNs", |_, _| {})
    },
];

/// What a choice gives: round trips at 70 % and 95 % of the line (99 %), what is carried of 47.5 Gbps and of uniform
/// cells at 100 Gbps a TiN, and round trips of messages of 2 MB (99 %).
fn measure(
    variant: &Variant,
    cliques: &[Clique],
    pulse: &mut Pulse<'_>,
) -> Result<Vec<f64>, Failure> {
    let place = match variant.fibres {
        Fibres::Grid => 0,
        Fibres::Metres(30) => 1,
        Fibres::Metres(_) => 2,
    };
    let clique = &cliques[place];
    let hosts: Vec<u16> = match variant.placement {
        Placement::Even => testbed(clique),
        packed => places(clique.shape(), 2, HOSTS, packed)
            .into_iter()
            .map(|place| clique.host(place))
            .collect(),
    };
    let (mut settings, mut ip) = (Settings::default(), Ip::default());
    (variant.change)(&mut settings, &mut ip);
    let mut at = |load: u64| {
        let (settings, ip, classes) = (settings.clone(), ip.clone(), [BULK; 2]);
        let case = lookups::Case { settings, ip, load, background: 0, classes, micros: 150 };
        lookups::carry(clique, &hosts, &case, 1, pulse)
    };
    let (seventy, near) = (at(35_000)?, at(47_500)?);
    let offered = Offered { pattern: Pattern::Uniform, gbps: 100, cells: TRAIN };
    let uniform = carried(clique, &settings, offered, 60, 1, pulse)?;
    let burst = messages(clique, (&settings, &ip), (2_000, 10), 1, pulse)?;
    Ok(vec![seventy.p99, near.p99, near.achieved, uniform, burst.p99])
}

/// A row for each choice.
pub(super) fn table(watch: &mut Watch<'_>) -> Result<Block, Failure> {
    let fibres = [Fibres::Grid, Fibres::Metres(30), Fibres::Metres(100)];
    let cliques = fibres.map(|fibres| Clique::new(&Shape::FULL, fibres));
    let found = spread(&VARIANTS, watch, |variant, pulse| measure(variant, &cliques, pulse))?;
    let row = |(variant, numbers): (&Variant, &Vec<f64>)| -> Vec<Value> {
        let names = [json!(variant.id), json!(variant.what)];
        names.into_iter().chain(numbers.iter().map(|&number| json!(number))).collect()
    };
    let columns = [
        ("id", "Choice", Unit::Count),
        ("what", "", Unit::Count),
        ("seventy", "Lookups at 35 Gbps: 99 %", Unit::Seconds),
        ("near", "at 47.5 Gbps: 99 %", Unit::Seconds),
        ("achieved", "carried of them", Unit::Share),
        ("uniform", "Uniform cells, of 100 Gbps a TiN", Unit::BitsPerSecond),
        ("burst", "Messages of 2 MB: 99 %", Unit::Seconds),
    ];
    let rows = VARIANTS.iter().zip(&found).map(row).collect();
    Ok(drawing::table("What the paper leaves open (one seed)", &columns, rows))
}

#[cfg(test)]
mod tests {
    use super::super::headline::CHOICES;
    use super::*;

    /// Choices, by their numbers in Aquila's README, whose sensitivity is to be shown with headline figures; and why
    /// some are in neither table.
    const MARKED: [(&str, &str); 22] = [
        ("U02", ""),
        ("U03", ""),
        ("U04", ""),
        ("U06", ""),
        ("U08", ""),
        ("U11", ""),
        ("U15", ""),
        ("U18", ""),
        ("U21", "matters where links fail alone"),
        ("U22", ""),
        ("U24", ""),
        ("U25", ""),
        ("U26", ""),
        ("U27", ""),
        ("U29", ""),
        ("U31", "packets of headline figures are values, and fit"),
        ("U33", ""),
        ("U34", ""),
        ("U38", "headline figures have no hosts"),
        ("U39", "headline figures have no hosts"),
        ("U42", "another network: `fig9 --full` has two others"),
        ("U43", ""),
    ];

    #[test]
    fn marked_choices_are_shown_another_way_or_have_a_reason() {
        let ids = VARIANTS.iter().map(|variant| variant.id).chain(CHOICES.map(|choice| choice.0));
        let shown: Vec<&str> = ids.flat_map(|ids| ids.split(", ")).collect();
        for (id, reason) in MARKED {
            assert_eq!(shown.contains(&id), reason.is_empty(), "{id}: {reason}");
        }
    }
}
