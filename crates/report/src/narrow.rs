//! What becomes of a table that is wider than its terminal: text breaks between words, numbers stay
//! whole, and columns that still find no room stand in blocks below each other, each behind the
//! columns that say what its rows are.

use crate::{Cell, ResultsTable};

/// Characters between two columns of a table; a line has one gap less than columns, and a space at
/// both ends.
const GAP: usize = 3;
/// Longest word, and longest number, that is kept whole. Our choice: paths and digests are longer.
const WORD_MAX: usize = 16;
const NUMBER_MAX: usize = 24;

impl ResultsTable {
    /// Characters that a column needs so that nothing in it is torn.
    pub(crate) fn least_width(&self, column: usize) -> usize {
        let longest_word = |text: &str| {
            text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0)
        };
        let head = longest_word(&self.columns[column].title);
        let cells = self.rows.iter().map(|row| row[column].text.as_str());
        match self.is_numeric(column) {
            true => {
                cells.map(|text| text.chars().count()).max().unwrap_or(0).max(head).min(NUMBER_MAX)
            }
            false => cells.map(longest_word).max().unwrap_or(0).max(head).min(WORD_MAX),
        }
    }

    /// The table as blocks that fit `width` characters; whole if it does, or if it is all text.
    pub(crate) fn blocks(&self, width: usize) -> Vec<Self> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let least: Vec<usize> = all.iter().map(|&column| self.least_width(column)).collect();
        let needs = |columns: &[usize]| -> usize {
            columns.iter().map(|&column| least[column] + GAP).sum()
        };
        let first_number = all.iter().position(|&column| self.is_numeric(column));
        let (true, Some(first_number)) = (needs(&all) > width + 1, first_number) else {
            return vec![self.clone()];
        };
        let mut named = first_number.max(1);
        if needs(&all[..named]) > width / 2 {
            named = 1;
        }
        let (names, others) = all.split_at(named);
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        for &column in others {
            match blocks.last_mut() {
                Some(block) if needs(block) + needs(&[column]) <= width + 1 => block.push(column),
                _ => blocks.push([names, &[column]].concat()),
            }
        }
        blocks.iter().map(|columns| self.of(columns)).collect()
    }

    /// Some of the columns.
    fn of(&self, columns: &[usize]) -> Self {
        let row = |row: &Vec<Cell>| -> Vec<Cell> {
            columns.iter().map(|&column| row[column].clone()).collect()
        };
        Self {
            columns: columns.iter().map(|&column| self.columns[column].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Colours, TextStyle};
    use crate::{Column, Unit};

    /// A name of several words, and as many times as asked for.
    fn table(times: usize) -> ResultsTable {
        let mut columns = vec![Column::new("what", "Quantity")];
        columns.extend((0..times).map(|time| Column::new(format!("t{time}"), format!("{time}%"))));
        let mut table = ResultsTable::new(columns);
        for what in ["Slowdown to a common ideal", "Completion time"] {
            let mut row = vec![Cell::text(what)];
            row.extend(
                (0..times).map(|time| Cell::new(1.84e-5 + 1e-6 * time as f64, Unit::Seconds)),
            );
            table.push(row);
        }
        table
    }

    fn text(table: &ResultsTable, width: u16) -> String {
        table.to_text(TextStyle { width: Some(width), colours: Colours::Off })
    }

    #[test]
    fn numbers_are_whole_and_words_too_at_any_width_that_holds_two_columns() {
        for width in 25..150 {
            let text = text(&table(8), width);
            for time in 0..8 {
                let number = format!("{:.1} µs", 18.4 + f64::from(time));
                assert_eq!(text.matches(&number).count(), 2, "{number} at {width}:\n{text}");
            }
            assert!(
                text.contains("Slowdown") && text.contains("Completion"),
                "at {width}:\n{text}"
            );
            for line in text.lines() {
                assert!(line.chars().count() <= usize::from(width), "{line:?} at {width}");
            }
        }
    }

    #[test]
    fn what_finds_no_room_stands_below_with_its_names() {
        // "Completion" and its gap leave 38 of 50 characters and one: three numbers of seven and their gaps.
        let text = text(&table(8), 50);
        assert_eq!(text.matches("Quantity").count(), 3, "{text}");
        let heads: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.contains("Quantity"))
            .map(|line| line.split_whitespace().skip(1).collect())
            .collect();
        assert_eq!(heads, [vec!["0%", "1%", "2%"], vec!["3%", "4%", "5%"], vec!["6%", "7%"]]);
    }

    #[test]
    fn a_table_that_fits_or_is_all_text_is_whole() {
        assert_eq!(table(3).blocks(200), [table(3)]);
        let mut words = ResultsTable::new(vec![Column::new("a", "A"), Column::new("b", "B")]);
        words.push(vec![Cell::text("a long text"), Cell::text("another one")]);
        assert_eq!(words.blocks(5), [words.clone()]);
    }
}
