//! What stands at the far end of each input line.
//!
//! A source sends bursts with random pauses between them, or without a pause. It holds its next
//! packet until the switch has room; so its line may wait, and the queue behind it needs no memory,
//! for packets are drawn one at a time.

use kernel::{Bytes, Stream};
use rack::workload::sizes;

use crate::{Line, Packet, Pattern, Ticks};

/// When a source sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrivals {
    /// Always, as much as the switch takes.
    Saturated,
    /// A packet in each packet time with this probability.
    Bernoulli(f64),
    /// Packets with exponential pauses between them, so that the line is busy this share of the
    /// time. The pauses are no whole packet times: lines drift past one another, as lines with
    /// clocks of their own do.
    Drifting(f64),
    /// Bursts to one output, their length in packets geometric, and pauses between them, so that
    /// the line is busy this share of the time.
    Bursty {
        /// Share of the time that the line is busy.
        load: f64,
        /// Mean packets in a burst, at least 1.
        burst: f64,
    },
}

/// How sources begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// All at once.
    Aligned,
    /// Each at a random instant of its first packet time, as lines without a common clock do.
    Random,
}

/// How large packets are.
#[derive(Clone, PartialEq, Debug)]
pub enum Sizes {
    /// All alike.
    Fixed(Bytes),
    /// Drawn for each packet: sizes and their weights.
    Mixed(Vec<(Bytes, f64)>),
    /// Messages cut into segments of at most this size, all of a message to one output.
    Messages {
        /// The sizes of messages.
        sizes: sizes::Sizes,
        /// The largest segment.
        segment: Bytes,
    },
}

impl Sizes {
    /// The mean bytes of a packet; of messages, of their full segments.
    fn packet_mean(&self) -> f64 {
        match self {
            Self::Messages { segment, .. } => segment.get() as f64,
            _ => self.mean(),
        }
    }

    /// The mean bytes of what is drawn at a time.
    fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => size.get() as f64,
            Self::Mixed(list) => {
                let whole: f64 = list.iter().map(|&(_, weight)| weight).sum();
                list.iter().map(|&(size, weight)| size.get() as f64 * weight).sum::<f64>() / whole
            }
            Self::Messages { sizes, .. } => sizes.mean(),
        }
    }

    /// The largest packet.
    #[must_use]
    pub fn packet_max(&self) -> Bytes {
        match self {
            Self::Fixed(size) => *size,
            Self::Mixed(list) => list.iter().map(|&(size, _)| size).max().unwrap_or_default(),
            Self::Messages { segment, .. } => *segment,
        }
    }
}

/// The traffic on all inputs of a switch.
#[derive(Clone, PartialEq, Debug)]
pub struct Traffic {
    /// Who sends to whom.
    pub pattern: Pattern,
    /// When.
    pub arrivals: Arrivals,
    /// How much.
    pub sizes: Sizes,
    /// How the sources begin.
    pub phase: Phase,
}

/// One input's source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    input: usize,
    stream: Stream,
    /// When the sender has its next packet ready.
    clock: Ticks,
    /// What is left of the burst: output, packets (or bytes of a message).
    output: usize,
    left: u64,
}

impl Source {
    /// The source of `input`; `None` if the pattern lets it send nothing.
    pub(crate) fn new(input: usize, seed: u64, traffic: &Traffic, line: &Line) -> Option<Self> {
        if traffic.pattern.weight(input) == 0.0 {
            return None;
        }
        let mut stream = Stream::new(seed, "switching/source", input as u64);
        let packet = line.send_time(traffic.sizes.packet_max()).get();
        let clock = match traffic.phase {
            Phase::Aligned => Ticks::default(),
            Phase::Random => Ticks::new(stream.below(packet)),
        };
        Some(Self { input, stream, clock, output: 0, left: 0 })
    }

    /// The next packet. `free` is when the line is free again.
    pub(crate) fn next(
        &mut self,
        ports: usize,
        traffic: &Traffic,
        line: &Line,
        free: Ticks,
    ) -> Packet {
        if self.left == 0 {
            self.begin(ports, traffic, line);
        }
        let size = match &traffic.sizes {
            Sizes::Fixed(size) => *size,
            Sizes::Mixed(list) => draw_size(list, &mut self.stream),
            Sizes::Messages { segment, .. } => Bytes::new(self.left.min(segment.get())),
        };
        self.left -= match traffic.sizes {
            Sizes::Messages { .. } => size.get(),
            _ => 1,
        };
        if traffic.arrivals == Arrivals::Saturated {
            self.clock = self.clock.max(free);
        }
        let packet = Packet::new(self.input, self.output, size, self.clock);
        self.clock += line.send_time(size);
        packet
    }

    /// Draws the next burst and the pause before it.
    fn begin(&mut self, ports: usize, traffic: &Traffic, line: &Line) {
        self.output = traffic.pattern.draw(ports, self.input, &mut self.stream);
        let (load, burst) = match traffic.arrivals {
            Arrivals::Saturated => (1.0, 1.0),
            Arrivals::Bernoulli(load) | Arrivals::Drifting(load) => (load, 1.0),
            Arrivals::Bursty { load, burst } => (load, burst),
        };
        let load = load * traffic.pattern.weight(self.input);
        self.left = match &traffic.sizes {
            Sizes::Messages { sizes, .. } => sizes.draw(&mut self.stream).get(),
            _ => 1 + self.stream.geometric(1.0 / burst),
        };
        // Between packets of a mix, as much pause as after a packet of the mean size; after a
        // message, as its own size asks for.
        let bytes = match traffic.sizes {
            Sizes::Messages { .. } => self.left as f64,
            _ => traffic.sizes.mean() * burst,
        };
        let pause = self.pause(traffic, line, bytes * (1.0 - load) / load);
        self.clock += pause;
    }

    /// A random pause of this mean, in bytes of the line.
    fn pause(&mut self, traffic: &Traffic, line: &Line, mean: f64) -> Ticks {
        let byte = line.send_time(Bytes::new(1)).get() as f64;
        match traffic.arrivals {
            Arrivals::Saturated => Ticks::default(),
            Arrivals::Drifting(_) => {
                Ticks::new(self.stream.exponential(mean * byte).round() as u64)
            }
            Arrivals::Bernoulli(_) | Arrivals::Bursty { .. } => {
                let unit = traffic.sizes.packet_mean();
                let units = self.stream.geometric(1.0 / (1.0 + mean / unit));
                Ticks::new((unit * byte).round() as u64) * units
            }
        }
    }
}

fn draw_size(list: &[(Bytes, f64)], stream: &mut Stream) -> Bytes {
    let whole: f64 = list.iter().map(|&(_, weight)| weight).sum();
    let mut left = stream.unit() * whole;
    for &(size, weight) in list {
        left -= weight;
        if left < 0.0 {
            return size;
        }
    }
    list.last().expect("a mix has a size").0
}
