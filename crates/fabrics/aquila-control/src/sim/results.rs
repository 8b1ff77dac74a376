//! What a bootstrap was like.

use std::collections::BTreeMap;

use kernel::{Span, Time};

use super::path::Lost;
use crate::apps::front_end::upgrade::{self, FirmwareRow, PlanRow};
use crate::bootstrap::{self, Stage};
use crate::dhcp;
use crate::{nib, pmos};

/// A TiN's bootstrap.
#[derive(Clone, Debug, Default)]
pub struct Tin {
    /// When it was switched on.
    pub powered: Time,
    /// When its control processor had an address, as far as the controller knows: those that ask the datacenter's network
    /// themselves do not tell it.
    pub addressed: Option<Time>,
    /// When its programming began: by PMOS, or over TCP.
    pub begun: Option<Time>,
    /// Through whom it was programmed: the proxy and its port. `None`: through nobody.
    pub proxy: Option<(u16, u8)>,
    /// When its session over TCP began.
    pub connected: Option<Time>,
    /// When it was ready for the first time.
    pub ready: Option<Time>,
    /// Links to the datacenter's network through proxies: 0 of those that are connected to it themselves.
    pub wave: u16,
    /// How often its programming was begun by PMOS.
    pub tries: u32,
    /// The most memory that its firmware ever had in use (X13). Unit: bytes.
    pub memory_peak: u32,
}

impl Tin {
    /// From the beginning of its programming until it was ready.
    #[must_use]
    pub fn took(&self) -> Option<Span> {
        Some(self.ready? - self.begun?)
    }
}

/// A TiN's part in an upgrade, as the base has it (M617).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Upgraded {
    /// When its image was begun.
    pub begun: Option<Time>,
    /// When it was told to restart, the last time.
    pub restarted: Option<Time>,
    /// When it was back, and held what it was to hold.
    pub done: Option<Time>,
    /// When it ended with it.
    pub ended: Option<Time>,
    /// Which version it runs.
    pub runs: u16,
    /// Why it does not run what it was to run.
    pub failed: Option<upgrade::Failure>,
}

/// A change of a TiN's stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// When.
    pub time: Time,
    /// Whose.
    pub tin: u16,
    /// To which.
    pub stage: Stage,
    /// By PMOS: through whom.
    pub via: Option<(u16, u8)>,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Results {
    /// By TiN.
    pub tins: Vec<Tin>,
    /// In order of time: who booted whom, and when.
    pub changes: Vec<Change>,
    /// TiNs that have been ready.
    pub ready_count: usize,
    /// When all were, for the first time.
    pub all_ready: Option<Time>,
    /// The upgrade that was asked for last.
    pub plan: Option<PlanRow>,
    /// By TiN that had a part in it.
    pub upgraded: BTreeMap<u16, Upgraded>,
    /// When it was looked at last.
    pub end: Time,
    /// Of the session manager.
    pub sessions: bootstrap::Counts,
    /// Of the DHCP server.
    pub leases: dhcp::Counts,
    /// Batches of routes.
    pub batches: u64,
    /// What the rows of the base take.
    pub base: nib::Sizes,
    /// Entries of registers that were written.
    pub entries: u64,
    /// Words of PMOS that went, and those of them that were lost.
    pub words: u64,
    /// The same.
    pub words_lost: u64,
    /// Frames of PMOS that arrived, and those that were sent again.
    pub frames: u64,
    /// The same.
    pub frames_again: u64,
    /// Packets of the control plane that were sent, of IPv4 and of IPv6.
    pub packets: [u64; 2],
    /// Those that crossed the Clique.
    pub crossed: u64,
    /// Times that such a packet passed a TiN that has not been ready (I82: never).
    pub passed_unready: u64,
    /// Packets of the control plane that were lost, by [`Lost`].
    pub lost: [u64; Lost::ALL.len()],
    /// Registers that were reported.
    pub reports: u64,
    /// Firmware that did not start, as its memory did not suffice (I74: never).
    pub out_of_memory: u64,
    /// Firmware that did not start, as no image was whole (M617: never).
    pub without_image: u64,
    /// Events of the simulation.
    pub events: u64,
}

impl Results {
    pub(super) fn new(tins: u16, connected: &[u16]) -> Self {
        let mut all = vec![Tin { wave: u16::MAX, ..Tin::default() }; usize::from(tins)];
        connected.iter().for_each(|&tin| all[usize::from(tin)].wave = 0);
        Self {
            tins: all,
            changes: Vec::new(),
            ready_count: 0,
            all_ready: None,
            plan: None,
            upgraded: BTreeMap::new(),
            end: Time::ZERO,
            sessions: bootstrap::Counts::default(),
            leases: dhcp::Counts::default(),
            batches: 0,
            base: nib::Sizes::default(),
            entries: 0,
            words: 0,
            words_lost: 0,
            frames: 0,
            frames_again: 0,
            packets: [0; 2],
            crossed: 0,
            passed_unready: 0,
            lost: [0; Lost::ALL.len()],
            reports: 0,
            out_of_memory: 0,
            without_image: 0,
            events: 0,
        }
    }

    /// Of a firmware that runs no more, or no further: what it has counted ends with it.
    pub(super) fn add_frames(&mut self, counts: pmos::Counts) {
        self.frames += counts.delivered;
        self.frames_again += counts.sent_again;
    }

    pub(super) fn on_stage(&mut self, time: Time, tin: u16, stage: Stage, via: Option<(u16, u8)>) {
        self.changes.push(Change { time, tin, stage, via });
        let wave = via.map(|(proxy, _)| self.tins[usize::from(proxy)].wave.saturating_add(1));
        let place = &mut self.tins[usize::from(tin)];
        if place.ready.is_some() {
            return;
        }
        match stage {
            Stage::Waiting | Stage::Reconnecting => {}
            Stage::Addressed => place.addressed = place.addressed.or(Some(time)),
            Stage::Pmos => {
                place.tries += 1;
                (place.begun, place.proxy) = (Some(time), via);
                place.wave = wave.unwrap_or(place.wave);
            }
            Stage::Tcp => {
                place.connected = Some(time);
                place.begun = place.begun.or(Some(time));
                if place.proxy.is_none() {
                    place.wave = 0;
                }
            }
            Stage::Ready => {
                place.ready = Some(time);
                self.ready_count += 1;
                if self.ready_count == self.tins.len() {
                    self.all_ready = Some(time);
                }
            }
        }
    }

    /// Whether nothing more comes of an upgrade, if one was asked for, of so many TiNs that have power.
    pub(super) fn is_upgraded(&self, tins: usize) -> bool {
        let all = || self.upgraded.values();
        let has_failed = all().any(|one| one.failed.is_some());
        let restarts =
            |one: &Upgraded| one.restarted.is_some() && one.done.is_none() && one.failed.is_none();
        self.plan.is_none()
            || all().filter(|one| one.done.is_some()).count() >= tins
            || has_failed && !all().any(restarts)
    }

    /// Rows about firmware have changed.
    pub(super) fn on_firmware(&mut self, time: Time, changes: &[nib::Change]) {
        let Some(plan) = self.plan else { return };
        for change in changes {
            let (Ok(tin), Some(value)) = (change.key.1[..].try_into(), &change.value) else {
                continue;
            };
            let row = FirmwareRow::decode(value).filter(|row| row.number == plan.number);
            let Some(row) = row else { continue };
            let place = self.upgraded.entry(u16::from_be_bytes(tin)).or_default();
            place.runs = row.runs;
            match row.stage {
                // It was left with what it runs.
                upgrade::Stage::Idle => place.restarted = None,
                upgrade::Stage::Sending => place.begun = place.begun.or(Some(time)),
                upgrade::Stage::Restarting => {
                    // The version that it says when it is back is another change of the row.
                    let is_told = row.runs != plan.header.version || place.restarted.is_none();
                    place.restarted = if is_told { Some(time) } else { place.restarted };
                }
                upgrade::Stage::Done => place.done = Some(time),
                upgrade::Stage::Failed(why) => {
                    place.failed = Some(why);
                    place.ended = place.ended.or(Some(time));
                }
            }
        }
    }

    /// Times from the beginning of programming to ready, sorted: of all, or of those of some waves.
    #[must_use]
    pub fn times(&self, is_of: impl Fn(&Tin) -> bool) -> Vec<Span> {
        let mut times: Vec<Span> =
            self.tins.iter().filter(|tin| is_of(tin)).filter_map(Tin::took).collect();
        times.sort_unstable();
        times
    }

    /// The most memory that any firmware had in use. Unit: bytes.
    #[must_use]
    pub fn memory_peak(&self) -> u32 {
        self.tins.iter().map(|tin| tin.memory_peak).max().unwrap_or(0)
    }

    /// How many TiNs were booted in each wave: the first are those connected to the datacenter's network.
    #[must_use]
    pub fn waves(&self) -> Vec<usize> {
        let mut waves = Vec::new();
        for tin in self.tins.iter().filter(|tin| tin.ready.is_some() && tin.wave != u16::MAX) {
            let at = usize::from(tin.wave);
            waves.resize(waves.len().max(at + 1), 0);
            waves[at] += 1;
        }
        waves
    }
}
