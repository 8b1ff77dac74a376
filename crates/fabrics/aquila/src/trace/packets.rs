//! The ways of a packet's cells, put together (M904): its request, what was answered, its data.

use std::collections::BTreeMap;

use super::journey::Journey;
use crate::address::Address;
use crate::cells::ip::{Clear, Data, Pointer, Rts};
use crate::link::classes::CellKind;

/// What was seen of a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PacketWay {
    /// Its request to send.
    pub request: Option<Journey>,
    /// What was answered: clear to send, or to drop.
    pub answer: Option<Journey>,
    /// Its data, by index of the cell.
    pub data: Vec<(u8, Journey)>,
}

/// A TiN's place in a buffer: of its ingress buffer or its egress buffer.
type Place = (u16, u32, u8);

fn place(address: Address, pointer: Pointer) -> Place {
    (address.bits() >> 6, pointer.slot, pointer.generation)
}

/// Puts cells of IP packets together. A request says which place its packet waits in, the answer names that place and
/// the one where its data go, data name that one. Where a place was used again it is the use before the cell that counts.
/// Cells whose other parts were not seen stand alone; what belongs to no packet is left out.
#[must_use]
pub fn stitch(journeys: &[Journey]) -> Vec<PacketWay> {
    let begun = |journey: &&Journey| journey.steps.first().map(|step| step.ticks);
    let mut cells: Vec<&Journey> =
        journeys.iter().filter(|journey| begun(journey).is_some()).collect();
    cells.sort_by_key(begun);
    let mut packets: Vec<PacketWay> = Vec::new();
    // The packet that uses a place now.
    let (mut waiting, mut asked_for) = (BTreeMap::<Place, usize>::new(), BTreeMap::new());
    for cell in cells {
        match cell.kind {
            CellKind::Rts => {
                let Ok(rts) = Rts::of_word(cell.word) else { continue };
                waiting.insert(place(cell.from, rts.ingress), packets.len());
                let request = Some(cell.clone());
                packets.push(PacketWay { request, ..PacketWay::default() });
            }
            CellKind::Cts | CellKind::Ctd => {
                let Ok(clear) = Clear::of_word(cell.word) else { continue };
                let at = waiting.remove(&place(cell.to, clear.ingress)).unwrap_or(packets.len());
                packets.resize_with(packets.len().max(at + 1), PacketWay::default);
                packets[at].answer = Some(cell.clone());
                if cell.kind == CellKind::Cts {
                    asked_for.insert(place(cell.from, clear.egress), at);
                }
            }
            CellKind::Data => {
                let data = Data::of_word(cell.word >> 32);
                let key = place(cell.to, data.egress);
                let at = *asked_for.entry(key).or_insert(packets.len());
                packets.resize_with(packets.len().max(at + 1), PacketWay::default);
                packets[at].data.push((data.index, cell.clone()));
            }
            _ => {}
        }
    }
    packets.iter_mut().for_each(|packet| packet.data.sort_by_key(|&(index, _)| index));
    packets
}
