//! One instance of an application: its part in the election, the application while it leads, and what it wants written.
//!
//! Models: Aquila §4.1 (M701). Whoever drives it tells it what has come and carries out what it wants: all instances around
//! one base in simulated time ([`super::constellation`]), or each in a process of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::{Span, Time};

use super::Clique;
use super::election::{Application, Election};
use super::flow_manager::{self, FlowManager};
use super::front_end::{self, FrontEnd, Program, Results, Settings};
use super::inter_block::{self, InterBlock};
use super::routing::{self, RoutingEngine};
use super::session::{Progress, Request, Session};
use crate::nib::{Fence, LAYOUT, Nib, Refused, Table, Write};

/// After how long without an answer of the base a write is said once more (our choice).
const AGAIN: Span = Span::from_us(1_000_000);

/// An instance of an application.
pub type Name = (Application, u8);

/// What an instance asks the base to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Job {
    /// The next batch.
    Batch(u64, Vec<Write>),
    /// Rows out of any sequence.
    Rows(Vec<Write>),
    /// Its application's lease.
    Lease(Write),
}

/// What an instance wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// By the base. What became of it is to be told with [`Instance::written`], unless it is a lease.
    Write {
        /// Larger than those before: an older one that comes later does not count.
        id: u64,
        /// What the writer takes itself for.
        fence: Option<Fence>,
        /// What to write.
        job: Job,
    },
    /// By the front end that leads.
    Program(Program),
    /// By the flow manager that leads.
    Results(Results),
    /// To a TiN.
    Request(Request),
    /// By the session manager.
    Progress(Progress),
    /// It leads from now on, and is the front end: sessions are to be opened for it.
    Leads,
    /// To a shard of the inter-block controllers.
    Tell(u8, Vec<u8>),
}

#[derive(Debug)]
enum App {
    RoutingEngine(Box<RoutingEngine>),
    FlowManager(Box<FlowManager>),
    FrontEnd(Box<FrontEnd>),
    InterBlock(Box<InterBlock>),
}

/// What applications want done.
#[derive(Default)]
struct Outputs {
    engine: Vec<routing::Output>,
    manager: Vec<flow_manager::Output>,
    front_end: Vec<front_end::Output>,
    inter_block: Vec<inter_block::Output>,
}

/// An instance.
#[derive(Debug)]
pub struct Instance {
    name: Name,
    clique: Arc<Clique>,
    settings: Settings,
    election: Election,
    /// The last version at which it has read the leases.
    seen: u64,
    /// While it leads.
    app: Option<(u64, App)>,
    queue: VecDeque<Job>,
    under_way: Option<(u64, Fence, Job, Time)>,
    /// The last number of a write.
    id: u64,
}

impl Instance {
    /// One that has just started, and follows. `id`: the last number that a former life of it gave to a write.
    #[must_use]
    pub fn new(now: Time, name: Name, clique: Arc<Clique>, settings: Settings, id: u64) -> Self {
        Self {
            name,
            clique,
            settings,
            election: Election::new(name.0, name.1, now),
            seen: 0,
            app: None,
            queue: VecDeque::new(),
            under_way: None,
            id,
        }
    }

    /// Which it is.
    #[must_use]
    pub fn name(&self) -> Name {
        self.name
    }

    /// Its term, while its application runs.
    #[must_use]
    pub fn leads(&self) -> Option<u64> {
        self.app.as_ref().map(|app| app.0)
    }

    /// The routing engine, if it is that and leads.
    #[must_use]
    pub fn routing_engine(&self) -> Option<&RoutingEngine> {
        match &self.app.as_ref()?.1 {
            App::RoutingEngine(app) => Some(app),
            _ => None,
        }
    }

    /// The flow manager, if it is that and leads.
    #[must_use]
    pub fn flow_manager(&self) -> Option<&FlowManager> {
        match &self.app.as_ref()?.1 {
            App::FlowManager(app) => Some(app),
            _ => None,
        }
    }

    /// The front end, if it is that and leads.
    #[must_use]
    pub fn front_end(&self) -> Option<&FrontEnd> {
        match &self.app.as_ref()?.1 {
            App::FrontEnd(app) => Some(app),
            _ => None,
        }
    }

    /// What speaks with the inter-block controllers, if it is that and leads.
    #[must_use]
    pub fn inter_block(&self) -> Option<&InterBlock> {
        match &self.app.as_ref()?.1 {
            App::InterBlock(app) => Some(app),
            _ => None,
        }
    }

    /// Whether it has not read what a base of this version holds.
    #[must_use]
    pub fn wants_news(&self, version: u64) -> bool {
        self.seen < version
    }

    /// Time goes on. `layout` is that of the base, as far as it is known: one of another layout is nobody's to lead.
    pub fn tick(&mut self, now: Time, layout: u32, out: &mut Vec<Output>) {
        let lease = if layout == LAYOUT { self.election.tick(now) } else { None };
        if let Some(write) = lease {
            self.id += 1;
            out.push(Output::Write { id: self.id, fence: None, job: Job::Lease(write) });
        }
        if self.election.term().is_none() {
            self.follow();
            return;
        }
        let mut wanted = Outputs::default();
        match &mut self.app {
            Some((_, App::FlowManager(app))) => app.tick(now, &mut wanted.manager),
            Some((_, App::FrontEnd(app))) => app.tick(now, &mut wanted.front_end),
            Some((_, App::InterBlock(app))) => app.tick(now, &mut wanted.inter_block),
            _ => {}
        }
        if let Some((id, fence, job, at)) = &mut self.under_way
            && now - *at >= AGAIN
        {
            *at = now;
            let (id, fence, job) = (*id, Some(fence.clone()), job.clone());
            out.push(Output::Write { id, fence, job });
        }
        self.put(now, wanted, out);
    }

    /// Time goes on for the front end, which has something to do then ([`FrontEnd::wakes_at`]).
    pub fn wake(&mut self, now: Time, out: &mut Vec<Output>) {
        let mut wanted = Outputs::default();
        if let Some((_, App::FrontEnd(app))) = &mut self.app {
            app.tick(now, &mut wanted.front_end);
        }
        self.put(now, wanted, out);
    }

    /// Whether it has nothing to write.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.under_way.is_none()
    }

    /// It reads what is new in the base. True: it leads from now on.
    pub fn news(&mut self, now: Time, base: &Nib, out: &mut Vec<Output>) -> bool {
        let leases = base.since(self.seen, &[Table::Lease]);
        self.seen = leases.version;
        for change in &leases.changes {
            self.election.learn(now, change);
        }
        let Some(term) = self.election.term() else {
            self.follow();
            return false;
        };
        let takes_over = self.leads() != Some(term);
        if takes_over {
            self.follow();
            self.take_over(term, base, out);
        }
        let mut wanted = Outputs::default();
        match self.app.as_mut().map(|app| &mut app.1) {
            // What it has written and not heard of yet it would read as others' rows.
            _ if self.under_way.is_some() => {}
            Some(App::RoutingEngine(app)) => {
                app.learn(&base.since(app.seen(), &RoutingEngine::TABLES), &mut wanted.engine);
            }
            Some(App::FlowManager(app)) => {
                let changes = base.since(app.seen(), &FlowManager::TABLES);
                app.learn(now, changes, &mut wanted.manager);
            }
            Some(App::FrontEnd(app)) => {
                let changes = base.since(app.seen(), &FrontEnd::NEWS);
                app.learn(now, &changes, &mut wanted.front_end);
            }
            Some(App::InterBlock(app)) => {
                app.learn(now, &base.since(app.seen(), &InterBlock::TABLES));
            }
            _ => {}
        }
        self.put(now, wanted, out);
        takes_over
    }

    fn take_over(&mut self, term: u64, base: &Nib, out: &mut Vec<Output>) {
        let app = match self.name.0 {
            Application::RoutingEngine => {
                App::RoutingEngine(RoutingEngine::new(self.clique.clone()).into())
            }
            Application::FlowManager => {
                let app = FlowManager::new(term)
                    .asking_again(self.settings.again * 2)
                    .waiting(self.settings.patience);
                App::FlowManager(app.into())
            }
            Application::FrontEnd => {
                let mut app = FrontEnd::new(self.clique.clone(), self.settings);
                app.load(&base.since(0, &FrontEnd::TABLES));
                out.push(Output::Leads);
                App::FrontEnd(app.into())
            }
            Application::InterBlock => App::InterBlock(InterBlock::new(self.clique.plan).into()),
        };
        self.app = Some((term, app));
    }

    /// The base has taken a write, or refused it. True: the application has to read the base again.
    pub fn written(
        &mut self,
        now: Time,
        id: u64,
        result: &Result<u64, Refused>,
        out: &mut Vec<Output>,
    ) -> bool {
        if self.under_way.as_ref().is_none_or(|(under_way, ..)| *under_way != id) {
            return false;
        }
        self.under_way = None;
        // What was held back meanwhile is read now.
        self.seen = self.seen.saturating_sub(1);
        let mut wanted = Outputs::default();
        if result.is_err() {
            // It was deposed, or it knows something wrong: it reads the base again, if it still leads.
            self.follow();
        } else if self.queue.is_empty() {
            match self.app.as_mut().map(|app| &mut app.1) {
                Some(App::RoutingEngine(app)) => app.written(&mut wanted.engine),
                Some(App::FlowManager(app)) => app.written(now, &mut wanted.manager),
                _ => {}
            }
        }
        self.put(now, wanted, out);
        result.is_err()
    }

    /// The flow manager has operations for the front end.
    pub fn program(&mut self, now: Time, program: Program, out: &mut Vec<Output>) {
        let mut wanted = Outputs::default();
        if let Some((_, App::FrontEnd(app))) = &mut self.app {
            app.program(now, program, &mut wanted.front_end);
        }
        self.put(now, wanted, out);
    }

    /// The front end has results for the flow manager.
    pub fn results(&mut self, now: Time, results: Results, out: &mut Vec<Output>) {
        let mut wanted = Outputs::default();
        if let Some((_, App::FlowManager(app))) = &mut self.app {
            app.results(now, results, &mut wanted.manager);
        }
        self.put(now, wanted, out);
    }

    /// Something has come of a session that was opened for this instance of the front end.
    pub fn session(&mut self, now: Time, event: Session, out: &mut Vec<Output>) {
        let mut wanted = Outputs::default();
        if let Some((_, App::FrontEnd(app))) = &mut self.app {
            app.session(now, event, &mut wanted.front_end);
        }
        self.put(now, wanted, out);
    }

    /// A shard of the inter-block controllers has said something.
    pub fn hear(&mut self, now: Time, bytes: &[u8], out: &mut Vec<Output>) {
        let mut wanted = Outputs::default();
        if let Some((_, App::InterBlock(app))) = &mut self.app {
            app.hear(now, bytes, &mut wanted.inter_block);
        }
        self.put(now, wanted, out);
    }

    /// Whoever stands beside the application has rows to write: the session manager, of the front end. They count if
    /// the instance leads.
    pub fn write(&mut self, now: Time, writes: Vec<Write>, out: &mut Vec<Output>) {
        if self.app.is_some() {
            self.push_rows(writes);
            self.put(now, Outputs::default(), out);
        }
    }

    /// Rows that nobody waits for: with others that have not been sent yet.
    fn push_rows(&mut self, writes: Vec<Write>) {
        match self.queue.back_mut() {
            Some(Job::Rows(rows)) => rows.extend(writes),
            _ => self.queue.push_back(Job::Rows(writes)),
        }
    }

    /// Does what its application wants.
    fn put(&mut self, now: Time, wanted: Outputs, out: &mut Vec<Output>) {
        for output in wanted.engine {
            self.queue.push_back(match output {
                routing::Output::Batch { number, writes } => Job::Batch(number, writes),
                routing::Output::Write(writes) => Job::Rows(writes),
            });
        }
        for output in wanted.manager {
            match output {
                flow_manager::Output::Program(program) => out.push(Output::Program(program)),
                flow_manager::Output::Write(writes) => self.queue.push_back(Job::Rows(writes)),
            }
        }
        for output in wanted.front_end {
            match output {
                front_end::Output::Request(request) => out.push(Output::Request(request)),
                front_end::Output::Progress(progress) => out.push(Output::Progress(progress)),
                front_end::Output::Results(results) => out.push(Output::Results(results)),
                front_end::Output::Session(tin, row) => {
                    let write = Write::set(Table::TinSession, &tin.to_be_bytes(), &row.encode());
                    self.push_rows(vec![write]);
                }
                front_end::Output::Firmware(tin, row) => {
                    let write = Write::set(Table::Firmware, &tin.to_be_bytes(), &row.encode());
                    self.push_rows(vec![write]);
                }
            }
        }
        for output in wanted.inter_block {
            match output {
                inter_block::Output::Write(writes) => self.queue.push_back(Job::Rows(writes)),
                inter_block::Output::Tell(shard, bytes) => out.push(Output::Tell(shard, bytes)),
            }
        }
        if self.under_way.is_some() {
            return;
        }
        let Some(fence) = self.election.fence() else { return };
        let Some(job) = self.queue.pop_front() else { return };
        self.id += 1;
        self.under_way = Some((self.id, fence.clone(), job.clone(), now));
        out.push(Output::Write { id: self.id, fence: Some(fence), job });
    }

    /// It does not lead, or has to begin again.
    fn follow(&mut self) {
        if self.app.take().is_some() {
            // What is new is to be read once more.
            self.seen = self.seen.saturating_sub(1);
        }
        self.queue.clear();
        self.under_way = None;
    }
}
