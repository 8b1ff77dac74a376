//! What the command takes.

use std::path::PathBuf;

use aquila_services::cluster::Times;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use kernel::{Bytes, Span};
use reproductions::aquila::boot::{Boot, Profile, Versions};

use crate::catalogue::Listed;

/// The version with the commit that was built, where one is known.
pub fn version() -> &'static str {
    match env!("RACKLOOM_COMMIT") {
        "" => crate::VERSION,
        _ => concat!(env!("CARGO_PKG_VERSION"), " (", env!("RACKLOOM_COMMIT"), ")"),
    }
}

/// Simulates published network fabrics for racks of servers.
#[derive(Debug, Parser)]
#[command(name = "rackloom", version = version(), propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 a run broke, a check failed, output could not be written, or an \
                  internal error, which asks to be reported; 2 bad input, nothing was written; 130 \
                  interrupted."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Say nothing on the terminal but results and errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// How tables are printed.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub format: Format,
}

/// How tables are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For scripts.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario once.
    Run(RunArguments),
    /// Run the same flows through several fabrics.
    Compare(CompareArguments),
    /// Run a scenario over a grid of settings; goes on where it was stopped.
    Sweep(SweepArguments),
    /// Search among scenarios for the best of those that meet conditions; goes on where it was stopped.
    Search(SearchArguments),
    /// Repeat the experiments of a paper and put our figures beside its own.
    Reproduce(ReproduceArguments),
    /// Tell where the time of a flow went, of a run that recorded its packets (run.trace).
    Why(WhyArguments),
    /// Explore results in a browser: plots that show the same flows, why a flow was slow, runs under way.
    View(ViewArguments),
    /// Record what each node of the racks is given and does, as vectors to be replayed.
    Record(RecordArguments),
    /// List what there is: fabrics, workloads, published sizes, experiments.
    List(ListArguments),
    /// Describe what a scenario file holds: fabrics, workloads, transports, sizes, single keys.
    Describe(DescribeArguments),
    /// Print the JSON Schema of the scenario file.
    Schema,
    /// Measure the engines' speed on this machine.
    Bench(BenchArguments),
    /// Compute what SCOC is made of: route allocation, a switch on a test bench.
    Scoc(ScocArguments),
    /// Run Aquila's control plane: in simulated time, or as processes.
    Aquila(AquilaArguments),
    /// Print a completion script for a shell.
    Completions(CompletionsArguments),
}

/// Settings on top of a scenario file.
#[derive(Debug, Args)]
pub struct Settings {
    /// Set a key of the scenario: --set workload.load=0.8. Repeat for several.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Set the seed.
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
}

/// `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The scenario file, TOML or JSON.
    pub scenario: PathBuf,
    /// On top of the file.
    #[command(flatten)]
    pub settings: Settings,
    /// Say what memory and time the run would take, from its configuration and a probe of two seconds after
    /// it has been set up, and store nothing.
    #[arg(long, conflicts_with = "out")]
    pub estimate: bool,
    /// Where results go. Default: results/NAME-HASH.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The scenario files; or one with several [[fabric]].
    #[arg(required = true)]
    pub scenarios: Vec<PathBuf>,
    /// On top of each file.
    #[command(flatten)]
    pub settings: Settings,
    /// How many fabrics run at a time. Default: as many as there are cores.
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<std::num::NonZero<usize>>,
    /// Where results go. Default: results/NAME-HASH.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `sweep`.
#[derive(Debug, Args)]
pub struct SweepArguments {
    /// The scenario file, TOML or JSON; with --report the directory of a sweep.
    pub scenario: PathBuf,
    /// A key and its values: --grid workload.load=0.2,0.5,0.8. Repeat for every combination.
    #[arg(long, value_name = "KEY=VALUE,...", required_unless_present_any = ["seeds", "report"])]
    pub grid: Vec<String>,
    /// Run each with N seeds, from the scenario's on: figures are means with 95 % intervals.
    #[arg(long, value_name = "N")]
    pub seeds: Option<std::num::NonZero<u32>>,
    /// Draw a key of the summary, such as slowdown.all.p99, as SVG and PDF. Repeat for several.
    #[arg(long, value_name = "KEY")]
    pub plot: Vec<String>,
    /// What figures go over: a key of the grid or of the summary. Default: the first of the grid.
    #[arg(long, value_name = "KEY")]
    pub over: Option<String>,
    /// The axis of figures that is logarithmic. Repeat for both.
    #[arg(long, value_name = "x|y", value_enum)]
    pub log: Vec<PlotAxis>,
    /// Also write the means, a row for each setting and fabric, to a file of your choice.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Make tables, page and figures of a sweep again, from its directory, and run nothing.
    #[arg(long, conflicts_with_all = ["grid", "seeds", "set", "seed", "jobs", "dask", "out"])]
    pub report: bool,
    /// For all points, on top of the file.
    #[command(flatten)]
    pub settings: Settings,
    /// How many points run at a time. Default: as many as there are cores.
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<std::num::NonZero<usize>>,
    /// Run the points on the workers of a Dask cluster: the scheduler's address, as tcp://HOST:8786, or its
    /// file.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs")]
    pub dask: Option<String>,
    /// Where results go. Default: results/NAME-sweep.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `search`.
#[derive(Debug, Args)]
pub struct SearchArguments {
    /// The scenario file, TOML or JSON. Of several fabrics, which is best is part of the search.
    pub scenario: PathBuf,
    /// A key and what it may be: fabric.nodes=16..64, with /STEP behind it; "fabric.wire_latency=10 ns..10 us log", by its
    /// logarithm; workload.kind=poisson,shuffle; fabric=Shoal,NDP of several fabrics. Repeat for several.
    #[arg(long, value_name = "KEY=LOW..HIGH|VALUE,...")]
    pub over: Vec<String>,
    /// A number of the summary that is to be small: equipment.cost_ratio. Of several aims the front is found.
    #[arg(
        long,
        visible_alias = "minimize",
        value_name = "KEY",
        required_unless_present = "maximise"
    )]
    pub minimise: Vec<String>,
    /// A number of the summary that is to be large.
    #[arg(long, visible_alias = "maximize", value_name = "KEY")]
    pub maximise: Vec<String>,
    /// What has to hold: "fct.short.p999 < 50 us"; with <, <=, > or >=. Repeat for several.
    #[arg(long, value_name = "KEY<LIMIT")]
    pub subject: Vec<String>,
    /// How many trials are made in all, with those of earlier searches in the same directory.
    #[arg(long, value_name = "N", default_value = "50")]
    pub trials: std::num::NonZero<usize>,
    /// Run each with N seeds, from the scenario's on: the search goes by means.
    #[arg(long, value_name = "N")]
    pub seeds: Option<std::num::NonZero<u32>>,
    /// For all trials, on top of the file. The seed is also that of the search.
    #[command(flatten)]
    pub settings: Settings,
    /// How many trials run at a time. The trials depend on it: give it where they are to be the same elsewhere.
    /// Default: as many as there are cores, or as many as the cluster's workers have threads.
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<std::num::NonZero<usize>>,
    /// Run the trials on the workers of a Dask cluster: the scheduler's address, as tcp://HOST:8786, or its file.
    #[arg(long, value_name = "ADDRESS")]
    pub dask: Option<String>,
    /// Where results go. Default: results/NAME-search.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// An axis of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PlotAxis {
    /// The horizontal one.
    X,
    /// The vertical one.
    Y,
}

/// `reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArguments {
    /// The paper, as `rackloom list experiments` names it; or `all`: every experiment of every paper, which goes
    /// on where it was stopped.
    pub paper: String,
    /// Which experiments. Default: all. After `all`, papers (`pl2`) or experiments (`pl2/fig3`), which are carried
    /// out in this order.
    pub experiments: Vec<String>,
    /// Minutes on two cores: fewer flows and seeds than the paper. The default.
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// The paper's size.
    #[arg(long)]
    pub full: bool,
    /// Runs at a time. Default: as many as there are cores.
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZero<usize>>,
    /// Of `all`: carry the experiments out on the workers of a Dask cluster, which have the same build: the scheduler's
    /// address, as tcp://HOST:8786, or its file.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "judge"])]
    pub dask: Option<String>,
    /// Of `all`: write the page of all papers' claims, in Markdown, to this file.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Of `all`: run nothing, but judge what is measured already, by whatever build, by the claims of this one.
    #[arg(long)]
    pub judge: bool,
    /// Of `all`: judge what was measured in this directory, too, as `--out` names them, where it took more computing than what
    /// is in that of this command, or is not there.
    #[arg(long, value_name = "DIR")]
    pub beside: Option<PathBuf>,
    /// Where results go. Default: reproduced/PAPER; of `all` reproduced/all-quick or reproduced/all-full.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `why`.
#[derive(Debug, Args)]
pub struct WhyArguments {
    /// The results directory of a run.
    pub results: PathBuf,
    /// The number of the flow. Default: all that were recorded, the slowest first.
    pub flow: Option<u64>,
    /// Write a trace for ui.perfetto.dev and chrome://tracing: of the flow, or of all that were recorded.
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write the packets as a capture for Wireshark: of the flow, or of all that were recorded.
    #[arg(long, value_name = "FILE")]
    pub pcapng: Option<PathBuf>,
}

/// `view`.
#[derive(Debug, Args)]
pub struct ViewArguments {
    /// The directory whose results are shown, with all below it.
    #[arg(value_name = "DIR", default_value = "results")]
    pub directory: PathBuf,
    /// The port of 127.0.0.1 where the page is served. Default: a free one.
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    pub port: u16,
    /// Open the page in the browser of the desktop.
    #[arg(long)]
    pub open: bool,
}

/// `record`.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// The scenario file, TOML or JSON.
    pub scenario: PathBuf,
    /// On top of the file.
    #[command(flatten)]
    pub settings: Settings,
    /// How many flows of the workload are carried: the first.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub flows: u64,
    /// Where the vectors go: a file a node, and their schema; of several fabrics, each in a directory of its own.
    /// Default: results/NAME-HASH-vectors.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// What to list. Default: everything.
    #[arg(value_enum)]
    pub what: Option<Listed>,
}

/// `describe`.
#[derive(Debug, Args)]
pub struct DescribeArguments {
    /// A fabric (shoal), a workload (poisson), run, fault, fabric or workload; a part of one (packet-switched.transport.ndp),
    /// a single key (shoal.guard); a transport (ndp) or a distribution of sizes (W4).
    pub name: String,
}

/// `bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// Only the benchmarks whose name holds this.
    pub filter: Option<String>,
}

/// `scoc`.
#[derive(Debug, Args)]
pub struct ScocArguments {
    /// What to compute.
    #[command(subcommand)]
    pub what: ScocCommand,
}

/// What to compute of SCOC.
#[derive(Debug, Subcommand)]
pub enum ScocCommand {
    /// Share of a permutation's connections that get a route: algorithms F and F′, and Eq. 1.
    Routes(RoutesArguments),
    /// One switch on a test bench: what it carries and how long that takes.
    Bench(SwitchArguments),
}

/// `scoc routes`.
#[derive(Debug, Args)]
pub struct RoutesArguments {
    /// Ports of the switch.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub ports: usize,
    /// Routes, and ports of a group.
    #[arg(long, value_name = "M", default_value_t = 4)]
    pub routes: usize,
    /// Rounds of F.
    #[arg(long, value_name = "K,...", value_delimiter = ',', default_value = "1,2,3")]
    pub rounds: Vec<usize>,
    /// Random permutations behind each mean.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub permutations: u64,
    /// Seed of all chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// `scoc bench`.
#[derive(Debug, Args)]
pub struct SwitchArguments {
    /// scoc, flat, flat-fast (with SCOC's speed-up), hiera, crrd or output-queued.
    #[arg(long, value_name = "NAME", default_value = "scoc")]
    pub switch: String,
    /// Its ports.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub ports: u32,
    /// uniform, diagonal, log-diagonal, partitioned, bit-reverse, bit-complement, shuffle,
    /// transpose, random-permutation, unbalanced:SHARE or hot-spot:SHARE.
    #[arg(long, value_name = "NAME", default_value = "uniform", conflicts_with = "connection")]
    pub pattern: String,
    /// A connection and its share of the line rate: 0:8:0.5. Repeat for several, instead of a
    /// pattern.
    #[arg(long, value_name = "INPUT:OUTPUT:SHARE")]
    pub connection: Vec<String>,
    /// Share of the time that lines are busy; 1 is always.
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    pub load: f64,
    /// Size of a packet.
    #[arg(long, value_name = "SIZE", default_value = "288 B")]
    pub packet: Bytes,
    /// Packet times that are measured, after a tenth as many that are not.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub packet_times: u64,
    /// Seed of all chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// `aquila`.
#[derive(Debug, Args)]
pub struct AquilaArguments {
    /// What to do.
    #[command(subcommand)]
    pub what: AquilaCommand,
}

/// What to do with Aquila's control plane.
#[derive(Debug, Subcommand)]
pub enum AquilaCommand {
    /// Boot a Clique from power-on, in simulated time: who boots whom, when, and how long it takes.
    Bootstrap(BootstrapArguments),
    /// Start the controller and the TiNs of a Clique as processes, until Ctrl-C.
    #[command(
        after_help = "Two instances of each application speak gRPC with each other and keep what they know in a base; \
                      agents have the chips, their firmware and the cables. The Clique boots from power-on, in band. A \
                      process that ends is started again. Look at it with `rackloom aquila status`; logs are in DIR/log, \
                      metrics in Prometheus's format at http://ADDRESS/metrics of each process.\n\nThe base is a process \
                      and the file DIR/base.log, or etcd, which is to be started with --max-txn-ops=32768 \
                      --max-request-bytes=33554432. It outlives the command: the next start goes on with it."
    )]
    Control(ControlArguments),
    /// Show the processes, leaders, batches and sessions of a control plane that runs.
    Status(StatusArguments),
    /// List the links of a control plane's Clique: their numbers, ends and delays, and what is set of them.
    Links(LinksArguments),
    /// Have all TiNs of a control plane that runs get another version of their firmware, a few at a time.
    #[command(
        after_help = "The image goes to each TiN over its session, block by block; then the TiN's control processor \
                      restarts with it, while its chip goes on with what it holds. A TiN with which it does not come to \
                      its end ends the upgrade, and what runs there goes on. Interrupted, the command ends; the upgrade goes \
                      on, also with another front end."
    )]
    Upgrade(UpgradeArguments),
    /// Drain a TiN or a link of a control plane that runs, or put it back; switch management sidebands on or off.
    #[command(
        after_help = "What is set is kept in the base, until something else is set. Nothing that is drained loses a packet: \
                      routes leave it first. The command waits until it is so; interrupted, it ends, and the controller \
                      goes on. `rackloom aquila status` shows what is set."
    )]
    Set(SetArguments),
    /// Be one of its processes.
    #[command(hide = true)]
    Process(ProcessArguments),
}

/// `aquila bootstrap`.
#[derive(Debug, Args)]
pub struct BootstrapArguments {
    /// The Clique: full (576 TiNs), half, mini (68) or tiny (18).
    #[arg(long, value_name = "NAME", default_value_t = Profile::Full)]
    pub profile: Profile,
    /// TiNs connected to the datacenter's network, spread evenly. Default: 512 of 576.
    #[arg(long, value_name = "N")]
    pub connected: Option<u16>,
    /// How many TiNs a proxy boots at once: one, and then another, in the paper (§4.4).
    #[arg(long, value_name = "N", default_value_t = Boot::default().targets)]
    pub targets: u8,
    /// From one management ordered set, of six bytes, to the next on a link. The default is fitted to the paper's
    /// shortest and longest bootstrap of a TiN (§4.4); 10 us shows what happens, and not how long it takes.
    #[arg(long, value_name = "TIME", default_value_t = Boot::default().mos_interval)]
    pub mos_interval: Span,
    /// What a control processor takes for an entry of a register. The default is fitted in the same way.
    #[arg(long, value_name = "TIME", default_value_t = Boot::default().entry_time)]
    pub entry_time: Span,
    /// Of a million ordered sets, how many are lost.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub mos_lost: u32,
    /// What happens meanwhile: TIME:KIND:NUMBER, as "60 s:power-off:7". Kinds: link-down, link-up,
    /// ethernet-down, ethernet-up, restart, power-off, power-on; "60 s:controller"; and upgrade, to a version of the
    /// firmware that all TiNs are to run, as "1 h:upgrade:2", with upgrade-cold if chips are to start again with their
    /// processors, and upgrade-silent for an image that starts and never connects. Repeat for several.
    #[arg(long, value_name = "FAULT")]
    pub fault: Vec<String>,
    /// How many TiNs at once get another version of the firmware.
    #[arg(long, value_name = "N", default_value_t = Boot::default().at_once)]
    pub at_once: u8,
    /// Over which version of IP the controller has its sessions: v4, v6, or both: v6, and after a call that nobody
    /// answered v4, in turns.
    #[arg(long, value_name = "VERSION", default_value_t)]
    pub ip: Versions,
    /// Simulated time after which it is given up.
    #[arg(long, value_name = "TIME", default_value_t = Boot::default().limit)]
    pub limit: Span,
    /// Seed of all chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where results go. Default: results/aquila-bootstrap-PROFILE.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `aquila control`.
#[derive(Debug, Args)]
pub struct ControlArguments {
    /// Where it keeps the base, its logs and what `status` reads.
    #[arg(long, value_name = "DIR", default_value = "aquila-control")]
    pub dir: PathBuf,
    /// Which Clique, as of `aquila bootstrap`.
    #[arg(long, value_name = "NAME", default_value_t = Profile::Mini)]
    pub profile: Profile,
    /// How many TiNs are connected to the datacenter's network, evenly.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub connected: u16,
    /// How many processes have the TiNs.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub agents: u8,
    /// Keep the base in etcd: http://HOST:PORT, or https:// with the certificates of --tls.
    #[arg(long, value_name = "ENDPOINT")]
    pub etcd: Option<String>,
    /// Have all processes show certificates to each other: DIR has ca.pem, cert.pem (for the name localhost) and key.pem.
    #[arg(long, value_name = "DIR")]
    pub tls: Option<PathBuf>,
    /// Where processes listen. Others can reach an address that is not loopback: use --tls then.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: std::net::IpAddr,
    /// How logs are written.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: Format,
    /// Over which version of IP the controller has its sessions, as of `aquila bootstrap`.
    #[arg(long, value_name = "VERSION", default_value_t)]
    pub ip: Versions,
    /// From one management ordered set to the next on a cable.
    #[arg(long, value_name = "TIME", default_value_t = Times::default().mos_interval)]
    pub mos_interval: Span,
}

/// `aquila status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// The folder of `rackloom aquila control --dir`.
    #[arg(long, value_name = "DIR", default_value = "aquila-control")]
    pub dir: PathBuf,
}

/// `aquila links`.
#[derive(Debug, Args)]
pub struct LinksArguments {
    /// Those of one TiN alone, seen from it.
    #[arg(long, value_name = "TIN")]
    pub tin: Option<u16>,
    /// The folder of `rackloom aquila control --dir`.
    #[arg(long, value_name = "DIR", default_value = "aquila-control")]
    pub dir: PathBuf,
}

/// `aquila upgrade`.
#[derive(Debug, Args)]
pub struct UpgradeArguments {
    /// Which version; TiNs leave the factory with 1.
    #[arg(value_name = "VERSION", value_parser = clap::value_parser!(u16).range(1..))]
    pub to: u16,
    /// How many TiNs at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    pub at_once: u8,
    /// The generation of chips that the image is for: those of this Clique are of generation 1.
    #[arg(long, value_name = "N", default_value_t = aquila_services::status::GENERATION)]
    pub generation: u8,
    /// The folder of `rackloom aquila control --dir`.
    #[arg(long, value_name = "DIR", default_value = "aquila-control")]
    pub dir: PathBuf,
}

/// `aquila set`.
#[derive(Debug, Args)]
pub struct SetArguments {
    /// What to set.
    #[command(subcommand)]
    pub what: SetWhat,
    /// The folder of `rackloom aquila control --dir`.
    #[arg(long, value_name = "DIR", default_value = "aquila-control", global = true)]
    pub dir: PathBuf,
}

/// What operators set.
#[derive(Clone, Debug, Subcommand)]
pub enum SetWhat {
    /// Whether a TiN is to be used.
    Tin {
        /// Which: 0 to 67 of a mini Clique.
        tin: u16,
        /// What it is to be.
        #[arg(value_enum)]
        state: SetState,
    },
    /// Whether a link is to be used.
    Link {
        /// The TiN and port at either of its ends, as 3:12, or the link's number; `rackloom aquila links` lists them.
        #[arg(value_name = "TIN:PORT")]
        link: LinkName,
        /// What it is to be.
        #[arg(value_enum)]
        state: SetState,
    },
    /// Which hosts' management controllers are reached through the Clique, over the TiN's management sidebands.
    Sideband {
        /// Of which TiN.
        tin: u16,
        /// Of which of its hosts.
        #[arg(value_enum)]
        hosts: SetHosts,
    },
}

/// What a TiN or a link is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum SetState {
    /// It is to be used.
    InService,
    /// It is to carry nothing, so that it can be taken out without loss.
    Drained,
    /// It is taken for dead.
    Off,
}

/// Hosts of a TiN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum SetHosts {
    /// Neither.
    None,
    /// The first alone.
    #[value(name = "0")]
    First,
    /// The second alone.
    #[value(name = "1")]
    Second,
    /// Both.
    Both,
}

/// A link, by its number or by one of its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkName {
    /// Its number in the topology.
    Number(u32),
    /// A TiN and its port.
    End(u16, u8),
}

impl std::str::FromStr for LinkName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let end =
            |(tin, port): (&str, &str)| Some(Self::End(tin.parse().ok()?, port.parse().ok()?));
        let link = text.split_once(':').map_or_else(|| text.parse().ok().map(Self::Number), end);
        link.ok_or("expected TIN:PORT, as 3:12, or the number of a link")
    }
}

/// `aquila process`.
#[derive(Debug, Args)]
pub struct ProcessArguments {
    /// What it is.
    #[arg(long)]
    pub role: String,
    /// Which of those.
    #[arg(long)]
    pub instance: u8,
    /// The folder of the control plane.
    #[arg(long)]
    pub dir: PathBuf,
}

/// `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}
