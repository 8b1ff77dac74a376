//! The switches against closed forms, and their invariants under load.

use std::sync::Arc;

use kernel::{Bytes, Rate, Span, Stream, Time};
use proptest::prelude::*;

use super::blocks::Blocks;
use super::cell::Cell;
use super::record::Numbers;
use super::settings::{CHANNELS, Settings, TICK_PS};
use super::{Counts, Endpoints, Posted, Room, Switches, Wishes};
use crate::address::{Address, Endpoint};
use crate::config::{AtDeadLink, Link as LinkConfig, Switch};
use crate::link::classes::Mode;
use crate::raw::{Arrived, Pattern, Raw, Traffic};
use crate::tables::condition::State;
use crate::tables::journal::{Journal, Write};
use crate::tables::{Condition, Tables, compute::compute};
use crate::topology::{Fibres, Link, Shape, Topology};
use crate::turns::TurnTable;

const DATA: u8 = 3;

fn clique(shape: &Shape, fibres: Fibres) -> (Topology, Arc<Tables>) {
    let topology = Topology::new(shape, fibres).unwrap();
    let tables = compute(&topology, &TurnTable::P1, &Condition::healthy(&topology));
    (topology, Arc::new(tables))
}

/// Endpoints that inject what they are given, and keep what comes.
#[derive(Clone, Debug, Default)]
struct Letters {
    /// Source, terminal port, cell.
    out: Vec<(u16, u8, Cell)>,
    /// Destination, cell, last bit.
    come: Vec<(u16, Cell, Time)>,
}

impl Endpoints for Letters {
    fn deliver(&mut self, tin: u16, _: u8, cell: &Cell, at: Time, _: &mut Wishes) {
        self.come.push((tin, *cell, at));
    }

    fn inject(&mut self, tin: u16, terminal: u8, room: Room<'_>, _: &mut Wishes) -> Option<Cell> {
        let may = |(at, port, cell): &(u16, u8, Cell)| {
            *at == tin && *port == terminal && room.fits(cell.class, cell.blocks)
        };
        let place = self.out.iter().position(may)?;
        Some(self.out.remove(place).2)
    }

    fn wake(&mut self, _: u16, _: &mut Wishes) {}

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

fn address(shape: &Shape, tin: u16) -> u16 {
    let (pod, place) = shape.split(tin);
    Address::new(pod, place, Endpoint::HOST_0).bits()
}

/// One cell alone: when its last bit is there, and the links that it took.
fn alone(
    (topology, tables): &(Topology, Arc<Tables>),
    (from, to): (u16, u16),
    blocks: u8,
    class: u8,
) -> (Span, u8) {
    let shape = topology.shape();
    let own: Vec<u16> = (0..shape.tins()).collect();
    let settings = Arc::new(Settings::default());
    let mut cells =
        Switches::new(topology, Arc::clone(tables), settings, &own, 1, Letters::default());
    let cell = Cell::new(address(shape, from), address(shape, to), class, DATA, blocks, 16);
    // Some time after the beginning, on a tick.
    let start = Time::ZERO + Span::from_ns(1_000);
    cells.act(from, start, |letters, wishes| {
        letters.out.push((from, 0, cell));
        wishes.inject(0);
    });
    cells.run(Time::NEVER);
    cells.check_home().unwrap();
    let come = &cells.endpoints().come;
    assert_eq!((come.len(), come[0].0), (1, to));
    (come[0].2 - start, 16 - come[0].1.hops() - 1)
}

/// A42: 685 ns for 16 B and 731 ns for 160 B over one fibre of 100 m and a link at each end; and I11: 40 ns a switch,
/// 30 more on a fibre, 20 to the endpoint, and the wire, on every way.
#[test]
fn slow_i11_a42_a_cell_alone_takes_what_the_paper_says() {
    let clique = clique(&Shape::MINI, Fibres::Metres(100));
    let mut seen = [0; 4];
    for to in 1..Shape::MINI.tins() {
        for (blocks, ps) in [(2, 5_120), (3, 7_680), (20, 51_200)] {
            let (took, links) = alone(&clique, (0, to), blocks, 5);
            let is_far = Shape::MINI.split(to).0 != 0;
            let global = if is_far { 500_000 + 30_000 } else { 0 };
            let local = (u64::from(links) - u64::from(is_far)) * 5_000;
            let expected = u64::from(links) * 40_000 + 20_000 + global + local + ps;
            assert_eq!(took.as_ps(), expected, "to {to}, {blocks} blocks, {links} links");
            seen[usize::from(links)] += 1;
            if (is_far, links, blocks) == (true, 3, 2) {
                assert_eq!(took.as_ps(), 685_120);
            }
            if (is_far, links, blocks) == (true, 3, 20) {
                assert_eq!(took.as_ps(), 731_200);
            }
        }
    }
    assert!(seen[0] == 0 && seen[1..].iter().all(|&count| count > 0), "{seen:?}");
}

fn traffic(pattern: Pattern, load: f64, us: u64) -> Traffic {
    Traffic {
        pattern,
        cells: 29,
        ethernet: false,
        rate: Rate::from_bps((load * 100e9) as u64),
        class: 7,
        until: Time::ZERO + Span::from_us(us),
        from: Time::ZERO + Span::from_us(us / 2),
    }
}

/// Runs traffic in one set of switches until all has arrived.
fn carry(shape: &Shape, settings: &Settings, traffic: Traffic) -> Switches<Raw> {
    let (topology, tables) = clique(shape, Fibres::Metres(30));
    let own: Vec<u16> = (0..shape.tins()).collect();
    let raw = Raw::new(shape, traffic, settings.switch.hops, 1);
    let settings = Arc::new(settings.clone());
    let mut cells = Switches::new(&topology, tables, settings, &own, 1, raw);
    for tin in own {
        cells.act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
    }
    cells.run(Time::NEVER);
    cells
}

/// I02 to I06 hold in debug builds as it runs; all that was sent comes, and all credit comes home.
#[test]
fn slow_i03_i04_all_cells_arrive_and_all_credit_comes_home() {
    for (shape, pattern, load) in [
        (Shape::TINY, Pattern::Uniform, 0.9),
        (Shape::TINY, Pattern::NextPod, 1.0),
        (Shape::MINI, Pattern::Uniform, 0.8),
        (Shape::MINI, Pattern::NextTin, 1.0),
    ] {
        for mode in [
            Mode::FullyAdaptive,
            Mode::MinimalAdaptive,
            Mode::Deterministic,
            Mode::MinimalDeterministic,
        ] {
            let mut settings = Settings::default();
            settings.classes[7].mode = mode;
            let cells = carry(&shape, &settings, traffic(pattern, load, 8));
            cells.check_home().unwrap_or_else(|wrong| panic!("{pattern:?}, {mode:?}: {wrong}"));
            let counts = cells.counts();
            assert!(counts.injected > 1_000 && counts.delivered == counts.injected, "{counts:?}");
            assert_eq!((counts.discarded, counts.escapes), (0, 0), "{pattern:?}, {mode:?}");
            assert_eq!(cells.endpoints().waiting(), 0);
        }
    }
}

/// §1: links without credits lose what credits keep, and nothing else.
#[test]
fn slow_cells_are_dropped_for_lack_of_room_only_without_credits() {
    for credits in [true, false] {
        let link = LinkConfig { credits, ..LinkConfig::default() };
        let settings = Settings { link, ..Settings::default() };
        let cells = carry(&Shape::MINI, &settings, traffic(Pattern::NextPod, 2.0, 6));
        cells.check_home().unwrap();
        let counts = cells.counts();
        assert_eq!(counts.delivered + counts.dropped_full, counts.injected);
        assert_eq!((counts.dropped_full == 0, counts.updates > 0), (credits, credits));
    }
}

/// A cell of room in each queue, and no preference for shortest ways.
fn tiny_buffers() -> Settings {
    let cell = Bytes::new(160);
    let link = LinkConfig {
        local_buffer: cell,
        global_buffer: cell,
        update_after: cell,
        ..LinkConfig::default()
    };
    let switch = Switch {
        output_queue: cell,
        terminal_queue: cell,
        terminal_buffer: cell,
        detour_bias: Bytes::ZERO,
        ..Switch::default()
    };
    Settings { link, switch, ..Settings::default() }
}

/// I21: a cell of room in each queue, everything at once, all modes: nothing stops for ever.
#[test]
fn slow_i21_tiny_buffers_and_the_worst_traffic_never_deadlock() {
    for (pattern, mode) in [
        (Pattern::NextPod, Mode::FullyAdaptive),
        (Pattern::Uniform, Mode::FullyAdaptive),
        (Pattern::NextPod, Mode::Deterministic),
        (Pattern::Uniform, Mode::MinimalAdaptive),
        (Pattern::NextTin, Mode::FullyAdaptive),
    ] {
        let mut settings = tiny_buffers();
        settings.classes[7].mode = mode;
        let cells = carry(&Shape::MINI, &settings, traffic(pattern, 2.0, 6));
        cells.check_home().unwrap_or_else(|wrong| panic!("{pattern:?}, {mode:?}: {wrong}"));
        assert_eq!(cells.counts().delivered, cells.counts().injected);
    }
}

/// The same for some microseconds, while links die at random, leave the tables, and come back, again and again.
fn storm(
    (topology, tables): &(Topology, Arc<Tables>),
    (pattern, mode, at_dead_link): (Pattern, Mode, AtDeadLink),
    us: u64,
    seed: u64,
) -> Counts {
    let shape = topology.shape();
    let mut settings = tiny_buffers();
    settings.switch.at_dead_link = at_dead_link;
    settings.classes[7].mode = mode;
    let traffic = traffic(pattern, 2.0, us);
    let hops = settings.switch.hops;
    let (settings, raw) = (Arc::new(settings), || Raw::new(shape, traffic, hops, seed));
    let mut cells = Blocks::new(topology, tables, &settings, 1, seed, raw);
    for tin in 0..shape.tins() {
        cells.of(tin).act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
    }
    let mut stream = Stream::new(seed, "test/storm", 0);
    let links = topology.links().len() as u64;
    for begin in (1..us).step_by(8) {
        let at = |us| Time::ZERO + Span::from_us(begin + us);
        let dead: Vec<u32> = (0..=stream.below(8)).map(|_| stream.below(links) as u32).collect();
        let mut condition = Condition::healthy(topology);
        dead.iter().for_each(|&link| condition.set_link(link, State::Dead));
        let ends = || {
            dead.iter().flat_map(|&link| {
                let link = topology.links()[link as usize];
                [link.low, link.high]
            })
        };
        let without = Arc::new(compute(topology, &TurnTable::P1, &condition));
        cells.run(at(0));
        ends().for_each(|end| cells.of(end.tin).break_link(end.tin, end.port, at(0)));
        cells.run(at(2));
        cells.sets_mut()[0].install(without, at(2));
        cells.run(at(5));
        ends().for_each(|end| cells.of(end.tin).mend_link(end.tin, end.port, at(5)));
        cells.run(at(6));
        cells.sets_mut()[0].install(Arc::clone(tables), at(6));
    }
    cells.run(Time::NEVER);
    let (counts, place) =
        (cells.counts(), format!("{pattern:?}, {mode:?}, {at_dead_link:?}, seed {seed}"));
    cells.sets()[0].check_home().unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
    let gone = counts.delivered + counts.lost_at_dead_links + counts.discarded;
    assert_eq!(gone, counts.injected, "{place}: {counts:?}");
    counts
}

const MODES: [Mode; 4] =
    [Mode::FullyAdaptive, Mode::MinimalAdaptive, Mode::Deterministic, Mode::MinimalDeterministic];

#[test]
fn slow_i21_links_that_die_and_come_back_never_deadlock() {
    let clique = clique(&Shape::MINI, Fibres::Metres(30));
    let mut lost = 0;
    for mode in MODES {
        lost +=
            storm(&clique, (Pattern::NextPod, mode, AtDeadLink::Flush), 9, 1).lost_at_dead_links;
    }
    assert!(lost > 0, "what was on links that died is lost");
}

/// The same with ten million cells: `cargo test --release -p rackloom-aquila --lib -- --ignored i21`.
#[test]
#[ignore = "takes minutes in a release build"]
fn i21_ten_million_cells_never_deadlock() {
    let clique = clique(&Shape::MINI, Fibres::Metres(30));
    let (mut cells, mut seed) = (0, 0);
    while cells < 10_000_000 {
        seed += 1;
        for mode in MODES {
            for pattern in [Pattern::NextPod, Pattern::Uniform, Pattern::NextTin] {
                for at_dead_link in [AtDeadLink::Flush, AtDeadLink::QueueOnly, AtDeadLink::PortMask]
                {
                    cells += storm(&clique, (pattern, mode, at_dead_link), 64, seed).injected;
                }
            }
        }
        println!("{cells} cells, {seed} seeds");
    }
}

/// §2: non-blocking for uniform random traffic (X15). With queues of four cells and a bias of one at outputs, 61 of
/// 90 Gbps get through: `cargo run --release -p rackloom-aquila --example perf_cells full uniform 0.9 16 queue=640
/// bias=160`.
#[test]
fn slow_x15_the_full_clique_carries_uniform_traffic() {
    let (topology, tables) = clique(&Shape::FULL, Fibres::Metres(100));
    let (shape, settings) = (Shape::FULL, Settings::default());
    let own: Vec<u16> = (0..shape.tins()).collect();
    let traffic = traffic(Pattern::Uniform, 0.9, 12);
    let raw = Raw::new(&shape, traffic, settings.switch.hops, 1);
    let mut cells = Switches::new(&topology, tables, Arc::new(settings), &own, 1, raw);
    for tin in own {
        cells.act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
    }
    cells.run(traffic.until);
    let seconds = (traffic.until - traffic.from).as_seconds() * f64::from(shape.tins());
    let gbps = cells.endpoints().arrived().blocks as f64 * 64.0 / seconds / 1e9;
    // What Poisson sources offer differs by the root of the packets; what is still on its way takes some more.
    let packets = 90e9 * seconds / (29.0 * 1280.0);
    let error = 4.0 * 90.0 / packets.sqrt();
    assert!((gbps - 90.0).abs() < error + 1.0, "{gbps} Gbps a TiN of 90, give or take {error}");
}

/// The same traffic by any cut of the TiNs, which send each other what crosses it at the end of windows.
fn carry_cut(shape: &Shape, parts: usize, traffic: Traffic) -> (Arrived, u64) {
    let (topology, tables) = clique(shape, Fibres::Metres(30));
    let settings = Arc::new(Settings::default());
    let part_of = |tin: u16| usize::from(tin) * 7 % parts;
    let mut sets: Vec<_> = (0..parts)
        .map(|part| {
            let own: Vec<u16> = (0..shape.tins()).filter(|&tin| part_of(tin) == part).collect();
            let raw = Raw::new(shape, traffic, settings.switch.hops, 1);
            let settings = Arc::clone(&settings);
            let tables = Arc::clone(&tables);
            let mut cells = Switches::new(&topology, tables, settings, &own, 1, raw);
            for tin in own {
                cells.act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
            }
            cells
        })
        .collect();
    // Nothing that a switch does reaches another before ten ticks later.
    while let Some(next) = sets.iter().filter_map(|set| set.next()).min() {
        let end = next + Span::from_ns(25);
        let mut posted: Vec<Posted> = Vec::new();
        for set in &mut sets {
            set.run(end);
            posted.extend(set.posted());
        }
        posted.iter().for_each(|posted| sets[part_of(posted.tin)].take(posted));
    }
    let mut arrived = Arrived::default();
    let mut hops = 0;
    for set in &sets {
        set.check_home().unwrap();
        arrived.add(&set.endpoints().arrived());
        hops += set.counts().hops;
    }
    (arrived, hops)
}

#[test]
fn any_number_of_blocks_gives_the_same() {
    let shape = Shape::TINY;
    let (topology, tables) = clique(&shape, Fibres::Grid);
    let settings = Arc::new(Settings::default());
    let traffic = traffic(Pattern::Uniform, 0.8, 6);
    let run = |count| {
        let raw = || Raw::new(&shape, traffic, settings.switch.hops, 1);
        let mut blocks = Blocks::new(&topology, &tables, &settings, count, 1, raw);
        for tin in 0..shape.tins() {
            blocks.of(tin).act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
        }
        blocks.run(traffic.from);
        blocks.run(Time::NEVER);
        blocks.check().unwrap();
        let mut arrived = Arrived::default();
        blocks.sets().iter().for_each(|set| arrived.add(&set.endpoints().arrived()));
        (arrived, blocks.counts())
    };
    let whole = run(1);
    assert!(whole.0.cells > 500, "{whole:?}");
    for count in [2, 4, 9, 100] {
        assert_eq!(run(count), whole, "{count} blocks");
    }
}

/// Tables that are written entry by entry while cells pass: all come home, however the Clique is cut, and in the end the
/// tables are those of a Clique without the links that have failed.
#[test]
fn m728_tables_are_written_while_cells_pass_whatever_the_cut() {
    let shape = Shape::TINY;
    let (topology, tables) = clique(&shape, Fibres::Grid);
    let mut settings = Settings::default();
    settings.switch.at_dead_link = AtDeadLink::PortMask;
    let settings = Arc::new(settings);
    let traffic = traffic(Pattern::Uniform, 0.8, 12);
    let mut condition = Condition::healthy(&topology);
    let dead: Vec<u32> = (0..)
        .zip(topology.links())
        .filter(|(_, link)| link.is_global)
        .map(|(index, _)| index)
        .step_by(9)
        .collect();
    dead.iter().for_each(|&link| condition.set_link(link, State::Dead));
    let after = compute(&topology, &TurnTable::P1, &condition);
    let us = |us| Time::ZERO + Span::from_us(us);
    let mut writes = Vec::new();
    for tin in 0..shape.tins() {
        let mut at = us(4) + Span::from_ns(u64::from(tin) * 7);
        for change in tables.changes(tin, &after, &topology) {
            at += Span::from_ps(3_333);
            writes.push(Write { at, tin, change });
        }
    }
    let journal = Arc::new(Journal::new(writes));
    assert!(journal.writes().len() > 500);
    let run = |count| {
        let raw = || Raw::new(&shape, traffic, settings.switch.hops, 1);
        let mut blocks = Blocks::new(&topology, &tables, &settings, count, 1, raw);
        blocks.sets_mut().iter_mut().for_each(|set| set.follow(Arc::clone(&journal)));
        for tin in 0..shape.tins() {
            blocks.of(tin).act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
        }
        blocks.run(us(3));
        for link in dead.iter().map(|&link| topology.links()[link as usize]) {
            for end in [link.low, link.high] {
                blocks.of(end.tin).break_link(end.tin, end.port, us(3));
            }
        }
        blocks.run(Time::NEVER);
        let counts = blocks.counts();
        assert_eq!(counts.injected, counts.delivered + counts.lost_at_dead_links);
        assert!(counts.lost_at_dead_links > 0);
        let mut arrived = Arrived::default();
        blocks.sets().iter().for_each(|set| arrived.add(&set.endpoints().arrived()));
        for tin in 0..shape.tins() {
            assert!(blocks.of(tin).tables().is_same_at(tin, &after), "TiN {tin}");
        }
        (arrived, counts)
    };
    let whole = run(1);
    for count in [2, 4, 9] {
        assert_eq!(run(count), whole, "{count} blocks");
    }
}

#[test]
fn any_cut_gives_the_same() {
    let traffic = traffic(Pattern::Uniform, 0.8, 6);
    let whole = carry_cut(&Shape::TINY, 1, traffic);
    assert!(whole.0.cells > 500, "{whole:?}");
    for parts in [2, 3, 5, 18] {
        assert_eq!(carry_cut(&Shape::TINY, parts, traffic), whole, "{parts} parts");
    }
}

/// I05: what one class's end does not take stays out of the way of all others.
#[test]
fn i05_a_class_that_is_not_taken_holds_up_no_other() {
    let (topology, tables) = clique(&Shape::TINY, Fibres::Metres(30));
    let shape = Shape::TINY;
    let own: Vec<u16> = (0..shape.tins()).collect();
    let took = |is_stalled: bool| {
        let settings = Arc::new(Settings::default());
        let tables = Arc::clone(&tables);
        let letters = Letters::default();
        let mut cells = Switches::new(&topology, tables, settings, &own, 1, letters);
        let (from, to) = (0, 5);
        let letter =
            |class| Cell::new(address(&shape, from), address(&shape, to), class, DATA, 20, 16);
        if is_stalled {
            for terminal in 0..4 {
                cells.act(to, Time::ZERO, |_, wishes| wishes.stall(terminal, 0b111 << (3 * 5)));
            }
        }
        cells.act(from, Time::ZERO, |letters, wishes| {
            for at in 0..600 {
                letters.out.push((from, (at % 4) as u8, letter(5)));
                letters.out.push((from, (at % 4) as u8, letter(7)));
            }
            (0..4).for_each(|terminal| wishes.inject(terminal));
        });
        cells.run(Time::ZERO + Span::from_us(100));
        let come = &cells.endpoints().come;
        let of = |class| come.iter().filter(move |letter| letter.1.class == class);
        let last = of(7).map(|letter| letter.2).max().unwrap();
        (of(5).count(), of(7).count(), last)
    };
    let (with, without) = (took(true), took(false));
    assert_eq!((with.0, with.1, without.0, without.1), (0, 600, 600, 600));
    assert!(with.2 <= without.2, "{with:?}, {without:?}");
}

/// I09: of classes of a level that all wait, each has its share; of levels the highest goes first.
#[test]
fn i09_levels_go_first_and_shares_are_kept() {
    let (topology, tables) = clique(&Shape::MINI, Fibres::Metres(30));
    let shape = Shape::MINI;
    let own: Vec<u16> = (0..shape.tins()).collect();
    let mut settings = Settings::default();
    for class in [2, 7, 8] {
        settings.classes[class].mode = Mode::MinimalAdaptive;
    }
    let letters = Letters::default();
    let mut cells = Switches::new(&topology, tables, Arc::new(settings), &own, 1, letters);
    // Over the six links to a neighbour, which carry 150 Gbps of the 200 that its endpoint takes: bulk and
    // scavenger, more than there is room for, and after a while low latency.
    let (from, to) = (0, 1);
    let links = (0..18).filter(|&port| topology.far(from, port).is_some_and(|far| far.tin == to));
    assert_eq!(links.count(), 6);
    let letter = |class| Cell::new(address(&shape, from), address(&shape, to), class, DATA, 20, 16);
    let send = |cells: &mut Switches<Letters>, at: Time, classes: &[u8], count: usize| {
        cells.run(at);
        cells.act(from, at, |letters, wishes| {
            for (terminal, &class) in (0..16).flat_map(|t| classes.iter().map(move |c| (t, c))) {
                let new = std::iter::repeat_n((from, terminal, letter(class)), count);
                letters.out.extend(new);
            }
            (0..16).for_each(|terminal| wishes.inject(terminal));
        });
    };
    send(&mut cells, Time::ZERO, &[7, 8], 200);
    let late = Time::ZERO + Span::from_us(20);
    send(&mut cells, late, &[2], 40);
    cells.run(Time::ZERO + Span::from_us(60));
    let come = &cells.endpoints().come;
    let of = |class: u8, from: u64, to: u64| {
        let (from, to) = (Time::ZERO + Span::from_us(from), Time::ZERO + Span::from_us(to));
        come.iter().filter(move |x| x.1.class == class && x.2 >= from && x.2 < to).count() as f64
    };
    let (bulk, scavenger) = (of(7, 2, 20), of(8, 2, 20));
    let share = bulk / (bulk + scavenger);
    assert!(bulk + scavenger > 1_900.0, "{bulk} and {scavenger} cells in 18 us");
    assert!((share - 8.0 / 9.0).abs() < 0.02, "{share} of the cells are bulk");
    // 640 cells take 5.5 us of the six links; what was on its way before them comes in the first microsecond.
    let (low, others) = (of(2, 21, 25), of(7, 21, 25) + of(8, 21, 25));
    assert!(low > 440.0 && others < 20.0, "{low} of low latency, {others} others");
}

/// I14: on each line a cell of the highest level waits for one cell of a lower level at the most, which is on it, and
/// for ordered sets, which split no cell (I13, asserted where lines are recorded).
#[test]
fn i13_i14_a_cell_of_a_higher_level_waits_for_one_cell_at_the_most() {
    let (topology, tables) = clique(&Shape::MINI, Fibres::Metres(30));
    let shape = Shape::MINI;
    let own: Vec<u16> = (0..shape.tins()).collect();
    let mut settings = Settings::default();
    for class in [0, 7, 8] {
        settings.classes[class].mode = Mode::MinimalAdaptive;
    }
    let letters = Letters::default();
    let mut cells = Switches::new(&topology, tables, Arc::new(settings), &own, 1, letters);
    let size = Numbers::at(shape.tins(), 0);
    let every: Vec<u32> = (0..size as u32).collect();
    let feeds = every.iter().map(|line| line + size as u32).collect();
    let numbers = Numbers { outputs: every, feeds, count: 2 * size as u32 };
    cells.set_record(Arc::new(numbers), Arc::new(vec![false; shape.tins().into()]));
    // More bulk than the six links to a neighbour have room for, and now and then a cell of the highest level.
    let (from, to) = (0, 1);
    let letter = |class| Cell::new(address(&shape, from), address(&shape, to), class, DATA, 20, 16);
    cells.act(from, Time::ZERO, |letters, wishes| {
        for terminal in 0..15 {
            letters
                .out
                .extend((0..300).map(|at| (from, terminal, letter(7 + u8::from(at % 2 == 0)))));
            wishes.inject(terminal);
        }
    });
    for probe in 0..60 {
        let at = Time::ZERO + Span::from_us(3) + Span::from_ns(311) * probe;
        cells.run(at);
        cells.act(from, at, |letters, wishes| {
            letters.out.push((from, 15, letter(0).watched(super::cell::Watch::new(false, true))));
            wishes.inject(15);
        });
    }
    cells.run(Time::ZERO + Span::from_us(60));
    let seen = cells.take_record().unwrap().into_seen();
    let probes: Vec<_> = seen.steps.iter().filter(|step| step.tin == from).collect();
    assert_eq!(probes.len(), 60);
    let longest = Rate::from_gbps(25).send_time(Bytes::new(160)).as_ps();
    assert_eq!(longest, 51_200);
    let mut by_cells = Vec::new();
    for step in probes {
        let sets = step.beside.iter().filter(|beside| beside.key == super::record::Key::NONE);
        by_cells.push(step.waits.line - sets.map(|beside| beside.ps).sum::<u64>());
    }
    by_cells.sort_unstable();
    // Lines are never idle, so that waits spread evenly over the time of a cell.
    assert!(by_cells[59] <= longest + TICK_PS, "{by_cells:?}");
    assert!(by_cells[30] > longest / 8, "{by_cells:?}");
}

/// Headers that are damaged take credit with them; what senders tell of what they have sent brings it home (I03,
/// M216). All other cells arrive, those damaged otherwise marked as such.
#[test]
fn i03_bit_errors_cost_cells_and_no_credit() {
    let link = LinkConfig {
        local_bit_error_rate: 2e-5,
        global_bit_error_rate: 5e-5,
        ..LinkConfig::default()
    };
    let settings = Settings { link, ..Settings::default() };
    for seed in 1..4 {
        let traffic = Traffic { class: [7, 9, 0][seed - 1], ..traffic(Pattern::Uniform, 0.6, 30) };
        let cells = carry(&Shape::TINY, &settings, traffic);
        cells.check_home().unwrap();
        let counts = cells.counts();
        assert!(counts.header_errors > 30 && counts.payload_errors > 300, "{counts:?}");
        // Damaged ordered sets count as headers, too.
        let lost = counts.injected - counts.delivered;
        assert!(lost > 30 && lost <= counts.header_errors, "{counts:?}");
    }
}

/// I21, M319, M320: links die and come back under load. Nothing is stuck, credit is whole again, and what is lost was
/// at dead links.
#[test]
fn slow_m319_links_die_and_come_back() {
    let (topology, tables) = clique(&Shape::MINI, Fibres::Metres(30));
    let shape = Shape::MINI;
    let own: Vec<u16> = (0..shape.tins()).collect();
    let mut losses = Vec::new();
    for (mode, at_dead_link) in [
        (Mode::FullyAdaptive, AtDeadLink::Flush),
        (Mode::FullyAdaptive, AtDeadLink::QueueOnly),
        (Mode::MinimalDeterministic, AtDeadLink::Flush),
        (Mode::MinimalDeterministic, AtDeadLink::QueueOnly),
        (Mode::MinimalDeterministic, AtDeadLink::PortMask),
    ] {
        let switch = Switch { at_dead_link, ..Switch::default() };
        let mut settings = Settings { switch, ..Settings::default() };
        settings.classes[7].mode = mode;
        let traffic = traffic(Pattern::Uniform, 0.5, 30);
        let raw = Raw::new(&shape, traffic, settings.switch.hops, 1);
        let settings = Arc::new(settings);
        let mut cells = Switches::new(&topology, Arc::clone(&tables), settings, &own, 1, raw);
        for &tin in &own {
            cells.act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
        }
        // Every fortieth link, local and global, dies at 8 us, is out of the tables at 14, is back at 20, and in
        // the tables at 22.
        let dead: Vec<_> = topology.links().iter().step_by(40).collect();
        let mut condition = Condition::healthy(&topology);
        for link in (0..topology.links().len()).step_by(40) {
            condition.set_link(link as u32, State::Dead);
        }
        let us = |us| Time::ZERO + Span::from_us(us);
        cells.run(us(8));
        let ends = |link: &Link| [link.low, link.high];
        dead.iter()
            .flat_map(|link| ends(link))
            .for_each(|end| cells.break_link(end.tin, end.port, us(8)));
        cells.run(us(14));
        let repaired = Arc::new(compute(&topology, &TurnTable::P1, &condition));
        cells.install(repaired, us(14));
        let lost = cells.counts().lost_at_dead_links;
        cells.run(us(20));
        dead.iter()
            .flat_map(|link| ends(link))
            .for_each(|end| cells.mend_link(end.tin, end.port, us(20)));
        cells.run(us(22));
        cells.install(Arc::clone(&tables), us(22));
        cells.run(Time::NEVER);
        let (counts, place) = (cells.counts(), format!("{mode:?}, {at_dead_link:?}"));
        cells.check_home().unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
        assert_eq!(counts.delivered + counts.lost_at_dead_links, counts.injected, "{place}");
        assert_eq!(counts.discarded, 0, "{place}");
        // Once the tables know, nothing more is lost.
        assert_eq!(counts.lost_at_dead_links, lost, "{place}");
        assert!(lost > 0, "{place}: what was on the wires is lost");
        losses.push(lost);
    }
    let [adaptive, adaptive_queue, hashed, hashed_queue, masked] = losses[..] else {
        unreachable!()
    };
    // Where queues stay, what is lost was on the wires: from a first bit until it may be arbitrated, at 25 Gbps.
    let on_wire = |link: &Link| {
        let correction = if link.is_global { 30_000 } else { 0 };
        let delay = topology.delay(link.low.tin, link.low.port).as_ps() + correction;
        2 * ((delay + 26_200).div_ceil(51_200) + 1)
    };
    let on_wires: u64 = topology.links().iter().step_by(40).map(on_wire).sum();
    assert!(adaptive_queue <= on_wires, "{adaptive_queue} lost, {on_wires} on the wires");
    assert!(hashed_queue <= on_wires, "{hashed_queue} lost, {on_wires} on the wires");
    // Who chooses by a hash goes on choosing a dead link for 6 us; others only where they have no choice.
    assert!(
        3 * adaptive < hashed,
        "{adaptive} lost of cells that look at queues, {hashed} of others"
    );
    assert!(2 * masked < hashed, "{masked} lost with dead ports left out, {hashed} without");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Cells of any lengths and classes between any TiNs: all arrive, those of one way of a deterministic class in
    /// order (I26, I46), and no room is lost.
    #[test]
    fn i26_i46_random_cells_arrive_and_ordered_ones_in_order(
        letters in prop::collection::vec((0u16..18, 1u16..18, 2u8..=20, 0u8..10, 0u8..4), 1..400),
        seed: u64,
    ) {
        let (topology, tables) = clique(&Shape::TINY, Fibres::Metres(30));
        let shape = Shape::TINY;
        let own: Vec<u16> = (0..shape.tins()).collect();
        let settings = Arc::new(Settings::default());
        let letter_box = Letters::default();
        let mut cells = Switches::new(&topology, tables, Arc::clone(&settings), &own, seed, letter_box);
        let mut stream = Stream::new(seed, "test/letters", 0);
        for (number, &(from, step, blocks, class, terminal)) in letters.iter().enumerate() {
            let to = (from + step) % 18;
            let is_ordered = matches!(
                settings.classes[usize::from(class)].mode,
                Mode::Deterministic | Mode::MinimalDeterministic
            );
            let terminal = if is_ordered { 0 } else { terminal };
            let cell = Cell::new(address(&shape, from), address(&shape, to), class, DATA, blocks, 16);
            let at = cells.next().unwrap_or(Time::ZERO) + Span::from_ps(stream.below(20_000));
            cells.run(at);
            cells.act(from, at, |letters, wishes| {
                letters.out.push((from, terminal, cell.with_payload(number as u64)));
                wishes.inject(terminal);
            });
        }
        cells.run(Time::NEVER);
        cells.check_home().unwrap();
        let come = &cells.endpoints().come;
        prop_assert_eq!(come.len(), letters.len());
        for (first, one) in come.iter().enumerate() {
            let is_ordered = matches!(
                settings.classes[usize::from(one.1.class)].mode,
                Mode::Deterministic | Mode::MinimalDeterministic
            );
            let same = |other: &&(u16, Cell, Time)| {
                (other.1.from, other.1.to, other.1.class) == (one.1.from, one.1.to, one.1.class)
            };
            for other in come[first + 1..].iter().filter(same).filter(|_| is_ordered) {
                prop_assert!(one.1.payload < other.1.payload, "{:?} after {:?}", one, other);
            }
        }
        prop_assert!(cells.counts().fifo_max > 0 && CHANNELS == 32);
    }
}
