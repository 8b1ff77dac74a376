//! What is said about each kind of mistake, word for word: people and scripts read it.

use kernel::{Bytes, Rate, Span};
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{check, suggest};
use crate::source::{Argument, Document, Format};

/// One field of every shape that a configuration may have.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct Everything {
    #[schemars(range(min = 2, max = 64))]
    nodes: u32,
    #[serde(default)]
    small: u8,
    #[schemars(range(min = 0.0, max = 1.0))]
    load: Option<f64>,
    rate: Option<Rate>,
    guard: Option<Span>,
    cell: Option<Bytes>,
    #[serde(default)]
    quiet: bool,
    mode: Option<Mode>,
    workload: Option<Workload>,
    size: Option<Size>,
    limit: Option<Limit>,
    turns: Option<Turns>,
    pools: Option<Vec<Pool>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// Documented, so the schema is a choice of constants.
    PhaseExact,
    /// Another.
    WholeEpochs,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "read by the schema alone")]
enum Workload {
    Poisson { load: f64 },
    Incast(Incast),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct Incast {
    degree: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "read by the schema alone")]
enum Size {
    Fixed(Bytes),
    Pareto { shape: f64 },
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "read by the schema alone")]
enum Turns {
    /// A word.
    P1,
    /// Another.
    P2,
    /// No word.
    Table([bool; 2]),
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "read by the schema alone")]
enum Limit {
    Share(f64),
    Time(Span),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct Pool {
    first: u32,
}

fn problems(text: &str, format: Format, arguments: &[&str]) -> Vec<String> {
    let name = if format == Format::Toml { "a.toml" } else { "a.json" };
    let mut document = match Document::parse(name, text, format) {
        Ok(document) => document,
        Err(bad) => return bad.problems().iter().map(ToString::to_string).collect(),
    };
    let arguments: Vec<_> = arguments.iter().map(|a| Argument::parse(a).unwrap()).collect();
    document.set(&arguments).unwrap();
    let schema = schema_for!(Everything).to_value();
    check("a.toml", &document.root, &schema).iter().map(ToString::to_string).collect()
}

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    assert_eq!(problems(text, Format::Toml, &[]), expected, "for\n{text}");
}

#[test]
fn what_is_right_draws_no_complaint() {
    says("nodes = 8", &[]);
    says(
        "nodes = 8\nload = 1\nrate = '28 Gbps'\nguard = '2.75 ns'\ncell = '64 B'\nquiet = true\n\
         mode = 'phase-exact'\nlimit = 0.5\npools = [{ first = 1 }]\n\
         [workload]\nkind = 'incast'\ndegree = 3\n[size.pareto]\nshape = 1.05",
        &[],
    );
    says("nodes = 8\nlimit = '1 ms'\nsize = { fixed = '1 KB' }", &[]);
}

#[test]
fn an_unknown_key_is_refused_and_the_nearest_suggested() {
    says("nodes = 8\n\ngaurd = '1 ns'", &["a.toml:3: gaurd: unknown key; did you mean \"guard\"?"]);
    says(
        "nodes = 8\n[workload]\nkind = 'incast'\ndegree = 3\nxyzzy = 1",
        &["a.toml:5: workload.xyzzy: unknown key; expected \"kind\" or \"degree\""],
    );
    says(
        "nodes = 8\n[[pools]]\nfirst = 1\n[[pools]]\nfirst = 1\nfrist = 2",
        &["a.toml:6: pools[1].frist: unknown key; did you mean \"first\"?"],
    );
}

#[test]
fn a_key_without_its_table_is_refused_and_the_table_named() {
    let schema = serde_json::json!({ "type": "object", "additionalProperties": false, "properties": {
        "kind": { "type": "string" },
        "stream": { "type": "object", "properties": { "mtu": { "type": "string" } } },
        "beta": { "type": "number" },
    } });
    let found = |text: &str| {
        let document = Document::parse("a.toml", text, Format::Toml).unwrap();
        let problems = check("a.toml", &document.root, &schema);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        found("kind = 'swift'\nmtu = '4 KB'"),
        ["a.toml:2: mtu: unknown key; did you mean \"stream.mtu\"?"]
    );
    assert!(found("kind = 'swift'\nstream.mtu = '4 KB'").is_empty());
}

#[test]
fn keys_of_which_a_part_was_written_are_suggested() {
    let words: Vec<String> = ["line_rate", "load_rate", "zeal"].map(String::from).into();
    let many: Vec<String> = words.iter().cloned().chain((0..20).map(|n| format!("q{n}"))).collect();
    assert_eq!(suggest("rate", &many), "did you mean \"line_rate\" or \"load_rate\"?");
    assert_eq!(suggest("ratio", &many), "none of the 23 known ones is like it");
}

#[test]
fn a_missing_key_names_what_it_takes() {
    says("small = 1", &["a.toml:1: nodes: missing; expected a whole number from 2 to 64"]);
    says(
        "nodes = 8\n[workload]\ndegree = 3",
        &["a.toml:2: workload.kind: missing; expected \"poisson\" or \"incast\""],
    );
}

#[test]
fn a_wrong_kind_is_answered_with_the_right_ones() {
    says(
        "nodes = 8\n[workload]\nkind = 'incats'",
        &["a.toml:3: workload.kind: unknown kind \"incats\"; did you mean \"incast\"? \
           Expected \"poisson\" or \"incast\""],
    );
    says(
        "nodes = 8\nmode = 'exact'",
        &["a.toml:2: mode: found \"exact\"; expected \"phase-exact\" or \"whole-epochs\""],
    );
    says(
        "nodes = 8\nsize = { uniform = 3 }",
        &["a.toml:2: size.uniform: unknown key; expected \"fixed\" or \"pareto\""],
    );
}

#[test]
fn wrong_types_and_ranges_say_what_was_found() {
    says(
        "nodes = 'many'",
        &["a.toml:1: nodes: found the text \"many\"; expected a whole number from 2 to 64"],
    );
    says("nodes = 1", &["a.toml:1: nodes: found 1; expected a whole number from 2 to 64"]);
    says(
        "nodes = 8\nsmall = 256",
        &["a.toml:2: small: found 256; expected a whole number from 0 to 255"],
    );
    says("nodes = 8\nload = nan", &["a.toml:2: load: found NaN; expected a finite number"]);
    says(
        "nodes = 8\nquiet = 1979-05-27",
        &["a.toml:2: quiet: found a date; expected true or false"],
    );
    says("nodes = 8\npools = [1]", &["a.toml:2: pools[0]: found the number 1; expected a table"]);
    says(
        "nodes = 8\nlimit = true",
        &[
            "a.toml:2: limit: found true; expected a number or a time in quotes with its unit, such \
           as \"2.75 ns\"",
        ],
    );
}

#[test]
fn all_words_are_named_where_others_than_words_are_taken_as_well() {
    says("nodes = 8\nturns = 'p3'", &[r#"a.toml:2: turns: found "p3"; expected "p1" or "p2""#]);
    says("nodes = 8\nturns = 'p2'", &[]);
    says("nodes = 8\nturns = { table = [true, false] }", &[]);
}

#[test]
fn units_are_compulsory_and_spelt_as_they_are() {
    says(
        "nodes = 8\nguard = 2.75",
        &["a.toml:2: guard: found the number 2.75; expected a time in quotes with its unit, such \
           as \"2.75 ns\""],
    );
    says(
        "nodes = 8\nrate = '100 Gb'",
        &["a.toml:2: rate: \"100 Gb\" has the unknown unit \"Gb\": a rate is written with one of \
           Tbps, Gbps, Mbps, Kbps, bps, such as \"100 Gbps\""],
    );
    says(
        "nodes = 8\nlimit = '5'",
        &["a.toml:2: limit: \"5\" has no unit: a time is written with one of s, ms, us, ns, ps, \
           such as \"2.75 ns\""],
    );
}

#[test]
fn every_problem_is_listed_at_once() {
    says(
        "nodes = 0\nsmal = 1\ncell = '64'\nmode = 3",
        &[
            "a.toml:1: nodes: found 0; expected a whole number from 2 to 64",
            "a.toml:2: smal: unknown key; did you mean \"small\"?",
            "a.toml:3: cell: \"64\" has no unit: a size is written with one of TB, GB, MB, KB, B, \
             TiB, GiB, MiB, KiB, such as \"64 B\"",
            "a.toml:4: mode: found the number 3; expected \"phase-exact\" or \"whole-epochs\"",
        ],
    );
}

#[test]
fn text_that_is_not_toml_or_json_names_its_line() {
    says("nodes = 8\nload = = 3", &["a.toml:2: not well-formed TOML: extra `=`, expected nothing"]);
    let json = problems("{\n \"nodes\": 8,\n}", Format::Json, &[]);
    assert_eq!(json, ["a.json:3: not well-formed JSON: key must be a string"]);
    let json = problems("{\n \"nodes\": 8,\n \"nodes\": 9\n}", Format::Json, &[]);
    assert_eq!(json, ["a.json:3: duplicate key \"nodes\""]);
}

#[test]
fn json_is_checked_like_toml_lines_included() {
    let text = "{\n  \"nodes\": 8,\n  \"workload\": {\n    \"kind\": \"incast\",\n    \"dgree\": 3\n  }\n}";
    let found = problems(text, Format::Json, &[]);
    assert_eq!(
        found,
        [
            "a.toml:5: workload.dgree: unknown key; did you mean \"degree\"?",
            "a.toml:3: workload.degree: missing; expected a whole number, at least 0",
        ]
    );
}

#[test]
fn arguments_are_named_in_complaints_about_them() {
    let found = problems("nodes = 8", Format::Toml, &["nodes=1", "gaurd=2.75 ns", "cell=64 B"]);
    assert_eq!(
        found,
        [
            "--set nodes=1: nodes: found 1; expected a whole number from 2 to 64",
            "--set gaurd=2.75 ns: gaurd: unknown key; did you mean \"guard\"?",
        ]
    );
}
