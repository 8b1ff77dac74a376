//! The program on real frames: parser, pipeline, deparser.
//!
//! This is the form in which the switch runs on hardware or in a kernel's data path, and the form that
//! the vectors in `vectors/` are for: bytes and a port in, bytes and a port out, and the registers
//! after; and the same when the bytes leave. The table of addresses is what a switch learns or is told:
//! here node `n` is at port `n`.

use super::pipeline::{Between, Header, Outcome, Pipeline};
use crate::wire::{Address, Control, Flags, Opcode, Tag, fcs};

/// What becomes of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It leaves by a port, with these bytes.
    Send {
        /// The port.
        port: u32,
        /// The frame.
        frame: Vec<u8>,
        /// What goes with it to [`leave`], beside the frame.
        passed: Passed,
    },
    /// It is dropped.
    Drop,
}

/// What stands behind the queues is told of a frame: in hardware, a bit of metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passed {
    /// If it is data, it is taken off when it leaves, as far as packets are counted until then.
    Counted,
    /// Nothing was reserved for its pair.
    Uncounted,
}

/// Lets a frame that came by `port` pass. Frames that are damaged or for nobody are dropped.
pub fn process(pipeline: &mut Pipeline, port: u32, frame: &[u8]) -> Decision {
    let Some(parsed) = parse(frame, port, pipeline.settings().ports) else { return Decision::Drop };
    match pipeline.process(parsed.header, parsed.between) {
        Outcome::Grant { send_slot, receive_slot, pair_slots, is_crowded } => {
            let control = parsed.control.expect("only control frames are granted");
            let flags = Flags { is_crowded, ..control.flags };
            let grant = Control { flags, pair_slots, ..control };
            let frame = grant.granted(send_slot, receive_slot).encode().to_vec();
            Decision::Send { port, frame, passed: Passed::Counted }
        }
        Outcome::Forward => send(parsed.way, frame, Passed::Counted),
        Outcome::ForwardUncounted => send(parsed.way, frame, Passed::Uncounted),
        Outcome::Return => send(port, frame, Passed::Counted),
        Outcome::Drop => Decision::Drop,
    }
}

/// The first bit of a frame that has passed leaves by `port`: what stands behind the queues, where
/// packets are counted until then.
pub fn leave(pipeline: &mut Pipeline, port: u32, frame: &[u8], passed: Passed) {
    let parsed = parse(frame, port, pipeline.settings().ports);
    let counted = parsed.filter(|_| passed == Passed::Counted);
    if let Some(Parsed { header: Header::Data(tag), .. }) = counted {
        pipeline.leaves(tag, port);
    }
}

fn send(port: u32, frame: &[u8], passed: Passed) -> Decision {
    Decision::Send { port, frame: frame.to_vec(), passed }
}

/// What the parser has found.
struct Parsed {
    header: Header,
    between: Between,
    control: Option<Control>,
    /// The port of the destination.
    way: u32,
}

fn parse(frame: &[u8], port: u32, ports: u32) -> Option<Parsed> {
    if !fcs::is_intact(frame) {
        return None;
    }
    let table = |node: u32| (node < ports).then_some(node);
    let destination = Address(*frame.first_chunk()?);
    let way = table(destination.node()?.get())?;
    // Node `n` is at port `n`: so the pair of nodes is the pair of ports.
    let between = |input, output| Between { input, output, pair: input * ports + output };
    if let Ok(control) = Control::decode(frame) {
        let (header, between) = match control.opcode {
            Opcode::Reserve => (Header::Reserve(control.demand), between(port, way)),
            Opcode::Reset => {
                let input = table(control.send_slot)?;
                let output = table(control.receive_slot)?;
                (Header::Reset(control.demand), between(input, output))
            }
            Opcode::Grant | Opcode::Notice | Opcode::Withdrawal => {
                (Header::Other, between(port, way))
            }
        };
        return Some(Parsed { header, between, control: Some(control), way });
    }
    let tag = Tag::decode(frame.get(12..)?).ok()?;
    Some(Parsed { header: Header::Data(tag), between: between(port, way), control: None, way })
}
