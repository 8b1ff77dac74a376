//! The pages in a real browser: every chart is drawn, nothing is complained of, nothing is loaded.
//!
//! Needs Chromium, found as `chromium` on the path or named by `RACKLOOM_CHROMIUM`. Where there is
//! none these tests are reported as ignored, with the reason in their names, and never as passed.

mod sample;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use report::page::{Block, Page};
use report::{comparison_page, run_page};

/// A test's name and the page it looks at.
type Case = (&'static str, fn() -> Page);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let browser = browser();
    if browser.is_none() {
        eprintln!("skipped: no Chromium (install it, or name one in RACKLOOM_CHROMIUM)");
    }
    let cases: [Case; 5] = [
        ("the_report_of_a_run", || {
            run_page(&sample::run("Shoal", 1.0), Vec::new(), "rackloom run a.toml")
        }),
        ("the_report_of_a_comparison", compared),
        ("the_report_of_a_reproduction", sample::reproduction),
        ("a_report_with_hostile_names", hostile),
        ("a_report_of_almost_nothing", almost_nothing),
    ];
    let mut trials: Vec<_> = cases
        .into_iter()
        .map(|(name, page)| {
            trial(name, browser.clone(), move |browser| check_page(browser, &page()))
        })
        .collect();
    // The canary: a page whose charts fail must fail the check.
    trials.push(trial("a_page_whose_script_fails_is_noticed", browser.clone(), |browser| {
        let page = run_page(&sample::run("Shoal", 1.0), Vec::new(), "");
        let broken = page.to_html().replace("Plotly.react(", "Plotly.absent(");
        match check_html(browser, &broken, plot_count(&page)) {
            Ok(()) => Err("a page whose charts cannot be drawn was accepted".into()),
            Err(_) => Ok(()),
        }
    }));
    trials.push(trial("zoom_and_print_redraw_the_charts", browser, zoom_and_print));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A test that is ignored where there is no browser.
fn trial(
    name: &str,
    browser: Option<PathBuf>,
    test: impl FnOnce(&Path) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    match browser {
        Some(browser) => Trial::test(name, move || test(&browser)),
        None => {
            Trial::test(format!("{name} (skipped: no Chromium)"), || Ok(())).with_ignored_flag(true)
        }
    }
}

/// The browser to use: the one named, else the one on the path.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("RACKLOOM_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|place| place.join("chromium")).find(|file| file.is_file())
}

fn compared() -> Page {
    let runs = [sample::run("Shoal", 1.0), sample::run("Packet-switched", 2.2)];
    comparison_page("Two racks", &runs, "rackloom compare a.toml b.toml")
}

/// Names that would be markup, or code, if anything forgot to escape them.
fn hostile() -> Page {
    let mut run = sample::run("</script><script>throw 1</script>", 1.0);
    run.scenario = "<img src=x onerror='throw 2'>".into();
    run.tables[0].rows[0][0] = "<script>throw 3</script>".into();
    let evil = "<img src=\"http://localhost/x\" onerror=\"throw 4\">";
    let mut page = comparison_page(evil, &[run.clone(), sample::run(evil, 1.5)], evil);
    page.sections.extend(run_page(&run, Vec::new(), evil).sections);
    page
}

/// A run in which nothing was measured.
fn almost_nothing() -> Page {
    let mut run = sample::run("Idle", 1.0);
    run.summary = serde_json::json!({ "fabric": "shoal", "nodes": 2 });
    run.bins.clear();
    run.cdfs.clear();
    run.series.values.truncate(1);
    run.series.seconds.truncate(1);
    run.tables.clear();
    run_page(&run, Vec::new(), "")
}

/// Zooms into the first chart, then prints and comes back: the ticks follow, the widths return.
fn zoom_and_print(browser: &Path) -> Result<(), Failed> {
    let page = run_page(&sample::run("Shoal", 1.0), Vec::new(), "");
    let script = r##"<script>
        const chart = document.getElementById("plot-1");
        const width = () => Math.round(chart.querySelector(".main-svg").getBoundingClientRect().width);
        const pause = () => new Promise((done) => setTimeout(done, 1000));
        const ticks = () =>
            [...chart.querySelectorAll(".xtick text")].map((tick) => tick.textContent).join(" ");
        window.addEventListener("load", async () => {
            await pause();
            const before = width();
            await Plotly.relayout(chart, { "xaxis.range[0]": 3, "xaxis.range[1]": 4 });
            await pause();
            document.body.dataset.zoomedTicks = ticks();
            window.dispatchEvent(new Event("beforeprint"));
            await pause();
            document.body.dataset.printed = String(width());
            window.dispatchEvent(new Event("afterprint"));
            await pause();
            document.body.dataset.returned = String(width() === before);
        });
    </script></body>"##;
    let html = page.to_html().replace("</body>", script);
    let seen = open(browser, &html)?;
    for expected in [
        "data-zoomed-ticks=\"1 KB 2 KB 5 KB 10 KB\"",
        "data-printed=\"680\"",
        "data-returned=\"true\"",
    ] {
        if !seen.contains(expected) {
            let body = seen.split("<body").nth(1).unwrap_or_default();
            let start: String = body.chars().take(300).collect();
            return Err(format!("no {expected} in the page: {start}").into());
        }
    }
    Ok(())
}

fn plot_count(page: &Page) -> usize {
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let plots = blocks.map(|block| match block {
        Block::Plots(plots) => plots.iter().filter(|plot| !plot.is_empty()).count(),
        _ => 0,
    });
    plots.sum()
}

fn check_page(browser: &Path, page: &Page) -> Result<(), Failed> {
    check_html(browser, &page.to_html(), plot_count(page))
}

/// Opens the page and looks at what became of it: `plots` charts, each with something drawn.
fn check_html(browser: &Path, html: &str, plots: usize) -> Result<(), Failed> {
    let page = open(browser, html)?;
    let drawn = format!("data-plots-drawn=\"{plots}\"");
    if plots > 0 && !page.contains(&drawn) {
        return Err(format!("no {drawn} in the page").into());
    }
    // Each chart has one layer of axes, and at least one curve or set of bars in it.
    let areas = page.matches("class=\"cartesianlayer\"").count();
    if areas != plots {
        return Err(format!("{areas} charts were drawn, {plots} expected").into());
    }
    let traces = page.matches("class=\"trace ").count();
    if traces < plots {
        return Err(format!("{traces} curves and bars in {plots} charts").into());
    }
    Ok(())
}

/// The page as it is after its scripts have run. An error if the browser complains of anything.
fn open(browser: &Path, html: &str) -> Result<String, Failed> {
    let place = tempfile::tempdir()?;
    let file = place.path().join("report.html");
    fs::write(&file, html)?;
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
        // Messages of the page go to standard error, each with the word CONSOLE.
        .args(["--enable-logging=stderr", "--virtual-time-budget=10000", "--timeout=120000"])
        .args(["--window-size=1200,2000", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<_> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    if !complaints.is_empty() {
        return Err(format!("the browser complains:\n{}", complaints.join("\n")).into());
    }
    if !output.status.success() {
        return Err(format!("the browser broke ({}):\n{said}", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
