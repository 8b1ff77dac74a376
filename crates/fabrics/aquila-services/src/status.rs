//! Looks at a control plane that runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use aquila_control::apps::operator::HOSTS;
pub use aquila_control::apps::operator::Wish;
pub use aquila_control::apps::rows::Admin;
pub use aquila_control::flash::{GENERATION, Image};
use aquila_control::registers::file::RegisterFile;
use aquila_control::registers::find;
use aquila_control::registers::map::{REGISTERS, SIDEBAND_ALLOWED};
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

/// Why what an operator asked for was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotTaken {
    /// Nobody was there to take it.
    #[error("{0}")]
    Away(String),
    /// It will not do.
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

/// What an operator wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Wanted {
    /// What.
    #[serde(flatten, serialize_with = "named")]
    pub wish: Wish,
    /// Nothing passes it any more: it may be taken out.
    pub is_drained: bool,
}

fn named<S: serde::Serializer>(wish: &Wish, serializer: S) -> Result<S::Ok, S::Error> {
    Wished::from(*wish).serialize(serializer)
}

/// A wish for those who read the report as JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Wished {
    /// Of a TiN.
    Tin {
        /// Which.
        tin: u16,
        /// What it is to be.
        state: &'static str,
    },
    /// Of a link.
    Link {
        /// Which.
        link: u32,
        /// What it is to be.
        state: &'static str,
    },
    /// Of a TiN's management sidebands.
    Sidebands {
        /// Of which TiN.
        tin: u16,
        /// Whether that of each host is to be on.
        sidebands: [bool; HOSTS as usize],
    },
}

/// The name of what a TiN or a link is to be.
#[must_use]
pub const fn admin(admin: Admin) -> &'static str {
    match admin {
        Admin::InService => "in service",
        Admin::Drained => "drained",
        Admin::Off => "off",
    }
}

impl From<Wish> for Wished {
    fn from(wish: Wish) -> Self {
        match wish {
            Wish::Tin(tin, state) => Self::Tin { tin, state: admin(state) },
            Wish::Link(link, state) => Self::Link { link, state: admin(state) },
            Wish::Sidebands(tin, hosts) => {
                let sidebands = std::array::from_fn(|host| hosts >> host & 1 != 0);
                Self::Sidebands { tin, sidebands }
            }
        }
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
    /// What operators have ever wanted, by TiN and link.
    pub wanted: Vec<Wanted>,
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
        let wanted = |wanted: crate::proto::control::Wanted| {
            let wish = convert::from_wish(wanted.wish?)?;
            Some(Wanted { wish, is_drained: wanted.is_drained })
        };
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
            wanted: newest.wanted.into_iter().filter_map(wanted).collect(),
            sessions: newest.sessions.iter().map(session).collect(),
            processes,
        }
    }

    /// The front end that leads.
    async fn front_end(&self) -> Result<PeerClient<tonic::transport::Channel>, NotTaken> {
        let report = self.report().await;
        let leader = report.leaders.get(Role::FrontEnd.name()).filter(|leader| leader.is_there);
        let none = "no front end leads at the moment; try again in some seconds";
        let leader = leader.ok_or_else(|| NotTaken::Away(none.to_owned()))?;
        let place: Place = (Role::FrontEnd, leader.instance as u8);
        let address = self.cluster.address(place).unwrap_or_default();
        self.client(address).await.map_err(|status| away(&status))
    }

    /// Asks the front end that leads for another version of the firmware on all TiNs, so many at once; the number of the
    /// upgrade.
    ///
    /// # Errors
    /// Nobody leads, it does not answer, or it does not take the image.
    pub async fn upgrade(&self, image: &Image, at_once: u8) -> Result<u32, NotTaken> {
        let mut client = self.front_end().await?;
        let request = UpgradeRequest {
            header: image.header.encode().to_vec(),
            image: image.bytes().to_vec(),
            at_once: at_once.into(),
        };
        let reply = answer(client.upgrade(request)).await?;
        taken(reply.refused).map(|()| reply.number)
    }

    /// Tells the front end that leads what an operator wants. It is wanted from then on, whoever leads.
    ///
    /// # Errors
    /// Nobody leads, it does not answer, or there is no such thing.
    pub async fn want(&self, wish: Wish) -> Result<(), NotTaken> {
        let mut client = self.front_end().await?;
        taken(answer(client.want(convert::wish(wish))).await?.refused)
    }

    /// Whether what an operator wants is so: of what is to be drained, nothing passes it; of sidebands, the chip says so.
    ///
    /// # Errors
    /// The chip cannot be asked.
    pub async fn is_so(&self, wish: Wish, report: &Report) -> Result<bool, Status> {
        let Some(found) = report.wanted.iter().find(|wanted| wanted.wish == wish) else {
            return Ok(false);
        };
        match wish {
            Wish::Tin(_, admin) | Wish::Link(_, admin) => {
                Ok(found.is_drained == (admin == Admin::Drained) || admin == Admin::Off)
            }
            Wish::Sidebands(tin, hosts) => {
                let registers = self.registers(tin).await?;
                let is_on = |host: u8| registers.get(SIDEBAND_ALLOWED, [host.into()]) != 0;
                Ok((0..HOSTS).all(|host| is_on(host) == (hosts >> host & 1 != 0)))
            }
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

/// What is answered before patience ends.
async fn answer<T>(
    asked: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, NotTaken> {
    let silent = |_| NotTaken::Away("the front end does not answer".to_owned());
    let reply = tokio::time::timeout(PATIENCE, asked).await.map_err(silent)?;
    Ok(reply.map_err(|status| away(&status))?.into_inner())
}

fn away(status: &Status) -> NotTaken {
    NotTaken::Away(status.message().to_owned())
}

fn taken(refused: String) -> Result<(), NotTaken> {
    if refused.is_empty() { Ok(()) } else { Err(NotTaken::Refused(refused)) }
}

/// The place of a process, by the name of its role.
#[must_use]
pub fn role(name: &str) -> Option<Role> {
    Role::ALL.into_iter().find(|role| role.name() == name)
}
