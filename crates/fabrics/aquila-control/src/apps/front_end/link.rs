//! The front end's side of a session with one TiN.

use std::collections::BTreeSet;

use kernel::{Span, Time};

use super::bucket::Bucket;
use super::held::{Held, compare, digests, patch};
use super::intent::Intent;
use super::plan::Plan;
use super::{Counts, Settings};
use crate::apps::Clique;
use crate::apps::rows::group_of;
use crate::apps::session::Over;
use crate::nib::{Key, Table};
use crate::registers::file::RegisterFile;
use crate::registers::map::{GROUP_SIZE, INDEXED_SUBNET, REGISTERS};
use crate::registers::{ENTRY_BYTES_MAX, find};
use crate::rpc::{Caller, Item, Outcome, pack};

/// Who answers a request by PMOS after so long is slow (our choice).
const LONG: Span = Span::from_us(1_000_000);

/// A session.
#[derive(Debug)]
pub struct Link {
    over: Over,
    /// Whether a request has taken long.
    has_taken_long: bool,
    caller: Caller,
    bucket: Bucket,
    held: Held,
    /// Of what is to be written; `None`: it is to be worked out.
    plan: Option<Plan>,
    /// Entries that the chip does not take.
    refused: BTreeSet<u32>,
    /// Whether one of the first ones is under way.
    is_first_under_way: bool,
    sent_at: Time,
    /// After so long without an answer the same request is sent once more. It is done once.
    again: Span,
    wakes_at: Time,
    /// Whether it was told that enough is programmed, and everything.
    is_enough_said: bool,
    is_completion_said: bool,
    /// What is under way is about firmware, and not about registers.
    is_of_flash: bool,
}

impl Link {
    /// One that has just begun.
    #[must_use]
    pub fn new(over: Over, settings: &Settings, now: Time) -> Self {
        let rate = match over {
            Over::Tcp => settings.tcp_rate,
            Over::Pmos => settings.pmos_rate,
        };
        Self {
            over,
            has_taken_long: false,
            caller: Caller::new(),
            bucket: Bucket::new(rate, now),
            held: Held::Unknown,
            plan: None,
            refused: BTreeSet::new(),
            is_first_under_way: false,
            sent_at: now,
            again: settings.again,
            wakes_at: now,
            is_enough_said: false,
            is_completion_said: false,
            is_of_flash: false,
        }
    }

    /// When something has to be sent, or sent once more.
    pub fn wakes_at(&self) -> Time {
        self.wakes_at
    }

    /// Whether the chip holds what is wanted, but for what it does not take.
    pub fn is_complete(&self) -> bool {
        matches!(self.held, Held::Equal)
            || matches!(&self.plan, Some(plan) if plan.requests.is_empty() && !plan.is_outdated)
                && (self.is_of_flash || self.caller.under_way().is_none())
    }

    /// Whether nothing is to be done about registers, and no request is under way.
    pub fn is_free(&self) -> bool {
        self.is_complete() && self.is_idle()
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        self.caller.under_way().is_none()
    }

    /// Something is to be looked at then, at the latest.
    pub fn wake_by(&mut self, at: Time) {
        self.wakes_at = self.wakes_at.min(at);
    }

    /// The bytes of a request about firmware; nothing else is under way.
    pub fn ask(&mut self, now: Time, item: Item, counts: &mut Counts) -> Vec<u8> {
        self.is_of_flash = true;
        let bytes = self.caller.send(vec![item]).expect("none is under way, and it fits").to_vec();
        self.sent(now, bytes, counts)
    }

    /// Whether the chip holds all that comes first (M811), everything but the routes of others' cells: of what is wanted, or
    /// of what was when its programming was planned ([`Link::is_outdated`]).
    pub fn is_first_done(&self) -> bool {
        (matches!(self.held, Held::Equal) || self.plan.as_ref().is_some_and(|plan| plan.first == 0))
            && !self.is_first_under_way
    }

    /// Whether something else is wanted than what is being programmed.
    pub fn is_outdated(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.is_outdated)
    }

    /// What is wanted now is to be programmed next.
    pub fn plan_anew(&mut self) {
        self.plan = None;
    }

    /// Whether enough is programmed for a call through the Clique (M811), and nobody has been told. That something else is
    /// wanted by now does not matter: what was programmed fits together, and the way out that it knows is still one.
    pub fn has_news_of_enough(&mut self) -> bool {
        let leads_out = self.plan.as_ref().is_some_and(|plan| plan.leads_out);
        let is_enough = leads_out && self.is_first_done();
        is_enough && !std::mem::replace(&mut self.is_enough_said, true)
    }

    /// Whether everything is programmed, and nobody has been told since it last was not.
    pub fn has_news_of_completion(&mut self) -> bool {
        !std::mem::replace(&mut self.is_completion_said, true)
    }

    /// By PMOS a request can take minutes: what can wait is left for TCP.
    fn is_slow(&self) -> bool {
        self.over == Over::Pmos && self.has_taken_long
    }

    /// Something else is about to be wanted: what the chip holds is what has been wanted so far. Where requests are slow, the
    /// first ones of a plan go on: while TiNs near by become ready they would be begun again and again, and what has changed
    /// meanwhile is had sooner over TCP.
    pub fn intent_changes(&mut self, clique: &Clique, tin: u16, before: &Intent) {
        if matches!(self.held, Held::Equal) {
            self.held = Held::Known(before.image(clique, tin, &self.refused_groups()).into());
        }
        let (is_slow, is_first_under_way) = (self.is_slow(), self.is_first_under_way);
        let goes_on = |plan: &Plan| is_slow && (plan.first > 0 || is_first_under_way);
        self.plan = self.plan.take().filter(goes_on).map(|plan| Plan { is_outdated: true, ..plan });
        self.is_completion_said = false;
        self.wakes_at = Time::ZERO;
    }

    /// The bytes that are to be sent now, if any.
    pub fn send(
        &mut self,
        now: Time,
        clique: &Clique,
        tin: u16,
        intent: &Intent,
        counts: &mut Counts,
    ) -> Option<Vec<u8>> {
        if let Some(bytes) = self.caller.under_way() {
            let again = self.sent_at + self.again;
            if now < again {
                self.wakes_at = again;
                return None;
            }
            let bytes = bytes.to_vec();
            return self.limited(now, bytes.len()).then(|| self.sent(now, bytes, counts));
        }
        let items = self.next(clique, tin, intent)?;
        let size = crate::rpc::HEADER_BYTES + items.iter().map(Item::size).sum::<usize>();
        if !self.limited(now, size) {
            return None;
        }
        self.take();
        let bytes = self.caller.send(items).expect("none is under way, and it was packed").to_vec();
        Some(self.sent(now, bytes, counts))
    }

    fn limited(&mut self, now: Time, bytes: usize) -> bool {
        self.bucket.take(now, bytes).map_err(|at| self.wakes_at = at).is_ok()
    }

    fn sent(&mut self, now: Time, bytes: Vec<u8>, counts: &mut Counts) -> Vec<u8> {
        counts.requests += 1;
        (self.sent_at, self.wakes_at) = (now, now + self.again);
        bytes
    }

    /// What is to be asked for next; it stays so until [`Link::take`].
    fn next(&mut self, clique: &Clique, tin: u16, intent: &Intent) -> Option<Vec<Item>> {
        self.wakes_at = Time::NEVER;
        match &self.held {
            Held::Unknown => return Some(digests(intent)),
            Held::Read(_, reads) => return reads.front().cloned(),
            Held::Equal => return None,
            Held::Known(_) => {}
        }
        if self.plan.is_none() {
            self.plan = Some(self.work_out(clique, tin, intent));
        }
        let plan = self.plan.as_ref().expect("it was worked out");
        if self.is_slow() && plan.first == 0 && !plan.requests.is_empty() {
            // The others are for TCP (M811).
            return None;
        }
        let next = plan.requests.front().cloned();
        if next.is_none() && self.refused.is_empty() {
            self.held = Held::Equal;
        }
        next
    }

    /// The next is under way.
    fn take(&mut self) {
        match &mut self.held {
            Held::Read(_, reads) => drop(reads.pop_front()),
            Held::Known(_) => {
                let plan = self.plan.as_mut().expect("something was taken from it");
                plan.requests.pop_front();
                self.is_first_under_way = plan.first > 0;
                plan.first = plan.first.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn work_out(&self, clique: &Clique, tin: u16, intent: &Intent) -> Plan {
        let Held::Known(held) = &self.held else { unreachable!("it was read") };
        let image = intent.image(clique, tin, &self.refused_groups());
        let terminals = clique.topology.shape().external_ports();
        Plan::new(held, &image, terminals, intent.leads_out(), &self.refused)
    }

    /// An answer has come; what it says about firmware, if it does.
    pub fn answer(
        &mut self,
        now: Time,
        clique: &Clique,
        tin: u16,
        intent: &Intent,
        bytes: &[u8],
        counts: &mut Counts,
    ) -> Option<Outcome> {
        let Ok(mut pairs) = self.caller.receive(bytes) else {
            counts.stray += 1;
            return None;
        };
        self.wakes_at = Time::ZERO;
        self.has_taken_long |= now - self.sent_at >= LONG;
        if std::mem::take(&mut self.is_of_flash) {
            return pairs.pop().map(|(_, outcome)| outcome);
        }
        self.is_first_under_way = false;
        match std::mem::replace(&mut self.held, Held::Unknown) {
            Held::Unknown => {
                let image = intent.image(clique, tin, &BTreeSet::new());
                let (held, reads) = compare(image, &pairs);
                self.held = Held::Read(held.into(), pack(reads).into());
            }
            Held::Read(mut held, reads) => {
                let is_whole = pairs.iter().all(|pair| patch(&mut held, pair, counts));
                // Of a chip that does not let its registers be read nothing is known: once more from the beginning.
                if is_whole {
                    self.held = Held::Read(held, reads);
                }
            }
            Held::Known(mut held) => {
                for (item, outcome) in &pairs {
                    self.written(&mut held, item, outcome, counts);
                }
                self.held = Held::Known(held);
            }
            held => self.held = held,
        }
        if let Held::Read(_, reads) = &self.held
            && reads.is_empty()
            && let Held::Read(held, _) = std::mem::replace(&mut self.held, Held::Unknown)
        {
            self.held = Held::Known(held);
            self.plan = None;
        }
        None
    }

    fn written(
        &mut self,
        held: &mut RegisterFile,
        item: &Item,
        outcome: &Outcome,
        counts: &mut Counts,
    ) {
        let (address, size, bytes) = match item {
            Item::Write { address, entry } => (*address, entry.as_bytes().len(), entry.as_bytes()),
            Item::WriteBlock { address, size, bytes } => (*address, usize::from(*size), &bytes[..]),
            _ => return,
        };
        if *outcome == Outcome::Written {
            counts.entries += (bytes.len() / size) as u64;
            held.write_block(address, size, bytes).expect("what we wrote is in the description");
        } else {
            counts.refused += 1;
            self.refused.extend((address..address + bytes.len() as u32).step_by(size));
            self.plan = None;
        }
    }

    /// Whether a row is a group, and the chip has one of this number.
    pub fn has_group(&self, key: &Key) -> bool {
        let (Held::Known(held), Some(number)) = (&self.held, group_of(key)) else { return false };
        match key.0 {
            Table::Group => held.get(GROUP_SIZE, [number.into()]) > 0,
            _ => held.get(INDEXED_SUBNET, [number.into()]) != [0; ENTRY_BYTES_MAX],
        }
    }

    /// Weighted groups of which the chip does not take something.
    pub fn refused_groups(&self) -> BTreeSet<u16> {
        let group = |&address: &u32| match find(address) {
            Ok((register, at)) if REGISTERS[register].name == "group.size" => Some(at as u16),
            Ok((register, at)) if REGISTERS[register].name == "group.slot" => {
                Some((at / REGISTERS[register].dimensions[1]) as u16)
            }
            _ => None,
        };
        self.refused.iter().filter_map(group).collect()
    }

    /// Rows of which the chip does not take something.
    pub fn refused_rows(&self, clique: &Clique, tin: u16, intent: &Intent) -> BTreeSet<Key> {
        let row = |&address: &u32| intent.owner(clique, tin, address);
        self.refused.iter().filter_map(row).collect()
    }
}
