//! The fairness microbenchmarks: who sends to whom, and what would be fair.
//!
//! Models: SCOC §3.A, Figs. 5 and 6. Fair rates follow from the scenario by max-min fairness, not
//! from the paper's charts. An input's connections arrive on one line, mixed evenly, into one
//! buffer, so they go at one rate.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rack::fairness::{Use, max_min};
use switching::Pattern;

/// A port as the paper names it: `2_0` is port 0 of group 2.
type Name = (usize, usize);

/// One of the scenarios.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Microbenchmark {
    /// 1 to 7.
    pub number: usize,
    /// Connections from port to port.
    pub connections: Cow<'static, [(Name, Name)]>,
}

/// All seven. The extracted text mixes subscripts; ports are as the text of each scenario requires.
pub const ALL: [Microbenchmark; 7] = [
    Microbenchmark {
        number: 1,
        connections: Cow::Borrowed(&[((0, 0), (2, 0)), ((0, 0), (3, 0)), ((1, 0), (3, 0))]),
    },
    Microbenchmark {
        number: 2,
        connections: Cow::Borrowed(&[((0, 1), (2, 0)), ((0, 0), (1, 0)), ((0, 2), (1, 0))]),
    },
    Microbenchmark {
        number: 3,
        connections: Cow::Borrowed(&[
            ((0, 0), (2, 0)),
            ((0, 0), (1, 0)),
            ((0, 1), (2, 0)),
            ((0, 2), (2, 0)),
        ]),
    },
    // Port numbers are our choice; the text gives the structure.
    Microbenchmark {
        number: 4,
        connections: Cow::Borrowed(&[((0, 0), (2, 0)), ((0, 1), (2, 1)), ((1, 0), (2, 1))]),
    },
    Microbenchmark {
        number: 5,
        connections: Cow::Borrowed(&[
            ((0, 0), (2, 0)),
            ((0, 1), (2, 0)),
            ((0, 2), (2, 0)),
            ((0, 3), (2, 1)),
            ((1, 0), (2, 0)),
            ((1, 1), (2, 1)),
            ((1, 2), (2, 1)),
        ]),
    },
    // The neighbours' outputs are our choice; the text says that they differ.
    Microbenchmark {
        number: 6,
        connections: Cow::Borrowed(&[
            ((0, 0), (2, 0)),
            ((1, 0), (2, 0)),
            ((1, 1), (3, 0)),
            ((1, 2), (4, 0)),
            ((1, 3), (5, 0)),
        ]),
    },
    // The connections are not in the text. These give what it says: 1/3 each for iSLIP without
    // speed-up, and more for some with it.
    Microbenchmark {
        number: 7,
        connections: Cow::Borrowed(&[
            ((0, 0), (2, 0)),
            ((0, 0), (2, 1)),
            ((0, 1), (2, 0)),
            ((0, 1), (2, 1)),
            ((0, 1), (2, 2)),
            ((0, 2), (2, 2)),
        ]),
    },
];

impl Microbenchmark {
    /// Its connections as ports of a switch with groups of `per_group`.
    pub fn ports(&self, per_group: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let port = move |(group, place): Name| group * per_group + place;
        self.connections.iter().map(move |&(from, to)| (port(from), port(to)))
    }

    /// The same for every way in which the inputs of each group can be numbered, without those that have the same
    /// connections, and its own first: which input is which, the text does not say.
    #[must_use]
    pub fn numberings(&self) -> Vec<Self> {
        let groups: BTreeSet<usize> =
            self.connections.iter().map(|&((group, _), _)| group).collect();
        let mut known = BTreeSet::new();
        let mut all = vec![self.connections.to_vec()];
        for group in groups {
            all = all.iter().flat_map(|list| renumbered(list, group)).collect();
        }
        all.retain(|list| known.insert(list.iter().copied().collect::<BTreeSet<_>>()));
        all.into_iter().map(|list| Self { number: self.number, connections: list.into() }).collect()
    }

    /// As traffic: every input's line shared evenly by its connections.
    ///
    /// # Errors
    /// If the switch is too small.
    pub fn pattern(&self, ports: usize, per_group: usize) -> Result<Pattern, String> {
        let list: Vec<_> = self.ports(per_group).collect();
        let of = |input: usize| list.iter().filter(|&&(from, _)| from == input).count() as f64;
        let shares: Vec<_> = list.iter().map(|&(from, to)| (from, to, 1.0 / of(from))).collect();
        Pattern::connections(ports, &shares)
    }

    /// The same where packets of an input go to its outputs one after the other, not at random.
    ///
    /// # Errors
    /// If the switch is too small.
    pub fn in_turn(&self, ports: usize, per_group: usize) -> Result<Pattern, String> {
        self.pattern(ports, per_group)?;
        let mut rows = vec![Vec::new(); ports];
        self.ports(per_group).for_each(|(from, to)| rows[from].push(to));
        Ok(Pattern::InTurn(rows))
    }

    /// The fair rate of each connection as a share of the line rate, if lines are busy for `load`.
    #[must_use]
    pub fn fair(&self, load: f64) -> Vec<f64> {
        let list: Vec<_> = self.ports(16).collect();
        let mut inputs: Vec<usize> = list.iter().map(|&(from, _)| from).collect();
        inputs.dedup();
        inputs.sort_unstable();
        inputs.dedup();
        // One flow an input: its rate is that of each of its connections.
        let links = 16 * 16;
        let flows: Vec<Vec<Use>> = inputs
            .iter()
            .map(|&input| {
                let to = list.iter().filter(|&&(from, _)| from == input);
                let line = Use { link: input, share: to.clone().count() as f64 };
                to.map(|&(_, to)| Use { link: links + to, share: 1.0 }).chain([line]).collect()
            })
            .collect();
        let capacities = [vec![load; links], vec![1.0; links]].concat();
        let rates = max_min(&capacities, &flows);
        let rate = |from| rates[inputs.binary_search(&from).expect("every input has a flow")];
        list.iter().map(|&(from, _)| rate(from)).collect()
    }
}

/// Connections for every way in which the inputs of a group can be numbered.
fn renumbered(connections: &[(Name, Name)], group: usize) -> Vec<Vec<(Name, Name)>> {
    let of_group = connections.iter().filter(|&&((of, _), _)| of == group);
    let places: Vec<usize> =
        of_group.map(|&((_, place), _)| place).collect::<BTreeSet<_>>().into_iter().collect();
    let renumber = |order: Vec<usize>| {
        let number = |(of, place): Name| match places.binary_search(&place) {
            Ok(index) if of == group => (of, order[index]),
            _ => (of, place),
        };
        connections.iter().map(|&(from, to)| (number(from), to)).collect()
    };
    orders(&places).into_iter().map(renumber).collect()
}

/// Every order of some numbers, that in which they are given first.
fn orders(numbers: &[usize]) -> Vec<Vec<usize>> {
    let Some((&last, others)) = numbers.split_last() else { return vec![Vec::new()] };
    let with_last = |order: Vec<usize>| {
        (0..=order.len()).rev().map(move |at| [&order[..at], &[last], &order[at..]].concat())
    };
    orders(others).into_iter().flat_map(with_last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fair_rates_are_those_of_the_text() {
        let (half, third) = (0.5, 1.0 / 3.0);
        let expected: [&[f64]; 7] = [
            &[half, half, half],
            &[1.0, half, half],
            &[third; 4],
            &[1.0, half, half],
            &[0.25, 0.25, 0.25, third, 0.25, third, third],
            &[half, half, 1.0, 1.0, 1.0],
            &[half, half, third, third, third, 2.0 / 3.0],
        ];
        for (scenario, expected) in ALL.iter().zip(expected) {
            let fair = scenario.fair(1.0);
            let near = fair.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
            assert!(near && fair.len() == expected.len(), "{}: {fair:?}", scenario.number);
            scenario.pattern(128, 4).unwrap().check(128).unwrap();
        }
    }
    #[test]
    fn numberings_are_all_that_differ() {
        // One of three, one of four and of three, and all orders of three: no two have the same connections.
        let counts = [2, 5, 7].map(|number: usize| ALL[number - 1].numberings().len());
        assert_eq!(counts, [3, 4 * 3, 6]);
        for scenario in ALL {
            let all = scenario.numberings();
            assert!(all.contains(&scenario), "{}", scenario.number);
            // Numbers alone differ.
            assert!(all.iter().all(|one| one.fair(1.0) == scenario.fair(1.0)), "{all:?}");
        }
    }
}
