//! TCP/IP, by `smoltcp`: the firmware's end, which waits, and the controller's, which calls.

use std::collections::VecDeque;

use aquila::pipeline::plan::{Plan, Version};
use kernel::{Span, Time};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};

use super::{Addresses, BODY_BYTES_MAX, HEADER_BYTES, Said};
use crate::memory::{Charge, Memory, OutOfMemory, Purpose};

/// Where control processors wait for the controller (M804: "a well known port"; the number is our choice).
pub const WELL_KNOWN_PORT: u16 = 4_795;
/// Of a buffer of the firmware, of which a session has two (our choice: a quarter of a largest request).
const SERVER_BUFFER_BYTES: usize = 16 << 10;
/// The controller's (our choice): a largest request.
const CLIENT_BUFFER_BYTES: usize = 64 << 10;
/// Sessions that the firmware has room for: one, and one that takes its place (our choice).
const SOCKETS: usize = 2;
/// After so long in silence the other end is asked whether it is there, and given up (our choice).
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const SILENCE_MAX: Duration = Duration::from_secs(75);
/// Largest packet: Ethernet's.
const MTU: usize = 1_500;

/// Packets in both directions.
#[derive(Debug, Default)]
struct Wire {
    received: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

struct Received(Vec<u8>);
struct Sent<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sent<'_>)> {
        self.received.pop_front().map(|packet| (Received(packet), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.medium, capabilities.max_transmission_unit) = (Medium::Ip, MTU);
        capabilities
    }
}

fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_ps() / 1_000_000) as i64)
}

/// An interface with sockets.
struct Stack {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    /// When it is to be polled, as of the last poll.
    deadline: Option<Time>,
}

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stack").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl Stack {
    fn new(now: Time, seed: u64, sockets: usize, buffer: usize) -> (Self, Vec<SocketHandle>) {
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut wire = Wire::default();
        let interface = Interface::new(config, &mut wire, instant(now));
        let mut set = SocketSet::new(Vec::new());
        let socket = || {
            let room = || SocketBuffer::new(vec![0; buffer]);
            let mut socket = Socket::new(room(), room());
            // An answer is waited for: nothing is to be kept back.
            socket.set_nagle_enabled(false);
            socket.set_ack_delay(None);
            socket.set_keep_alive(Some(KEEP_ALIVE));
            socket.set_timeout(Some(SILENCE_MAX));
            socket
        };
        let handles = (0..sockets).map(|_| set.add(socket())).collect();
        (Self { wire, interface, sockets: set, deadline: None }, handles)
    }

    fn set_addresses(&mut self, own: Option<Addresses>) {
        self.interface.update_ip_addrs(|all| {
            all.clear();
            // Everything else is behind whoever the packets came from: there are no routes here.
            let of = |version| own?.of(version).map(|address| IpCidr::new(address.into(), 0));
            for address in Plan::VERSIONS.into_iter().filter_map(of) {
                all.push(address).expect("there is room for one of each version");
            }
        });
    }

    fn poll(&mut self, now: Time) {
        self.interface.poll(instant(now), &mut self.wire, &mut self.sockets);
        let next = self.interface.poll_at(instant(now), &self.sockets);
        // Up to a whole microsecond, as smoltcp counts those; and later than now, as this has been polled.
        let time = |at: Instant| Time::from_ps(at.total_micros().max(0) as u64 * 1_000_000);
        self.deadline = next.map(|at| time(at).max(now + Span::from_us(1)));
    }

    fn packets(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.wire.sent)
    }
}

/// The words of a session, from the bytes of its socket.
#[derive(Debug, Default)]
struct Words {
    /// Bytes of a word that has not come whole.
    bytes: Vec<u8>,
}

impl Words {
    /// The next word; `Err`: what came is none.
    fn next(&mut self, socket: &mut Socket<'_>) -> Result<Option<Said>, ()> {
        loop {
            if let Some((said, length)) = Said::decode(&self.bytes).map_err(|_| ())? {
                self.bytes.drain(..length);
                return Ok(Some(said));
            }
            let room = (HEADER_BYTES + BODY_BYTES_MAX).saturating_sub(self.bytes.len());
            let taken = socket.recv(|bytes| {
                let count = bytes.len().min(room);
                self.bytes.extend_from_slice(&bytes[..count]);
                (count, count)
            });
            if taken.unwrap_or(0) == 0 {
                return Ok(None);
            }
        }
    }
}

/// Says something if there is room for it.
fn say(socket: &mut Socket<'_>, said: &Said) -> bool {
    let bytes = said.encode();
    let has_room = socket.may_send() && socket.send_capacity() - socket.send_queue() >= bytes.len();
    has_room && socket.send_slice(&bytes) == Ok(bytes.len())
}

/// What has happened at the firmware's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerCounts {
    /// Sessions that began.
    pub sessions: u64,
    /// Sessions that ended as what came was nothing that is said.
    pub malformed: u64,
}

/// The firmware's end: waits at the well-known port. A new session takes the place of the one before it.
#[derive(Debug)]
pub struct Server {
    /// Room for buffers, and what else the stack keeps.
    _room: Charge,
    stack: Stack,
    handles: Vec<SocketHandle>,
    current: Option<SocketHandle>,
    words: Words,
    counts: ServerCounts,
}

impl Server {
    /// What it takes: buffers, a word of each direction, packets of each, and 4 KiB for the state of the stack. Unit: bytes.
    const ROOM_BYTES: usize = SOCKETS * 2 * SERVER_BUFFER_BYTES + 8 * MTU + (4 << 10);

    /// An end without an address.
    ///
    /// # Errors
    /// The memory is not there.
    pub fn new(memory: &Memory, now: Time, seed: u64) -> Result<Self, OutOfMemory> {
        let room = memory.charge(Purpose::Tcp, Self::ROOM_BYTES)?;
        let (stack, handles) = Stack::new(now, seed, SOCKETS, SERVER_BUFFER_BYTES);
        let (current, words, counts) = (None, Words::default(), ServerCounts::default());
        Ok(Self { _room: room, stack, handles, current, words, counts })
    }

    /// Its addresses; `None`: it has none any more, and no session.
    pub fn set_addresses(&mut self, own: Option<Addresses>) {
        self.stack.set_addresses(own);
        if own.is_none() {
            self.end();
        }
    }

    /// A packet has come; [`Server::poll`] is to be called then.
    pub fn receive(&mut self, packet: Vec<u8>) {
        self.stack.wire.received.push_back(packet);
    }

    /// Does what is due; whether a session has begun.
    pub fn poll(&mut self, now: Time) -> bool {
        for &handle in &self.handles {
            let socket = self.stack.sockets.get_mut::<Socket<'_>>(handle);
            if socket.state() == State::CloseWait || socket.state() == State::TimeWait {
                socket.abort();
            }
        }
        // That a session was given up is said before its socket waits for another.
        self.stack.poll(now);
        for &handle in &self.handles {
            let socket = self.stack.sockets.get_mut::<Socket<'_>>(handle);
            if !socket.is_open() {
                socket.listen(WELL_KNOWN_PORT).expect("a closed socket may wait at a port");
            }
        }
        let is_new = |handle: &SocketHandle| {
            let socket = self.stack.sockets.get::<Socket<'_>>(*handle);
            Some(*handle) != self.current && socket.state() == State::Established
        };
        let new = self.handles.iter().copied().find(is_new);
        if let Some(new) = new {
            self.end();
            self.words = Words::default();
            self.current = Some(new);
            self.counts.sessions += 1;
            self.stack.poll(now);
        }
        self.current = self.current.take_if(|handle| {
            let socket = self.stack.sockets.get::<Socket<'_>>(*handle);
            matches!(socket.state(), State::Established | State::CloseWait)
        });
        new.is_some()
    }

    /// Whether there is a session.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.current.is_some()
    }

    /// Ends the session, if there is one.
    pub fn end(&mut self) {
        if let Some(handle) = self.current.take() {
            self.stack.sockets.get_mut::<Socket<'_>>(handle).abort();
        }
    }

    /// The next word of the session.
    pub fn hear(&mut self) -> Option<Said> {
        let socket = self.stack.sockets.get_mut::<Socket<'_>>(self.current?);
        match self.words.next(socket) {
            Ok(said) => said,
            Err(()) => {
                self.counts.malformed += 1;
                self.end();
                None
            }
        }
    }

    /// Whether there is room to say anything.
    #[must_use]
    pub fn can_say(&self) -> bool {
        self.current.is_some_and(|handle| {
            let socket = self.stack.sockets.get::<Socket<'_>>(handle);
            let room = socket.send_capacity() - socket.send_queue();
            socket.may_send() && room >= HEADER_BYTES + BODY_BYTES_MAX
        })
    }

    /// Says something; `false`: there is no room for it now, or no session.
    pub fn say(&mut self, said: &Said) -> bool {
        let Some(handle) = self.current else { return false };
        say(self.stack.sockets.get_mut(handle), said)
    }

    /// Packets that are to leave.
    pub fn packets(&mut self) -> Vec<Vec<u8>> {
        self.stack.packets()
    }

    /// When [`Server::poll`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.stack.deadline
    }

    /// What has happened.
    #[must_use]
    pub fn counts(&self) -> ServerCounts {
        self.counts
    }
}

/// How far the controller's end is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// There is no connection, and none is tried.
    Closed,
    /// One is tried.
    Calling,
    /// There is one.
    Open,
}

/// The controller's end of a session with one TiN.
#[derive(Debug)]
pub struct Client {
    stack: Stack,
    handle: SocketHandle,
    to: Addresses,
    /// Of the next try: each has a port of its own.
    pub(super) port: u16,
    words: Words,
}

impl Client {
    /// An end with these addresses, for a TiN with others.
    #[must_use]
    pub fn new(now: Time, seed: u64, from: Addresses, to: Addresses) -> Self {
        let (mut stack, handles) = Stack::new(now, seed, 1, CLIENT_BUFFER_BYTES);
        stack.set_addresses(Some(from));
        Self { stack, handle: handles[0], to, port: 49_152, words: Words::default() }
    }

    /// Tries to connect over a version of IP, of which both ends have an address; what there was before is given up.
    pub fn call(&mut self, now: Time, version: Version) {
        self.hang_up(now);
        // Ports of one's own choosing (RFC 6335 §6).
        self.port = if self.port == u16::MAX { 49_152 } else { self.port + 1 };
        self.words = Words::default();
        let to = self.to.of(version).expect("both ends have an address");
        let Stack { interface, sockets, .. } = &mut self.stack;
        let socket = sockets.get_mut::<Socket<'_>>(self.handle);
        let called = socket.connect(interface.context(), (to, WELL_KNOWN_PORT), self.port);
        called.expect("a closed socket may call an address");
        self.stack.poll(now);
    }

    /// Gives up what there is.
    pub fn hang_up(&mut self, now: Time) {
        self.stack.sockets.get_mut::<Socket<'_>>(self.handle).abort();
        self.stack.poll(now);
    }

    /// A packet has come.
    pub fn receive(&mut self, now: Time, packet: Vec<u8>) {
        self.stack.wire.received.push_back(packet);
        self.stack.poll(now);
    }

    /// Does what is due.
    pub fn poll(&mut self, now: Time) {
        self.stack.poll(now);
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        match self.stack.sockets.get::<Socket<'_>>(self.handle).state() {
            State::Established => Progress::Open,
            State::SynSent | State::SynReceived => Progress::Calling,
            _ => Progress::Closed,
        }
    }

    /// The next word; `Err`: what came is nothing that is said, and the session is to end.
    #[allow(clippy::result_unit_err, reason = "there is nothing to say about it")]
    pub fn hear(&mut self) -> Result<Option<Said>, ()> {
        self.words.next(self.stack.sockets.get_mut(self.handle))
    }

    /// Says something; `false`: there is no room for it now, or no session. [`Client::poll`] is to be called then.
    pub fn say(&mut self, said: &Said) -> bool {
        say(self.stack.sockets.get_mut(self.handle), said)
    }

    /// Packets that are to leave.
    pub fn packets(&mut self) -> Vec<Vec<u8>> {
        self.stack.packets()
    }

    /// When [`Client::poll`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.stack.deadline
    }
}

#[cfg(test)]
impl Client {
    /// Sends what nobody says.
    pub(super) fn nonsense(&mut self) {
        let socket = self.stack.sockets.get_mut::<Socket<'_>>(self.handle);
        socket.send_slice(&[99; 10]).expect("the session is open");
    }
}
