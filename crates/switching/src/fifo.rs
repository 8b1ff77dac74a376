//! One FIFO an input: the switch that head-of-line blocking limits to 58.6 %.
//!
//! Models: Karol, Hluchyj and Morgan, "Input Versus Output Queueing on a Space-Division Packet
//! Switch", IEEE ToC 1987: in each slot every output takes one of the packets at the heads of the
//! inputs' queues that want it, at random.

use kernel::{Ring, Stream};

use crate::arbiters::at_random;
use crate::{Departure, Egress, Line, Packet, Switch};

/// Ports that one word of requests has room for.
const PORTS_MAX: usize = 64;

/// The switch.
#[derive(Clone, Debug)]
pub struct Fifo {
    line: Line,
    slot: u64,
    places: usize,
    queues: Vec<Ring<Packet>>,
    egress: Egress,
    stream: Stream,
}

impl Fifo {
    /// An empty switch of at most 64 ports with this many places at each input, unlimited ones at
    /// the outputs.
    ///
    /// # Panics
    /// If it has more ports.
    #[must_use]
    pub fn new(line: Line, ports: usize, places: usize, seed: u64) -> Self {
        assert!(ports <= PORTS_MAX, "a FIFO switch of {ports} ports");
        Self {
            line,
            slot: 0,
            places,
            queues: vec![Ring::new(); ports],
            egress: Egress::new(line, ports, usize::MAX),
            stream: Stream::new(seed, "switching/fifo", 0),
        }
    }
}

impl Switch for Fifo {
    fn ports(&self) -> usize {
        self.queues.len()
    }

    fn has_room(&self, packet: &Packet) -> bool {
        self.queues[usize::from(packet.source)].len() < self.places
    }

    fn admit(&mut self, packet: Packet) {
        self.queues[usize::from(packet.source)].push(packet);
    }

    fn step(&mut self, departures: &mut Vec<Departure>) {
        let now = self.line.start_of(self.slot);
        let mut asking = [0u64; PORTS_MAX];
        for (input, queue) in self.queues.iter().enumerate() {
            if let Some(packet) = queue.front() {
                asking[usize::from(packet.destination)] |= 1 << input;
            }
        }
        for asks in asking {
            if let Some(input) = at_random(asks, &mut self.stream) {
                let packet = self.queues[input].pop().expect("only heads of queues ask");
                self.egress.promise(usize::from(packet.destination));
                departures.push(self.egress.take(packet, now.max(packet.entered)));
            }
        }
        self.slot += 1;
    }

    fn held(&self) -> usize {
        self.queues.iter().map(Ring::len).sum()
    }

    fn is_idle(&self) -> bool {
        self.held() == 0
    }

    fn skip_to(&mut self, cycle: u64) {
        self.slot = cycle;
    }
}
