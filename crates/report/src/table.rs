//! A table of results: one value, three faces (terminal, JSON, page).

use rack::results::Figure;
use serde_json::{Map, Value, json};

use crate::Unit;

/// A column's key in JSON and its head for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Snake case, unique in its table.
    pub key: String,
    /// What people read.
    pub title: String,
}

impl Column {
    /// A column named `key` for scripts and `title` for people.
    pub fn new(key: impl Into<String>, title: impl Into<String>) -> Self {
        Self { key: key.into(), title: title.into() }
    }
}

/// How a cell is set off from its neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    /// Not at all.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Of less weight.
    Muted,
}

/// One value, as data and as text.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// For JSON: a number stays a number, in SI units without prefix.
    pub value: Value,
    /// For people.
    pub text: String,
    /// How it is set off.
    pub tone: Tone,
}

impl Cell {
    /// A quantity, shown in a fitting multiple of `unit`.
    pub fn new(value: impl Into<Value>, unit: Unit) -> Self {
        let value = value.into();
        Self { text: unit.show(&value), value, tone: Tone::Plain }
    }

    /// A figure, or its bound with a sign before it; with its confidence interval,
    /// where one is known.
    pub fn figure(figure: Figure, interval: Option<(f64, f64)>, unit: Unit) -> Self {
        let (sign, bound) = match figure {
            Figure::AtLeast(_) => ("≥ ", Some("at_least")),
            Figure::AtMost(_) => ("≤ ", Some("at_most")),
            Figure::Exact(_) | Figure::Missing => ("", None),
        };
        let number = json!(figure.number());
        let mut text = format!("{sign}{}", unit.show(&number));
        if let Some((low, high)) = interval {
            text = format!("{text} ({})", unit.show(&json!([low, high])));
        }
        let value = bound.map_or(number.clone(), |bound| json!({ bound: number }));
        Self { value, text, tone: Tone::Plain }
    }

    /// A word or sentence.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { value: Value::String(text.clone()), text, tone: Tone::Plain }
    }

    /// The same cell, set off.
    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// Whether the cell holds a number and is aligned as one.
    pub(crate) fn is_numeric(&self) -> bool {
        self.value.is_number() || self.value.is_object()
    }
}

/// Rows of cells under named columns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ResultsTable {
    /// Left to right.
    pub columns: Vec<Column>,
    /// Each as long as [`ResultsTable::columns`].
    pub rows: Vec<Vec<Cell>>,
}

impl ResultsTable {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// A table of text, as fabrics hand in: the titles serve as keys.
    #[must_use]
    pub fn of_text(columns: &[String], rows: &[Vec<String>]) -> Self {
        let columns = columns.iter().map(|title| Column::new(title, title)).collect();
        let mut table = Self::new(columns);
        for row in rows {
            table.push(row.iter().map(Cell::text).collect());
        }
        table
    }

    /// Adds a row below the others.
    ///
    /// # Panics
    /// If it is not as long as the columns are many.
    pub fn push(&mut self, row: Vec<Cell>) {
        let (cells, columns) = (row.len(), self.columns.len());
        assert_eq!(cells, columns, "a row of {cells} cells in a table of {columns} columns");
        self.rows.push(row);
    }

    /// The table without the column of this key if all of its cells are empty.
    #[must_use]
    pub fn without_if_empty(mut self, key: &str) -> Self {
        let Some(at) = self.columns.iter().position(|column| column.key == key) else {
            return self;
        };
        if self.rows.iter().all(|row| row[at].text.is_empty()) {
            self.columns.remove(at);
            self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        self
    }

    /// The table as an array of objects, one a row, keys in column order.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let pairs = self.columns.iter().zip(row);
            let pairs = pairs.map(|(column, cell)| (column.key.clone(), cell.value.clone()));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_numbers_bare_and_columns_in_order() {
        let mut table = ResultsTable::new(vec![Column::new("what", "What"), Column::new("a", "A")]);
        table.push(vec![Cell::text("latency"), Cell::new(1.57e-6, Unit::Seconds)]);
        let json = serde_json::to_string(&table.to_json()).unwrap();
        assert_eq!(json, r#"[{"what":"latency","a":1.57e-6}]"#);
        assert_eq!(table.rows[0][1].text, "1.57 µs");
    }

    #[test]
    fn a_bound_is_never_taken_for_a_figure() {
        let cell = Cell::figure(Figure::AtLeast(2e-3), None, Unit::Seconds);
        assert_eq!((cell.text.as_str(), cell.value), ("≥ 2 ms", json!({ "at_least": 2e-3 })));
        let cell = Cell::figure(Figure::Exact(2.0), Some((1.5, 2.5)), Unit::Ratio);
        assert_eq!((cell.text.as_str(), cell.value), ("2 (1.50 to 2.50)", json!(2.0)));
        let cell = Cell::figure(Figure::Missing, None, Unit::Ratio);
        assert_eq!((cell.text.as_str(), cell.value), ("–", Value::Null));
    }

    #[test]
    #[should_panic(expected = "a row of 1 cells in a table of 2 columns")]
    fn a_short_row_is_refused() {
        let _ = ResultsTable::of_text(&["a".into(), "b".into()], &[vec!["1".into()]]);
    }
}
