//! What programs record of packets inside of their switches, where these have an inside with lines of its own.

use std::collections::BTreeMap;

use kernel::Time;
use rack::NodeId;
use rack::trace::{Followed, Hop, LineRecorder, Tally};

use crate::net::{Name, owner};
use crate::packet::Packet;

/// Flows that are recorded, as far as any part of a network knows them: by their ends and when they are open.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// By source and destination.
    windows: BTreeMap<[u32; 2], Vec<[Time; 2]>>,
}

impl Chosen {
    pub(crate) fn new(followed: &[Followed]) -> Self {
        let mut windows: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for flow in followed {
            let pair = [flow.src.get(), flow.dst.get()];
            windows.entry(pair).or_default().push([flow.start, flow.end]);
        }
        Self { windows }
    }

    /// Whether a packet may be of one of them at `now`: which it is shows when all parts are put together.
    #[must_use]
    pub fn has(&self, packet: &Packet, now: Time) -> bool {
        self.wanted(packet, now).is_some()
    }

    /// The flow of a packet, if it may be one of them.
    pub(crate) fn wanted(&self, packet: &Packet, now: Time) -> Option<Name> {
        let name = owner(packet)?;
        let windows = self.windows.get(&[name.src.get(), name.dst.get()])?;
        windows.iter().any(|&[start, end]| start <= now && now <= end).then_some(name)
    }

    /// Who is at either end of one of them; some more than once.
    pub fn ends(&self) -> impl Iterator<Item = NodeId> {
        self.windows.keys().flatten().map(|&node| NodeId::new(node))
    }
}

/// What a packet did inside of switches, from when it came until it left by a port of the network.
#[derive(Clone, Debug)]
pub struct Inner {
    /// The packet as it came.
    pub packet: Packet,
    /// When.
    pub at: Time,
    /// Hops, by cell, and what went by while each waited. Their flow, number and who was beside them are the network's to
    /// say, and whether they carry bytes again.
    pub hops: Vec<(Hop, Tally<Name>)>,
    /// Since when it waited to leave, when it went on the port's line, and what did in between.
    pub leaves: Option<([Time; 2], Tally<Name>)>,
}

/// What a program has recorded.
#[derive(Clone, Debug)]
pub struct Inside {
    /// Packets, in the order in which they came.
    pub packets: Vec<Inner>,
    /// What lines inside carried, of all flows, by number of the port: the network's, and after them those in
    /// [`Inside::names`].
    pub lines: LineRecorder,
    /// What goes on them, as a link-layer header type of captures.
    pub link_type: u16,
    /// By port of the network: whether the program's cells go on its line.
    pub is_inner: Vec<bool>,
    /// Who sends on lines that the network does not know, and who is at the other end.
    pub names: Vec<[String; 2]>,
}
