//! All 65,536 turn tables, and the four that are left.

use super::*;

/// What the search finds in pods of `tins` TiNs: acyclic tables, maximal ones, and those of them with enough
/// ways.
fn search(tins: u16) -> (usize, usize, Vec<TurnTable>) {
    let acyclic: Vec<bool> =
        (0..=u16::MAX).map(|bits| TurnTable::from_bits(bits).circle(tins).is_none()).collect();
    let is_maximal = |bits: u16| {
        let more = |bit: u32| bits & 1 << bit == 0 && acyclic[usize::from(bits | 1 << bit)];
        acyclic[usize::from(bits)] && !(0..16).any(more)
    };
    let maximal: Vec<u16> = (0..=u16::MAX).filter(|&bits| is_maximal(bits)).collect();
    let least = |table: &TurnTable| ways(table, tins).into_iter().min().unwrap();
    let enough = maximal
        .iter()
        .map(|&bits| TurnTable::from_bits(bits))
        .filter(|table| least(table) >= (tins / 2).saturating_sub(1))
        .collect();
    (acyclic.iter().filter(|&&is| is).count(), maximal.len(), enough)
}

/// Detours of every pair.
fn ways(table: &TurnTable, tins: u16) -> Vec<u16> {
    let pairs = (0..tins).flat_map(|a| (0..tins).filter(move |&b| b != a).map(move |b| (a, b)));
    pairs.map(|(a, b)| table.detours(tins, a, b)).collect()
}

#[track_caller]
fn check_search(tins: u16) {
    let (acyclic, maximal, enough) = search(tins);
    assert_eq!((acyclic, maximal), (13_312, 14), "{tins} TiNs");
    let published = [TurnTable::P1, TurnTable::P2, TurnTable::P3, TurnTable::P4];
    assert_eq!(enough.len(), 4, "{tins} TiNs: {enough:?}");
    assert!(published.iter().all(|table| enough.contains(table)), "{tins} TiNs: {enough:?}");
}

#[test]
fn m305_four_tables_are_left_of_all_in_pods_of_6() {
    check_search(6);
}

#[test]
fn m305_four_tables_are_left_of_all_in_pods_of_12() {
    check_search(12);
}

#[test]
fn i24_every_pair_of_a_pod_of_12_has_five_detours() {
    for table in [TurnTable::P1, TurnTable::P2, TurnTable::P3, TurnTable::P4] {
        let ways = ways(&table, 12);
        assert_eq!((ways.iter().min(), ways.iter().max()), (Some(&5), Some(&10)));
        assert_eq!(u32::from(ways.iter().sum::<u16>()) * 100, 625 * ways.len() as u32, "6.25 each");
        assert_eq!(table.pairs(), 11);
    }
}

#[test]
fn m305_the_four_tables_have_no_circle_in_any_pod() {
    for tins in 1..=crate::address::TINS_MAX {
        for table in [TurnTable::P1, TurnTable::P2, TurnTable::P3, TurnTable::P4] {
            assert_eq!(table.circle(tins), None, "{tins} TiNs");
            table.check(tins).unwrap();
        }
    }
}

#[test]
fn m305_a_table_with_a_circle_is_refused_by_name() {
    let problem = Turns::Table([[true; 4]; 4]).table().check(12).unwrap_err();
    assert!(problem.message.contains("circle of links: 0 -> 1 (odd+)"), "{problem}");
}

#[test]
fn m305_the_table_of_p1_as_written() {
    use HopType::{EvenDown, EvenUp, OddDown, OddUp};
    let rows = [
        (OddDown, vec![OddDown, OddUp, EvenDown, EvenUp]),
        (OddUp, vec![OddUp, EvenUp, EvenDown]),
        (EvenUp, vec![OddUp, EvenUp, EvenDown]),
        (EvenDown, vec![EvenDown]),
    ];
    for (first, nexts) in rows {
        for next in HopType::ALL {
            assert_eq!(TurnTable::P1.allows(first, next), nexts.contains(&next), "{first} {next}");
        }
    }
}
