//! What switches see of traced cells (M901): nothing of it changes what they do (I93).

use super::cell::Cell;
use super::shared::Shared;
use super::{Endpoints, Switches};

/// In [`Seen::output`]: the cell was thrown away.
pub const NOWHERE: u8 = u8::MAX;

/// A traced cell at a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When it crossed. Unit: ticks of 2.5 ns.
    pub tick: u64,
    /// The switch.
    pub tin: u16,
    /// The port that it came in at.
    pub input: u8,
    /// The channel that it came on.
    pub input_vc: u8,
    /// The port that it leaves by, or [`NOWHERE`].
    pub output: u8,
    /// The channel that it leaves on.
    pub output_vc: u8,
    /// The cell as it leaves.
    pub cell: Cell,
}

impl<E: Endpoints> Switches<E> {
    /// What was seen of traced cells since this was last called, first to last. To be called while there are any:
    /// until then they are kept.
    pub fn seen(&mut self) -> std::vec::Drain<'_, Seen> {
        self.shared.seen.drain(..)
    }
}

impl Shared {
    /// Writes down a traced cell at a TiN. Ports and channels of input and output.
    #[cold]
    #[inline(never)]
    pub(super) fn note(
        &mut self,
        tin: u16,
        input: (usize, usize),
        output: (u8, u8),
        cell: Cell,
        tick: u64,
    ) {
        let (input, input_vc) = (input.0 as u8, input.1 as u8);
        let (output, output_vc) = output;
        self.seen.push(Seen { tick, tin, input, input_vc, output, output_vc, cell });
    }
}
