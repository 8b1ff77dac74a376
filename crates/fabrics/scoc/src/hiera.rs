//! Hiera: the hierarchical crossbar of small buffered subswitches (M47).
//!
//! Models: SCOC §3.A, §4.E after Kim et al. (ISCA 2005): a grid of p × p subswitches. An input's bus
//! feeds the subswitches of its row; in each a FIFO holds its packets for that column's outputs.
//! Each output of a subswitch serves its inputs round robin into a small buffer, and each output of
//! the switch serves its column of buffers round robin. Everything runs at the rate of the line and
//! cuts through. Our choices where the paper is silent: the buffer at a subswitch's output is as
//! large as at its inputs, and there is none behind the column (E15). Leaves out the 61 ns.

use kernel::{Rate, Ring};
use rack::Problem;
use switching::arbiters::RoundRobin;
use switching::{BitRows, Departure, Line, Packet, Switch, Ticks, iter_ones};

/// A hierarchical crossbar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HieraConfig {
    /// Ports. Default 128 (§4.E).
    pub ports: usize,
    /// Ports of a subswitch, p. Default 8 (§4.E). At most 64.
    pub subswitch: usize,
    /// Packets at each input of a subswitch. Default 1 (§4.E); 16 is Hiera′.
    pub packets: usize,
    /// Line rate. Default 25 Gbps.
    pub line_rate: Rate,
    /// Cycles a second in which it is advanced; no time depends on it. Default SCOC's.
    pub clock_hertz: u64,
}

impl Default for HieraConfig {
    fn default() -> Self {
        Self {
            ports: 128,
            subswitch: 8,
            packets: 1,
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
        if self.packets == 0 {
            problems.push(Problem::new("packets", "a buffer needs room for a packet"));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// A small buffer: packets that wait, and until when those on their way out take room.
#[derive(Clone, Debug, Default)]
struct Buffer {
    /// A packet and from when on it may go on.
    waiting: Ring<(Packet, Ticks)>,
    leaving: Ring<Ticks>,
}

impl Buffer {
    /// From when on there is room for one packet more, if that is known.
    fn room_from(&mut self, places: usize, now: Ticks) -> Option<Ticks> {
        while self.leaving.front().is_some_and(|&end| end <= now) {
            self.leaving.pop();
        }
        self.room_at(places)
    }

    fn room_at(&self, places: usize) -> Option<Ticks> {
        let excess = (self.waiting.len() + self.leaving.len() + 1).saturating_sub(places);
        match excess {
            0 => Some(Ticks::default()),
            _ => self.leaving.get(excess - 1).copied(),
        }
    }
}

/// The switch.
#[derive(Clone, Debug)]
pub struct Hiera {
    config: HieraConfig,
    line: Line,
    cycle: u64,
    /// Subswitches along an edge.
    side: usize,
    /// `input * side + column`.
    inputs: Vec<Buffer>,
    /// Until when the way out of each of them is in use.
    input_free: Vec<Ticks>,
    /// `row * ports + output`: buffers at the outputs of subswitches.
    outputs: Vec<Buffer>,
    output_free: Vec<Ticks>,
    output_turns: Vec<RoundRobin>,
    /// Local inputs whose oldest packet is for this output of their subswitch.
    asking: Vec<u64>,
    /// Those where it is not none: row 0.
    active: BitRows,
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
            inputs: vec![Buffer::default(); pairs],
            input_free: vec![Ticks::default(); pairs],
            outputs: vec![Buffer::default(); pairs],
            output_free: vec![Ticks::default(); pairs],
            output_turns: vec![RoundRobin::default(); pairs],
            asking: vec![0; pairs],
            active: BitRows::new(1, pairs),
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
        if let Some((packet, _)) = self.inputs[queue].waiting.front() {
            let row = input / self.config.subswitch;
            let at = row * self.config.ports + usize::from(packet.destination);
            self.asking[at] |= 1 << (input % self.config.subswitch);
            self.active.set(0, at);
        }
    }

    /// An output of a subswitch takes a packet from one of its inputs, if it can before `end`.
    fn serve_subswitch(&mut self, at: usize, now: Ticks, end: Ticks) {
        let places = self.config.packets;
        let Some(room) = self.outputs[at].room_from(places, now) else { return };
        let open = room.max(self.output_free[at]);
        if open >= end {
            return;
        }
        let (row, output) = (at / self.config.ports, at % self.config.ports);
        let first = row * self.config.subswitch;
        let from = |queue: usize| {
            let front = self.inputs[queue].waiting.front();
            let (_, entered) = front.expect("only an input with a packet asks");
            self.input_free[queue].max(*entered)
        };
        let there = iter_ones(&self.asking[at..=at])
            .filter(|place| from(self.queue(first + place, output)) < end)
            .fold(0u64, |mask, place| mask | 1 << place);
        let Some(place) = self.output_turns[at].choose(&[there]) else { return };
        let (input, queue) = (first + place, self.queue(first + place, output));
        let start = from(queue).max(open);
        let front = self.inputs[queue].waiting.pop();
        let (packet, _) = front.expect("only an input with a packet asks");
        let gone = start + self.line.send_time(packet.size());
        self.inputs[queue].leaving.push(gone);
        self.input_free[queue] = gone;
        self.output_free[at] = gone;
        self.output_turns[at].point_beyond(place, self.config.subswitch);
        self.asking[at] &= !(1 << place);
        if self.asking[at] == 0 {
            self.active.clear(0, at);
        }
        self.ask(input, queue);
        self.outputs[at].waiting.push((packet, start));
        self.columns.set(output, row);
    }

    /// An output of the switch takes a packet from its column, if it can before `end`.
    fn serve_column(&mut self, output: usize, end: Ticks, departures: &mut Vec<Departure>) {
        if self.column_free[output] >= end {
            return;
        }
        let Some(row) = self.column_turns[output].choose(self.columns.row(output)) else { return };
        let buffer = &mut self.outputs[row * self.config.ports + output];
        let (packet, ready) = buffer.waiting.pop().expect("only a row with a packet asks");
        let at = ready.max(self.column_free[output]);
        let gone = at + self.line.send_time(packet.size());
        buffer.leaving.push(gone);
        if buffer.waiting.is_empty() {
            self.columns.clear(output, row);
        }
        self.column_free[output] = gone;
        self.column_turns[output].point_beyond(row, self.side);
        self.held -= 1;
        departures.push(Departure { packet, at });
    }
}

impl Switch for Hiera {
    fn ports(&self) -> usize {
        self.config.ports
    }

    fn has_room(&self, packet: &Packet) -> bool {
        let queue = self.queue(usize::from(packet.source), usize::from(packet.destination));
        let enters = packet.entered.max(self.line.start_of(self.cycle));
        // What has left is forgotten only when something enters: count it out.
        let buffer = &self.inputs[queue];
        let held = buffer.leaving.iter().filter(|&&end| end > enters).count();
        buffer.waiting.len() + held < self.config.packets
    }

    fn admit(&mut self, packet: Packet) {
        let input = usize::from(packet.source);
        let queue = self.queue(input, usize::from(packet.destination));
        self.held += 1;
        self.inputs[queue].room_from(self.config.packets, packet.entered);
        self.inputs[queue].waiting.push((packet, packet.entered));
        if self.inputs[queue].waiting.len() == 1 {
            self.ask(input, queue);
        }
    }

    fn step(&mut self, departures: &mut Vec<Departure>) {
        let (now, end) = (self.line.start_of(self.cycle), self.line.start_of(self.cycle + 1));
        let active: Vec<usize> = iter_ones(self.active.row(0)).collect();
        for at in active {
            self.serve_subswitch(at, now, end);
        }
        for output in 0..self.config.ports {
            self.serve_column(output, end, departures);
        }
        self.cycle += 1;
    }

    fn held(&self) -> usize {
        self.held
    }
}
