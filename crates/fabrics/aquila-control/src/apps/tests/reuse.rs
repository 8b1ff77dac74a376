//! An entry for flows that another flow had: a flow manager, a front end and a chip.

use aquila::pipeline::routes::{Found, Next};
use aquila::tables::NONE;
use aquila::topology::Shape;
use kernel::{Span, Time};

use super::world::clique;
use crate::apps::flow_manager::{FlowManager, Output as Managed};
use crate::apps::front_end::{FrontEnd, Output, Settings};
use crate::apps::rows::{BatchRow, IpFlow, Outcome, ResultRow, encode_members, encode_prefix, key};
use crate::apps::session::{Over, Session};
use crate::expand::ip;
use crate::flash::Flash;
use crate::memory::Memory;
use crate::nib::{Nib, Table, Write};
use crate::registers::file::RegisterFile;
use crate::rpc::Agent;

const TIN: u16 = 3;

/// Who is told what, until nobody has anything to say.
struct Chain {
    now: Time,
    nib: Nib,
    manager: FlowManager,
    front_end: FrontEnd,
    agent: Agent,
    file: RegisterFile,
    flash: Flash,
    /// Results in their order.
    results: Vec<(Table, Outcome)>,
}

impl Chain {
    fn new() -> Self {
        let mut front_end = FrontEnd::new(clique(&Shape::TINY), Settings::default());
        front_end.load(&Nib::new().since(0, &FrontEnd::TABLES));
        let mut chain = Self {
            now: Time::ZERO,
            nib: Nib::new(),
            manager: FlowManager::new(1),
            front_end,
            agent: Agent::new(&Memory::default()).unwrap(),
            file: RegisterFile::new(),
            flash: Flash::default(),
            results: Vec::new(),
        };
        let up = Session::Up { tin: TIN, over: Over::Tcp, boot: 1, firmware: 1 };
        let mut out = Vec::new();
        chain.front_end.session(chain.now, up, &mut out);
        chain.run(Vec::new(), out);
        chain
    }

    fn batch(&mut self, number: u64, writes: &[Write]) {
        let row = BatchRow { number, ..BatchRow::default() };
        let row = Write::set(Table::Batch, &[], &row.encode());
        self.nib.apply(number, &[writes, &[row]].concat()).unwrap();
        let (seen, mut out) = (self.manager.seen(), Vec::new());
        self.manager.learn(self.now, self.nib.since(seen, &FlowManager::TABLES), &mut out);
        self.run(out, Vec::new());
    }

    fn run(&mut self, mut managed: Vec<Managed>, mut asked: Vec<Output>) {
        for _ in 0..50 {
            for output in std::mem::take(&mut managed) {
                match output {
                    Managed::Program(program) => {
                        self.front_end.program(self.now, program, &mut asked);
                    }
                    Managed::Write(writes) => {
                        self.nib.write(&writes).unwrap();
                        self.manager.written(self.now, &mut managed);
                    }
                }
            }
            for output in std::mem::take(&mut asked) {
                match output {
                    Output::Request(request) => {
                        let (file, flash) = (&mut self.file, &mut self.flash);
                        let answer = self.agent.receive(self.now, file, flash, &request.bytes);
                        let bytes = answer.unwrap().to_vec();
                        let answer = Session::Answer { tin: TIN, bytes };
                        self.front_end.session(self.now, answer, &mut asked);
                    }
                    Output::Results(results) => {
                        self.results.extend(results.results.iter().map(|(k, _, o)| (k.0, *o)));
                        self.manager.results(self.now, results, &mut managed);
                    }
                    _ => {}
                }
            }
            self.now += Span::from_us(100_000);
            self.front_end.tick(self.now, &mut asked);
            self.manager.tick(self.now, &mut managed);
        }
    }

    fn result(&self, row: &[u8]) -> Option<Outcome> {
        let key = [&[Table::IpFlow as u8][..], row].concat();
        let (_, value) = self.nib.get(Table::ProgrammingResult, &key)?;
        ResultRow::decode(&value).map(|result| result.outcome)
    }
}

/// Of a TiN that was away two batches may come at once: one has taken a flow out, the other has given its entry to another
/// flow. What is taken out comes last (M705), and has the entry until then.
#[test]
fn m705_i78_a_flow_that_finds_its_entry_taken_has_it_when_the_other_is_gone() {
    let flow = |prefix: &str| key(TIN, &encode_prefix(prefix.parse().unwrap()));
    let (old, new) = (flow("203.0.0.0/24"), flow("203.0.1.0/24"));
    let row = IpFlow { index: 9, next: Next::Group(7) }.encode();
    let mut chain = Chain::new();
    let group = key(TIN, &7u16.to_be_bytes());
    let members = encode_members(&[(64, 1)]);
    let set = |key: &[u8]| Write::set(Table::IpFlow, key, &row);
    // A TiN of which nobody has said what its ports are has no tables.
    let classes = Write::set(Table::PortClass, &key(TIN, &[]), &[NONE; 64]);
    chain.batch(1, &[classes, Write::set(Table::Group, &group, &members), set(&old)]);
    assert_eq!(chain.result(&old), Some(Outcome::Done));
    chain.results.clear();
    chain.batch(2, &[Write::delete(Table::IpFlow, &old), set(&new)]);
    let expected = [Outcome::Failed, Outcome::Done, Outcome::Done];
    assert_eq!(chain.results, expected.map(|outcome| (Table::IpFlow, outcome)));
    assert_eq!((chain.result(&old), chain.result(&new)), (None, Some(Outcome::Done)));
    let routes = ip::routes(&chain.file).unwrap();
    let found = ["203.0.0.9", "203.0.1.9"].map(|ip| routes.look_up(ip.parse().unwrap(), 0));
    assert!(matches!(found, [Found::Nothing, Found::Group(_)]), "{found:?}");
}
