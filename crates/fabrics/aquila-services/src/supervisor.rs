//! Starts the processes of a control plane, and starts them again when they end.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use thiserror::Error;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use aquila::pipeline::compute::connected;
use kernel::Span;

use crate::cluster::{
    Cluster, ClusterError, Place, Process, Profile, Role, SOFTWARE, Times, Versions,
};
use crate::ports;
use crate::tls::{Tls, TlsError};

/// From the end of a process to its next start (our choice).
const AGAIN: Duration = Duration::from_millis(200);
/// For how long processes may take to end by themselves (our choice).
const STOP: Duration = Duration::from_secs(3);
/// Longest time from one ordered set to the next (our choice): a packet takes 250 of them.
const INTERVAL_MAX: Span = Span::from_us(1_000_000);
/// What a process ends with if it would end so each time.
pub const FINAL: i32 = 2;

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it keeps its files.
    pub folder: PathBuf,
    /// Which Clique.
    pub profile: Profile,
    /// How many of its TiNs are connected to the datacenter's network.
    pub connected: u16,
    /// Processes that have its TiNs.
    pub agents: u8,
    /// Where etcd is; none: a process of our own keeps the base.
    pub etcd: Option<String>,
    /// The folder of certificates, if peers are to show them.
    pub tls: Option<PathBuf>,
    /// Where processes listen.
    pub bind: IpAddr,
    /// Over which versions of IP TiNs are called.
    pub versions: Versions,
    /// Whether logs are lines of JSON.
    pub json_logs: bool,
    /// How fast everything is.
    pub times: Times,
    /// What a process is started as: a program, and what comes before `--role`.
    pub program: (PathBuf, Vec<String>),
}

/// Why nothing is started, or all has ended.
#[derive(Debug, Error)]
pub enum SupervisorError {
    /// The folder cannot be used.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The certificates cannot.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A number is none that there can be.
    #[error("{key}: {found}; expected {expected}")]
    Option {
        /// Which.
        key: &'static str,
        /// What it is.
        found: String,
        /// What it can be.
        expected: String,
    },
    /// Another control plane has it.
    #[error("{0}: another control plane runs there; stop that, or name another folder with --dir")]
    Taken(PathBuf),
    /// A file cannot be written, or a process not started.
    #[error("{path}: {why}")]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
    },
    /// A process will not do.
    #[error("{role} {instance} has ended: {why}", role = .place.0.name(), instance = .place.1)]
    Ended {
        /// Which.
        place: Place,
        /// The last that it has said.
        why: String,
    },
}

/// What is told while it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// All processes are started; of so many.
    Started(usize),
    /// One has ended and is started again.
    Again {
        /// Which.
        place: Place,
        /// What it has ended with; none: a signal.
        code: Option<i32>,
    },
}

impl Options {
    fn check(&self) -> Result<(), SupervisorError> {
        let shape = self.profile.shape();
        let wrong = |key, found: u16, max: u16| SupervisorError::Option {
            key,
            found: found.to_string(),
            expected: format!("1 to {max}"),
        };
        let interval = self.times.mos_interval;
        if !(Span::from_us(1)..=INTERVAL_MAX).contains(&interval) {
            return Err(SupervisorError::Option {
                key: "--mos-interval",
                found: interval.to_string(),
                expected: format!("1 us to {INTERVAL_MAX}"),
            });
        }
        if self.connected == 0 || self.connected > shape.tins() {
            return Err(wrong("--connected", self.connected, shape.tins()));
        }
        if self.agents == 0 || u16::from(self.agents) > shape.pods {
            return Err(wrong("--agents", self.agents.into(), shape.pods));
        }
        self.tls.as_deref().map(Tls::read).transpose()?;
        Ok(())
    }

    /// Which processes there are, each with a port that nobody has.
    fn cluster(&self) -> Result<Cluster, SupervisorError> {
        let mut places: Vec<Place> = Vec::new();
        if self.etcd.is_none() {
            places.push((Role::Base, 0));
        }
        let roles = Role::ALL.into_iter().filter(|role| role.application().is_some());
        places.extend(roles.flat_map(|role| [(role, 0), (role, 1)]));
        places.push((Role::Datacenter, 0));
        places.extend((0..self.agents).map(|agent| (Role::Agent, agent)));
        let listen = |why| SupervisorError::Io { path: self.bind.to_string().into(), why };
        let held = ports::hold(self.bind, places.len()).map_err(listen)?;
        let mut processes = Vec::new();
        for (&(role, instance), held) in places.iter().zip(&held) {
            let address = held.local_addr().map_err(listen)?.to_string();
            processes.push(Process { role, instance, address });
        }
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Ok(Cluster {
            software: SOFTWARE.to_owned(),
            profile: self.profile,
            connected: connected(self.profile.shape().tins(), self.connected),
            etcd: self.etcd.clone(),
            tls: self.tls.as_ref().map(absolute),
            json_logs: self.json_logs,
            versions: self.versions,
            times: self.times.clone(),
            processes,
        })
    }
}

/// Starts everything, and keeps it running until `stop`; then all has ended.
///
/// # Errors
/// It cannot be started, or a process ends as it would each time.
pub async fn run(
    options: &Options,
    stop: impl Future<Output = ()>,
    mut tell: impl FnMut(Notice),
) -> Result<(), SupervisorError> {
    options.check()?;
    let folder = &options.folder;
    let io = |path: &Path| {
        let path = path.to_owned();
        move |why| SupervisorError::Io { path, why }
    };
    let logs = folder.join("log");
    std::fs::create_dir_all(&logs).map_err(io(&logs))?;
    let lock = folder.join("lock");
    let held = File::create(&lock).map_err(io(&lock))?;
    if held.try_lock().is_err() {
        return Err(SupervisorError::Taken(folder.clone()));
    }
    let cluster = options.cluster()?;
    cluster.write(folder)?;
    let (sender, mut news) = mpsc::channel(64);
    let mut stops = BTreeMap::new();
    for process in &cluster.processes {
        let place = (process.role, process.instance);
        let (stop, stopped) = mpsc::channel(1);
        let keeper = Keeper { options: options.clone(), place, news: sender.clone() };
        stops.insert(place, (stop, tokio::spawn(keeper.keep(stopped))));
    }
    tell(Notice::Started(cluster.processes.len()));
    tokio::pin!(stop);
    let result = loop {
        tokio::select! {
            () = &mut stop => break Ok(()),
            Some(found) = news.recv() => match found {
                Ok(notice) => tell(notice),
                Err(error) => break Err(error),
            },
        }
    };
    let mut ends = Vec::new();
    for (stop, end) in stops.into_values() {
        drop(stop);
        ends.push(end);
    }
    for end in ends {
        let _ = end.await;
    }
    result
}

/// Keeps one process running.
struct Keeper {
    options: Options,
    place: Place,
    news: mpsc::Sender<Result<Notice, SupervisorError>>,
}

impl Keeper {
    fn log(&self) -> PathBuf {
        let (role, instance) = self.place;
        self.options.folder.join("log").join(format!("{}-{instance}.log", role.name()))
    }

    fn start(&self) -> Result<Child, std::io::Error> {
        let (program, before) = &self.options.program;
        let (role, instance) = self.place;
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        Command::new(program)
            .args(before)
            .args(["--role", role.name(), "--instance", &instance.to_string(), "--dir"])
            .arg(&self.options.folder)
            // It ends when this does, whatever becomes of this process.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C at a terminal is told to a whole group: processes are to end when they are told to, and not to be
            // started again.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    async fn keep(self, mut stopped: mpsc::Receiver<()>) {
        loop {
            let mut child = match self.start() {
                Ok(child) => child,
                Err(why) => {
                    let path = self.options.program.0.clone();
                    let _ = self.news.send(Err(SupervisorError::Io { path, why })).await;
                    return;
                }
            };
            let input = child.stdin.take();
            let code = tokio::select! {
                status = child.wait() => status.ok().and_then(|status| status.code()),
                _ = stopped.recv() => {
                    drop(input);
                    if tokio::time::timeout(STOP, child.wait()).await.is_err() {
                        let _ = child.kill().await;
                    }
                    return;
                }
            };
            if code == Some(FINAL) {
                let text = std::fs::read_to_string(self.log()).unwrap_or_default();
                let why = text.lines().last().unwrap_or("without a word").to_owned();
                let place = self.place;
                let _ = self.news.send(Err(SupervisorError::Ended { place, why })).await;
                return;
            }
            let _ = self.news.send(Ok(Notice::Again { place: self.place, code })).await;
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                _ = stopped.recv() => return,
            }
        }
    }
}
