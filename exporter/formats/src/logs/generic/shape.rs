//! The shape of a line: its words, and the places of its numbers. Lines that one statement prints have the same shape.

use std::{fmt::Write, sync::LazyLock};

use pulsetrain_mapping::{DICTIONARY, FieldValue, MappingTarget, trainer, unit};
use pulsetrain_semconv::metric;
use regex::Regex;

use super::{objects::object, phrase::tails_of_same_meaning};

/// A number.
const NUMBER: &str = r"[-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|NaN|inf|Infinity)";

/// A number in a pattern of a mapping, short enough to be edited.
const GROUP: &str = "[-+.,_eE0-9]+|nan|inf";

/// A word that differs between lines of a shape, such as a path or a time, in a pattern of a mapping.
const VARYING: &str = r"\S+";

/// Characters that separate words.
const BETWEEN: &str = "()[]{}<>|;=\"'：，；（）【】";

/// Characters that separate the phrases of a line.
const PHRASES: [char; 5] = [',', ';', '|', '，', '；'];

/// Characters between the name of a program and the phrase after it, or between a phrase and its number.
const NAMES: [char; 2] = [':', '：'];

/// The most words of a name.
const MOST_WORDS: usize = 4;

/// The most numbers of a line that get a name.
const MOST_NUMBERS: usize = 24;

/// A word with one number: the text before it, the number and its unit.
static MEASURED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(&format!(
        r"^([^\d.+-]*[:@])?({NUMBER})(%|[A-Za-zµ°][A-Za-zµ°/]*)?$"
    ))
});

/// A word with a count of a total.
static COUNTED: LazyLock<Regex> = LazyLock::new(|| compiled(r"^([^\d.+-]*[:@])?(\d+)/(\d+)$"));

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("invariant: {error}"))
}

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part<'a> {
    Text(&'a str),
    Space,
    Varying,
    Number(&'a str),
    /// The object at the end.
    Object,
}

/// A number of a shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ShapeNumber {
    /// The words around it.
    pub(super) name: String,
    /// The text.
    pub(super) text: String,
    /// The unit after it.
    pub(super) unit: String,
    pub(super) is_step: bool,
    /// Whether it is the step or the epoch, or their total.
    pub(super) is_place: bool,
}

/// The shape of a line.
#[derive(Clone, Debug)]
pub(super) struct Shape<'a> {
    parts: Vec<Part<'a>>,
    /// Its numbers, and those of its object.
    pub(super) numbers: Vec<ShapeNumber>,
    /// The number of groups in its pattern.
    pub(super) groups: usize,
    has_prefix: bool,
}

impl<'a> Shape<'a> {
    /// Returns the shape of a line after its prefix.
    pub(super) fn parse(text: &'a str, has_prefix: bool) -> Self {
        let found = object(text)
            .filter(|(start, fields)| !fields.is_empty() && text[*start..].trim_end().ends_with('}'));
        let printed = found
            .as_ref()
            .map_or(text.trim_end(), |(start, _)| &text[..*start]);
        let mut parts = parts(printed);
        let mut numbers = named(&parts);
        let groups = numbers.len();
        if let Some((_, fields)) = found {
            parts.push(Part::Object);
            let fields = fields.into_iter().filter(|(_, value)| value.number().is_some());
            numbers.extend(fields.map(|(key, value)| ShapeNumber {
                name: key.into_owned(),
                text: value.number().unwrap_or_default().to_string(),
                ..ShapeNumber::default()
            }));
        }
        Self {
            parts,
            numbers,
            groups,
            has_prefix,
        }
    }

    /// Returns whether a prefix was before the line.
    pub(super) fn has_prefix(&self) -> bool {
        self.has_prefix
    }

    /// Returns whether the line has a value: a number that is not the step, the epoch or their total.
    pub(super) fn has_value(&self) -> bool {
        self.numbers.iter().any(|number| !number.is_place)
    }

    /// Returns the words of the line with a sign for each number.
    pub(super) fn text(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text,
            Part::Space => " ",
            Part::Varying => "*",
            Part::Number(_) => "#",
            Part::Object => "{...}",
        });
        parts.collect()
    }

    /// Returns the pattern of the lines with this shape, with a group for each of these names.
    pub(super) fn pattern(&self, names: &[String]) -> String {
        let mut names = names.iter();
        let mut pattern = String::from(if self.has_prefix { "" } else { "^" });
        for part in &self.parts {
            match part {
                Part::Text(text) => pattern.push_str(&escaped(text)),
                Part::Space => pattern.push_str(r"\s+"),
                Part::Varying => pattern.push_str(VARYING),
                Part::Number(_) => match names.next() {
                    Some(name) => write!(pattern, "(?<{name}>{GROUP})").unwrap_or_default(),
                    None => write!(pattern, "(?:{GROUP})").unwrap_or_default(),
                },
                Part::Object => pattern.push_str(r"(?<record>\{.*\})"),
            }
        }
        pattern.push_str(r"\s*$");
        pattern
    }
}

/// Escapes a text for a pattern. Outside of a class, a hyphen has no meaning.
fn escaped(text: &str) -> String {
    regex::escape(text).replace(r"\-", "-").replace(r"\#", "#")
}

/// Splits a line into its parts.
fn parts(line: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_space = first.is_whitespace();
        let is_between = BETWEEN.contains(first);
        let end = match (is_space, is_between) {
            (true, _) => rest.find(|letter: char| !letter.is_whitespace()),
            (_, true) => Some(first.len_utf8()),
            _ => rest.find(|letter: char| letter.is_whitespace() || BETWEEN.contains(letter)),
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        match (is_space, is_between) {
            (true, _) => parts.push(Part::Space),
            (_, true) => parts.push(Part::Text(word)),
            _ => add_word(word, &mut parts),
        }
        rest = after;
    }
    parts
}

fn add_word<'a>(word: &'a str, parts: &mut Vec<Part<'a>>) {
    let inner = word.trim_end_matches([',', ':', '.', '!', '?']);
    let end = &word[inner.len()..];
    if let Some(found) = COUNTED.captures(inner) {
        let group = |number| found.get(number).map_or("", |found| found.as_str());
        add_text(group(1), parts);
        parts.extend([Part::Number(group(2)), Part::Text("/"), Part::Number(group(3))]);
    } else if let Some(found) = MEASURED.captures(inner).filter(is_number) {
        let group = |number| found.get(number).map_or("", |found| found.as_str());
        add_text(group(1), parts);
        parts.push(Part::Number(group(2)));
        add_text(group(3), parts);
    } else if inner.contains(|letter: char| letter.is_ascii_digit()) {
        parts.push(Part::Varying);
    } else {
        add_text(inner, parts);
    }
    add_text(end, parts);
}

fn add_text<'a>(text: &'a str, parts: &mut Vec<Part<'a>>) {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

/// Returns whether a word is one number with a usual unit: `3rd` and `16B` have none.
fn is_number(found: &regex::Captures<'_>) -> bool {
    let group = |number| found.get(number).map_or("", |found| found.as_str());
    let unit = group(3);
    // `nans` and `infinity` are words.
    let is_unit = group(2).ends_with(|last: char| last.is_ascii_digit() || last == '.')
        && (unit == "%" || unit.contains('/') || unit::is_spelling(unit));
    (unit.is_empty() || is_unit) && FieldValue::parse(group(2)).number().is_some()
}

/// Names the numbers of a line by the words before them, else by those after them.
fn named(parts: &[Part<'_>]) -> Vec<ShapeNumber> {
    let mut numbers: Vec<ShapeNumber> = Vec::new();
    let mut start = 0;
    let places = parts.iter().enumerate();
    for (at, part) in places {
        let Part::Number(text) = *part else { continue };
        if numbers.len() == MOST_NUMBERS {
            break;
        }
        let before = words_before(&parts[start..at], !numbers.is_empty());
        let is_total = parts[start..at] == [Part::Text("/")] && start > 0;
        let (after, unit) = words_after(&parts[at + 1..]);
        let phrase = match (before.is_empty(), is_total) {
            (_, true) => format!("{} total", numbers.last().map_or("", |last| &last.name)),
            (false, _) => before,
            (true, _) if after.is_empty() => "value".to_owned(),
            (true, _) => after,
        };
        let phrase = unique(phrase, &numbers);
        let is_integer = text.bytes().all(|byte| byte.is_ascii_digit());
        let is_first = numbers.iter().all(|number| !number.is_step);
        let is_step = !is_total && is_integer && is_step(&phrase);
        let is_of_place = is_total && numbers.last().is_some_and(|last| last.is_place);
        let is_epoch = metric_of(&phrase) == Some(metric::TRAIN_EPOCH.name);
        numbers.push(ShapeNumber {
            is_place: is_step || is_of_place || is_epoch,
            is_step: is_step && is_first,
            name: phrase,
            text: text.to_owned(),
            unit,
        });
        start = at + 1;
    }
    numbers
}

/// Returns the last words before a number, after the last delimiter that has words after it.
fn words_before(parts: &[Part<'_>], is_after_number: bool) -> String {
    let is_open = |at: usize| !parts[at..].contains(&Part::Text(")"));
    let text = parts.iter().enumerate().map(|(at, part)| match part {
        // A bracket that encloses the number begins its phrase.
        Part::Text("(") if is_open(at) => ":",
        Part::Text("-") => ":",
        Part::Text(text) => text,
        _ => " ",
    });
    let text: String = text.collect();
    let phrases: Vec<&str> = text.split(PHRASES).collect();
    // The first phrase belongs to the number before.
    let own = &phrases[usize::from(is_after_number && phrases.len() > 1)..];
    let mut phrases = own.iter().rev();
    let phrase = phrases.find(|phrase| phrase.contains(char::is_alphabetic));
    let mut named = phrase.copied().unwrap_or_default().rsplit(NAMES);
    let words = words(
        named
            .find(|text| text.contains(char::is_alphabetic))
            .unwrap_or_default(),
    );
    let is_unit = is_after_number && words.first().is_some_and(|word| unit::is_spelling(word));
    let words = &words[usize::from(is_unit)..];
    words[words.len().saturating_sub(MOST_WORDS)..].join(" ")
}

/// Returns the words after a number that are not the label of the next one, and its unit.
fn words_after(parts: &[Part<'_>]) -> (String, String) {
    let mut text = String::new();
    let mut is_label = false;
    for part in parts {
        match part {
            Part::Text(")" | "]") => break,
            Part::Text(sign) if sign.starts_with(PHRASES) => break,
            Part::Text("=" | ":" | "：") => {
                is_label = true;
                break;
            }
            Part::Text(word) => text.push_str(word),
            Part::Space => text.push(' '),
            Part::Number(_) => {
                is_label = true;
                break;
            }
            Part::Varying | Part::Object => break,
        }
    }
    let unit = text.split_whitespace().next().unwrap_or_default();
    let unit = if unit == "%" || unit::is_spelling(unit) {
        unit
    } else {
        ""
    };
    let words = if is_label { Vec::new() } else { words(&text) };
    (words[..words.len().min(MOST_WORDS)].join(" "), unit.to_owned())
}

/// Returns a name that no number before it has.
fn unique(name: String, numbers: &[ShapeNumber]) -> String {
    let is_free = |name: &String| numbers.iter().all(|number| number.name != *name);
    let others = (2..).map(|number| format!("{name} {number}"));
    let free = std::iter::once(name.clone()).chain(others).find(is_free);
    free.unwrap_or(name)
}

fn words(text: &str) -> Vec<&str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.filter(|word| !word.is_empty()).collect()
}

fn is_step(phrase: &str) -> bool {
    let mapping = trainer(DICTIONARY).mapping();
    tails_of_same_meaning(phrase).any(|tail| mapping.step_rank(tail).is_some())
}

/// Returns the metric of a phrase in the dictionary.
pub(super) fn metric_of(phrase: &str) -> Option<&'static str> {
    let mapping = trainer(DICTIONARY).mapping();
    let resolved = tails_of_same_meaning(phrase).find_map(|tail| mapping.resolve(None, tail))?;
    match resolved.mapping.target {
        MappingTarget::Metric(metric) if resolved.is_plain() => Some(metric.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let shape = Shape::parse(line, false);
        let names: Vec<&str> = shape.numbers.iter().map(|number| number.name.as_str()).collect();
        format!("{}: {}", shape.text(), names.join(", "))
    }

    #[test]
    fn words_around_numbers_are_their_names() {
        for (line, expected) in [
            (
                "Current learning rate: 0.01",
                "Current learning rate: #: Current learning rate",
            ),
            (
                "wrote 31 files in 2.5 s to /tmp/ckpt-7/a",
                "wrote # files in # s to *: wrote, files in",
            ),
            ("Epoch 3/40", "Epoch #/#: Epoch, Epoch total"),
            (
                "served 1200 req/s, queue=17 (peak 19)",
                "served # req/s, queue=# (peak #): served, queue, peak",
            ),
            ("1,250 tok/s | 31.5 GiB", "# tok/s | # GiB: tok s, GiB"),
            ("at 14:02:11 on 2031-05-06 gpt2 v1.2.3 3rd", "at * on * * * *: "),
            (
                "drift -0.5% after step 400, drift 3",
                "drift #% after step #, drift #: drift, after step, drift 2",
            ),
            ("gc {\"pause\": 3, \"kind\": \"full\"}", "gc {...}: pause"),
            ("训练：步 12，损失 2.5", "训练：步 #，损失 #: 步, 损失"),
            (
                "Keeper INFO: [a] - evicted 5 in 31 ms",
                "Keeper INFO: [a] - evicted # in # ms: evicted, in",
            ),
            (
                "main - root - lr: 5e-6 gnorm: 2.5",
                "main - root - lr: # gnorm: #: lr, gnorm",
            ),
            ("Lernrate 0,5", "Lernrate *: "),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn a_pattern_matches_the_lines_of_its_shape() {
        let line = "  (gc) took 3.5ms at step 7, freed 1e3 [a.b]";
        let shape = Shape::parse(line, false);
        assert!(shape.numbers[1].is_step && shape.has_value());
        let names = ["took_ms", "step", "freed"].map(str::to_owned);
        let pattern = Regex::new(&shape.pattern(&names)).unwrap();
        let found = pattern
            .captures(" (gc) took 0.25ms at step 19, freed 7 [a.b] ")
            .unwrap();
        assert_eq!(
            (&found["took_ms"], &found["step"], &found["freed"]),
            ("0.25", "19", "7")
        );
        assert!(!pattern.is_match("(gc) took 3.5ms at step 7, freed 1e3 [a.b] again"));
        assert!(!Shape::parse("Epoch 3/40 begins", false).has_value());
        assert!(!Shape::parse("Epoch 3/40 Step 7/90 Train step 7/3600 done", false).has_value());
    }
}
