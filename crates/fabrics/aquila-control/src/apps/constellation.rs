//! Instances of all applications around one base.
//!
//! Models: Aquila §4.1 (M701, I79): redundant instances of each application on separate servers. Every message between
//! them stands here until a driver delivers it or loses it, in any order; instances and copies of the base can stop and
//! start at any time. The base is kept twice, and both copies take the same writes in the same order (our choice).
//!
//! What leaves the constellation (requests to TiNs, what inter-block controllers are told) waits in
//! [`Constellation::outside`], and what comes in is handed to the instance that it is for.

use std::collections::{BTreeMap, VecDeque};
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

/// Instances of each application (our choice).
pub const INSTANCES: u8 = 2;
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

/// A message between parts of the constellation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// The base has something new for an instance: what, it finds when this is delivered.
    News(Name),
    /// To the base.
    Write {
        /// From whom.
        from: Name,
        /// Larger than those before: an older one that comes later does not count.
        id: u64,
        /// What the writer takes itself for.
        fence: Option<Fence>,
        /// What to write.
        job: Job,
    },
    /// From the base.
    Written {
        /// To whom.
        to: Name,
        /// That of the write.
        id: u64,
        /// Whether it was taken.
        result: Result<u64, Refused>,
    },
    /// From the flow manager to the front end that leads.
    Program(Program),
    /// From the front end to the flow manager that leads.
    Results(Results),
}

/// What leaves the constellation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outside {
    /// From this instance of the front end to a TiN.
    Request(u8, Request),
    /// To the session manager.
    Progress(Progress),
    /// This instance of the front end leads from now on: sessions are to be opened for it.
    Leads(u8),
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

#[derive(Debug)]
struct Instance {
    election: Election,
    /// The last version at which it has read the leases.
    seen: u64,
    has_news: bool,
    /// While it leads.
    app: Option<(u64, App)>,
    queue: VecDeque<Job>,
    under_way: Option<(u64, Fence, Job, Time)>,
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Messages that were delivered.
    pub delivered: u64,
    /// Writes of leaders whom others had followed, all of them refused.
    pub deposed: u64,
    /// Times that an instance began to lead.
    pub take_overs: u64,
    /// Times that an application had to read the base again.
    pub reloads: u64,
}

/// All of it.
#[derive(Debug)]
pub struct Constellation {
    clique: Arc<Clique>,
    settings: Settings,
    bases: Vec<Option<Nib>>,
    instances: BTreeMap<Name, Option<Instance>>,
    messages: Vec<Message>,
    outside: Vec<Outside>,
    /// By instance: the last write that the base has taken or refused.
    last: BTreeMap<Name, (u64, Result<u64, Refused>)>,
    next: u64,
    counts: Counts,
}

impl Constellation {
    /// All instances, just started, around an empty base.
    #[must_use]
    pub fn new(now: Time, clique: Arc<Clique>, settings: Settings) -> Self {
        Self::around(now, clique, settings, Nib::new())
    }

    /// All instances, just started, around a base that there is.
    #[must_use]
    pub fn around(now: Time, clique: Arc<Clique>, settings: Settings, base: Nib) -> Self {
        let mut constellation = Self {
            clique,
            settings,
            bases: vec![Some(base.clone()), Some(base)],
            instances: BTreeMap::new(),
            messages: Vec::new(),
            outside: Vec::new(),
            last: BTreeMap::new(),
            next: 0,
            counts: Counts::default(),
        };
        for application in Application::ALL {
            for instance in 0..INSTANCES {
                constellation.start(now, (application, instance));
            }
        }
        constellation
    }

    /// The base, as the first of its copies that runs has it; `None`: none does.
    #[must_use]
    pub fn base(&self) -> Option<&Nib> {
        self.bases.iter().flatten().next()
    }

    /// Somebody else writes rows: an operator, or the session manager. False: no copy of the base runs.
    pub fn write(&mut self, writes: &[Write]) -> bool {
        for base in self.bases.iter_mut().flatten() {
            base.write(writes).expect("they expect nothing of rows");
        }
        self.base().is_some()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Messages on their way.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What has left the constellation since this was asked last.
    pub fn outside(&mut self) -> Vec<Outside> {
        std::mem::take(&mut self.outside)
    }

    /// An instance stops; what it knew is gone.
    pub fn stop(&mut self, name: Name) {
        self.instances.insert(name, None);
    }

    /// An instance starts anew.
    pub fn start(&mut self, now: Time, name: Name) {
        let instance = Instance {
            election: Election::new(name.0, name.1, now),
            seen: 0,
            has_news: false,
            app: None,
            queue: VecDeque::new(),
            under_way: None,
        };
        self.instances.insert(name, Some(instance));
    }

    /// Whether an instance runs.
    #[must_use]
    pub fn runs(&self, name: Name) -> bool {
        self.instances.get(&name).is_some_and(Option::is_some)
    }

    /// A copy of the base stops.
    pub fn stop_base(&mut self, copy: usize) {
        if self.bases.iter().flatten().count() > 1 {
            self.bases[copy] = None;
        }
    }

    /// A copy of the base starts, with what the other one holds.
    pub fn start_base(&mut self, copy: usize) {
        if self.bases[copy].is_none() {
            self.bases[copy] = self.base().cloned();
        }
    }

    /// The instance that leads an application, of those that believe so the last one, and its term.
    #[must_use]
    pub fn leader(&self, application: Application) -> Option<(u8, u64)> {
        let all = (0..INSTANCES).filter_map(|number| {
            let instance = self.instances.get(&(application, number))?.as_ref()?;
            Some((number, instance.app.as_ref()?.0))
        });
        all.max_by_key(|&(_, term)| term)
    }

    /// The routing engine that leads.
    #[must_use]
    pub fn routing_engine(&self) -> Option<&RoutingEngine> {
        match self.app(Application::RoutingEngine)? {
            App::RoutingEngine(app) => Some(app),
            _ => None,
        }
    }

    /// The flow manager that leads.
    #[must_use]
    pub fn flow_manager(&self) -> Option<&FlowManager> {
        match self.app(Application::FlowManager)? {
            App::FlowManager(app) => Some(app),
            _ => None,
        }
    }

    /// The front end that leads.
    #[must_use]
    pub fn front_end(&self) -> Option<&FrontEnd> {
        match self.app(Application::FrontEnd)? {
            App::FrontEnd(app) => Some(app),
            _ => None,
        }
    }

    fn app(&self, application: Application) -> Option<&App> {
        let (number, _) = self.leader(application)?;
        let instance = self.instances.get(&(application, number))?.as_ref()?;
        Some(&instance.app.as_ref()?.1)
    }

    /// Time goes on for everybody.
    pub fn tick(&mut self, now: Time) {
        let names: Vec<Name> = self.instances.keys().copied().collect();
        for name in names {
            self.tick_one(now, name);
        }
    }

    fn tick_one(&mut self, now: Time, name: Name) {
        let version = self.base().map_or(0, Nib::version);
        let layout = self.base().map_or(LAYOUT, |base| base.since(version, &[]).layout);
        let Some(Some(instance)) = self.instances.get_mut(&name) else { return };
        if instance.seen < version && !instance.has_news {
            instance.has_news = true;
            self.messages.push(Message::News(name));
        } else if instance.has_news && !self.messages.contains(&Message::News(name)) {
            // It was lost.
            self.messages.push(Message::News(name));
        }
        // A base of another layout is nobody's to lead.
        let lease = if layout == LAYOUT { instance.election.tick(now) } else { None };
        if let Some(write) = lease {
            self.next += 1;
            let (from, id, job) = (name, self.next, Job::Lease(write));
            self.messages.push(Message::Write { from, id, fence: None, job });
        }
        if instance.election.term().is_none() {
            instance.follow();
            return;
        }
        let mut out = Outputs::default();
        match &mut instance.app {
            Some((_, App::FlowManager(app))) => app.tick(now, &mut out.manager),
            Some((_, App::FrontEnd(app))) => app.tick(now, &mut out.front_end),
            Some((_, App::InterBlock(app))) => app.tick(now, &mut out.inter_block),
            _ => {}
        }
        if let Some((id, fence, job, at)) = &mut instance.under_way
            && now - *at >= AGAIN
        {
            *at = now;
            let (id, fence, job) = (*id, Some(fence.clone()), job.clone());
            self.messages.push(Message::Write { from: name, id, fence, job });
        }
        self.put(now, name, out);
    }

    /// A message is lost.
    pub fn lose(&mut self, index: usize) {
        self.messages.remove(index);
    }

    /// A message arrives.
    pub fn deliver(&mut self, now: Time, index: usize) {
        self.counts.delivered += 1;
        match self.messages.remove(index) {
            Message::News(name) => self.news(now, name),
            Message::Write { from, id, fence, job } => {
                self.write_job(from, id, fence.as_ref(), &job)
            }
            Message::Written { to, id, result } => self.written(now, to, id, result),
            Message::Program(program) => {
                let Some((number, _)) = self.leader(Application::FrontEnd) else { return };
                let mut out = Outputs::default();
                let name = (Application::FrontEnd, number);
                if let Some(App::FrontEnd(app)) = self.app_mut(name) {
                    app.program(now, program, &mut out.front_end);
                }
                self.put(now, name, out);
            }
            Message::Results(results) => {
                let Some((number, _)) = self.leader(Application::FlowManager) else { return };
                let mut out = Outputs::default();
                let name = (Application::FlowManager, number);
                if let Some(App::FlowManager(app)) = self.app_mut(name) {
                    app.results(now, results, &mut out.manager);
                }
                self.put(now, name, out);
            }
        }
    }

    /// Something has come of a session that was opened for an instance of the front end.
    pub fn session(&mut self, now: Time, number: u8, event: Session) {
        let name = (Application::FrontEnd, number);
        let mut out = Outputs::default();
        if let Some(App::FrontEnd(app)) = self.app_mut(name) {
            app.session(now, event, &mut out.front_end);
        }
        self.put(now, name, out);
    }

    /// A shard of the inter-block controllers has said something.
    pub fn hear(&mut self, now: Time, bytes: &[u8]) {
        let Some((number, _)) = self.leader(Application::InterBlock) else { return };
        let name = (Application::InterBlock, number);
        let mut out = Outputs::default();
        if let Some(App::InterBlock(app)) = self.app_mut(name) {
            app.hear(now, bytes, &mut out.inter_block);
        }
        self.put(now, name, out);
    }

    fn app_mut(&mut self, name: Name) -> Option<&mut App> {
        Some(&mut self.instances.get_mut(&name)?.as_mut()?.app.as_mut()?.1)
    }

    /// An instance reads what is new.
    fn news(&mut self, now: Time, name: Name) {
        let Some(base) = self.bases.iter().flatten().next() else { return };
        let Some(Some(instance)) = self.instances.get_mut(&name) else { return };
        instance.has_news = false;
        let leases = base.since(instance.seen, &[Table::Lease]);
        instance.seen = leases.version;
        for change in &leases.changes {
            instance.election.learn(now, change);
        }
        let Some(term) = instance.election.term() else {
            instance.follow();
            return;
        };
        let mut out = Outputs::default();
        if instance.app.as_ref().is_none_or(|app| app.0 != term) {
            instance.follow();
            let app = match name.0 {
                Application::RoutingEngine => {
                    App::RoutingEngine(RoutingEngine::new(self.clique.clone()).into())
                }
                Application::FlowManager => App::FlowManager(FlowManager::new(term).into()),
                Application::FrontEnd => {
                    let mut app = FrontEnd::new(self.clique.clone(), self.settings);
                    app.load(&base.since(0, &FrontEnd::TABLES));
                    self.outside.push(Outside::Leads(name.1));
                    App::FrontEnd(app.into())
                }
                Application::InterBlock => {
                    App::InterBlock(InterBlock::new(self.clique.plan).into())
                }
            };
            instance.app = Some((term, app));
            self.counts.take_overs += 1;
        }
        match instance.app.as_mut().map(|app| &mut app.1) {
            // What it has written and not heard of yet it reads as others' rows would be.
            _ if instance.under_way.is_some() => instance.has_news = false,
            Some(App::RoutingEngine(app)) => {
                app.learn(&base.since(app.seen(), &RoutingEngine::TABLES), &mut out.engine);
            }
            Some(App::FlowManager(app)) => {
                let changes = base.since(app.seen(), &FlowManager::TABLES);
                app.learn(now, changes, &mut out.manager);
            }
            Some(App::InterBlock(app)) => {
                app.learn(now, &base.since(app.seen(), &InterBlock::TABLES));
            }
            _ => {}
        }
        self.put(now, name, out);
    }

    /// The base is asked to write.
    fn write_job(&mut self, from: Name, id: u64, fence: Option<&Fence>, job: &Job) {
        if self.base().is_none() {
            return;
        }
        let last = self.last.get(&from);
        let result = match (job, last) {
            (Job::Lease(_), _) => None,
            (_, Some((last, _))) if id < *last => return,
            (_, Some((last, result))) if id == *last => Some(result.clone()),
            _ => None,
        };
        let result = result.unwrap_or_else(|| {
            let mut results = Vec::new();
            for base in self.bases.iter_mut().flatten() {
                let allowed = fence.map_or(Ok(()), |fence| base.check(fence));
                results.push(allowed.and_then(|()| match job {
                    Job::Batch(number, writes) => base.apply(*number, writes),
                    Job::Rows(writes) => base.write(writes),
                    Job::Lease(write) => base.write(std::slice::from_ref(write)),
                }));
            }
            let result = results.pop().expect("a copy runs");
            assert!(results.iter().all(|other| *other == result), "copies of the base differ");
            result
        });
        if matches!(result, Err(Refused::Deposed { .. })) {
            self.counts.deposed += 1;
        }
        if !matches!(job, Job::Lease(_)) {
            self.last.insert(from, (id, result.clone()));
            self.messages.push(Message::Written { to: from, id, result });
        }
    }

    fn written(&mut self, now: Time, to: Name, id: u64, result: Result<u64, Refused>) {
        let Some(Some(instance)) = self.instances.get_mut(&to) else { return };
        if instance.under_way.as_ref().is_none_or(|(under_way, ..)| *under_way != id) {
            return;
        }
        instance.under_way = None;
        // What was held back meanwhile is read now.
        instance.seen = instance.seen.saturating_sub(1);
        let mut out = Outputs::default();
        if result.is_err() {
            // It was deposed, or it knows something wrong: it reads the base again, if it still leads.
            self.counts.reloads += 1;
            instance.follow();
        } else if instance.queue.is_empty() {
            match instance.app.as_mut().map(|app| &mut app.1) {
                Some(App::RoutingEngine(app)) => app.written(&mut out.engine),
                Some(App::FlowManager(app)) => app.written(now, &mut out.manager),
                _ => {}
            }
        }
        self.put(now, to, out);
    }

    /// Sends what an instance wants sent.
    fn put(&mut self, now: Time, name: Name, out: Outputs) {
        let Some(Some(instance)) = self.instances.get_mut(&name) else { return };
        for output in out.engine {
            instance.queue.push_back(match output {
                routing::Output::Batch { number, writes } => Job::Batch(number, writes),
                routing::Output::Write(writes) => Job::Rows(writes),
            });
        }
        for output in out.manager {
            match output {
                flow_manager::Output::Program(program) => {
                    self.messages.push(Message::Program(program));
                }
                flow_manager::Output::Write(writes) => instance.queue.push_back(Job::Rows(writes)),
            }
        }
        for output in out.front_end {
            match output {
                front_end::Output::Request(request) => {
                    self.outside.push(Outside::Request(name.1, request));
                }
                front_end::Output::Progress(progress) => {
                    self.outside.push(Outside::Progress(progress));
                }
                front_end::Output::Results(results) => {
                    self.messages.push(Message::Results(results))
                }
                front_end::Output::Session(tin, row) => {
                    let write = Write::set(Table::TinSession, &tin.to_be_bytes(), &row.encode());
                    instance.queue.push_back(Job::Rows(vec![write]));
                }
            }
        }
        for output in out.inter_block {
            match output {
                inter_block::Output::Write(writes) => instance.queue.push_back(Job::Rows(writes)),
                inter_block::Output::Tell(shard, bytes) => {
                    self.outside.push(Outside::Tell(shard, bytes));
                }
            }
        }
        if instance.under_way.is_some() {
            return;
        }
        let (Some(job), Some(fence)) = (instance.queue.pop_front(), instance.election.fence())
        else {
            return;
        };
        self.next += 1;
        let id = self.next;
        instance.under_way = Some((id, fence.clone(), job.clone(), now));
        self.messages.push(Message::Write { from: name, id, fence: Some(fence), job });
    }
}

impl Instance {
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

/// What applications want done.
#[derive(Default)]
struct Outputs {
    engine: Vec<routing::Output>,
    manager: Vec<flow_manager::Output>,
    front_end: Vec<front_end::Output>,
    inter_block: Vec<inter_block::Output>,
}
