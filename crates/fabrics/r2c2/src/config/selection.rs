//! The `selection` table: how often which node looks for better routing, and by which measure.

use kernel::Span;
use rack::{NodeId, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::routing::Protocol;
use crate::selection::{Rota, SearchPlan, Utility};

/// The search for better routing of long flows (§3.4).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// From one search to the next. Unit: time. Default 1 s (R2C2 §3.4: seconds or minutes).
    pub period: Span,
    /// Which node searches. Default first (R2C2 §3.4: the prototype's single node).
    pub turn: Turn,
    /// The quantity that the search maximises. Default aggregate (R2C2 §5.2).
    pub utility: Utility,
    /// The protocols to choose from. Default rps and valiant (R2C2 §5.2).
    pub protocols: Vec<Protocol>,
    /// Flows that have lasted this long take part in the search. Unit: time. Default 10 ms (our choice).
    pub age: Span,
    /// Genotypes of a generation. Default 100 (R2C2 §5.2). From 11 to 10,000.
    #[schemars(range(min = 11, max = 10_000))]
    pub population: u32,
    /// The chance that a gene of a child changes. Default 0.01 (R2C2 §5.2). From 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mutation: f64,
    /// Generations without gain after which the search ends. Default 30 (our choice). From 1 to 10,000.
    #[schemars(range(min = 1, max = 10_000))]
    pub patience: u32,
    /// Relative gain in utility below which the result of a search is not used. Default 0.01 (our
    /// choice). From 0.
    #[schemars(range(min = 0.0))]
    pub least_gain: f64,
}

/// Most genotypes, and most generations without gain (our choice: far beyond any use, and a search ends).
const SEARCH_MAX: u32 = 10_000;

/// Which node searches (§3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// Node 0.
    #[default]
    First,
    /// Each after a random time, unless it hears that another has searched.
    Random,
    /// One after the other; who does not is passed over after a hundredth of the period.
    Token,
}

impl Default for Selection {
    fn default() -> Self {
        let usual = SearchPlan::default();
        Self {
            period: Span::from_us(1_000_000),
            turn: Turn::default(),
            utility: Utility::default(),
            protocols: usual.protocols,
            age: Span::from_us(10_000),
            population: usual.population as u32,
            mutation: usual.mutation,
            patience: usual.patience,
            least_gain: 0.01,
        }
    }
}

impl Selection {
    /// Every mistake in it.
    pub(super) fn check(&self) -> Vec<Problem> {
        let elite = SearchPlan::default().elite as u32;
        let chance = (0.0..=1.0).contains(&self.mutation);
        let checks = [
            (
                (1..=Protocol::ALL.len()).contains(&self.protocols.len()),
                "protocols",
                format!("{}; expected one or more, each once", self.protocols.len()),
            ),
            (
                self.population > elite && self.population <= SEARCH_MAX,
                "population",
                format!(
                    "{}; expected more than the {elite} that live on and at most {SEARCH_MAX}",
                    self.population
                ),
            ),
            (chance, "mutation", format!("{}; expected from 0 to 1", self.mutation)),
            (
                (1..=SEARCH_MAX).contains(&self.patience),
                "patience",
                format!("{}; expected from 1 to {SEARCH_MAX}", self.patience),
            ),
            (
                self.least_gain.is_finite() && self.least_gain >= 0.0,
                "least_gain",
                format!("{}; expected a number from 0 up", self.least_gain),
            ),
        ];
        let wrong = checks.into_iter().filter(|(is_fine, _, _)| !is_fine);
        wrong.map(|(_, key, message)| Problem::new(key, message)).collect()
    }

    /// How nodes take turns.
    pub(crate) fn rota(&self) -> Rota {
        match self.turn {
            Turn::First => Rota::Fixed(NodeId::new(0)),
            Turn::Random => Rota::Random,
            Turn::Token => Rota::Token { grace: self.period / 100 },
        }
    }

    /// How the search goes.
    pub(crate) fn plan(&self) -> SearchPlan {
        SearchPlan {
            protocols: self.protocols.clone(),
            population: self.population as usize,
            mutation: self.mutation,
            patience: self.patience,
            ..SearchPlan::default()
        }
    }

    /// The quantity that the search maximises.
    pub(crate) fn utility(&self) -> Utility {
        self.utility
    }
}
