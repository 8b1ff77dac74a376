//! What every process serves: messages of others, what there is to see, and metrics.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use super::{Event, lock};
use crate::base::embedded::Embedded;
use crate::links::MESSAGE_BYTES_MAX;
use crate::proto::control::base_server::BaseServer;
use crate::proto::control::peer_server::{Peer, PeerServer};
use crate::proto::control::{
    AuditRequest, LookRequest, Looked, Message, Registers, Sent, UpgradeReply, UpgradeRequest,
    WantReply, Wish,
};
use crate::tls::{Refused, Tls, accept};

/// The server of a process.
#[derive(Clone)]
pub struct Peers {
    events: mpsc::Sender<Event>,
    looked: Arc<Mutex<Looked>>,
    /// Messages that were none.
    pub malformed: Arc<AtomicU64>,
}

impl Peers {
    /// One that hands messages on.
    pub fn new(events: mpsc::Sender<Event>, looked: Arc<Mutex<Looked>>) -> Self {
        Self { events, looked, malformed: Arc::default() }
    }
}

#[tonic::async_trait]
impl Peer for Peers {
    async fn send(&self, request: Request<Streaming<Message>>) -> Result<Response<Sent>, Status> {
        let mut messages = request.into_inner();
        loop {
            match messages.message().await {
                Ok(Some(Message { what: Some(what) })) => {
                    let sent = self.events.send(Event::Message(what)).await;
                    sent.map_err(|_| Status::unavailable("it ends"))?;
                }
                Ok(Some(Message { what: None })) => {
                    // Of another version, or nothing at all.
                    self.malformed.fetch_add(1, Ordering::Relaxed);
                }
                Ok(None) => return Ok(Response::new(Sent {})),
                Err(status) => {
                    let is_cut = [tonic::Code::Internal, tonic::Code::OutOfRange];
                    if is_cut.contains(&status.code()) {
                        self.malformed.fetch_add(1, Ordering::Relaxed);
                    }
                    return Err(status);
                }
            }
        }
    }

    async fn look(&self, _: Request<LookRequest>) -> Result<Response<Looked>, Status> {
        Ok(Response::new(lock(&self.looked).clone()))
    }

    async fn upgrade(
        &self,
        request: Request<UpgradeRequest>,
    ) -> Result<Response<UpgradeReply>, Status> {
        let (answer, answered) = oneshot::channel();
        let asked = self.events.send(Event::Upgrade(request.into_inner(), answer)).await;
        asked.map_err(|_| Status::unavailable("it ends"))?;
        let none = |_| Status::unimplemented("this process is no front end");
        Ok(Response::new(answered.await.map_err(none)?))
    }

    async fn want(&self, request: Request<Wish>) -> Result<Response<WantReply>, Status> {
        let (answer, answered) = oneshot::channel();
        let asked = self.events.send(Event::Want(request.into_inner(), answer)).await;
        asked.map_err(|_| Status::unavailable("it ends"))?;
        let none = |_| Status::unimplemented("this process is no front end");
        Ok(Response::new(answered.await.map_err(none)?))
    }

    type AuditStream = Pin<Box<dyn Stream<Item = Result<Registers, Status>> + Send>>;

    async fn audit(
        &self,
        request: Request<AuditRequest>,
    ) -> Result<Response<Self::AuditStream>, Status> {
        let tin = request.into_inner().tin;
        let none = || Status::not_found(format!("there is no TiN {tin} at this process"));
        let (answer, answered) = oneshot::channel();
        let tin = u16::try_from(tin).map_err(|_| none())?;
        let asked = self.events.send(Event::Audit(tin, answer)).await;
        asked.map_err(|_| Status::unavailable("it ends"))?;
        let registers = answered.await.ok().flatten().ok_or_else(none)?;
        Ok(Response::new(Box::pin(tokio_stream::iter(registers.into_iter().map(Ok)))))
    }
}

/// What metrics are made of.
#[derive(Debug)]
struct Metrics(Looked);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Looked { term, version, rows, raw_bytes, stored_bytes, .. } = self.0;
        let gauges = [
            ("term", "Its term, if it leads; 0: it does not", term),
            ("base_version", "Of the base, as far as it knows", version),
            ("base_rows", "Rows of the base", rows),
            ("base_raw_bytes", "What values take before compression", raw_bytes),
            ("base_stored_bytes", "As they are kept", stored_bytes),
            (
                "sessions",
                "TiNs with a session",
                self.0.sessions.iter().filter(|s| s.is_up).count() as u64,
            ),
            (
                "ready",
                "TiNs that are ready",
                self.0.sessions.iter().filter(|s| s.is_ready).count() as u64,
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        for count in &self.0.counts {
            let counter = ConstCounter::new(count.value);
            let help = count.name.replace('_', " ");
            let metric =
                encoder.encode_descriptor(&count.name, &help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

fn metrics(looked: &Looked) -> String {
    let labels = [
        ("role".into(), looked.role.clone().into()),
        ("instance".into(), looked.instance.to_string().into()),
    ];
    let prefix = "rackloom_aquila";
    let mut registry = Registry::with_prefix_and_labels(prefix, labels.into_iter());
    registry.register_collector(Box::new(Metrics(looked.clone())));
    let mut text = String::new();
    if prometheus_client::encoding::text::encode(&mut text, &registry).is_err() {
        text.clear();
    }
    text
}

/// Serves, from now on.
pub fn serve(
    listener: TcpListener,
    tls: Option<&Tls>,
    refused: &Refused,
    peers: Peers,
    base: Option<Embedded>,
) {
    let looked = peers.looked.clone();
    let peer = PeerServer::new(peers)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut routes = Routes::new(peer);
    if let Some(base) = base {
        let base = BaseServer::new(base)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        routes = routes.add_service(base);
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let show = move || async move {
        ([(axum::http::header::CONTENT_TYPE, kind)], metrics(&lock(&looked)))
    };
    let router = routes.into_axum_router().route("/metrics", get(show));
    let server = Server::builder().accept_http1(true).add_routes(Routes::from(router));
    let tls = tls.cloned().map(|tls| (tls, refused.clone()));
    tokio::spawn(async move {
        let served = match tls {
            Some((tls, refused)) => {
                let incoming = ReceiverStream::new(accept(listener, &tls, &refused));
                server.serve_with_incoming(incoming).await
            }
            None => {
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                server.serve_with_incoming(incoming).await
            }
        };
        if let Err(error) = served {
            tracing::error!(%error, "it does not serve any more");
            std::process::exit(1);
        }
    });
}
