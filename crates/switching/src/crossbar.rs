//! A crossbar with virtual output queues, scheduled by iSLIP in synchronous slots.
//!
//! Models: McKeown's input-queued switch (ToN 1999) with buffers of finite size that the queues of
//! an input share, output buffers, and any speed-up: a slot is the time of the largest packet at
//! the speed of the crossbar, and a packet is stored whole before it may be matched. Leaves out
//! pipelining of the scheduler: a matching is made and used in the same slot.

use crate::{Arriving, BitRows, Departure, Egress, Islip, Line, Packet, Ports, QueueBank, Switch};

/// What a crossbar is built from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossbarConfig {
    /// How many ports.
    pub ports: usize,
    /// Iterations of iSLIP in a slot.
    pub iterations: usize,
    /// Packets for which an input has room, over all its queues.
    pub input_places: usize,
    /// Packets for which an output has room.
    pub output_places: usize,
    /// The lines; a cycle is a slot.
    pub line: Line,
}

/// The switch.
#[derive(Clone, Debug)]
pub struct Crossbar {
    config: CrossbarConfig,
    slot: u64,
    /// Queue of input `i` for output `o`: `i * ports + o`.
    queues: QueueBank,
    /// Row `o`: inputs with a packet for output `o`.
    requests: BitRows,
    /// Row 0: all inputs. Row 1: outputs with room.
    free: BitRows,
    islip: Islip,
    egress: Egress,
    /// Packets in each input, the arriving one too.
    held: Vec<usize>,
    arriving: Arriving,
}

impl Crossbar {
    /// An empty switch.
    ///
    /// # Panics
    /// Without ports, iterations or room.
    #[must_use]
    pub fn new(config: CrossbarConfig) -> Self {
        assert!(config.input_places > 0 && config.output_places > 0, "buffers without room");
        let mut free = BitRows::new(2, config.ports);
        free.fill(0);
        Self {
            config,
            slot: 0,
            queues: QueueBank::new(config.ports * config.ports),
            requests: BitRows::new(config.ports, config.ports),
            free,
            islip: Islip::new(config.ports, config.iterations),
            egress: Egress::new(config.line, config.ports, config.output_places),
            held: vec![0; config.ports],
            arriving: Arriving::new(config.line),
        }
    }

    /// Packets for which an input has room.
    #[must_use]
    pub fn places_free(&self, input: usize) -> usize {
        self.config.input_places - self.held[input]
    }

    fn enqueue_arrived(&mut self) {
        for packet in self.arriving.turn() {
            let (input, output) = (usize::from(packet.source), usize::from(packet.destination));
            self.queues.push(input * self.config.ports + output, *packet);
            self.requests.set(output, input);
        }
    }
}

impl Switch for Crossbar {
    fn ports(&self) -> usize {
        self.config.ports
    }

    fn has_room(&self, packet: &Packet) -> bool {
        self.held[usize::from(packet.source)] < self.config.input_places
    }

    fn admit(&mut self, packet: Packet) {
        debug_assert!(self.has_room(&packet), "no room at input {}", packet.source);
        self.held[usize::from(packet.source)] += 1;
        self.arriving.put(packet);
    }

    fn step(&mut self, departures: &mut Vec<Departure>) {
        let now = self.config.line.start_of(self.slot);
        self.enqueue_arrived();
        for output in 0..self.config.ports {
            let open = self.egress.has_room(output, now);
            self.free.put(1, output, open);
        }
        let free = Ports { inputs: self.free.row(0), outputs: self.free.row(1) };
        for (input, output) in self.islip.schedule(&self.requests, free).pairs() {
            let queue = input * self.config.ports + output;
            let packet = self.queues.pop(queue).expect("only inputs with a packet ask");
            if self.queues.is_empty(queue) {
                self.requests.clear(output, input);
            }
            self.held[input] -= 1;
            self.egress.promise(output);
            departures.push(self.egress.take(packet, now));
        }
        self.slot += 1;
    }

    fn held(&self) -> usize {
        self.held.iter().sum()
    }

    fn is_idle(&self) -> bool {
        self.held.iter().all(|&held| held == 0)
    }

    fn skip_to(&mut self, cycle: u64) {
        self.arriving.skip_to(cycle);
        self.slot = cycle;
    }
}
