//! Notes the commit that is built, where there is one to note, and whether what is built differs from it.

use std::path::Path;
use std::process::Command;

/// Of the checkout, what is compiled.
const SOURCES: [&str; 4] = ["crates", "reproductions", "Cargo.toml", "Cargo.lock"];
/// Of that, what is none: figures that were measured.
const MEASURED: &str = "reproductions/measured";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let beside_measured = root.join("reproductions").read_dir().into_iter().flatten().flatten();
    let watched = [".git/HEAD", ".git/logs/HEAD", "crates", "Cargo.toml", "Cargo.lock"]
        .map(|file| root.join(file))
        .into_iter()
        .chain(beside_measured.map(|entry| entry.path()));
    for path in watched.filter(|path| path.exists() && !path.ends_with(MEASURED)) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let git = |arguments: &[&str]| Command::new("git").args(arguments).current_dir(root).output();
    let output = git(&["rev-parse", "--short=12", "HEAD"]);
    let commit = output.ok().filter(|output| output.status.success());
    let mut commit = commit
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string())
        .unwrap_or_default();
    let but = format!(":!{MEASURED}");
    let differs = git(&[&["diff", "--quiet", "HEAD", "--", &but][..], &SOURCES].concat());
    if !commit.is_empty() && differs.is_ok_and(|output| output.status.code() == Some(1)) {
        commit.push_str("-dirty");
    }
    // Outside a checkout (a source archive, a wheel) the version stands alone.
    println!("cargo::rustc-env=RACKLOOM_COMMIT={commit}");
}
