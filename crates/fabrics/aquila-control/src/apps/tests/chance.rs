//! Whatever happens, in any order: planned changes lose nothing, and all ends as it should.

use std::sync::{Arc, OnceLock};

use aquila::tables::Condition;
use aquila::tables::check::check;
use aquila::tables::compute::compute;
use aquila::tables::condition::State;
use aquila::topology::Shape;
use proptest::prelude::*;

use super::ends::audit;
use super::routes::{Works, check_groups, stuck};
use super::world::World;
use crate::apps::Clique;
use crate::apps::constellation::INSTANCES;
use crate::apps::election::Application;
use crate::apps::inter_block::Message;
use crate::apps::rows::Admin;
use crate::nib::Nib;
use crate::registers::file::RegisterFile;

/// Fewer pods than the tiny Clique, with detours in them: a TiN leads to the others of its pod, which lead to other pods.
const SMALL: Shape =
    Shape { tins_per_pod: 4, pods: 5, local_ports: 6, global_ports: 2, ..Shape::FULL };

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    Node(u16, Admin),
    Link(u32, Admin),
    Egress(u8, u16, u32),
    Stop(u8, u8),
    StopBase(u8),
    Session(u16),
    Long(u16),
    Reset(u16),
    Wait(u8),
}

fn admin() -> impl Strategy<Value = Admin> {
    prop_oneof![Just(Admin::InService), Just(Admin::Drained)]
}

/// Planned changes, and failures of the controller and of sessions.
fn planned() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (any::<u16>(), admin()).prop_map(|(tin, admin)| Event::Node(tin, admin)),
        4 => (any::<u32>(), admin()).prop_map(|(link, admin)| Event::Link(link, admin)),
        2 => (0..4u8, any::<u16>(), 0..4u32).prop_map(|(s, t, w)| Event::Egress(s, t, w)),
        3 => (0..4u8, 0..INSTANCES).prop_map(|(app, instance)| Event::Stop(app, instance)),
        1 => (0..2u8).prop_map(Event::StopBase),
        2 => any::<u16>().prop_map(Event::Session),
        4 => (0..60u8).prop_map(Event::Wait),
    ]
}

/// Anything.
fn any_event() -> impl Strategy<Value = Event> {
    let admin = prop_oneof![Just(Admin::InService), Just(Admin::Drained), Just(Admin::Off)];
    let node = (any::<u16>(), admin.clone()).prop_map(|(tin, admin)| Event::Node(tin, admin));
    let link = (any::<u32>(), admin).prop_map(|(link, admin)| Event::Link(link, admin));
    prop_oneof![
        6 => planned(),
        2 => node,
        4 => link,
        1 => any::<u16>().prop_map(Event::Long),
        1 => any::<u16>().prop_map(Event::Reset),
    ]
}

struct Run {
    world: World,
    condition: Condition,
}

impl Run {
    /// A Clique that is up, and whose controller has just started anew: it writes nothing (I76).
    fn new(shape: &Shape, seed: u64, loss: u64) -> Self {
        static TINY: OnceLock<(Arc<Clique>, Nib, Vec<RegisterFile>)> = OnceLock::new();
        static MINI: OnceLock<(Arc<Clique>, Nib, Vec<RegisterFile>)> = OnceLock::new();
        static SMALL: OnceLock<(Arc<Clique>, Nib, Vec<RegisterFile>)> = OnceLock::new();
        let up = match shape.tins() {
            18 => &TINY,
            20 => &SMALL,
            _ => &MINI,
        };
        let (clique, base, files) = up.get_or_init(|| {
            let mut world = World::new(shape, 1);
            world.settle();
            let base = world.constellation.base().expect("it runs").clone();
            (world.clique.clone(), base, world.files())
        });
        let mut world = World::around(clique.clone(), seed, base.clone(), files.clone());
        world.settle();
        assert_eq!(world.written, 0, "I76: all was right");
        world.loss = loss;
        let condition = Condition::healthy(&world.clique.topology);
        Self { world, condition }
    }

    /// Whether every cell arrives by ordinary channels in a condition, by the tables for it.
    fn has_all_ways(&self, condition: &Condition) -> bool {
        let (topology, turns) = (&self.world.clique.topology, &self.world.clique.turns);
        let tables = compute(topology, turns, condition);
        check(topology, turns, condition, &tables).unwrap().escapes == 0
    }

    fn happen(&mut self, event: Event, keeps_all_ways: bool) {
        let state = |admin| match admin {
            Admin::InService => State::Live,
            Admin::Drained => State::Drained,
            Admin::Off => State::Dead,
        };
        let mut condition = self.condition.clone();
        let world = &mut self.world;
        let tins = world.chips.len() as u16;
        match event {
            Event::Node(tin, admin) => {
                condition.set_tin(tin % tins, state(admin));
                if !keeps_all_ways || self.has_all_ways(&condition) {
                    self.condition = condition;
                    self.world.set_node(tin % tins, admin);
                }
            }
            Event::Link(link, admin) => {
                let link = link % world.clique.topology.links().len() as u32;
                condition.set_link(link, state(admin));
                if !keeps_all_ways || self.has_all_ways(&condition) {
                    self.condition = condition;
                    self.world.set_link(link, admin);
                }
            }
            Event::Egress(shard, tin, weight) => {
                let prefix = format!("203.0.{}.0/24", tin % 3).parse().unwrap();
                let members = vec![(tin % tins, weight), (0, 1)];
                let version = world.now.as_ps();
                let message = Message::Reach { shard, version, prefix, members };
                world.constellation.hear(world.now, &message.encode());
            }
            Event::Stop(app, instance) => {
                let name = (Application::ALL[usize::from(app)], instance);
                if world.constellation.runs(name) {
                    world.constellation.stop(name);
                } else {
                    world.constellation.start(world.now, name);
                }
            }
            Event::StopBase(copy) => {
                world.constellation.start_base(1 - usize::from(copy));
                world.constellation.stop_base(copy.into());
            }
            Event::Session(tin) => world.disconnect(tin % tins, true),
            Event::Long(tin) => {
                let can_connect = world.chips[usize::from(tin % tins)].can_connect;
                world.disconnect(tin % tins, !can_connect);
            }
            Event::Reset(tin) => world.reset(tin % tins),
            Event::Wait(steps) => (0..steps).for_each(|_| world.step()),
        }
    }

    /// Everything runs again, and all that is left to do is done.
    fn end(&mut self) {
        let world = &mut self.world;
        world.loss = 0;
        for name in Application::ALL.into_iter().flat_map(|a| (0..INSTANCES).map(move |i| (a, i))) {
            if !world.constellation.runs(name) {
                world.constellation.start(world.now, name);
            }
        }
        (0..2).for_each(|copy| world.constellation.start_base(copy));
        world.chips.iter_mut().for_each(|chip| chip.can_connect = true);
        world.settle();
        audit(world, &self.condition);
    }

    fn check_nothing_passes_what_is_drained(&self) {
        let condition = &self.condition;
        let topology = &self.world.clique.topology;
        let link = |tin, port| condition.link(topology.link(tin, port).expect("a port in use"));
        let works = Works {
            port: &|_, _| true,
            tin: &|_| true,
            may_pass: &|tin| condition.tin(tin) == State::Live,
        };
        assert_eq!(stuck(&self.world, &works), [], "M730: through a drained TiN");
        let works = Works { port: &|t, p| link(t, p) == State::Live, may_pass: &|_| true, ..works };
        assert_eq!(stuck(&self.world, &works), [], "M730: only over drained links");
    }
}

/// Everything works, so everything has to arrive; and groups are where flows lead (I70, I71).
fn watch_ways(world: &World, tin: u16) {
    let works = Works { port: &|_, _| true, tin: &|_| true, may_pass: &|_| true };
    assert_eq!(stuck(world, &works), [], "I71: after a write at TiN {tin}");
    check_groups(world, tin);
}

fn check_planned(shape: &Shape, seed: u64, loss: u64, events: &[Event]) {
    let mut run = Run::new(shape, seed, loss);
    run.world.watch = Some(watch_ways);
    events.iter().for_each(|&event| run.happen(event, true));
    run.end();
    run.check_nothing_passes_what_is_drained();
    for tin in 0..run.world.chips.len() as u16 {
        assert_eq!(run.world.is_drained(tin), run.condition.tin(tin) == State::Drained, "M730");
    }
}

fn check_any(shape: &Shape, seed: u64, loss: u64, events: &[Event]) {
    let mut run = Run::new(shape, seed, loss);
    run.world.watch = Some(check_groups);
    events.iter().for_each(|&event| run.happen(event, false));
    run.end();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn slow_i70_i71_i79_planned_changes_lose_nothing(
        seed in any::<u64>(), loss in 0..15u64, events in prop::collection::vec(planned(), 1..12),
    ) {
        check_planned(&SMALL, seed, loss, &events);
    }

    #[test]
    fn slow_i70_i72_i76_i78_i79_all_ends_as_it_should(
        seed in any::<u64>(), loss in 0..15u64, events in prop::collection::vec(any_event(), 1..20),
    ) {
        check_any(&Shape::TINY, seed, loss, &events);
    }
}
