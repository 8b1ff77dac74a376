//! Answers that are none, and two leaders: refused and counted, and nothing of them is done.

use aquila::tables::condition::State;
use aquila::topology::Shape;
use kernel::{Span, Time};

use super::ends::audit;
use super::world::{World, clique};
use crate::apps::constellation::{Job, Message};
use crate::apps::election::Application;
use crate::apps::front_end::{FrontEnd, Output, Settings};
use crate::apps::rows::Admin;
use crate::apps::session::{Over, Session};
use crate::flash::Flash;
use crate::memory::Memory;
use crate::nib::Nib;
use crate::registers::file::RegisterFile;
use crate::rpc::{Agent, Answer};

/// The request of outputs that are one request.
#[track_caller]
fn request(out: &[Output]) -> &[u8] {
    let requests = out.iter().filter_map(|output| match output {
        Output::Request(request) => Some(&request.bytes[..]),
        _ => None,
    });
    let all: Vec<_> = requests.collect();
    assert_eq!(all.len(), 1, "{out:?}");
    all[0]
}

#[test]
fn m706_i73_answers_that_are_none_are_counted_and_the_right_one_still_counts() {
    let mut front_end = FrontEnd::new(clique(&Shape::TINY), Settings::default());
    front_end.load(&Nib::new().since(0, &FrontEnd::TABLES));
    let mut out = Vec::new();
    let now = Time::ZERO;
    front_end.session(now, Session::Up { tin: 4, over: Over::Tcp, boot: 1, firmware: 1 }, &mut out);
    let mut agent = Agent::new(&Memory::default()).unwrap();
    let right = agent
        .receive(now, &mut RegisterFile::new(), &mut Flash::default(), request(&out))
        .unwrap()
        .to_vec();
    let decoded = Answer::decode(&right).unwrap();
    let mut wrong: Vec<Vec<u8>> = (0..64).map(|length| right[..length].to_vec()).collect();
    // Of another request; of one item less; without outcomes; of another TiN than has a session.
    let sequence = decoded.sequence + 1;
    wrong.push(Answer { sequence, ..decoded.clone() }.encode());
    let outcomes = decoded.outcomes[1..].to_vec();
    wrong.push(Answer { outcomes, ..decoded.clone() }.encode());
    wrong.push(Answer { outcomes: Vec::new(), ..decoded }.encode());
    out.clear();
    for bytes in &wrong {
        front_end.session(now, Session::Answer { tin: 4, bytes: bytes.clone() }, &mut out);
    }
    front_end.session(now, Session::Answer { tin: 5, bytes: right.clone() }, &mut out);
    assert_eq!(front_end.counts().stray, wrong.len() as u64 + 1);
    assert_eq!(out, [], "something came of it");
    // No second request meanwhile: the first one is still under way (I73).
    front_end.tick(now, &mut out);
    assert_eq!(out, []);
    front_end.session(now, Session::Answer { tin: 4, bytes: right }, &mut out);
    assert_eq!(front_end.counts().stray, wrong.len() as u64 + 1);
    assert!(front_end.is_complete(4), "all registers are as nothing is wanted");
}

/// A leader's batch is on its way for so long that another instance takes over.
#[test]
fn m701_i72_i79_what_a_deposed_leader_has_sent_is_refused_and_counted() {
    let mut world = World::new(&Shape::TINY, 6);
    world.settle();
    let leader = |world: &World| world.constellation.leader(Application::RoutingEngine);
    let (number, term) = leader(&world).unwrap();
    let old = (Application::RoutingEngine, number);
    world.set_link(3, Admin::Off);
    let is_batch = |message: &Message| matches!(message, Message::Write { from, job: Job::Batch(..), .. } if *from == old);
    let is_old = |message: &Message| match message {
        Message::News(name) => *name == old,
        Message::Write { from, .. } => *from == old,
        Message::Written { to, .. } => *to == old,
        _ => false,
    };
    let deliver = |world: &mut World, which: &dyn Fn(&Message) -> bool| {
        while let Some(at) = world.constellation.messages().iter().position(which) {
            world.constellation.deliver(world.now, at);
        }
        world.now += Span::from_us(20_000);
        world.constellation.tick(world.now);
    };
    let find = |world: &World| world.constellation.messages().iter().position(is_batch);
    while find(&world).is_none() {
        deliver(&mut world, &|message| !is_batch(message));
    }
    // Its batch, and all else from it and to it, is held up.
    while leader(&world).is_none_or(|(leads, _)| leads == number) {
        deliver(&mut world, &|message| !is_old(message));
    }
    assert!(leader(&world).is_some_and(|(_, next)| next > term));
    let (base, counts) =
        (world.constellation.base().unwrap().clone(), world.constellation.counts());
    let at = find(&world).unwrap();
    world.constellation.deliver(world.now, at);
    let after = world.constellation.base().unwrap();
    assert_eq!((after.version(), after.batch()), (base.version(), base.batch()));
    assert_eq!(world.constellation.counts().deposed, counts.deposed + 1);
    // What it wanted is done by the other.
    world.settle();
    audit(&world, &world.condition(&[], &[(3, State::Dead)]));
}
