//! One process of a control plane: what all of them have in common.
//!
//! The part that a process plays is a state machine that is told what comes and what time it is; around it stand one task
//! that owns it, the gRPC server that hands it messages, and the base that hands it changes. A process ends when its
//! standard input does: whoever has started it is gone then.

mod agent;
mod application;
mod cables;
mod datacenter;
mod flash;
mod serve;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use aquila_control::nib::{Changes, Refused};
use aquila_control::session::Versions;
use kernel::{Span, Time};
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::base::embedded::Embedded;
use crate::base::etcd::Etcd;
use crate::base::remote::Remote;
use crate::base::{Away, Base, LogError};
use crate::cluster::{Cluster, ClusterError, Place, Role, SOFTWARE};
use crate::links::Links;
use crate::proto::control::message::What;
use crate::proto::control::{
    Looked, Number, Registers, UpgradeReply, UpgradeRequest, WantReply, Wish,
};
use crate::tls::{Refused as RefusedPeers, Tls, TlsError, channel};

/// The embedded base's file.
pub const BASE_FILE: &str = "base.log";
/// Time goes on for a part at least so often (our choice).
const TICK: Duration = Duration::from_millis(20);
/// How often what `status` and metrics say is made anew (our choice).
const LOOK: Span = Span::from_us(200_000);

/// Why a process ends.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// What it is to be told is not there, or is none.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Its certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Its base cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The base will not do.
    #[error("{0}")]
    Unfit(String),
    /// It is none of the cluster's.
    #[error("{role} {instance} is none of the processes in {file}", role = .place.0.name(), instance = .place.1)]
    Unknown {
        /// Which it should be.
        place: Place,
        /// The file that has them all.
        file: String,
    },
    /// It has no place to listen.
    #[error(
        "{address}: {why}; another program listens there, or the address is none of this machine's"
    )]
    Listen {
        /// Where.
        address: String,
        /// What the system says.
        why: std::io::Error,
    },
    /// An address is none.
    #[error("{address}: {why}; expected HOST:PORT")]
    Address {
        /// Which.
        address: String,
        /// What is wrong.
        why: String,
    },
}

impl ProcessError {
    /// Whether the same would happen again: there is no use in starting it anew.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::Listen { .. })
    }
}

/// What a part is told.
#[derive(Debug)]
enum Event {
    /// By another process.
    Message(What),
    /// Somebody wants a chip's registers; none: there is no such chip here.
    Audit(u16, oneshot::Sender<Option<Vec<Registers>>>),
    /// Somebody wants another version of the firmware on all TiNs.
    Upgrade(UpgradeRequest, oneshot::Sender<UpgradeReply>),
    /// An operator wants something of a TiN, a link or hosts.
    Want(Wish, oneshot::Sender<WantReply>),
    /// The base has changed.
    Changes(Changes),
    /// The base has taken a write, or refused it.
    Written(u64, Result<u64, Refused>),
    /// The base has not answered.
    Silent(Away),
}

/// What a process does.
trait Part {
    /// Something has come.
    fn on_event(&mut self, now: Time, event: Event, links: &mut Links);
    /// Time goes on.
    fn on_time(&mut self, now: Time, links: &mut Links);
    /// When that is to be, at the latest.
    fn deadline(&self) -> Option<Time>;
    /// What there is to see.
    fn look(&self, looked: &mut Looked);
}

/// The base's process: what there is to do, its server does.
struct Keeper(Embedded);

impl Part for Keeper {
    fn on_event(&mut self, _: Time, _: Event, _: &mut Links) {}
    fn on_time(&mut self, _: Time, _: &mut Links) {}
    fn deadline(&self) -> Option<Time> {
        None
    }

    fn look(&self, looked: &mut Looked) {
        self.0.look(|nib, counts| {
            application::look_at(nib, looked);
            add(looked, "base_writes", counts.taken);
            add(looked, "base_deposed", counts.deposed);
            add(looked, "base_refused", counts.refused);
            add(looked, "base_again", counts.again);
            add(looked, "malformed", counts.malformed);
            add(looked, "base_dropped_bytes", counts.dropped_bytes);
        });
    }
}

fn add(looked: &mut Looked, name: &str, value: u64) {
    looked.counts.push(Number { name: name.to_owned(), value });
}

/// Another number in each life of a process, and larger than in those before.
fn life() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

/// What is reached outside: the controllers' subnets.
pub fn outside(versions: Versions) -> impl Iterator<Item = ipnet::IpNet> {
    datacenter::outside(versions)
}

/// Runs a process until its standard input ends, on threads of its own.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// If the system has no thread left.
pub fn run_alone(folder: &Path, place: Place) -> Result<(), ProcessError> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("the system has threads");
    let result = runtime.block_on(run(folder, place));
    // Whatever waits for a peer or for the standard input is not waited for.
    runtime.shutdown_background();
    result
}

/// Runs a process until its standard input ends.
///
/// # Errors
/// It cannot begin, or cannot go on.
pub async fn run(folder: &Path, place: Place) -> Result<(), ProcessError> {
    let cluster = Arc::new(Cluster::read(folder)?);
    let tls = cluster.tls.as_deref().map(Tls::read).transpose()?;
    let Some(address) = cluster.address(place).map(str::to_owned) else {
        let file = folder.join(crate::cluster::FILE).display().to_string();
        return Err(ProcessError::Unknown { place, file });
    };
    let listen = |why| ProcessError::Listen { address: address.clone(), why };
    let listener = TcpListener::bind(&address).await.map_err(listen)?;
    let (sender, events) = mpsc::channel(4_096);
    let mut links = Links::default();
    for process in cluster.processes.iter().filter(|p| (p.role, p.instance) != place) {
        let channel = open(&process.address, tls.as_ref())?;
        links.add((process.role, process.instance), channel);
    }
    let mut embedded = None;
    let part: Box<dyn Part> = match (place.0, place.0.application()) {
        (Role::Base, _) => {
            let base = Embedded::new(Some(&folder.join(BASE_FILE)))?;
            embedded = Some(base.clone());
            Box::new(Keeper(base))
        }
        (Role::Datacenter, _) => Box::new(datacenter::Datacenter::new(&cluster)),
        (_, Some(application)) => {
            let base = reach(&cluster, tls.as_ref()).await?;
            let name = (application, place.1);
            Box::new(application::Instances::new(cluster.clone(), name, base, sender.clone()))
        }
        (Role::Agent, _) | (_, None) => {
            Box::new(agent::Agent::new(cluster.clone(), place.1, folder))
        }
    };
    let looked = Arc::new(Mutex::new(Looked {
        role: place.0.name().to_owned(),
        instance: place.1.into(),
        process: std::process::id(),
        software: SOFTWARE.to_owned(),
        ..Looked::default()
    }));
    let refused = RefusedPeers::default();
    let peer = serve::Peers::new(sender, looked.clone());
    let malformed = peer.malformed.clone();
    serve::serve(listener, tls.as_ref(), &refused, peer, embedded);
    tracing::info!(role = place.0.name(), instance = place.1, %address, "it runs");
    let told = Told { looked, refused, malformed };
    tokio::select! {
        () = drive(part, events, links, told) => {}
        () = until_input_ends() => tracing::info!("it ends"),
    }
    Ok(())
}

fn open(address: &str, tls: Option<&Tls>) -> Result<tonic::transport::Channel, ProcessError> {
    channel(address, tls).map_err(|why| {
        let (address, why) = (address.to_owned(), format!("{why:?}"));
        ProcessError::Address { address, why }
    })
}

/// The base of a cluster. etcd is waited for, as long as it may still come.
async fn reach(cluster: &Cluster, tls: Option<&Tls>) -> Result<Arc<dyn Base>, ProcessError> {
    let Some(etcd) = &cluster.etcd else {
        let address = cluster.address((Role::Base, 0)).unwrap_or_default();
        let remote = Remote::new(open(address, tls)?, address.to_owned());
        return Ok(Arc::new(remote));
    };
    loop {
        let (address, tls) = match etcd.strip_prefix("https://") {
            Some(address) => (address, tls),
            None => (etcd.strip_prefix("http://").unwrap_or(etcd), None),
        };
        match Etcd::new(open(address, tls)?, address.to_owned()).await {
            Ok(etcd) => return Ok(Arc::new(etcd)),
            Err(Away::Unfit(why)) => return Err(ProcessError::Unfit(why)),
            Err(away) => tracing::warn!(%away, "waiting"),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// What a process tells of itself, beside what its part does.
struct Told {
    looked: Arc<Mutex<Looked>>,
    refused: RefusedPeers,
    malformed: Arc<std::sync::atomic::AtomicU64>,
}

/// Tells a part what comes, and what time it is.
async fn drive(
    mut part: Box<dyn Part>,
    mut events: mpsc::Receiver<Event>,
    mut links: Links,
    told: Told,
) {
    let start = Instant::now();
    let time = || Time::ZERO + Span::from_us(start.elapsed().as_micros() as u64);
    let mut looks = Time::ZERO;
    loop {
        let now = time();
        part.on_time(now, &mut links);
        if looks <= now {
            looks = now + LOOK;
            let own = Looked {
                counts: Vec::new(),
                sessions: Vec::new(),
                wanted: Vec::new(),
                ..lock(&told.looked).clone()
            };
            let mut new = Looked { leases: Vec::new(), batch: None, upgrade: None, term: 0, ..own };
            part.look(&mut new);
            add(&mut new, "messages_lost", links.lost);
            add(&mut new, "peers_refused", told.refused.count());
            let malformed = told.malformed.load(std::sync::atomic::Ordering::Relaxed);
            add(&mut new, "peers_malformed", malformed);
            *lock(&told.looked) = new;
        }
        let now = time();
        let due = part.deadline().map_or(TICK, |at| {
            let wait = Duration::from_micros((at.max(now) - now).as_ps().div_ceil(1_000_000));
            wait.min(TICK)
        });
        let first = tokio::time::timeout(due, events.recv()).await;
        let mut next = first.ok().flatten();
        // What has come meanwhile, too; then it is time again.
        let mut left = 256;
        while let Some(event) = next {
            part.on_event(time(), event, &mut links);
            left -= 1;
            next = if left > 0 { events.try_recv().ok() } else { None };
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn until_input_ends() {
    let mut input = tokio::io::stdin();
    let mut bytes = [0; 64];
    while input.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
}
