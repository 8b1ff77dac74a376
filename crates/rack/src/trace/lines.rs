//! What each line of a network carried over time, of all flows, and how much waited for it.
//!
//! Time is divided into spans of one length, which doubles as often as needed to keep their number bounded, so the
//! record does not grow with the run. It is the same whichever parts of the network kept it.

use kernel::{Span, Time};

use super::Place;

/// Spans that a record has at most (our choice: more than a drawing tells apart).
pub const SPANS_MAX: usize = 256;
/// The length of a span at the beginning (our choice: a handful of packets of 1500 bytes at 100 Gbps).
const SHORTEST: Span = Span::from_us(1);

/// What a line did in one span.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LineSpan {
    /// Bytes of packets that began to go on the line then, headers included.
    pub carried: u64,
    /// The most bytes that waited for it as one did.
    pub waiting: u32,
}

impl LineSpan {
    fn join(&mut self, other: Self) {
        self.carried += other.carried;
        self.waiting = self.waiting.max(other.waiting);
    }
}

/// A line's spans, from the beginning of the run to the last in which it carried something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The port that sends.
    pub place: Place,
    /// Its spans.
    pub spans: Vec<LineSpan>,
}

/// All lines that carried something.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Lines {
    /// How long a span is; zero where there are none.
    pub span: Span,
    /// By number of the port.
    pub lines: Vec<Line>,
}

/// The record in the making, by port.
#[derive(Clone, Debug)]
pub struct LineRecorder {
    span: Span,
    ports: Vec<Vec<LineSpan>>,
}

impl LineRecorder {
    /// Of so many ports.
    #[must_use]
    pub fn new(ports: usize) -> Self {
        Self { span: SHORTEST, ports: vec![Vec::new(); ports] }
    }

    /// A packet of so many bytes goes on the line of `port`, while so many bytes wait for it.
    pub fn sends(&mut self, port: u32, now: Time, bytes: u16, waiting: u32) {
        let mut at = self.at(now);
        while at >= SPANS_MAX {
            self.double();
            at = self.at(now);
        }
        let spans = &mut self.ports[port as usize];
        if spans.len() <= at {
            spans.resize(at + 1, LineSpan::default());
        }
        spans[at].join(LineSpan { carried: bytes.into(), waiting });
    }

    fn at(&self, now: Time) -> usize {
        usize::try_from(now.as_ps() / self.span.as_ps()).unwrap_or(usize::MAX)
    }

    /// Makes of two spans one.
    fn double(&mut self) {
        self.span = self.span + self.span;
        for spans in &mut self.ports {
            *spans = spans
                .chunks(2)
                .map(|pair| {
                    let mut joined = pair[0];
                    pair[1..].iter().for_each(|other| joined.join(*other));
                    joined
                })
                .collect();
        }
    }

    /// Takes in what another part of the network has recorded, or what lines beyond those known here carried.
    pub fn join(&mut self, mut other: Self) {
        while self.span < other.span {
            self.double();
        }
        while other.span < self.span {
            other.double();
        }
        let ports = self.ports.len().max(other.ports.len());
        self.ports.resize(ports, Vec::new());
        for (spans, others) in self.ports.iter_mut().zip(other.ports) {
            if spans.len() < others.len() {
                spans.resize(others.len(), LineSpan::default());
            }
            spans.iter_mut().zip(others).for_each(|(span, other)| span.join(other));
        }
    }

    /// The record, with ports as `place` names them.
    #[must_use]
    pub fn close(self, place: impl Fn(u32) -> Place) -> Lines {
        let Self { span, ports } = self;
        let numbered = (0..).zip(ports).filter(|(_, spans)| !spans.is_empty());
        let lines = numbered.map(|(port, spans)| Line { place: place(port), spans });
        Lines { span, lines: lines.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(port: u32) -> Place {
        let (from, to) = (format!("node {port}"), "leaf 0".into());
        Place { port, link_type: crate::trace::ETHERNET, from, to }
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn bytes_add_up_and_the_most_that_waited_stays() {
        let mut recorder = LineRecorder::new(2);
        recorder.sends(1, at(0), 100, 700);
        recorder.sends(1, at(0), 50, 300);
        recorder.sends(1, at(3), 10, 0);
        let lines = recorder.close(place);
        assert_eq!((lines.span, lines.lines.len()), (Span::from_us(1), 1));
        let nothing = LineSpan::default();
        let first = LineSpan { carried: 150, waiting: 700 };
        let last = LineSpan { carried: 10, waiting: 0 };
        assert_eq!(
            lines.lines[0],
            Line { place: place(1), spans: vec![first, nothing, nothing, last] }
        );
    }

    /// However long the run, spans are bounded, nothing is lost, and who recorded what makes no difference.
    #[test]
    fn a_long_run_has_longer_spans_and_parts_of_it_add_up_to_the_whole() {
        for last in [255, 256, 511, 512, 100_000] {
            let mut whole = LineRecorder::new(3);
            let mut parts = [LineRecorder::new(3), LineRecorder::new(3)];
            for step in 0..1000_u64 {
                let port = u32::try_from(step % 3).unwrap();
                let (now, waiting) = (at(step * last / 999), u32::try_from(step % 7).unwrap());
                whole.sends(port, now, 9, waiting);
                parts[usize::from(port == 2)].sends(port, now, 9, waiting);
            }
            let [mut joined, second] = parts;
            joined.join(second);
            let (whole, joined) = (whole.close(place), joined.close(place));
            assert_eq!(whole, joined, "up to {last} us");
            let spans = whole.lines.iter().flat_map(|line| &line.spans);
            assert_eq!(spans.map(|span| span.carried).sum::<u64>(), 9000);
            let longest = whole.lines.iter().map(|line| line.spans.len()).max().unwrap();
            assert!(longest <= SPANS_MAX && longest > SPANS_MAX / 2, "{longest} up to {last} us");
        }
    }

    /// A part in which little happens knows of no doubling: its spans are put together then.
    #[test]
    fn a_quiet_part_is_joined_with_a_busy_one() {
        let (mut quiet, mut busy) = (LineRecorder::new(2), LineRecorder::new(2));
        quiet.sends(0, at(1), 5, 1);
        busy.sends(1, at(1000), 7, 2);
        let mut other = busy.clone();
        other.join(quiet.clone());
        quiet.join(busy);
        assert_eq!(quiet.clone().close(place), other.close(place));
        assert_eq!(quiet.close(place).span, Span::from_us(4));
    }
}
