//! The embedded base, as other processes reach it.

use aquila_control::nib::Changes;
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::{Answer, Away, Base, Writing};
use crate::convert;
use crate::links::MESSAGE_BYTES_MAX;
use crate::proto::control::WatchRequest;
use crate::proto::control::base_client::BaseClient;

/// A way to it.
#[derive(Clone, Debug)]
pub struct Remote {
    client: BaseClient<Channel>,
    at: String,
}

impl Remote {
    /// By a channel, which connects when it is needed.
    #[must_use]
    pub fn new(channel: Channel, at: String) -> Self {
        let client = BaseClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        Self { client, at }
    }

    fn away(&self, status: &Status) -> Away {
        match status.code() {
            Code::InvalidArgument | Code::Unimplemented => Away::Unfit(status.message().to_owned()),
            _ => Away::Silent { at: self.at.clone(), why: status.message().to_owned() },
        }
    }
}

#[tonic::async_trait]
impl Base for Remote {
    async fn write(&self, writing: &Writing) -> Result<Answer, Away> {
        let reply = self.client.clone().write(convert::writing(writing)).await;
        let reply = reply.map_err(|status| self.away(&status))?.into_inner();
        convert::from_answer(reply).ok_or_else(|| Away::Unfit("an answer that is none".to_owned()))
    }

    async fn watch(&self, seen: u64) -> Result<mpsc::Receiver<Changes>, Away> {
        let stream = self.client.clone().watch(WatchRequest { seen }).await;
        let mut stream = stream.map_err(|status| self.away(&status))?.into_inner();
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(async move {
            while let Ok(Some(changes)) = stream.message().await {
                let Some(changes) = convert::from_changes(changes) else { return };
                if sender.send(changes).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }
}
