//! Shows that switch schedules are free of contention and do what the fabric should.
//!
//! Models: Shoal §3.2 (claims S12, S15). The checker sees only port maps and wires: it follows each
//! circuit from the sender through the switches and never asks how the maps were made.

use ::rack::NodeId;

use super::{Clos, End, PositionMaps, Switch, SwitchSchedules};

/// What is wrong with a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// A node is connected to itself or to a node outside the rack.
    #[error("position {position}: {from} is connected to {to}")]
    NoPeer {
        /// Position of the epoch.
        position: u32,
        /// Who sends.
        from: NodeId,
        /// To whom.
        to: NodeId,
    },
    /// Two nodes are connected to a third at once.
    #[error("position {position}: {} and {} both send to {to}", senders[0], senders[1])]
    TwoSenders {
        /// Position of the epoch.
        position: u32,
        /// Who receives.
        to: NodeId,
        /// Who sends.
        senders: [NodeId; 2],
    },
    /// A pair meets more than once in an epoch.
    #[error("{from} meets {to} in positions {} and {}", positions[0], positions[1])]
    PairTwice {
        /// Who sends.
        from: NodeId,
        /// To whom.
        to: NodeId,
        /// When.
        positions: [u32; 2],
    },
    /// A pair never meets.
    #[error("{from} never meets {to}")]
    PairNever {
        /// Who would send.
        from: NodeId,
        /// To whom.
        to: NodeId,
    },
    /// Two circuits of a switch want the same port.
    #[error(
        "position {position}: ports {} and {} of {switch:?} both lead to port {egress}",
        ingress[0], ingress[1]
    )]
    Contention {
        /// Position of the epoch.
        position: u32,
        /// Where.
        switch: Switch,
        /// The port that both want.
        egress: u32,
        /// Where the two come from.
        ingress: [u32; 2],
    },
    /// A circuit leads to a port that is wired to nothing.
    #[error(
        "position {position}: port {ingress} of {switch:?} leads to port {egress}, which leads \
         nowhere"
    )]
    Nowhere {
        /// Position of the epoch.
        position: u32,
        /// Where.
        switch: Switch,
        /// Where the circuit comes from.
        ingress: u32,
        /// Where it leads.
        egress: u32,
    },
    /// The switches together connect a node to another than the fabric's schedule says.
    #[error(
        "position {position}: the switches connect {from} to {found:?}, the schedule to \
         {scheduled:?}"
    )]
    WrongPeer {
        /// Position of the epoch.
        position: u32,
        /// Who sends.
        from: NodeId,
        /// To whom the circuits lead; `None`: to nobody.
        found: Option<NodeId>,
        /// To whom they should.
        scheduled: Option<NodeId>,
    },
    /// A cell crosses more or fewer switches than every other.
    #[error("position {position}: {from} is {found} switches from its peer, not {expected}")]
    Hops {
        /// Position of the epoch.
        position: u32,
        /// Who sends.
        from: NodeId,
        /// Switches that it crosses.
        found: u32,
        /// Switches that it should.
        expected: u32,
    },
}

/// Checks every position of an epoch: no contention, the schedule realised, equal distances.
///
/// # Errors
/// The first violation found.
pub fn prove_contention_free(
    schedules: &SwitchSchedules,
    peer: impl Fn(NodeId, u32) -> Option<NodeId>,
) -> Result<(), Violation> {
    for position in 0..schedules.positions() {
        let maps = schedules.maps(position);
        check_position(schedules.clos(), position, &maps, |from| peer(from, position))?;
    }
    Ok(())
}

/// Checks the switches of the plane in one position against the schedule, `peer`.
///
/// # Errors
/// The first violation found.
pub fn check_position(
    clos: &Clos,
    position: u32,
    maps: &PositionMaps,
    peer: impl Fn(NodeId) -> Option<NodeId>,
) -> Result<(), Violation> {
    for (switch, map) in clos.switch_list().zip(&maps.maps) {
        check_switch(clos, position, switch, map)?;
    }
    for from in (0..clos.nodes()).map(NodeId::new) {
        let (found, hops) = follow(clos, maps, from);
        let scheduled = peer(from);
        if found != scheduled {
            return Err(Violation::WrongPeer { position, from, found, scheduled });
        }
        if found.is_some() && hops != clos.hops() {
            return Err(Violation::Hops { position, from, found: hops, expected: clos.hops() });
        }
    }
    Ok(())
}

/// No two circuits of a switch lead to the same port, and each leads somewhere.
fn check_switch(
    clos: &Clos,
    position: u32,
    switch: Switch,
    map: &[Option<u32>],
) -> Result<(), Violation> {
    let mut taken: Vec<Option<u32>> = vec![None; clos.radix() as usize];
    for (ingress, egress) in map.iter().enumerate() {
        let (ingress, Some(egress)) = (ingress as u32, *egress) else { continue };
        if clos.wire(switch, egress).is_none() {
            return Err(Violation::Nowhere { position, switch, ingress, egress });
        }
        if let Some(other) = taken[egress as usize].replace(ingress) {
            let ingress = [other, ingress];
            return Err(Violation::Contention { position, switch, egress, ingress });
        }
    }
    Ok(())
}

/// Follows the circuits from a node: at whom they end, and through how many switches.
fn follow(clos: &Clos, maps: &PositionMaps, from: NodeId) -> (Option<NodeId>, u32) {
    let (mut switch, mut ingress) = clos.attachment(from);
    for hops in 1..=clos.switches_per_plane() {
        let egress = maps.maps[clos.switch_index(switch)][ingress as usize];
        match egress.and_then(|egress| clos.wire(switch, egress)) {
            None => return (None, hops),
            Some(End::Node(node)) => return (Some(node), hops),
            Some(End::Port(next, port)) => (switch, ingress) = (next, port),
        }
    }
    (None, clos.switches_per_plane())
}
