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
        /// So many messages of a source take turns, a segment each. At least one; more only if it always sends.
        at_once: usize,
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

impl Traffic {
    /// How many messages of a source take turns.
    fn at_once(&self) -> usize {
        let Sizes::Messages { at_once, .. } = &self.sizes else { return 1 };
        let always = self.arrivals == Arrivals::Saturated;
        assert!(
            *at_once == 1 || *at_once > 1 && always,
            "{at_once} messages at once; expected one, or more where a source always sends"
        );
        *at_once
    }
}

/// One input's source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    input: usize,
    stream: Stream,
    pauses: Pauses,
    /// When the sender has its next packet ready.
    clock: Ticks,
    /// What is left of each burst that takes turns.
    bursts: Box<[Burst]>,
    /// Whose turn is next.
    turn: usize,
}

/// What is left of a burst.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    output: usize,
    /// Packets, or bytes of a message.
    left: u64,
}

/// How long a source pauses before a burst.
#[derive(Clone, Copy, Debug)]
enum Pauses {
    None,
    /// Exponential, of this mean in ticks.
    Exponential(f64),
    /// So many whole packet times, their number geometric.
    PacketTimes {
        packet: Ticks,
        count: Geometric,
    },
    /// Before each message in proportion to its size: ticks for each byte, exponential or in whole
    /// packet times.
    ByMessage {
        each_byte: f64,
        packet: Option<Ticks>,
    },
}

/// The number of failures before the first success, its logarithm worked out once.
#[derive(Clone, Copy, Debug)]
struct Geometric {
    /// Mean of the exponential of which it is the whole part; zero if there is no failure.
    mean: f64,
}

impl Geometric {
    /// With this mean.
    fn with_mean(mean: f64) -> Self {
        // Trials fail with probability mean / (1 + mean).
        Self { mean: if mean > 0.0 { 1.0 / libm::log1p(1.0 / mean) } else { 0.0 } }
    }

    #[inline]
    fn draw(self, stream: &mut Stream) -> u64 {
        if self.mean > 0.0 { stream.exponential(self.mean) as u64 } else { 0 }
    }
}

impl Pauses {
    /// Those that leave a line of `traffic` busy for its share of the time.
    fn new(traffic: &Traffic, line: &Line, weight: f64) -> Self {
        let (load, burst) = traffic.arrivals.load_and_burst();
        let load = load * weight;
        let byte = line.send_time(Bytes::new(1)).get() as f64;
        let packet = Ticks::new((traffic.sizes.packet_mean() * byte).round() as u64);
        let share = (1.0 - load) / load;
        let bytes = traffic.sizes.mean() * burst * share;
        match (traffic.arrivals, &traffic.sizes) {
            (Arrivals::Saturated, _) => Self::None,
            (Arrivals::Drifting(_), Sizes::Fixed(_) | Sizes::Mixed(_)) => {
                Self::Exponential(bytes * byte)
            }
            (_, Sizes::Messages { .. }) => {
                let drifts = matches!(traffic.arrivals, Arrivals::Drifting(_));
                Self::ByMessage { each_byte: share * byte, packet: (!drifts).then_some(packet) }
            }
            _ => {
                let mean = bytes / traffic.sizes.packet_mean();
                Self::PacketTimes { packet, count: Geometric::with_mean(mean) }
            }
        }
    }

    /// The pause before a burst of `left` packets, or a message of `left` bytes.
    #[inline]
    fn draw(self, left: u64, stream: &mut Stream) -> Ticks {
        match self {
            Self::None => Ticks::default(),
            Self::Exponential(mean) => Ticks::new(stream.exponential(mean).round() as u64),
            Self::PacketTimes { packet, count } => packet * count.draw(stream),
            Self::ByMessage { each_byte, packet } => {
                let mean = left as f64 * each_byte;
                match packet {
                    None => Ticks::new(stream.exponential(mean).round() as u64),
                    Some(packet) => {
                        packet * Geometric::with_mean(mean / packet.get() as f64).draw(stream)
                    }
                }
            }
        }
    }
}

impl Arrivals {
    /// The share of the time that a line is busy, and the mean packets of a burst.
    fn load_and_burst(self) -> (f64, f64) {
        match self {
            Self::Saturated => (1.0, 1.0),
            Self::Bernoulli(load) | Self::Drifting(load) => (load, 1.0),
            Self::Bursty { load, burst } => (load, burst),
        }
    }
}

impl Source {
    /// The source of `input`; `None` if the pattern lets it send nothing.
    pub(crate) fn new(input: usize, seed: u64, traffic: &Traffic, line: &Line) -> Option<Self> {
        let weight = traffic.pattern.weight(input);
        if weight == 0.0 {
            return None;
        }
        let mut stream = Stream::new(seed, "switching/source", input as u64);
        let packet = line.send_time(traffic.sizes.packet_max()).get();
        let clock = match traffic.phase {
            Phase::Aligned => Ticks::default(),
            Phase::Random => Ticks::new(stream.below(packet)),
        };
        let pauses = Pauses::new(traffic, line, weight);
        let bursts = vec![Burst::default(); traffic.at_once()].into();
        Some(Self { input, stream, pauses, clock, bursts, turn: 0 })
    }

    /// The next packet. `free` is when the line is free again.
    #[inline]
    pub(crate) fn next(
        &mut self,
        ports: usize,
        traffic: &Traffic,
        line: &Line,
        free: Ticks,
    ) -> Packet {
        if self.bursts[self.turn].left == 0 {
            self.begin(ports, traffic);
        }
        let Burst { output, left } = self.bursts[self.turn];
        let (size, used) = match &traffic.sizes {
            Sizes::Fixed(size) => (*size, 1),
            Sizes::Mixed(list) => (draw_size(list, &mut self.stream), 1),
            Sizes::Messages { segment, .. } => {
                let size = left.min(segment.get());
                (Bytes::new(size), size)
            }
        };
        self.bursts[self.turn].left -= used;
        self.turn = if self.turn + 1 < self.bursts.len() { self.turn + 1 } else { 0 };
        if traffic.arrivals == Arrivals::Saturated {
            self.clock = self.clock.max(free);
        }
        let packet = Packet::new(self.input, output, size, self.clock);
        self.clock += line.send_time(size);
        packet
    }

    /// Draws the next burst and the pause before it.
    fn begin(&mut self, ports: usize, traffic: &Traffic) {
        let before = self.bursts[self.turn].output;
        let output = traffic.pattern.draw(ports, self.input, before, &mut self.stream);
        let left = match &traffic.sizes {
            Sizes::Messages { sizes, .. } => sizes.draw(&mut self.stream).get(),
            _ => {
                let (_, burst) = traffic.arrivals.load_and_burst();
                1 + Geometric::with_mean(burst - 1.0).draw(&mut self.stream)
            }
        };
        self.bursts[self.turn] = Burst { output, left };
        self.clock += self.pauses.draw(left, &mut self.stream);
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

#[cfg(test)]
mod tests {
    use kernel::Rate;
    use rack::workload::sizes;

    use super::*;

    #[test]
    fn messages_take_turns_a_segment_each_and_end_whole() {
        let line = Line::slotted(Rate::from_gbps(25), Bytes::new(288), (1, 1));
        let message = sizes::Sizes::Fixed(Bytes::new(1_000));
        for at_once in [1, 2, 5] {
            let traffic = Traffic {
                pattern: Pattern::Uniform,
                arrivals: Arrivals::Saturated,
                sizes: Sizes::Messages {
                    sizes: message.clone(),
                    segment: Bytes::new(288),
                    at_once,
                },
                phase: Phase::Aligned,
            };
            let mut source = Source::new(0, 1, &traffic, &line).unwrap();
            let mut draw = || source.next(4_096, &traffic, &line, Ticks::default());
            let mut outputs = std::collections::BTreeSet::new();
            for _ in 0..3 {
                let packets: Vec<Packet> = (0..4 * at_once).map(|_| draw()).collect();
                let rounds: Vec<&[Packet]> = packets.chunks(at_once).collect();
                for (round, &size) in rounds.iter().zip(&[288, 288, 288, 136]) {
                    assert!(round.iter().all(|packet| packet.size() == Bytes::new(size)));
                    let to =
                        |round: &[Packet]| round.iter().map(|p| p.destination).collect::<Vec<_>>();
                    assert_eq!(to(round), to(rounds[0]));
                }
                outputs.extend(rounds[0].iter().map(|packet| packet.destination));
            }
            // Of 4,096 outputs: fewer are the same than not, by far.
            assert!(outputs.len() > 2 * at_once, "{outputs:?}");
        }
    }
}
