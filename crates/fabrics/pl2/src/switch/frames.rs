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
    },
    /// It is dropped.
    Drop,
}

/// Lets a frame that came by `port` pass. Frames that are damaged or for nobody are dropped.
pub fn process(pipeline: &mut Pipeline, port: u32, frame: &[u8]) -> Decision {
    let Some(parsed) = parse(frame, port, pipeline.settings().ports) else { return Decision::Drop };
    match pipeline.process(parsed.header, parsed.between) {
        Outcome::Grant { send_slot, receive_slot, is_crowded } => {
            let control = parsed.control.expect("only control frames are granted");
            let flags = Flags { is_crowded, ..control.flags };
            let frame = control.granted(send_slot, receive_slot, flags).encode().to_vec();
            Decision::Send { port, frame }
        }
        Outcome::Forward => Decision::Send { port: parsed.way, frame: frame.to_vec() },
        Outcome::Return => Decision::Send { port, frame: frame.to_vec() },
        Outcome::Drop => Decision::Drop,
    }
}

/// The first bit of a frame that has passed leaves by `port`: what stands behind the queues, where
/// packets are counted until then.
pub fn leave(pipeline: &mut Pipeline, port: u32, frame: &[u8]) {
    let parsed = parse(frame, port, pipeline.settings().ports);
    if let Some(Parsed { header: Header::Data(tag), .. }) = parsed {
        pipeline.leaves(tag, port);
    }
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
    let between = Between { input: port, output: way };
    if let Ok(control) = Control::decode(frame) {
        let (header, between) = match control.opcode {
            Opcode::Reserve => (Header::Reserve(control.demand), between),
            Opcode::Reset => {
                let input = table(control.send_slot)?;
                let output = table(control.receive_slot)?;
                (Header::Reset(control.demand), Between { input, output })
            }
            Opcode::Grant | Opcode::Notice | Opcode::Withdrawal => (Header::Other, between),
        };
        return Some(Parsed { header, between, control: Some(control), way });
    }
    let tag = Tag::decode(frame.get(12..)?).ok()?;
    Some(Parsed { header: Header::Data(tag), between, control: None, way })
}
