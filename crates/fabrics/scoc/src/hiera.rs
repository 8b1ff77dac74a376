//! Hiera: the hierarchical crossbar of small buffered subswitches (M47).
//!
//! Models: SCOC §3.A, §4.E after Kim et al. (ISCA 2005): a grid of p × p subswitches. An input's bus
//! feeds the subswitches of its row; in each a FIFO holds its packets for that column's outputs.
//! Each output of a subswitch serves its inputs round robin into a small buffer, and each output of
//! the switch serves its column of buffers round robin. Everything runs at the rate of the line and
//! cuts through. Our choices where the paper is silent: the buffer at a subswitch's output is as
//! large as at its inputs, and there is none behind the column (E15). Leaves out the 61 ns.

use kernel::Rate;
use rack::Problem;
use switching::arbiters::RoundRobin;
use switching::{BitRows, Departure, Line, Packet, Switch, Ticks, Wheel, iter_ones, ones};

use crate::buffers::Buffers;

/// A hierarchical crossbar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HieraConfig {
    /// Ports. Default 128 (§4.E).
    pub ports: usize,
    /// Ports of a subswitch, p. Default 8 (§4.E). At most 64.
    pub subswitch: usize,
    /// Packets at each input of a subswitch. Default 1 (§4.E); 16 is Hiera′.
    pub packets: usize,
    /// Packets at each output of a subswitch. Default: as many as at its inputs (our choice, E15: the
    /// paper is silent).
    pub output_packets: Option<usize>,
    /// Line rate. Default 25 Gbps.
    pub line_rate: Rate,
    /// Cycles a second in which it is advanced; no time depends on it. Default SCOC's.
    pub clock_hertz: u64,
}

/// Most packets of a buffer: 16 bits count them (our choice).
const PACKETS_MAX: usize = u16::MAX as usize;

impl Default for HieraConfig {
    fn default() -> Self {
        Self {
            ports: 128,
            subswitch: 8,
            packets: 1,
            output_packets: None,
            line_rate: Rate::from_gbps(25),
            clock_hertz: 454_000_000,
        }
    }
}

impl HieraConfig {
    /// Its lines.
    #[must_use]
    pub fn line(&self) -> Line {
        Line::clocked(self.line_rate, self.clock_hertz)
    }

    /// Checks it.
    ///
    /// # Errors
    /// Every problem.
    pub fn check(&self) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        if !(1..=64).contains(&self.subswitch) || !self.ports.is_multiple_of(self.subswitch) {
            let message =
                format!("subswitches of {} do not divide {} ports", self.subswitch, self.ports);
            problems.push(Problem::new("subswitch", message));
        }
        let buffers =
            [("packets", self.packets), ("output_packets", self.output_packets.unwrap_or(1))];
        for (key, packets) in buffers {
            if !(1..=PACKETS_MAX).contains(&packets) {
                let message = format!("{packets}; a buffer has room for 1 to {PACKETS_MAX}");
                problems.push(Problem::new(key, message));
            }
        }
        if let Err(message) = Line::check_clock(self.line_rate, self.clock_hertz) {
            problems.push(Problem::new("line_rate", message));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// What is looked at again in a later cycle.
#[derive(Clone, Copy, Debug)]
enum Wake {
    /// An output of a subswitch: `row * ports + output`.
    Subswitch(u32),
    /// An output of the switch.
    Column(u16),
}

/// Cycles that the wheel looks ahead; what takes longer is looked at again.
const AHEAD: u64 = 1023;

/// The switch.
#[derive(Clone, Debug)]
pub struct Hiera {
    config: HieraConfig,
    line: Line,
    cycle: u64,
    /// Subswitches along an edge.
    side: usize,
    /// `input * side + column`.
    inputs: Buffers,
    /// Until when the way out of each of them is in use.
    input_free: Vec<Ticks>,
    /// `row * ports + output`: buffers at the outputs of subswitches.
    outputs: Buffers,
    output_free: Vec<Ticks>,
    output_turns: Vec<RoundRobin>,
    /// Local inputs whose oldest packet is for this output of their subswitch.
    asking: Vec<u64>,
    /// Row 0: outputs of subswitches to look at in the next cycle.
    active: BitRows,
    /// Row 0: outputs of the switch to look at in the next cycle.
    open: BitRows,
    wakes: Wheel<Wake>,
    /// What is looked at in this cycle.
    woken: Vec<Wake>,
    visits: Vec<u32>,
    /// Row `output`: rows of subswitches with a packet for it.
    columns: BitRows,
    column_free: Vec<Ticks>,
    column_turns: Vec<RoundRobin>,
    held: usize,
}

impl Hiera {
    /// An empty switch.
    ///
    /// # Panics
    /// If [`HieraConfig::check`] refuses the configuration.
    #[must_use]
    pub fn new(config: HieraConfig) -> Self {
        config.check().expect("a configuration is checked before it is built");
        let side = config.ports / config.subswitch;
        let pairs = side * config.ports;
        Self {
            line: config.line(),
            cycle: 0,
            side,
            inputs: Buffers::new(pairs, config.packets),
            input_free: vec![Ticks::default(); pairs],
            outputs: Buffers::new(pairs, config.output_packets.unwrap_or(config.packets)),
            output_free: vec![Ticks::default(); pairs],
            output_turns: vec![RoundRobin::default(); pairs],
            asking: vec![0; pairs],
            active: BitRows::new(1, pairs),
            open: BitRows::new(1, config.ports),
            wakes: Wheel::new(AHEAD),
            woken: Vec::new(),
            visits: Vec::new(),
            columns: BitRows::new(config.ports, side),
            column_free: vec![Ticks::default(); config.ports],
            column_turns: vec![RoundRobin::default(); config.ports],
            held: 0,
            config,
        }
    }

    fn queue(&self, input: usize, output: usize) -> usize {
        input * self.side + output / self.config.subswitch
    }

    /// The oldest packet of a queue asks for its output.
    fn ask(&mut self, input: usize, queue: usize) {
        if let Some((packet, _)) = self.inputs.front(queue) {
            let row = input / self.config.subswitch;
            let at = row * self.config.ports + usize::from(packet.destination);
            self.asking[at] |= 1 << (input % self.config.subswitch);
            self.active.set(0, at);
        }
    }

    /// Looks at something again when `at` has come.
    fn sleep(&mut self, until: Ticks, wake: Wake) {
        let cycle = self.line.cycle_of(until).clamp(self.cycle + 1, self.cycle + AHEAD);
        self.wakes.put(cycle, wake);
    }

    /// An output of a subswitch takes a packet from one of its inputs, if it can before `end`. If
    /// not, it sleeps until it may.
    fn serve_subswitch(&mut self, at: usize, now: Ticks, end: Ticks) {
        if self.asking[at] == 0 {
            return self.active.clear(0, at);
        }
        let Some(room) = self.outputs.room_from(at, now) else {
            // Until its column takes something from it.
            return self.active.clear(0, at);
        };
        let open = room.max(self.output_free[at]);
        if open >= end {
            self.active.clear(0, at);
            return self.sleep(open, Wake::Subswitch(at as u32));
        }
        let (row, output) = (at / self.config.ports, at % self.config.ports);
        let first = row * self.config.subswitch;
        let (mut there, mut soonest) = (0u64, Ticks::new(u64::MAX));
        for place in ones(self.asking[at]) {
            let from = self.leaves_from(self.queue(first + place, output));
            there |= u64::from(from < end) << place;
            soonest = soonest.min(from);
        }
        let Some(place) = self.output_turns[at].choose(&[there]) else {
            self.active.clear(0, at);
            return self.sleep(soonest, Wake::Subswitch(at as u32));
        };
        self.cross_subswitch(at, (row, place), open);
    }

    /// From when on the oldest packet of a queue may leave it.
    fn leaves_from(&self, queue: usize) -> Ticks {
        let front = self.inputs.front(queue);
        let (_, entered) = front.expect("only an input with a packet asks");
        self.input_free[queue].max(*entered)
    }

    /// The oldest packet of an input of a subswitch goes to the output at `at`, open from `open` on.
    fn cross_subswitch(&mut self, at: usize, (row, place): (usize, usize), open: Ticks) {
        let output = at % self.config.ports;
        let input = row * self.config.subswitch + place;
        let queue = self.queue(input, output);
        let start = self.leaves_from(queue).max(open);
        let (packet, _) = self.inputs.pop(queue).expect("only an input with a packet asks");
        let gone = start + self.line.send_time(packet.size());
        self.inputs.gone(queue, gone);
        self.input_free[queue] = gone;
        self.output_free[at] = gone;
        self.output_turns[at].point_beyond(place, self.config.subswitch);
        self.asking[at] &= !(1 << place);
        self.ask(input, queue);
        self.outputs.push(at, packet, start);
        self.columns.set(output, row);
        if self.column_free[output] < self.line.start_of(self.cycle + 1) {
            self.open.set(0, output);
        }
    }

    /// An output of the switch takes a packet from its column, if it can before `end`.
    fn serve_column(&mut self, output: usize, end: Ticks, departures: &mut Vec<Departure>) {
        self.open.clear(0, output);
        if self.column_free[output] >= end {
            return self.sleep(self.column_free[output], Wake::Column(output as u16));
        }
        let Some(row) = self.column_turns[output].choose(self.columns.row(output)) else { return };
        let buffer = row * self.config.ports + output;
        let (packet, ready) = self.outputs.pop(buffer).expect("only a row with a packet asks");
        let at = ready.max(self.column_free[output]);
        let gone = at + self.line.send_time(packet.size());
        self.outputs.gone(buffer, gone);
        if self.outputs.waiting(buffer) == 0 {
            self.columns.clear(output, row);
        }
        if self.asking[buffer] != 0 {
            self.active.set(0, buffer);
        }
        self.column_free[output] = gone;
        self.column_turns[output].point_beyond(row, self.side);
        self.sleep(gone, Wake::Column(output as u16));
        self.held -= 1;
        departures.push(Departure { packet, at });
    }

    /// Notes what is to be looked at from this cycle on.
    fn wake(&mut self) {
        self.wakes.turn(&mut self.woken);
        for wake in &self.woken {
            match *wake {
                Wake::Subswitch(at) => self.active.set(0, at as usize),
                Wake::Column(output) => self.open.set(0, usize::from(output)),
            }
        }
    }
}

impl Switch for Hiera {
    fn ports(&self) -> usize {
        self.config.ports
    }

    fn has_room(&self, packet: &Packet) -> bool {
        let queue = self.queue(usize::from(packet.source), usize::from(packet.destination));
        let enters = packet.entered.max(self.line.start_of(self.cycle));
        self.inputs.has_room(queue, enters)
    }

    fn has_room_by_output(&self) -> bool {
        true
    }

    fn admit(&mut self, packet: Packet) {
        let input = usize::from(packet.source);
        let queue = self.queue(input, usize::from(packet.destination));
        self.held += 1;
        self.inputs.room_from(queue, packet.entered);
        self.inputs.push(queue, packet, packet.entered);
        if self.inputs.waiting(queue) == 1 {
            self.ask(input, queue);
        }
    }

    fn step(&mut self, departures: &mut Vec<Departure>) {
        let (now, end) = (self.line.start_of(self.cycle), self.line.start_of(self.cycle + 1));
        self.wake();
        let mut visits = std::mem::take(&mut self.visits);
        visits.clear();
        visits.extend(iter_ones(self.active.row(0)).map(|at| at as u32));
        visits.iter().for_each(|&at| self.serve_subswitch(at as usize, now, end));
        visits.clear();
        visits.extend(iter_ones(self.open.row(0)).map(|output| output as u32));
        visits.iter().for_each(|&output| self.serve_column(output as usize, end, departures));
        self.visits = visits;
        self.cycle += 1;
    }

    fn held(&self) -> usize {
        self.held
    }

    fn is_idle(&self) -> bool {
        self.held == 0 && self.wakes.is_empty()
    }

    fn skip_to(&mut self, cycle: u64) {
        self.wakes.skip_to(cycle);
        self.cycle = cycle;
    }
}
