//! The links of a graph, from files as people have them.
//!
//! There is one list of links, `a,b,rate,delay`, which the fabric reads ([`rack::topology::Graph`])
//! and a resolved scenario holds. What else is read here is written down as that list:
//!
//! - edge lists: the same four values a line, without a head, parted by commas, semicolons or spaces;
//!   also with the empty `{}` that networkx writes behind edges without attributes;
//! - GraphML: what networkx, Gephi and yEd save. Edges have the attributes `rate` (or `bandwidth`)
//!   and `delay` (or `latency`), with units, their own or by a key's default. Nodes with `kind` (or
//!   `type`, `role`) `host` or `switch` are numbered hosts first; without it, in the order of the
//!   file, and the first of them are the hosts.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use kernel::{Rate, Span};
use roxmltree::{Document, Node, ParsingOptions};

/// The head of our own list.
const HEAD: &str = "a,b,rate,delay";
/// Most elements, attributes and texts of a document. Our choice: five for each link of the largest
/// graph in 16 MiB.
const NODES_MAX: u32 = 1 << 21;
/// Most attributes that a document declares, each of which is looked at for each edge. Our choice.
const KEYS_MAX: usize = 1_000;
/// What an edge's rate, an edge's delay and a node's kind may be called.
const RATES: [&str; 2] = ["rate", "bandwidth"];
const DELAYS: [&str; 2] = ["delay", "latency"];
const KINDS: [&str; 3] = ["kind", "type", "role"];

/// Links as our own list.
#[derive(Debug, PartialEq, Eq)]
pub struct Links {
    /// The list.
    pub text: String,
    /// How many hosts the file says there are, if it says so.
    pub hosts: Option<u64>,
}

/// What links need not state, for a scenario states it for all that do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stated {
    /// Their rate.
    pub rate: bool,
    /// Their delay.
    pub delay: bool,
}

/// Turns the text of any of these into our own list; `name` is what messages call it. What a link does
/// not state, and a scenario does for it, is left empty.
///
/// # Errors
/// What cannot be read, by line.
pub fn read(name: &str, text: String, stated: Stated) -> Result<Links, String> {
    let located = |(line, message): (u32, String)| format!("{name}:{line}: {message}");
    let mut lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next().unwrap_or("");
    if first.starts_with('<') {
        return graphml(&text, stated).map_err(located);
    }
    // What is neither is left to the reader of our own list, which says what it expects.
    if !first.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Ok(Links { text, hosts: None });
    }
    list(&text, stated).map(|text| Links { text, hosts: None }).map_err(located)
}

/// An edge list without a head.
fn list(text: &str, stated: Stated) -> Result<String, (u32, String)> {
    let mut out = format!("{HEAD}\n");
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_suffix("{}").map_or(line, str::trim_end);
        let values: Vec<&str> = match [',', ';'].into_iter().find(|&mark| line.contains(mark)) {
            Some(mark) => line.split(mark).map(str::trim).collect(),
            None => line.split_whitespace().collect(),
        };
        let (ends, rate, delay) = match values[..] {
            [a, b] if stated.rate && stated.delay => ([a, b], String::new(), String::new()),
            [a, b, rate] if stated.delay => ([a, b], rate.to_string(), String::new()),
            [a, b, rate, delay] => ([a, b], rate.to_string(), delay.to_string()),
            [a, b, rate, unit, delay, last] => {
                ([a, b], format!("{rate} {unit}"), format!("{delay} {last}"))
            }
            _ => {
                let message = format!(
                    "found {} values; expected four: two vertices, a rate and a delay, such as \"0 8 100Gbps 20ns\" \
                     (what all links have in common may stand in the scenario, as rate and delay of the topology)",
                    values.len()
                );
                return Err((number, message));
            }
        };
        for end in ends {
            if end.parse::<u32>().is_err() {
                return Err((
                    number,
                    format!("found {end:?}; expected the number of a vertex, from 0"),
                ));
            }
        }
        write(&mut out, ends[0], ends[1], (&rate, &delay), stated)
            .map_err(|message| (number, message))?;
    }
    Ok(out)
}

/// Adds a link to a list.
fn write(
    out: &mut String,
    a: impl std::fmt::Display,
    b: impl std::fmt::Display,
    (rate, delay): (&str, &str),
    stated: Stated,
) -> Result<(), String> {
    let rate = match rate {
        "" if stated.rate => String::new(),
        _ => rate.parse::<Rate>().map_err(|error| format!("rate: {error}"))?.to_string(),
    };
    let delay = match delay {
        "" if stated.delay => String::new(),
        _ => delay.parse::<Span>().map_err(|error| format!("delay: {error}"))?.to_string(),
    };
    writeln!(out, "{a},{b},{rate},{delay}").expect("text grows");
    Ok(())
}

/// A key of GraphML: what it is called, and its value where none is given.
struct Key<'a> {
    name: &'a str,
    default: Option<&'a str>,
}

/// What a document declares.
struct Keys<'a>(BTreeMap<&'a str, Key<'a>>);

impl<'a> Keys<'a> {
    fn of(root: Node<'a, 'a>) -> Self {
        let key = |node: Node<'a, 'a>| {
            let default = node.children().find(|child| child.has_tag_name("default"));
            let name = node.attribute("attr.name").unwrap_or("");
            Some((
                node.attribute("id")?,
                Key { name, default: default.and_then(|node| node.text()) },
            ))
        };
        Self(root.children().filter(|node| node.has_tag_name("key")).filter_map(key).collect())
    }

    /// The value of an element for one of these names: its own, or the default of all that have it.
    fn value(&self, element: Node<'a, 'a>, names: &[&str]) -> Option<&'a str> {
        let named = |key: &&Key<'a>| names.contains(&key.name);
        let own = element.children().filter(|child| child.has_tag_name("data")).find_map(|data| {
            let key = self.0.get(data.attribute("key")?);
            key.filter(named).and_then(|_| data.text())
        });
        // Of several keys with one name: the first by its id, so that no order of a map matters.
        let default = |name: &str| {
            let mut keys = self.0.values().filter(|key| name == key.name);
            keys.find_map(|key| key.default)
        };
        own.or_else(|| names.iter().find_map(|name| default(name))).map(str::trim)
    }
}

/// Elements are told by their names alone: not everybody writes GraphML's namespace.
fn graphml(text: &str, stated: Stated) -> Result<Links, (u32, String)> {
    // Without a DTD no entity can stand for gigabytes.
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| (error.pos().row, format!("not readable as GraphML: {error}")))?;
    let root = document.root_element();
    let line = |node: Node<'_, '_>| document.text_pos_at(node.range().start).row;
    let mut graphs = root.descendants().filter(|node| node.has_tag_name("graph"));
    let Some(graph) = graphs.next().filter(|_| root.has_tag_name("graphml")) else {
        return Err((
            line(root),
            "holds no graph; expected <graphml> with one <graph> in it".into(),
        ));
    };
    if let Some(other) = graphs.next() {
        return Err((line(other), "a second graph; expected one, with no graph in a node".into()));
    }
    let keys = Keys::of(root);
    if keys.0.len() > KEYS_MAX {
        let message = format!("declares {} attributes; at most {KEYS_MAX} are read", keys.0.len());
        return Err((line(root), message));
    }
    let Vertices { numbers, hosts } =
        vertices(graph, &keys).map_err(|(node, message)| (line(node), message))?;
    let mut out = format!("{HEAD}\n");
    let is_directed = graph.attribute("edgedefault") == Some("directed");
    for edge in graph.children().filter(|node| node.has_tag_name("edge")) {
        let complain = |message: String| (line(edge), message);
        if edge.attribute("directed").map_or(is_directed, |directed| directed == "true") {
            let message = "found an edge of one direction; a link carries both ways: save the graph undirected";
            return Err(complain(message.into()));
        }
        let end = |attribute: &str| {
            let id = edge.attribute(attribute).unwrap_or("");
            numbers.get(id).ok_or_else(|| {
                complain(format!("{attribute}: found {id:?}, which is no node of this graph"))
            })
        };
        let value = |names: &[&str], example: &str, is_stated: bool| {
            let value = keys.value(edge, names);
            value.or(is_stated.then_some("")).ok_or_else(|| {
                complain(format!(
                    "the edge has no {}; expected the attribute {:?}, such as {example}, of each edge or as the \
                     default of its key, or {} of the topology in the scenario",
                    names[0], names[0], names[0]
                ))
            })
        };
        let (a, b) = (end("source")?, end("target")?);
        let (rate, delay) = (
            value(&RATES, "\"100 Gbps\"", stated.rate)?,
            value(&DELAYS, "\"20 ns\"", stated.delay)?,
        );
        write(&mut out, a, b, (rate, delay), stated).map_err(complain)?;
    }
    Ok(Links { text: out, hosts })
}

/// The nodes of a graph.
struct Vertices<'a> {
    /// The number of each, by its id.
    numbers: HashMap<&'a str, usize>,
    /// How many of them are hosts, if they say what they are.
    hosts: Option<u64>,
}

/// Numbers the nodes; or which of them is wrong, and how.
fn vertices<'a>(
    graph: Node<'a, 'a>,
    keys: &Keys<'a>,
) -> Result<Vertices<'a>, (Node<'a, 'a>, String)> {
    let (mut hosts, mut others, mut unsaid) = (Vec::new(), Vec::new(), None);
    for node in graph.children().filter(|node| node.has_tag_name("node")) {
        let Some(id) = node.attribute("id") else {
            return Err((node, "a node without an id; expected one, such as id=\"n0\"".into()));
        };
        match keys.value(node, &KINDS).map(str::to_ascii_lowercase).as_deref() {
            Some("host") => hosts.push((id, node)),
            Some("switch") => others.push((id, node)),
            _ => {
                unsaid = unsaid.or(Some(node));
                others.push((id, node));
            }
        }
    }
    let count = (!hosts.is_empty()).then_some(hosts.len() as u64);
    if let (Some(node), Some(_)) = (unsaid, count) {
        let message = "says neither host nor switch, and other nodes do; expected kind of each node or of none";
        return Err((node, message.into()));
    }
    let mut numbers = HashMap::new();
    for (number, (id, node)) in hosts.into_iter().chain(others).enumerate() {
        if numbers.insert(id, number).is_some() {
            return Err((
                node,
                format!("the id {id:?} is also another node's; expected each once"),
            ));
        }
    }
    Ok(Vertices { numbers, hosts: count })
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
