//! How much a flow's host can send, as its sender estimates it.
//!
//! Models: R2C2 §3.3.2 (claims M23, I15): Eq. 1, smoothed, once every period; what is broadcast of it.
//!
//! Eq. 1 is d = r + q / T, with r "the rate allocation and q the queuing observed". As q is never
//! below zero, an estimate from the allocation itself could never fall below it, and the broadcast
//! that the next sentence asks for would never be sent. So r is read as the rate at which the flow
//! *was served*: the same as the allocation for a flow that used all of it, less for one that did
//! not. Then d is what came from the host in the period and what was waiting before, over T.

use kernel::{Bytes, PS_PER_SECOND, Rate, Span};

/// The largest demand that a packet can tell (§4.2): 32 bits of kb/s.
pub const DEMAND_MAX: Rate = Rate::from_bps(u32::MAX as u64 * KBPS);
/// The step of demands in packets (§4.2).
const KBPS: u64 = 1_000;

/// How demands are estimated and told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DemandPlan {
    /// The estimation period, T of Eq. 1, at the least: a flow's first is longer by what it had of one
    /// when it started. **Our choice**: the interval of recomputation, ρ (E13).
    pub period: Span,
    /// The part that a new estimate has in the smoothed one is 1 / 2^this. **Our choice**: 2, a
    /// quarter (E13; the paper gives no constant).
    pub gain_shift: u32,
    /// By how much of the demand last told an estimate has to differ to be told. Unit: per cent.
    /// **Our choice**: 10 (E14).
    pub margin_percent: u64,
    /// What a host can send at all, the sum of its links: a demand so large is none.
    pub ceiling: Rate,
}

/// The demand of one flow. Unlimited until an estimate says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    /// The smoothed estimate in bit/s, times 2^`gain_shift`, so that smoothing loses nothing.
    scaled: Option<u64>,
    told: Option<Rate>,
}

/// Eq. 1: what a flow could send, from the rate at which it was served and what waited.
#[must_use]
pub fn estimate(served: Rate, waiting: Bytes, period: Span) -> Rate {
    let rate = u128::from(waiting.get()) * 8 * u128::from(PS_PER_SECOND);
    let queued = rate / u128::from(period.as_ps());
    let sum = u128::from(served.as_bps()) + queued;
    Rate::from_bps(sum.min(u128::from(DEMAND_MAX.as_bps())) as u64)
}

impl Demand {
    /// The demand last told to the rack; none if the flow is not limited by its host.
    #[must_use]
    pub fn told(&self) -> Option<Rate> {
        self.told
    }

    /// The smoothed estimate; none before the first period has passed.
    #[must_use]
    pub fn smoothed(&self, plan: &DemandPlan) -> Option<Rate> {
        self.scaled.map(|scaled| Rate::from_bps(scaled >> plan.gain_shift))
    }

    /// Takes in a period, of length `over`, in which the flow had `allocated`, sent `sent` and left
    /// `waiting` at its sender. Whether the demand is to be broadcast: if it is below the allocation,
    /// or above what was told where that is what limits the flow, and not within the margin of it. At
    /// most once a period, then; and not while what was told makes no difference.
    pub fn observe(
        &mut self,
        plan: &DemandPlan,
        over: Span,
        allocated: Rate,
        (sent, waiting): (Bytes, Bytes),
    ) -> bool {
        let new = estimate(estimate(Rate::default(), sent, over), waiting, over);
        let scaled = match self.scaled {
            Some(old) => old - (old >> plan.gain_shift) + new.as_bps(),
            None => new.as_bps() << plan.gain_shift,
        };
        self.scaled = Some(scaled);
        let smoothed = scaled >> plan.gain_shift;
        let told = self.told;
        let margin = |told: Rate| told.as_bps() / 100 * plan.margin_percent;
        let falls = smoothed < allocated.as_bps()
            && told.is_none_or(|told| smoothed < told.as_bps() - margin(told).min(told.as_bps()));
        let binds = |told: &Rate| *told <= allocated;
        let rises = told.filter(binds).is_some_and(|told| smoothed > told.as_bps() + margin(told));
        if falls || rises {
            let whole = Rate::from_bps(smoothed.div_ceil(KBPS) * KBPS);
            self.told = (whole < plan.ceiling).then_some(whole);
        }
        self.told != told
    }

    /// The host limits the flow no longer. Whether that is to be broadcast.
    pub fn take_back(&mut self) -> bool {
        self.told.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::tests::rates_on_a_link;

    const PLAN: DemandPlan = DemandPlan {
        period: Span::from_us(500),
        gain_shift: 2,
        margin_percent: 10,
        ceiling: Rate::from_gbps(60),
    };

    fn in_a_period(bps: u64) -> Bytes {
        Rate::from_bps(bps).bytes_in(PLAN.period)
    }

    #[test]
    fn m23_eq_1_adds_what_waits_to_what_was_served() {
        let period = Span::from_us(500);
        for (served, waiting, demand) in [
            (0, 0, 0),
            (1_000_000_000, 0, 1_000_000_000),
            (1_000_000_000, 62_500, 2_000_000_000),
            (5_000_000_000, 1_500, 5_024_000_000),
            (1, 1 << 50, DEMAND_MAX.as_bps()),
        ] {
            let found = estimate(Rate::from_bps(served), Bytes::new(waiting), period);
            assert_eq!(found, Rate::from_bps(demand), "{served} {waiting}");
        }
    }

    #[test]
    fn m23_from_the_allocation_itself_an_estimate_could_not_fall() {
        // The reading that is not taken, and why.
        let allocated = Rate::from_gbps(5);
        assert!(estimate(allocated, Bytes::ZERO, PLAN.period) >= allocated);
    }

    /// Two flows over a link of 10 Gbps, the first of which can send at `host(period)`; the rates of
    /// both after each period, and in how many the demand was told.
    fn run(periods: u64, host: impl Fn(u64) -> u64) -> (Vec<[f64; 2]>, u64) {
        let mut demand = Demand::default();
        let (mut waiting, mut told, mut found) = (Bytes::ZERO, 0, Vec::new());
        for period in 0..periods {
            let rates = rates_on_a_link(10e9, [demand.told(), None]);
            found.push(rates);
            let allocated = Rate::from_bps(rates[0] as u64);
            let offered = waiting + in_a_period(host(period));
            let sent = offered.min(allocated.bytes_in(PLAN.period));
            waiting = offered - sent;
            told += u64::from(demand.observe(&PLAN, PLAN.period, allocated, (sent, waiting)));
        }
        (found, told)
    }

    #[test]
    fn i15_a_flow_that_its_host_limits_leaves_the_rest_to_others() {
        let (rates, told) = run(40, |_| 2_000_000_000);
        assert_eq!(rates[0], [5e9, 5e9]);
        let [own, other] = rates[39];
        assert!((own - 2e9).abs() <= 1e6 && (other - 8e9).abs() <= 1e6, "{own} {other}");
        assert_eq!(told, 1, "told once and for all");
    }

    #[test]
    fn e14_a_flow_that_can_send_more_again_gets_its_fair_share_back() {
        // Two gigabits for twenty periods, then all that the network takes.
        let (rates, told) =
            run(60, |period| if period < 20 { 2_000_000_000 } else { 20_000_000_000 });
        assert!((rates[19][0] - 2e9).abs() <= 1e6, "{:?}", rates[19]);
        let back = rates.iter().skip(20).position(|rates| rates[0] >= 5e9).expect("it comes back");
        assert!(back <= 4, "after {back} periods");
        assert_eq!(rates[59], [5e9, 5e9]);
        // Once that it is limited, then at most once in each period until it no longer is.
        assert!(told <= 2 + back as u64, "{told} broadcasts");
    }

    #[test]
    fn e14_what_varies_within_the_margin_is_not_told_again() {
        let steps = [2_100_000_000, 1_900_000_000, 2_000_000_000];
        let (_, told) = run(300, |period| steps[period as usize % 3]);
        assert_eq!(told, 1);
        // If the first estimate is below the mean, what waits grows until that is told: once.
        let (_, told) = run(300, |period| steps[(period as usize + 1) % 3]);
        assert_eq!(told, 2);
    }

    #[test]
    fn a_flow_that_uses_what_it_has_never_tells_a_demand() {
        let (rates, told) = run(50, |_| 20_000_000_000);
        assert_eq!((rates[49], told), ([5e9, 5e9], 0));
    }

    #[test]
    fn m23_what_a_period_brings_is_taken_over_the_time_that_it_lasted() {
        for over in [PLAN.period, PLAN.period * 3 / 2, PLAN.period * 2] {
            let mut demand = Demand::default();
            let sent = (Rate::from_gbps(2).bytes_in(over), Bytes::ZERO);
            assert!(demand.observe(&PLAN, over, Rate::from_gbps(5), sent));
            assert_eq!(demand.told(), Some(Rate::from_gbps(2)), "{over}");
        }
    }

    #[test]
    fn m23_a_demand_is_taken_back_once() {
        let mut demand = Demand::default();
        assert!(!demand.take_back(), "none was told");
        let sent = (in_a_period(2_000_000_000), Bytes::ZERO);
        assert!(demand.observe(&PLAN, PLAN.period, Rate::from_gbps(5), sent));
        assert!(demand.take_back());
        assert_eq!((demand.told(), demand.take_back()), (None, false));
    }

    #[test]
    fn smoothing_ends_at_the_estimate_itself() {
        let mut demand = Demand::default();
        for _ in 0..400 {
            let sent = (in_a_period(3_000_016_000), Bytes::ZERO);
            let _ = demand.observe(&PLAN, PLAN.period, Rate::from_gbps(9), sent);
        }
        assert_eq!(demand.smoothed(&PLAN), Some(Rate::from_bps(3_000_016_000)));
    }
}
