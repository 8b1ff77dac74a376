//! The books of a run: what was offered is completed, given up or open, flow by flow and byte by byte.
//!
//! They are kept beside every fabric, in release builds too, and a run whose books do not balance ends
//! with an error: no figure of it can be trusted.

use kernel::{Bytes, Span, Time};

use crate::{Completion, Flow, Totals, Unfinished};

/// Mixes the bits of a flow's number, so that sums of them tell sets apart (splitmix64's finaliser).
const fn mark(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// How many flows, their bytes, and a sum that tells which they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Account {
    flows: u64,
    bytes: u128,
    marks: u64,
}

impl Account {
    fn enter(&mut self, flow: &Flow) {
        self.flows += 1;
        self.bytes += u128::from(flow.size.get());
        self.marks = self.marks.wrapping_add(mark(flow.id.get()));
    }
}

/// The books.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    offered: Account,
    completed: Account,
    failed: Account,
    /// The first entry that cannot be right.
    wrong: Option<String>,
}

impl Books {
    pub(crate) fn offer(&mut self, flow: &Flow) {
        self.offered.enter(flow);
    }

    pub(crate) fn complete(&mut self, completion: &Completion<'_>) {
        let Completion { flow, end, ideal, .. } = *completion;
        self.completed.enter(flow);
        let least = flow.start.as_ps().checked_add(ideal.as_ps()).map(Time::from_ps);
        if least.is_none_or(|least| end < least) && self.wrong.is_none() {
            let Flow { id, src, dst, size, start, .. } = *flow;
            let took = end.as_ps().checked_sub(start.as_ps()).map(Span::from_ps);
            let took =
                took.map_or_else(|| format!("ended at {end}"), |took| format!("took {took}"));
            self.wrong = Some(format!(
                "flow {} from {src} to {dst}, {size}, started at {start}, {took}; alone in the idle \
                 network it takes {ideal} at best",
                id.get()
            ));
        }
    }

    pub(crate) fn fail(&mut self, flow: &Flow, at: Time) {
        self.failed.enter(flow);
        if at < flow.start && self.wrong.is_none() {
            let (id, start) = (flow.id.get(), flow.start);
            self.wrong = Some(format!("flow {id} was given up at {at} and started at {start}"));
        }
    }

    /// The clock of the fabric went from one instant to another.
    pub(crate) fn pass(&mut self, before: Time, after: Time) {
        if after < before && self.wrong.is_none() {
            self.wrong = Some(format!("the clock went back from {before} to {after}"));
        }
    }

    /// What cannot be right by itself, once.
    pub(crate) fn take_wrong(&mut self) -> Option<String> {
        self.wrong.take()
    }

    /// Holds the books against what the fabric has left and what it counted.
    ///
    /// # Errors
    /// Which of them do not balance, with their numbers.
    pub(crate) fn balance(&self, open: &[Unfinished], totals: &Totals) -> Result<(), String> {
        let mut left = Account::default();
        open.iter().for_each(|open| left.enter(&open.flow));
        let Self { offered, completed, failed, .. } = self;
        if offered.flows != completed.flows + failed.flows + left.flows {
            return Err(format!(
                "{} flows were offered; {} completed, {} failed and {} are open",
                offered.flows, completed.flows, failed.flows, left.flows
            ));
        }
        let marks = [completed.marks, failed.marks, left.marks];
        if offered.marks != marks.into_iter().fold(0, u64::wrapping_add) {
            return Err(format!(
                "{} flows were offered, and as many completed, failed or are open, but not the same",
                offered.flows
            ));
        }
        if offered.bytes != completed.bytes + failed.bytes + left.bytes {
            return Err(format!(
                "{} bytes were offered; flows of {} completed, of {} failed and of {} are open",
                offered.bytes, completed.bytes, failed.bytes, left.bytes
            ));
        }
        if let Some(open) = open.iter().find(|open| open.delivered > open.flow.size) {
            let Unfinished { flow, delivered } = open;
            let (id, size) = (flow.id.get(), flow.size);
            return Err(format!("flow {id} of {size} has had {delivered} delivered"));
        }
        let under_way: u128 = open.iter().map(|open| u128::from(open.delivered.get())).sum();
        let told = u128::from(totals.delivered.get()) + u128::from(totals.lost.get());
        if told != completed.bytes + failed.bytes + under_way {
            let Totals { delivered, lost, .. } = totals;
            return Err(format!(
                "{delivered} were delivered and {lost} lost; completed flows have {} bytes, failed ones {} \
                 and open ones have had {under_way}",
                completed.bytes, failed.bytes
            ));
        }
        Ok(())
    }

    pub(crate) fn offered(&self) -> (u64, Bytes) {
        (self.offered.flows, Bytes::new(u64::try_from(self.offered.bytes).unwrap_or(u64::MAX)))
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed.flows
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.flows
    }

    /// Flows that have ended either way.
    pub(crate) fn ended(&self) -> u64 {
        self.completed.flows + self.failed.flows
    }

    /// Flows that have not ended.
    pub(crate) fn open(&self) -> u64 {
        self.offered.flows.saturating_sub(self.ended())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, FlowId, NodeId};

    fn flow(number: u64, size: u64) -> Flow {
        Flow {
            id: FlowId::new(number),
            src: NodeId::new(0),
            dst: NodeId::new(1),
            size: Bytes::new(size),
            start: Time::from_ps(100),
            class: Class::new(0),
        }
    }

    fn complete(books: &mut Books, flow: &Flow, end: u64) {
        let (end, ideal) = (Time::from_ps(end), Span::from_ps(50));
        books.complete(&Completion { flow, end, ideal, stages: &[] });
    }

    fn totals(delivered: u64, lost: u64) -> Totals {
        let (delivered, lost) = (Bytes::new(delivered), Bytes::new(lost));
        Totals { delivered, lost, ..Totals::default() }
    }

    /// Flow 0 of 10 bytes completed, flow 1 of 20 failed after 5, flow 2 of 40 open after 8.
    fn sound() -> (Books, Vec<Unfinished>) {
        let mut books = Books::default();
        let flows = [flow(0, 10), flow(1, 20), flow(2, 40)];
        flows.iter().for_each(|flow| books.offer(flow));
        complete(&mut books, &flows[0], 150);
        books.fail(&flows[1], Time::from_ps(120));
        (books, vec![Unfinished { flow: flows[2], delivered: Bytes::new(8) }])
    }

    #[track_caller]
    fn check(result: Result<(), String>, words: &str) {
        let message = result.unwrap_err();
        assert!(message.contains(words), "{message}");
    }

    #[test]
    fn sound_books_balance_and_each_kind_of_mistake_is_told() {
        let (books, open) = sound();
        assert_eq!(books.balance(&open, &totals(10 + 5 + 8, 15)), Ok(()));
        check(
            books.balance(&[], &totals(15, 15)),
            "3 flows were offered; 1 completed, 1 failed and 0",
        );
        let other = [Unfinished { flow: flow(3, 40), ..open[0] }];
        check(books.balance(&other, &totals(23, 15)), "but not the same");
        let larger = [Unfinished { flow: flow(2, 41), ..open[0] }];
        check(books.balance(&larger, &totals(23, 15)), "70 bytes were offered");
        check(books.balance(&open, &totals(22, 15)), "22 B were delivered and 15 B lost");
        let more = [Unfinished { delivered: Bytes::new(41), ..open[0] }];
        check(books.balance(&more, &totals(56, 15)), "has had 41 B delivered");
    }

    #[test]
    fn nothing_is_faster_than_alone_and_no_clock_goes_back() {
        let (mut books, _) = sound();
        books.pass(Time::from_ps(5), Time::from_ps(5));
        assert_eq!(books.take_wrong(), None);
        complete(&mut books, &flow(7, 1), 149);
        let wrong = books.take_wrong().unwrap();
        assert!(wrong.starts_with("flow 7 ") && wrong.contains("took 49 ps"), "{wrong}");
        books.pass(Time::from_ps(6), Time::from_ps(5));
        assert_eq!(books.take_wrong().unwrap(), "the clock went back from 6 ps to 5 ps");
        books.fail(&flow(8, 1), Time::from_ps(99));
        assert!(books.take_wrong().unwrap().contains("given up at 99 ps"));
    }
}
