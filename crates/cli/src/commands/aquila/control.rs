//! `rackloom aquila control` and `status`: the control plane as processes, and a look at it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aquila_services::cluster::{Role, Times};
use aquila_services::status::{self, Admin, Report, Viewer, Wish};
use aquila_services::supervisor::{self, Notice, Options, SupervisorError};
use aquila_services::{logs, process};

use super::super::DONE;
use crate::args::{ControlArguments, Format, ProcessArguments, StatusArguments};
use crate::engine::{Busy, EXIT_BROKEN, EXIT_INPUT};
use crate::interrupt;
use crate::output::Output;

/// How often it is asked whether to stop.
const PERIOD: Duration = Duration::from_millis(20);
/// How often it is looked whether all TiNs are ready.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn runtime() -> tokio::runtime::Runtime {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("the system has threads")
}

/// This program, and what comes before the arguments of a process. Python calls the command inside its own program, by a
/// script: that one is started then.
fn program() -> (PathBuf, Vec<String>) {
    let own = std::env::current_exe().unwrap_or_default();
    let is_ours =
        own.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("rackloom"));
    let script = std::env::args_os()
        .find(|argument| Path::new(argument).file_stem().is_some_and(|stem| stem == "rackloom"));
    let program = if is_ours { own } else { script.map_or(own, PathBuf::from) };
    (program, ["aquila", "process"].map(str::to_owned).to_vec())
}

/// Starts the control plane, until Ctrl-C.
pub fn control(arguments: &ControlArguments, output: &mut Output) -> u8 {
    let options = Options {
        folder: arguments.dir.clone(),
        profile: arguments.profile,
        connected: arguments.connected,
        agents: arguments.agents,
        etcd: arguments.etcd.clone(),
        tls: arguments.tls.clone(),
        bind: arguments.bind,
        versions: arguments.ip,
        json_logs: arguments.log_format == Format::Json,
        times: Times { mos_interval: arguments.mos_interval, ..Times::default() },
        program: program(),
    };
    if !arguments.bind.is_loopback() && arguments.tls.is_none() {
        output.note(&format!(
            "{}: whoever reaches this address can program the Clique; --tls asks peers for certificates",
            arguments.bind
        ));
    }
    let busy = Busy::begin();
    let runtime = runtime();
    let (folder, output) = (arguments.dir.clone(), &*output);
    let result = runtime.block_on(async {
        let (notices, mut told) = tokio::sync::mpsc::unbounded_channel();
        let stop = async {
            while !interrupt::is_asked() {
                tokio::time::sleep(PERIOD).await;
            }
            busy.stopping();
        };
        let run = supervisor::run(&options, stop, |notice| drop(notices.send(notice)));
        tokio::pin!(run);
        let mut progress = Progress::default();
        loop {
            tokio::select! {
                result = &mut run => break result,
                Some(notice) = told.recv() => tell(&notice, &folder, output),
                () = progress.look(&folder, output) => {}
            }
        }
    });
    runtime.shutdown_background();
    match result {
        Ok(()) => {
            output.note("all processes have ended; the base stays where it is");
            DONE
        }
        Err(error) => {
            output.error(&error.to_string());
            match error {
                SupervisorError::Io { .. } => EXIT_BROKEN,
                _ => EXIT_INPUT,
            }
        }
    }
}

fn tell(notice: &Notice, folder: &Path, output: &Output) {
    match notice {
        Notice::Started(count) => output.note(&format!(
            "{count} processes; look at them: rackloom aquila status --dir {}; Ctrl-C ends them",
            folder.display()
        )),
        Notice::Again { place: (role, instance), code } => {
            let how = code.map_or("was killed".to_owned(), |code| format!("ended with {code}"));
            output.note(&format!("{} {instance} {how}; it is started again", role.name()));
        }
    }
}

/// How many TiNs were ready when that was told last.
#[derive(Default)]
struct Progress {
    begun: Option<Instant>,
    viewer: Option<Viewer>,
    ready: Option<usize>,
}

impl Progress {
    /// Waits a while, and tells how many TiNs are ready if that is another number.
    async fn look(&mut self, folder: &Path, output: &Output) {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        tokio::time::sleep(LOOK).await;
        if self.viewer.is_none() {
            self.viewer = Viewer::new(folder).ok();
        }
        let Some(viewer) = &self.viewer else { return };
        let report = viewer.report().await;
        let ready = report.ready();
        if self.ready.replace(ready) != Some(ready) {
            let seconds = begun.elapsed().as_secs();
            output.note(&format!("{ready} of {} TiNs ready after {seconds} s", report.tins));
        }
    }
}

/// Looks into the folder of one that runs; the exit code, if there is none.
pub(super) fn viewer(folder: &Path, output: &mut Output) -> Result<Viewer, u8> {
    Viewer::new(folder).map_err(|error| {
        output.error(&error.to_string());
        EXIT_INPUT
    })
}

/// Shows one that runs.
pub fn status(arguments: &StatusArguments, output: &mut Output) -> u8 {
    let viewer = match viewer(&arguments.dir, output) {
        Ok(viewer) => viewer,
        Err(code) => return code,
    };
    let runtime = runtime();
    let report = runtime.block_on(viewer.report());
    runtime.shutdown_background();
    output.result(|_| table(&report), || serde_json::to_value(&report).unwrap_or_default());
    let is_there = report.processes.iter().any(|process| process.pid.is_some());
    if is_there { DONE } else { EXIT_BROKEN }
}

/// For people.
fn table(report: &Report) -> String {
    let mut text = String::new();
    let count = |which: &dyn Fn(&status::Session) -> bool| {
        report.sessions.iter().filter(|session| which(session)).count()
    };
    let _ = writeln!(
        text,
        "TiNs      {} of {} ready; sessions: {} over TCP, {} by PMOS",
        report.ready(),
        report.tins,
        count(&|session| session.is_up && !session.is_over_pmos),
        count(&|session| session.is_up && session.is_over_pmos),
    );
    let _ = writeln!(text, "firmware  {}", firmware(report));
    if let Some(set) = set(report) {
        let _ = writeln!(text, "set       {set}");
    }
    let batch = &report.batch;
    let _ = writeln!(
        text,
        "batch     {}, {}; rows that failed: {}, held back: {}, of TiNs that do not answer: {}",
        batch.number,
        if batch.is_done { "all results are in" } else { "results are awaited" },
        batch.failed,
        batch.held_back,
        batch.unreachable,
    );
    let _ = writeln!(
        text,
        "base      version {}, layout {}, {} rows, {:.1} MB, kept in {:.1} MB\n",
        report.base_version,
        report.base_layout,
        report.base_rows,
        report.base_raw_bytes as f64 / 1e6,
        report.base_stored_bytes as f64 / 1e6,
    );
    let _ = writeln!(
        text,
        "{:<16} {:>3} {:>8}  {:<22} {:>8}  {:<16} refused, malformed",
        "process", "", "pid", "address", "version", "part"
    );
    for process in &report.processes {
        let pid = process.pid.map_or("-".to_owned(), |pid| pid.to_string());
        let version = process.version.map_or("-".to_owned(), |version| version.to_string());
        let sum = |names: &[&str]| -> u64 {
            names.iter().filter_map(|name| process.counts.get(*name)).sum()
        };
        let refused = sum(&["peers_refused", "writes_refused", "base_deposed", "base_refused"]);
        let malformed = sum(&["malformed", "peers_malformed"]);
        let _ = writeln!(
            text,
            "{:<16} {:>3} {pid:>8}  {:<22} {version:>8}  {:<16} {refused}, {malformed}",
            process.role,
            process.instance,
            process.address,
            part(process),
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// Which versions run, and how far an upgrade is.
fn firmware(report: &Report) -> String {
    let mut versions = std::collections::BTreeMap::<u32, usize>::new();
    for session in report.sessions.iter().filter(|session| session.is_up) {
        *versions.entry(session.firmware).or_default() += 1;
    }
    let mut parts: Vec<String> =
        versions.iter().map(|(version, tins)| format!("version {version}: {tins} TiNs")).collect();
    if parts.is_empty() {
        parts.push("nobody has a session".to_owned());
    }
    let mut text = parts.join(", ");
    if let Some(upgrade) = &report.upgrade {
        let under_way = upgrade.sending.len() + upgrade.restarting.len();
        let (version, done) = (upgrade.version, upgrade.done);
        text += &format!("; upgrade to {version}: {done} of {} done", report.tins);
        if under_way > 0 {
            text += &format!(", {under_way} under way");
        }
        for (tin, why) in &upgrade.failed {
            text += &format!("; ended with TiN {tin}: {why}");
        }
    }
    text
}

/// What operators have set otherwise than it would be without them; `None`: nothing.
fn set(report: &Report) -> Option<String> {
    let part = |wanted: &status::Wanted| {
        let (name, admin) = match wanted.wish {
            Wish::Tin(tin, admin) => (format!("TiN {tin}"), admin),
            Wish::Link(link, admin) => (format!("link {link}"), admin),
            Wish::Sidebands(_, 0) => return None,
            Wish::Sidebands(tin, hosts) => {
                let hosts = ["host 0", "host 1", "hosts 0 and 1"][usize::from(hosts.min(3)) - 1];
                return Some(format!("sideband of TiN {tin}, {hosts}"));
            }
        };
        let state = status::admin(admin);
        match admin {
            Admin::InService => None,
            Admin::Drained if !wanted.is_drained => Some(format!("{name} to be {state}, not yet")),
            Admin::Drained | Admin::Off => Some(format!("{name} {state}")),
        }
    };
    let parts: Vec<String> = report.wanted.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn part(process: &status::Process) -> String {
    if process.silent.is_some() {
        return "does not answer".to_owned();
    }
    let role = status::role(process.role);
    match (process.term, role.and_then(Role::application)) {
        (Some(term), _) => format!("leads, term {term}"),
        (None, Some(_)) => "follows".to_owned(),
        (None, None) => {
            process.counts.get("tins").map_or("runs".to_owned(), |t| format!("{t} TiNs"))
        }
    }
}

/// Is one of its processes.
pub fn be(arguments: &ProcessArguments, output: &mut Output) -> u8 {
    let Some(role) = status::role(&arguments.role) else {
        output.error(&format!("--role {}: there is no such process", arguments.role));
        return EXIT_INPUT;
    };
    // Whatever comes of it, this is told of when the standard input ends.
    let _busy = Busy::begin();
    let json = aquila_services::cluster::Cluster::read(&arguments.dir).is_ok_and(|c| c.json_logs);
    logs::begin(json);
    match process::run_alone(&arguments.dir, (role, arguments.instance)) {
        Ok(()) => DONE,
        Err(error) => {
            output.error(&error.to_string());
            if error.is_final() { EXIT_INPUT } else { EXIT_BROKEN }
        }
    }
}
