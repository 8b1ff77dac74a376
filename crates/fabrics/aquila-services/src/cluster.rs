//! Which processes there are, and where: one file, which all of them read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use aquila::config::Profile;
use aquila::pipeline::plan::Plan;
use aquila::topology::{Fibres, Topology};
use aquila::turns::TurnTable;
use aquila_control::apps::Clique;
use aquila_control::apps::election::Application;
use aquila_control::flash::BLOCK_TIME;
pub use aquila_control::session::Versions;
use kernel::Span;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The file's name.
pub const FILE: &str = "cluster.json";

/// What a process is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Keeps the base, if etcd does not.
    Base,
    /// Computes routes.
    RoutingEngine,
    /// Puts operations in order.
    FlowManager,
    /// Writes registers, and has the sessions with TiNs.
    FrontEnd,
    /// Speaks with the inter-block routing controllers.
    InterBlock,
    /// What is outside: DHCP, and the inter-block routing controllers.
    Datacenter,
    /// TiNs: chips, their firmware, and their cables.
    Agent,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Base,
        Self::RoutingEngine,
        Self::FlowManager,
        Self::FrontEnd,
        Self::InterBlock,
        Self::Datacenter,
        Self::Agent,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::RoutingEngine => "routing-engine",
            Self::FlowManager => "flow-manager",
            Self::FrontEnd => "front-end",
            Self::InterBlock => "inter-block",
            Self::Datacenter => "datacenter",
            Self::Agent => "agent",
        }
    }

    /// The application that it is an instance of.
    #[must_use]
    pub const fn application(self) -> Option<Application> {
        match self {
            Self::RoutingEngine => Some(Application::RoutingEngine),
            Self::FlowManager => Some(Application::FlowManager),
            Self::FrontEnd => Some(Application::FrontEnd),
            Self::InterBlock => Some(Application::InterBlock),
            Self::Base | Self::Datacenter | Self::Agent => None,
        }
    }

    /// The role of an application's instances.
    #[must_use]
    pub const fn of(application: Application) -> Self {
        match application {
            Application::RoutingEngine => Self::RoutingEngine,
            Application::FlowManager => Self::FlowManager,
            Application::FrontEnd => Self::FrontEnd,
            Application::InterBlock => Self::InterBlock,
        }
    }
}

/// A process: its role, and which of those.
pub type Place = (Role, u8);

/// A process, and where it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Process {
    /// What it is.
    pub role: Role,
    /// Which of those.
    pub instance: u8,
    /// Address and port of its gRPC and its metrics.
    pub address: String,
}

/// How the hardware that is stood for behaves, and how patient the controller is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Times {
    /// From one management ordered set to the next (M614).
    pub mos_interval: Span,
    /// Until words are told apart on a cable.
    pub lock: Span,
    /// From then until cells cross it.
    pub up: Span,
    /// How long a call is tried (M804: 5 s).
    pub call: Span,
    /// For how long a lost session is only called for (M813: 10 s).
    pub reconnect: Span,
    /// After how long without a question for an address a TiN is taken to have one (150 s).
    pub asks: Span,
    /// To a TiN that is reached over TCP (M727). Unit: bytes a second.
    pub tcp_rate: u64,
    /// By PMOS. Unit: bytes a second.
    pub pmos_rate: u64,
    /// How long a control processor takes to start again (M609: 5 s).
    pub start: Span,
    /// How long its flash takes for a block (M617).
    pub block: Span,
}

impl Default for Times {
    fn default() -> Self {
        let ms = |ms: u64| Span::from_us(1_000 * ms);
        Self {
            mos_interval: Span::from_us(10),
            lock: ms(50),
            up: ms(200),
            call: ms(5_000),
            reconnect: ms(10_000),
            asks: ms(150_000),
            tcp_rate: 4_000_000,
            pmos_rate: 200_000,
            start: ms(5_000),
            block: BLOCK_TIME,
        }
    }
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cluster {
    /// Of the program that has written it: others do not read it.
    pub software: String,
    /// Which Clique.
    pub profile: Profile,
    /// TiNs that are connected to the datacenter's network.
    pub connected: Vec<u16>,
    /// Where etcd is, if it keeps the base.
    pub etcd: Option<String>,
    /// The folder of certificates, if peers are to show them.
    pub tls: Option<PathBuf>,
    /// Whether logs are lines of JSON.
    pub json_logs: bool,
    /// Over which versions of IP TiNs are called.
    pub versions: Versions,
    /// How fast everything is.
    pub times: Times,
    /// All processes.
    pub processes: Vec<Process>,
}

/// Why there is no such file.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// It cannot be read or written.
    #[error("{path}: {why}; expected the folder of a control plane: rackloom aquila control --dir")]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
    },
    /// It is none.
    #[error("{path}: {why}; expected what `rackloom aquila control` writes there")]
    Json {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: serde_json::Error,
    },
    /// Another version has written it.
    #[error("{path}: of version {found}; expected {expected}, this program's")]
    Version {
        /// Which.
        path: PathBuf,
        /// Of the file.
        found: String,
        /// Of this program.
        expected: &'static str,
    },
}

/// This program's version.
pub const SOFTWARE: &str = env!("CARGO_PKG_VERSION");

impl Cluster {
    /// Reads it from a folder.
    ///
    /// # Errors
    /// It is not there, or is none.
    pub fn read(folder: &Path) -> Result<Self, ClusterError> {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path)
            .map_err(|why| ClusterError::Io { path: path.clone(), why })?;
        let read: Result<Self, _> = serde_json::from_str(&text);
        let read = read.map_err(|why| ClusterError::Json { path: path.clone(), why })?;
        if read.software != SOFTWARE {
            let (found, expected) = (read.software, SOFTWARE);
            return Err(ClusterError::Version { path, found, expected });
        }
        Ok(read)
    }

    /// Writes it into a folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ClusterError> {
        let path = folder.join(FILE);
        let io = |why| ClusterError::Io { path: path.clone(), why };
        fs::create_dir_all(folder).map_err(io)?;
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|why| ClusterError::Json { path: path.clone(), why })?;
        fs::write(&path, text).map_err(io)
    }

    /// Where a process is.
    #[must_use]
    pub fn address(&self, place: Place) -> Option<&str> {
        let found = self.processes.iter().find(|p| (p.role, p.instance) == place);
        found.map(|process| process.address.as_str())
    }

    /// How many processes of a role there are.
    #[must_use]
    pub fn count(&self, role: Role) -> u8 {
        self.processes.iter().filter(|process| process.role == role).count() as u8
    }

    /// The agent that has a TiN: they have about as many each, by pod.
    #[must_use]
    pub fn agent_of(&self, tin: u16) -> u8 {
        let shape = self.profile.shape();
        let agents = u32::from(self.count(Role::Agent).max(1));
        (u32::from(shape.split(tin).0) * agents / u32::from(shape.pods)) as u8
    }

    /// What applications know from their configuration.
    ///
    /// # Panics
    /// Never: there are such Cliques.
    #[must_use]
    pub fn configuration(&self) -> Arc<Clique> {
        let shape = self.profile.shape();
        let topology = Topology::new(&shape, Fibres::Grid).expect("a Clique of the table");
        Arc::new(Clique::new(topology, TurnTable::P1, Plan::new(&shape, 2)))
    }
}
