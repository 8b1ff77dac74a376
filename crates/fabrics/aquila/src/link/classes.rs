//! Traffic classes, virtual channels, kinds of cells.
//!
//! Models: Aquila §3.1 to §3.4 (M208 to M211, M308, M427): ten classes of three virtual channels, and two more
//! for escapes. What each class carries and how it is served is **our choice** (U19, U57), and data: an
//! engine is handed a table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tables::ROUTING_VCS;

/// Traffic classes (§3.2).
pub const CLASSES: u8 = 10;
/// Virtual channels of a link (§3.1).
pub const VCS: u8 = 32;
/// The escape channel of cells that may wait at their sink (M308, our choice).
pub const ESCAPE_WAITING: u8 = 30;
/// The escape channel of cells that never do (M308, our choice).
pub const ESCAPE_SINKING: u8 = 31;

/// The virtual channel of a class and routing channel (M209).
#[inline]
#[must_use]
pub const fn vc(class: u8, rvc: u8) -> u8 {
    ROUTING_VCS * class + rvc
}

/// The class and routing channel of a virtual channel; `None`: an escape channel, or none at all.
#[inline]
#[must_use]
pub const fn class_of(vc: u8) -> Option<(u8, u8)> {
    if vc < ESCAPE_WAITING { Some((vc / ROUTING_VCS, vc % ROUTING_VCS)) } else { None }
}

/// What a cell is (M208; the numbers are our choice).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum CellKind {
    /// Request to send.
    Rts = 0,
    /// Clear to send.
    Cts = 1,
    /// Clear to drop.
    Ctd = 2,
    /// Part of a packet.
    Data = 3,
    /// Request for remote memory to be read.
    Req = 4,
    /// What was read.
    Resp = 5,
    /// Request for a write or an atomic operation.
    WriteReq = 6,
    /// Why nothing was read.
    RespError = 7,
    /// From control processor to control processor.
    Raw = 8,
}

impl CellKind {
    /// All of them, by number.
    pub const ALL: [Self; 9] = [
        Self::Rts,
        Self::Cts,
        Self::Ctd,
        Self::Data,
        Self::Req,
        Self::Resp,
        Self::WriteReq,
        Self::RespError,
        Self::Raw,
    ];

    /// The kind of this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        if (number as usize) < Self::ALL.len() { Some(Self::ALL[number as usize]) } else { None }
    }

    /// Whether it may have to wait at its sink; others have space there before they are sent (M211).
    #[must_use]
    pub const fn may_wait(self) -> bool {
        matches!(self, Self::Rts | Self::Req | Self::WriteReq | Self::Raw)
    }

    /// The escape channel that it takes (M308).
    #[must_use]
    pub const fn escape(self) -> u8 {
        if self.may_wait() { ESCAPE_WAITING } else { ESCAPE_SINKING }
    }

    /// The class that it belongs to, of those of a half (M210).
    #[must_use]
    pub const fn class(self, half: Half) -> u8 {
        let low_latency = match self {
            Self::Rts => 0,
            Self::Cts | Self::Ctd | Self::Req => 1,
            Self::Data | Self::Resp | Self::RespError => 2,
            Self::WriteReq => 3,
            Self::Raw => return 4,
        };
        match (half, self) {
            (Half::LowLatency, _) => low_latency,
            (Half::Bulk, Self::WriteReq) => 9,
            (Half::Bulk, _) => low_latency + 5,
        }
    }

    /// The virtual channels that its cells of a half may be in, a bit each (M209, M308).
    #[must_use]
    pub const fn channels(self, half: Half) -> u32 {
        channels(self.class(half)) | 1 << self.escape()
    }
}

/// The virtual channels of a class, without escapes, a bit each (M209).
const fn channels(class: u8) -> u32 {
    ((1 << ROUTING_VCS) - 1) << vc(class, 0)
}

/// The virtual channels of cells that have space at their sink before they are sent, and alone among themselves, a bit
/// each: no endpoint may refuse them (M211, I08). Clearances have it, too, and share a class with requests.
pub const ALWAYS_TAKEN: u32 = {
    let mut of = 1 << ESCAPE_SINKING | channels(SCAVENGER);
    let mut kind = 0;
    while kind < CellKind::ALL.len() {
        if matches!(CellKind::ALL[kind], CellKind::Data | CellKind::Resp | CellKind::RespError) {
            of |= CellKind::ALL[kind].channels(Half::LowLatency);
            of |= CellKind::ALL[kind].channels(Half::Bulk);
        }
        kind += 1;
    }
    of
};

/// The class of data that goes when nothing else does (M427).
pub const SCAVENGER: u8 = 8;

/// Half of the virtual channels (§3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Half {
    /// Messages that are to be fast.
    LowLatency,
    /// Everything else.
    Bulk,
}

/// The half of packets of a class of service, 0 to 7 (M427, our choice): 5 to 7 are to be fast.
#[must_use]
pub const fn half_of(class_of_service: u8) -> Half {
    if class_of_service >= 5 { Half::LowLatency } else { Half::Bulk }
}

/// The class of data of a class of service, 0 to 7 (M427, our choice): 0 is the scavenger's.
#[must_use]
pub const fn data_class(class_of_service: u8) -> u8 {
    if class_of_service == 0 { SCAVENGER } else { CellKind::Data.class(half_of(class_of_service)) }
}

/// How a switch chooses among the output ports of an entry (M314).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Two of shortest ways and three of others, by their queues, the shortest preferred.
    FullyAdaptive,
    /// Two of shortest ways, by their queues.
    MinimalAdaptive,
    /// Any, by a hash of source and destination.
    Deterministic,
    /// One of shortest ways, by a hash of source and destination.
    MinimalDeterministic,
}

/// How an output port serves a virtual channel (M108).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Higher levels go first, whatever waits below. From 0 to 3.
    #[schemars(range(max = 3))]
    pub level: u8,
    /// The share among those of a level, by bytes. From 1 to 255.
    #[schemars(range(min = 1))]
    pub weight: u8,
}

/// What a class is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Which half of the channels its are in.
    pub half: Half,
    /// Whether cells of it may have to wait at their sink.
    pub may_wait: bool,
    /// How its cells are routed.
    pub mode: Mode,
    /// How output ports serve it.
    pub service: Service,
}

/// How many strict levels there are (M210).
pub const LEVELS: u8 = 4;

const fn class(half: Half, may_wait: bool, mode: Mode, level: u8, weight: u8) -> Class {
    Class { half, may_wait, mode, service: Service { level, weight } }
}

/// The ten classes (M210, our choice).
pub const DEFAULT: [Class; CLASSES as usize] = {
    use Half::{Bulk, LowLatency};
    use Mode::{Deterministic, FullyAdaptive, MinimalDeterministic};
    [
        class(LowLatency, true, MinimalDeterministic, 3, 1),
        class(LowLatency, true, FullyAdaptive, 3, 1),
        class(LowLatency, false, FullyAdaptive, 2, 1),
        class(LowLatency, true, FullyAdaptive, 2, 1),
        class(LowLatency, true, MinimalDeterministic, 3, 1),
        class(Bulk, true, MinimalDeterministic, 1, 1),
        class(Bulk, true, FullyAdaptive, 1, 1),
        class(Bulk, false, FullyAdaptive, 0, 8),
        class(Bulk, false, FullyAdaptive, 0, 1),
        class(Bulk, true, Deterministic, 0, 1),
    ]
};

/// How output ports serve the escape channels (our choice: what has to make way for failures goes before bulk,
/// and holds up no message that is to be fast).
pub const ESCAPE_SERVICE: Service = Service { level: 1, weight: 1 };

/// How output ports serve each virtual channel, where classes are like these.
#[must_use]
pub fn services(classes: &[Class; CLASSES as usize]) -> [Service; VCS as usize] {
    std::array::from_fn(|vc| match class_of(vc as u8) {
        Some((class, _)) => classes[usize::from(class)].service,
        None => ESCAPE_SERVICE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m209_ten_classes_of_three_channels_and_two_escapes() {
        let mut seen = Vec::new();
        for class in 0..CLASSES {
            for rvc in 0..ROUTING_VCS {
                assert_eq!(class_of(vc(class, rvc)), Some((class, rvc)));
                seen.push(vc(class, rvc));
            }
        }
        seen.extend([ESCAPE_WAITING, ESCAPE_SINKING]);
        assert_eq!(seen, (0..VCS).collect::<Vec<_>>());
        assert_eq!((class_of(30), class_of(31)), (None, None));
    }

    #[test]
    fn a39_half_of_the_channels_are_for_messages_that_are_to_be_fast() {
        let is_fast = |class: &&Class| class.half == Half::LowLatency;
        let fast = DEFAULT.iter().filter(is_fast).count() * usize::from(ROUTING_VCS) + 1;
        assert_eq!(fast, 16);
    }

    #[test]
    fn m211_what_never_waits_shares_no_class_with_what_may() {
        for half in [Half::LowLatency, Half::Bulk] {
            for kind in CellKind::ALL {
                let class = DEFAULT[usize::from(kind.class(half))];
                // Class 1 has requests, which may wait, and clearances, which never do: they are on the way
                // to data, and a request waits for no clearance.
                let is_clearance = matches!(kind, CellKind::Cts | CellKind::Ctd);
                assert!(kind.may_wait() == class.may_wait || is_clearance, "{kind:?}");
                assert!(class.half == half || kind == CellKind::Raw, "{kind:?}");
            }
        }
        assert_ne!(CellKind::WriteReq.class(Half::Bulk), CellKind::Req.class(Half::Bulk));
        assert_ne!(
            CellKind::WriteReq.class(Half::LowLatency),
            CellKind::Req.class(Half::LowLatency)
        );
    }

    /// I08, with what endpoints refuse: requests alone, IP's at its own ports and memory's at its own.
    #[test]
    fn i08_nobody_refuses_what_has_space_already() {
        for half in [Half::LowLatency, Half::Bulk] {
            let solicited = [CellKind::Cts, CellKind::Ctd, CellKind::Data, CellKind::Resp];
            for kind in solicited.into_iter().chain([CellKind::RespError]) {
                assert_eq!(kind.channels(half) & CellKind::Rts.channels(half), 0, "{kind:?}");
            }
            for kind in [CellKind::Rts, CellKind::Req, CellKind::WriteReq] {
                assert_eq!(kind.channels(half) & ALWAYS_TAKEN, 0, "{kind:?}");
            }
        }
        // Two classes of data and the scavenger's, of three channels, and an escape.
        assert_eq!(ALWAYS_TAKEN.count_ones(), 3 * 3 + 1);
    }

    #[test]
    fn m308_escapes_are_by_kind_not_by_half() {
        for kind in CellKind::ALL {
            assert_eq!(kind.escape() == ESCAPE_WAITING, kind.may_wait());
            assert_eq!(CellKind::from_number(kind as u8), Some(kind));
        }
        assert_eq!(CellKind::from_number(9), None);
    }

    #[test]
    fn m427_classes_of_service_have_their_halves() {
        assert_eq!((0..8).map(data_class).collect::<Vec<_>>(), [8, 7, 7, 7, 7, 2, 2, 2]);
    }
}
