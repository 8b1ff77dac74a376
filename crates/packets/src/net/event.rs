//! What happens at an instant.

use crate::packet::FlowKey;

/// An event of the network: 12 bytes, so that one with its time and links is 24.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A packet is there by the port.
    Arrive {
        /// Its place in the arena.
        packet: u32,
        /// The port by which it comes.
        port: u32,
    },
    /// The line of a port is free.
    Free {
        /// The port.
        port: u32,
    },
    /// A host asked to be asked for packets.
    Alarm {
        /// The host.
        host: u32,
    },
    /// A transport's timer may be due.
    Timer {
        /// Its place.
        index: u32,
        /// Which setting of it.
        generation: u32,
    },
    /// A flow that was offered early starts.
    Start {
        /// Its key.
        flow: FlowKey,
    },
    /// A packet of a flow has left the other end (per-flow backpressure).
    Room {
        /// The port that may send one more.
        port: u32,
        /// The flow.
        flow: FlowKey,
    },
    /// Something breaks.
    Break {
        /// Which fault.
        fault: u32,
    },
    /// Something works again.
    Mend {
        /// Which fault.
        fault: u32,
    },
    /// All switches know what works.
    Converge,
}

const _: () = assert!(size_of::<Event>() == 12);
