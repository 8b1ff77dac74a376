//! One self-contained HTML page, made of few kinds of parts.
//!
//! A [`Page`] is a list of sections, a section a list of blocks: text, tiles, tables, plots, sources.
//! The report of a run, of a comparison and of a reproduction are three compositions of the same
//! parts; this module knows none of them. The page needs no network: the chart library, the style
//! and the data are inside, and its own policy forbids it to load anything.

mod html;
mod plot;

pub use html::{CHART_LIBRARY, CHARTS, STYLE};
pub use plot::{Axis, Mark, Plot, PlotSeries, Scale, SeriesStyle};

use crate::{ResultsTable, Tone};

/// Where a page has its chart library, which is larger than all else in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Library<'a> {
    /// In it: the page can be sent alone.
    #[default]
    Within,
    /// In a file at this relative path, [`CHART_LIBRARY`], for many pages that lie together.
    Beside(&'a str),
}

/// A whole page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Heading, and title of the window.
    pub title: String,
    /// One or two sentences below it.
    pub lead: String,
    /// Top to bottom.
    pub sections: Vec<Section>,
}

/// A titled part of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading; also the link in the page's contents.
    pub title: String,
    /// Top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Key figures, side by side.
    Tiles(Vec<Tile>),
    /// A table.
    Table(TableBlock),
    /// A long table, folded away below its title.
    FoldedTable(TableBlock),
    /// Plots, two a row where there is room.
    Plots(Vec<Plot>),
    /// Terms and what they mean.
    Terms(Vec<(String, String)>),
    /// A text such as a configuration file, folded away.
    Source {
        /// What unfolds.
        title: String,
        /// The text, shown as it is.
        text: String,
    },
}

/// A table with what should be said about it.
#[derive(Clone, Debug, Default)]
pub struct TableBlock {
    /// Above the table; may be empty.
    pub title: String,
    /// Below the title; may be empty.
    pub note: String,
    /// The table.
    pub table: ResultsTable,
}

/// One figure that a reader looks for first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tile {
    /// What it is.
    pub label: String,
    /// The figure with its unit.
    pub value: String,
    /// In small print below; may be empty.
    pub note: String,
    /// How it is set off.
    pub tone: Tone,
}

impl Page {
    /// The page as one HTML document.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::document(self, Library::Within)
    }

    /// The page as an HTML document that shares the chart library with others.
    #[must_use]
    pub fn to_html_with(&self, library: Library<'_>) -> String {
        html::document(self, library)
    }

    /// Adds a section at the end, unless it is empty.
    pub fn push(&mut self, title: impl Into<String>, blocks: Vec<Block>) {
        let blocks: Vec<_> = blocks.into_iter().filter(|block| !block.is_empty()).collect();
        if !blocks.is_empty() {
            self.sections.push(Section { title: title.into(), blocks });
        }
    }
}

impl Block {
    /// A table without title or note.
    #[must_use]
    pub fn table(table: ResultsTable) -> Self {
        Self::Table(TableBlock { table, ..TableBlock::default() })
    }

    /// Whether there is nothing to show.
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) | Self::Source { text, .. } => text.is_empty(),
            Self::Tiles(tiles) => tiles.is_empty(),
            Self::Table(block) | Self::FoldedTable(block) => block.table.rows.is_empty(),
            Self::Plots(plots) => plots.iter().all(Plot::is_empty),
            Self::Terms(terms) => terms.is_empty(),
        }
    }
}
