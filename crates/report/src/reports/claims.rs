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
    /// Why it differs or was not run; never empty then.
    pub note: String,
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
        ("interval", "Over seeds"),
        ("tolerance", "Tolerance"),
        ("verdict", "Verdict"),
        ("note", "Note"),
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
            Cell::text(&claim.note),
        ]);
    }
    table
}

/// The claims as the page shows them: each note below what its claim says, since a column of its own
/// would be too narrow to read.
fn page_table(claims: &[Claim]) -> ResultsTable {
    let mut table = claims_table(claims);
    let place = |key: &str| table.columns.iter().position(|column| column.key == key);
    let (what, note) = (place("what"), place("note"));
    let (what, note) = what.zip(note).expect("the table of claims has both columns");
    for row in &mut table.rows {
        let text = row.remove(note).text;
        if !text.is_empty() {
            row[what].text.push_str(&format!("\n→ {text}"));
        }
    }
    table.columns.remove(note);
    table
}

/// The page of a reproduction: how many claims hold, the table, then one section an experiment, which
/// the caller composes.
#[must_use]
pub fn claims_page(title: &str, lead: &str, claims: &[Claim], experiments: Vec<Section>) -> Page {
    let mut page = Page { title: title.into(), lead: lead.into(), sections: Vec::new() };
    let tile = |label: &str, verdict: Verdict| {
        let count = claims.iter().filter(|claim| claim.verdict == verdict).count();
        let tone = if count == 0 { Tone::Plain } else { verdict.tone() };
        let note = format!("of {} claims", claims.len());
        Tile { label: label.into(), value: count.to_string(), note, tone }
    };
    let tiles = vec![
        tile("Reproduced", Verdict::Reproduced),
        tile("Differ", Verdict::Differs),
        tile("Not run", Verdict::NotRun),
    ];
    page.push("Claims", vec![Block::Tiles(tiles), Block::table(page_table(claims))]);
    for experiment in experiments {
        page.push(experiment.title, experiment.blocks);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
            note: String::new(),
        }
    }

    #[test]
    fn the_page_has_notes_below_what_they_are_about() {
        let noted = Claim { note: "cut off".into(), ..claim() };
        let table = page_table(&[claim(), noted]);
        assert!(table.columns.iter().all(|column| column.key != "note"));
        let texts: Vec<_> = table.rows.iter().map(|row| row[2].text.as_str()).collect();
        assert_eq!(texts, ["Latency", "Latency\n→ cut off"]);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    }

    #[test]
    fn rows_have_the_keys_of_the_contract() {
        let table = claims_table(&[claim()]);
        let expected = json!([{
            "claim": "S1", "section": "§7", "what": "Latency", "published": 1.57e-6,
            "ours": 1.6e-6, "interval": [1.5e-6, 1.7e-6], "tolerance": "5%",
            "verdict": "reproduced", "note": "",
        }]);
        assert_eq!(table.to_json(), expected);
        assert_eq!(table.rows[0][5].text, "1.50 to 1.70 µs");
        assert_eq!(table.rows[0][7].tone, Tone::Good);
    }
}
