//! What a search leaves beside its points: a table of its trials, figures, a page.

use report::page::{Axis as PlotAxis, Block, Library, Page, Plot, PlotSeries, SeriesStyle};
use report::summary::{cell, label};
use report::{
    Cell, Column, FileError, Provenance, ResultsTable, TableColumn, Unit, figures,
    write_atomically, write_table,
};
use serde_json::{Map, Value};

use super::super::sweep::{Axis, LIBRARY, columns, csv, flat};
use super::{Searched, Status, Trial};

/// The names of the figure, without their ending: the front of several aims, or how far one has come.
pub const FRONT: &str = "figures/front";

/// Which trials a table has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// The best, or the front.
    Best,
    /// All, those first; how each stands, and why.
    All,
}

/// The trials as a table.
#[must_use]
pub fn table(searched: &Searched, shown: Shown) -> ResultsTable {
    let all = shown == Shown::All;
    let keys = searched.space.iter().map(|over| Column::new(&over.key, &over.key));
    let figures = keys_of_figures(searched);
    let figures_columns = figures.iter().map(|key| Column::new(key, label(key)));
    let trial = Column::new("trial", "Trial");
    let rest = [Column::new("status", "Status"), Column::new("why", "Why")];
    let rest = if all { rest.to_vec() } else { Vec::new() };
    let mut table = ResultsTable::new(
        [trial].into_iter().chain(keys).chain(figures_columns).chain(rest).collect(),
    );
    let rows = searched.trials.iter().enumerate();
    let (best, others): (Vec<_>, Vec<_>) = rows.partition(|(_, trial)| trial.is_best);
    let others = others.into_iter().filter(|_| all);
    for (number, trial) in best.into_iter().chain(others) {
        let mut row = vec![Cell::new(number, Unit::Count)];
        row.extend(trial.settings.iter().map(Cell::text));
        row.extend(figures.iter().map(|key| {
            let found = trial.summary.as_ref().and_then(|summary| cell(summary, key));
            found.unwrap_or_else(|| Cell::new(Value::Null, Unit::of_key(key)))
        }));
        if all {
            row.push(Cell::text(word(trial)));
            row.push(Cell::text(trial.judgement.why.join("; ")));
        }
        table.push(row);
    }
    table
}

/// The figures that a search is about, each once: its aims, then what its conditions are of.
fn keys_of_figures(searched: &Searched) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let aims = searched.aims.iter().map(|aim| &aim.key);
    for key in aims.chain(searched.constraints.iter().map(|held| &held.key)) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

fn word(trial: &Trial) -> &'static str {
    if trial.is_best { "best" } else { trial.status.as_str() }
}

/// Writes everything.
pub(super) fn write(searched: &Searched) -> Result<(), FileError> {
    let at = |name: &str| searched.directory.join(name);
    let all = rows(searched);
    let origin = Provenance {
        version: crate::VERSION.into(),
        scenario_hash: String::new(),
        seed: 0,
        scenario: String::new(),
    };
    write_atomically(&at("trials.csv"), &csv(&all))?;
    write_table(&at("trials.parquet"), &all, &origin)?;
    let plots = plots(searched);
    if !plots.is_empty() {
        let folder = at("figures");
        std::fs::create_dir_all(&folder).map_err(|source| FileError::new(&folder, source))?;
        write_atomically(&at(&format!("{FRONT}.svg")), figures::svg(&plots).as_bytes())?;
        write_atomically(&at(&format!("{FRONT}.pdf")), &figures::pdf(&plots))?;
    }
    let html = page(searched, plots).to_html_with(Library::Beside(LIBRARY));
    write_atomically(&at("report.html"), html.as_bytes())
}

/// One row a trial: settings, what the search makes of it, its summary but the engine's speed.
fn rows(searched: &Searched) -> Vec<TableColumn> {
    let axes: Vec<Axis> = searched
        .space
        .iter()
        .map(|over| Axis { key: over.key.clone(), values: Vec::new() })
        .collect();
    let row = |(number, trial): (usize, &Trial)| {
        let mut row = Map::new();
        row.insert("trial".into(), number.into());
        row.insert("is_best".into(), trial.is_best.into());
        row.insert("why".into(), trial.judgement.why.join("; ").into());
        let folders = trial.points.iter().map(|point| format!("points/{}", point.hash));
        row.insert("folders".into(), folders.collect::<Vec<_>>().join(" ").into());
        row.extend(trial.summary.as_ref().map(flat).unwrap_or_default());
        (trial.settings.clone(), trial.status.as_str(), row)
    };
    let rows: Vec<_> = searched.trials.iter().enumerate().map(row).collect();
    columns(&axes.iter().collect::<Vec<_>>(), &rows)
}

/// The front of each two aims; of a single one, how far it has come by each trial.
fn plots(searched: &Searched) -> Vec<Plot> {
    let aims = &searched.aims;
    let known = searched.trials.iter().any(|trial| trial.judgement.values.is_some());
    if !known {
        return Vec::new();
    }
    if aims.len() == 1 {
        return vec![progress(searched)];
    }
    let pairs = (0..aims.len()).flat_map(|x| (x + 1..aims.len()).map(move |y| (x, y)));
    pairs.map(|(x, y)| front(searched, x, y)).collect()
}

/// The values of those trials whose aims are known.
fn values(searched: &Searched, wanted: impl Fn(&Trial) -> bool) -> Vec<(usize, &[f64])> {
    let trials = searched.trials.iter().enumerate().filter(|(_, trial)| wanted(trial));
    trials.filter_map(|(at, trial)| Some((at, trial.judgement.values.as_deref()?))).collect()
}

fn is_other(trial: &Trial, status: Status) -> bool {
    trial.status == status && !trial.is_best
}

/// Values that are further apart than this lie by their logarithm (our choice: on a linear axis the lower half of them
/// would be one mark).
const WIDE: f64 = 30.0;

fn is_wide(values: impl Iterator<Item = f64>) -> bool {
    let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    let (low, high) = values.fold((f64::INFINITY, 0.0), ends);
    low > 0.0 && high >= WIDE * low
}

/// What is best in two aims, among all that was tried.
fn front(searched: &Searched, x: usize, y: usize) -> Plot {
    let of = |wanted: &dyn Fn(&Trial) -> bool| {
        let mut points: Vec<_> =
            values(searched, wanted).iter().map(|(_, values)| (values[x], values[y])).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        points
    };
    let series = [
        PlotSeries::new("Front", SeriesStyle::Points, of(&|trial| trial.is_best)).in_hue(0),
        PlotSeries::new(
            "Feasible",
            SeriesStyle::Points,
            of(&|trial| is_other(trial, Status::Feasible)),
        )
        .in_hue(1),
        PlotSeries::new(
            "Infeasible",
            SeriesStyle::Published,
            of(&|trial| is_other(trial, Status::Infeasible)),
        )
        .in_hue(2),
    ];
    let axis = |at: usize| {
        let key = &searched.aims[at].key;
        let found = values(searched, |_| true).into_iter().map(|(_, values)| values[at]);
        match is_wide(found) {
            true => PlotAxis::log(label(key), Unit::of_key(key)),
            false => PlotAxis::linear(label(key), Unit::of_key(key)),
        }
    };
    Plot {
        title: format!("{} against {}", label(&searched.aims[y].key), label(&searched.aims[x].key)),
        note: "Nothing that was tried is better than the front in every aim.".into(),
        x: axis(x),
        y: axis(y),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
    }
}

/// How good the best is by each trial.
fn progress(searched: &Searched) -> Plot {
    let aim = &searched.aims[0];
    let point = |(at, values): &(usize, &[f64])| (*at as f64, values[0]);
    let of = |status: Status| {
        let found = values(searched, |trial| trial.status == status);
        found.iter().map(point).collect::<Vec<_>>()
    };
    let feasible = of(Status::Feasible);
    let mut best: Vec<(f64, f64)> = Vec::new();
    for (at, value) in &feasible {
        let before = best.last().map_or(*value, |(_, best)| *best);
        let better = if aim.is_maximised { before.max(*value) } else { before.min(*value) };
        best.push((*at, better));
    }
    let series = [
        PlotSeries::new("Best so far", SeriesStyle::Steps, best).in_hue(0),
        PlotSeries::new("Feasible", SeriesStyle::Points, feasible).in_hue(1),
        PlotSeries::new("Infeasible", SeriesStyle::Published, of(Status::Infeasible)).in_hue(2),
    ];
    Plot {
        title: format!("{} by trial", label(&aim.key)),
        note: String::new(),
        x: PlotAxis::linear("Trial", Unit::Count),
        y: PlotAxis::linear(label(&aim.key), Unit::of_key(&aim.key)),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
    }
}

fn page(searched: &Searched, plots: Vec<Plot>) -> Page {
    let count =
        |status: Status| searched.trials.iter().filter(|trial| trial.status == status).count();
    let lead = format!(
        "{} trials: {} feasible, {} infeasible, {} failed.",
        searched.trials.len(),
        count(Status::Feasible),
        count(Status::Infeasible),
        count(Status::Failed)
    );
    let mut page = Page { title: format!("{}: search", searched.name), lead, sections: Vec::new() };
    let best = if searched.aims.len() == 1 { "The best" } else { "The front" };
    page.push(best, vec![Block::table(table(searched, Shown::Best))]);
    page.push("Figures", vec![Block::Plots(plots)]);
    let aim = |aim: &super::Aim| {
        let word = if aim.is_maximised { "as large as can be" } else { "as small as can be" };
        (aim.key.clone(), word.to_string())
    };
    let subject = searched.constraints.iter().map(|held| (held.text.clone(), "has to hold".into()));
    let terms = searched.aims.iter().map(aim).chain(subject).collect();
    page.push("What for", vec![Block::Terms(terms)]);
    page.push("All trials", vec![Block::table(table(searched, Shown::All))]);
    page
}
