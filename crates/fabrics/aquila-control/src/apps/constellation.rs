//! Instances of all applications around one base.
//!
//! Models: Aquila §4.1 (M701, I79): redundant instances of each application on separate servers. Every message between
//! them stands here until a driver delivers it or loses it, in any order; instances and copies of the base can stop and
//! start at any time. The base is kept twice, and both copies take the same writes in the same order (our choice).
//!
//! What leaves the constellation (requests to TiNs, what inter-block controllers are told) waits in
//! [`Constellation::outside`], and what comes in is handed to the instance that it is for.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::Time;

use super::Clique;
use super::election::Application;
use super::flow_manager::FlowManager;
use super::front_end::{FrontEnd, Program, Results, Settings};
use super::instance::{self, Instance};
use super::routing::RoutingEngine;
use super::session::{Progress, Request, Session};
use crate::nib::{Fence, LAYOUT, Nib, Refused, Write};

pub use super::instance::{Job, Name};

/// Instances of each application (our choice).
pub const INSTANCES: u8 = 2;
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

/// An instance that runs.
#[derive(Debug)]
struct Place {
    instance: Instance,
    /// It was told that the base has something new, and has not read it yet.
    has_news: bool,
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
    /// Times that an instance found a base of another layout, and left it alone.
    pub other_layouts: u64,
}

/// All of it.
#[derive(Debug)]
pub struct Constellation {
    clique: Arc<Clique>,
    settings: Settings,
    bases: Vec<Option<Nib>>,
    instances: BTreeMap<Name, Option<Place>>,
    messages: Vec<Message>,
    outside: Vec<Outside>,
    /// By instance: the last write that the base has taken or refused.
    last: BTreeMap<Name, (u64, Result<u64, Refused>)>,
    /// The last number of a write: one that starts anew goes on behind it.
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
        let (clique, settings) = (self.clique.clone(), self.settings);
        let instance = Instance::new(now, name, clique, settings, self.next);
        self.instances.insert(name, Some(Place { instance, has_news: false }));
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
        let all = (0..INSTANCES)
            .filter_map(|number| Some((number, self.instance((application, number))?.leads()?)));
        all.max_by_key(|&(_, term)| term)
    }

    /// The routing engine that leads.
    #[must_use]
    pub fn routing_engine(&self) -> Option<&RoutingEngine> {
        self.that_leads(Application::RoutingEngine)?.routing_engine()
    }

    /// The flow manager that leads.
    #[must_use]
    pub fn flow_manager(&self) -> Option<&FlowManager> {
        self.that_leads(Application::FlowManager)?.flow_manager()
    }

    /// The front end that leads.
    #[must_use]
    pub fn front_end(&self) -> Option<&FrontEnd> {
        self.that_leads(Application::FrontEnd)?.front_end()
    }

    fn instance(&self, name: Name) -> Option<&Instance> {
        Some(&self.instances.get(&name)?.as_ref()?.instance)
    }

    fn that_leads(&self, application: Application) -> Option<&Instance> {
        let (number, _) = self.leader(application)?;
        self.instance((application, number))
    }

    /// Has an instance do something, if it runs.
    fn with<T>(
        &mut self,
        name: Name,
        act: impl FnOnce(&mut Instance, &mut Vec<instance::Output>) -> T,
    ) -> Option<T> {
        let place = self.instances.get_mut(&name)?.as_mut()?;
        let mut out = Vec::new();
        let result = act(&mut place.instance, &mut out);
        for output in out {
            self.put(name, output);
        }
        Some(result)
    }

    /// The same, of the one that leads.
    fn with_leader(
        &mut self,
        application: Application,
        act: impl FnOnce(&mut Instance, &mut Vec<instance::Output>),
    ) {
        if let Some((number, _)) = self.leader(application) {
            self.with((application, number), act);
        }
    }

    /// Time goes on for everybody.
    pub fn tick(&mut self, now: Time) {
        let names: Vec<Name> = self.instances.keys().copied().collect();
        for name in names {
            self.tick_one(now, name);
        }
    }

    /// The base has changed: its subscribers are told, without waiting for [`Constellation::tick`].
    pub fn publish(&mut self) {
        let version = self.base().map_or(0, Nib::version);
        for (&name, instance) in &mut self.instances {
            let place = instance.as_mut();
            let wants = |place: &&mut Place| place.instance.wants_news(version) && !place.has_news;
            if let Some(place) = place.filter(wants) {
                place.has_news = true;
                self.messages.push(Message::News(name));
            }
        }
    }

    /// Time goes on for the front end that leads, which has something to do then ([`FrontEnd::wakes_at`]).
    pub fn wake(&mut self, now: Time) {
        self.with_leader(Application::FrontEnd, |instance, out| instance.wake(now, out));
    }

    /// Whether nothing is on its way to the base or from it, but for leases and that there is something new.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let is_small = |message: &Message| {
            matches!(message, Message::News(_) | Message::Write { job: Job::Lease(_), .. })
        };
        self.instances.values().flatten().all(|place| place.instance.is_idle())
            && self.messages.iter().all(is_small)
    }

    fn tick_one(&mut self, now: Time, name: Name) {
        let version = self.base().map_or(0, Nib::version);
        let layout = self.base().map_or(LAYOUT, |base| base.since(version, &[]).layout);
        let Some(Some(place)) = self.instances.get_mut(&name) else { return };
        self.counts.other_layouts += u64::from(layout != LAYOUT);
        if place.instance.wants_news(version) && !place.has_news {
            place.has_news = true;
            self.messages.push(Message::News(name));
        } else if place.has_news && !self.messages.contains(&Message::News(name)) {
            // It was lost.
            self.messages.push(Message::News(name));
        }
        self.with(name, |instance, out| instance.tick(now, layout, out));
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
            Message::Written { to, id, result } => self.written(now, to, id, &result),
            Message::Program(program) => {
                self.with_leader(Application::FrontEnd, |instance, out| {
                    instance.program(now, program, out);
                });
            }
            Message::Results(results) => {
                self.with_leader(Application::FlowManager, |instance, out| {
                    instance.results(now, results, out);
                });
            }
        }
    }

    /// Something has come of a session that was opened for an instance of the front end.
    pub fn session(&mut self, now: Time, number: u8, event: Session) {
        let name = (Application::FrontEnd, number);
        self.with(name, |instance, out| instance.session(now, event, out));
    }

    /// A shard of the inter-block controllers has said something.
    pub fn hear(&mut self, now: Time, bytes: &[u8]) {
        self.with_leader(Application::InterBlock, |instance, out| instance.hear(now, bytes, out));
    }

    /// An instance reads what is new.
    fn news(&mut self, now: Time, name: Name) {
        let Some(base) = self.bases.iter().flatten().next() else { return };
        let Some(Some(place)) = self.instances.get_mut(&name) else { return };
        place.has_news = false;
        let mut out = Vec::new();
        let takes_over = place.instance.news(now, base, &mut out);
        self.counts.take_overs += u64::from(takes_over);
        for output in out {
            self.put(name, output);
        }
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

    fn written(&mut self, now: Time, to: Name, id: u64, result: &Result<u64, Refused>) {
        let reloads = self.with(to, |instance, out| instance.written(now, id, result, out));
        self.counts.reloads += u64::from(reloads == Some(true));
    }

    /// Sends what an instance wants sent.
    fn put(&mut self, from: Name, output: instance::Output) {
        match output {
            instance::Output::Write { id, fence, job } => {
                self.next = self.next.max(id);
                self.messages.push(Message::Write { from, id, fence, job });
            }
            instance::Output::Program(program) => self.messages.push(Message::Program(program)),
            instance::Output::Results(results) => self.messages.push(Message::Results(results)),
            instance::Output::Request(request) => {
                self.outside.push(Outside::Request(from.1, request));
            }
            instance::Output::Progress(progress) => self.outside.push(Outside::Progress(progress)),
            instance::Output::Leads => self.outside.push(Outside::Leads(from.1)),
            instance::Output::Tell(shard, bytes) => self.outside.push(Outside::Tell(shard, bytes)),
        }
    }
}
