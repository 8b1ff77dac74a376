//! Addresses of TiNs and of the endpoints in them.
//!
//! Models: Aquila §3.1, §3.2 (M011, M012): a GNet address has 16 bits that name a pod, a TiN and an
//! endpoint. **Our choice**: 6 + 4 + 6 bits, and the endpoints' numbers.

use std::fmt;

/// Most pods that an address tells apart (our choice, M011).
pub const PODS_MAX: u16 = 1 << 6;
/// Most TiNs of a pod that an address tells apart (our choice, M011).
pub const TINS_MAX: u16 = 1 << 4;
/// Most endpoints of a TiN that an address tells apart (our choice, M011).
pub const ENDPOINTS_MAX: u8 = 1 << 6;

/// A TiN among all of a Clique: its pod times the TiNs of a pod, and its place in the pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TinId(u16);

impl TinId {
    /// The TiN of this index.
    #[must_use]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// Its index, from 0.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Its pod and its place there, where pods have `tins_per_pod` TiNs.
    ///
    /// # Panics
    /// If pods have no TiNs.
    #[must_use]
    pub const fn split(self, tins_per_pod: u16) -> (u16, u16) {
        assert!(tins_per_pod > 0, "pods without TiNs");
        (self.0 / tins_per_pod, self.0 % tins_per_pod)
    }
}

impl fmt::Display for TinId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TiN {}", self.0)
    }
}

/// A GNet address: pod, TiN of the pod, endpoint of the TiN (M011).
///
/// ```
/// use aquila::address::{Address, Endpoint};
/// let address = Address::new(47, 11, Endpoint::RMA_HOST_1);
/// assert_eq!((address.pod(), address.tin(), address.endpoint()), (47, 11, Endpoint::RMA_HOST_1));
/// assert_eq!(address.bits(), 47 << 10 | 11 << 6 | 9);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Address(u16);

impl Address {
    /// The address of an endpoint.
    ///
    /// # Panics
    /// If the pod or the TiN does not fit its bits.
    #[must_use]
    pub const fn new(pod: u16, tin: u16, endpoint: Endpoint) -> Self {
        assert!(pod < PODS_MAX, "a pod of more than 6 bits");
        assert!(tin < TINS_MAX, "a TiN of more than 4 bits");
        Self(pod << 10 | tin << 6 | endpoint.0 as u16)
    }

    /// The address of these bits, as they stand in a cell's header. All bits are an address.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// As it stands in a cell's header.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The pod.
    #[must_use]
    pub const fn pod(self) -> u16 {
        self.0 >> 10
    }

    /// The TiN's place in its pod.
    #[must_use]
    pub const fn tin(self) -> u16 {
        self.0 >> 6 & 0xF
    }

    /// Whether both are of one TiN.
    #[inline]
    #[must_use]
    pub const fn is_with(self, other: Self) -> bool {
        (self.0 ^ other.0) >> 6 == 0
    }

    /// The endpoint of the TiN.
    #[must_use]
    pub const fn endpoint(self) -> Endpoint {
        Endpoint(self.0 as u8 & 0x3F)
    }
}

/// A protocol engine of a TiN (M012, our choice).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Endpoint(u8);

impl Endpoint {
    /// IP to the Ethernet port.
    pub const ETHERNET: Self = Self(0);
    /// IP to host 0.
    pub const HOST_0: Self = Self(1);
    /// IP to host 1.
    pub const HOST_1: Self = Self(2);
    /// IP to the embedded control processor.
    pub const CONTROL_IP: Self = Self(3);
    /// Remote memory of host 0.
    pub const RMA_HOST_0: Self = Self(8);
    /// Remote memory of host 1.
    pub const RMA_HOST_1: Self = Self(9);
    /// Cells to the embedded control processor itself.
    pub const CONTROL: Self = Self(16);
    /// Whatever TiN it is: management.
    pub const ANY: Self = Self(63);

    /// The endpoint of this number; `None`: it does not fit its 6 bits.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        if number < ENDPOINTS_MAX { Some(Self(number)) } else { None }
    }

    /// Its number, below [`ENDPOINTS_MAX`].
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The terminal ports that serve it, as the first of the TiN's 18 and how many (M102, our choice): 0 to 3
    /// the NIC's IP, 4 to 7 Ethernet's, 8 to 11 the memory of host 0, 12 to 15 that of host 1, 16 the control
    /// processor; 17 is spare. `None`: nothing listens there.
    #[must_use]
    pub const fn terminals(self) -> Option<(u8, u8)> {
        match self {
            Self::HOST_0 | Self::HOST_1 => Some((0, 4)),
            Self::ETHERNET => Some((4, 4)),
            Self::RMA_HOST_0 => Some((8, 4)),
            Self::RMA_HOST_1 => Some((12, 4)),
            Self::CONTROL_IP | Self::CONTROL | Self::ANY => Some((16, 1)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m011_all_bits_are_an_address_and_come_back() {
        for bits in 0..=u16::MAX {
            let address = Address::from_bits(bits);
            let again = Address::new(address.pod(), address.tin(), address.endpoint());
            assert_eq!(again.bits(), bits);
        }
    }

    #[test]
    fn m012_every_endpoint_has_terminals_of_its_own_kind() {
        let known = [
            Endpoint::ETHERNET,
            Endpoint::HOST_0,
            Endpoint::HOST_1,
            Endpoint::CONTROL_IP,
            Endpoint::RMA_HOST_0,
            Endpoint::RMA_HOST_1,
            Endpoint::CONTROL,
            Endpoint::ANY,
        ];
        for number in 0..ENDPOINTS_MAX {
            let endpoint = Endpoint::from_number(number).unwrap();
            assert_eq!(endpoint.terminals().is_some(), known.contains(&endpoint), "{number}");
            if let Some((first, count)) = endpoint.terminals() {
                assert!(first + count <= 17, "{number}: port 17 is spare");
            }
        }
        assert_eq!(Endpoint::from_number(64), None);
    }
}
