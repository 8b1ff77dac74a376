//! HyStart++: slow start that ends when delay rises, before packets are lost.
//!
//! Models: RFC 9406 §4.2, with the constants of §4.3. The stream's slow start grows by a segment an
//! acknowledgment at most (L = 1, RFC 5681), for it is not paced.

use kernel::Span;

use crate::stream::congestion::Acked;

/// Samples a round needs before it is judged (RFC 9406 §4.3: N_RTT_SAMPLE).
const SAMPLES: u32 = 8;
/// The rise that counts is this part of the last round's delay (MIN_RTT_DIVISOR).
const DIVISOR: u64 = 8;
/// Conservative slow start grows by this part (CSS_GROWTH_DIVISOR).
const GROWTH_DIVISOR: f64 = 4.0;
/// Rounds of it before slow start ends (CSS_ROUNDS).
const ROUNDS: u32 = 5;

/// How the window may grow on an acknowledgment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Growth {
    /// As slow start does.
    Full,
    /// By so many times less.
    Part(f64),
    /// Slow start is over.
    Stop,
}

/// The state of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct HyStart {
    /// The round ends when this segment has been acknowledged.
    window_end: u64,
    /// Least delay of the last round and of this one; none yet.
    last: Option<Span>,
    current: Option<Span>,
    samples: u32,
    /// In conservative slow start: the least delay at its start, and its rounds so far.
    conservative: Option<(Span, u32)>,
}

impl HyStart {
    /// An acknowledgment in slow start; `rise`: the bounds of the rise that counts.
    pub(super) fn acked(&mut self, rise: (Span, Span), acked: &Acked) -> Growth {
        self.current = Some(self.current.map_or(acked.rtt, |least| least.min(acked.rtt)));
        self.samples += 1;
        if self.samples >= SAMPLES {
            self.judge(rise);
        }
        let is_over = acked.una > self.window_end && self.end_round(acked.next);
        match self.conservative {
            _ if is_over => Growth::Stop,
            Some(_) => Growth::Part(GROWTH_DIVISOR),
            None => Growth::Full,
        }
    }

    fn judge(&mut self, (least, most): (Span, Span)) {
        let (Some(last), Some(current)) = (self.last, self.current) else { return };
        match self.conservative {
            Some((baseline, _)) if current < baseline => self.conservative = None,
            Some(_) => (),
            None => {
                let rise = (last / DIVISOR).clamp(least, most);
                if current >= last + rise {
                    self.conservative = Some((current, 0));
                }
            }
        }
    }

    /// A round has ended; whether slow start ends with it.
    fn end_round(&mut self, next: u64) -> bool {
        self.window_end = next;
        self.last = self.current.take();
        self.samples = 0;
        let Some((_, rounds)) = &mut self.conservative else { return false };
        *rounds += 1;
        *rounds >= ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use kernel::Time;
    use rack::NodeId;

    use super::*;
    use crate::stream::congestion::Phase;

    /// Rounds of ten acknowledgments each, with these delays in microseconds: what the last
    /// acknowledgment of each round gives.
    fn rounds(delays: &[u64]) -> Vec<Growth> {
        let mut hystart = HyStart { window_end: 9, ..HyStart::default() };
        let rise = (Span::from_us(4), Span::from_us(16));
        let mut una = 0;
        let round = |&delay: &u64| {
            let mut growth = Growth::Full;
            for _ in 0..10 {
                una += 1;
                growth = hystart.acked(
                    rise,
                    &Acked {
                        now: Time::ZERO,
                        bytes: 1,
                        arrived: 1,
                        una,
                        next: una.div_ceil(10) * 10 + 9,
                        flight: 10,
                        rtt: Span::from_us(delay),
                        srtt: Span::from_us(delay),
                        endpoint: Span::ZERO,
                        hops: 0,
                        is_marked: false,
                        phase: Phase::Open,
                        host: NodeId::new(0),
                    },
                );
            }
            growth
        };
        delays.iter().map(round).collect()
    }

    #[test]
    fn a_steady_delay_lets_slow_start_go_on() {
        assert_eq!(rounds(&[40; 20]), [Growth::Full; 20]);
    }

    #[test]
    fn a_rise_of_an_eighth_slows_growth_and_five_rounds_end_it() {
        let part = Growth::Part(4.0);
        let found = rounds(&[40, 44, 50, 50, 50, 50, 50]);
        let full = Growth::Full;
        assert_eq!(found, [full, full, part, part, part, part, Growth::Stop]);
    }

    #[test]
    fn a_rise_that_goes_away_was_no_reason() {
        let found = rounds(&[40, 60, 45, 45]);
        assert_eq!(found, [Growth::Full, Growth::Part(4.0), Growth::Full, Growth::Full]);
    }

    #[test]
    fn a_rise_below_the_least_does_not_count() {
        assert_eq!(rounds(&[8, 11, 14, 17]), [Growth::Full; 4]);
        assert_eq!(rounds(&[8, 12])[1], Growth::Part(4.0));
    }
}
