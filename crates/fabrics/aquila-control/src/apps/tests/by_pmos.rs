//! A target's first programming, while more and more is wanted of it: a front end and a chip (M811).

use std::collections::VecDeque;

use aquila::pipeline::routes::Next;
use aquila::tables::components;
use aquila::tables::flows::{Flow, InputClass};
use aquila::topology::Shape;
use kernel::{Span, Time};

use super::world::clique;
use crate::apps::front_end::{FrontEnd, Operation, Output, Program, Settings};
use crate::apps::rows::{IpFlow, Outcome, encode_flows, encode_members, encode_prefix, key};
use crate::apps::session::{Over, Progress, Session};
use crate::flash::Flash;
use crate::memory::Memory;
use crate::nib::{Nib, Table};
use crate::registers::file::RegisterFile;
use crate::registers::map::{GROUP_SIZE, ROUTE};
use crate::rpc::Agent;

const TIN: u16 = 3;

/// A front end, and a chip that answers when it is told to.
struct Target {
    now: Time,
    /// How long a request takes.
    takes: Span,
    front_end: FrontEnd,
    agent: Agent,
    file: RegisterFile,
    requests: VecDeque<Vec<u8>>,
    version: u64,
    /// What was said of rows, and whether it was said that there is enough.
    results: Vec<(Table, u16, Outcome)>,
    versions: Vec<u64>,
    has_enough: bool,
}

impl Target {
    fn new() -> Self {
        let mut front_end = FrontEnd::new(clique(&Shape::TINY), Settings::default());
        front_end.load(&Nib::new().since(0, &FrontEnd::TABLES));
        Self {
            now: Time::ZERO,
            takes: Span::from_us(1_000_000),
            front_end,
            agent: Agent::new(&Memory::default()).unwrap(),
            file: RegisterFile::new(),
            requests: VecDeque::new(),
            version: 0,
            results: Vec::new(),
            versions: Vec::new(),
            has_enough: false,
        }
    }

    fn connect(&mut self, over: Over) {
        self.agent.begin();
        self.requests.clear();
        let mut out = Vec::new();
        let up = Session::Up { tin: TIN, over, boot: 1, firmware: 1 };
        self.front_end.session(self.now, up, &mut out);
        self.take(out);
    }

    fn want(&mut self, rows: &[(Table, Vec<u8>, Vec<u8>)]) {
        self.version += 1;
        let version = self.version;
        let operation = |(table, place, value): &(Table, Vec<u8>, Vec<u8>)| Operation {
            key: (*table, key(TIN, place)),
            version,
            value: Some(value.clone()),
        };
        let operations = rows.iter().map(operation).collect();
        let mut out = Vec::new();
        self.front_end.program(self.now, Program { term: 1, tin: TIN, operations }, &mut out);
        self.take(out);
    }

    /// The chip answers a request, if there is one.
    fn answer(&mut self) -> bool {
        let Some(request) = self.requests.pop_front() else { return false };
        self.now += self.takes;
        let answer = self.agent.receive(self.now, &mut self.file, &mut Flash::default(), &request);
        let bytes = answer.unwrap().to_vec();
        let mut out = Vec::new();
        self.front_end.session(self.now, Session::Answer { tin: TIN, bytes }, &mut out);
        self.take(out);
        true
    }

    fn take(&mut self, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Request(request) => self.requests.push_back(request.bytes),
                Output::Progress(Progress::Enough { .. }) => self.has_enough = true,
                Output::Results(results) => {
                    let number = |place: &[u8]| place[2..].try_into().map_or(0, u16::from_be_bytes);
                    let said = results.results.iter().map(|(k, _, o)| (k.0, number(&k.1), *o));
                    self.results.extend(said);
                    self.versions.extend(results.results.iter().map(|result| result.1));
                }
                _ => {}
            }
        }
    }

    fn has_group(&self, group: u16) -> bool {
        self.file.get(GROUP_SIZE, [group.into()]) > 0
    }

    fn has_others_routes(&self) -> bool {
        let per_port: u32 = ROUTE.register().dimensions[1..].iter().product();
        let external = u32::from(Shape::TINY.external_ports()) * per_port;
        let written = self.file.differing(&RegisterFile::new(), ROUTE.register());
        written.iter().any(|&at| at < external)
    }
}

fn group(number: u16) -> (Table, Vec<u8>, Vec<u8>) {
    (Table::Group, number.to_be_bytes().to_vec(), encode_members(&[(64, 1)]))
}

fn flow(prefix: &str, index: u16, group: u16) -> (Table, Vec<u8>, Vec<u8>) {
    let row = IpFlow { index, next: Next::Group(group) };
    (Table::IpFlow, encode_prefix(prefix.parse().unwrap()).to_vec(), row.encode().to_vec())
}

/// Ports of two classes, each with a way to everywhere by one port: cells of its own endpoints, and those of others.
fn cells() -> Vec<(Table, Vec<u8>, Vec<u8>)> {
    let world = clique(&Shape::TINY);
    let class = |port| world.class(TIN, port).map_or(crate::apps::rows::NONE, |c| c.index() as u8);
    let classes: Vec<u8> = (0..64).map(class).collect();
    let flows = vec![Flow { minimal: 1, others: 0 }; usize::from(components(&Shape::TINY))];
    let row = |class: InputClass, rvc| {
        (Table::GnetFlow, vec![class.index() as u8, rvc], encode_flows(&flows))
    };
    let rows = [row(InputClass::Terminal, 0), row(InputClass::Global, 0)];
    [(Table::PortClass, Vec::new(), classes)].into_iter().chain(rows).collect()
}

#[test]
fn m811_by_pmos_what_was_begun_is_finished_and_the_rest_goes_over_tcp() {
    let mut target = Target::new();
    target.want(&[cells(), vec![group(7), flow("203.0.0.0/24", 9, 7)]].concat());
    target.connect(Over::Pmos);
    // Digests; a chip that has just started needs no more.
    assert!(target.answer());
    assert_eq!(target.requests.len(), 1, "the first request of what comes first is under way");
    // While it is, more is wanted.
    target.want(&[group(8), flow("203.0.1.0/24", 10, 8)]);
    assert!(!target.has_enough);
    assert!(target.answer());
    assert!(target.has_group(7) && !target.has_group(8));
    assert!(target.has_enough, "what was begun leads out");
    // What has come since is not said to be there; it is next.
    assert_eq!(target.results, [(Table::Group, 7, Outcome::Done)]);
    assert!(target.answer());
    assert!(target.has_group(8));
    assert_eq!(target.results[1..], [(Table::Group, 8, Outcome::Done)]);
    // Others' cells have no routes: they are for TCP.
    assert!(!target.answer() && !target.has_others_routes());
    target.connect(Over::Tcp);
    while target.answer() {}
    assert!(target.has_others_routes() && target.front_end.is_complete(TIN));
    let done = target.results.iter().filter(|(.., outcome)| *outcome == Outcome::Done).count();
    assert_eq!((done, target.results.len()), (7, 7), "{:?}", target.results);
}

/// A group that is changed while it is programmed is said to be there as it was: its flows need not wait for the change.
#[test]
fn m811_a_group_that_changes_meanwhile_is_there_as_it_was() {
    let mut target = Target::new();
    target.want(&[cells(), vec![group(7), group(8)]].concat());
    target.connect(Over::Pmos);
    assert!(target.answer());
    let (table, place, _) = group(7);
    target.want(&[(table, place, encode_members(&[(64, 1), (128, 1)])), group(9)]);
    assert!(target.answer());
    let first = [(Table::Group, 8, Outcome::Done), (Table::Group, 7, Outcome::Done)];
    assert_eq!((&target.results[..], &target.versions[..]), (&first[..], &[1, 1][..]));
    assert!(target.answer());
    let second = [(Table::Group, 7, Outcome::Done), (Table::Group, 9, Outcome::Done)];
    assert_eq!((&target.results[2..], &target.versions[2..]), (&second[..], &[2, 2][..]));
    assert!(!target.has_enough, "no flow leads out");
}

/// Where a request takes no time nobody is called before what is wanted by now is there, too.
#[test]
fn m811_what_takes_a_moment_is_begun_anew_before_a_call() {
    let mut target = Target::new();
    target.takes = Span::from_us(1_000);
    target.want(&[cells(), vec![group(7), flow("203.0.0.0/24", 9, 7)]].concat());
    target.connect(Over::Pmos);
    assert!(target.answer());
    target.want(&[group(8)]);
    assert!(target.answer() && !target.has_enough);
    assert!(target.answer() && target.has_enough && target.has_group(8));
}

/// Over TCP, where a request takes no minutes, what is wanted now comes at once.
#[test]
fn m811_over_tcp_what_is_wanted_now_comes_next() {
    let mut target = Target::new();
    target.want(&[cells(), vec![group(7), flow("203.0.0.0/24", 9, 7)]].concat());
    target.connect(Over::Tcp);
    assert!(target.answer());
    target.want(&[group(8), flow("203.0.1.0/24", 10, 8)]);
    assert!(target.answer() && !target.has_enough);
    assert_eq!(target.results, []);
    assert!(target.answer());
    let groups: Vec<_> = target.results.iter().filter(|result| result.0 == Table::Group).collect();
    assert_eq!(groups, [&(Table::Group, 7, Outcome::Done), &(Table::Group, 8, Outcome::Done)]);
}
