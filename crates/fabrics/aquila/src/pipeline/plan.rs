//! Who has which address in a Clique.
//!
//! Models: Aquila §4.2 (M722): all addresses are of a small number of subnets, one each for host 0, host 1 and the control
//! processor of all TiNs, in both versions of IP; in each the place is the TiN's number. **Our choice**: the numbers.
//!
//! | of | IPv4 | IPv6 | Ethernet |
//! | --- | --- | --- | --- |
//! | host 0 of TiN t | 10.0.0.0/22 + t | fd47:0:0:1::/64 + t | 02:47:00:01:tt:tt |
//! | host 1 | 10.0.4.0/22 + t | fd47:0:0:2::/64 + t | 02:47:00:02:tt:tt |
//! | control processor | 10.0.8.0/22 + t | fd47:0:0:3::/64 + t | 02:47:00:03:tt:tt |
//! | a host's gateway: the TiN itself | 169.254.1.1 | fe80::1 | 02:47:00:00:00:01 |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::Interface;
use crate::address::{Address, Endpoint, PODS_MAX, TINS_MAX};
use crate::topology::Shape;

/// An Ethernet address.
pub type EthernetAddress = [u8; 6];

/// Bits of an IPv4 address that tell the TiNs of a subnet apart.
const TIN_BITS: u8 = 10;
/// The gateway of every host, at its own TiN: link-local, so that hosts need not know which TiN theirs is.
pub const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// The same.
pub const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
/// Its Ethernet address.
pub const GATEWAY_ETHERNET: EthernetAddress = [0x02, 0x47, 0, 0, 0, 1];

/// A version of IP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The addresses of a Clique.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    shape: Shape,
    hosts_per_tin: u8,
}

/// What all addresses of a Clique are of.
#[must_use]
pub fn own() -> [IpNet; 2] {
    let v4 = Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 20);
    let v6 = Ipv6Net::new_assert(Ipv6Addr::new(0xfd47, 0, 0, 0, 0, 0, 0, 0), 48);
    [IpNet::V4(v4), IpNet::V6(v6)]
}

impl Plan {
    /// Both versions.
    pub const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

    /// That of a Clique whose TiNs have one or two hosts.
    #[must_use]
    pub const fn new(shape: &Shape, hosts_per_tin: u8) -> Self {
        Self { shape: *shape, hosts_per_tin }
    }

    /// What it is the plan of.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Those of a TiN that have addresses: its hosts and its control processor.
    pub fn addressed(&self) -> impl Iterator<Item = Interface> + use<> {
        let hosts =
            [Interface::Host0, Interface::Host1].into_iter().take(self.hosts_per_tin.into());
        hosts.chain([Interface::Control])
    }

    /// The subnet of an interface of all TiNs.
    ///
    /// # Panics
    /// If the interface is the Ethernet port, which has none.
    #[must_use]
    pub fn subnet(&self, interface: Interface, version: Version) -> IpNet {
        assert!(interface != Interface::Ethernet, "the Ethernet port has no address");
        let number = interface as u16;
        match version {
            Version::V4 => {
                let base =
                    u32::from(Ipv4Addr::new(10, 0, 0, 0)) | u32::from(number - 1) << TIN_BITS;
                IpNet::V4(Ipv4Net::new_assert(base.into(), 32 - TIN_BITS))
            }
            Version::V6 => {
                let base = Ipv6Addr::new(0xfd47, 0, 0, number, 0, 0, 0, 0);
                IpNet::V6(Ipv6Net::new_assert(base, 64))
            }
        }
    }

    /// The address of an interface of a TiN.
    ///
    /// # Panics
    /// As [`Plan::subnet`].
    #[must_use]
    pub fn ip(&self, tin: u16, interface: Interface, version: Version) -> IpAddr {
        match self.subnet(interface, version).network() {
            IpAddr::V4(base) => IpAddr::V4((u32::from(base) + u32::from(tin)).into()),
            IpAddr::V6(base) => IpAddr::V6((u128::from(base) + u128::from(tin)).into()),
        }
    }

    /// Whose address it is; `None`: nobody's of the Clique.
    #[must_use]
    pub fn of_ip(&self, ip: IpAddr) -> Option<(u16, Interface)> {
        let version = if ip.is_ipv4() { Version::V4 } else { Version::V6 };
        self.addressed().find_map(|interface| {
            let subnet = self.subnet(interface, version);
            let place = subnet.contains(&ip).then(|| super::routes::place(subnet.network(), ip))?;
            let tin = u16::try_from(place?).ok().filter(|&tin| tin < self.shape.tins())?;
            Some((tin, interface))
        })
    }

    /// The Ethernet address of an interface of a TiN.
    #[must_use]
    pub const fn ethernet(&self, tin: u16, interface: Interface) -> EthernetAddress {
        let [high, low] = tin.to_be_bytes();
        [0x02, 0x47, 0, interface as u8, high, low]
    }

    /// Whose Ethernet address it is; `None`: nobody's of the Clique.
    #[must_use]
    pub fn of_ethernet(&self, address: EthernetAddress) -> Option<(u16, Interface)> {
        let [0x02, 0x47, 0, number, high, low] = address else { return None };
        let tin = u16::from_be_bytes([high, low]);
        let found = self.addressed().find(|&interface| interface as u8 == number);
        found.filter(|_| tin < self.shape.tins()).map(|interface| (tin, interface))
    }

    /// The GNet address of an endpoint of a TiN.
    #[must_use]
    pub const fn address(&self, tin: u16, endpoint: Endpoint) -> Address {
        let (pod, place) = self.shape.split(tin);
        Address::new(pod, place, endpoint)
    }
}

const _: () = assert!(PODS_MAX * TINS_MAX <= 1 << TIN_BITS);
