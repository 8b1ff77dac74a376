//! Broadcasts that get lost on their way, and how they are retransmitted (§3.2): why, and why that ends,
//! stands in [`super::repeats`].

use packets::{Loss, Outbox, Packet};
use rack::NodeId;
use rack::topology::PortId;

use crate::endpoint::kinds;
use crate::wire::{self, Again, Anew, Dropped, Message, Notice, TREE_NONE, Tail};

use super::frames::{carried, carry};
use super::news::{News, Scene, port_of, vertex};

impl News {
    /// What `packet.src` told its neighbour is lost.
    pub(super) fn unheard(&mut self, packet: &Packet, why: Loss, scene: &mut Scene<'_>) {
        // A greeting comes again anyway; a state of links does, too, once a dead link is back.
        if packet.kind == kinds::GREETING || (packet.kind == kinds::LINK_STATE && why == Loss::Dead)
        {
            return;
        }
        match self.central.as_mut().filter(|_| packet.kind == kinds::CENTRAL) {
            Some(central) => central.loses(),
            None => self.counts.lost += 1,
        }
        let Some(port) = port_of(scene.topology, packet) else { return scene.out.unexpected() };
        match why {
            Loss::NoRoom => match self.notice(packet, port, scene) {
                Some((notice, dead)) => self.notify(packet, (&notice, dead), scene),
                None => self.repeats.put_off(*packet, scene.out),
            },
            Loss::Link => self.repeats.copy(*packet, scene.out),
            Loss::Dead if scene.neighbours.lives(port) => self.repeats.cut(port, *packet),
            Loss::Dead => {}
        }
    }

    /// What the node `copy.src`, which has dropped a copy at a port, tells the source; none of what goes by
    /// no tree.
    fn notice(&self, copy: &Packet, port: PortId, scene: &Scene<'_>) -> Option<(Notice, u32)> {
        if copy.kind != kinds::NOTICE {
            return None;
        }
        let (bytes, length) = carried(copy)?;
        let read = wire::tail::decode(&bytes[..length], scene.topology.hosts());
        let (message, Tail { dead, again, .. }) = read.ok()?;
        let (source, way, dropped) = match message {
            Message::Announcement(said) => {
                let (event, number) = (said.event, said.number);
                let (destination, index) = (said.destination, said.index);
                let dropped = Dropped::Announcement { event, number, destination, index };
                (said.source, said.way, dropped)
            }
            Message::Assignments(said) => {
                (said.source, said.way, Dropped::Assignments { round: said.round })
            }
            Message::Anew(said) => {
                (said.source, said.way, Dropped::Anew { round: said.number as u16 })
            }
            _ => return None,
        };
        let child = NodeId::new(scene.topology.port(port).peer.get());
        // One that was retransmitted is for those for whom it was at first.
        let Again { dropper, child } = again.unwrap_or(Again { dropper: copy.src, child });
        let tree = wire::tree_of(way);
        let notice = Notice { source, way: wire::way(tree, dead, 0), dropped, dropper, child };
        (tree != TREE_NONE).then_some((notice, dead))
    }

    /// A node tells the source of a broadcast for whom it has dropped a copy.
    fn notify(&mut self, copy: &Packet, (notice, dead): (&Notice, u32), scene: &mut Scene<'_>) {
        let tail = Tail { dead, ..Tail::default() };
        let word = Packet {
            kind: kinds::NACK,
            path: copy.path,
            priority: self.priority,
            ..carry(&tail.encode(&notice.encode()))
        };
        self.pass_notice(copy.src, &word, (notice, tail), scene);
    }

    /// A notice comes by `node`: it climbs on towards the root of its broadcast's tree. If the node goes by
    /// another map now, so will the source, and say all anew.
    pub(super) fn pass_notice(
        &mut self,
        node: NodeId,
        word: &Packet,
        (notice, tail): (&Notice, Tail),
        scene: &mut Scene<'_>,
    ) {
        let &Notice { source, way, dropper, child, .. } = notice;
        let (tree, map) = (wire::tree_of(way), scene.maps.of_mut(node));
        if tree >= map.trees.trees() {
            return scene.out.unexpected();
        }
        if map.digest != tail.dead {
            return;
        }
        if source != node {
            map.trees.prepare(source);
            return match map.trees.parent(source, tree, vertex(node)) {
                Some(port) => scene.tell(node, port, *word),
                None => scene.out.unexpected(),
            };
        }
        let Some(message) = self.said(notice) else { return scene.out.unexpected() };
        let again = Some(Again { dropper, child });
        let (dead, round) = (tail.dead, round_of(&message));
        let bytes = Tail { dead, round, again }.encode(&message.encode());
        let copy = Packet {
            src: node,
            kind: kinds::NOTICE,
            path: word.path,
            priority: self.priority,
            ..carry(&bytes)
        };
        self.counts.repeated += 1;
        self.repeats.put_off(copy, scene.out);
    }

    /// What a source has said, by the tree of which a notice tells.
    fn said(&self, notice: &Notice) -> Option<Message<'static>> {
        let &Notice { source, way, dropped, .. } = notice;
        match dropped {
            Dropped::Announcement { event, number, destination, index } => {
                let said = self.names.said((source, destination, index), (event, number))?;
                let way = way | wire::way(0, 0, said.round);
                Some(Message::Announcement(wire::Announcement { way, ..said }))
            }
            Dropped::Assignments { round } => {
                let said = self.names.assignment(source, round)?.clone();
                Some(Message::Assignments(wire::Assignments { way, ..said }))
            }
            Dropped::Anew { round } => {
                // The last that has these bits.
                let begun = self.names.begun(source);
                let number = begun.wrapping_sub((begun as u16).wrapping_sub(round).into());
                Some(Message::Anew(Anew { source, way, number }))
            }
        }
    }

    /// `node` takes a copy that is retransmitted a hop on, towards the node that dropped it, and from there
    /// to its child. If the node goes by another map now, so will the source, and say all anew.
    pub(super) fn lead(
        &mut self,
        node: NodeId,
        copy: &Packet,
        (message, dead, again): (&Message<'static>, u32, Again),
        scene: &mut Scene<'_>,
    ) {
        let (source, way) = match message {
            Message::Announcement(said) => (said.source, said.way),
            Message::Assignments(said) => (said.source, said.way),
            Message::Anew(said) => (said.source, said.way),
            _ => return scene.out.unexpected(),
        };
        let (tree, map) = (wire::tree_of(way), scene.maps.of_mut(node));
        if tree >= map.trees.trees() {
            return scene.out.unexpected();
        }
        if map.digest != dead {
            return;
        }
        map.trees.prepare(source);
        let Again { dropper, child } = again;
        let (port, copy) = if dropper == node {
            let mut ports = map.trees.children(source, tree, vertex(node));
            let port = ports.find(|&port| scene.topology.port(port).peer == vertex(child));
            let plain = Tail { dead, round: round_of(message), again: None };
            let plain = carry(&plain.encode(&message.encode()));
            let Packet { kind, path, priority, .. } = *copy;
            (port, Packet { kind, path, priority, ..plain })
        } else {
            (map.trees.towards(source, tree, vertex(node), vertex(dropper)), *copy)
        };
        let Some(port) = port else { return scene.out.unexpected() };
        self.counts.copy(scene.topology, port);
        scene.tell(node, port, copy);
    }

    /// A node retransmits what was dropped on its way, or lost.
    pub(super) fn repeat(&mut self, node: NodeId, scene: &mut Scene<'_>) {
        for copy in self.repeats.take(node, scene.out) {
            if let Some((message, dead, again)) = self.again(&copy, scene) {
                self.lead(node, &copy, (&message, dead, again), scene);
            } else if let Some(port) = port_of(scene.topology, &copy)
                && scene.neighbours.lives(port)
            {
                scene.out.tell(port, copy);
            }
        }
    }

    /// A neighbour is heard by a port: it gets what a short failure of the link took.
    pub(super) fn repeat_cut(&mut self, port: PortId, out: &mut Outbox) {
        self.repeats.take_cut(port).into_iter().for_each(|copy| out.tell(port, copy));
    }

    /// What a copy that is retransmitted says, and to whom.
    fn again(&self, copy: &Packet, scene: &Scene<'_>) -> Option<(Message<'static>, u32, Again)> {
        if copy.kind != kinds::NOTICE {
            return None;
        }
        let (bytes, length) = carried(copy)?;
        let read = wire::tail::decode(&bytes[..length], scene.topology.hosts());
        let (message, Tail { dead, again, .. }) = read.ok()?;
        Some((message, dead, again?))
    }
}

/// The round that is behind the bytes of a message.
fn round_of(message: &Message<'_>) -> u32 {
    if let Message::Announcement(said) = message { said.round } else { 0 }
}
