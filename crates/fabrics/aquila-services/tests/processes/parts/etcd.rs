//! etcd, where it is installed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aquila_services::ports;
use libtest_mimic::Failed;

use crate::folder;

/// How long it may take to answer. It takes a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Its log, in its folder.
const LOG: &str = "log";

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
        let mut etcd = Self { folder, ports, child };
        etcd.wait()?;
        Ok(etcd)
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
        self.wait()
    }

    /// Waits until it answers, and is the one that does.
    fn wait(&mut self) -> Result<(), Failed> {
        let start = Instant::now();
        loop {
            let answers = is_well(self.ports[0]);
            if let Some(ended) = self.child.try_wait()? {
                return Err(self.said(&format!("etcd ended with {ended}")));
            }
            if answers {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                return Err(self.said(&format!("etcd does not answer within {PATIENCE:?}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What is wrong, and its log.
    fn said(&self, what: &str) -> Failed {
        let log = std::fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
        format!("{what}\n{log}").into()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(folder: &tempfile::TempDir, [client, peer]: [u16; 2]) -> Result<Child, Failed> {
    let program = Etcd::program().ok_or("etcd is not installed")?;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let log = std::fs::File::create(folder.path().join(LOG))?;
    let mut command = Command::new(program);
    command
        .arg("--data-dir")
        .arg(folder.path().join("data"))
        .args(["--listen-client-urls", &url(client), "--advertise-client-urls", &url(client)])
        .args(["--listen-peer-urls", &url(peer), "--initial-advertise-peer-urls", &url(peer)])
        .args(["--initial-cluster", &format!("default={}", url(peer))])
        .args(["--max-txn-ops", "32768", "--max-request-bytes", "33554432"]);
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?)
}

/// Whether an etcd at this port says that it is well.
fn is_well(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    ask().is_ok_and(|text| text.contains(r#""health":"true""#))
}
