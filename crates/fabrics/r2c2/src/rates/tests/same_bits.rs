//! I05, E29: equal flows, equal rates, to the last bit, whatever the order of changes.

use proptest::prelude::*;

use super::*;

fn bits(rates: &[f64]) -> Vec<u64> {
    rates.iter().map(|rate| rate.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn i05_neither_the_order_of_flows_nor_what_was_there_before_matters(
        seed: u64, links in 1usize..30, flows in 1usize..60,
    ) {
        let case = Case::random(seed, links, flows, ALL);
        let expected = bits(&case.rates());
        let mut draw = Stream::new(seed, "test/order", 0);
        let mut order: Vec<u32> = (0..flows as u32).collect();
        draw.shuffle(&mut order);
        // Places are not those of before, flows join and leave, some of them twice, and rates are
        // computed in between.
        let mut rates = case.waterfill();
        let place = |flow: u32| (flow * 7 + 3) % 1009;
        for &flow in &order {
            let (course, terms) = case.flows[flow as usize];
            rates.join(place(flow), course, terms);
            if draw.bernoulli(0.3) {
                rates.fill(Whose::All);
            }
            if draw.bernoulli(0.3) {
                rates.leave(place(flow));
                let (other, terms) = case.flows[draw.below(flows as u64) as usize];
                rates.join(place(flow), other, terms);
                rates.leave(place(flow));
                rates.join(place(flow), course, case.flows[flow as usize].1);
            }
        }
        rates.fill(Whose::All);
        let found: Vec<f64> = (0..flows as u32).map(|flow| rates.rate(place(flow))).collect();
        prop_assert_eq!(bits(&found), expected.clone());
        rates.clear();
        for (place, &(course, terms)) in (0..).zip(&case.flows) {
            rates.join(place, course, terms);
        }
        rates.fill(Whose::All);
        let found: Vec<f64> = (0..flows as u32).map(|flow| rates.rate(flow)).collect();
        prop_assert_eq!(bits(&found), expected);
    }

    #[test]
    fn i05_a_node_that_asks_for_its_own_flows_gets_the_same_rates(
        seed: u64, links in 1usize..30, flows in 1usize..60,
    ) {
        let case = Case::random(seed, links, flows, ALL);
        let expected = case.rates();
        let mut rates = case.waterfill();
        for (place, &(course, terms)) in (0..).zip(&case.flows) {
            rates.join(place, course, terms);
        }
        for node in 0..6 {
            rates.fill(Whose::From(NodeId::new(node)));
            for (place, (course, _)) in (0..).zip(&case.flows) {
                if course.source.get() == node {
                    prop_assert_eq!(rates.rate(place).to_bits(), expected[place as usize].to_bits());
                }
            }
        }
    }
}
