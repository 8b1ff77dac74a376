//! Notes the commit that is built, where there is one to note, and what differs from it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Of the checkout, what is compiled.
const SOURCES: [&str; 4] = ["crates", "reproductions", "Cargo.toml", "Cargo.lock"];
/// Of that, what is none: figures that were measured.
const MEASURED: &str = "reproductions/measured";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Asked for when it runs: checkouts that share a target directory may share a compiled build script.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = &Path::new(&package).join("../..");
    let beside_measured = root.join("reproductions").read_dir().into_iter().flatten().flatten();
    let watched = [".git/HEAD", ".git/logs/HEAD", "crates", "Cargo.toml", "Cargo.lock"]
        .map(|file| root.join(file))
        .into_iter()
        .chain(beside_measured.map(|entry| entry.path()));
    for path in watched.filter(|path| path.exists() && !path.ends_with(MEASURED)) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let mut commit = git(root, &["rev-parse", "--short=12", "HEAD"], b"").unwrap_or_default();
    if !commit.is_empty()
        && let Some(changes) = changes(root)
    {
        commit = format!("{commit}-dirty.{changes}");
    }
    // Outside a checkout (a source archive, a wheel) the version stands alone.
    println!("cargo::rustc-env=RACKLOOM_COMMIT={commit}");
}

/// Eight digits for what is compiled beside the commit: what was changed, and files that git does not know. None, if nothing.
fn changes(root: &Path) -> Option<String> {
    let but = format!(":!{MEASURED}");
    let of = |arguments: &[&str]| {
        let paths = [&["--", &but][..], &SOURCES].concat();
        git(root, &[arguments, &paths].concat(), b"")
    };
    let changed = of(&["diff", "--binary", "HEAD"])?;
    let unknown = of(&["ls-files", "--others", "--exclude-standard"])?;
    if changed.is_empty() && unknown.is_empty() {
        return None;
    }
    let contents = git(root, &["hash-object", "--stdin-paths"], unknown.as_bytes());
    let contents = contents.unwrap_or_default();
    let all = [changed, unknown, contents].join("\n");
    let hash = git(root, &["hash-object", "--stdin"], all.as_bytes())?;
    hash.get(..8).map(str::to_owned)
}

/// What git says, if it is there and has something to say.
fn git(root: &Path, arguments: &[&str], input: &[u8]) -> Option<String> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().ok()?;
    child.stdin.take()?.write_all(input).ok()?;
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
