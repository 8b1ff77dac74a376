//! What is refused: peers without a certificate, a base of another version, messages that are none.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use aquila_services::cluster::{Profile, Role};
use aquila_services::process::BASE_FILE;
use aquila_services::proto::control::message::What;
use aquila_services::proto::control::peer_client::PeerClient;
use aquila_services::proto::control::{Cable, Crossing, LookRequest, Message, Program};
use aquila_services::proto::etcd::kv_client::KvClient;
use aquila_services::proto::etcd::request_op::Request as Op;
use aquila_services::proto::etcd::{PutRequest, RequestOp, TxnRequest};
use aquila_services::supervisor::{Options, SupervisorError};
use aquila_services::tls::{Tls, channel};
use libtest_mimic::Failed;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::runtime::Runtime;

use super::etcd::Etcd;
use super::plane::{Plane, options};
use crate::folder;

/// An authority, and a certificate of it, as `--tls` has them.
fn certify(folder: &Path) -> Result<(), Failed> {
    let authority = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&authority)?;
    let issuer = Issuer::new(params, authority);
    let key = KeyPair::generate()?;
    let own = CertificateParams::new(vec!["localhost".to_owned()])?.signed_by(&key, &issuer)?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join("ca.pem"), ca.pem())?;
    fs::write(folder.join("cert.pem"), own.pem())?;
    fs::write(folder.join("key.pem"), key.serialize_pem())?;
    Ok(())
}

async fn look(address: &str, tls: Option<&Tls>) -> Result<(), Failed> {
    let mut client = PeerClient::new(channel(address, tls)?);
    let looked = tokio::time::timeout(Duration::from_secs(5), client.look(LookRequest {})).await?;
    looked.map(drop).map_err(|status| status.to_string().into())
}

/// A Clique boots with certificates; who has none, or one of somebody else's, sees nothing.
pub fn check_tls() -> Result<(), Failed> {
    let folder = folder()?;
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    certify(&ours)?;
    certify(&theirs)?;
    let options = Options { tls: Some(ours.clone()), ..options(folder.path(), Profile::Tiny, 2)? };
    let plane = Plane::of(folder, options, 1)?;
    let address =
        plane.viewer.cluster.address((Role::FlowManager, 0)).unwrap_or_default().to_owned();
    plane.settle(Duration::from_secs(60))?;
    let (ours, theirs) = (Tls::read(&ours)?, Tls::read(&theirs)?);
    Runtime::new()?.block_on(async {
        look(&address, Some(&ours)).await?;
        assert!(look(&address, None).await.is_err(), "without a certificate");
        assert!(look(&address, Some(&theirs)).await.is_err(), "with somebody else's");
        Ok::<_, Failed>(())
    })?;
    plane.wait(Duration::from_secs(10), "two peers were refused", |report| {
        report.count(Role::FlowManager, "peers_refused") >= 2
    })?;
    plane.settle(Duration::from_secs(30))?;
    plane.stop()
}

/// Messages that are none are counted, and change nothing; metrics say so.
pub fn check_messages() -> Result<(), Failed> {
    let plane = Plane::start(Profile::Tiny, 2, None, 1)?;
    plane.settle(Duration::from_secs(60))?;
    let before = plane.registers()?;
    let at = |role| plane.viewer.cluster.address((role, 0)).unwrap_or_default().to_owned();
    let cable = |frame: Vec<u8>, tin| What::Cable(Cable { tin, port: 0, frame });
    let frame = vec![0; 12];
    let crossing = Crossing { tin: 0, port: 0, escapes: 9, ..Crossing::default() };
    let bad = [
        // Not whole; of a TiN that is not there; of a channel that is not there; nothing at all; for somebody else.
        cable(frame[..7].to_vec(), 0),
        cable(frame, 60_000),
        What::Crossing(crossing),
        What::Program(Program::default()),
    ];
    let messages = bad.into_iter().map(|what| Message { what: Some(what) });
    let messages: Vec<Message> = messages.chain([Message { what: None }]).collect();
    Runtime::new()?.block_on(async {
        let mut client = PeerClient::new(channel(&at(Role::Agent), None)?);
        client.send(tokio_stream::iter(messages)).await?;
        Ok::<_, Failed>(())
    })?;
    let report = plane.wait(Duration::from_secs(10), "five messages are none", |report| {
        report.count(Role::Agent, "malformed") >= 4
            && report.count(Role::Agent, "peers_malformed") == 1
    })?;
    assert_eq!(report.count(Role::Agent, "malformed"), 4);
    plane.check_registers(&before)?;
    // As Prometheus asks.
    let mut http = TcpStream::connect(at(Role::Agent))?;
    http.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    http.read_to_string(&mut text)?;
    let line = "rackloom_aquila_malformed_total{role=\"agent\",instance=\"0\"} 4";
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.lines().any(|found| found == line), "{text}");
    plane.stop()
}

/// A file of another version is left as it is, and nothing is started.
pub fn check_layout() -> Result<(), Failed> {
    let folder = folder()?;
    let path = folder.path().join(BASE_FILE);
    let file = [&b"RLNIB"[..], &[1], &99u32.to_be_bytes(), b"whatever there is"].concat();
    fs::write(&path, &file)?;
    let options = options(folder.path(), Profile::Tiny, 1)?;
    let plane = Plane::of(folder, options, 1)?;
    refuses(plane, "layout 99; expected", "base")?;
    Ok(())
}

/// A base of another version in etcd.
pub fn check_etcd() -> Result<(), Failed> {
    let etcd = Etcd::start()?;
    let address = etcd.address();
    Runtime::new()?.block_on(async {
        let mut kv = KvClient::new(channel(&address.replace("http://", ""), None)?);
        let (key, value) = (b"rackloom/aquila/layout".to_vec(), b"99".to_vec());
        let put = RequestOp { request: Some(Op::RequestPut(PutRequest { key, value, lease: 0 })) };
        let request = TxnRequest { success: vec![put], ..TxnRequest::default() };
        while kv.txn(request.clone()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<_, Failed>(())
    })?;
    let plane = Plane::start(Profile::Tiny, 1, Some(address), 1)?;
    refuses(plane, "holds a base of layout 99; expected", "")
}

fn refuses(plane: Plane, says: &str, who: &str) -> Result<(), Failed> {
    match plane.end(Duration::from_secs(30))? {
        Err(SupervisorError::Ended { place, why }) => {
            assert!(why.contains(says), "{why}");
            assert!(place.0.name().starts_with(who), "{place:?}");
            Ok(())
        }
        other => Err(format!("{other:?}; expected that it is refused").into()),
    }
}
