//! The state of one switch, in flat arrays: channels first, so that those that are not in use stay cold.

use switching::islip::{BusyPort, BusyTurns};

use super::calendar::{Place, Queue};
use super::cell::{Cell, NONE};
use super::settings::{CHANNELS, Limits};
use crate::address::{Address, Endpoint};
use crate::link::credits::{Receiver, Sender};
use crate::tables::{ROUTING_VCS, Tables};
use crate::topology::{PortKind, Topology};

/// Ports that arrays have room for: their bits are a word.
pub(super) const LANES: usize = 64;
/// Queues of a side: one for each channel and port.
pub(super) const QUEUES: usize = CHANNELS * LANES;
/// No output: a head's way is not decided.
pub(super) const UNDECIDED: u8 = u8::MAX;
/// No tick.
pub(super) const NEVER: u64 = u64::MAX;

/// An input FIFO: of one port and channel (M104).
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    pub(super) head: u32,
    pub(super) tail: u32,
    /// Its room, and what of that the other end knows (M212). A cell that still crosses fills room, too.
    pub(super) credit: Receiver,
    /// Where the head goes: output, and channel there.
    pub(super) output: u8,
    pub(super) onward: u8,
    /// The low bits of the tick at which that was drawn.
    pub(super) drawn: u8,
    /// Ways drawn so far.
    pub(super) draws: u16,
}

/// An output queue: of one port and channel (M108).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Output {
    /// Inputs whose heads ask for it.
    pub(super) asks: u64,
    /// The earliest instant of its head's first bit on the wire. Unit: ps.
    pub(super) ready: u64,
    pub(super) head: u32,
    pub(super) tail: u32,
    /// The room that there is at the other end (M212).
    pub(super) credit: Sender,
    /// What it may send in its turn among equals. Unit: 16 B.
    pub(super) deficit: i16,
    /// Length of its head. Unit: blocks.
    pub(super) blocks: u8,
}

/// Both sides of a port: first what each cell looks at, in one line of the cache, then the rest.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Port {
    /// When its outgoing line is free. Unit: ps.
    pub(super) line_free: u64,
    /// The tick of the next look at its output that is due.
    pub(super) look_at: u64,
    /// As an output: inputs that ask and have room there.
    pub(super) asked_by: u64,
    /// As an input: outputs that it asks for, with room or not.
    pub(super) asks_for: u64,
    /// As an output: channels that heads ask for, channels with room for a largest cell, channels with cells.
    pub(super) asked: u32,
    pub(super) room: u32,
    pub(super) filled: u32,
    /// As an input: channels whose heads have a way.
    pub(super) decided: u32,
    /// As an input: channels that have freed units which the other end was not told of.
    pub(super) untold: u32,
    pub(super) kind: PortKind,
    /// Whether there is no link, or a dead one.
    pub(super) is_down: bool,
    /// The channel of the cell that crosses from it.
    pub(super) crossing: u8,
    /// Whether a refresh of its credit is due.
    pub(super) is_refreshed: bool,
    pub(super) turns: BusyTurns,
    /// Whether cells that come from there on an escape channel have come down (M308).
    pub(super) comes_down: bool,
    /// The channel whose turn it is among equals.
    pub(super) turn: u8,
    /// The port at the other end, by its place here, or none: it is no port of a switch here.
    pub(super) far: Place,
    /// From the last bit's way out to its way in at the other end, with correction. Unit: ps.
    pub(super) delay: u32,
    /// Channels on which something was sent or freed since the last refresh.
    pub(super) used: u32,
    /// As an output to an endpoint: channels that it does not take now (M111).
    pub(super) stalled: u32,
    /// By routing channel: where its table begins ([`Tables::block`]).
    pub(super) blocks: [u32; ROUTING_VCS as usize],
    /// Channels on which something was sent or freed between the last refresh and the one before.
    pub(super) used_before: u32,
    /// At a terminal port: when the line from its endpoint is free, and the tick of the next question to it.
    /// Unit of the first: ps.
    pub(super) feed_free: u64,
    pub(super) feed_at: u64,
    /// The switch at the other end and its port; or none.
    pub(super) far_tin: u16,
    pub(super) far_port: u8,
}

impl BusyPort for Port {
    #[inline]
    fn asked_by(&self) -> u64 {
        self.asked_by
    }

    #[inline]
    fn asks_for(&self) -> u64 {
        self.asks_for
    }

    #[inline]
    fn turns(&self) -> &BusyTurns {
        &self.turns
    }

    #[inline]
    fn turns_mut(&mut self) -> &mut BusyTurns {
        &mut self.turns
    }
}

// What each cell looks at ends with the first line of the cache.
const _: () = assert!(std::mem::offset_of!(Port, turns) + size_of::<BusyTurns>() <= 64);

/// A switch that nothing leads to.
pub(super) const NO_TIN: u16 = u16::MAX;

/// A switch: all of it in one piece, so that each part is a fixed way from its beginning.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Tin {
    /// Inputs from which no cell crosses now, and outputs to which none does.
    pub(super) free_inputs: u64,
    pub(super) free_outputs: u64,
    /// Outputs for which some head asks that has room there.
    pub(super) wanted: u64,
    /// What its chance is made from.
    pub(super) seed: u64,
    /// Its place among the switches here.
    pub(super) slot: u32,
    /// Its address, of no endpoint.
    pub(super) own: Address,
    /// Its index among all.
    pub(super) id: u16,
    pub(super) ports: [Port; LANES],
    /// By channel and output: units queued there.
    pub(super) queued: [[u8; LANES]; CHANNELS],
    pub(super) inputs: [Input; QUEUES],
    pub(super) outputs: [Output; QUEUES],
    /// By input and output: the channel whose turn it is, of several that ask.
    pub(super) turns: [u8; LANES * LANES],
}

/// Place of a channel's queue at a port.
#[inline]
pub(super) fn at(channel: usize, port: usize) -> usize {
    debug_assert!(channel < CHANNELS && port < LANES, "channel {channel}, port {port}");
    (channel * LANES + port) % QUEUES
}

impl Tin {
    pub(super) fn new(
        topology: &Topology,
        tables: &Tables,
        limits: &Limits,
        (id, slot): (u16, u32),
        seed: u64,
    ) -> Self {
        let shape = topology.shape();
        let (pod, place) = shape.split(id);
        let kind = |queue: usize| shape.kind((queue % LANES) as u8) as usize;
        let input = |queue: usize| Input {
            head: NONE,
            tail: NONE,
            credit: told(limits.inputs[kind(queue)]).0,
            output: UNDECIDED,
            onward: 0,
            drawn: 0,
            draws: 0,
        };
        let output = |queue: usize| Output {
            asks: 0,
            ready: 0,
            head: NONE,
            tail: NONE,
            // The FIFO at the other end is of the same kind.
            credit: told(limits.inputs[kind(queue)]).1,
            deficit: 0,
            blocks: 0,
        };
        let ports_mask = u64::MAX >> (LANES - usize::from(shape.ports()));
        let mut tin = Self {
            free_inputs: ports_mask,
            free_outputs: ports_mask,
            wanted: 0,
            seed,
            slot,
            own: Address::new(pod, place, Endpoint::ETHERNET),
            id,
            ports: std::array::from_fn(|port| new_port(topology, limits, id, port as u8)),
            queued: [[0; LANES]; CHANNELS],
            inputs: std::array::from_fn(input),
            outputs: std::array::from_fn(output),
            turns: [0; LANES * LANES],
        };
        tin.read_tables(tables);
        for port in tin.ports.iter_mut().filter(|port| port.far_tin != NO_TIN) {
            port.comes_down = tables.escapes().is_down(port.far_tin, id);
        }
        tin
    }

    /// Notes where the tables of its ports begin: to be called whenever these are others.
    pub(super) fn read_tables(&mut self, tables: &Tables) {
        for port in 0..tables.shape().ports() {
            let blocks = &mut self.ports[usize::from(port)].blocks;
            *blocks = std::array::from_fn(|rvc| tables.block(self.id, port, rvc as u8));
        }
    }

    /// The place of one of its ports.
    #[inline]
    pub(super) fn place(&self, port: usize) -> Place {
        self.slot << 6 | port as u32
    }

    /// The place of one of its ports' queues.
    #[inline]
    pub(super) fn queue(&self, port: usize, channel: usize) -> Queue {
        self.slot << 11 | at(channel, port) as u32
    }

    /// Whether something may be matched.
    #[inline]
    pub(super) fn may_match(&self) -> bool {
        self.wanted & self.free_outputs != 0
    }

    /// A word of chance for the head of a channel at a port: the same in whatever order heads are looked at, and at
    /// whatever time.
    #[inline]
    pub(super) fn chance(&self, port: usize, channel: usize, cell: &Cell) -> u64 {
        let draws = u64::from(self.inputs[at(channel, port)].draws);
        let ends = u64::from(cell.to) << 48 | u64::from(cell.from) << 32;
        kernel::mix64(self.seed ^ (ends | draws << 11 | (port << 5 | channel) as u64))
    }

    /// The head of an input's channel asks for an output's.
    #[inline]
    pub(super) fn ask(&mut self, input: usize, channel: usize, output: usize, onward: usize) {
        let from = &mut self.ports[input % LANES];
        from.decided |= 1 << channel;
        from.asks_for |= 1 << output;
        self.outputs[at(onward, output)].asks |= 1 << input;
        let to = &mut self.ports[output % LANES];
        to.asked |= 1 << onward;
        let has_room = u64::from(to.room >> onward & 1);
        to.asked_by |= has_room << input;
        self.wanted |= has_room << output;
    }

    /// It asks no longer.
    #[inline]
    pub(super) fn unask(&mut self, input: usize, channel: usize, output: usize, onward: usize) {
        let from = &mut self.ports[input % LANES];
        from.decided &= !(1 << channel);
        if from.decided != 0 {
            return self.unask_beside_others(input, output, onward);
        }
        from.asks_for = 0;
        let queue = &mut self.outputs[at(onward, output)];
        queue.asks &= !(1 << input);
        let to = &mut self.ports[output % LANES];
        to.asked &= !(u32::from(queue.asks == 0) << onward);
        to.asked_by &= !(1 << input);
        self.wanted &= !(u64::from(to.asked_by == 0) << output);
    }

    /// The same where heads of other channels of the input are decided.
    #[inline(never)]
    fn unask_beside_others(&mut self, input: usize, output: usize, onward: usize) {
        if !self.others_ask(input, output, onward) {
            let queue = &mut self.outputs[at(onward, output)];
            queue.asks &= !(1 << input);
            if queue.asks == 0 {
                self.ports[output].asked &= !(1 << onward);
            }
        }
        if !self.has_other_way(input, output) {
            self.ports[input].asks_for &= !(1 << output);
        }
        self.count_wants(output);
    }

    /// Whether heads of other channels of an input, decided ones, ask for the same queue: on escape channels alone.
    fn others_ask(&self, input: usize, output: usize, onward: usize) -> bool {
        super::settings::ESCAPE[0] <= onward
            && channels(self.ports[input].decided).any(|channel| {
                let head = &self.inputs[at(channel, input)];
                usize::from(head.output) == output && usize::from(head.onward) == onward
            })
    }

    /// Whether a decided head of an input asks for an output.
    fn has_other_way(&self, input: usize, output: usize) -> bool {
        channels(self.ports[input].decided)
            .any(|channel| usize::from(self.inputs[at(channel, input)].output) == output)
    }

    /// Works out anew which inputs ask for an output with room there.
    #[inline]
    pub(super) fn count_wants(&mut self, output: usize) {
        let output = output % LANES;
        let port = &self.ports[output];
        let open = channels(port.asked & port.room);
        let wants = open.fold(0, |wants, channel| wants | self.outputs[at(channel, output)].asks);
        self.ports[output].asked_by = wants;
        self.wanted = self.wanted & !(1 << output) | u64::from(wants != 0) << output;
    }
}

/// Both ends of a channel's credit when the sender knows of all the room that there is.
fn told(units: u16) -> (Receiver, Sender) {
    let (mut receiver, mut sender) = (Receiver::new(units), Sender::new());
    sender.update(receiver.advertise());
    (receiver, sender)
}

/// The channels of a mask.
#[inline]
pub(super) fn channels(mask: u32) -> impl Iterator<Item = usize> {
    switching::ones(mask.into())
}

fn new_port(topology: &Topology, limits: &Limits, tin: u16, port: u8) -> Port {
    let kind = topology.shape().kind(port);
    let far = topology.far(tin, port);
    let correction = match kind {
        PortKind::Global => limits.correction,
        _ => 0,
    };
    Port {
        line_free: 0,
        look_at: NEVER,
        asked_by: 0,
        asks_for: 0,
        asked: 0,
        room: u32::MAX,
        filled: 0,
        decided: 0,
        untold: 0,
        kind,
        is_down: kind != PortKind::Terminal && far.is_none(),
        crossing: 0,
        is_refreshed: false,
        turns: BusyTurns::default(),
        comes_down: false,
        turn: 0,
        far: NONE,
        delay: (topology.delay(tin, port).as_ps() + correction) as u32,
        used: 0,
        stalled: 0,
        blocks: [0; ROUTING_VCS as usize],
        used_before: 0,
        feed_free: 0,
        feed_at: NEVER,
        far_tin: far.map_or(NO_TIN, |far| far.tin),
        far_port: far.map_or(0, |far| far.port),
    }
}
