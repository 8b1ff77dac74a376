//! Packets lost or corrupted at random on a link.
//!
//! Both are drawn as the number of packets or bits until the next one: a draw for each loss, not for
//! each packet. Frames of the link itself are spared: what their loss does is another study.

use kernel::Stream;
use rack::trace::Outcome;

use super::Net;
use super::port::LINK_QUEUE;
use crate::packet::{FlowKey, Kind, Packet};

/// Bytes of a frame that tells of a loss: a smallest Ethernet frame (our choice).
pub(crate) const LOST_FRAME: u16 = 64;

/// The frame that tells of a packet that one neighbour told another: what it has of its own stands where
/// packets of neighbours all have the same.
fn frame_of(lost: &Packet) -> Packet {
    Packet {
        kind: Kind::LINK_LOST,
        flow: FlowKey::new(lost.kind.get().into()),
        payload: lost.wire,
        wire: LOST_FRAME,
        ..*lost
    }
}

/// The packet that such a frame is about.
pub(super) fn original(frame: &Packet) -> Packet {
    Packet {
        kind: Kind::of_number(frame.flow.place() as u8).unwrap_or_default(),
        flow: FlowKey::NEIGHBOURS,
        wire: frame.payload,
        payload: 0,
        ..*frame
    }
}

/// By port at which packets come in: what is still to pass before the next loss and the next flipped bit.
/// Each link draws from streams of its own; empty where nothing is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    loss: Vec<Countdown>,
    corruption: Vec<Countdown>,
}

#[derive(Clone, Debug)]
struct Countdown {
    probability: f64,
    stream: Stream,
    left: u64,
}

impl Countdown {
    fn new(probability: f64, mut stream: Stream) -> Self {
        let left = stream.geometric(probability);
        Self { probability, stream, left }
    }

    /// One for each port, where anything is to be drawn.
    fn of_ports(ports: u32, probability: f64, seed: u64, name: &str) -> Vec<Self> {
        let ports = if probability > 0.0 { ports } else { 0 };
        let of_port = |port: u32| Self::new(probability, Stream::new(seed, name, port.into()));
        (0..ports).map(of_port).collect()
    }

    /// Lets `count` trials pass. True if one of them was a hit.
    fn pass(&mut self, count: u64) -> bool {
        if self.left >= count {
            self.left -= count;
            return false;
        }
        // After the first hit the rest of the trials no longer matter: the packet is gone.
        self.left = self.stream.geometric(self.probability);
        true
    }
}

impl Losses {
    /// Losses by `loss_rate` a packet and `bit_error_rate` a bit; `None` where both are zero.
    pub(super) fn new(
        ports: u32,
        loss_rate: f64,
        bit_error_rate: f64,
        seed: u64,
    ) -> Option<Box<Self>> {
        let loss = Countdown::of_ports(ports, loss_rate, seed, "packets/loss");
        let corruption = Countdown::of_ports(ports, bit_error_rate, seed, "packets/corruption");
        let draws = !loss.is_empty() || !corruption.is_empty();
        draws.then(|| Box::new(Self { loss, corruption }))
    }
}

impl Net {
    /// Whether a packet that comes by `port` got lost on the link; if so it is gone.
    #[cold]
    pub(super) fn is_lost_on_the_way(&mut self, index: u32, port: u32) -> bool {
        let reverse = self.wires[port as usize].reverse;
        let out = &self.ports[reverse as usize];
        let cut = out.faults > 0 || self.arena.ingress(index) != out.life;
        let packet = *self.arena.get(index);
        if cut {
            self.counts.dead_link += u64::from(!packet.is_link_frame());
        } else if reverse == port || packet.is_link_frame() || !self.strikes(port, packet.wire) {
            return false;
        }
        self.note_lost(index, reverse, if cut { Outcome::DeadLink } else { Outcome::Lost });
        if self.is_controlled && !packet.is_link_frame() {
            self.leaves_link_on_the_way(index, port, cut);
        }
        if self.is_neighbours(index) {
            match cut {
                // The end that sent it sees its link die, and keeps what it has sent for as long as an answer
                // would take.
                true => self.tell_unheard(reverse, packet),
                false if self.repairs_links => self.report_lost(port, &packet),
                false => {}
            }
        }
        self.take_out(index);
        true
    }

    /// A packet that got lost on the way no longer fills the link. Of a link that was down in between both
    /// ends know that nothing is left on it.
    fn leaves_link_on_the_way(&mut self, index: u32, port: u32, cut: bool) {
        if self.credits.is_none() || !cut {
            self.credit_arrives(index, port);
            self.leaves_link(index, port);
        }
    }

    /// Tells the other end of `port` what has not come from there: by a frame of the link, which waits for
    /// the line and takes its time on it. It names the packet by the number that it had on its link, under
    /// which the sender has kept it; here it brings the packet itself.
    fn report_lost(&mut self, port: u32, lost: &Packet) {
        if self.ports[port as usize].faults > 0 {
            return;
        }
        let index = self.arena.insert(frame_of(lost));
        self.enqueue(port, LINK_QUEUE, index);
        self.serve(port);
    }

    fn strikes(&mut self, port: u32, wire: u16) -> bool {
        let Some(losses) = &mut self.losses else { return false };
        if losses.loss.get_mut(port as usize).is_some_and(|loss| loss.pass(1)) {
            self.counts.lost += 1;
            return true;
        }
        let bits = u64::from(wire) * 8;
        if losses.corruption.get_mut(port as usize).is_some_and(|flips| flips.pass(bits)) {
            self.counts.corrupted += 1;
            return true;
        }
        false
    }
}
