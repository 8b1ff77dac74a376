//! Writes a report of each kind, filled with invented figures, to look at:
//! `cargo run -p rackloom-report --example sample_reports -- DIRECTORY`

#[path = "../tests/sample/mod.rs"]
mod sample;

use report::{ResultsDir, TextStyle, comparison_page, comparison_text, run_page, run_text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("say where to write the reports")?;
    let results = ResultsDir::create(directory)?;
    let (run, slower) = (sample::run("Shoal", 1.0), sample::run("Packet-switched", 2.2));
    results.write(
        "run.html",
        &run_page(&run, Vec::new(), "rackloom run examples/shoal-rack.toml").to_html(),
    )?;
    let style = TextStyle::detect(&std::io::stdout(), std::env::var_os("NO_COLOR").as_deref());
    let both = [("Shoal", &run.summary), ("Packet-switched", &slower.summary)];
    let text = [run_text("Shoal", &run.summary, style), comparison_text(&both, style)].join("\n");
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?;
    let command = "rackloom compare shoal.toml packet.toml";
    let compared = comparison_page("Two racks of 512 nodes", &[run, slower], command);
    results.write("comparison.html", &compared.to_html())?;
    results.write("reproduction.html", &sample::reproduction().to_html())?;
    Ok(())
}
