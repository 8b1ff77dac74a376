//! What the command takes.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

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
    /// Repeat the experiments of a paper and put our figures beside its own.
    Reproduce(ReproduceArguments),
    /// Record what each node of the racks is given and does, as vectors to be replayed.
    Record(RecordArguments),
    /// List what there is: fabrics, workloads, published sizes, experiments.
    List(ListArguments),
    /// Describe the keys of a fabric, a workload or a table of the scenario file.
    Describe(DescribeArguments),
    /// Print the JSON Schema of the scenario file.
    Schema,
    /// Measure the engines' speed on this machine.
    Bench(BenchArguments),
    /// Compute what SCOC is made of: route allocation, a switch on a test bench.
    Scoc(ScocArguments),
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
    /// Say what memory and time the run would take, from its configuration and a probe of at most two
    /// seconds, and store nothing.
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
    /// The scenario file, TOML or JSON.
    pub scenario: PathBuf,
    /// A key and its values: --grid workload.load=0.2,0.5,0.8. Repeat for every combination.
    #[arg(long, required = true, value_name = "KEY=VALUE,...")]
    pub grid: Vec<String>,
    /// For all points, on top of the file.
    #[command(flatten)]
    pub settings: Settings,
    /// How many points run at a time. Default: as many as there are cores.
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<std::num::NonZero<usize>>,
    /// Where results go. Default: results/NAME-sweep.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
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
    /// Of `all`: write the page of all papers' claims, in Markdown, to this file.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Of `all`: run nothing, but judge what is measured already, by whatever build, by the claims of this one.
    #[arg(long)]
    pub judge: bool,
    /// Where results go. Default: reproduced/PAPER; of `all` reproduced/all-quick or reproduced/all-full.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
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
    /// A fabric, a workload, or one of: run, fault.
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
    /// Bytes of a packet.
    #[arg(long, value_name = "BYTES", default_value_t = 288)]
    pub packet: u64,
    /// Packet times that are measured, after a tenth as many that are not.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub packet_times: u64,
    /// Seed of all chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}
