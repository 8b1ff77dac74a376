//! Reservations, grants and what else hosts and switch tell each other.
//!
//! | byte | field | bits |
//! | --- | --- | --- |
//! | 0 | destination address: of the data, in a reservation; else whom the frame is for | 48 |
//! | 6 | source address | 48 |
//! | 12 | 802.1Q tag: 0x8100, priority 7, no VLAN | 32 |
//! | 16 | type: 0x88B5, for local experiments (IEEE 802 §9.2.3.4) | 16 |
//! | 18 | version 1, operation | 4 + 4 |
//! | 19 | flags | 8 |
//! | 20 | demand: slots | 16 |
//! | 22 | burst: a number of its requester's | 32 |
//! | 26 | slot at the input (`sendTimeslot`) | 32 |
//! | 30 | slot at the output (`recvTimeslot`) | 32 |
//! | 34 | time stamp of the requester, which the switch leaves alone | 64 |
//! | 42 | slots of the pair, in grants of a switch that tracks pairs | 32 |
//! | 46 | zeros | 112 |
//! | 60 | frame check sequence | 32 |
//!
//! A reservation and its grant share the layout, so that the switch rewrites fields in place.

use super::{Address, CONTROL_BYTES, WireError, fcs};

/// The 802.1Q tag: its type, the highest of eight priorities, not eligible to be dropped, no VLAN.
const TAG: [u8; 4] = [0x81, 0x00, 0xE0, 0x00];
/// The type of local experiments (IEEE 802 §9.2.3.4).
const TYPE: [u8; 2] = [0x88, 0xB5];
/// The version of this layout.
const VERSION: u8 = 1;

/// What a control frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Opcode {
    /// A host asks for slots (RSV).
    Reserve = 1,
    /// The switch has reserved them (GRT).
    Grant = 2,
    /// The same to the receiver of the data (§4.5).
    Notice = 3,
    /// A host gives reserved slots back (§4.5): the demand, at the input and the output whose nodes
    /// stand in place of the two slots.
    Reset = 4,
    /// The same to the receiver of the data, who was told of the grant (§4.5).
    Withdrawal = 5,
}

impl Opcode {
    const ALL: [Self; 5] =
        [Self::Reserve, Self::Grant, Self::Notice, Self::Reset, Self::Withdrawal];

    /// The operation of this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&opcode| opcode as u8 == number)
    }
}

/// Bits of a control frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// The burst is on its way, unsolicited.
    pub is_unsolicited: bool,
    /// More slots were reserved at the output than unsolicited packets pass at.
    pub is_crowded: bool,
}

impl Flags {
    /// As they stand in the frame.
    #[must_use]
    pub fn bits(self) -> u8 {
        u8::from(self.is_unsolicited) | u8::from(self.is_crowded) << 1
    }

    /// The flags of these bits; `None`: others are set.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        let flags = Self { is_unsolicited: bits & 1 != 0, is_crowded: bits & 2 != 0 };
        (bits < 4).then_some(flags)
    }
}

/// A control frame.
///
/// ```
/// use pl2::wire::{Address, Control, Flags, Opcode};
/// use rack::NodeId;
/// let reservation = Control {
///     destination: Address::of(NodeId::new(2)),
///     source: Address::of(NodeId::new(1)),
///     opcode: Opcode::Reserve,
///     flags: Flags::default(),
///     demand: 4,
///     burst: 7,
///     send_slot: 0,
///     receive_slot: 0,
///     stamp: 0,
///     pair_slots: 0,
/// };
/// let frame = reservation.encode();
/// assert_eq!(frame.len(), 64);
/// assert_eq!(Control::decode(&frame), Ok(reservation));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Where the data goes, in a reservation; else whom the frame is for.
    pub destination: Address,
    /// Who sends it.
    pub source: Address,
    /// What it is for.
    pub opcode: Opcode,
    /// Its bits.
    pub flags: Flags,
    /// Slots asked for, granted or given back; at least 1.
    pub demand: u16,
    /// The burst that it is about, as its requester counts.
    pub burst: u32,
    /// Slots that were reserved at the requester's input before this demand.
    pub send_slot: u32,
    /// Slots that were reserved at the destination's output before this demand.
    pub receive_slot: u32,
    /// The requester's clock, which comes back to it.
    pub stamp: u64,
    /// Slots that were reserved for the pair of requester and destination before this demand, in a grant
    /// of a switch that tracks pairs; else 0.
    pub pair_slots: u32,
}

impl Control {
    /// The frame, sealed.
    #[must_use]
    pub fn encode(&self) -> [u8; CONTROL_BYTES] {
        let mut frame = [0; CONTROL_BYTES];
        frame[0..6].copy_from_slice(&self.destination.0);
        frame[6..12].copy_from_slice(&self.source.0);
        frame[12..16].copy_from_slice(&TAG);
        frame[16..18].copy_from_slice(&TYPE);
        frame[18] = VERSION << 4 | self.opcode as u8;
        frame[19] = self.flags.bits();
        frame[20..22].copy_from_slice(&self.demand.to_be_bytes());
        frame[22..26].copy_from_slice(&self.burst.to_be_bytes());
        frame[26..30].copy_from_slice(&self.send_slot.to_be_bytes());
        frame[30..34].copy_from_slice(&self.receive_slot.to_be_bytes());
        frame[34..42].copy_from_slice(&self.stamp.to_be_bytes());
        frame[42..46].copy_from_slice(&self.pair_slots.to_be_bytes());
        fcs::seal(&mut frame);
        frame
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// Whatever [`Control::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let wrong = WireError::Length { expected: CONTROL_BYTES, found: bytes.len() };
        let frame = <&[u8; CONTROL_BYTES]>::try_from(bytes).map_err(|_| wrong)?;
        if !fcs::is_intact(frame) {
            return Err(WireError::Corrupted);
        }
        let field = |field, value| Err(WireError::Field { field, value });
        if take(frame, 12) != TAG {
            return field("tag", u32::from_be_bytes(take(frame, 12)).into());
        }
        if take(frame, 16) != TYPE {
            return field("type", u16::from_be_bytes(take(frame, 16)).into());
        }
        if frame[18] >> 4 != VERSION {
            return field("version", (frame[18] >> 4).into());
        }
        let number = frame[18] & 0xF;
        let Some(opcode) = Opcode::from_number(number) else {
            return field("operation", number.into());
        };
        let Some(flags) = Flags::from_bits(frame[19]) else {
            return field("flags", frame[19].into());
        };
        let demand = u16::from_be_bytes(take(frame, 20));
        if demand == 0 {
            return field("demand", 0);
        }
        if let Some(&spare) = frame[46..60].iter().find(|&&byte| byte != 0) {
            return field("spare", spare.into());
        }
        Ok(Self {
            destination: Address(take(frame, 0)),
            source: Address(take(frame, 6)),
            opcode,
            flags,
            demand,
            burst: u32::from_be_bytes(take(frame, 22)),
            send_slot: u32::from_be_bytes(take(frame, 26)),
            receive_slot: u32::from_be_bytes(take(frame, 30)),
            stamp: u64::from_be_bytes(take(frame, 34)),
            pair_slots: u32::from_be_bytes(take(frame, 42)),
        })
    }

    /// What the switch makes of a reservation: the grant to its requester.
    #[must_use]
    pub fn granted(self, send_slot: u32, receive_slot: u32) -> Self {
        Self {
            destination: self.source,
            source: self.destination,
            opcode: Opcode::Grant,
            send_slot,
            receive_slot,
            ..self
        }
    }
}

/// `N` bytes from `at` on.
fn take<const N: usize>(frame: &[u8; CONTROL_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|index| frame[at + index])
}
