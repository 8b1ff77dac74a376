//! What happens at chips, and on the way to them, in order of time.
//!
//! Models: Aquila §4.1 to §4.3 (M729): from the death of a link to the last register, stage by stage. Whoever has cells
//! move by what chips hold takes [`What::Written`] and [`What::Cold`] from here, and nothing else; the other entries say
//! why.

use aquila::topology::Topology;
use kernel::{Span, Time};

use super::results::Upgraded;
use super::{Config, Fault, Sim};
use crate::bootstrap::Stage;
use crate::firmware::chip::{Chip, LinkState};
use crate::registers::file::RegisterFile;

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// When.
    pub time: Time,
    /// What.
    pub what: What,
}

/// What can happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// Something of [`Config::faults`], or of [`Sim::fault`].
    Fault(Fault),
    /// A firmware has seen that a link has come up or gone down, and has said so in the chip's registers.
    LinkSeen {
        /// Whose firmware.
        tin: u16,
        /// At which port.
        port: u8,
        /// How far the link is.
        state: LinkState,
    },
    /// The base has been told which of a TiN's ports are up.
    RowWritten {
        /// Which TiN's.
        tin: u16,
        /// A bit each.
        up: u64,
    },
    /// The base has the next batch of routes.
    BatchWritten {
        /// Its number.
        number: u64,
    },
    /// All results of a batch are in, or given up.
    BatchComplete {
        /// Its number.
        number: u64,
    },
    /// A TiN has come to another stage.
    Stage {
        /// Which.
        tin: u16,
        /// To which.
        stage: Stage,
    },
    /// A chip holds other entries: [`RegisterFile::write_block`] with these does the same to another file.
    Written {
        /// Whose chip.
        tin: u16,
        /// Of the first entry.
        address: u32,
        /// Of an entry. Unit: bytes.
        size: u8,
        /// The entries, one after another.
        bytes: Vec<u8>,
    },
    /// A chip has been switched on, and holds nothing: its registers are as [`RegisterFile::new`] has them.
    Cold {
        /// Whose chip.
        tin: u16,
    },
}

/// What is being noted, while it is.
#[derive(Clone, Default, Debug)]
pub(super) struct Journal {
    entries: Option<Vec<Entry>>,
}

impl Sim {
    /// Notes what happens from now on.
    pub fn begin_journal(&mut self) {
        self.journal.entries = Some(Vec::new());
        self.chips.iter_mut().for_each(|chip| chip.registers.record());
    }

    /// What has been noted since this was asked last, in order of time.
    pub fn take_journal(&mut self) -> Vec<Entry> {
        self.journal.entries.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn note(&mut self, what: What) {
        let time = self.now;
        if let Some(entries) = &mut self.journal.entries {
            entries.push(Entry { time, what });
        }
    }

    /// Takes over what a chip was written with.
    pub(super) fn note_written(&mut self, tin: u16) {
        if self.journal.entries.is_none() {
            return;
        }
        for (address, size, bytes) in self.chips[usize::from(tin)].registers.recorded() {
            self.note(What::Written { tin, address, size, bytes });
        }
    }

    /// A chip has been switched on.
    pub(super) fn note_cold(&mut self, tin: u16) {
        if self.journal.entries.is_some() {
            self.chips[usize::from(tin)].registers.record();
            self.note(What::Cold { tin });
        }
    }
}

/// A Clique that is up at time zero: all TiNs are ready, chips hold what they are to hold, the controller has its sessions.
///
/// Time zero is some simulated seconds after the controller has begun to call TiNs that hold all this already; all times
/// here are counted from it.
///
/// ```
/// use aquila::topology::Shape;
/// use aquila_control::sim::journal::{Booted, What};
/// use aquila_control::sim::{Config, Fault};
/// use kernel::{Span, Time};
///
/// let mut config = Config::new(&Shape::TINY, vec![0, 7], 1);
/// let at = Time::ZERO + Span::from_us(1_000_000);
/// config.faults = vec![(at, Fault::Link { link: 3, is_up: false })];
/// let mut clique = Booted::new(config);
/// let registers: Vec<_> = clique.chips().iter().map(|chip| chip.registers.clone()).collect();
/// let entries = clique.run_to(at + Span::from_us(20_000_000));
/// assert_eq!(entries[0].time, at);
/// assert!(entries.iter().any(|entry| matches!(entry.what, What::Written { .. })));
/// # let _ = registers;
/// ```
#[derive(Debug)]
pub struct Booted {
    pub(super) sim: Sim,
    start: Time,
}

/// By when a Clique that holds everything is called (our choice): nine rounds of calls for the full one, and patience.
const UP_BY: Span = Span::from_us(600_000_000);

impl Booted {
    /// A Clique that is up, in which `config.faults` are to happen, at times from its own zero; `limit` is counted so, too.
    ///
    /// # Panics
    /// If there is no such Clique, or it cannot be up: nobody is connected to the datacenter's network.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (faults, limit) = (config.faults.clone(), config.limit);
        let until = Time::ZERO + UP_BY;
        let mut sim = Sim::up(Config { faults: Vec::new(), limit: until, ..config });
        assert!(sim.run(), "it is not up after {} s", sim.now().as_seconds());
        let start = sim.now();
        let since = |time: Time| start + (time - Time::ZERO);
        sim.set_limit(since(limit));
        sim.add_faults(faults.into_iter().map(|(time, fault)| (since(time), fault)));
        sim.begin_journal();
        Self { sim, start }
    }

    /// The chips, as they are now.
    #[must_use]
    pub fn chips(&self) -> &[Chip] {
        self.sim.chips()
    }

    /// Who is wired to whom.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        self.sim.topology()
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::ZERO + (self.sim.now() - self.start)
    }

    /// Whether all TiNs that have power are ready, and hold what they are to hold.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.sim.is_done()
    }

    /// Whether it is done with all that has happened: links are up that can be, the base knows of it, and
    /// [`Booted::is_done`].
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.sim.is_upgraded() && self.sim.is_seen() && self.sim.is_done()
    }

    /// TiNs that had a part in the upgrade that was asked for last.
    #[must_use]
    pub fn upgraded(&self) -> Vec<(u16, Upgraded)> {
        let own = |time: Time| Time::ZERO + (time - self.start);
        let of = |(&tin, one): (&u16, &Upgraded)| {
            let Upgraded { begun, restarted, done, .. } = *one;
            let [begun, restarted, done] = [begun, restarted, done].map(|time| time.map(own));
            (tin, Upgraded { begun, restarted, done, ..*one })
        };
        self.sim.results.upgraded.iter().map(of).collect()
    }

    /// Something happens, now.
    pub fn fault(&mut self, fault: Fault) {
        self.sim.fault(fault);
    }

    /// Goes on until a time; what has happened, in order of time.
    pub fn run_to(&mut self, time: Time) -> Vec<Entry> {
        self.sim.run_to(self.start + (time - Time::ZERO));
        let mut entries = self.sim.take_journal();
        for entry in &mut entries {
            entry.time = Time::ZERO + (entry.time - self.start);
        }
        entries
    }
}

/// Does to register files, one a TiN, what an entry says.
///
/// # Panics
/// If there is no file for its TiN.
pub fn replay(entry: &Entry, files: &mut [RegisterFile]) {
    match &entry.what {
        What::Written { tin, address, size, bytes } => {
            let file = &mut files[usize::from(*tin)];
            file.write_block(*address, (*size).into(), bytes).expect("a chip has taken it");
        }
        What::Cold { tin } => files[usize::from(*tin)] = RegisterFile::new(),
        _ => {}
    }
}
