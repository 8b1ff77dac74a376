//! The bounds of times and rates: beyond them sums overflow, or a run does nothing but wake up.

use kernel::{Bytes, Rate, Span};
use rack::Problem;
use rack::topology::Topology;

use super::{Class, Config, Start};
use crate::wire;

/// The shortest time between two things that a node does of its own (our choice: a hop of §5.2, in which
/// nothing can change for it).
const SPAN_MIN: Span = Span::from_ns(100);
/// The longest way of a link, or through a node (our choice: a signal goes round the Earth in less).
const DELAY_MAX: Span = Span::from_us(1_000_000);
/// Rates of links and of applications (our choice: the first Ethernet's, at which a flow of 1 TiB, the
/// largest, ends before 64 bits of picoseconds do, whatever its headers; and a thousandth of a picosecond
/// a bit).
const RATE_MIN: Rate = Rate::from_bps(10_000_000);
const RATE_MAX: Rate = Rate::from_bps(1_000_000_000_000_000);
/// Of a link, greetings and requests of a flow take one part in so many at the most (our choice).
const SHARE: u64 = 10;

impl Config {
    /// Times and rates that are out of range where zero means something else.
    pub(super) fn check_bounds(&self) -> Vec<Problem> {
        let interval = (self.interval > Span::ZERO && self.interval < SPAN_MIN).then(|| {
            let message = format!("{}; expected at least {SPAN_MIN}, or 0 ns", self.interval);
            Problem::new("interval", message)
        });
        let initial =
            (self.initial_rate > Rate::default() && self.initial_rate < RATE_MIN).then(|| {
                let message =
                    format!("{}; expected at least {RATE_MIN}, or 0 bps", self.initial_rate);
                Problem::new("initial_rate", message)
            });
        let never = |(index, class): (usize, &Class)| {
            let rate = class.application_rate.filter(|_| self.interval == Span::ZERO)?;
            let message = format!(
                "{rate} with interval = 0 ns; expected an interval, over which nodes estimate what an \
                 application gives (§3.3.2): state one, or leave the application's rate out"
            );
            Some(Problem::new(format!("classes[{index}].application_rate"), message))
        };
        let estimates = self.classes.iter().enumerate().filter_map(never);
        interval.into_iter().chain(initial).chain(estimates).collect()
    }

    /// What needs each node to know all flows, which one with a controller does not.
    pub(super) fn check_controller(&self) -> Vec<Problem> {
        let Some(controller) = self.controller else { return Vec::new() };
        let problem = |key: &str, found: &str, why: &str| {
            let message = format!(
                "{found} beside controller = {controller}; expected one of the two, as {why}: remove \
                 the other"
            );
            Problem::new(key, message)
        };
        let share = (self.start == Start::Share)
            .then(|| problem("start", "share", "nodes then compute nothing themselves"));
        let search = self
            .selection
            .is_some()
            .then(|| problem("selection", "a search", "nodes then know of no flows but their own"));
        share.into_iter().chain(search).collect()
    }

    /// Links too slow, too fast or too long; greetings that would fill them, and requests for lost packets.
    pub(super) fn check_links(&self, topology: &Topology) -> Vec<Problem> {
        let links = || topology.ports().iter().map(|port| port.link);
        let slowest = links().map(|link| link.rate).min().unwrap_or(RATE_MAX);
        let fastest = links().map(|link| link.rate).max().unwrap_or(RATE_MIN);
        let longest = links().map(|link| link.delay).max().unwrap_or(Span::ZERO);
        if slowest < RATE_MIN || fastest > RATE_MAX || longest > DELAY_MAX {
            let message = format!(
                "has links of {slowest} to {fastest} and up to {longest}; expected {RATE_MIN} to \
                 {RATE_MAX} and at most {DELAY_MAX}"
            );
            return vec![Problem::new("topology", message)];
        }
        let asked = [
            ("discovery.interval", self.discovery.interval, "greeting", wire::SHORT_BYTES),
            ("recovery.patience", self.recovery.patience, "request", wire::data::HEADER_BYTES),
        ];
        let check = |(key, span, what, bytes): (&str, Span, &str, usize)| {
            let time = slowest.send_time(Bytes::new(bytes as u64));
            let least = time * SHARE;
            let message = format!(
                "{span}, and a {what} takes {time} of the slowest link; expected {least} or more"
            );
            (span < least).then(|| Problem::new(key, message))
        };
        asked.into_iter().filter_map(check).collect()
    }
}
