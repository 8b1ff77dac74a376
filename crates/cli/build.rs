//! Notes the commit that is built, where there is one to note.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for file in [".git/HEAD", ".git/logs/HEAD"] {
        let path = Path::new(root).join(file);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let mut git = Command::new("git");
    let output = git.args(["rev-parse", "--short=12", "HEAD"]).current_dir(root).output();
    let commit = output.ok().filter(|output| output.status.success());
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    // Outside a checkout (a source archive, a wheel) the version stands alone.
    println!("cargo::rustc-env=RACKLOOM_COMMIT={}", commit.unwrap_or_default());
}
