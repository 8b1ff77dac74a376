//! The report of a reproduction: a paper's claims beside our figures.

use serde_json::Value;

use crate::page::{Block, Page, Section, Tile};
use crate::{Cell, Column, ResultsTable, Tone, Unit};

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Ours agrees within the tolerance.
    Reproduced,
    /// It does not; the claim's note says why.
    Differs,
    /// It was not tried; the claim's note says why.
    NotRun,
}

impl Verdict {
    /// The word that scripts rely on.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::NotRun => "not run",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Reproduced => Tone::Good,
            Self::Differs => Tone::Bad,
            Self::NotRun => Tone::Muted,
        }
    }
}

/// What a row says, and so whether it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Something that the paper has found, and that ours could fail to find: counted, once however many rows
    /// carry it.
    Claim,
    /// What cannot differ while the model is sound: constants echoed, arithmetic, ideal baselines. It must
    /// hold, and is not counted.
    Check,
    /// A claim under another reading than the paper's stated configuration: shown, not counted.
    Sensitivity,
    /// A figure of the paper to which an input was fitted: listed, not counted.
    Input,
}

impl Kind {
    /// The word that scripts rely on.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Check => "check",
            Self::Sensitivity => "sensitivity",
            Self::Input => "input",
        }
    }
}

/// How well it is known why a claim differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Something was changed, and the difference went away, or fell to what its note says.
    Tested,
    /// It follows from arithmetic or from what is not published; no run has shown it.
    Argued,
    /// It is not known, or not all of it.
    Open,
}

impl Cause {
    /// The word that scripts rely on.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tested => "tested",
            Self::Argued => "argued",
            Self::Open => "open",
        }
    }
}

/// One row of a reproduction.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Short name, unique in its paper.
    pub claim: String,
    /// Where the paper says it.
    pub section: String,
    /// What it says, in our words.
    pub what: String,
    /// What the figures measure.
    pub unit: Unit,
    /// The paper's figure: a number in SI units, or text.
    pub published: Value,
    /// Ours; null if not run.
    pub ours: Value,
    /// Lowest and highest over the seeds; null if there is but one.
    pub interval: Value,
    /// How far ours may be from theirs, in words.
    pub tolerance: String,
    /// What became of it.
    pub verdict: Verdict,
    /// Of a claim that differs: how well it is known why.
    pub cause: Option<Cause>,
    /// Why it differs or was not run; never empty then.
    pub note: String,
    /// What the row says.
    pub kind: Kind,
    /// The published claim that it carries, or is another reading of; empty if it is none.
    pub of: String,
}

/// The claims as a table: the columns that scripts rely on.
#[must_use]
pub fn claims_table(claims: &[Claim]) -> ResultsTable {
    let columns = [
        ("claim", "Claim"),
        ("section", "Section"),
        ("what", "What"),
        ("published", "Published"),
        ("ours", "Ours"),
        ("interval", "Range"),
        ("tolerance", "Tolerance"),
        ("verdict", "Verdict"),
        ("cause", "Cause"),
        ("note", "Note"),
        ("kind", "Kind"),
        ("of", "Published claim"),
    ];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).to_vec());
    for claim in claims {
        table.push(vec![
            Cell::text(&claim.claim),
            Cell::text(&claim.section),
            Cell::text(&claim.what),
            Cell::new(claim.published.clone(), claim.unit),
            Cell::new(claim.ours.clone(), claim.unit),
            Cell::new(claim.interval.clone(), claim.unit),
            Cell::text(&claim.tolerance),
            Cell::text(claim.verdict.as_str()).toned(claim.verdict.tone()),
            Cell::text(claim.cause.map_or("", Cause::as_str)),
            Cell::text(&claim.note),
            Cell::text(claim.kind.as_str()),
            Cell::text(&claim.of),
        ]);
    }
    table
}

/// The same for people: without the columns `cause` and `of` where no claim has one.
#[must_use]
pub fn claims_to_read(claims: &[Claim]) -> ResultsTable {
    claims_table(claims).without_if_empty("cause").without_if_empty("of")
}

/// What a published claim came to: what all of its rows did.
///
/// It is reproduced when each of its rows is, and differs as soon as one does.
#[must_use]
pub fn verdict_of(rows: &[Verdict]) -> Verdict {
    if rows.contains(&Verdict::Differs) {
        Verdict::Differs
    } else if rows.contains(&Verdict::NotRun) {
        Verdict::NotRun
    } else {
        Verdict::Reproduced
    }
}

/// Each published claim that the rows carry, in the order in which they come, with what it came to.
#[must_use]
pub fn published_claims(rows: &[Claim]) -> Vec<(&str, Verdict)> {
    let mut found: Vec<(&str, Vec<Verdict>)> = Vec::new();
    for row in rows.iter().filter(|row| row.kind == Kind::Claim) {
        match found.iter_mut().find(|(of, _)| *of == row.of) {
            Some((_, verdicts)) => verdicts.push(row.verdict),
            None => found.push((&row.of, vec![row.verdict])),
        }
    }
    found.into_iter().map(|(of, verdicts)| (of, verdict_of(&verdicts))).collect()
}

/// How many published claims came to what, and what stands beside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Published claims all of whose rows are reproduced.
    pub reproduced: usize,
    /// Those of which a row differs.
    pub differ: usize,
    /// Of these, those of whose rows each that differs does so for a reason that was tested.
    pub tested: usize,
    /// Those of which a row was not run, and none differs.
    pub not_run: usize,
    /// Checks that hold.
    pub checks_held: usize,
    /// Checks that do not: a mistake of ours.
    pub checks_failed: usize,
    /// Rows under another reading.
    pub sensitivities: usize,
    /// Rows to which an input was fitted.
    pub inputs: usize,
}

impl Tally {
    /// Of these rows, which are one paper's.
    #[must_use]
    pub fn of(rows: &[Claim]) -> Self {
        let mut tally = Self::default();
        let is_tested = |of: &str| {
            let of_it = rows.iter().filter(|row| row.kind == Kind::Claim && row.of == of);
            let mut differing = of_it.filter(|row| row.verdict == Verdict::Differs);
            differing.all(|row| row.cause == Some(Cause::Tested))
        };
        for (of, verdict) in published_claims(rows) {
            match verdict {
                Verdict::Reproduced => tally.reproduced += 1,
                Verdict::Differs => {
                    tally.differ += 1;
                    tally.tested += usize::from(is_tested(of));
                }
                Verdict::NotRun => tally.not_run += 1,
            }
        }
        for row in rows {
            match (row.kind, row.verdict) {
                (Kind::Claim, _) => {}
                (Kind::Check, Verdict::Reproduced) => tally.checks_held += 1,
                (Kind::Check, _) => tally.checks_failed += 1,
                (Kind::Sensitivity, _) => tally.sensitivities += 1,
                (Kind::Input, _) => tally.inputs += 1,
            }
        }
        tally
    }

    /// Published claims in all.
    #[must_use]
    pub fn claims(self) -> usize {
        self.reproduced + self.differ + self.not_run
    }

    /// Both together, of different papers.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            reproduced: self.reproduced + other.reproduced,
            differ: self.differ + other.differ,
            tested: self.tested + other.tested,
            not_run: self.not_run + other.not_run,
            checks_held: self.checks_held + other.checks_held,
            checks_failed: self.checks_failed + other.checks_failed,
            sensitivities: self.sensitivities + other.sensitivities,
            inputs: self.inputs + other.inputs,
        }
    }

    /// In one line.
    #[must_use]
    pub fn words(self) -> String {
        let Self { reproduced, differ, tested, not_run, .. } = self;
        let Self { checks_held, checks_failed, sensitivities, inputs, .. } = self;
        let tested = match differ {
            0 => String::new(),
            _ => format!(", {tested} of them for a tested cause"),
        };
        let failed = match checks_failed {
            0 => String::new(),
            failed => format!(" and {failed} fail"),
        };
        let claims = match self.claims() {
            0 => "distinct claims: none".into(),
            claims => format!(
                "distinct claims: {claims} ({reproduced} reproduced, {differ} differ{tested}, {not_run} not run)"
            ),
        };
        format!(
            "{claims}; checks: {checks_held} hold{failed}; not counted: {sensitivities} sensitivities, {inputs} \
             fitted inputs"
        )
    }
}

/// The page of a reproduction: how many claims hold, the table, then one section an experiment, which
/// the caller composes.
#[must_use]
pub fn claims_page(title: &str, lead: &str, claims: &[Claim], experiments: Vec<Section>) -> Page {
    let mut page = Page { title: title.into(), lead: lead.into(), sections: Vec::new() };
    let tally = Tally::of(claims);
    let tile = |label: &str, count: usize, verdict: Verdict| {
        let tone = if count == 0 { Tone::Plain } else { verdict.tone() };
        let note = format!("of {} published claims", tally.claims());
        Tile { label: label.into(), value: count.to_string(), note, tone }
    };
    let beside = |label: &str, count: usize, note: &str| Tile {
        label: label.into(),
        value: count.to_string(),
        note: note.into(),
        tone: Tone::Plain,
    };
    let failed = match tally.checks_failed {
        0 => Tone::Plain,
        _ => Tone::Bad,
    };
    let checks = tally.checks_held + tally.checks_failed;
    let mut tiles = Vec::new();
    if tally.claims() > 0 {
        tiles.extend([
            tile("Reproduced", tally.reproduced, Verdict::Reproduced),
            Tile {
                note: format!("{} of them for a tested cause", tally.tested),
                ..tile("Differ", tally.differ, Verdict::Differs)
            },
            tile("Not run", tally.not_run, Verdict::NotRun),
        ]);
    }
    if checks > 0 {
        let of_all = format!("of {checks} hold");
        tiles.push(Tile { tone: failed, ..beside("Checks", tally.checks_held, &of_all) });
    }
    let others = [
        ("Sensitivities", tally.sensitivities, "shown, not counted"),
        ("Fitted inputs", tally.inputs, "listed, not counted"),
    ];
    let there = others.into_iter().filter(|&(_, count, _)| count > 0);
    tiles.extend(there.map(|(label, count, note)| beside(label, count, note)));
    page.push("Claims", vec![Block::Tiles(tiles), Block::table(claims_to_read(claims))]);
    for experiment in experiments {
        page.push(experiment.title, experiment.blocks);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn people_read_no_column_that_holds_nothing() {
        let heads =
            |claims: &[Claim]| claims_to_read(claims).to_json()[0].as_object().unwrap().clone();
        let check = Claim { kind: Kind::Check, of: String::new(), cause: None, ..claim() };
        let bare = heads(std::slice::from_ref(&check));
        assert!(!bare.contains_key("cause") && !bare.contains_key("of"), "{bare:?}");
        let both = heads(&[check, Claim { of: "told".into(), cause: None, ..claim() }]);
        assert!(both.contains_key("of") && !both.contains_key("cause"), "{both:?}");
    }

    #[test]
    fn checks_alone_are_called_so() {
        let checks = [Claim { kind: Kind::Check, of: String::new(), ..claim() }];
        let words = Tally::of(&checks).words();
        assert!(words.starts_with("distinct claims: none; checks: 1 hold"), "{words}");
        let page = claims_page("checks", "", &checks, Vec::new()).to_html();
        assert!(!page.contains("of 0 published claims"));
        let page = claims_page("claims", "", &[claim()], Vec::new()).to_html();
        assert!(page.contains("of 1 published claims"));
    }

    #[test]
    fn a_page_leaves_out_columns_that_say_nothing() {
        let has = |claim: Claim, title: &str| {
            let page = claims_page("claims", "", &[claim], Vec::new()).to_html();
            page.contains(&format!("<th scope=\"col\">{title}</th>"))
        };
        let check = || Claim { kind: Kind::Check, of: String::new(), ..claim() };
        assert!(has(claim(), "Published claim") && !has(check(), "Published claim"));
        let differs = || Claim { verdict: Verdict::Differs, cause: Some(Cause::Tested), ..claim() };
        assert!(has(differs(), "Cause") && !has(claim(), "Cause"));
        assert!(has(check(), "Verdict"));
    }

    fn claim() -> Claim {
        Claim {
            claim: "S1".into(),
            section: "§7".into(),
            what: "Latency".into(),
            unit: Unit::Seconds,
            published: json!(1.57e-6),
            ours: json!(1.6e-6),
            interval: json!([1.5e-6, 1.7e-6]),
            tolerance: "5%".into(),
            verdict: Verdict::Reproduced,
            cause: None,
            note: String::new(),
            kind: Kind::Claim,
            of: "latency".into(),
        }
    }

    #[test]
    fn a_claim_is_counted_once_and_is_what_all_of_its_rows_are() {
        let row = |of: &str, kind, verdict| Claim { of: of.into(), kind, verdict, ..claim() };
        let rows = [
            row("a", Kind::Claim, Verdict::Reproduced),
            row("b", Kind::Claim, Verdict::Reproduced),
            row("a", Kind::Claim, Verdict::Differs),
            row("b", Kind::Claim, Verdict::Reproduced),
            row("c", Kind::Claim, Verdict::NotRun),
            row("c", Kind::Claim, Verdict::Reproduced),
            row("a", Kind::Sensitivity, Verdict::Reproduced),
            row("b", Kind::Sensitivity, Verdict::Differs),
            row("", Kind::Check, Verdict::Reproduced),
            row("", Kind::Check, Verdict::Differs),
            row("", Kind::Input, Verdict::Reproduced),
        ];
        let expected =
            [("a", Verdict::Differs), ("b", Verdict::Reproduced), ("c", Verdict::NotRun)];
        assert_eq!(published_claims(&rows), expected);
        let tally = Tally::of(&rows);
        assert_eq!((tally.reproduced, tally.differ, tally.not_run, tally.claims()), (1, 1, 1, 3));
        assert_eq!((tally.checks_held, tally.checks_failed), (1, 1));
        assert_eq!((tally.sensitivities, tally.inputs), (2, 1));
        assert_eq!(tally.and(tally).claims(), 6);
        assert!(tally.words().contains("1 hold and 1 fail"), "{}", tally.words());
    }

    #[test]
    fn a_claim_differs_for_a_tested_cause_if_each_of_its_rows_does_that_differs() {
        let row = |of: &str, verdict, cause| Claim { of: of.into(), verdict, cause, ..claim() };
        let rows = [
            row("a", Verdict::Differs, Some(Cause::Tested)),
            row("a", Verdict::Reproduced, None),
            row("b", Verdict::Differs, Some(Cause::Tested)),
            row("b", Verdict::Differs, Some(Cause::Open)),
            row("c", Verdict::Differs, Some(Cause::Argued)),
            row("d", Verdict::Differs, None),
            row("e", Verdict::Reproduced, None),
            Claim { kind: Kind::Sensitivity, ..row("a", Verdict::Differs, None) },
        ];
        let tally = Tally::of(&rows);
        assert_eq!((tally.differ, tally.tested), (4, 1));
        assert!(tally.words().contains("4 differ, 1 of them for a tested cause"));
    }

    #[test]
    fn rows_have_the_keys_of_the_contract() {
        let table = claims_table(&[claim()]);
        let expected = json!([{
            "claim": "S1", "section": "§7", "what": "Latency", "published": 1.57e-6,
            "ours": 1.6e-6, "interval": [1.5e-6, 1.7e-6], "tolerance": "5%",
            "verdict": "reproduced", "cause": "", "note": "", "kind": "claim", "of": "latency",
        }]);
        assert_eq!(table.to_json(), expected);
        assert_eq!(table.rows[0][5].text, "1.50 to 1.70 µs");
        assert_eq!(table.rows[0][7].tone, Tone::Good);
    }
}
