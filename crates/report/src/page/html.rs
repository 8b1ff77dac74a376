//! Writing the page: every text is escaped by the template engine, the data by [`embedded_json`].

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::{Block, Library, Page, Plot, Section, TableBlock, Tile};
use crate::{Cell, ResultsTable, Tone};

/// plotly.js, the "basic" bundle of version 4.1.1 (MIT), as published in the package
/// `plotly.js-basic-dist-min`; its licence lies beside it.
pub const CHART_LIBRARY: &str = include_str!("../../assets/plotly-basic.min.js");
/// The style sheet of reports: colours, tables, tiles, plots.
pub const STYLE: &str = include_str!("../../assets/report.css");
/// Axes, ticks and colours of charts, a classic script that leaves `charts` behind: for whoever draws others in
/// the looks of reports.
pub const CHARTS: &str = include_str!("../../assets/charts.js");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// Forbids the page to load anything from anywhere; what it needs is in it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";
/// The same for a page whose chart library lies beside it, in a folder or on a server.
const POLICY_BESIDE: &str = "default-src 'none'; script-src 'unsafe-inline' 'self' file:; style-src \
                             'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'";

/// The whole document.
pub(super) fn document(page: &Page, library: Library<'_>) -> String {
    let policy = match library {
        Library::Within => POLICY,
        Library::Beside(_) => POLICY_BESIDE,
    };
    let plots: Value = plots_of(page).map(Plot::to_json).collect();
    let has_plots = plots.as_array().is_some_and(|plots| !plots.is_empty());
    let mut plot_count = 0;
    let body = html! {
        header.masthead {
            p.brand { "Rackloom" }
            h1 { (page.title) }
            @if !page.lead.is_empty() { p.lead { (page.lead) } }
            @if page.sections.len() > 2 { (contents(&page.sections)) }
        }
        main {
            @for (index, section) in page.sections.iter().enumerate() {
                section id={ "section-" (index + 1) } {
                    h2 { (section.title) }
                    @for block in &section.blocks { (block_markup(block, &mut plot_count)) }
                }
            }
        }
    };
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) " · Rackloom" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                @if has_plots {
                    noscript { p.warning { "The charts of this page are drawn by its own script, \
                        which this browser does not run. The tables are complete." } }
                    @match library {
                        Library::Within => script { (PreEscaped(CHART_LIBRARY)) },
                        Library::Beside(path) => script src=(path) {},
                    }
                    script type="application/json" id="plots" { (embedded_json(&plots)) }
                    script { (PreEscaped(CHARTS)) (PreEscaped(SCRIPT)) }
                }
            }
        }
    };
    document.into_string()
}

/// The plots in the order in which [`block_markup`] numbers them.
fn plots_of(page: &Page) -> impl Iterator<Item = &Plot> {
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let plots = blocks.filter_map(|block| match block {
        Block::Plots(plots) => Some(plots),
        _ => None,
    });
    plots.flatten().filter(|plot| !plot.is_empty())
}

/// Sentences, in which what stands between backticks is code; a backtick without another is itself.
fn words(text: &str) -> Markup {
    let mut parts = text.split('`');
    html! {
        (parts.next().unwrap_or_default())
        @while let Some(code) = parts.next() {
            @if let Some(after) = parts.next() { code { (code) } (after) } @else { "`" (code) }
        }
    }
}

/// JSON that no text in it can break out of: nothing in it looks like markup, yet it parses to the
/// same value.
fn embedded_json(value: &Value) -> Markup {
    let mut text = String::new();
    for letter in value.to_string().chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            other => text.push(other),
        }
    }
    PreEscaped(text)
}

fn contents(sections: &[Section]) -> Markup {
    html! {
        nav aria-label="Contents" {
            @for (index, section) in sections.iter().enumerate() {
                a href={ "#section-" (index + 1) } { (section.title) }
            }
        }
    }
}

fn block_markup(block: &Block, plot_count: &mut usize) -> Markup {
    match block {
        Block::Text(text) => html! { p { (words(text)) } },
        Block::Tiles(tiles) => html! { div.tiles { @for tile in tiles { (tile_markup(tile)) } } },
        Block::Table(table) => table_block(table),
        Block::FoldedTable(block) => html! {
            details {
                summary { (block.title) }
                div.folded {
                    @if !block.note.is_empty() { p.note { (words(&block.note)) } }
                    (table_markup(&block.table))
                }
            }
        },
        Block::Plots(plots) => html! {
            div.plots {
                @for plot in plots.iter().filter(|plot| !plot.is_empty()) {
                    (plot_markup(plot, plot_count))
                }
            }
        },
        Block::Terms(terms) => html! {
            dl { @for (term, meaning) in terms { div { dt { (term) } dd { (meaning) } } } }
        },
        Block::Source { title, text } => html! {
            details { summary { (title) } pre { code { (text) } } }
        },
    }
}

fn tile_markup(tile: &Tile) -> Markup {
    html! {
        div.tile.(tone_class(tile.tone)) {
            p.label { (tile.label) }
            p.value { (tile.value) }
            @if !tile.note.is_empty() { p.note { (words(&tile.note)) } }
        }
    }
}

fn plot_markup(plot: &Plot, plot_count: &mut usize) -> Markup {
    *plot_count += 1;
    html! {
        figure {
            figcaption {
                h3 { (plot.title) }
                @if !plot.note.is_empty() { p.note { (words(&plot.note)) } }
            }
            div.plot id={ "plot-" (plot_count) } role="img" aria-label=(plot.title) {}
        }
    }
}

fn table_block(block: &TableBlock) -> Markup {
    html! {
        @if !block.title.is_empty() { h3 { (block.title) } }
        @if !block.note.is_empty() { p.note { (words(&block.note)) } }
        (table_markup(&block.table))
    }
}

/// The column whose cells stand below their rows, as wide as the table: in a column of their own sentences would be
/// too narrow to read.
const NOTE: &str = "note";

fn table_markup(table: &ResultsTable) -> Markup {
    let note = table.columns.iter().position(|column| column.key == NOTE);
    let columns: Vec<usize> = (0..table.columns.len()).filter(|&at| Some(at) != note).collect();
    let narrow = (columns.len() <= 4).then_some("narrow");
    let class = |at: usize| table.is_numeric(at).then_some("number");
    let classes: Vec<_> = columns.iter().map(|&at| class(at)).collect();
    html! {
        div.scroll {
            table class=[narrow] {
                thead {
                    tr {
                        @for (&at, class) in columns.iter().zip(&classes) {
                            th scope="col" class=[*class] { (table.columns[at].title) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        @let note = note.map_or("", |at| &row[at].text);
                        tr class=[(!note.is_empty()).then_some("noted")] {
                            @for (&at, class) in columns.iter().zip(&classes) {
                                (cell_markup(&row[at], &table.columns[at].key, *class))
                            }
                        }
                        @if !note.is_empty() {
                            tr.below { td colspan=(columns.len()) { p { (words(note)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn cell_markup(cell: &Cell, column: &str, class: Option<&str>) -> Markup {
    html! {
        td data-column=(column) class=[class] {
            @if cell.tone == Tone::Plain { (cell.text) }
            @else { span.(tone_class(cell.tone)) { (cell.text) } }
        }
    }
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Muted => "muted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Axis, PlotSeries, SeriesStyle};
    use serde_json::json;

    const EVIL: &str = "</script><script>alert(1)</script><!-- & \u{2028} \"'";

    #[test]
    fn no_text_breaks_out_of_its_place() {
        let plot = Plot {
            title: EVIL.into(),
            note: EVIL.into(),
            x: Axis::named(EVIL, vec![EVIL.into()]),
            y: Axis { label: EVIL.into(), ..Axis::default() },
            series: vec![PlotSeries::new(EVIL, SeriesStyle::Bars, vec![(0.0, 1.0)])],
        };
        let mut page = Page { title: EVIL.into(), lead: EVIL.into(), sections: vec![] };
        let tile =
            Tile { label: EVIL.into(), value: EVIL.into(), note: EVIL.into(), ..Tile::default() };
        page.push(
            EVIL,
            vec![
                Block::Text(EVIL.into()),
                Block::Tiles(vec![tile]),
                Block::table(ResultsTable::of_text(&[EVIL.into()], &[vec![EVIL.into()]])),
                Block::Plots(vec![plot]),
                Block::Terms(vec![(EVIL.into(), EVIL.into())]),
                Block::Source { title: EVIL.into(), text: EVIL.into() },
            ],
        );
        let html = page.to_html();
        assert!(!html.contains("alert(1)</script>") && !html.contains("<!-- &"));
        let starts = html.matches("<script").count();
        assert_eq!((starts, html.matches("</script>").count()), (3, 3));
    }

    #[test]
    fn notes_stand_below_their_rows() {
        let names = ["claim", NOTE, "verdict"].map(String::from);
        let rows = [["a", "cut off", "differs"], ["b", "", "reproduced"]];
        let rows = rows.map(|row| row.map(String::from).to_vec());
        let html = table_markup(&ResultsTable::of_text(&names, &rows)).into_string();
        assert_eq!(html.matches("<th ").count(), 2, "{html}");
        let below = r#"<tr class="below"><td colspan="2"><p>cut off</p></td></tr>"#;
        assert_eq!((html.matches(below).count(), html.matches("below").count()), (1, 1), "{html}");
        let first = html.find("differs").expect("the row is there");
        assert!(first < html.find(below).expect("checked"), "{html}");
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        let rows = [
            ("plain <b>", "plain &lt;b&gt;"),
            ("set `a<b` to `c`.", "set <code>a&lt;b</code> to <code>c</code>."),
            ("`all`", "<code>all</code>"),
            ("one ` alone", "one ` alone"),
            ("`a` and ` alone", "<code>a</code> and ` alone"),
        ];
        for (text, expected) in rows {
            assert_eq!(words(text).into_string(), expected, "{text}");
        }
    }

    #[test]
    fn embedded_json_parses_to_the_same_value() {
        let value = json!({ "name": EVIL, "values": [1e-9, 2, null] });
        let text = embedded_json(&value).into_string();
        assert!(!text.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn the_page_loads_nothing() {
        let html = Page::default().to_html();
        assert!(html.contains("default-src &#39;none&#39;") || html.contains("default-src 'none'"));
        for asset in [STYLE, CHARTS, SCRIPT] {
            assert!(!asset.contains("http:") && !asset.contains("https:"), "an outside address");
        }
        for asset in [CHART_LIBRARY, CHARTS, SCRIPT] {
            assert!(!asset.contains("</script"), "the asset would end its own element");
        }
    }

    #[test]
    fn a_page_without_plots_carries_no_library() {
        let mut page = Page::default();
        page.push("Words", vec![Block::Text("Only text.".into()), Block::Plots(vec![])]);
        assert!(page.to_html().len() < 20_000);
        page.push("Empty", vec![Block::Text(String::new())]);
        assert_eq!(page.sections.len(), 1);
    }
}
