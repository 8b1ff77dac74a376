//! From a tree to a scenario, collecting every problem on the way.
//!
//! First the schema, then, for each table that passes it, what only the code behind it can check:
//! so one mistake in `[workload]` does not hide another in `[fabric]`.

use std::path::Path;

use kernel::{Bytes, Rate, Span, Time};
use rack::memory::binary;
use rack::workload::config::WorkloadContext;
use rack::{Problem, Workload};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::faults::{self, FaultConfig};
use crate::links::{self, Stated};
use crate::problem::{BadInput, Located, quoted};
use crate::registry::{self, Registry};
use crate::run_config::{RunConfig, WarmUp};
use crate::scenario::{FabricChoice, Scenario, distinguish};
use crate::source::{Document, read_text};
use crate::tree::{Item, Node};
use crate::workload::WorkloadChoice;
use crate::{check, schema};

/// The seed of a scenario that states none.
const SEED_DEFAULT: u64 = 1;

/// Longest name of a scenario; file systems take 255 bytes, and a hash follows. Our choice.
const NAME_MAX: usize = 100;

/// Reads `document`.
pub fn read(document: &Document, registry: &Registry) -> Result<Scenario, BadInput> {
    let schema = schema::scenario(registry);
    let problems = check::check(&document.name, &document.root, &schema);
    let mut reader = Reader { document, problems };
    let name = reader.name();
    let seed = reader.table("seed").unwrap_or(SEED_DEFAULT);
    let run: RunConfig = reader.table("run").unwrap_or_default();
    let faults: Vec<FaultConfig> = reader.table("fault").unwrap_or_default();
    let mut fabrics = reader.fabrics(registry);
    let workload = reader.workload(registry);
    if let Some(first) = fabrics.first() {
        let nodes = first.plan.nodes();
        reader.check_faults(&faults, &fabrics, (seed, registry.memory()));
        reader.check_trace(&run, &fabrics, seed);
        if let Some(workload) = &workload {
            let load_rate = workload.load_rate.unwrap_or_else(|| first.plan.load_rate());
            reader.check_flows(workload, &run, &WorkloadContext { nodes, seed, load_rate });
        }
    }
    BadInput::unless_empty(reader.problems)?;
    distinguish(&mut fabrics);
    let workload = workload.expect("a workload without problems was read");
    Ok(Scenario { name, seed, run, workload, fabrics, faults, free_threads: 1 })
}

struct Reader<'a> {
    document: &'a Document,
    problems: Vec<Located>,
}

impl Reader<'_> {
    fn complain(&mut self, path: &str, message: impl Into<String>) {
        let place = self.document.root.place_of(path).clone();
        self.problems.push(Located::new(&self.document.name, place, path, message));
    }

    /// Problems of the code behind the table at `path`.
    fn complain_below(&mut self, path: &str, problems: Vec<Problem>) {
        for problem in problems {
            let dot = if problem.key.is_empty() || path.is_empty() { "" } else { "." };
            self.complain(&format!("{path}{dot}{}", problem.key), problem.message);
        }
    }

    /// Whether nothing is wrong with what is at `path` so far.
    fn is_clean(&self, path: &str) -> bool {
        let below = |found: &str| {
            let rest = found.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        !self.problems.iter().any(|problem| below(problem.path()))
    }

    /// What is at the top-level key `key`, if it is there and clean.
    fn table<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let node = self.document.root.get(key)?;
        if !self.is_clean(key) {
            return None;
        }
        match registry::read(node.to_json()) {
            Ok(value) => Some(value),
            Err(problems) => {
                self.complain_below(key, problems);
                None
            }
        }
    }

    fn name(&mut self) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let Some(name) = self.document.root.get("name").and_then(Node::text) else {
            let stem = Path::new(&self.document.name).file_stem().unwrap_or_default();
            let stem = stem.to_string_lossy().replace(|c| !fits(c), "-");
            let stem = stem.trim_start_matches(['.', '-']);
            return if stem.is_empty() { "scenario".into() } else { stem.into() };
        };
        if !name.chars().all(fits) || name.starts_with(['.', '-']) {
            let message = format!(
                "found {}; expected letters, digits, '.', '-' and '_', a letter or digit first: it names \
                 a folder",
                quoted(name)
            );
            self.complain("name", message);
        } else if name.len() > NAME_MAX {
            let message =
                format!("found a name of {} letters; expected at most {NAME_MAX}", name.len());
            self.complain("name", message);
        }
        name.to_string()
    }

    fn fabrics(&mut self, registry: &Registry) -> Vec<FabricChoice> {
        let Some(node) = self.document.root.get("fabric") else { return Vec::new() };
        let lone = !matches!(node.item, Item::List(_));
        let mut fabrics: Vec<FabricChoice> = Vec::new();
        for (index, node) in node.one_or_many().iter().enumerate() {
            let path = if lone { "fabric".into() } else { format!("fabric[{index}]") };
            let kind = node.get("kind").and_then(Node::text).and_then(|k| registry.fabric(k));
            let Some(kind) = kind.filter(|_| self.is_clean(&path)) else { continue };
            let (mut config, [_, label]) = split(node, ["kind", "label"]);
            if let Err(problem) = fetch_texts(&mut config, &self.document.folder) {
                self.complain_below(&path, vec![problem]);
                continue;
            }
            let label = label.and_then(|label| label.as_str().map(str::to_string));
            let plan = match kind.plan(config, registry.memory()) {
                Ok(plan) => plan,
                Err(problems) => {
                    self.complain_below(&path, problems);
                    continue;
                }
            };
            if let Some(first) = fabrics.first().filter(|f| f.plan.nodes() != plan.nodes()) {
                let (found, expected) = (plan.nodes(), first.plan.nodes());
                let message = format!(
                    "found {found}; expected {expected}, as many as the first fabric: all carry \
                     the same flows"
                );
                self.complain(&format!("{path}.nodes"), message);
            }
            let label = label.unwrap_or_else(|| kind.name().to_string());
            fabrics.push(FabricChoice { kind: kind.name(), label, plan });
        }
        fabrics
    }

    fn workload(&mut self, registry: &Registry) -> Option<WorkloadChoice> {
        let node = self.document.root.get("workload").filter(|_| self.is_clean("workload"))?;
        match WorkloadChoice::read(node.to_json(), &self.document.folder, registry.memory()) {
            Ok(workload) => Some(workload),
            Err(problems) => {
                self.complain_below("workload", problems);
                None
            }
        }
    }

    /// Checks that each of the fabrics can have the faults, and that a run with them takes no more memory
    /// than there may be.
    fn check_faults(
        &mut self,
        faults: &[FaultConfig],
        fabrics: &[FabricChoice],
        (seed, limit): (u64, Bytes),
    ) {
        let nodes = fabrics[0].plan.nodes();
        let expanded = match faults::expand(faults, nodes, seed) {
            Ok(expanded) => expanded,
            Err(problems) => return self.complain_below("", problems),
        };
        for choice in fabrics {
            let memory = choice.memory(faults);
            if memory > limit {
                let (label, memory, limit) = (&choice.label, binary(memory), binary(limit));
                let message = format!(
                    "{label}: a run of a rack of this size in which something fails takes some {memory} of \
                     memory, and the limit is {limit}; take fewer nodes, or no faults"
                );
                self.complain("fault", message);
                continue;
            }
            for problem in choice.plan.check_faults(&expanded).err().unwrap_or_default() {
                self.complain("fault", format!("{}: {}", choice.label, problem.message));
            }
        }
    }

    /// Checks that what is to be recorded can be.
    fn check_trace(&mut self, run: &RunConfig, fabrics: &[FabricChoice], seed: u64) {
        if run.trace.is_none() || !self.problems.is_empty() {
            return;
        }
        if run.seeds > 1 {
            let message = "records the packets of one run, and run.seeds asks for several; leave one of the \
                           two out";
            return self.complain("run.trace", message);
        }
        for choice in fabrics {
            let rack = choice.plan.rack(&[], seed);
            let why = rack.ok().and_then(|rack| rack.can_trace().err());
            if let Some(problem) = why {
                let message = format!("{}; leave run.trace out", problem.message);
                self.complain("run.trace", message);
            }
        }
    }

    /// Draws the workload once, for what only that shows, and checks that the run ends.
    fn check_flows(
        &mut self,
        workload: &WorkloadChoice,
        run: &RunConfig,
        context: &WorkloadContext,
    ) {
        if context.load_rate == Rate::from_bps(0) {
            return self.complain("workload.load_rate", "found 0 bps; expected a rate above zero");
        }
        match workload.build(context) {
            Err(problems) => self.complain_below("workload", problems),
            Ok(drawn) if self.is_clean("run") => self.check_run(drawn.as_ref(), run),
            Ok(_) => {}
        }
    }

    fn check_run(&mut self, workload: &dyn Workload, run: &RunConfig) {
        let flows = run.flows.or(workload.total());
        if run.flows.is_none()
            && run.window.is_none()
            && run.time.is_none()
            && !workload.is_finite()
        {
            let message = "none of flows, window and time is given, and this workload never ends by \
                           itself; add flows = 100000, say";
            self.complain("run", message);
        }
        if run.flows.is_some() && run.window.is_some() {
            self.complain("run.window", "flows and window are both given; remove one");
        }
        if run.window.is_some() && workload.is_reactive() {
            let message = "found a time, but here flows start when others end; give flows instead";
            self.complain("run.window", message);
        }
        if run.window == Some(Span::ZERO) || run.time == Some(Span::ZERO) {
            let key = if run.time == Some(Span::ZERO) { "run.time" } else { "run.window" };
            self.complain(key, "found 0 ps; expected a time above zero, such as \"1 ms\"");
        }
        let limit = rack::run::TIME_MAX - Time::ZERO;
        let times = [
            ("run.window", run.window),
            ("run.time", run.time),
            ("run.sample", Some(run.sample)),
            ("run.warm_up", if let WarmUp::Time(span) = run.warm_up { Some(span) } else { None }),
        ];
        for (key, found) in times {
            if let Some(found) = found.filter(|&found| found > limit) {
                let message = format!("found {found}; expected at most {limit}, the longest run");
                self.complain(key, message);
            }
        }
        match run.warm_up {
            WarmUp::Share(share) if share > 0.0 && flows.is_none() => {
                let message = "found a share of flows whose number is not known; expected a time, \
                               such as \"1 ms\", or run.flows as well";
                self.complain("run.warm_up", message);
            }
            WarmUp::Time(_) if workload.is_reactive() => {
                let message = "found a time, but here flows start when others end; expected a share \
                               of the flows, such as 0.1";
                self.complain("run.warm_up", message);
            }
            _ => {}
        }
        if run.sample.as_ps() == 0 {
            self.complain("run.sample", "found 0 ps; expected a time above zero, such as \"1 us\"");
        }
    }
}

/// Keys of a fabric whose value is a table of many lines or, in one line, the path of its file.
const TEXTS: [(&str, &str); 1] = [("topology", "edges")];

/// Puts the text of the file in the place of its path, which is below `folder`. So a resolved
/// scenario needs no other file.
fn fetch_texts(config: &mut Value, folder: &Path) -> Result<(), Problem> {
    for (table, key) in TEXTS {
        let Some(graph) = config.get_mut(table) else { continue };
        let is_given = |graph: &Value, key: &str| graph.get(key).is_some_and(|key| !key.is_null());
        let stated = Stated { rate: is_given(graph, "rate"), delay: is_given(graph, "delay") };
        let Some(Value::String(text)) = graph.get_mut(key) else { continue };
        if text.is_empty() {
            continue;
        }
        let complain = |message: String| Problem::new(format!("{table}.{key}"), message);
        let mut name = "line".to_string();
        if !text.contains('\n') {
            let path = folder.join(&*text);
            name = path.display().to_string();
            *text = read_text(&path).map_err(|message| complain(format!("{name} {message}")))?;
        }
        let links = links::read(&name, std::mem::take(text), stated).map_err(complain)?;
        *text = links.text;
        check_hosts(&config[table], links.hosts)?;
    }
    Ok(())
}

/// Holds the hosts of a graph against what its file says.
fn check_hosts(graph: &Value, expected: Option<u64>) -> Result<(), Problem> {
    match (graph["hosts"].as_u64(), expected) {
        (Some(found), Some(expected)) if found != expected => {
            let message =
                format!("found {found}; expected {expected}, as many as the file of its edges has");
            Err(Problem::new("topology.hosts", message))
        }
        _ => Ok(()),
    }
}

/// A table without `keys`, and these apart.
pub fn split<const N: usize>(node: &Node, keys: [&str; N]) -> (Value, [Option<Value>; N]) {
    let mut table: Map<String, Value> = match node.to_json() {
        Value::Object(table) => table,
        _ => Map::new(),
    };
    let apart = keys.map(|key| table.shift_remove(key));
    (Value::Object(table), apart)
}
