//! The server as a browser, or somebody with worse intentions, meets it.

use std::fs;
use std::path::Path as FilePath;

use axum::body::{Body, to_bytes};
use kernel::{Bytes, Span, Time};
use rack::results::{FlowEnd, FlowRecord, FlowSink, SeriesTable};
use rack::trace::{ETHERNET, Hop, Line, LineSpan, Lines, Outcome, Place, Trace};
use rack::{Class, Flow, FlowId, Gauge, GaugeKind, NodeId};
use report::{
    FlowWriter, Provenance, TableColumn, write_links, write_series, write_table, write_trace,
};
use serde_json::json;
use tower::ServiceExt;

use super::*;

fn origin() -> Provenance {
    Provenance {
        version: "0.1.0".into(),
        scenario_hash: "ab".into(),
        seed: 1,
        scenario: String::new(),
    }
}

/// A run of one flow, of 1 KB, that waited 300 ns for its line and took 100 ns over it.
fn run(place: &FilePath) {
    fs::create_dir_all(place).unwrap();
    let mut flows = FlowWriter::create(&place.join(FLOWS), &[], &origin()).unwrap();
    let (id, size, start) = (FlowId::new(5), Bytes::new(1000), Time::from_ps(1_000));
    let (src, dst) = (NodeId::new(0), NodeId::new(1));
    let flow = Flow { id, src, dst, size, start, class: Class::default() };
    let at = start + Span::from_ns(400);
    let end = FlowEnd::Completed { at, ideal: Span::from_ns(100), stages: &[] };
    flows.record(&FlowRecord { flow: &flow, end, measured: true }).unwrap();
    flows.finish().unwrap();
    let gauges = vec![Gauge { name: "drops", meaning: "Dropped.", kind: GaugeKind::Count }];
    let series = SeriesTable { gauges, seconds: vec![1e-6], values: vec![vec![2.0]] };
    write_series(&place.join("series.parquet"), &series, &origin()).unwrap();
    let hop = Hop {
        flow: id,
        packet: 0,
        hop: 0,
        is_data: true,
        to_source: false,
        is_again: false,
        offset: 0,
        payload: 1000,
        bytes: 1058,
        place: 0,
        is_last: true,
        is_marked: false,
        is_trimmed: false,
        outcome: Outcome::Arrived,
        joined: start,
        started: start + Span::from_ns(300),
        sent: at,
        arrived: at,
        propagation: Span::ZERO,
        own: Span::ZERO,
        others: Span::from_ns(300),
        found_bytes: 9000,
        found_packets: 6,
        beside: vec![(Some(FlowId::new(4)), 9000)],
        cell: None,
        header: Vec::new(),
    };
    let places =
        vec![Place { port: 0, link_type: ETHERNET, from: "node 0".into(), to: "node 1".into() }];
    let trace = Trace { hops: vec![hop], places, ..Trace::default() };
    write_trace(&place.join("trace.parquet"), &trace, &origin()).unwrap();
    let spans = vec![LineSpan { carried: 1058, waiting: 9000 }];
    let line = Line { place: trace.places[0].clone(), spans };
    let lines = Lines { span: Span::from_us(1), lines: vec![line] };
    write_links(&place.join("links.parquet"), &lines, &origin()).unwrap();
    fs::write(place.join("report.html"), "<p>report</p>").unwrap();
    summary(place, &json!({ "label": "Shoal", "fabric": "shoal", "flows": { "measured": 1 } }));
}

fn summary(place: &FilePath, value: &Value) {
    fs::create_dir_all(place).unwrap();
    fs::write(place.join("summary.json"), value.to_string()).unwrap();
}

/// Results in a directory beside which a secret lies.
fn results() -> (tempfile::TempDir, Router) {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("summary.json"), "secret").unwrap();
    fs::write(place.path().join("report.html"), "secret").unwrap();
    run(&place.path().join("results/a"));
    let folder = Folder::open(&place.path().join("results")).unwrap();
    (place, router(folder))
}

async fn ask_as(router: &Router, method: &str, host: Option<&str>, uri: &str) -> Response {
    let mut request = Request::builder().method(method).uri(uri);
    if let Some(host) = host {
        request = request.header(HOST, host);
    }
    router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

/// The status and the text of an answer.
async fn ask(router: &Router, uri: &str) -> (StatusCode, String) {
    let response = ask_as(router, "GET", Some("127.0.0.1:8000"), uri).await;
    let status = response.status();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

async fn told(router: &Router, uri: &str) -> Value {
    let (status, text) = ask(router, uri).await;
    assert_eq!(status, StatusCode::OK, "{uri}: {text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn what_a_run_holds_is_told() {
    let (_place, router) = results();
    let list = told(&router, "/api/list").await;
    assert_eq!(list["entries"].as_array().unwrap().len(), 1);
    let entry = &list["entries"][0];
    assert_eq!((&entry["path"], &entry["kind"]), (&json!("a"), &json!("run")));
    let overview = told(&router, "/api/run?path=a").await;
    assert_eq!(overview["tiles"][0]["label"], "Flows measured");
    assert_eq!(overview["has_trace"], true);
    let series = told(&router, "/api/series?path=a").await;
    assert_eq!(
        (&series["seconds"], &series["gauges"][0]["values"]),
        (&json!([1e-6]), &json!([2.0]))
    );
    assert_eq!(series["gauges"][0]["meaning"], "Dropped (number in the interval)");
    let why = told(&router, "/api/why?path=a&flow=5").await;
    assert_eq!((&why["fct_ps"], &why["slowdown"]), (&json!(400_000), &json!(4.0)));
    let queued = why["parts"].as_array().unwrap().iter().find(|part| part["ps"] == 300_000);
    assert!(queued.is_some(), "{why}");
    assert_eq!(why["queues"][0]["beside"], json!([{ "flow_id": 4, "bytes": 9000 }]));
    let picture = told(&router, "/api/rack?path=a").await;
    assert_eq!(picture["links"][0]["name"], "node 0 to node 1");
    assert_eq!(picture["links"][0]["spans"], json!([[0, 1058, 9000]]));
    let (status, text) = ask(&router, "/files/a/report.html").await;
    assert_eq!((status, text.as_str()), (StatusCode::OK, "<p>report</p>"));
    for page in ["/", "/assets/main.js", "/assets/plotly.js"] {
        assert_eq!(ask(&router, page).await.0, StatusCode::OK, "{page}");
    }
}

#[tokio::test]
async fn nothing_outside_of_the_directory_is_told() {
    let (place, router) = results();
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.path(), place.path().join("results/link")).unwrap();
    let absolute = place.path().display().to_string();
    for path in
        ["..", "a/../..", "%2e%2e", "a%2F..%2F..", absolute.as_str(), "..%5C", "link", "a%00"]
    {
        for what in ["run", "flows", "series", "why", "rack", "group", "curves"] {
            let (status, text) = ask(&router, &format!("/api/{what}?path={path}&flow=5")).await;
            let is_refused = [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&status);
            assert!(is_refused, "{what} {path}: {status} {text}");
            assert!(!text.contains("secret"), "{what} {path}: {text}");
        }
    }
    for path in
        ["../report.html", "%2e%2e/report.html", "a/..%2f..%2freport.html", "link/report.html"]
    {
        let (status, text) = ask(&router, &format!("/files/{path}")).await;
        assert_ne!(status, StatusCode::OK, "{path}");
        assert!(!text.contains("secret"), "{path}: {text}");
    }
    for path in ["a/summary.json", "a/flows.parquet", "a"] {
        assert_eq!(ask(&router, &format!("/files/{path}")).await.0, StatusCode::FORBIDDEN);
    }
    // The list follows no link either.
    assert_eq!(told(&router, "/api/list").await["entries"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn who_calls_this_machine_by_another_name_is_refused() {
    let (_place, router) = results();
    for host in ["127.0.0.1:8000", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8000"] {
        let status = ask_as(&router, "GET", Some(host), "/api/list").await.status();
        assert_eq!(status, StatusCode::OK, "{host}");
    }
    let others = ["rebound.example:8000", "127.0.0.1.example", "127.0.0.2:8000", "", "a:b:1"];
    for host in others.map(Some).into_iter().chain([None]) {
        for uri in ["/api/list", "/", "/files/a/report.html", "/assets/main.js"] {
            let status = ask_as(&router, "GET", host, uri).await.status();
            assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{host:?} {uri}");
        }
    }
}

#[tokio::test]
async fn the_page_is_read_only_and_loads_from_nowhere_else() {
    let (_place, router) = results();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let status = ask_as(&router, method, Some("localhost"), "/api/list").await.status();
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let response = ask_as(&router, "GET", Some("localhost"), "/").await;
    let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    let response = ask_as(&router, "GET", Some("localhost"), "/files/a/report.html").await;
    let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("sandbox ") && !policy.contains("allow-same-origin"), "{policy}");
}

#[tokio::test]
async fn what_is_missing_or_half_there_is_said() {
    let (place, router) = results();
    let results = place.path().join("results");
    fs::create_dir(results.join("killed")).unwrap();
    fs::copy(results.join("a/flows.parquet"), results.join("killed/flows.parquet")).unwrap();
    summary(&results.join("broken"), &json!("no table"));
    fs::write(results.join("broken/flows.parquet"), "no table").unwrap();
    let list = told(&router, "/api/list").await;
    let kinds: Vec<_> = list["entries"].as_array().unwrap().iter().map(|e| &e["kind"]).collect();
    assert_eq!(kinds, ["run", "partial", "partial"]);
    for (uri, expected, words) in [
        ("/api/run?path=absent", StatusCode::NOT_FOUND, "absent"),
        ("/api/run?path=killed", StatusCode::NOT_FOUND, "summary.json"),
        ("/api/flows?path=broken", StatusCode::UNPROCESSABLE_ENTITY, "written by something else"),
        ("/api/why?path=a&flow=6", StatusCode::NOT_FOUND, "run.trace=\"flows 6\""),
        ("/api/why?path=killed&flow=5", StatusCode::NOT_FOUND, "run.trace"),
        ("/api/why?path=a&flow=x", StatusCode::BAD_REQUEST, "flow"),
        ("/api/run", StatusCode::BAD_REQUEST, "path"),
        ("/absent", StatusCode::NOT_FOUND, "the page is at /"),
    ] {
        let (status, text) = ask(&router, uri).await;
        assert_eq!(status, expected, "{uri}: {text}");
        assert!(text.contains(words), "{uri}: {text}");
    }
    assert_eq!(told(&router, "/api/rack?path=killed").await, Value::Null);
}

#[tokio::test]
async fn a_comparison_has_a_row_for_each_of_its_runs() {
    let (place, router) = results();
    let both = place.path().join("results/both");
    for (label, p99) in [("Shoal", 2.5), ("NDP", 3.5)] {
        let one = json!({ "label": label, "slowdown": { "all": { "count": 9, "p99": p99 } } });
        summary(&both.join(label), &one);
    }
    summary(&both, &json!([{ "label": "Shoal" }, { "label": "NDP" }]));
    let group = told(&router, "/api/group?path=both").await;
    let columns = group["columns"].as_array().unwrap();
    let at = columns.iter().position(|column| column["key"] == "slowdown.all.p99").unwrap();
    let rows = group["rows"].as_array().unwrap().iter();
    let rows: Vec<_> = rows.map(|row| (&row["path"], &row["cells"][at]["text"])).collect();
    let [ndp, shoal, low, high] = ["NDP", "Shoal", "2.50", "3.50"].map(|text| json!(text));
    assert_eq!(rows, [(&ndp, &high), (&shoal, &low)]);
    let list = told(&router, "/api/list").await;
    let parts = list["entries"].as_array().unwrap().iter().filter(|e| e["part_of"] == "both");
    assert_eq!(parts.count(), 2);
}

#[tokio::test]
async fn a_search_has_its_aims_first_and_runs_have_curves() {
    let (place, router) = results();
    let found = place.path().join("results/found");
    fs::create_dir(&found).unwrap();
    let search = json!({ "aims": ["minimise fct.all.p99", "maximise nodes"], "trials": [] });
    fs::write(found.join("search.json"), search.to_string()).unwrap();
    let column = |name: &str, value: Value| TableColumn::of_key(name, vec![value]);
    let trial = [
        column("trial", json!(0)),
        column("is_best", json!(true)),
        column("fct.all.p99", json!(2e-6)),
        column("slowdown.all.p99", json!(1.5)),
    ];
    write_table(&found.join("trials.parquet"), &trial, &origin()).unwrap();
    let group = told(&router, "/api/group?path=found").await;
    assert_eq!(group["aims"], json!(["fct.all.p99", "nodes"]));
    let columns = group["columns"].as_array().unwrap().iter();
    let figures: Vec<&str> = columns
        .filter(|column| column["kind"] == "figure")
        .map(|column| column["key"].as_str().unwrap())
        .collect();
    assert_eq!(figures[..2], ["fct.all.p99", "nodes"]);
    assert!(figures.contains(&"slowdown.all.p99"), "{figures:?}");
    let curves = told(&router, "/api/curves?path=a").await;
    assert_eq!(curves["distribution"], json!([[4e-7, 1.0]]));
    assert_eq!(curves["slowdown"]["p50"][0][1], json!(4.0));
}

#[tokio::test]
async fn a_run_under_way_is_told_from_one_that_was_killed() {
    let (place, router) = results();
    let told_at = place.path().join("results/b/progress.json");
    fs::create_dir(told_at.parent().unwrap()).unwrap();
    let progress = json!({
        "label": "NDP", "ended": 3, "total": 12, "simulated_seconds": 1e-6, "wall_seconds": 2.0,
    });
    fs::write(&told_at, progress.to_string()).unwrap();
    fs::write(told_at.with_file_name(".rackloom.lock"), "").unwrap();
    let list = told(&router, "/api/list").await;
    assert_eq!(list["entries"][1]["kind"], "underway");
    assert_eq!(list["entries"][1]["progress"], progress);
    // It speaks once a second: one that has said nothing for a minute is no more.
    let file = fs::File::options().append(true).open(&told_at).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60)).unwrap();
    let list = told(&router, "/api/list").await;
    assert_eq!(
        (&list["entries"][1]["kind"], &list["entries"][1]["progress"]),
        (&json!("partial"), &Value::Null)
    );
}

#[tokio::test]
async fn news_begin_with_the_list() {
    let (_place, router) = results();
    let response = ask_as(&router, "GET", Some("localhost"), "/api/live").await;
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    let mut body = response.into_body().into_data_stream();
    let first = tokio_stream::StreamExt::next(&mut body).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&first);
    assert!(text.starts_with("event: list\ndata: {\"directory\":"), "{text}");
}

#[test]
fn a_directory_without_results_is_refused_in_one_sentence() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    for (path, words) in [
        (place.path().to_path_buf(), "holds no results"),
        (place.path().join("absent"), "`rackloom view DIR`"),
        (file, "is a file"),
    ] {
        let refusal = Folder::open(&path).map(drop).unwrap_err();
        assert!(refusal.message.contains(words), "{refusal}");
        assert!(!refusal.message.contains('\n'));
    }
}

#[tokio::test]
async fn it_listens_on_the_loopback_address_and_ends_when_told() {
    let (place, _) = results();
    let folder = Folder::open(&place.path().join("results")).unwrap();
    let mut address = None;
    serve(folder, 0, |at| address = Some(at.clone()), async {}).await.unwrap();
    let Address(at) = address.unwrap();
    assert!(at.ip().is_loopback() && at.port() > 0, "{at}");
    assert!(Address(at).to_string().starts_with("http://127.0.0.1:"));
}
