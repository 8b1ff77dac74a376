//! When a burst may go: Equation 1.
//!
//! Models: PL2 §4.2.1 (claims M19, M20, M21, I07). A slot counts from the instant at which the
//! reservation reached the switch. The grant took half of the exchange to come back, and the burst
//! takes the other half to get there, behind what the NIC has still to send. That it waits behind
//! matters only as far as it is still there when the wait is over: what the NIC sends meanwhile holds
//! nothing up. To the letter, Eq. 1 takes all of it off, and bursts come early ([`Pending`]).
//!
//! [`Pending`]: crate::config::Pending

use kernel::Span;

/// The slot at which a burst goes: the later of the two that were granted (§4.2.1).
#[inline]
#[must_use]
pub fn chosen(send_slot: u32, receive_slot: u32) -> u32 {
    send_slot.max(receive_slot)
}

/// How long a host waits after a grant before it sends (Eq. 1): `chosen` counts of `unit` each, less
/// the time of the exchange and that of the data before it; never less than nothing.
///
/// ```
/// use kernel::Span;
/// use pl2::host::wait::waiting;
/// let slot = Span::from_ns(120);
/// let exchange = Span::from_ns(2_050);
/// // 30 slots are 3.6 us from when the switch saw the reservation.
/// assert_eq!(waiting(30, slot, exchange, Span::ZERO), Span::from_ns(1_550));
/// assert_eq!(waiting(10, slot, exchange, Span::ZERO), Span::ZERO);
/// ```
#[inline]
#[must_use]
pub fn waiting(chosen: u32, unit: Span, exchange: Span, pending: Span) -> Span {
    let slot_wait = unit * u64::from(chosen);
    let spent = exchange + pending;
    if slot_wait > spent { slot_wait - spent } else { Span::ZERO }
}
