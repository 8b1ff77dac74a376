//! How many routes a controller has to install.
//!
//! Models: Aquila §4.2 (M721 to M724; X10, X11): the paper's figures are 1.9 million flows for IP, 576 times fewer
//! with groups that an address is an index into; and almost 5 million flows for cells, about 700,000 by
//! classes of ports. It gives no formula. With all routing channels at every port none in whole numbers gives both
//! figures for cells (see the tests), and [`cell_flows`] is the nearest that counts what there is. One that counts only
//! the channels on which cells can come gives both: 106 tables of ports a TiN and 15 of classes, with 80 destinations
//! each, which are the values of the two fields of an address (64 pods, 16 TiNs): 4,884,480 and 691,200. Whether the
//! paper counts so it does not say.

use crate::link::classes::VCS;
use crate::tables::flows::CLASSES;
use crate::tables::{ROUTING_VCS, components};
use crate::topology::Shape;

/// Versions of IP: every host and control processor has an address of each (§4.2).
const IP_VERSIONS: u64 = 2;

/// Flows for IP, all TiNs together, if each names one output: each TiN has one for each address of a host or
/// control processor (M721).
#[must_use]
pub const fn ip_flows(shape: &Shape, hosts_per_tin: u8) -> u64 {
    let tins = shape.tins() as u64;
    tins * tins * (hosts_per_tin as u64 + 1) * IP_VERSIONS
}

/// The same with indexed groups: a flow for each subnet that has one address a TiN (M722).
#[must_use]
pub const fn indexed_ip_flows(shape: &Shape, hosts_per_tin: u8) -> u64 {
    ip_flows(shape, hosts_per_tin) / shape.tins() as u64
}

/// Flows for cells, all TiNs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellFlows {
    /// For each input port, routing channel and part of a destination (M723).
    pub by_port: u64,
    /// For each class of input ports (M724).
    pub by_class: u64,
}

/// Counts flows for cells. The escape channels, which have the same ways from all ports, count once a TiN in
/// either number, with a flow for each pod and TiN of the pod. Ours look at every TiN, and at whether a cell has
/// come down already, which is more: what the paper's are like, it does not say.
#[must_use]
pub const fn cell_flows(shape: &Shape) -> CellFlows {
    let each = shape.tins() as u64 * components(shape) as u64;
    let (ordinary, escapes) = (ROUTING_VCS as u64, (VCS % ROUTING_VCS) as u64);
    CellFlows {
        by_port: each * (shape.ports() as u64 * ordinary + escapes),
        by_class: each * (CLASSES as u64 * ordinary + escapes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::flows::InputClass;
    use crate::topology::PortKind;

    #[test]
    fn x10_a19_ip_flows_fall_by_the_number_of_tins() {
        let naive = ip_flows(&Shape::FULL, 2);
        assert!((1_900_000..2_000_000).contains(&naive), "{naive}");
        assert_eq!(naive, 1_990_656);
        assert_eq!(indexed_ip_flows(&Shape::FULL, 2), naive / 576);
        // Two hosts and a processor, in both versions of IP.
        assert_eq!(indexed_ip_flows(&Shape::FULL, 2), 6 * 576);
    }

    #[test]
    fn x11_a20_cell_flows_fall_by_six_classes() {
        let CellFlows { by_port, by_class } = cell_flows(&Shape::FULL);
        assert!((4_500_000..=5_300_000).contains(&by_port), "{by_port}");
        assert!((600_000..=800_000).contains(&by_class), "{by_class}");
        let ratio = by_port as f64 / by_class as f64;
        assert!((6.5..=8.0).contains(&ratio), "{ratio}");
        assert_eq!((by_port, by_class), (5_253_120, 691_200));
    }

    #[test]
    fn a20_channels_on_which_cells_come_and_fields_of_an_address_give_both_figures() {
        let shape = Shape::FULL;
        let (tins, places) = (u64::from(shape.tins()), 64 + 16);
        let channels = |class: InputClass| u64::from(class.channels().end);
        let classes: u64 = InputClass::ALL.into_iter().map(channels).sum();
        let count = |kind| (0..shape.ports()).filter(|&port| shape.kind(port) == kind).count();
        let of = |kind, class| count(kind) as u64 * channels(class);
        let ports = of(PortKind::Terminal, InputClass::Terminal)
            + of(PortKind::Global, InputClass::Global)
            + of(PortKind::Local, InputClass::ALL[2]);
        assert_eq!((ports, classes), (18 + 2 * 8 + 3 * 24, 15));
        let (by_port, by_class) = (tins * ports * places, tins * classes * places);
        assert!((4_500_000..5_000_000).contains(&by_port), "{by_port}: almost 5 million");
        assert!((690_000..710_000).contains(&by_class), "{by_class}: about 700,000");
    }

    #[test]
    fn a20_no_number_of_classes_and_destinations_gives_both_figures() {
        // "Almost 5 million" and "about 700,000", as widely as such words go, without escapes: their ratio is
        // that of 50 ports to the classes.
        let fits = |classes: u64, destinations: u64| {
            let each = 576 * 3 * destinations;
            (4_900_000..5_000_000).contains(&(50 * each))
                && (690_000..710_000).contains(&(classes * each))
        };
        assert!((1..200).all(|destinations| !fits(6, destinations)));
        assert!((4..9).all(|classes| (58..=60).all(|destinations| !fits(classes, destinations))));
    }
}
