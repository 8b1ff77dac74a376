//! Views against sets kept by hand, under any order of what nodes hear.

use proptest::prelude::*;
use rack::NodeId;

use super::*;

/// Nodes of the random rack.
const NODES: u32 = 5;

fn node(index: u32) -> NodeId {
    NodeId::new(index)
}

/// A copy of a broadcast reaches a node that sends it no further.
fn hear(views: &mut Views<u8>, broadcasts: &mut Broadcasts, id: u32, at: u32) {
    broadcasts.get(id).event.clone().enter(at, views);
    broadcasts.copied(id, 0, views);
}

/// Node 0 says something to all others.
fn say(views: &mut Views<u8>, broadcasts: &mut Broadcasts, event: Event, nodes: u32) -> u32 {
    let broadcast = Broadcast { event: event.clone(), source: node(0), tree: 0, map: 0, wire: 16 };
    let id = broadcasts.send(broadcast, nodes - 1, views);
    event.enter(0, views);
    id
}

#[test]
fn a_node_knows_what_it_has_heard_and_no_more() {
    let (mut views, mut broadcasts) = (Views::new(3), Broadcasts::default());
    let flow = views.add(node(0), node(2), 7);
    let start = say(&mut views, &mut broadcasts, Event::Start(flow), 3);
    assert_eq!([0, 1, 2].map(|at| views.knows(at, flow)), [true, false, false]);
    hear(&mut views, &mut broadcasts, start, 2);
    assert_eq!([0, 1, 2].map(|at| views.knows(at, flow)), [true, false, true]);
    assert_eq!(views.known(2).collect::<Vec<_>>(), [flow]);
    assert_eq!(views.known(1).count(), 0);
    assert_eq!(views.record(flow).allocation, 7);
}

#[test]
fn an_end_that_overtakes_its_beginning_leaves_nothing_behind() {
    let (mut views, mut broadcasts) = (Views::new(2), Broadcasts::default());
    let flow = views.add(node(0), node(1), 0);
    let start = say(&mut views, &mut broadcasts, Event::Start(flow), 2);
    let finish = say(&mut views, &mut broadcasts, Event::Finish(flow), 2);
    hear(&mut views, &mut broadcasts, finish, 1);
    assert!(!views.knows(1, flow));
    hear(&mut views, &mut broadcasts, start, 1);
    assert!(!views.knows(1, flow));
    assert_eq!((views.live(), broadcasts.under_way()), (0, 0));
    // Its place serves another, of which nobody knows.
    assert_eq!(views.add(node(1), node(0), 0), flow);
    assert_eq!([0, 1].map(|at| views.known(at).count()), [0, 0]);
}

/// Node 0 says something, of which a copy goes to each other node.
fn spread(
    views: &mut Views<u8>,
    broadcasts: &mut Broadcasts,
    copies: &mut Vec<(u32, u32)>,
    event: Event,
) {
    let id = say(views, broadcasts, event, NODES);
    copies.extend((1..NODES).map(|at| (id, at)));
}

/// Node 0 announces all its flows again.
fn anew(
    views: &mut Views<u8>,
    broadcasts: &mut Broadcasts,
    copies: &mut Vec<(u32, u32)>,
    flows: &mut [RecordId],
) {
    let round = views.begin_round(node(0));
    let known: Vec<u8> = flows.iter().map(|&flow| views.record(flow).allocation).collect();
    for (flow, allocation) in flows.iter_mut().zip(known) {
        *flow = views.add(node(0), node(1), allocation);
        spread(views, broadcasts, copies, Event::Start(*flow));
    }
    spread(views, broadcasts, copies, Event::Anew(node(0), round));
}

/// What happens in a random rack: node 0 starts, changes and ends flows, or announces them all again,
/// and each broadcast reaches each other node at some time, perhaps twice, or is lost.
#[derive(Clone, Debug)]
enum Step {
    Start,
    Change(prop::sample::Index),
    Finish(prop::sample::Index),
    Anew,
    Deliver(prop::sample::Index),
    Lose(prop::sample::Index),
    Repeat(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        2 => Just(Step::Start),
        1 => index().prop_map(Step::Change),
        1 => index().prop_map(Step::Finish),
        1 => Just(Step::Anew),
        8 => index().prop_map(Step::Deliver),
        1 => index().prop_map(Step::Lose),
        1 => index().prop_map(Step::Repeat),
    ]
}

proptest! {
    /// Once all broadcasts have spread, whatever overtook what and whatever came twice, all nodes
    /// know the flows that there are, as they are; and nothing is kept of those that ended. What was
    /// lost on the way is made good when the source begins anew.
    #[test]
    fn all_views_come_to_be_the_truth(steps in prop::collection::vec(step(), 1..300)) {
        let (mut views, mut broadcasts) = (Views::new(NODES), Broadcasts::default());
        let mut flows: Vec<RecordId> = Vec::new();
        let mut copies: Vec<(u32, u32)> = Vec::new();
        let mut has_lost = false;
        for step in steps {
            match step {
                Step::Start => {
                    let flow = views.add(node(0), node(1), 0);
                    flows.push(flow);
                    spread(&mut views, &mut broadcasts, &mut copies, Event::Start(flow));
                }
                Step::Change(at) if !flows.is_empty() => {
                    let at = at.index(flows.len());
                    let changed = views.add(node(0), node(1), 1);
                    let old = std::mem::replace(&mut flows[at], changed);
                    spread(&mut views, &mut broadcasts, &mut copies, Event::Change(old, changed));
                }
                Step::Finish(at) if !flows.is_empty() => {
                    let flow = flows.swap_remove(at.index(flows.len()));
                    spread(&mut views, &mut broadcasts, &mut copies, Event::Finish(flow));
                }
                Step::Anew => {
                    has_lost = false;
                    anew(&mut views, &mut broadcasts, &mut copies, &mut flows);
                }
                Step::Lose(at) if !copies.is_empty() => {
                    has_lost = true;
                    let (id, _) = copies.swap_remove(at.index(copies.len()));
                    broadcasts.copied(id, 0, &mut views);
                }
                Step::Deliver(at) if !copies.is_empty() => {
                    let (id, to) = copies.swap_remove(at.index(copies.len()));
                    hear(&mut views, &mut broadcasts, id, to);
                }
                Step::Repeat(at) if !copies.is_empty() => {
                    let (id, to) = copies[at.index(copies.len())];
                    broadcasts.get(id).event.clone().enter(to, &mut views);
                }
                _ => {}
            }
        }
        if has_lost {
            anew(&mut views, &mut broadcasts, &mut copies, &mut flows);
        }
        for (id, to) in copies {
            hear(&mut views, &mut broadcasts, id, to);
        }
        flows.sort_unstable();
        for at in 0..NODES {
            prop_assert_eq!(views.known(at).collect::<Vec<_>>(), flows.clone());
        }
        prop_assert_eq!((views.live(), broadcasts.under_way()), (flows.len(), 0));
    }
}
