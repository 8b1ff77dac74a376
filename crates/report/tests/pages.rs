//! What stands in each kind of report.

mod sample;

use report::page::{Block, Page};
use report::{comparison_page, run_page};
use serde_json::{Value, json};

/// The data that the page's script reads.
fn plots_in(html: &str) -> Vec<Value> {
    let start = "<script type=\"application/json\" id=\"plots\">";
    let (_, rest) = html.split_once(start).expect("the page has plots");
    let (json, _) = rest.split_once("</script>").expect("the element ends");
    serde_json::from_str(json).expect("the data is JSON")
}

#[track_caller]
fn check_sections(page: &Page, expected: &[&str]) {
    let titles: Vec<_> = page.sections.iter().map(|section| section.title.as_str()).collect();
    assert_eq!(titles, expected);
    let html = page.to_html();
    for title in expected {
        assert!(html.contains(&format!("<h2>{title}</h2>")), "no section {title:?}");
    }
}

#[test]
fn the_report_of_a_run_has_every_part() {
    let run = sample::run("Shoal", 1.0);
    let page = run_page(&run, Vec::new(), "rackloom run examples/shoal-rack.toml");
    check_sections(
        &page,
        &[
            "Key figures",
            "Flow sizes",
            "Distributions",
            "Long flows",
            "Where the time goes",
            "Queues",
            "Links and slots",
            "Reordering",
            "Other gauges",
            "The fabric",
            "Power and cost",
            "All figures",
            "Configuration",
            "Provenance",
        ],
    );
    let html = page.to_html();
    for text in [
        "512 nodes",
        "99,997",
        "unfinished 0, failed 3",
        "bound 11 cells",
        "At the receiver, until the cells before it arrive.",
        "Cells in one queue",
        "8.72 kW",
        "5e1f20c49ab37d68",
        "rackloom run examples/shoal-rack.toml",
        "guard = &quot;2.75 ns&quot;",
    ] {
        assert!(html.contains(text), "no {text:?}");
    }
    assert!(html.len() < 3 << 20, "{} bytes", html.len());
}

#[test]
fn every_plot_is_in_the_page_once_and_none_is_too_long() {
    let html = run_page(&sample::run("Shoal", 1.0), Vec::new(), "").to_html();
    let plots = plots_in(&html);
    assert_eq!(html.matches("class=\"plot\"").count(), plots.len());
    let mut titles: Vec<_> = plots.iter().map(|plot| plot["title"].as_str().unwrap()).collect();
    titles.sort_unstable();
    titles.dedup();
    assert_eq!(titles.len(), plots.len());
    for plot in &plots {
        for series in plot["series"].as_array().unwrap() {
            let count = series["x"].as_array().unwrap().len();
            assert!(count <= 1000, "{count} points in {}", plot["title"]);
            assert_eq!(count, series["y"].as_array().unwrap().len());
        }
    }
}

#[test]
fn tails_need_enough_flows() {
    let mut run = sample::run("Shoal", 1.0);
    for (bin, count) in run.bins.iter_mut().zip([1000, 999, 100, 99]) {
        bin.count = count;
    }
    run.bins.truncate(4);
    let plots = plots_in(&run_page(&run, Vec::new(), "").to_html());
    let counts: Vec<_> =
        (0..3).map(|series| plots[0]["series"][series]["x"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [4, 3, 1]);
}

#[test]
fn stages_make_the_whole() {
    let run = sample::run("Shoal", 1.0);
    let plots = plots_in(&run_page(&run, Vec::new(), "").to_html());
    let stages =
        plots.iter().find(|plot| plot["title"] == "Share of completion time by stage").unwrap();
    let series = stages["series"].as_array().unwrap();
    assert_eq!(series.len(), run.stages.len());
    for place in 0..run.bins.len() {
        let total: f64 = series.iter().map(|series| series["y"][place].as_f64().unwrap()).sum();
        assert!((total - 1.0).abs() < 1e-4, "{total} at size {place}");
    }
}

#[test]
fn a_comparison_overlays_all_runs() {
    let runs = [sample::run("Shoal", 1.0), sample::run("Packet-switched", 2.2)];
    let page = comparison_page("Two racks", &runs, "rackloom compare a.toml b.toml");
    check_sections(
        &page,
        &[
            "Side by side",
            "Flow sizes",
            "Distributions",
            "Goodput",
            "Where the time goes",
            "Over time",
            "Power and cost",
            "Configuration",
            "Provenance",
        ],
    );
    assert_eq!(page.lead, "The same flows through Shoal and Packet-switched.");
    let html = page.to_html();
    assert!(html.contains("Packet-switched: This run was saturated"));
    assert!(!html.contains("Shoal: This run was saturated"));
    for plot in plots_in(&html).iter().filter(|plot| plot["title"] == "Slowdown of all flows") {
        let names: Vec<_> =
            plot["series"].as_array().unwrap().iter().map(|series| &series["name"]).collect();
        assert_eq!(names, ["Shoal", "Packet-switched"]);
    }
    let power = plots_in(&html).into_iter().find(|plot| plot["title"] == "Power of the network");
    let power = power.expect("what networks draw is drawn");
    let [switches, nics] = power["series"].as_array().unwrap().as_slice() else {
        panic!("{power}")
    };
    assert_eq!((&switches["name"], &nics["name"]), (&json!("Switches"), &json!("NICs")));
    // The second of the sample runs has 2.2 times the first's.
    assert_eq!(switches["y"], json!([1848.0, 4065.6]));
    assert!(html.len() < 3 << 20, "{} bytes", html.len());
}

#[test]
fn networks_of_unknown_parts_have_no_bill() {
    let mut runs = [sample::run("A", 1.0), sample::run("B", 1.0)];
    for run in &mut runs {
        run.summary["equipment"] = Value::Null;
    }
    let html = comparison_page("Two racks", &runs, "").to_html();
    assert!(!html.contains("Power of the network"));
}

#[test]
fn a_reproduction_shows_verdicts_and_published_points() {
    let page = sample::reproduction();
    check_sections(&page, &["Claims", "Fig. 9: latency of the prototype"]);
    let html = page.to_html();
    for text in [
        "<span class=\"good\">reproduced</span>",
        "<span class=\"bad\">differs</span>",
        "<span class=\"muted\">not run</span>",
    ] {
        assert!(html.contains(text), "no {text}");
    }
    let plots = plots_in(&html);
    assert_eq!(plots[0]["series"][2]["style"], "published");
    assert!(plots[0]["series"][2]["hue"].is_null());
    assert_eq!(plots[0]["series"][0]["low"].as_array().unwrap().len(), 6);
}

#[test]
fn a_run_without_measurements_still_has_a_report() {
    let mut run = sample::run("Idle", 1.0);
    run.summary = serde_json::json!({ "fabric": "shoal", "nodes": 2 });
    run.bins.clear();
    run.cdfs.clear();
    run.stages.clear();
    run.series = rack::results::SeriesTable::default();
    run.tables.clear();
    let page = run_page(&run, Vec::new(), "rackloom run idle.toml");
    check_sections(&page, &["All figures", "Configuration", "Provenance"]);
    let empty = page.sections.iter().flat_map(|section| &section.blocks);
    assert!(empty.into_iter().all(|block| !matches!(block, Block::Plots(_))));
}

#[test]
fn the_same_run_gives_the_same_page() {
    let page = || run_page(&sample::run("Shoal", 1.0), Vec::new(), "rackloom run a.toml").to_html();
    assert!(page() == page());
}
