//! The genetic search.
//!
//! Models: R2C2 §3.4, §5.2 (claims M31, I17): a genotype names a protocol for each long flow; its
//! fitness is the utility of the rates that water-filling computes for it; the best survive, the
//! others are bred from them. Elite, choice of parents, crossover and end are not given: E15.
//!
//! Genotypes are evaluated one after the other on one table of flows: going over to the next costs
//! what the flows that differ cost. Rates are the same whatever was there before, so fitness is too.

use kernel::Stream;

use super::utility::{LongFlow, Utility};
use crate::rates::{Courses, Waterfill, Whose};
use crate::routing::Protocol;

/// What the first generation holds besides random genotypes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Seeds {
    /// The protocols that flows use now: all that §3.4 speaks of.
    Current,
    /// And for each protocol the genotype that gives it to all flows. **Our choice**: Fig. 18 has the
    /// search never below any of them (claim I18), and this makes it so; from what flows use now and
    /// random genotypes alone it ended 4 % below Valiant for all with 16 flows on 64 nodes, 10 % with
    /// 51 on 512. It has a price: where Valiant for all is a local maximum the search may stay there
    /// (102 flows on 512 nodes: 6 % below what it finds from random genotypes).
    #[default]
    CurrentAndUniform,
}

/// How the search goes.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchPlan {
    /// The protocols to choose from. Default: random packet spraying and Valiant (§5.2), of which a
    /// genotype is a string of bits.
    pub protocols: Vec<Protocol>,
    /// Genotypes of a generation. Default 100 (§5.2).
    pub population: usize,
    /// The chance that a gene of a child changes. Default 0.01 (§5.2).
    pub mutation: f64,
    /// How many of the best live on. Default 10 (**our choice**, E15).
    pub elite: usize,
    /// The chance that a gene comes from the second parent. Default 0.5 (**our choice**, E15).
    pub crossover: f64,
    /// Generations without gain after which the search ends. Default 30 (**our choice**, E15).
    pub patience: u32,
    /// Most generations: the time limit. Default 1,000 (**our choice**).
    pub generations_max: u32,
    /// What the first generation holds. Default [`Seeds::CurrentAndUniform`].
    pub seeds: Seeds,
}

impl Default for SearchPlan {
    fn default() -> Self {
        Self {
            protocols: vec![Protocol::Rps, Protocol::Valiant],
            population: 100,
            mutation: 0.01,
            elite: 10,
            crossover: 0.5,
            patience: 30,
            generations_max: 1_000,
            seeds: Seeds::default(),
        }
    }
}

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// By flow: the protocol to use.
    pub protocols: Vec<Protocol>,
    /// The utility with the protocols that flows used before.
    pub before: f64,
    /// The best utility of each generation; the last is that of the result.
    pub best: Vec<f64>,
    /// Genotypes whose rates were computed.
    pub evaluations: u64,
}

impl Outcome {
    /// The utility of the result.
    #[must_use]
    pub fn after(&self) -> f64 {
        self.best.last().copied().unwrap_or(self.before)
    }

    /// Whether the gain is worth telling the rack: at least `share` of what there was. **Our choice**
    /// for the share is 0.01 (E16).
    #[must_use]
    pub fn is_worth(&self, share: f64) -> bool {
        self.after() > self.before && self.after() >= self.before * (1.0 + share)
    }
}

/// A genotype: by flow an index of a protocol.
type Genes = Vec<u8>;

/// A genotype and its fitness.
#[derive(Clone, Debug)]
struct Genotype {
    genes: Genes,
    fitness: f64,
}

/// Searches the protocols of long flows under which the utility is largest. `rates` holds whatever
/// other flows there are, and the long ones or not; it is left with the long ones under the protocols
/// that were found.
///
/// # Panics
/// If there is no protocol or no room for a generation.
pub fn search<C: Courses>(
    rates: &mut Waterfill<C>,
    flows: &[LongFlow],
    utility: Utility,
    plan: &SearchPlan,
    draw: &mut Stream,
) -> Outcome {
    assert!(!plan.protocols.is_empty() && plan.protocols.len() <= 256, "protocols to choose from");
    assert!(plan.elite >= 1 && plan.elite < plan.population, "an elite and others");
    let mut stage = Stage::new(rates, flows, utility, &plan.protocols);
    let before = stage.utility();
    let mut generation = first_generation(flows, plan, draw);
    generation.iter_mut().for_each(|genotype| genotype.fitness = stage.fitness(&genotype.genes));
    let mut best = Vec::new();
    let mut patience = plan.patience;
    loop {
        // Of equals the earlier: sorting is stable.
        generation.sort_by(|a, b| b.fitness.total_cmp(&a.fitness));
        let top = generation[0].fitness;
        let has_gained = best.last().is_none_or(|&last| top > last);
        best.push(top);
        patience = if has_gained { plan.patience } else { patience - 1 };
        if patience == 0 || best.len() > plan.generations_max as usize {
            break;
        }
        breed(&mut generation, plan, draw);
        for genotype in &mut generation[plan.elite..] {
            genotype.fitness = stage.fitness(&genotype.genes);
        }
    }
    // What flows use now stays if nothing is better, also if it is not among the choices.
    if before >= generation[0].fitness {
        stage.restore();
        *best.last_mut().expect("there is a first generation") = before;
        let protocols = flows.iter().map(|flow| flow.protocol).collect();
        return Outcome { protocols, before, best, evaluations: stage.evaluations };
    }
    let _ = stage.fitness(&generation[0].genes);
    let genes = generation[0].genes.iter();
    let protocols = genes.map(|&gene| plan.protocols[usize::from(gene)]).collect();
    Outcome { protocols, before, best, evaluations: stage.evaluations }
}

/// The current protocols and random ones.
fn first_generation(flows: &[LongFlow], plan: &SearchPlan, draw: &mut Stream) -> Vec<Genotype> {
    let place = |flow: &LongFlow| plan.protocols.iter().position(|&it| it == flow.protocol);
    // What cannot be chosen is drawn.
    let mut random = || draw.below(plan.protocols.len() as u64) as u8;
    let current: Genes =
        flows.iter().map(|flow| place(flow).map_or_else(&mut random, |at| at as u8)).collect();
    let mut all = vec![current];
    if plan.seeds == Seeds::CurrentAndUniform {
        all.extend((0..plan.protocols.len()).map(|gene| vec![gene as u8; flows.len()]));
    }
    while all.len() < plan.population {
        all.push(flows.iter().map(|_| random()).collect());
    }
    all.truncate(plan.population);
    all.into_iter().map(|genes| Genotype { genes, fitness: 0.0 }).collect()
}

/// Replaces all but the elite by children of two parents each. `generation` is sorted; the better a
/// genotype's rank, the likelier it is a parent: the first as many times as there are genotypes.
fn breed(generation: &mut [Genotype], plan: &SearchPlan, draw: &mut Stream) {
    let count = generation.len() as u64;
    let parent = |draw: &mut Stream| {
        // Tickets are numbered from the last rank up: rank r from the end has r + 1 of them.
        let ticket = draw.below(count * (count + 1) / 2);
        let from_end = ((8 * ticket + 1).isqrt() - 1) / 2;
        (count - 1 - from_end) as usize
    };
    let protocols = plan.protocols.len() as u64;
    let mut children = Vec::with_capacity(generation.len() - plan.elite);
    for _ in plan.elite..generation.len() {
        let (first, second) = (parent(draw), parent(draw));
        let pairs = generation[first].genes.iter().zip(&generation[second].genes);
        let gene = |(&one, &other): (&u8, &u8)| {
            let gene = if draw.bernoulli(plan.crossover) { other } else { one };
            if protocols > 1 && draw.bernoulli(plan.mutation) {
                // Any of the others.
                let step = 1 + draw.below(protocols - 1);
                ((u64::from(gene) + step) % protocols) as u8
            } else {
                gene
            }
        };
        children.push(Genotype { genes: pairs.map(gene).collect(), fitness: 0.0 });
    }
    generation[plan.elite..].iter_mut().zip(children).for_each(|(old, child)| *old = child);
}

/// Where genotypes are tried.
struct Stage<'a, C> {
    rates: &'a mut Waterfill<C>,
    flows: &'a [LongFlow],
    utility: Utility,
    protocols: &'a [Protocol],
    /// By flow: the protocol that it has on the stage.
    shown: Vec<Protocol>,
    found: Vec<f64>,
    sums: Vec<f64>,
    evaluations: u64,
}

impl<'a, C: Courses> Stage<'a, C> {
    /// The flows with the protocols that they use now.
    fn new(
        rates: &'a mut Waterfill<C>,
        flows: &'a [LongFlow],
        utility: Utility,
        protocols: &'a [Protocol],
    ) -> Self {
        for flow in flows {
            if rates.has(flow.place) {
                rates.leave(flow.place);
            }
            rates.join(flow.place, flow.course(flow.protocol), flow.terms);
        }
        let shown = flows.iter().map(|flow| flow.protocol).collect();
        let (found, sums) = (Vec::with_capacity(flows.len()), Vec::new());
        Self { rates, flows, utility, protocols, shown, found, sums, evaluations: 0 }
    }

    /// The utility of what is on the stage.
    fn utility(&mut self) -> f64 {
        self.evaluations += 1;
        self.rates.fill(Whose::All);
        self.found.clear();
        self.found.extend(self.flows.iter().map(|flow| self.rates.rate(flow.place)));
        self.utility.of(self.flows, &self.found, &mut self.sums)
    }

    fn fitness(&mut self, genes: &[u8]) -> f64 {
        for (at, &gene) in genes.iter().enumerate() {
            self.show(at, self.protocols[usize::from(gene)]);
        }
        self.utility()
    }

    fn restore(&mut self) {
        for (at, flow) in self.flows.iter().enumerate() {
            self.show(at, flow.protocol);
        }
    }

    fn show(&mut self, at: usize, protocol: Protocol) {
        if std::mem::replace(&mut self.shown[at], protocol) != protocol {
            let flow = &self.flows[at];
            self.rates.leave(flow.place);
            self.rates.join(flow.place, flow.course(protocol), flow.terms);
        }
    }
}
