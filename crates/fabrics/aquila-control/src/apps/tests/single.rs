//! One part of the controller fails, each in turn (I79): nothing changes, and the next event is handled without it.

use aquila::pipeline::routes::Found;
use aquila::tables::condition::State;
use aquila::topology::Shape;
use kernel::Span;

use super::ends::{audit, watch_results};
use super::routes::check_groups;
use super::world::World;
use crate::apps::constellation::INSTANCES;
use crate::apps::election::Application;
use crate::apps::inter_block::{HOLD, Message, SHARDS};
use crate::apps::rows::Admin;

/// What fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Instance(Application, u8),
    Base(usize),
    Shard(u8),
}

/// Where a TiN sends what is for a prefix of a shard.
fn reached(world: &World, tin: usize, shard: u8) -> Found {
    let routes = crate::expand::ip::routes(&world.chips[tin].file).unwrap();
    routes.look_up(format!("198.51.{shard}.77").parse().unwrap(), 0)
}

/// Time goes on while all shards but one say that they are there.
fn go_on(world: &mut World, until: kernel::Time, silent: Option<u8>) {
    while world.now < until {
        for shard in (0..SHARDS).filter(|&shard| Some(shard) != silent) {
            world.constellation.hear(world.now, &Message::Alive { shard }.encode());
        }
        (0..50).for_each(|_| world.step());
    }
}

fn check(part: Part) {
    let mut world = World::new(&Shape::TINY, 11);
    world.settle();
    for shard in 0..SHARDS {
        let prefix = format!("198.51.{shard}.0/24").parse().unwrap();
        let members = vec![(u16::from(shard) + 2, 1)];
        let message = Message::Reach { shard, version: 1, prefix, members };
        world.constellation.hear(world.now, &message.encode());
    }
    world.settle();
    world.watch = Some(check_groups);
    world.watch_step = Some(watch_results);
    let (files, written) = (world.files(), world.written);
    match part {
        Part::Instance(app, number) => world.constellation.stop((app, number)),
        Part::Base(copy) => world.constellation.stop_base(copy),
        Part::Shard(_) => {}
    }
    let silent = if let Part::Shard(shard) = part { Some(shard) } else { None };
    // Longer than a lease, and than what a silent shard has said stands.
    let until = world.now + HOLD + Span::from_us(2_000_000);
    go_on(&mut world, until, silent);
    world.settle();
    if let Some(shard) = silent {
        // It has lost its own routes, and no others.
        for other in 0..SHARDS {
            let is_there = matches!(reached(&world, 9, other), Found::Group(_));
            assert_eq!(is_there, other != shard, "{part:?}: shard {other}");
        }
    } else {
        assert_eq!(world.written, written, "{part:?}: something was programmed");
        assert!(world.files() == files, "{part:?}: chips have changed");
    }
    // A link dies: that is handled, with the part still away.
    world.set_link(3, Admin::Off);
    world.settle();
    audit(&world, &world.condition(&[], &[(3, State::Dead)]));
    assert!(world.written > written);
}

#[test]
fn slow_i79_a_single_failure_changes_nothing_and_the_next_event_is_handled() {
    let instances =
        Application::ALL.into_iter().flat_map(|app| (0..INSTANCES).map(move |i| (app, i)));
    instances.for_each(|(app, number)| check(Part::Instance(app, number)));
    (0..2).for_each(|copy| check(Part::Base(copy)));
    (0..SHARDS).for_each(|shard| check(Part::Shard(shard)));
}
