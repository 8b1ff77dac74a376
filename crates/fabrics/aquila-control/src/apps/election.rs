//! Which instance of an application leads.
//!
//! Models: Aquila §4.1 (M701, I79): redundant instances of each application. **Our choice**: one leads and the others
//! wait; a lease of 3 s in the base, which the leader renews each second. Instances measure time by their own clocks
//! and compare none: who has seen no renewal for 3 s takes the next term. That two believe they lead for a while
//! cannot be ruled out; that both change anything can, as the base refuses what another term has followed
//! ([`Fence`]), and the front end and the flow manager know each other's terms.

use kernel::{Span, Time};

use crate::nib::{Change, Fence, Table, Write};

/// How long nobody else takes over without a renewal (M701).
pub const LEASE: Span = Span::from_us(3_000_000);
/// How often a leader renews (our choice): two renewals may be lost.
pub const RENEWAL: Span = Span::from_us(1_000_000);

/// An application of the constellation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Application {
    /// Computes routes.
    RoutingEngine = 0,
    /// Puts operations in order.
    FlowManager = 1,
    /// Writes registers.
    FrontEnd = 2,
    /// Speaks with the inter-block routing controllers.
    InterBlock = 3,
}

impl Application {
    /// All of them, by number.
    pub const ALL: [Self; 4] =
        [Self::RoutingEngine, Self::FlowManager, Self::FrontEnd, Self::InterBlock];

    /// Its key in the table of leases.
    #[must_use]
    pub fn key(self) -> Vec<u8> {
        vec![self as u8]
    }
}

/// An instance's part in the election of its application's leader.
#[derive(Clone, Debug)]
pub struct Election {
    application: Application,
    instance: u8,
    /// The lease, as last seen, and since when by our clock.
    lease: Lease,
    seen_at: Time,
    /// When we last asked for the lease, or renewed it.
    wrote_at: Option<Time>,
    /// The term that we have asked for in this life.
    asked: Option<u64>,
    leads: Option<u64>,
}

/// The row of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Lease {
    version: u64,
    term: u64,
    holder: u8,
    renewals: u64,
}

impl Lease {
    fn decode(version: u64, value: &[u8]) -> Option<Self> {
        let (term, rest) = value.split_first_chunk::<8>()?;
        let (&[holder], renewals) = rest.split_first_chunk::<1>()?;
        let renewals = u64::from_be_bytes(renewals.try_into().ok()?);
        Some(Self { version, term: u64::from_be_bytes(*term), holder, renewals })
    }

    fn encode(&self) -> Vec<u8> {
        let Self { term, holder, renewals, .. } = self;
        [&term.to_be_bytes()[..], &[*holder], &renewals.to_be_bytes()].concat()
    }
}

impl Election {
    /// An instance that has just started, and follows.
    #[must_use]
    pub fn new(application: Application, instance: u8, now: Time) -> Self {
        let lease = Lease::default();
        Self {
            application,
            instance,
            lease,
            seen_at: now,
            wrote_at: None,
            asked: None,
            leads: None,
        }
    }

    /// Under what its writes count, while it believes that it leads.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.leads.map(|term| Fence { application: self.application.key(), term })
    }

    /// Its term, while it believes that it leads.
    #[must_use]
    pub fn term(&self) -> Option<u64> {
        self.leads
    }

    /// A row of the base has changed. Whoever holds the lease, leads; who does not, follows.
    pub fn learn(&mut self, now: Time, change: &Change) {
        if change.key != (Table::Lease, self.application.key())
            || change.version <= self.lease.version
        {
            return;
        }
        let value = change.value.as_deref().unwrap_or_default();
        let none = Lease { version: change.version, ..Lease::default() };
        self.lease = Lease::decode(change.version, value).unwrap_or(none);
        self.seen_at = now;
        // A former life of this instance may have had the term: only one that we asked for is ours.
        let is_ours = self.lease.holder == self.instance && self.asked == Some(self.lease.term);
        self.leads = is_ours.then_some(self.lease.term);
    }

    /// Time goes on: what is to be written, if anything. The base takes it only if nobody else has written the lease.
    pub fn tick(&mut self, now: Time) -> Option<Write> {
        let since = |at: Option<Time>| at.is_none_or(|at| now - at >= RENEWAL);
        let is_silent = now - self.seen_at >= LEASE;
        if self.leads.is_some() && is_silent {
            // Somebody else may have it by now.
            self.leads = None;
        }
        let next = match self.leads {
            Some(_) => Lease { renewals: self.lease.renewals + 1, ..self.lease },
            None if is_silent || self.lease.version == 0 => {
                Lease { term: self.lease.term + 1, holder: self.instance, ..Lease::default() }
            }
            None => return None,
        };
        if !since(self.wrote_at) {
            return None;
        }
        self.wrote_at = Some(now);
        self.asked = Some(next.term);
        let value = Some(next.encode());
        let key = (Table::Lease, self.application.key());
        Some(Write { key, value, expected: Some(self.lease.version) })
    }
}
