//! What changes while the page is open: the list, and how far runs have come, as server-sent events.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::{Event, KeepAlive, Sse};
use report::underway::Underway;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

use crate::folder::{Folder, Listing};

/// How often it is looked (our choice): as often as runs say how far they have come.
const PERIOD: Duration = Duration::from_secs(1);
/// Looking takes at most this part of the time, however large the directory is. Our choice.
const SHARE: u32 = 10;

/// The list, again whenever it has changed, and what runs under way say, until the page is closed.
pub fn news(folder: Arc<Folder>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (news, told) = mpsc::channel(4);
    tokio::spawn(watch(folder, news));
    Sse::new(ReceiverStream::new(told)).keep_alive(KeepAlive::default())
}

/// Looks until nobody listens.
async fn watch(folder: Arc<Folder>, news: mpsc::Sender<Result<Event, Infallible>>) {
    let (mut list, mut progress) = (String::new(), String::new());
    loop {
        let began = Instant::now();
        let looked_at = folder.clone();
        let Ok(now) = tokio::task::spawn_blocking(move || texts(looked_at.list())).await else {
            return;
        };
        let pause = PERIOD.max(began.elapsed() * SHARE);
        for (name, text, last) in [("list", now.0, &mut list), ("progress", now.1, &mut progress)] {
            if text == *last {
                continue;
            }
            *last = text;
            let event = Event::default().event(name).data(last.as_str());
            if news.send(Ok(event)).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = news.closed() => return,
        }
    }
}

/// The list without how far runs have come, and that by their paths: it changes far more often.
fn texts(mut listing: Listing) -> (String, String) {
    let mut progress: BTreeMap<String, Underway> = BTreeMap::new();
    for entry in &mut listing.entries {
        if let Some(underway) = entry.progress.take() {
            // Its file is written again each second.
            entry.modified = 0;
            progress.insert(entry.path.clone(), underway);
        }
    }
    let text =
        |value: Result<String, serde_json::Error>| value.expect("texts and numbers are JSON");
    (text(serde_json::to_string(&listing)), text(serde_json::to_string(&progress)))
}
