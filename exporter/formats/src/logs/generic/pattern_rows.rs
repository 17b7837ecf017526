//! The patterns of a suggested mapping, for the most frequent lines that a format leaves, and the rows of their groups.

use std::{collections::HashSet, fmt::Write};

use pulsetrain_mapping::{DICTIONARY, trainer};
use pulsetrain_record::MAX_CUSTOM_NAMES;

use super::{
    delivered::Delivered,
    key_use::{KeyUse, quoted},
    shape::{Shape, ShapeNumber, metric_of},
    shape_list::{LeftLineShapes, LineShape},
    suggestion::one_line,
};

/// The fewest lines of a shape that get a pattern, and the most patterns.
const FEWEST_LINES: u64 = 3;
const MOST_PATTERNS: usize = 20;

/// The group of the step.
const STEP: &str = "step";

/// The patterns and their groups.
pub(super) struct PatternRows {
    patterns: Vec<PatternRow>,
    /// Whether the steps of the lines are those of the run, because the format reads none.
    has_step: bool,
}

/// The pattern of a shape.
struct PatternRow {
    shape: LineShape,
    pattern: String,
    /// The name of each number.
    names: Vec<String>,
    /// Whether the pattern is only a comment: its keys are those of other lines.
    is_comment: bool,
}

impl PatternRows {
    /// Returns the patterns for lines that a reading left. No group has the name of another key: its values are something else.
    pub(super) fn new(left: &LeftLineShapes, uses: &[KeyUse], delivered: &Delivered) -> Self {
        let mapping = trainer(DICTIONARY).mapping();
        let keys = uses.iter().map(|used| mapping.spelling(&used.key).into_owned());
        let mut used: HashSet<String> = keys.collect();
        let mut room = MAX_CUSTOM_NAMES.saturating_sub(delivered.customs());
        let mut patterns = Vec::new();
        for (text, shape) in left.list().by_frequency() {
            let is_pattern = shape.has_value && shape.lines >= FEWEST_LINES && shape.numbers.len() <= room;
            if !is_pattern || patterns.len() >= MOST_PATTERNS {
                continue;
            }
            room -= shape.numbers.len();
            patterns.push(PatternRow::new(text, shape, &mut used));
        }
        let has_step = patterns.iter().any(PatternRow::has_step) && !delivered.has_steps();
        Self { patterns, has_step }
    }

    /// Writes the patterns.
    pub(super) fn write_patterns(&self, format: &str, text: &mut String) {
        if self.has_step {
            writeln!(text, "step: {STEP}").unwrap_or_default();
        }
        if self.patterns.is_empty() {
            return;
        }
        writeln!(
            text,
            "# Lines that {format} leaves. A group of a pattern is a key; its numbers are kept as train.custom unless it has a row below.\n\
             line:"
        )
        .unwrap_or_default();
        for row in &self.patterns {
            let PatternRow { shape, pattern, .. } = row;
            writeln!(text, "  # {} x {}", shape.lines, one_line(shape.line.trim())).unwrap_or_default();
            let sign = if row.is_comment { "# " } else { "" };
            writeln!(text, "  {sign}- {}", quoted(pattern)).unwrap_or_default();
        }
    }

    /// Writes a comment for the row of each group.
    pub(super) fn write_rows(&self, text: &mut String) {
        for PatternRow { shape, names, .. } in &self.patterns {
            for ((number, examples), name) in
                shape.numbers.iter().zip(names).filter(|(_, name)| *name != STEP)
            {
                let examples: Vec<String> = examples.iter().map(|example| one_line(example)).collect();
                writeln!(
                    text,
                    "  # - {{key: {}, metric: {}}}  # {} x {}; kept as train.custom",
                    quoted(name),
                    target(number),
                    shape.lines,
                    examples.join(", ")
                )
                .unwrap_or_default();
            }
        }
    }
}

impl PatternRow {
    fn new(text: &str, shape: &LineShape, used: &mut HashSet<String>) -> Self {
        let mapping = trainer(DICTIONARY).mapping();
        let (groups, keys) = shape.numbers.split_at(shape.groups);
        let is_comment = keys
            .iter()
            .any(|(key, _)| used.contains(&*mapping.spelling(&key.name)));
        let mut names = Vec::new();
        for (number, _) in groups {
            let name = match number.is_step {
                true => STEP.to_owned(),
                false => free(&group(number), text, used),
            };
            used.insert(name.clone());
            names.push(name);
        }
        used.extend(
            keys.iter()
                .map(|(key, _)| mapping.spelling(&key.name).into_owned()),
        );
        let pattern = Shape::parse(&shape.line, shape.has_prefix).pattern(&names);
        names.extend(keys.iter().map(|(key, _)| key.name.clone()));
        Self {
            shape: shape.clone(),
            pattern,
            names,
            is_comment,
        }
    }

    fn has_step(&self) -> bool {
        !self.is_comment && self.names.iter().any(|name| name == STEP)
    }
}

/// Returns the name of the group of a number: its words and its unit.
fn group(number: &ShapeNumber) -> String {
    let unit = if number.unit == "%" {
        "percent"
    } else {
        &number.unit
    };
    let is_named = number.name.split(' ').any(|word| word == number.unit);
    let phrase = match unit.is_empty() || is_named {
        true => number.name.clone(),
        false => format!("{} {unit}", number.name),
    };
    let name = snake_case(&phrase);
    match name.starts_with(|first: char| first.is_alphabetic() || first == '_') {
        true => name,
        false => format!("value_{name}"),
    }
}

/// Returns a text as the name of a group: words of letters and digits.
fn snake_case(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("_")
}

/// Returns the name, with the first words of its line if another key has it.
fn free(name: &str, text: &str, used: &HashSet<String>) -> String {
    let first = snake_case(text.split(['#', '*', '{']).next().unwrap_or_default());
    let first: Vec<&str> = first.split('_').take(2).collect();
    let longer = snake_case(&format!("x {} {name}", first.join(" ")));
    let longer = longer.trim_start_matches("x_").to_owned();
    let is_free = |name: &String| !used.contains(name) && name != "record" && name != "skip_next";
    let candidates = [name.to_owned(), longer.clone()].into_iter();
    let numbered = (2..).map(|number| format!("{longer}_{number}"));
    let mut all = candidates
        .chain(numbered)
        .filter(|name| name.starts_with(|first: char| first.is_alphabetic() || first == '_'));
    all.find(is_free).unwrap_or_else(|| name.to_owned())
}

/// Returns the metric and the unit that the dictionary has for a number.
fn target(number: &ShapeNumber) -> String {
    let Some(metric) = metric_of(&number.name) else {
        return String::new();
    };
    match number.unit.is_empty() {
        true => metric.to_owned(),
        false => format!("{metric}, unit: {}", quoted(&number.unit)),
    }
}
