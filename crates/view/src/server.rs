//! The server: which request is answered by what, and which is refused.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::assets::asset;
use crate::folder::Folder;
use crate::refusal::Refusal;
use crate::run::{self, FLOWS, Traces};
use crate::{curves, flows, groups, live};

/// What the page may do: load what this server has, and nothing else. Plotly writes its own styles into the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: \
                      blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// A stored report runs its own scripts, as on disk, and is kept apart from everything at this address.
const POLICY_OF_REPORTS: &str = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'";
/// Who this server may be called by. A name that somebody else's name server leads here is none of them.
const HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Which pages may load an answer.
const OWN_PAGES_ALONE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What all requests share.
struct Shared {
    folder: Arc<Folder>,
    traces: Traces,
}

/// Where the page is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address(SocketAddr);

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}/", self.0)
    }
}

/// Serves the page of `folder` at this machine's own address, at `port`, or at a free one if that is 0, until `stop` is
/// done. `ready` is told where, once it listens.
///
/// # Errors
/// When nobody may listen there.
pub async fn serve(
    folder: Folder,
    port: u16,
    ready: impl FnOnce(&Address),
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    ready(&Address(listener.local_addr()?));
    // Not waited for: streams of news end with their readers alone.
    tokio::select! {
        result = async { axum::serve(listener, router(folder)).await } => result,
        () = stop => Ok(()),
    }
}

/// All that is answered.
pub fn router(folder: Folder) -> Router {
    let shared = Arc::new(Shared { folder: Arc::new(folder), traces: Traces::default() });
    Router::new()
        .route("/", get(async || asset("index.html")))
        .route("/assets/{name}", get(async |Path(name): Path<String>| asset(&name)))
        .route("/api/list", get(list))
        .route("/api/run", get(overview))
        .route("/api/flows", get(flow_columns))
        .route("/api/series", get(series))
        .route("/api/recorded", get(recorded))
        .route("/api/why", get(why))
        .route("/api/rack", get(rack))
        .route("/api/group", get(group))
        .route("/api/curves", get(curves_of))
        .route("/api/live", get(async |State(shared): Of| live::news(shared.folder.clone())))
        .route("/files/{*path}", get(file))
        .fallback(async || Refusal::missing("no such page; the page is at /"))
        .layer(middleware::from_fn(guard))
        .with_state(shared)
}

type Of = State<Arc<Shared>>;
type Answer = Result<Response, Refusal>;

/// Refuses what no page of this server asks, and says of each answer what it may do.
async fn guard(request: Request, next: Next) -> Response {
    let mut response = match refused(request.method(), request.headers()) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (OWN_PAGES_ALONE, "same-origin"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Why a request is not answered, if it is not.
fn refused(method: &Method, headers: &HeaderMap) -> Option<Refusal> {
    if method != Method::GET && method != Method::HEAD {
        let message = format!("{method}: expected GET; this page changes nothing");
        return Some(Refusal { status: StatusCode::METHOD_NOT_ALLOWED, message });
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // The port is not asked for: a tunnel has another on its own side.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    if HOSTS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return None;
    }
    let message = format!(
        "the request names {host:?} as its host; expected {}: this page is for this machine alone",
        HOSTS.join(", ")
    );
    Some(Refusal { status: StatusCode::MISDIRECTED_REQUEST, message })
}

/// Which results a request is about.
#[derive(Deserialize)]
struct Which {
    path: String,
}

#[derive(Deserialize)]
struct WhichFlow {
    path: String,
    flow: u64,
}

/// Does `work` with the directory at `path`, in a thread of its own: files may be large.
async fn with_place<T: Send + 'static>(
    shared: Arc<Shared>,
    path: String,
    work: impl FnOnce(&Shared, PathBuf) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let work = tokio::task::spawn_blocking(move || {
        let place = shared.folder.place(&path)?;
        work(&shared, place)
    });
    work.await.unwrap_or_else(|_| {
        let message = "internal error; the command has said more on its terminal".into();
        Err(Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, message })
    })
}

fn json(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn list(State(shared): Of) -> Answer {
    let folder = shared.clone();
    let value = with_place(shared, ".".into(), move |_, _| {
        Ok(serde_json::to_value(folder.folder.list()).expect("texts and numbers are JSON"))
    });
    Ok(json(&value.await?))
}

async fn overview(State(shared): Of, Query(Which { path }): Query<Which>) -> Answer {
    let asked = path.clone();
    let work =
        move |shared: &Shared, place: PathBuf| run::overview(&place, &shared.folder.typed(&asked));
    Ok(json(&with_place(shared, path, work).await?))
}

async fn flow_columns(State(shared): Of, Query(Which { path }): Query<Which>) -> Answer {
    let work = |_: &Shared, place: PathBuf| Ok(flows::columns(&place.join(FLOWS))?);
    let bytes = with_place(shared, path, work).await?;
    Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

async fn series(State(shared): Of, Query(Which { path }): Query<Which>) -> Answer {
    Ok(json(&with_place(shared, path, |_, place| run::series(&place)).await?))
}

async fn recorded(State(shared): Of, Query(Which { path }): Query<Which>) -> Answer {
    let work = |shared: &Shared, place: PathBuf| run::recorded(&place, &shared.traces);
    Ok(json(&with_place(shared, path, work).await?))
}

async fn why(State(shared): Of, Query(which): Query<WhichFlow>) -> Answer {
    let WhichFlow { path, flow } = which;
    let asked = path.clone();
    let work = move |shared: &Shared, place: PathBuf| {
        run::why(&place, &shared.folder.typed(&asked), flow, &shared.traces)
    };
    Ok(json(&with_place(shared, path, work).await?))
}

async fn rack(State(shared): Of, Query(Which { path }): Query<Which>) -> Answer {
    Ok(json(&with_place(shared, path, |_, place| run::network(&place)).await?))
}

async fn group(State(shared): Of, Query(Which { path }): Query<Which>) -> Answer {
    Ok(json(&with_place(shared, path, |_, place| groups::group(&place)).await?))
}

async fn curves_of(State(shared): Of, Query(Which { path }): Query<Which>) -> Answer {
    let work = |_: &Shared, place: PathBuf| Ok(curves::curves(&place.join(FLOWS))?);
    Ok(json(&with_place(shared, path, work).await?))
}

/// A stored report, or the chart library that those of a sweep share.
async fn file(State(shared): Of, Path(path): Path<String>) -> Answer {
    // A report that is kept apart counts as a foreign page; the library is no secret.
    let (kind, whose) = match path.rsplit('/').next() {
        Some("report.html") => ("text/html; charset=utf-8", "same-origin"),
        Some("plotly-basic.min.js") => ("text/javascript; charset=utf-8", "cross-origin"),
        _ => return Err(Refusal::forbidden(format!("{path}: expected report.html"))),
    };
    let work = |_: &Shared, place: PathBuf| {
        std::fs::read(&place)
            .map_err(|error| Refusal::missing(format!("{}: {error}", place.display())))
    };
    let bytes = with_place(shared, path, work).await?;
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY_OF_REPORTS),
        (OWN_PAGES_ALONE, whose),
    ];
    Ok((headers, bytes).into_response())
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
