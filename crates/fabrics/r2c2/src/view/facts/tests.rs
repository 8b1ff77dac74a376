//! Views against what sources do, by bytes alone, in any order; held together and one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;

use kernel::Span;
use proptest::prelude::*;

use super::*;
use crate::routing::Protocol;
use crate::view::Names;
use crate::wire::{self, Kbps, Message, Tail};

/// Nodes of the random rack. Nodes 0 and 1 have flows.
const NODES: u32 = 5;
/// How far sources are ahead of others at most, in numbers of a name: less than half of what
/// these tell apart.
const LAG_MAX: u8 = 5;

fn node(index: u32) -> NodeId {
    NodeId::new(index)
}

/// A flow as its source sees it: index and demand.
type Flow = (NodeId, NodeId, u8, u32);

/// Sources, and the views of all nodes: held together, and each apart.
struct Rack {
    names: Names,
    together: Facts,
    apart: Vec<Facts>,
    flows: Vec<Flow>,
    /// Copies under way, and for whom.
    copies: Vec<(Vec<u8>, NodeId)>,
    /// What each node has heard: bytes that come again are left to [`crate::view::Recent`].
    heard: Vec<BTreeSet<Vec<u8>>>,
    /// As nodes that are held together share it.
    hints: BTreeMap<Vec<u8>, Hint>,
    now: Time,
    /// The last announcement of each name.
    numbers: BTreeMap<(NodeId, NodeId, u8), u8>,
}

impl Rack {
    fn new() -> Self {
        Self {
            names: Names::new(NODES, 1, false),
            together: Facts::new(NODES, true),
            apart: vec![Facts::new(NODES, true); NODES as usize],
            flows: Vec::new(),
            copies: Vec::new(),
            heard: vec![BTreeSet::new(); NODES as usize],
            hints: BTreeMap::new(),
            now: Time::ZERO,
            numbers: BTreeMap::new(),
        }
    }

    /// A node hears these bytes, in both ways alike.
    fn hear(&mut self, at: NodeId, bytes: &[u8]) {
        self.now += Span::from_us(1);
        let apart = &mut self.apart[at.index()];
        if !self.heard[at.index()].insert(bytes.to_vec()) {
            return;
        }
        match wire::tail::decode(bytes, NODES).unwrap().0 {
            Message::Announcement(said) => {
                let hint = self.hints.entry(bytes.to_vec()).or_default();
                self.together.hear(at, &said, self.now, hint);
                apart.hear(at, &said, self.now, &mut Hint::default());
            }
            Message::Anew(said) => {
                self.together.hear_anew(at, &said);
                apart.hear_anew(at, &said);
            }
            other => panic!("{other:?} was not said"),
        }
    }

    fn spread(&mut self, source: NodeId, bytes: &[u8]) {
        // Numbers come round: what was heard long ago is no reason to pass over what is said now.
        for heard in &mut self.heard {
            heard.remove(bytes);
        }
        self.hear(source, bytes);
        let others = (0..NODES).map(node).filter(|&other| other != source);
        self.copies.extend(others.map(|other| (bytes.to_vec(), other)));
    }

    fn say(&mut self, event: Event, number: u8, (source, destination, index, demand): Flow) {
        let allocation = Allocation {
            demand: Kbps::new(demand),
            weight: NonZeroU8::MIN,
            priority: 0,
            protocol: Protocol::Rps,
        };
        let round = self.names.begun(source);
        let (way, news) = (wire::way(0, 0, round), allocation);
        let said = Announcement {
            event,
            number,
            way,
            source,
            destination,
            index,
            round,
            allocation: news,
        };
        let bytes = Tail { round, ..Tail::default() }.encode(&said.encode());
        self.spread(source, &bytes);
    }

    fn start(&mut self, source: NodeId, demand: u32) {
        let destination = node(4);
        if demand.is_multiple_of(2) {
            // What is over has rested: a name is used again.
            self.now += Span::from_us(20_000);
        }
        let (index, number) = self.names.start((source, destination), 0, self.now).unwrap();
        self.numbers.insert((source, destination, index), number);
        let flow = (source, destination, index, demand);
        self.flows.push(flow);
        self.say(Event::Start, number, flow);
    }

    fn go_on(&mut self, at: usize, event: Event, demand: u32) {
        let (source, destination, index, _) = self.flows[at];
        let number = self.names.go_on((source, destination, index), event, self.now);
        self.numbers.insert((source, destination, index), number);
        self.flows[at].3 = demand;
        self.say(event, number, self.flows[at]);
        if event == Event::Finish {
            self.flows.swap_remove(at);
        }
    }

    fn begin_anew(&mut self, source: NodeId) {
        let number = self.names.begin_anew(source);
        self.spread(source, &Anew { source, way: 0, number }.encode());
        for at in (0..self.flows.len()).filter(|&at| self.flows[at].0 == source).collect::<Vec<_>>()
        {
            self.go_on(at, Event::Start, self.flows[at].3);
        }
    }

    /// How far behind its source the oldest copy under way is, in numbers.
    fn lag(&self) -> u8 {
        let of_copy =
            |(bytes, _): &(Vec<u8>, NodeId)| match wire::tail::decode(bytes, NODES).unwrap().0 {
                Message::Announcement(said) => {
                    let number = self.numbers[&(said.source, said.destination, said.index)];
                    number.wrapping_sub(said.number) % MODULUS
                }
                // Rounds are told apart, however many there are.
                Message::Anew(_) => 0,
                other => panic!("{other:?} was not said"),
            };
        self.copies.iter().map(of_copy).max().unwrap_or(0)
    }

    /// A node knows of flows for as long, whoever's view is held with its own.
    fn check_times(&self, at: NodeId) {
        let times = |facts: &Facts| {
            let time =
                |id: FactId| (facts.fact(id).course, facts.fact(id).index, facts.since(at, id));
            let mut times: Vec<_> = facts.known(at).map(time).collect();
            times.sort_unstable();
            times
        };
        assert_eq!(times(&self.together), times(&self.apart[at.index()]), "{at}");
    }

    fn known(facts: &Facts, at: NodeId) -> Vec<Flow> {
        let flow = |id| {
            let Fact { course, terms, index, .. } = *facts.fact(id);
            let demand = terms.demand.map_or(0, |demand| (demand.as_bps() / 1_000) as u32);
            (course.source, course.destination, index, demand)
        };
        let mut known: Vec<Flow> = facts.known(at).map(flow).collect();
        known.sort_unstable();
        known
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start(u32),
    Change(prop::sample::Index),
    Finish(prop::sample::Index),
    Anew(u32),
    Deliver(prop::sample::Index),
    Lose(prop::sample::Index),
    Repeat(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        2 => (0u32..2).prop_map(Step::Start),
        1 => index().prop_map(Step::Change),
        2 => index().prop_map(Step::Finish),
        1 => (0u32..2).prop_map(Step::Anew),
        10 => index().prop_map(Step::Deliver),
        1 => index().prop_map(Step::Lose),
        1 => index().prop_map(Step::Repeat),
    ]
}

proptest! {
    /// Once all has spread, whatever overtook what and whatever came twice, all nodes know the flows that
    /// there are, as they are, whoever's views are held together; and nothing is kept of those that ended.
    /// What was lost is made good when its source begins anew.
    #[test]
    fn facts_from_bytes_come_to_be_the_truth(steps in prop::collection::vec(step(), 1..300)) {
        let mut rack = Rack::new();
        let mut has_lost = false;
        let mut demand = 0;
        for step in steps {
            demand += 1;
            let may_say = rack.lag() < LAG_MAX;
            let count = rack.flows.len();
            match step {
                Step::Start(source) if may_say => rack.start(node(source), demand),
                Step::Change(at) if may_say && count > 0 => {
                    rack.go_on(at.index(count), Event::Demand, demand);
                }
                Step::Finish(at) if may_say && count > 0 => {
                    rack.go_on(at.index(count), Event::Finish, demand);
                }
                Step::Anew(source) if may_say => rack.begin_anew(node(source)),
                Step::Deliver(at) if !rack.copies.is_empty() => {
                    let at = at.index(rack.copies.len());
                    let (bytes, to) = rack.copies.swap_remove(at);
                    rack.hear(to, &bytes);
                }
                Step::Lose(at) if !rack.copies.is_empty() => {
                    has_lost = true;
                    let at = at.index(rack.copies.len());
                    rack.copies.swap_remove(at);
                }
                Step::Repeat(at) if !rack.copies.is_empty() => {
                    let (bytes, to) = rack.copies[at.index(rack.copies.len())].clone();
                    rack.hear(to, &bytes);
                }
                _ => {}
            }
            for at in (0..NODES).map(node) {
                let apart = Rack::known(&rack.apart[at.index()], at);
                prop_assert_eq!(Rack::known(&rack.together, at), apart, "{}", at);
                rack.check_times(at);
            }
            rack.together.check().unwrap();
        }
        if has_lost {
            (0..2).for_each(|source| rack.begin_anew(node(source)));
        }
        for (bytes, to) in std::mem::take(&mut rack.copies) {
            rack.hear(to, &bytes);
        }
        rack.flows.sort_unstable();
        for at in (0..NODES).map(node) {
            prop_assert_eq!(Rack::known(&rack.together, at), rack.flows.clone(), "{}", at);
            prop_assert_eq!(rack.apart[at.index()].live(), rack.flows.len());
        }
        prop_assert_eq!(rack.together.live(), rack.flows.len());
        if !has_lost {
            prop_assert_eq!(rack.together.waiting(), 0);
        }
    }
}

/// The end of a flow comes before its start, before a change, and before both in either order; so does the
/// next flow of the same name.
#[test]
fn what_overtakes_is_put_in_order_whatever_the_order() {
    let (source, there) = (node(0), node(2));
    let mut said = Rack::new();
    said.start(source, 1);
    said.go_on(0, Event::Demand, 2);
    said.go_on(0, Event::Finish, 2);
    // The next of that name, long after.
    said.now += Span::from_us(20_000);
    said.start(source, 3);
    let bytes: Vec<_> = said.copies.iter().filter(|(_, to)| *to == there).cloned().collect();
    assert_eq!(bytes.len(), 4);
    for order in 0..256 {
        let order = [0, 1, 2, 3].map(|place| order >> (2 * place) & 3);
        if (0..4).any(|one| !order.contains(&one)) {
            continue;
        }
        let mut facts = Facts::new(NODES, false);
        for at in order {
            let Message::Announcement(said) = wire::tail::decode(&bytes[at].0, NODES).unwrap().0
            else {
                panic!("a flow is announced");
            };
            facts.hear(there, &said, Time::ZERO, &mut Hint::default());
        }
        assert_eq!(Rack::known(&facts, there), said.flows, "{order:?}");
        assert_eq!((facts.live(), facts.waiting()), (1, 0), "{order:?}");
    }
}

#[test]
fn who_was_out_of_reach_is_heard_again_whatever_his_round() {
    for rounds in 1..2 * u32::from(MODULUS) {
        let (source, there) = (node(0), node(2));
        let mut rack = Rack::new();
        rack.start(source, 1);
        rack.copies.drain(..).for_each(drop);
        rack.together.lose(there, source);
        rack.apart[2].lose(there, source);
        (0..rounds).for_each(|_| rack.begin_anew(source));
        // The last announcement is the only one that comes through.
        let (bytes, _) = rack.copies.iter().rfind(|(_, to)| *to == there).unwrap().clone();
        rack.hear(there, &bytes);
        for facts in [&rack.together, &rack.apart[2]] {
            assert_eq!(Rack::known(facts, there), rack.flows, "{rounds} rounds");
        }
    }
}
