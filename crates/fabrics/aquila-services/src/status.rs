//! Looks at a control plane that runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub use aquila_control::flash::{GENERATION, Image};
use aquila_control::registers::file::RegisterFile;
use aquila_control::registers::{find, map::REGISTERS};
use serde::Serialize;
use tonic::Status;

use crate::cluster::{Cluster, ClusterError, Place, Role};
use crate::convert;
use crate::links::MESSAGE_BYTES_MAX;
use crate::proto::control::peer_client::PeerClient;
use crate::proto::control::{AuditRequest, LookRequest, Looked, UpgradeRequest};
use crate::tls::{Tls, TlsError, channel};

/// For how long a process is waited for (our choice).
const PATIENCE: Duration = Duration::from_secs(2);

/// Why there is nothing to see.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The folder is none of a control plane.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Its certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Why an upgrade has not begun.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotBegun {
    /// Nobody has taken it.
    #[error("{0}")]
    Away(String),
    /// The image will not do.
    #[error("{0}")]
    Refused(String),
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// What it is.
    pub role: &'static str,
    /// Which of those.
    pub instance: u8,
    /// Where it serves gRPC and metrics.
    pub address: String,
    /// Its number in the system; none: it does not answer.
    pub pid: Option<u32>,
    /// Of an application: its term, while it leads.
    pub term: Option<u64>,
    /// The version of the base that it knows.
    pub version: Option<u64>,
    /// Why it does not answer.
    pub silent: Option<String>,
    /// What it has counted.
    pub counts: BTreeMap<String, u64>,
}

/// The last batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Batch {
    /// Its number; 0: there was none.
    pub number: u64,
    /// Whether all its results are in.
    pub is_done: bool,
    /// Rows that chips have not taken.
    pub failed: u32,
    /// Rows that wait for their group.
    pub held_back: u32,
    /// Rows of TiNs that have not answered in time.
    pub unreachable: u32,
}

/// A TiN's session, as the base has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Session {
    /// Which TiN.
    pub tin: u32,
    /// Whether there is one.
    pub is_up: bool,
    /// Whether its registers have been what was wanted of it.
    pub is_ready: bool,
    /// Whether it is by PMOS.
    pub is_over_pmos: bool,
    /// The number of its chip's cold start.
    pub boot: u32,
    /// The version of its firmware, as far as is known.
    pub firmware: u32,
}

/// The upgrade that was asked for last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Upgrade {
    /// Which: each has another number.
    pub number: u32,
    /// The version of the firmware that all TiNs are to run.
    pub version: u32,
    /// How many TiNs at once.
    pub at_once: u32,
    /// TiNs to which the image goes.
    pub sending: Vec<u32>,
    /// TiNs that restart.
    pub restarting: Vec<u32>,
    /// How many run it, and hold what they are to hold.
    pub done: u32,
    /// TiNs with which it has ended, and why.
    pub failed: BTreeMap<u32, String>,
}

impl Upgrade {
    /// Whether nothing more comes of it, in a Clique of so many TiNs.
    #[must_use]
    pub fn is_over(&self, tins: u16) -> bool {
        let waits = self.sending.len() + self.restarting.len();
        self.done == u32::from(tins) || !self.failed.is_empty() && waits == 0
    }
}

/// Who leads an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Leader {
    /// Which instance has the lease.
    pub instance: u32,
    /// In which term.
    pub term: u64,
    /// Whether that instance says so, too.
    pub is_there: bool,
}

/// All that there is to see.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// TiNs of the Clique.
    pub tins: u16,
    /// Version of the base, layout of its rows, how many, and what they take raw and as kept. Unit: bytes.
    pub base_version: u64,
    /// The same.
    pub base_layout: u32,
    /// The same.
    pub base_rows: u64,
    /// The same.
    pub base_raw_bytes: u64,
    /// The same.
    pub base_stored_bytes: u64,
    /// By application.
    pub leaders: BTreeMap<&'static str, Leader>,
    /// The last batch.
    pub batch: Batch,
    /// The last upgrade; none: there was none.
    pub upgrade: Option<Upgrade>,
    /// By TiN.
    pub sessions: Vec<Session>,
    /// All processes.
    pub processes: Vec<Process>,
}

impl Report {
    /// TiNs that are ready and have a session. None, as far as is known, while no front end leads: what the base says is of
    /// one before it.
    #[must_use]
    pub fn ready(&self) -> usize {
        if !self.leaders.get(Role::FrontEnd.name()).is_some_and(|leader| leader.is_there) {
            return 0;
        }
        self.sessions.iter().filter(|session| session.is_ready && session.is_up).count()
    }

    /// What the processes of a role have counted under a name, together.
    #[must_use]
    pub fn count(&self, role: Role, name: &str) -> u64 {
        let of = self.processes.iter().filter(|process| process.role == role.name());
        of.filter_map(|process| process.counts.get(name)).sum()
    }
}

/// A control plane in a folder, to be looked at.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// What it is made of.
    pub cluster: Cluster,
    tls: Option<Tls>,
}

impl Viewer {
    /// Of a folder.
    ///
    /// # Errors
    /// It is none of a control plane.
    pub fn new(folder: &Path) -> Result<Self, StatusError> {
        let cluster = Cluster::read(folder)?;
        let tls = cluster.tls.as_deref().map(Tls::read).transpose()?;
        Ok(Self { cluster, tls })
    }

    async fn client(&self, address: &str) -> Result<PeerClient<tonic::transport::Channel>, Status> {
        let channel = channel(address, self.tls.as_ref());
        let channel = channel.map_err(|why| Status::invalid_argument(format!("{why:?}")))?;
        Ok(PeerClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    async fn look(&self, address: &str) -> Result<Looked, Status> {
        let mut client = self.client(address).await?;
        match tokio::time::timeout(PATIENCE, client.look(LookRequest {})).await {
            Ok(looked) => Ok(looked?.into_inner()),
            Err(_) => Err(Status::deadline_exceeded("it does not answer")),
        }
    }

    /// Asks all processes.
    pub async fn report(&self) -> Report {
        let mut asked = Vec::new();
        for process in &self.cluster.processes {
            let (viewer, address) = (self.clone(), process.address.clone());
            asked.push(tokio::spawn(async move { viewer.look(&address).await }));
        }
        let mut processes = Vec::new();
        let mut newest = Looked::default();
        for (process, asked) in self.cluster.processes.iter().zip(asked) {
            let looked = asked.await.unwrap_or_else(|why| Err(Status::internal(why.to_string())));
            let silent = looked.as_ref().err().map(|status| status.message().to_owned());
            let looked = looked.ok();
            let role = process.role;
            let view = looked.clone().filter(|looked| looked.version >= newest.version);
            if let Some(view) = view.filter(|_| role.application().is_some() || role == Role::Base)
            {
                newest = view;
            }
            let counts = looked.iter().flat_map(|looked| looked.counts.clone());
            processes.push(Process {
                role: role.name(),
                instance: process.instance,
                address: process.address.clone(),
                pid: looked.as_ref().map(|looked| looked.process),
                term: looked.as_ref().map(|looked| looked.term).filter(|&term| term > 0),
                version: looked
                    .as_ref()
                    .map(|looked| looked.version)
                    .filter(|&version| version > 0),
                silent,
                counts: counts.map(|count| (count.name, count.value)).collect(),
            });
        }
        self.put_together(processes, newest)
    }

    fn put_together(&self, processes: Vec<Process>, newest: Looked) -> Report {
        let leader = |lease: &crate::proto::control::Lease| {
            let role = Role::of(convert::application(lease.application)?).name();
            let says_so = |process: &&Process| {
                process.role == role
                    && u32::from(process.instance) == lease.holder
                    && process.term == Some(lease.term)
            };
            let is_there = processes.iter().find(says_so).is_some();
            Some((role, Leader { instance: lease.holder, term: lease.term, is_there }))
        };
        let batch = newest.batch.map_or_else(Batch::default, |batch| Batch {
            number: batch.number,
            is_done: batch.is_done,
            failed: batch.failed,
            held_back: batch.held_back,
            unreachable: batch.unreachable,
        });
        let session = |session: &crate::proto::control::Session| Session {
            tin: session.tin,
            is_up: session.is_up,
            is_ready: session.is_ready,
            is_over_pmos: session.is_over_pmos,
            boot: session.boot,
            firmware: session.firmware,
        };
        let upgrade = newest.upgrade.map(|upgrade| Upgrade {
            number: upgrade.number,
            version: upgrade.version,
            at_once: upgrade.at_once,
            sending: upgrade.sending,
            restarting: upgrade.restarting,
            done: upgrade.done,
            failed: upgrade.failed.into_iter().map(|failed| (failed.tin, failed.why)).collect(),
        });
        Report {
            tins: self.cluster.profile.shape().tins(),
            base_version: newest.version,
            base_layout: newest.layout,
            base_rows: newest.rows,
            base_raw_bytes: newest.raw_bytes,
            base_stored_bytes: newest.stored_bytes,
            leaders: newest.leases.iter().filter_map(leader).collect(),
            batch,
            upgrade,
            sessions: newest.sessions.iter().map(session).collect(),
            processes,
        }
    }

    /// Asks the front end that leads for another version of the firmware on all TiNs, so many at once; the number of the
    /// upgrade.
    ///
    /// # Errors
    /// Nobody leads, it does not answer, or it does not take the image.
    pub async fn upgrade(&self, image: &Image, at_once: u8) -> Result<u32, NotBegun> {
        let report = self.report().await;
        let leader = report.leaders.get(Role::FrontEnd.name()).filter(|leader| leader.is_there);
        let none = "no front end leads at the moment; try again in some seconds";
        let leader = leader.ok_or_else(|| NotBegun::Away(none.to_owned()))?;
        let place: Place = (Role::FrontEnd, leader.instance as u8);
        let address = self.cluster.address(place).unwrap_or_default();
        let away = |status: Status| NotBegun::Away(status.message().to_owned());
        let mut client = self.client(address).await.map_err(away)?;
        let request = UpgradeRequest {
            header: image.header.encode().to_vec(),
            image: image.bytes().to_vec(),
            at_once: at_once.into(),
        };
        let asked = tokio::time::timeout(PATIENCE, client.upgrade(request)).await;
        let silent = |_| NotBegun::Away("the front end does not answer".to_owned());
        let reply = asked.map_err(silent)?.map_err(away)?.into_inner();
        if reply.refused.is_empty() {
            Ok(reply.number)
        } else {
            Err(NotBegun::Refused(reply.refused))
        }
    }

    /// The registers that the controller sets in a TiN's chip, as they are there.
    ///
    /// # Errors
    /// Its agent does not answer, or says what are no registers.
    pub async fn registers(&self, tin: u16) -> Result<RegisterFile, Status> {
        let place: Place = (Role::Agent, self.cluster.agent_of(tin));
        let address = self.cluster.address(place).unwrap_or_default();
        let mut client = self.client(address).await?;
        let mut stream = client.audit(AuditRequest { tin: tin.into() }).await?.into_inner();
        let mut file = RegisterFile::new();
        let bad = || Status::data_loss("registers that there are none of");
        while let Some(block) = stream.message().await? {
            let (register, _) = find(block.address).map_err(|_| bad())?;
            let size = REGISTERS[register].entry_bytes() as usize;
            file.write_block(block.address, size, &block.entries).map_err(|_| bad())?;
        }
        Ok(file)
    }
}

/// The place of a process, by the name of its role.
#[must_use]
pub fn role(name: &str) -> Option<Role> {
    Role::ALL.into_iter().find(|role| role.name() == name)
}
