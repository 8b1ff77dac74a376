//! Input that would take stack, memory or hours without bound is refused, in words of bounded length.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use scenario::{Argument, BadInput, Document, Format, Registry, Scenario};
use serde_json::{Value, json};

const SMALL: &str =
    "run.flows = 10\nworkload = { kind = 'poisson', load = 0.1 }\n[fabric]\nkind = 'shoal'\n";

/// What is wrong with a scenario and settings on top of it; nothing of it is long.
#[track_caller]
fn refused(document: Result<Document, BadInput>, arguments: &[Argument]) -> String {
    let read =
        document.and_then(|document| Scenario::read(document, arguments, &Registry::standard()));
    let bad = read.map(drop).unwrap_err();
    let text = bad.to_string();
    assert!(text.len() < 30_000, "{} bytes", text.len());
    text
}

fn toml(text: &str) -> Result<Document, BadInput> {
    Document::parse("a.toml", text, Format::Toml)
}

#[test]
fn keys_of_thousands_of_steps_are_refused_wherever_they_stand() {
    let deep = |count: usize| "a.".repeat(count) + "a";
    for count in [33, 30_000, 1_000_000] {
        let argument = Argument::parse(&format!("{}=1", deep(count))).unwrap();
        let text = refused(toml(SMALL), &[argument]);
        assert!(
            text.contains(&format!("found a key of {} steps; expected at most 32", count + 1)),
            "{text}"
        );
        let argument = Argument::value(&deep(count), &Value::from(1), "a=1");
        refused(toml(SMALL), &[argument]);
        refused(toml(&format!("{} = 1\n{SMALL}", deep(count))), &[]);
        refused(toml(&format!("{SMALL}[{}]\n", deep(count))), &[]);
    }
    let just = Argument::parse(&format!("{}=1", deep(31))).unwrap();
    assert!(refused(toml(SMALL), &[just]).contains("unknown key"));
}

#[test]
fn values_within_values_are_refused_wherever_they_stand() {
    for count in [40, 100_000] {
        let lists = "[".repeat(count) + &"]".repeat(count);
        let tables = "{a=".repeat(count) + "1" + &"}".repeat(count);
        for value in [&lists, &tables] {
            refused(toml(&format!("name = {value}\n{SMALL}")), &[]);
            refused(toml(SMALL), &[Argument::parse(&format!("name={value}")).unwrap()]);
        }
        let tables = "{\"a\":".repeat(count) + "1" + &"}".repeat(count);
        for value in [&lists, &tables] {
            let text = format!("{{\"name\": {value}}}");
            refused(Document::parse("a.json", &text, Format::Json), &[]);
        }
    }
    // As deep as the parser of TOML lets tables be: dotted keys within inline tables.
    let keys = "a.".repeat(70);
    let nested = format!("{{{keys}a = ").repeat(70) + "1" + &"}".repeat(70);
    let text = refused(toml(&format!("b = {nested}\n{SMALL}")), &[]);
    assert!(text.contains("nested more than 32 deep"), "{text}");
    let value = (0..100).fold(json!(1), |value, _| json!([value]));
    let text = refused(toml(SMALL), &[Argument::value("name", &value, "name")]);
    assert!(text.contains("found a list of 1; expected text"), "{text}");
    let document = Document::from_value("scenario", &json!({ "name": "a", "fault": value }));
    refused(document, &[]);
}

#[test]
fn huge_keys_and_values_are_cut() {
    let huge = "x".repeat(1 << 20);
    for text in [
        format!("{SMALL}{huge} = 1\n"),
        format!("name = '{huge}'\n{SMALL}"),
        format!("name = '{huge} '\n{SMALL}"),
        SMALL.replace("shoal", &huge),
        SMALL.replace("'poisson'", &format!("'{huge}'")),
        SMALL.replace("0.1", &format!("'{huge}'")),
        format!("{SMALL}guard = '{huge}'\n"),
        format!("{SMALL}guard = '1 {huge}'\n"),
        SMALL.replace("0.1", &format!("0.1, pattern = {{ kind = '{huge}' }}")),
        SMALL.replace("0.1", &format!("0.1, sizes = {{ kind = 'table', name = '{huge}' }}")),
        SMALL.replace("0.1", &format!("0.1, sizes = {{ kind = 'table', name = 'W{huge}' }}")),
    ] {
        let said = refused(toml(&text), &[]);
        assert!(said.len() < 5_000, "{}: {said}", said.len());
        assert!(!said.contains(&"x".repeat(600)), "{said}");
    }
    let text = refused(toml(SMALL), &[Argument::parse(&format!("{huge}={huge}")).unwrap()]);
    assert!(text.contains("… (1048576 characters)"), "{text}");
}

#[test]
fn a_thousand_mistakes_are_told_by_the_first_of_them() {
    let keys: String = (0..100_000).map(|key| format!("key{key} = 1\n")).collect();
    let text = refused(toml(&format!("{SMALL}{keys}")), &[]);
    assert!(text.lines().count() <= 101, "{}", text.lines().count());
    assert!(text.lines().last().unwrap().contains("more problems"), "{text}");
    // A table of as many keys in JSON: looked through once, not once a key.
    let keys: Vec<String> = (0..200_000).map(|key| format!("\"key{key}\": 1")).collect();
    refused(Document::parse("a.json", &format!("{{{}}}", keys.join(",")), Format::Json), &[]);
}

#[test]
fn files_beyond_any_scenario_are_refused_by_their_size() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    std::fs::File::create(path("a.toml")).unwrap().set_len(40 << 20).unwrap();
    let text = refused(Document::open(&path("a.toml")), &[]);
    assert!(text.contains("is 41943040 bytes long; expected at most 16777216"), "{text}");
    let text = refused(Document::open(place.path()), &[]);
    assert!(text.contains("not a file"), "{text}");
    // The links of a topology, in a file of their own.
    std::fs::File::create(path("edges.csv")).unwrap().set_len(40 << 20).unwrap();
    let graph = "run.flows = 10\nworkload = { kind = 'poisson', load = 0.1 }\n[fabric]\n\
                 kind = 'packet-switched'\ntopology = { kind = 'graph', hosts = 4, edges = 'edges.csv' }\n";
    std::fs::write(path("graph.toml"), graph).unwrap();
    let text = refused(Document::open(&path("graph.toml")), &[]);
    assert!(text.contains("edges") && text.contains("is 41943040 bytes long"), "{text}");
}
