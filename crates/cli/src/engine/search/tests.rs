use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use kernel::Bytes;
use scenario::Format;

use super::*;
use crate::engine::Budget;

/// What a sampler was asked and told.
#[derive(Default)]
struct Log {
    /// Of each trial: how many had been told when it was asked for.
    asked: Vec<usize>,
    told: Vec<(u64, Judgement)>,
    /// How many were given beforehand.
    fixed: usize,
}

/// Goes through the numbers of a space by turns, each of them twice.
struct Turns {
    space: Vec<Over>,
    log: Rc<RefCell<Log>>,
    calls: RefCell<usize>,
}

impl Sampler for Turns {
    fn ask(&self, fixed: Option<&[f64]>) -> Result<(u64, Vec<f64>), Failure> {
        let mut log = self.log.borrow_mut();
        let handle = log.asked.len() as u64;
        let told = log.told.len();
        log.asked.push(told);
        if let Some(fixed) = fixed {
            log.fixed += 1;
            return Ok((handle, fixed.to_vec()));
        }
        let mut place = self.calls.replace_with(|calls| *calls + 1) / 2;
        let number = |over: &Over| {
            let numbers = over.range.numbers().unwrap();
            let number = numbers[place % numbers.len()];
            place /= numbers.len();
            number
        };
        Ok((handle, self.space.iter().map(number).collect()))
    }

    fn forget(&self, _: u64) -> Result<(), Failure> {
        self.log.borrow_mut().asked.pop();
        Ok(())
    }

    fn tell(&self, trial: u64, judgement: &Judgement) -> Result<(), Failure> {
        self.log.borrow_mut().told.push((trial, judgement.clone()));
        Ok(())
    }
}

const LOADS: &str = "workload.load=0.1,0.3,0.5,-1";

/// The short flows' times fall and the throughput grows with the load; one load is none.
fn wanted(trials: usize, jobs: usize) -> Search {
    let text = "name = 'small'\nrun.flows = 60\nworkload = { kind = 'poisson', load = 0.3 }\n\
                [[fabric]]\nkind = 'shoal'\nnodes = 16\nlabel = 'Shoal'\n\
                [[fabric]]\nkind = 'packet-switched'\nlabel = 'NDP'\ntransport = { kind = 'ndp' }\n\
                topology = { kind = 'leaf-spine', hosts = 16, rate = '10 Gbps' }\n";
    let aim = |key: &str, is_maximised| Aim { key: key.into(), is_maximised };
    Search {
        document: Document::parse("small.toml", text, Format::Toml).unwrap(),
        arguments: Vec::new(),
        space: vec![Over::parse(LOADS).unwrap()],
        aims: vec![aim("fct.all.p99", false), aim("throughput.mean_node", true)],
        constraints: vec![Constraint::parse("nodes >= 16").unwrap()],
        trials,
        jobs,
    }
}

fn searched(
    search_for: &Search,
    place: &Path,
    watch: &dyn Watch,
) -> (Result<Searched, Failure>, Log) {
    let log = Rc::new(RefCell::new(Log::default()));
    let make = |study: &Study| {
        let (space, log) = (study.space.clone(), log.clone());
        Ok(Box::new(Turns { space, log, calls: 0.into() }) as Box<dyn Sampler>)
    };
    let budget = Budget::new(2, Bytes::new(u64::MAX), &|_| ());
    let machines = Machines::This(&budget);
    let found = search(search_for, Some(place), &make, machines, &Registry::standard(), watch);
    (found, Rc::into_inner(log).expect("the sampler is gone").into_inner())
}

#[test]
fn a_search_goes_over_fabrics_too_and_ends_when_all_is_tried() {
    let place = tempfile::tempdir().unwrap();
    let (found, log) = searched(&wanted(100, 3), place.path(), &());
    let found = found.unwrap();
    assert!(found.is_exhausted);
    assert_eq!(found.trials.len(), 8, "four loads, two fabrics");
    let settings: BTreeSet<_> = found.trials.iter().map(|trial| &trial.settings).collect();
    assert_eq!(settings.len(), 8, "each once, though the sampler says all of them twice");
    let failed = |trial: &&Trial| trial.status == Status::Failed;
    assert_eq!(found.trials.iter().filter(failed).count(), 2, "the load that is none");
    let why = &found.trials.iter().find(failed).unwrap().judgement.why;
    assert!(why[0].contains("workload.load"), "{why:?}");
    // Those that failed are told as without aims.
    assert_eq!(log.told.iter().filter(|(_, told)| told.values.is_none()).count(), 2);
    for name in ["search.json", "trials.csv", "trials.parquet", "report.html", "figures/front.svg"]
    {
        assert!(place.path().join(name).is_file(), "{name}");
    }
    // No best trial is beaten, and each of the others is, by the definition.
    let values = |trial: &Trial| trial.judgement.values.clone().unwrap();
    let done: Vec<_> = found.trials.iter().filter(|trial| trial.summary.is_some()).collect();
    for trial in &done {
        let own = values(trial);
        let is_beaten = done
            .iter()
            .map(|other| values(other))
            .any(|other| other[0] <= own[0] && other[1] >= own[1] && other != own);
        assert_eq!(trial.is_best, !is_beaten, "{:?}", trial.settings);
    }
}

#[test]
fn slow_what_a_trial_is_chosen_by_does_not_depend_on_who_ends_first() {
    for jobs in [1, 3] {
        let place = tempfile::tempdir().unwrap();
        let (_, log) = searched(&wanted(6, jobs), place.path(), &());
        let expected: Vec<_> =
            (0..6usize).map(|number| (number + 1).saturating_sub(jobs)).collect();
        assert_eq!(log.asked, expected, "{jobs} at a time");
        let order: Vec<_> = log.told.iter().map(|(trial, _)| *trial).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }
}

/// Stops after some trials.
struct After(RefCell<usize>);

impl Watch for After {
    fn ended(&self, _: usize, _: &Trial) {
        self.0.replace_with(|left| left.saturating_sub(1));
    }

    fn stop(&self) -> bool {
        *self.0.borrow() == 0
    }
}

#[test]
fn slow_a_search_that_was_stopped_goes_on_and_makes_no_run_twice() {
    let place = tempfile::tempdir().unwrap();
    let (stopped, _) = searched(&wanted(6, 1), place.path(), &After(3.into()));
    assert!(stopped.unwrap().trials.len() < 6);
    let (found, log) = searched(&wanted(6, 1), place.path(), &());
    let found = found.unwrap();
    assert_eq!(log.fixed, 3);
    let is_done = |point: &Point| matches!(point.outcome, Outcome::Done(_));
    let again = found.trials[..3].iter().flat_map(|trial| &trial.points).filter(|p| is_done(p));
    assert_eq!(again.count(), 0);
    let elsewhere = tempfile::tempdir().unwrap();
    let whole = searched(&wanted(6, 1), elsewhere.path(), &()).0.unwrap();
    let settings =
        |all: &Searched| all.trials.iter().map(|t| t.settings.clone()).collect::<BTreeSet<_>>();
    assert_eq!(settings(&found).len(), settings(&whole).len());
}

#[test]
fn another_search_in_the_same_directory_is_refused() {
    let place = tempfile::tempdir().unwrap();
    searched(&wanted(1, 1), place.path(), &()).0.unwrap();
    let mut other = wanted(1, 1);
    other.constraints.clear();
    let failure = searched(&other, place.path(), &()).0.unwrap_err();
    assert_eq!(failure.exit_code(), 2);
    assert!(failure.to_string().contains("with other --subject"), "{failure}");
    let mut more = wanted(2, 2);
    more.trials = 2;
    assert_eq!(searched(&more, place.path(), &()).0.unwrap().trials.len(), 2);
}

/// Of the two fabrics one alone is Shoal, and a key is known if any of them has it.
#[test]
fn names_that_no_summary_of_the_space_has_are_refused_before_any_trial() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("none");
    let mut search_for = wanted(1, 1);
    search_for.aims[0].key = "fct.al.p99".into();
    search_for.aims[1].key = "shoal.payload_hops".into();
    search_for.constraints.push(Constraint::parse("queue.max_byte < 5000").unwrap());
    let (failed, log) = searched(&search_for, &directory, &());
    let failure = failed.unwrap_err();
    assert_eq!((failure.exit_code(), log.asked.len()), (2, 0));
    let said = failure.to_string();
    for expected in [
        "--minimise fct.al.p99: no summary of this scenario has such a number; did you mean \"fct.all.p99\"?",
        "--subject \"queue.max_byte < 5000\": no summary of this scenario has such a number",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    assert!(!said.contains("payload_hops") && !directory.exists(), "{said}");
}

#[test]
fn a_space_in_which_nothing_can_be_read_is_refused_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("none");
    let mut search_for = wanted(3, 1);
    search_for.space = vec![Over::parse("workload.lode=1..2").unwrap()];
    let failure = searched(&search_for, &directory, &()).0.unwrap_err();
    assert!(failure.to_string().contains("workload.lode"), "{failure}");
    search_for.space = vec![Over::parse("fabric=Shoal,Homer").unwrap()];
    let failure = searched(&search_for, &directory, &()).0.unwrap_err();
    assert!(failure.to_string().contains("no fabric \"Homer\""), "{failure}");
    assert!(!directory.exists());
}
