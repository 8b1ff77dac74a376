//! Max-min fairness by linear programming, over any set of rates that linear constraints describe.
//!
//! Models: "max-min programming", the algorithm that R2C2 §3.3 compares itself with: find the highest
//! level that all rates can have at once, fix the rates that can have no more, and go on with the
//! others. Slow, general, and nothing like water-filling: it is what the rates are tested against,
//! and what tells their cost. The solver is `microlp`'s simplex.

use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem, Variable};

/// Two values of which one is larger by less than this share are the same to the solver, whose own
/// tolerance is a hundredth of it (our choice).
const SAME: f64 = 1e-6;

/// One linear constraint.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    /// Variables and their factors.
    pub(super) terms: Vec<(usize, f64)>,
    pub(super) relation: ComparisonOp,
    pub(super) right: f64,
}

/// A rate that is to be fair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) variable: usize,
    pub(super) weight: f64,
    /// Lower numbers first.
    pub(super) priority: u8,
}

/// Variables, none below zero, and what holds of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Programme {
    /// By variable: the most that it may be.
    pub(super) limits: Vec<f64>,
    pub(super) constraints: Vec<Constraint>,
}

impl Programme {
    /// Adds a variable.
    pub(super) fn variable(&mut self, limit: f64) -> usize {
        self.limits.push(limit);
        self.limits.len() - 1
    }

    /// Adds a constraint.
    pub(super) fn hold(&mut self, terms: Vec<(usize, f64)>, relation: ComparisonOp, right: f64) {
        self.constraints.push(Constraint { terms, relation, right });
    }

    /// The weighted max-min fair values of the shares, one priority after the other.
    ///
    /// # Panics
    /// If the programme has no solution or no bound.
    pub(super) fn max_min(&self, shares: &[Share]) -> Vec<f64> {
        let mut values: Vec<Option<f64>> = vec![None; shares.len()];
        let mut priorities: Vec<u8> = shares.iter().map(|share| share.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        for priority in priorities {
            loop {
                let is_open =
                    |at: &usize| values[*at].is_none() && shares[*at].priority == priority;
                let open: Vec<usize> = (0..shares.len()).filter(is_open).collect();
                if open.is_empty() {
                    break;
                }
                let level = self.highest(shares, &values, &open, None);
                let most = |&at: &usize| self.highest(shares, &values, &open, Some((at, level)));
                let tops: Vec<f64> = open.iter().map(most).collect();
                let before = open.len();
                let mut stopped = 0;
                for (&at, top) in open.iter().zip(tops) {
                    let fair = level * shares[at].weight;
                    if top <= fair * (1.0 + SAME) + SAME {
                        values[at] = Some(fair);
                        stopped += 1;
                    }
                }
                assert!(stopped > 0, "of {before} rates at level {level} all can have more");
            }
        }
        values.into_iter().map(|value| value.expect("all rates are found")).collect()
    }

    /// The highest level of the open shares; or how large one of them can be while the others have
    /// at least their level.
    fn highest(
        &self,
        shares: &[Share],
        values: &[Option<f64>],
        open: &[usize],
        one: Option<(usize, f64)>,
    ) -> f64 {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let wanted = one.map(|(at, _)| shares[at].variable);
        let variables: Vec<Variable> = (0..)
            .zip(&self.limits)
            .map(|(variable, &limit)| {
                let factor = f64::from(u8::from(wanted == Some(variable)));
                problem.add_var(factor, (0.0, limit))
            })
            .collect();
        for Constraint { terms, relation, right } in &self.constraints {
            let terms = terms.iter().map(|&(variable, factor)| (variables[variable], factor));
            problem.add_constraint(terms.collect::<LinearExpr>(), *relation, *right);
        }
        for (share, value) in shares.iter().zip(values) {
            if let Some(value) = value {
                // A hair less than what was found, so that rounding does not make it impossible.
                let least = value * (1.0 - SAME * SAME.sqrt());
                problem.add_constraint([(variables[share.variable], 1.0)], ComparisonOp::Ge, least);
            }
        }
        let level = match one {
            None => problem.add_var(1.0, (0.0, f64::INFINITY)),
            Some((_, level)) => problem.add_var(0.0, (level, level)),
        };
        for &at in open {
            let Share { variable, weight, .. } = shares[at];
            let terms = [(variables[variable], 1.0), (level, -weight)];
            problem.add_constraint(terms, ComparisonOp::Ge, 0.0);
        }
        let outcome = problem.solve().expect("rates of zero are possible, and links bound them");
        outcome.into_solution().expect("no time limit is set").objective()
    }
}
