//! Mutual TLS between processes: who has no certificate of the same authority is refused, and counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// The name that every certificate has to be for (our choice): all processes are one program, wherever they run.
pub const NAME: &str = "localhost";
/// For how long a peer may shake hands (our choice).
const HANDSHAKE: Duration = Duration::from_secs(5);

/// What is in the folder of `--tls`.
#[derive(Clone, Debug)]
pub struct Tls {
    acceptor: Arc<ServerConfig>,
    client: ClientTlsConfig,
}

/// Why a folder cannot be used.
#[derive(Debug, Error)]
#[error("{path}: {why}; expected {expected}")]
pub struct TlsError {
    path: PathBuf,
    why: String,
    expected: &'static str,
}

const CA: (&str, &str) = ("ca.pem", "certificates of who signs, in PEM");
const CERT: (&str, &str) = ("cert.pem", "this program's certificate for `localhost`, in PEM");
const KEY: (&str, &str) = ("key.pem", "the key of cert.pem, in PEM");

impl Tls {
    /// Reads a folder.
    ///
    /// # Errors
    /// A file is missing, or is none.
    pub fn read(folder: &Path) -> Result<Self, TlsError> {
        let bad = |(file, expected): (&str, &'static str), why: String| TlsError {
            path: folder.join(file),
            why,
            expected,
        };
        let read = |of: (&'static str, &'static str)| {
            fs::read(folder.join(of.0)).map_err(|why| bad(of, why.to_string()))
        };
        let [ca, cert, key] = [read(CA)?, read(CERT)?, read(KEY)?];
        let chain = |of, pem: &[u8]| {
            let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
            match found {
                Ok(found) if !found.is_empty() => Ok(found),
                Ok(_) => Err(bad(of, "no certificate in it".to_owned())),
                Err(why) => Err(bad(of, why.to_string())),
            }
        };
        let mut roots = RootCertStore::empty();
        for root in chain(CA, &ca)? {
            roots.add(root).map_err(|why| bad(CA, why.to_string()))?;
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
        let verifier = verifier.build().map_err(|why| bad(CA, why.to_string()))?;
        let private =
            PrivateKeyDer::from_pem_slice(&key).map_err(|why| bad(KEY, why.to_string()))?;
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|why| bad(CERT, why.to_string()))?;
        let mut config = builder
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain(CERT, &cert)?, private)
            .map_err(|why| bad(KEY, why.to_string()))?;
        // What metrics are asked for, and gRPC.
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(ca))
            .identity(Identity::from_pem(cert, key))
            .domain_name(NAME);
        Ok(Self { acceptor: Arc::new(config), client })
    }
}

/// A channel to an address, which connects when it is needed, and again when it is lost.
///
/// # Errors
/// It is no address.
pub fn channel(address: &str, tls: Option<&Tls>) -> Result<Channel, tonic::transport::Error> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?
        .connect_timeout(Duration::from_secs(2))
        .tcp_nodelay(true)
        // A process that is stopped and does not go is given up.
        .http2_keep_alive_interval(Duration::from_secs(2))
        .keep_alive_timeout(Duration::from_secs(4))
        .keep_alive_while_idle(true);
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls.client.clone())?;
    }
    Ok(endpoint.connect_lazy())
}

/// Peers that were not let in.
#[derive(Clone, Debug, Default)]
pub struct Refused(Arc<AtomicU64>);

impl Refused {
    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Peers that have come, and have shown that they may.
#[must_use]
pub fn accept(
    listener: TcpListener,
    tls: &Tls,
    refused: &Refused,
) -> mpsc::Receiver<std::io::Result<TlsStream<TcpStream>>> {
    let acceptor = TlsAcceptor::from(tls.acceptor.clone());
    let (sender, receiver) = mpsc::channel(16);
    let refused = refused.clone();
    tokio::spawn(async move {
        while !sender.is_closed() {
            let (stream, peer) = match listener.accept().await {
                Ok(new) => new,
                Err(why) => {
                    // As when there are too many open files: that passes.
                    tracing::warn!(%why, "no peer can be let in");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (acceptor, sender, refused) = (acceptor.clone(), sender.clone(), refused.clone());
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                let why = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let _ = sender.send(Ok(stream)).await;
                        return;
                    }
                    Ok(Err(why)) => why.to_string(),
                    Err(_) => "it says nothing".to_owned(),
                };
                refused.0.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%peer, %why, "a peer was refused");
            });
        }
    });
    receiver
}
