//! What a controller would install for input processing, worked out by plain functions.
//!
//! Models: Aquila §4.2 (M721, M722, M731). The same in all TiNs. Indexed groups and a flow for each address lead to the
//! same (I75); there are as many as `state.rs` counts.

use ipnet::IpNet;

use super::Interface;
use super::plan::Plan;
use super::routes::{Group, GroupError, IndexedGroup, Next, Routes};
use crate::address::{Address, Endpoint};

/// Who is there: whether an interface of a TiN is.
type IsThere<'a> = &'a dyn Fn(u16, Interface) -> bool;

/// By indexed groups: a flow for each subnet (M722).
#[must_use]
pub fn indexed(plan: &Plan, is_there: IsThere<'_>) -> Routes {
    let mut routes = Routes::default();
    for interface in plan.addressed() {
        for version in Plan::VERSIONS {
            let subnet = plan.subnet(interface, version);
            let member =
                |tin| is_there(tin, interface).then(|| plan.address(tin, interface.endpoint()));
            let members = (0..plan.shape().tins()).map(member).collect();
            let group = routes.add_indexed(IndexedGroup::new(subnet.network(), members));
            routes.insert(subnet, Next::Indexed(group));
        }
    }
    routes
}

/// With a flow for each address (M721).
#[must_use]
pub fn each(plan: &Plan, is_there: IsThere<'_>) -> Routes {
    let mut routes = Routes::default();
    for interface in plan.addressed() {
        for version in Plan::VERSIONS {
            for tin in (0..plan.shape().tins()).filter(|&tin| is_there(tin, interface)) {
                let prefix = IpNet::from(plan.ip(tin, interface, version));
                routes.insert(prefix, Next::Address(plan.address(tin, interface.endpoint())));
            }
        }
    }
    routes
}

/// Adds prefixes outside of the Clique: by the Ethernet ports of these TiNs, by weight (M404, M731).
///
/// # Errors
/// No TiN has a weight.
pub fn add_outside(
    routes: &mut Routes,
    plan: &Plan,
    prefixes: &[IpNet],
    tins: &[(u16, u32)],
) -> Result<(), GroupError> {
    let member = |&(tin, weight): &(u16, u32)| -> (Address, u32) {
        (plan.address(tin, Endpoint::ETHERNET), weight)
    };
    let members: Vec<_> = tins.iter().map(member).collect();
    let group = routes.add_group(Group::new(&members)?);
    for &prefix in prefixes {
        routes.insert(prefix, Next::Group(group));
    }
    Ok(())
}

/// The TiNs whose Ethernet ports lead to the datacenter's network: so many of those of a Clique, evenly (M015: 256 or 512
/// of 576; which is our choice).
#[must_use]
pub fn connected(tins: u16, count: u16) -> Vec<u16> {
    let count = count.min(tins);
    (0..count).map(|at| (u32::from(at) * u32::from(tins) / u32::from(count)) as u16).collect()
}
