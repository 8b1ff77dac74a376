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
    /// From one search to the next. Unit: time. Default 1 s (R2C2 §3.4: seconds or minutes). From 1 us to a day.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "86400 s"))]
    pub period: Span,
    /// Which node searches. Default first (R2C2 §3.4: the prototype's single node).
    pub turn: Turn,
    /// The quantity that the search maximises. Default aggregate (R2C2 §5.2).
    pub utility: Utility,
    /// The protocols to choose from. Default rps and valiant (R2C2 §5.2).
    pub protocols: Vec<Protocol>,
    /// Flows that have lasted this long take part in the search. Unit: time. Default 10 ms (our choice). At most a day.
    #[schemars(extend("x-maximum" = "86400 s"))]
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
        let message = format!("{}; expected one or more, each once", self.protocols.len());
        let is_fine = (1..=Protocol::ALL.len()).contains(&self.protocols.len());
        (!is_fine).then(|| Problem::new("protocols", message)).into_iter().collect()
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
