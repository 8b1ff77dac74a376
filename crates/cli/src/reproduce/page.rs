//! The page of all papers' claims, in Markdown: what a reader of a paper looks for.

use std::collections::BTreeMap;

use report::{Claim, Kind, Tally, Verdict, claims_table, published_claims};

use super::all::{All, OfPaper, word};

/// Columns of [`claims_table`] that tables of rows have.
const COLUMNS: [&str; 8] =
    ["of", "claim", "section", "what", "published", "ours", "interval", "tolerance"];

/// The page.
pub(super) fn page(all: &All) -> String {
    let mut text = Text::default();
    text.line("# What is reproduced");
    text.line("");
    let effort = word(all.effort);
    text.line(&format!(
        "This page is made by a command, `rackloom reproduce all --{effort} --page docs/reproduced.md` (`make \
         reproduced`), and what it is made of is in [reproductions/measured](../reproductions/measured); how to read it is \
         in [reproductions/README.md](../reproductions/README.md). A *claim* is something that a paper \
         has found, counted once however many rows carry it: it is reproduced when all of its rows are. *Checks* \
         cannot differ while a model is sound (constants, arithmetic, ideal baselines), *sensitivities* are other \
         readings than the paper's one configuration, and *fitted inputs* are figures of the paper that were put \
         into the model: none of these counts. Why a claim differs is *tested* where something was changed and the \
         difference went away, or fell to what its note says; *argued* where it follows from arithmetic, or from \
         what is not published; *open* where it is not known, or not all of it. The *range* is from the least to the most \
         over the seeds, or over the loads, applications or places that a row is about."
    ));
    text.line("");
    summary(all, &mut text);
    for paper in &all.papers {
        of_paper(paper, &mut text);
    }
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    fn head(&mut self, titles: &[&str]) {
        self.row(&titles.iter().map(|title| (*title).into()).collect::<Vec<_>>());
        self.row(&titles.iter().map(|_| "---".into()).collect::<Vec<_>>());
    }
}

/// Text as a table's cell, or a list's item: nothing in it is taken for markup.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            '\n' => plain.push(' '),
            '|' | '*' | '_' | '<' | '`' => plain.extend(['\\', letter]),
            _ => plain.push(letter),
        }
    }
    plain
}

fn summary(all: &All, text: &mut Text) {
    let titles = [
        "paper",
        "distinct claims",
        "reproduced",
        "differ",
        "of these for a tested cause",
        "not run",
        "checks",
        "sensitivities",
        "inputs",
    ];
    text.head(&titles);
    let mut sum = Tally::default();
    let mut push = |name: String, tally: Tally| {
        let checks = match tally.checks_failed {
            0 => format!("{} hold", tally.checks_held),
            failed => format!("{} hold, {failed} fail", tally.checks_held),
        };
        let Tally { reproduced, differ, tested, not_run, .. } = tally;
        let counts = [tally.claims(), reproduced, differ, tested, not_run];
        let beside = [tally.sensitivities, tally.inputs].map(|count| count.to_string());
        let counts = counts.iter().map(ToString::to_string);
        let cells = std::iter::once(name).chain(counts).chain([checks]).chain(beside);
        text.row(&cells.collect::<Vec<_>>());
    };
    for paper in &all.papers {
        let tally = Tally::of(&paper.rows);
        sum = sum.and(tally);
        push(format!("[{0}](#{0})", paper.paper.name), tally);
    }
    push("all".into(), sum);
    text.line("");
}

/// Builds with the days on which each of them measured.
fn measured_by(builds: &[[String; 3]]) -> String {
    let mut days: BTreeMap<[&str; 2], Vec<&str>> = BTreeMap::new();
    for [version, commit, date] in builds {
        days.entry([version, commit]).or_default().push(date);
    }
    let build = |([version, commit], dates): ([&str; 2], Vec<&str>)| {
        let commit = if commit.is_empty() { String::new() } else { format!(", commit {commit}") };
        format!("version {version}{commit}, on {}", dates.join(" and "))
    };
    days.into_iter().map(build).collect::<Vec<_>>().join("; ")
}

/// One paper: configuration, claims, why some differ, and what stands beside.
fn of_paper(paper: &OfPaper, text: &mut Text) {
    let configuration = paper.paper.configuration();
    text.line(&format!("## {}", paper.paper.name));
    text.line("");
    text.line(&plain(paper.paper.citation));
    text.line("");
    text.line(&format!("Of these rows: {}.", Tally::of(&paper.rows).words()));
    if !paper.builds.is_empty() {
        text.line(&format!("Measured by {}.", measured_by(&paper.builds)));
    }
    if !paper.full.is_empty() {
        text.line(&format!("In the larger runs (`--full`): {}.", paper.full.join(", ")));
    }
    if !paper.missing.is_empty() {
        text.line(&format!("Experiments to do: {}.", paper.missing.join(", ")));
    }
    text.line("");
    text.line(&format!("**Configuration.** {}", plain(&configuration.lead)));
    text.line("");
    for setting in &configuration.settings {
        text.line(&format!("- {} ({}).", plain(&setting.what), plain(&setting.source)));
    }
    text.line("");
    let of = |kind: Kind| -> Vec<Claim> {
        paper.rows.iter().filter(|row| row.kind == kind).cloned().collect()
    };
    text.line("### Claims");
    text.line("");
    claims(&of(Kind::Claim), text);
    for exclusive in &configuration.exclusive {
        let names =
            exclusive.claims.iter().map(|claim| plain(claim)).collect::<Vec<_>>().join(", ");
        text.line(&format!("No configuration meets {names} together. {}", plain(&exclusive.why)));
        text.line("");
    }
    let sensitivities = of(Kind::Sensitivity);
    if !sensitivities.is_empty() {
        text.line("### Other readings");
        text.line("");
        for reading in &configuration.readings {
            let rows = reading.rows.iter().map(|row| plain(row)).collect::<Vec<_>>();
            text.line(&format!("- {}: {}.", plain(&reading.what), rows.join(", ")));
        }
        text.line("");
        beside(&sensitivities, text);
    }
    if !configuration.inputs.is_empty() {
        text.line("### Fitted inputs");
        text.line("");
        for input in &configuration.inputs {
            text.line(&format!("- {}.", plain(&input.what)));
        }
        text.line("");
        beside(&of(Kind::Input), text);
    }
    let checks = of(Kind::Check);
    if !checks.is_empty() {
        text.line("### Checks");
        text.line("");
        beside(&checks, text);
    }
}

/// The rows of claims, each claim's together, and why some differ or were not run.
fn claims(of_claims: &[Claim], text: &mut Text) {
    let found = published_claims(of_claims);
    let together: Vec<Claim> = found
        .iter()
        .flat_map(|(of, _)| of_claims.iter().filter(move |row| row.of == *of).cloned())
        .collect();
    rows(&together, text);
    for (title, verdict) in [
        ("Rows that differ", Verdict::Differs),
        ("Rows not run", Verdict::NotRun),
        ("Rows that are reproduced, with a note", Verdict::Reproduced),
    ] {
        let noted: Vec<_> =
            together.iter().filter(|row| row.verdict == verdict && !row.note.is_empty()).collect();
        if noted.is_empty() {
            continue;
        }
        text.line(&format!("**{title}.**"));
        text.line("");
        for row in noted {
            let cause = row.cause.map_or(String::new(), |cause| format!(", {}", cause.as_str()));
            let (of, claim, note) = (plain(&row.of), plain(&row.claim), plain(&row.note));
            text.line(&format!("- {of} ({claim}{cause}): {note}"));
        }
        text.line("");
    }
}

/// Rows that are not claims, and what is to be known of them.
fn beside(of: &[Claim], text: &mut Text) {
    rows(of, text);
    let noted: Vec<_> = of.iter().filter(|row| !row.note.is_empty()).collect();
    for row in &noted {
        text.line(&format!("- {}: {}", plain(&row.claim), plain(&row.note)));
    }
    if !noted.is_empty() {
        text.line("");
    }
}

/// Rows as a table, with their verdicts.
fn rows(of: &[Claim], text: &mut Text) {
    if of.is_empty() {
        return;
    }
    let table = claims_table(of);
    let places = COLUMNS.map(|key| {
        let place = table.columns.iter().position(|column| column.key == key);
        place.expect("a column of the contract")
    });
    text.head(&[
        "claim",
        "row",
        "section",
        "what",
        "published",
        "ours",
        "range",
        "tolerance",
        "verdict",
    ]);
    for (row, claim) in table.rows.iter().zip(of) {
        let cells = places.iter().map(|&place| plain(&row[place].text));
        let verdict = match (claim.kind, claim.verdict) {
            (Kind::Check, Verdict::Reproduced) => "holds",
            (Kind::Check, Verdict::Differs) => "**fails**",
            (_, Verdict::Differs) => "**differs**",
            (_, verdict) => verdict.as_str(),
        };
        text.row(&cells.chain([verdict.to_string()]).collect::<Vec<_>>());
    }
    text.line("");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_row_is_taken_for_markup() {
        assert_eq!(plain("0_1 | *b*\n<c>"), "0\\_1 \\| \\*b\\* \\<c>");
    }
}
