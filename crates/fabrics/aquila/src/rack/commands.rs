//! What hosts say to their TiNs where remote memory carries the flows: a transport of the engine.
//!
//! Models: Aquila §3.4 (M501): software hands the hardware a command, and hears when it is done; a host whose memory is
//! read or written hears nothing. A flow of the engine goes from the host that asks to the one that is asked, whichever
//! way its bytes go. **Our choice**: one command of 64 B stands for all operations of a flow, each of which is told
//! when it is done. A host that hears nothing for long says its command again: its TiN may have died, or its line.

use kernel::{Bytes, Span};
use packets::{FlowKey, Framing, Kind, Line, Opening, Outbox, Packet, Timer, Timers, Transport};
use rack::NodeId;

/// A host's command: `seq` bytes are to be moved, those behind the first `ack` of its flow. `word` counts its commands.
pub(super) const COMMAND: Kind = Kind::of_transport(0);
/// What a TiN tells: `seq` bytes are there, after `ack` retries; the command is under way, or has failed. `word` is the
/// command's.
pub(super) const DONE: Kind = Kind::of_transport(1);
pub(super) const HEARD: Kind = Kind::of_transport(2);
pub(super) const FAILED: Kind = Kind::of_transport(3);
/// Size of each on a host's line (our choice: a line of a cache, as descriptors are). Unit: bytes.
pub(super) const COMMAND_BYTES: u16 = 64;
/// A wait doubles so often.
const DOUBLINGS_MAX: u32 = 6;
/// Bytes of a packet that would carry a flow: none does, so that any network's largest packet is large enough.
const PAYLOAD: u16 = 1;

/// A flow, at the host that asks.
#[derive(Clone, Copy, Debug)]
struct Asking {
    from: NodeId,
    to: NodeId,
    /// Bytes that are not there yet, of all.
    rest: u64,
    size: u64,
    /// Commands so far, this one included.
    command: u64,
    /// Times that nothing was heard of it, in a row.
    silences: u32,
}

/// The hosts.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    flows: Vec<Option<Asking>>,
    /// How long until a command of which nothing is heard is said again; then twice as long.
    patience: Span,
}

impl Commands {
    pub(super) fn new(patience: Span) -> Self {
        Self { flows: Vec::new(), patience }
    }

    fn get(&mut self, key: FlowKey) -> Option<&mut Asking> {
        self.flows.get_mut(key.index())?.as_mut()
    }

    /// Says a flow's command, and waits.
    fn say(&mut self, key: FlowKey, out: &mut Outbox) {
        let Some(&mut Asking { from, to, rest, size, command, .. }) = self.get(key) else { return };
        out.send(Packet {
            flow: key,
            src: from,
            dst: to,
            kind: COMMAND,
            wire: COMMAND_BYTES,
            seq: rest,
            ack: size - rest,
            word: command,
            stamp: out.now(),
            ..Packet::default()
        });
        self.wait(key, out);
    }

    fn wait(&mut self, key: FlowKey, out: &mut Outbox) {
        let patience = self.patience;
        let Some(asking) = self.get(key) else { return };
        let wait = patience * (1 << asking.silences.min(DOUBLINGS_MAX));
        out.set_timer(Timer::Flow(key, 0), out.now() + wait);
    }
}

impl Transport for Commands {
    fn name(&self) -> &'static str {
        "1rma"
    }

    fn timers(&self) -> Timers {
        Timers { flow: 1, host: 0 }
    }

    fn framing(&self) -> Framing {
        Framing { payload: PAYLOAD, header: COMMAND_BYTES }
    }

    fn start(&mut self, opening: &Opening, out: &mut Outbox) {
        let Opening { key, flow, .. } = opening;
        if self.flows.len() <= key.index() {
            self.flows.resize(key.index() + 1, None);
        }
        let size = flow.size.get();
        let (from, to) = (flow.src, flow.dst);
        let asking = Asking { from, to, rest: size, size, command: 1, silences: 0 };
        self.flows[key.index()] = Some(asking);
        self.say(*key, out);
    }

    fn receive(&mut self, _: NodeId, packet: &Packet, out: &mut Outbox) {
        let key = packet.flow;
        let Some(asking) = self.get(key).filter(|_| !key.is_receivers()) else {
            return out.unexpected();
        };
        let is_of_this = packet.word == asking.command;
        match packet.kind {
            DONE if is_of_this => {
                // Operations are not told apart: bytes count.
                let bytes = packet.seq.min(asking.rest);
                asking.rest -= bytes;
                asking.silences = 0;
                let is_whole = asking.rest == 0;
                out.delivered(key, Bytes::new(bytes));
                if packet.ack > 0 {
                    out.resent(packet.ack);
                }
                if !is_whole {
                    return self.wait(key, out);
                }
                self.flows[key.index()] = None;
                out.complete(key);
                out.cancel_timer(Timer::Flow(key, 0));
                out.close(key);
            }
            HEARD => {
                // An earlier command of the flow is under way: that is the one to hear of.
                (asking.command, asking.silences) = (packet.word, 0);
                self.wait(key, out);
            }
            FAILED if is_of_this => out.give_up(key),
            // Of a command before.
            DONE | FAILED => {}
            _ => out.unexpected(),
        }
    }

    fn timer(&mut self, timer: Timer, out: &mut Outbox) {
        let Timer::Flow(key, _) = timer else { return };
        let Some(asking) = self.get(key) else { return };
        asking.silences += 1;
        asking.command += 1;
        self.say(key, out);
        out.in_vain(key);
    }

    fn pull(&mut self, _: NodeId, _: Line<'_>, _: &mut Outbox) -> Option<Packet> {
        None
    }

    fn abandon(&mut self, key: FlowKey, _: &mut Outbox) {
        if let Some(asking) = self.flows.get_mut(key.index()).filter(|_| !key.is_receivers()) {
            *asking = None;
        }
    }

    fn has_handshake(&self) -> bool {
        true
    }

    fn offset_of(&self, _: &Packet) -> u64 {
        0
    }

    fn can_be_cut(&self) -> bool {
        true
    }
}
