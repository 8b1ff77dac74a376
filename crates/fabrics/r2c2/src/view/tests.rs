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
    event.enter(0, views);
    let broadcast = Broadcast { event, source: node(0), tree: 0, wire: 16 };
    broadcasts.send(broadcast, nodes - 1, views)
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
    views.retire(flow);
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

/// What happens in a random rack: node 0 starts, changes and ends flows, and each broadcast reaches
/// each other node at some time, perhaps twice.
#[derive(Clone, Debug)]
enum Step {
    Start,
    Change(prop::sample::Index),
    Finish(prop::sample::Index),
    Deliver(prop::sample::Index),
    Repeat(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        2 => Just(Step::Start),
        1 => index().prop_map(Step::Change),
        1 => index().prop_map(Step::Finish),
        8 => index().prop_map(Step::Deliver),
        1 => index().prop_map(Step::Repeat),
    ]
}

proptest! {
    /// Once all broadcasts have spread, whatever overtook what and whatever came twice, all nodes
    /// know the flows that there are, as they are; and nothing is kept of those that ended.
    #[test]
    fn all_views_come_to_be_the_truth(steps in prop::collection::vec(step(), 1..300)) {
        let (mut views, mut broadcasts) = (Views::new(NODES), Broadcasts::default());
        let mut flows: Vec<RecordId> = Vec::new();
        let mut copies: Vec<(u32, u32)> = Vec::new();
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
                    views.retire(old);
                }
                Step::Finish(at) if !flows.is_empty() => {
                    let flow = flows.swap_remove(at.index(flows.len()));
                    spread(&mut views, &mut broadcasts, &mut copies, Event::Finish(flow));
                    views.retire(flow);
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
