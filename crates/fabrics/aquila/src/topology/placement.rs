//! Which TiNs have which hosts.
//!
//! Models: Aquila §2, §3.3, §6 (M005, M923): one or two hosts a TiN, and TiNs whose servers are not there yet:
//! the fabric is complete all the same. **Our choice** (U43): which TiNs have hosts, where not all do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shape;
use super::packaging::TINS_PER_CARD;

/// Which TiNs have hosts, where not all do (U43).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Every pod as many, and there every line card.
    #[default]
    Even,
    /// The first ones.
    Packed,
}

/// Where a host is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostPlace {
    /// Its TiN, among all.
    pub tin: u16,
    /// Which of the TiN's hosts it is: 0 or 1.
    pub slot: u8,
}

/// The places of `hosts` hosts, by TiN and slot. TiNs are filled before others are taken; the last may have
/// one host less.
///
/// # Panics
/// If there are more than the TiNs have places for.
#[must_use]
pub fn places(
    shape: &Shape,
    hosts_per_tin: u8,
    hosts: u32,
    placement: Placement,
) -> Vec<HostPlace> {
    let each = u32::from(hosts_per_tin);
    assert!(hosts <= u32::from(shape.tins()) * each, "{hosts} hosts, {each} to a TiN");
    let mut places = Vec::with_capacity(hosts as usize);
    for index in 0..hosts {
        let tin = (index / each) as u16;
        let tin = match placement {
            Placement::Packed => tin,
            Placement::Even => shape.tin(tin % shape.pods, spread(shape, tin / shape.pods)),
        };
        places.push(HostPlace { tin, slot: (index % each) as u8 });
    }
    places.sort_unstable();
    places
}

/// The places of a pod in an order in which every card comes before any comes twice.
fn spread(shape: &Shape, index: u16) -> u16 {
    let firsts = shape.tins_per_pod.div_ceil(TINS_PER_CARD);
    match index < firsts {
        true => index * TINS_PER_CARD,
        false => (index - firsts) * TINS_PER_CARD + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m007_a01_a09_the_full_clique_has_1152_hosts_in_24_racks() {
        let places = places(&Shape::FULL, 2, 1_152, Placement::Even);
        let expected: Vec<HostPlace> =
            (0..1_152).map(|host| HostPlace { tin: host / 2, slot: (host % 2) as u8 }).collect();
        assert_eq!(places, expected);
        assert_eq!((Shape::FULL.tins(), 24 * 48), (576, 1_152));
    }

    #[test]
    fn a41_500_hosts_are_on_250_tins_and_five_or_six_a_pod() {
        let places = places(&Shape::FULL, 2, 500, Placement::Even);
        let mut tins: Vec<u16> = places.iter().map(|place| place.tin).collect();
        tins.dedup();
        assert_eq!(tins.len(), 250);
        for pod in 0..48 {
            let here: Vec<u16> = tins
                .iter()
                .map(|&tin| Shape::FULL.split(tin))
                .filter(|at| at.0 == pod)
                .map(|at| at.1)
                .collect();
            assert!((5..=6).contains(&here.len()), "pod {pod}: {here:?}");
            assert!(here.iter().all(|place| place % 2 == 0), "a card each: {here:?}");
        }
    }

    #[test]
    fn m923_any_number_of_hosts_has_places_of_their_own() {
        for placement in [Placement::Even, Placement::Packed] {
            for shape in [Shape::TINY, Shape::MINI, Shape { tins_per_pod: 5, ..Shape::MINI }] {
                for hosts_per_tin in [1, 2] {
                    for hosts in 1..=u32::from(shape.tins()) * u32::from(hosts_per_tin) {
                        let mut places = places(&shape, hosts_per_tin, hosts, placement);
                        assert!(places.iter().all(|at| at.tin < shape.tins()));
                        places.dedup();
                        assert_eq!(places.len(), hosts as usize);
                    }
                }
            }
        }
    }
}
