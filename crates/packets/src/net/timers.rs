//! The transport's timers.
//!
//! A timer that is moved later, as a retransmission timer is by every acknowledgment, keeps its
//! event: when that comes, the timer looks at its deadline and goes back to sleep. So a timer has one
//! event in the calendar however often it is moved; only moving it earlier adds one, and the old one
//! comes when none is expected.

use kernel::{Agenda, Time};
use rack::NodeId;

use super::event::{Event, Word};
use crate::packet::FlowKey;
use crate::transport::{Timer, Timers as Counts};

#[derive(Clone, Copy, Debug)]
struct State {
    /// When it is to fire; `NEVER`: it is not set.
    deadline: Time,
    /// When its event comes; `NEVER`: it has none.
    event: Time,
    /// The host of that event.
    host: u32,
}

const UNSET: State = State { deadline: Time::NEVER, event: Time::NEVER, host: 0 };

/// All timers: those of the hosts, then those of the flows by place, of either half in turn.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    counts: Counts,
    hosts: u32,
    states: Vec<State>,
}

impl Timers {
    pub(crate) fn new(counts: Counts, hosts: u32) -> Self {
        let states = vec![UNSET; hosts as usize * usize::from(counts.host)];
        Self { counts, hosts, states }
    }

    fn first_of_flows(&self) -> u32 {
        self.hosts * u32::from(self.counts.host)
    }

    /// Makes room for halves at places below `places`.
    pub(crate) fn grow(&mut self, places: usize) {
        let count = self.first_of_flows() as usize + 2 * places * usize::from(self.counts.flow);
        if self.states.len() < count {
            self.states.resize(count, UNSET);
        }
    }

    fn index(&self, timer: Timer) -> u32 {
        match timer {
            Timer::Host(host, number) => {
                assert!(number < self.counts.host, "{timer:?} of {:?}", self.counts);
                host.get() * u32::from(self.counts.host) + u32::from(number)
            }
            Timer::Flow(flow, number) => {
                assert!(number < self.counts.flow, "{timer:?} of {:?}", self.counts);
                let half = 2 * flow.place() + u32::from(flow.is_receivers());
                self.first_of_flows() + half * u32::from(self.counts.flow) + u32::from(number)
            }
        }
    }

    /// The timer at a place.
    pub(crate) fn timer(&self, index: u32) -> Timer {
        match index.checked_sub(self.first_of_flows()) {
            None => {
                let count = u32::from(self.counts.host);
                Timer::Host(NodeId::new(index / count), (index % count) as u8)
            }
            Some(index) => {
                let count = u32::from(self.counts.flow);
                let (half, number) = (index / count, (index % count) as u8);
                let key = if half % 2 == 0 { FlowKey::new } else { FlowKey::receivers };
                Timer::Flow(key(half / 2), number)
            }
        }
    }

    /// Sets a timer of `host`.
    pub(crate) fn set(
        &mut self,
        timer: Timer,
        at: Time,
        host: impl FnOnce() -> NodeId,
        calendar: &mut Agenda<Word>,
    ) {
        let index = self.index(timer);
        let state = &mut self.states[index as usize];
        state.deadline = at;
        if at < state.event {
            (state.event, state.host) = (at, host().get());
            calendar.push(at, Event::Timer { host: state.host, index }.pack());
        }
    }

    pub(crate) fn cancel(&mut self, timer: Timer) {
        let index = self.index(timer);
        self.states[index as usize].deadline = Time::NEVER;
    }

    /// Forgets all timers of a half, whose place may be another's next: nothing of it is left to that.
    pub(crate) fn forget_flow(&mut self, flow: FlowKey) {
        for number in 0..self.counts.flow {
            let index = self.index(Timer::Flow(flow, number));
            self.states[index as usize] = UNSET;
        }
    }

    /// The timer of `host` that an event means, if it is due.
    pub(crate) fn due(
        &mut self,
        host: u32,
        index: u32,
        now: Time,
        calendar: &mut Agenda<Word>,
    ) -> Option<Timer> {
        let state = &mut self.states[index as usize];
        if (state.event, state.host) != (now, host) {
            return None;
        }
        state.event = Time::NEVER;
        if state.deadline == Time::NEVER {
            return None;
        }
        if now < state.deadline {
            state.event = state.deadline;
            calendar.push(state.deadline, Event::Timer { host, index }.pack());
            return None;
        }
        state.deadline = Time::NEVER;
        Some(self.timer(index))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set(u8, u64),
        Cancel(u8),
        Pass,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u8..4, 0u64..50).prop_map(|(timer, delay)| Step::Set(timer, delay)),
            1 => (0u8..4).prop_map(Step::Cancel),
            2 => Just(Step::Pass),
        ]
    }

    /// Two timers of a host and one of each half at a place.
    fn timer(number: u8) -> Timer {
        match number {
            0 | 1 => Timer::Host(NodeId::new(3), number),
            2 => Timer::Flow(FlowKey::new(5), 1),
            _ => Timer::Flow(FlowKey::receivers(5), 0),
        }
    }

    proptest! {
        /// Each timer fires once, exactly when it was last set to, and not after it was cancelled.
        #[test]
        fn timers_fire_when_last_set(steps in prop::collection::vec(step(), 1..120)) {
            let mut timers = Timers::new(Counts { flow: 2, host: 2 }, 8);
            timers.grow(6);
            let mut calendar = Agenda::new();
            let mut wanted = [None; 4];
            let mut now = Time::ZERO;
            for step in steps.into_iter().chain([Step::Pass; 500]) {
                match step {
                    Step::Set(number, delay) => {
                        let at = Time::from_ps(now.as_ps() + delay);
                        timers.set(timer(number), at, || NodeId::new(3), &mut calendar);
                        wanted[usize::from(number)] = Some(at);
                    }
                    Step::Cancel(number) => {
                        timers.cancel(timer(number));
                        wanted[usize::from(number)] = None;
                    }
                    Step::Pass => {
                        let Some((at, word)) = calendar.pop_before(Time::NEVER, |_, _| ()) else { continue };
                        let Event::Timer { host, index } = word.unpack() else {
                            unreachable!("only timers are set");
                        };
                        now = at;
                        if let Some(fired) = timers.due(host, index, now, &mut calendar) {
                            let number = (0..4).find(|&n| timer(n) == fired).unwrap();
                            prop_assert_eq!(wanted[usize::from(number)].take(), Some(now));
                        }
                        let late = wanted.iter().flatten().any(|&at| at < now);
                        prop_assert!(!late, "{:?} at {}", wanted, now);
                    }
                }
            }
            prop_assert_eq!(wanted, [None; 4]);
        }
    }

    #[test]
    fn a_timer_moved_later_again_and_again_keeps_one_event() {
        let mut timers = Timers::new(Counts { flow: 0, host: 1 }, 1);
        let mut calendar = Agenda::new();
        for at in 100..1_000 {
            let timer = Timer::Host(NodeId::new(0), 0);
            timers.set(timer, Time::from_ps(at), || NodeId::new(0), &mut calendar);
        }
        assert_eq!(calendar.len(), 1);
    }
}
