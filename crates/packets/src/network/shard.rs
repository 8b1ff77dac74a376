//! A part as a shard: several of a network run side by side.

use kernel::Time;
use rack::shards::{NEVER, Outbox, Shard};

use super::part::Part;
use super::reports::Report;
use crate::message::{Body, Message};
use crate::program::Program;
use crate::transport::Transport;

impl<T: Transport, S: Program> Shard for Part<T, S> {
    type Message = Message;
    type Report = Report;

    fn next(&self) -> u64 {
        self.net.calendar.next_time().map_or(NEVER, Time::as_ps)
    }

    fn take(&mut self, messages: &mut Vec<Message>) {
        for message in messages.drain(..) {
            match message.body {
                Body::Posted(post) => self.take_post(message.port, message.at, &post),
                _ => self.net.take(message),
            }
        }
        if S::HAS_LINKS {
            self.serve_program();
        }
    }

    fn run(&mut self, end: u64, out: &mut Outbox<Message>) -> u64 {
        let before = self.events;
        std::mem::swap(out, &mut self.net.passing);
        while let Some((now, event)) = self.next_before(Time::from_ps(end)) {
            self.step(now, event);
        }
        std::mem::swap(out, &mut self.net.passing);
        self.events - before
    }

    fn report(&mut self, reports: &mut Vec<Report>) {
        if self.tells_at_once {
            reports.append(&mut self.reports);
        }
    }
}
