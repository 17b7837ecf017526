//! Parses tables with aligned columns: names and values below them, between spaces, with or without a rule of dashes.
//!
//! With a rule (`----  ------`) its dashes show the columns, so that names can have spaces and cells can be empty. Without one,
//! one space separates names and values, or two if names have spaces. Bars can be between the columns.

use pulsetrain_mapping::Field;
use std::{borrow::Cow, ops::Range};

use super::{
    csv::are_names,
    grid::{is_rule, value},
    labelled,
    section::EVAL_PREFIX,
};

/// The fewest columns of a table without a rule: two words are a sentence.
const FEWEST: usize = 3;

/// The fewest columns of a table with a rule.
const FEWEST_RULED: usize = 2;

/// The spaces between columns whose names have spaces.
const WIDE: &str = "  ";

/// The columns of fastai before and after the metrics of its evaluation.
const FASTAI: [&str; 4] = ["epoch", "train_loss", "valid_loss", "time"];

/// Names of columns that are too short for a dictionary, and their meaning if no other column has it.
const SHORT: [(&str, &str); 3] = [("#", "step"), ("E", "epoch"), ("Ep", "epoch")];

/// The columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    /// The characters of each column in a line, if a rule shows them.
    spans: Vec<Range<usize>>,
    /// Whether two spaces separate cells.
    is_wide: bool,
    /// Whether spaces precede the first name, as if a column had no name.
    is_indented: bool,
}

/// The lines before the first row of a table.
#[derive(Debug, Default)]
pub(super) struct TableHead {
    /// The previous line, which can have the names.
    names: String,
    /// The rule after it.
    rule: Option<String>,
}

impl TableHead {
    /// Returns the columns of a table whose first row is this line; any other line can be the head of the next table.
    pub(super) fn line(&mut self, text: &str, is_header: impl Fn(&[String]) -> bool) -> Option<Columns> {
        if is_rule(text) {
            self.rule = Some(text.to_owned());
            return None;
        }
        let head = std::mem::take(self);
        let is_table = |columns: &Columns| columns.fields(text).is_some() && is_header(&columns.names);
        if !head.names.is_empty() {
            let found = match &head.rule {
                Some(rule) => Columns::below_rule(&head.names, rule).filter(is_table),
                None => None,
            };
            let found = found.or_else(|| {
                [false, true]
                    .into_iter()
                    .find_map(|is_wide| Columns::parse(&head.names, is_wide).filter(is_table))
            });
            if found.is_some() {
                return found;
            }
        }
        if !text.contains('=') && text.split_whitespace().nth(1).is_some() {
            text.clone_into(&mut self.names);
        }
        None
    }
}

impl Columns {
    /// Parses the names of columns between spaces. Only the next row shows whether they are names.
    fn parse(line: &str, is_wide: bool) -> Option<Self> {
        let names: Vec<String> = cells(line, is_wide).map(str::to_owned).collect();
        (names.len() >= FEWEST).then_some(())?;
        Self {
            names,
            spans: Vec::new(),
            is_wide,
            is_indented: line.starts_with(char::is_whitespace),
        }
        .named()
    }

    /// Parses the names of columns above the dashes of a rule.
    fn below_rule(line: &str, rule: &str) -> Option<Self> {
        let spans: Vec<_> = placed(&without_bars(rule)).map(|(_, range)| range).collect();
        (spans.len() >= FEWEST_RULED).then_some(())?;
        let letters: Vec<char> = without_bars(line).chars().collect();
        let ends = spans.iter().skip(1).map(|next| next.start).chain([letters.len()]);
        let names = spans.iter().zip(ends).map(|(span, end)| {
            let name = letters.get(span.start..end.min(letters.len()));
            name.unwrap_or_default()
                .iter()
                .collect::<String>()
                .trim()
                .to_owned()
        });
        Self {
            names: names.collect(),
            spans,
            is_wide: false,
            is_indented: false,
        }
        .named()
    }

    /// Names columns by their meaning in a table; `None` if a name has no meaning.
    fn named(mut self) -> Option<Self> {
        if let [epoch, train, valid, metrics @ .., time] = self.names.as_mut_slice()
            && [epoch.as_str(), train.as_str(), valid.as_str(), time.as_str()] == FASTAI
        {
            metrics.iter_mut().for_each(|key| key.insert_str(0, EVAL_PREFIX));
        }
        for (short, meaning) in SHORT {
            let has_meaning = self.names.iter().any(|name| name.eq_ignore_ascii_case(meaning));
            if !has_meaning && let Some(name) = self.names.iter_mut().find(|name| *name == short) {
                meaning.clone_into(name);
            }
        }
        are_names(&self.names).then_some(self)
    }

    /// Returns the fields of a row, which a progress bar may follow; `None` unless all cells are numbers. A table with a rule can
    /// have empty cells and marks.
    pub(super) fn fields<'a>(&'a self, line: &'a str) -> Option<Vec<Field<'a>>> {
        if !self.spans.is_empty() {
            return self.fields_below_rule(line);
        }
        let mut cells = cells(line, self.is_wide);
        if self.has_index(line) {
            cells.next();
        }
        let fields = self.names.iter().map(|name| {
            let value = labelled::cell(cells.next()?)?;
            Some((Cow::Borrowed(name.as_str()), value))
        });
        fields.collect()
    }

    /// Returns the fields of a row whose cells are below the dashes of a rule.
    fn fields_below_rule<'a>(&'a self, line: &str) -> Option<Vec<Field<'a>>> {
        let mut found: Vec<String> = vec![String::new(); self.names.len()];
        for (cell, range) in placed(&without_bars(line)) {
            let overlap = |span: &Range<usize>| {
                range
                    .end
                    .min(span.end)
                    .saturating_sub(range.start.max(span.start))
            };
            let (at, span) = self
                .spans
                .iter()
                .enumerate()
                .max_by_key(|(_, span)| overlap(span))?;
            (overlap(span) > 0).then_some(())?;
            found[at].push_str(cell);
        }
        let is_row = found.first().is_some_and(|cell| value(cell).is_some());
        let named = self.names.iter().zip(&found);
        let fields: Vec<Field<'a>> = named
            .filter_map(|(name, cell)| Some((Cow::Borrowed(name.as_str()), value(cell)?)))
            .collect();
        (is_row && fields.len() >= FEWEST_RULED).then_some(fields)
    }

    /// Returns whether a row begins with its index, as pandas prints it in a column without a name.
    fn has_index(&self, line: &str) -> bool {
        let cells = || cells(line, self.is_wide);
        self.is_indented
            && cells().count() == self.names.len() + 1
            && cells().all(|cell| labelled::cell(cell).is_some())
    }
}

fn cells(line: &str, is_wide: bool) -> Box<dyn Iterator<Item = &str> + '_> {
    match is_wide {
        true => Box::new(line.split(WIDE).map(str::trim).filter(|cell| !cell.is_empty())),
        false => Box::new(line.split_whitespace()),
    }
}

/// Replaces bars and crossings between columns by spaces.
fn without_bars(line: &str) -> String {
    line.replace(['|', '+', '│', '┃', '┼', '╋'], " ")
}

/// Returns the words of a line with their ranges of characters.
fn placed(line: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let (mut at, mut byte) = (0, 0);
    line.split_whitespace().map(move |word| {
        let start = word.as_ptr() as usize - line.as_ptr() as usize;
        at += line[byte..start].chars().count();
        let range = at..at + word.chars().count();
        (at, byte) = (range.end, start + word.len());
        (word, range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(head: &[&str], row: &str) -> Option<Vec<String>> {
        let mut lines = TableHead::default();
        for line in head {
            assert_eq!(lines.line(line, |_| true), None);
        }
        lines.line(row, |_| true).map(|columns| columns.names)
    }

    #[test]
    fn rule_shows_columns_with_spaces_in_their_names() {
        let found = columns(
            &["E    #   LOSS A  LOSS B", "--- --- ------  ------"],
            "  1 200   2.50    3.50",
        );
        assert_eq!(found.unwrap(), ["epoch", "step", "LOSS A", "LOSS B"]);
        let found = columns(&["Epoch  Train Loss  Val Loss"], "1      2.50        3.50");
        assert_eq!(found.unwrap(), ["Epoch", "Train Loss", "Val Loss"]);
        assert_eq!(columns(&["a sentence of words"], "1 2 3"), None);
        assert_eq!(
            columns(
                &["Epoch  Train Loss  Val Loss", "other text"],
                "1      2.50        3.50"
            ),
            None
        );
    }

    #[test]
    fn cells_of_a_ruled_table_can_be_empty_or_marks() {
        let mut lines = TableHead::default();
        lines.line("  epoch    loss    cp      dur", |_| true);
        lines.line("-------  ------  ----  -------", |_| true);
        let table = lines.line("      1    2.50     +   0.4120", |_| true).unwrap();
        let keys = |line| {
            let fields = table.fields(line)?;
            Some(
                fields
                    .into_iter()
                    .map(|(key, _)| key.into_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            keys("      2    2.25           0.4130").unwrap(),
            ["epoch", "loss", "dur"]
        );
        assert_eq!(keys("Stopping since valid_loss has not improved"), None);
    }
}
