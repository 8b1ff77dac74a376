//! Messages between processes: in order, at most once, and lost while a peer is away. Nobody waits for one: whoever sends
//! goes on, and says again what matters (as the applications do).

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::cluster::Place;
use crate::proto::control::Message;
use crate::proto::control::message::What;
use crate::proto::control::peer_client::PeerClient;

/// No message is larger (our choice): all rows of a full Clique take 13 MB.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Messages that wait for a peer; later ones are lost (our choice).
const WAITING_MAX: usize = 8_192;
/// From one try to reach a peer to the next (our choice).
const AGAIN: Duration = Duration::from_millis(100);

/// Ways to other processes.
#[derive(Debug, Default)]
pub struct Links {
    peers: BTreeMap<Place, mpsc::Sender<Message>>,
    /// Messages that had no room, or nobody to go to.
    pub lost: u64,
}

impl Links {
    /// Another way.
    pub fn add(&mut self, to: Place, channel: Channel) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(carry(channel, receiver));
        self.peers.insert(to, sender);
    }

    /// Sends a message.
    pub fn send(&mut self, to: Place, what: What) {
        let message = Message { what: Some(what) };
        let peer = self.peers.get(&to);
        let is_sent = peer.is_some_and(|peer| peer.try_send(message).is_ok());
        self.lost += u64::from(!is_sent);
    }
}

/// Carries what comes, in one stream as long as that holds.
async fn carry(channel: Channel, mut messages: mpsc::Receiver<Message>) {
    let mut client = PeerClient::new(channel)
        .max_encoding_message_size(MESSAGE_BYTES_MAX)
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    // The first opens the stream, so that nothing is sent to a peer of which nothing is wanted.
    while let Some(first) = messages.recv().await {
        let (sender, stream) = mpsc::channel(64);
        let _ = sender.send(first).await;
        let mut call = Box::pin(client.send(ReceiverStream::new(stream)));
        loop {
            tokio::select! {
                biased;
                _ = &mut call => break,
                message = messages.recv() => {
                    let Some(message) = message else { return };
                    tokio::select! {
                        sent = sender.send(message) => if sent.is_err() { break },
                        _ = &mut call => break,
                    }
                }
            }
        }
        drop(call);
        // What has waited meanwhile is old.
        tokio::time::sleep(AGAIN).await;
        while messages.try_recv().is_ok() {}
    }
}
