//! A control plane that is started, shot at, and looked at.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use aquila_control::apps::front_end::order::owned;
use aquila_control::registers::Register;
use aquila_control::registers::file::RegisterFile;
use aquila_control::registers::map::IP_FLOW;
use aquila_services::cluster::{Place, Profile, Role, Times, Versions};
use aquila_services::status::{Image, Report, Viewer, Wish};
use aquila_services::supervisor::{self, Options, SupervisorError};
use kernel::{Span, Stream};
use libtest_mimic::Failed;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{folder, own};

/// A control plane, in a folder of its own.
pub struct Plane {
    runtime: Runtime,
    pub folder: tempfile::TempDir,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), SupervisorError>>,
    pub viewer: Viewer,
    stream: Stream,
}

/// How it is started.
pub fn options(folder: &Path, profile: Profile, agents: u8) -> Result<Options, Failed> {
    let ms = |ms: u64| Span::from_us(1_000 * ms);
    Ok(Options {
        folder: folder.to_owned(),
        profile,
        connected: 4,
        agents,
        etcd: None,
        tls: None,
        bind: [127, 0, 0, 1].into(),
        versions: Versions::default(),
        json_logs: false,
        // Hardware that is quick, so that the test is: what is looked at are results, not times.
        times: Times {
            mos_interval: Span::from_us(1),
            lock: ms(20),
            up: ms(50),
            call: ms(1_000),
            reconnect: ms(3_000),
            asks: ms(4_000),
            tcp_rate: 50_000_000,
            pmos_rate: 5_000_000,
            start: ms(200),
            block: Span::from_us(200),
        },
        program: (own()?, vec!["process".to_owned()]),
    })
}

impl Plane {
    pub fn start(
        profile: Profile,
        agents: u8,
        etcd: Option<String>,
        seed: u64,
    ) -> Result<Self, Failed> {
        let folder = folder()?;
        let options = Options { etcd, ..options(folder.path(), profile, agents)? };
        Self::of(folder, options, seed)
    }

    pub fn of(folder: tempfile::TempDir, options: Options, seed: u64) -> Result<Self, Failed> {
        let runtime = Runtime::new()?;
        let (stop, stopped) = oneshot::channel();
        let (started, is_started) = std::sync::mpsc::channel();
        let ended = runtime.spawn(async move {
            let stopped = async { drop(stopped.await) };
            supervisor::run(&options, stopped, |notice| drop(started.send(notice))).await
        });
        is_started.recv_timeout(Duration::from_secs(20))?;
        let viewer = Viewer::new(folder.path())?;
        let stream = Stream::new(seed, "who is killed", 0);
        Ok(Self { runtime, folder, stop, ended, viewer, stream })
    }

    pub fn report(&self) -> Report {
        self.runtime.block_on(self.viewer.report())
    }

    /// Waits until something is so.
    pub fn wait(
        &self,
        limit: Duration,
        what: &str,
        is_so: impl Fn(&Report) -> bool,
    ) -> Result<Report, Failed> {
        let start = Instant::now();
        loop {
            let report = self.report();
            if is_so(&report) {
                return Ok(report);
            }
            if self.ended.is_finished() {
                return Err(format!("it has ended; expected that {what}").into());
            }
            if start.elapsed() > limit {
                let report = serde_json::to_string_pretty(&report)?;
                return Err(format!("not within {limit:?}: {what}\n{report}{}", self.logs()).into());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The last lines of all logs.
    fn logs(&self) -> String {
        let mut text = String::new();
        for file in
            std::fs::read_dir(self.folder.path().join("log")).into_iter().flatten().flatten()
        {
            let log = std::fs::read_to_string(file.path()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(12)..].join("\n");
            text += &format!("\n== {}\n{last}", file.path().display());
        }
        text
    }

    /// Waits until all TiNs are ready, all results are in, and the front end knows that chips hold what is wanted.
    pub fn settle(&self, limit: Duration) -> Result<Report, Failed> {
        self.wait(limit, "all is well", |report| {
            let tins = u64::from(report.tins);
            report.ready() as u64 == tins
                && report.batch.is_done
                && (report.batch.failed, report.batch.held_back, report.batch.unreachable)
                    == (0, 0, 0)
                && report.leaders.len() == 4
                && report.leaders.values().all(|leader| leader.is_there)
                && report.processes.iter().all(|process| process.pid.is_some())
                && report.count(Role::RoutingEngine, "settled") == 1
                && report.count(Role::FrontEnd, "complete") == tins
        })
    }

    /// Asks for another version of the firmware.
    pub fn upgrade(&self, image: &Image, at_once: u8) -> Result<u32, Failed> {
        Ok(self.runtime.block_on(self.viewer.upgrade(image, at_once))?)
    }

    /// Sets something, and waits until it is so.
    pub fn set(&self, wish: Wish) -> Result<(), Failed> {
        self.runtime.block_on(self.viewer.want(wish))?;
        self.wait(Duration::from_secs(60), &format!("{wish:?} is so"), |report| {
            self.runtime.block_on(self.viewer.is_so(wish, report)).unwrap_or(false)
        })
        .map(drop)
    }

    /// Kills a process, by its number.
    pub fn kill(&mut self, place: Place) -> Result<(), Failed> {
        let (role, instance) = place;
        let name = format!("{} {instance} answers", role.name());
        let is_it = move |report: &Report| {
            let found =
                report.processes.iter().find(|p| (p.role, p.instance) == (role.name(), instance));
            found.and_then(|process| process.pid)
        };
        let report = self.wait(Duration::from_secs(20), &name, |report| is_it(report).is_some())?;
        let pid = is_it(&report).ok_or("it was there")?;
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status()?;
        killed.success().then_some(()).ok_or_else(|| format!("kill -9 {pid} failed").into())
    }

    /// One of a role, at random.
    pub fn kill_any(&mut self, role: Role) -> Result<(), Failed> {
        let count = self.viewer.cluster.count(role);
        let instance = self.stream.below(count.into()) as u8;
        self.kill((role, instance))
    }

    /// The one that leads.
    pub fn kill_leader(&mut self, role: Role) -> Result<(), Failed> {
        let report = self.report();
        let leader = report.leaders.get(role.name()).ok_or("nobody leads")?;
        self.kill((role, leader.instance.try_into()?))
    }

    /// What all chips hold.
    pub fn registers(&self) -> Result<Vec<RegisterFile>, Failed> {
        let tins = 0..self.viewer.cluster.profile.shape().tins();
        let one = |tin| Ok(self.runtime.block_on(self.viewer.registers(tin))?);
        tins.map(one).collect()
    }

    /// Every register that the controller sets, of every chip. Which of two prefixes outside has the first entry depends on
    /// which is heard of first, and chips look for the longest.
    pub fn check_registers(&self, expected: &[RegisterFile]) -> Result<(), Failed> {
        let entries = |file: &RegisterFile, register: &Register| {
            let entry = |at| file.read_block(register.base + at, 1);
            let mut all: Vec<_> = (0..register.entries()).map(entry).collect();
            if std::ptr::eq(register, IP_FLOW.register()) {
                all.sort_unstable_by_key(|entry| entry.clone().ok());
            }
            all
        };
        for (tin, expected) in (0..).zip(expected) {
            let found = self.runtime.block_on(self.viewer.registers(tin))?;
            for register in owned() {
                let (found, expected) = (entries(&found, register), entries(expected, register));
                let pairs = (0..).zip(found.iter().zip(&expected));
                let differ: Vec<_> = pairs.filter(|(_, (a, b))| a != b).take(4).collect();
                if !differ.is_empty() {
                    let name = register.name;
                    return Err(format!("TiN {tin}: {name}, found, expected: {differ:x?}").into());
                }
            }
        }
        Ok(())
    }

    /// Ends it, as Ctrl-C does; nobody is left.
    pub fn stop(self) -> Result<(), Failed> {
        let pids: Vec<u32> = self.report().processes.iter().filter_map(|p| p.pid).collect();
        drop(self.stop);
        self.runtime.block_on(self.ended)??;
        for pid in pids {
            let is_left =
                Command::new("kill").args(["-0", &pid.to_string()]).output()?.status.success();
            if is_left {
                return Err(format!("process {pid} is left").into());
            }
        }
        Ok(())
    }

    /// What it has ended with by itself.
    pub fn end(self, limit: Duration) -> Result<Result<(), SupervisorError>, Failed> {
        let (runtime, ended) = (self.runtime, self.ended);
        Ok(runtime.block_on(async { tokio::time::timeout(limit, ended).await })??)
    }
}
