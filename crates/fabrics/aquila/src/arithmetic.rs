//! The paper's own numbers, worked out again from what the model is made of (the ids A11 to A45 of the README).

use kernel::{Bytes, Rate, Span};

use crate::address::{Address, ENDPOINTS_MAX, Endpoint, PODS_MAX, TINS_MAX};
use crate::cells::ip::{DATA_HEADER_BYTES, wire_bytes};
use crate::config::Config;
use crate::link::header::{CELL_MAX, CELL_MIN, HEADER_BYTES};
use crate::link::{classes, credits};
use crate::tables::tests::full;
use crate::tables::{NONE, ROUTING_VCS, Tables, next_rvc};
use crate::topology::{FIBRE_MAX, LOCAL_LENGTH, Length, PortKind, Shape, Topology};

/// The rate of cells.
fn lane() -> Rate {
    Config::default().link.local_rate
}

/// How long a cell is on the wire.
fn cell(bytes: u8) -> Span {
    lane().send_time(Bytes::new(bytes.into()))
}

/// One way of the longest fibre.
fn fibre() -> Span {
    Length::from_cm(FIBRE_MAX * 100).delay()
}

/// Fall-through of a hop without error correction, and of the core alone (§3.2, §3.1).
const HOP: Span = Span::from_ns(40);
const CORE: Span = Span::from_ns(20);

#[test]
fn a02_a03_a39_ports_and_channels() {
    let full = Shape::FULL;
    assert_eq!((full.external_ports(), full.ports()), (32, 50));
    assert_eq!(classes::CLASSES * ROUTING_VCS + 2, classes::VCS);
}

#[test]
fn a11_a12_the_largest_cell_takes_51_2_ns() {
    assert_eq!(cell(CELL_MAX), Span::from_ps(51_200));
    assert_eq!(Rate::from_gbps(28).send_time(Bytes::new(160)), Span::from_ps(45_715));
    // With line code and error correction 25 Gbps need 27.3 of the lane's 28.
    let coded = lane().as_bps() * 66 / 64 * 106 / 100;
    assert_eq!(coded, 27_328_125_000);
    assert!(coded < Rate::from_gbps(28).as_bps());
}

#[test]
fn a13_a14_a17_a18_what_a_pair_of_pods_has_of_what_a_tin_injects() {
    let pair = |shape: Shape| lane() * u64::from(shape.links_per_pair());
    assert_eq!(pair(Shape::FULL), Rate::from_gbps(50));
    assert_eq!(pair(Shape::FULL).as_bps() * 4, Rate::from_gbps(200).as_bps());
    assert_eq!(pair(Shape::HALF), Rate::from_gbps(100), "what a TiN's hosts inject");
    for shape in [Shape::MINI, Shape::TINY] {
        assert_eq!(pair(shape), pair(Shape::FULL), "the profiles keep the ratio");
    }
    let global = lane() * u64::from(Shape::FULL.global_ports);
    assert_eq!(global, Rate::from_gbps(200));
    // Two hosts share 100 Gbps.
    assert_eq!(100 / u64::from(Config::default().hosts_per_tin), 50);
}

#[test]
fn a15_uniform_traffic_fits_and_the_worst_has_half() {
    // Of 575 other TiNs 564 are in other pods: at 200 Gbps a TiN, that is 98.1 % of its global ports.
    let others = f64::from(Shape::FULL.tins() - 1);
    let remote = f64::from(Shape::FULL.tins() - Shape::FULL.tins_per_pod) / others;
    assert!((remote * 100.0 - 98.1).abs() < 0.05, "{remote}");
    // Each cell over two links between pods: half of what the ports carry.
    let ports = u64::from(Shape::FULL.tins_per_pod) * u64::from(Shape::FULL.global_ports);
    let each = lane() * ports;
    assert_eq!(each.as_bps() / 2, Rate::from_gbps(1_200).as_bps());
    assert_eq!(each.as_bps() / 2 / 12, Rate::from_gbps(100).as_bps());
}

/// Local hops of cells from a place to a TiN on shortest ways, each slot as likely as any other.
fn local_hops(
    (topology, tables): (&Topology, &Tables),
    (tin, port, rvc): (u16, u8, u8),
    to: u16,
) -> f64 {
    if tin == to {
        return 0.0;
    }
    let (pod, place) = topology.shape().split(to);
    let row = tables.row(tin, port, rvc, Address::new(pod, place, Endpoint::ANY));
    let hops = row.minimal.iter().map(|&output| {
        assert_ne!(output, NONE);
        let far = topology.far(tin, output).unwrap();
        let rvc = next_rvc(topology.kind(port), topology.kind(output), rvc);
        let is_local = topology.kind(output) == PortKind::Local;
        let onward = local_hops((topology, tables), (far.tin, far.port, rvc), to);
        f64::from(u8::from(is_local)) + onward
    });
    hops.sum::<f64>() / 8.0
}

#[test]
fn slow_a16_cells_make_1_736_local_hops_on_shortest_ways() {
    let (topology, tables) = full();
    let terminal = Shape::FULL.external_ports();
    let pairs = || (0..12u16).flat_map(|from| (0..576u16).map(move |to| (from, to)));
    let hops: f64 =
        pairs().map(|(from, to)| local_hops((topology, tables), (from, terminal, 0), to)).sum();
    let mean = hops / (12.0 * 575.0);
    assert!((mean - 1.736).abs() < 5e-4, "{mean}");
    // At 100 Gbps a TiN, of 24 ports of 25 Gbps.
    let share = mean * 100.0 / (24.0 * 25.0);
    assert!((share - 0.29).abs() < 0.005, "{share}");
}

#[test]
fn a21_864_tib_are_768_gib_a_host() {
    assert_eq!(864 * 1024 / Config::default().plan().unwrap().config.nodes, 768);
}

#[test]
fn a23_40_ethernet_ports_are_over_with_512_uplinks_alone() {
    let over = |uplinks: u16| Shape::FULL.tins() - 24 - uplinks;
    assert_eq!((over(512), over(256)), (40, 296));
}

#[test]
fn a24_a25_a26_a29_a30_sizes_of_cells() {
    assert_eq!(u16::from(HEADER_BYTES) * 100, u16::from(CELL_MAX) * 5, "5 % of the wire");
    let data = f64::from(CELL_MAX - HEADER_BYTES - DATA_HEADER_BYTES);
    assert!((f64::from(CELL_MAX) - data) / f64::from(CELL_MAX) * 100.0 - 7.5 < 1e-9);
    assert_eq!(1_024 / u16::from(CELL_MIN), 64, "a packet of 1 KB against its request");
    let request = HEADER_BYTES as usize + crate::cells::rma::REQUEST_BYTES;
    assert_eq!(request, 3 * usize::from(CELL_MIN));
    assert_eq!((PODS_MAX * TINS_MAX).ilog2() + u32::from(ENDPOINTS_MAX).ilog2(), 16);
}

#[test]
fn a24_x16_bytes_on_the_wire() {
    for (packet, plain, with_header) in
        [(1_024, 1_080, 1_112), (4_096, 4_312, 4_432), (9_000, 9_480, 9_736)]
    {
        assert_eq!(wire_bytes(packet, 0), Bytes::new(plain), "{packet} B");
        assert_eq!(wire_bytes(packet, DATA_HEADER_BYTES), Bytes::new(with_header), "{packet} B");
    }
}

#[test]
fn a31_a32_times_are_whole_ticks_of_the_core() {
    let tick = Span::from_ps(2_500);
    let fec = Config::default().link.fec_delay;
    let ticks = [CORE, fec, HOP].map(|span| span.as_ps() / tick.as_ps());
    assert_eq!(ticks, [8, 12, 16]);
    // A TimeSync set waits for one cell: not the 128 ns that the paper gives as a bound.
    assert_eq!(cell(CELL_MAX).as_ps() * 5 / 2, 128_000);
    // Eight bytes a tick.
    assert!(Rate::from_bps(25_600_000_000).send_time(Bytes::new(8)) == tick);
}

#[test]
fn a42_idle_ways_between_pods() {
    let fec = Config::default().link.fec_delay;
    let local = HOP + LOCAL_LENGTH.delay();
    let global = HOP + fec + fibre();
    // The last switch hands over after its core.
    let minimal = local + global + local + CORE;
    assert_eq!(minimal + cell(CELL_MIN), Span::from_ps(685_120));
    assert_eq!(minimal + cell(CELL_MAX), Span::from_ps(731_200));
    let detour = minimal + global + local;
    assert_eq!(detour + cell(CELL_MIN), Span::from_ps(1_300_120));
    assert_eq!(detour + cell(CELL_MAX), Span::from_ps(1_346_200));
    // Request, clearance, data.
    let handshake = minimal * 3 + cell(CELL_MIN) * 2 + cell(CELL_MAX);
    assert!((Span::from_ns(2_095)..Span::from_ns(2_105)).contains(&handshake), "{handshake}");
}

#[test]
fn a43_a_queue_of_40_us_is_250_kb() {
    assert_eq!(Rate::from_gbps(50).bytes_in(Span::from_us(40)), Bytes::new(250_000));
}

#[test]
fn a44_buffers_hold_the_way_of_a_credit_there_and_back() {
    let link = Config::default().link;
    let update = link.update_after;
    // A cell there, the core and port at the end, a set back, once more; as M214 has it.
    let loops = [
        (Span::from_ns(192), 600, link.local_buffer),
        (Span::from_ns(1_242), 3_881, link.global_buffer),
    ];
    for (around, bytes, buffer) in loops {
        let under_way = lane().bytes_in(around);
        assert_eq!(under_way, Bytes::new(bytes));
        assert!(under_way + update <= buffer, "{under_way} and {update} in {buffer}");
    }
    let units = |buffer: Bytes| buffer.get() / u64::from(credits::UNIT_BYTES);
    assert_eq!([units(link.local_buffer), units(link.global_buffer)], [80, 320]);
    let each = [(24, link.local_buffer), (8, link.global_buffer)];
    let whole: u64 = each.iter().map(|&(ports, buffer)| ports * 32 * buffer.get()).sum();
    assert_eq!(whole, 2_293_760, "2.3 MB a TiN (M214)");
}

#[test]
fn a45_a_clique_has_1_to_2_thousand_ports() {
    let tins = u32::from(Shape::FULL.tins());
    assert_eq!(tins * 2 + tins, 1_728);
}
