//! Parses tables that are drawn with bars: rows of cells between `|`, `│` or `┃`, with rules of dashes around them.
//!
//! A row has pairs of a key and a value (`| loss | 2.5 |`, also several pairs), or the values of the columns of a heading above
//! it. A row with one cell is a line of text in a panel. Pairs between two rules are one record, without a rule above them each
//! row is one. A row without a value, such as `| eval/ |  |`, is the section of the pairs below it.

use pulsetrain_mapping::{Field, FieldValue, unit};
use std::borrow::Cow;

use super::{labelled, row_names::RowName, section::EVAL_PREFIX};

/// The bars between cells.
const BARS: [char; 5] = ['|', '│', '┃', '║', '┆'];

/// The fewest dashes of a rule.
const FEWEST_DASHES: usize = 3;

/// The section of pairs with values of an evaluation.
const EVALUATION: &str = "eval/";

/// The most pairs of a record.
const MAX_PAIRS: usize = 1024;

/// A line of a table.
#[derive(Debug, PartialEq)]
pub(super) enum GridLine<'a> {
    /// A line without bars: a possible part of another table, or text.
    Text(&'a str),
    /// A rule, a heading, or a row without numbers.
    Layout,
    /// The values of a row under a heading.
    Row(RowName<'a>, Vec<Field<'static>>),
    /// The values of one or several rows of pairs.
    Pairs(Vec<Field<'static>>),
}

/// The state of a log between the lines of a table.
#[derive(Debug, Default)]
pub(super) struct Grid {
    /// The columns of the newest heading.
    columns: Vec<String>,
    /// The pairs after the newest rule.
    pairs: Vec<Field<'static>>,
    /// Whether the newest rows are below a rule.
    is_ruled: bool,
    /// Whether the table has sections.
    has_sections: bool,
    /// Whether the section of the newest row is of an evaluation.
    is_evaluation: bool,
}

impl Grid {
    /// Parses a line. `is_heading` decides whether cells without numbers are the columns of a table.
    pub(super) fn line<'a>(&mut self, text: &'a str, is_heading: impl Fn(&[String]) -> bool) -> GridLine<'a> {
        let first = text.trim_start().chars().next();
        if !first.is_some_and(|first| is_of_rule(first) || BARS.contains(&first)) {
            self.end();
            return GridLine::Text(text);
        }
        if is_rule(text) {
            self.is_ruled = true;
            return match std::mem::take(&mut self.pairs) {
                pairs if pairs.is_empty() => GridLine::Layout,
                pairs => GridLine::Pairs(pairs),
            };
        }
        match cells(text).as_deref() {
            None | Some([] | [""]) => {
                self.end();
                GridLine::Text(text)
            }
            Some([text]) => GridLine::Text(text),
            Some(cells) => self.row(cells, is_heading).unwrap_or(GridLine::Text(text)),
        }
    }

    /// Returns the pairs of a table without a closing rule, which any other line ends.
    pub(super) fn unfinished(&mut self, text: &str) -> Option<Vec<Field<'static>>> {
        let ends =
            !self.pairs.is_empty() && !is_rule(text) && cells(text).is_none_or(|cells| cells.len() < 2);
        ends.then(|| std::mem::take(&mut self.pairs))
    }

    /// Returns whether the newest table has sections.
    pub(super) fn has_sections(&self) -> bool {
        self.has_sections
    }

    fn end(&mut self) {
        if self.is_ruled || !self.columns.is_empty() || self.has_sections {
            *self = Self::default();
        }
    }

    /// Parses a row, or returns `None` for one that is of no table.
    fn row<'a>(&mut self, cells: &[&'a str], is_heading: impl Fn(&[String]) -> bool) -> Option<GridLine<'a>> {
        if cells.iter().all(|cell| value(cell).is_none()) {
            return self.heading(cells, is_heading).then_some(GridLine::Layout);
        }
        if cells.len() == self.columns.len() {
            return named_row(&self.columns, cells);
        }
        let pairs = pairs(cells, self.is_evaluation).filter(|pairs| !pairs.is_empty())?;
        if !self.is_ruled || self.pairs.len() >= MAX_PAIRS {
            return Some(GridLine::Pairs(pairs));
        }
        self.pairs.extend(pairs);
        Some(GridLine::Layout)
    }

    /// Begins a section, or a table with columns. Returns whether the row is of a table.
    fn heading(&mut self, cells: &[&str], is_heading: impl Fn(&[String]) -> bool) -> bool {
        if let [section, ""] = cells
            && section.ends_with('/')
        {
            self.has_sections = true;
            self.is_evaluation = *section == EVALUATION;
            return true;
        }
        let columns: Vec<String> = cells.iter().map(|cell| (*cell).to_owned()).collect();
        let is_heading = is_heading(&columns);
        if is_heading {
            *self = Self {
                columns,
                ..Self::default()
            };
        }
        is_heading
    }
}

/// Returns the values of a row under the columns of its table, and the name of the row.
fn named_row<'a>(columns: &[String], cells: &[&'a str]) -> Option<GridLine<'a>> {
    let name = match (columns.first(), cells.first()) {
        (Some(column), Some(cell)) => RowName::parse(column, cell),
        _ => RowName::Empty,
    };
    let values = columns.iter().zip(cells).filter_map(|(column, cell)| {
        let value = value(cell).filter(|_| !column.is_empty())?;
        Some((Cow::Owned(column.clone()), value))
    });
    let fields: Vec<Field<'static>> = values.collect();
    (!fields.is_empty()).then_some(GridLine::Row(name, fields))
}

/// Returns the pairs of a row, or `None` if a cell in the place of a key has a number. A row can end with empty cells.
fn pairs(cells: &[&str], is_evaluation: bool) -> Option<Vec<Field<'static>>> {
    let mut fields = Vec::new();
    for pair in cells.chunks(2) {
        let &[key, number] = pair else { return None };
        if !key.is_empty() && value(key).is_some() {
            return None;
        }
        let Some(value) = value(number).filter(|_| !key.is_empty()) else {
            continue;
        };
        let key = match is_evaluation {
            true => [EVAL_PREFIX, key].concat(),
            false => key.to_owned(),
        };
        fields.push((Cow::Owned(key), value));
    }
    Some(fields)
}

/// Returns the value of a cell with a number, a number with its unit, or a number in the emphasis of Markdown.
pub(super) fn value(cell: &str) -> Option<FieldValue<'static>> {
    let cell = cell.trim_matches('*');
    let number = labelled::cell(cell).map(|value| match value {
        FieldValue::Number(number) => FieldValue::Number(number),
        FieldValue::Text(text) => FieldValue::Text(Cow::Owned(text.into_owned())),
    });
    number.or_else(|| {
        let (number, measure) = cell.split_once(' ')?;
        let is_number = unit::is_spelling(measure) && labelled::cell(number).is_some();
        is_number.then(|| FieldValue::Text(Cow::Owned([number, measure].concat())))
    })
}

/// Returns the cells between the bars at both ends of a line, or `None` for any other line.
pub(super) fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix(BARS)?.strip_suffix(BARS)?;
    Some(inner.split(BARS).map(str::trim).collect())
}

/// Returns whether a line has only dashes, bars and corners.
pub(super) fn is_rule(line: &str) -> bool {
    let is_all = line
        .chars()
        .all(|letter| is_of_rule(letter) || matches!(letter, '|' | ':' | ' ' | '\t'));
    is_all && line.chars().filter(|letter| is_of_rule(*letter)).count() >= FEWEST_DASHES
}

/// Returns whether a character is a dash or a corner of a rule.
fn is_of_rule(letter: char) -> bool {
    matches!(letter, '-' | '=' | '_' | '#' | '+' | '\u{2500}'..='\u{257f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(line: GridLine<'_>) -> Vec<String> {
        match line {
            GridLine::Row(_, fields) | GridLine::Pairs(fields) => {
                fields.into_iter().map(|(key, _)| key.into_owned()).collect()
            }
            GridLine::Text(_) | GridLine::Layout => Vec::new(),
        }
    }

    #[test]
    fn pairs_between_two_rules_are_one_record() {
        let mut grid = Grid::default();
        let mut line = |text| keys(grid.line(text, |_| false));
        assert!(line("+------+-----+").is_empty());
        assert!(line("| loss | 2.5 |").is_empty());
        assert!(line("|   lr | 1e-3 |").is_empty());
        assert_eq!(line("+------+-----+"), ["loss", "lr"]);
        assert!(line("╘═════╛").is_empty());
        assert!(line("a sentence").is_empty());
        assert_eq!(line("| loss | 2.5 | time | 12 ms |"), ["loss", "time"]);
    }

    #[test]
    fn rows_below_a_heading_have_its_columns() {
        let mut grid = Grid::default();
        let mut line = |text| keys(grid.line(text, |_| true));
        assert!(line("┃ Step ┃ Loss ┃ Note ┃").is_empty());
        assert!(line("┡━━━━━━╇━━━━━━╇━━━━━━┩").is_empty());
        assert_eq!(line("│ 10 │ **2.5** │ best │"), ["Step", "Loss"]);
        assert!(line("┃ Step ┃ Loss ┃ Note ┃").is_empty());
    }

    #[test]
    fn row_with_one_cell_is_text_of_a_panel() {
        let mut grid = Grid::default();
        assert_eq!(
            grid.line("│   loss: 2.5   │", |_| true),
            GridLine::Text("loss: 2.5")
        );
        assert_eq!(grid.line("a | b", |_| true), GridLine::Text("a | b"));
    }
}
