//! What a transport wants done: a list that the network carries out, in order, after each call.

use kernel::{Bytes, Span, Time};
use rack::NodeId;
use rack::topology::PortId;

use crate::packet::{FlowKey, Packet};
use crate::transport::Timer;

/// One thing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Queue a packet at the NIC of its source.
    Send(Packet),
    /// Queue a packet at a port of a host that passes traffic on, for the neighbour there.
    Tell(PortId, Packet),
    /// Ask for packets at once.
    Wake(NodeId),
    /// Ask for packets at an instant.
    WakeAt(NodeId, Time),
    /// Let a timer fire at an instant, in place of any earlier setting.
    Set(Timer, Time),
    /// Do not let a timer fire.
    Cancel(Timer),
    /// Application bytes became readable, in order.
    Delivered(FlowKey, Bytes),
    /// The flow's last byte became readable.
    Complete(FlowKey),
    /// The half has nothing left to do.
    Close(FlowKey),
    /// Packets of the flow are lost for good: it fails.
    GiveUp(FlowKey),
    /// A half has waited for an answer, and none has come.
    InVain(FlowKey),
    /// Packets were retransmitted.
    Resent(u64),
    /// So many bytes are held for a flow until earlier ones arrive.
    Held(Bytes),
    /// The packet at hand has brought bytes of another flow, too.
    Unpack(Packet),
}

/// The list, with the instant at which the call is made.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    now: Time,
    pub(crate) effects: Vec<Effect>,
    /// Packets that were not expected where they came: dropped.
    unexpected: u64,
    /// From a packet's arrival at its host to the engine there, and how long the packet at hand has been there.
    latency: Span,
    since_arrival: Span,
    send_latency: Span,
}

impl Outbox {
    /// An empty outbox at `now`.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self { now, ..Self::default() }
    }

    /// An empty outbox at time zero, of hosts in which it takes a packet `latency` to the transport and what that sends
    /// `send_latency` to the NIC.
    pub(crate) fn at_hosts(latency: Span, send_latency: Span) -> Self {
        Self { latency, since_arrival: latency, send_latency, ..Self::default() }
    }

    /// The packet at hand has waited so long at its host, besides its way to the engine.
    #[inline]
    pub(crate) fn set_waited(&mut self, waited: Span) {
        self.since_arrival = self.latency + waited;
    }

    /// How long the packet at hand has waited at its host, besides its way to the engine.
    #[inline]
    pub(crate) fn waited(&self) -> Span {
        self.since_arrival - self.latency
    }

    /// In [`crate::Transport::receive`]: how long ago the packet reached the NIC of its host.
    #[inline]
    #[must_use]
    pub fn since_arrival(&self) -> Span {
        self.since_arrival
    }

    /// How long what is sent now takes to the NIC of its host.
    #[inline]
    #[must_use]
    pub fn send_latency(&self) -> Span {
        self.send_latency
    }

    /// The instant of the call.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Moves on to the next call.
    #[inline]
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Whether nothing is wanted.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Takes all effects out, for drivers and tests.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect> + '_ {
        self.effects.drain(..)
    }

    /// Adds an effect that another list held.
    #[inline]
    pub fn pass_on(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// How many effects are in the list.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.effects.len()
    }

    /// Moves the effects from the place `from` on to the end of `into`, if there is one among them that
    /// `concerns` whoever asks; else all stay. For a transport that carries another.
    #[inline]
    pub fn divert(
        &mut self,
        from: usize,
        into: &mut Vec<Effect>,
        concerns: impl Fn(&Effect) -> bool,
    ) {
        if self.effects[from..].iter().any(concerns) {
            into.extend(self.effects.drain(from..));
        }
    }

    /// Queues `packet` at the NIC of `packet.src`, behind others of its priority and before anything
    /// that is pulled. For what must go at once; under per-flow backpressure data has to be pulled.
    #[inline]
    pub fn send(&mut self, packet: Packet) {
        self.effects.push(Effect::Send(packet));
    }

    /// Queues `packet` at `port` of the host `packet.src`, which is wired to other hosts; it goes to
    /// the neighbour at the other end, whatever its header says, and there to
    /// [`crate::Transport::receive`]. It belongs to no flow: its `flow` is [`FlowKey::NEIGHBOURS`].
    /// For transports that [`crate::Transport::speaks_to_neighbours`].
    #[inline]
    pub fn tell(&mut self, port: PortId, packet: Packet) {
        debug_assert_eq!(packet.flow, FlowKey::NEIGHBOURS, "{packet:?} belongs to a flow");
        self.effects.push(Effect::Tell(port, packet));
    }

    /// The transport has something to send from `host` now: [`crate::Transport::pull`] is called as
    /// soon as the line is free.
    #[inline]
    pub fn wake(&mut self, host: NodeId) {
        self.effects.push(Effect::Wake(host));
    }

    /// As [`Outbox::wake`], at `at`: for pacing. A host has one such alarm; an earlier one stays, and
    /// when it comes `pull` may ask anew.
    #[inline]
    pub fn wake_at(&mut self, host: NodeId, at: Time) {
        self.effects.push(Effect::WakeAt(host, at));
    }

    /// Sets a timer, or moves it.
    #[inline]
    pub fn set_timer(&mut self, timer: Timer, at: Time) {
        self.effects.push(Effect::Set(timer, at));
    }

    /// Cancels a timer; nothing happens if it is not set.
    #[inline]
    pub fn cancel_timer(&mut self, timer: Timer) {
        self.effects.push(Effect::Cancel(timer));
    }

    /// `bytes` more of the flow became readable by the receiving application, each byte once.
    #[inline]
    pub fn delivered(&mut self, flow: FlowKey, bytes: Bytes) {
        self.effects.push(Effect::Delivered(flow, bytes));
    }

    /// All of the flow's bytes are readable: its completion time ends now.
    #[inline]
    pub fn complete(&mut self, flow: FlowKey) {
        self.effects.push(Effect::Complete(flow));
    }

    /// Nothing is left to do for this half of a flow; its key may be used again.
    #[inline]
    pub fn close(&mut self, flow: FlowKey) {
        self.effects.push(Effect::Close(flow));
    }

    /// The sender sends no more of the flow, although packets of it may be lost: unless all has arrived, it
    /// fails, and [`crate::Transport::abandon`] is called.
    #[inline]
    pub fn give_up(&mut self, flow: FlowKey) {
        self.effects.push(Effect::GiveUp(flow));
    }

    /// A half has waited for an answer as long as it does, and none has come. Said last of what it wants
    /// then: if this goes on for too long ([`crate::config::Failures`]) the half is closed, after
    /// [`crate::Transport::abandon`], and if it is the sender's the flow fails.
    #[inline]
    pub fn in_vain(&mut self, flow: FlowKey) {
        self.effects.push(Effect::InVain(flow));
    }

    /// A packet was not expected where it came, and is dropped.
    #[cold]
    pub fn unexpected(&mut self) {
        self.unexpected += 1;
    }

    /// How many packets were not expected where they came.
    #[must_use]
    pub fn unexpected_count(&self) -> u64 {
        self.unexpected
    }

    /// At a flow's destination: the packet at hand has brought bytes of another flow of the same two hosts, too.
    /// `piece` goes to the half of that flow as if it had come by itself, and opens it if it is the first. Its
    /// `flow` is the half at the source, its `payload` what it brings. For transports whose endpoints of all
    /// hosts are one value, so that none of them [`crate::Transport::can_be_cut`].
    #[inline]
    pub fn unpack(&mut self, piece: Packet) {
        debug_assert!(!piece.flow.is_receivers(), "{piece:?} goes to a source");
        self.effects.push(Effect::Unpack(piece));
    }

    /// Counts `packets` retransmissions.
    #[inline]
    pub fn resent(&mut self, packets: u64) {
        self.effects.push(Effect::Resent(packets));
    }

    /// `bytes` are held at a receiver, out of order, for one flow.
    #[inline]
    pub fn held(&mut self, bytes: Bytes) {
        self.effects.push(Effect::Held(bytes));
    }
}
