//! etcd, where it is installed.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aquila_services::ports;
use libtest_mimic::Failed;

use crate::folder;

/// How long it may take to answer. It takes a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// One of our own.
pub struct Etcd {
    folder: tempfile::TempDir,
    ports: [u16; 2],
    child: Child,
}

impl Etcd {
    /// The program, if it is there.
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|path| path.join("etcd")).find(|path| path.is_file())
    }

    /// One that is empty, and answers.
    pub fn start() -> Result<Self, Failed> {
        let held = ports::hold([127, 0, 0, 1].into(), 2)?;
        let ports = [held[0].local_addr()?.port(), held[1].local_addr()?.port()];
        drop(held);
        let folder = folder()?;
        let child = run(&folder, ports)?;
        Ok(Self { folder, ports, child })
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    /// It dies, and comes back with what it had.
    pub fn kill_and_start_again(&mut self) -> Result<(), Failed> {
        self.child.kill()?;
        self.child.wait()?;
        self.child = run(&self.folder, self.ports)?;
        Ok(())
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it, and waits until it answers.
fn run(folder: &tempfile::TempDir, [client, peer]: [u16; 2]) -> Result<Child, Failed> {
    let program = Etcd::program().ok_or("etcd is not installed")?;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let log = folder.path().join("log");
    let mut command = Command::new(program);
    command
        .arg("--data-dir")
        .arg(folder.path().join("data"))
        .args(["--listen-client-urls", &url(client), "--advertise-client-urls", &url(client)])
        .args(["--listen-peer-urls", &url(peer), "--initial-advertise-peer-urls", &url(peer)])
        .args(["--initial-cluster", &format!("default={}", url(peer))])
        .args(["--max-txn-ops", "32768", "--max-request-bytes", "33554432"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log)?);
    let mut child = command.spawn()?;
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", client)).is_err() {
        let ended = child.try_wait()?;
        if ended.is_some() || start.elapsed() > PATIENCE {
            let text = std::fs::read_to_string(&log)?;
            let _ = child.kill();
            return Err(format!("etcd does not answer; it ended with {ended:?}\n{text}").into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(child)
}
