//! Every number under a label is delivered or counted: another number in its place changes the output, or its absence changes a
//! count of skipped input.
//!
//! `tests/golden/accounts.txt` lists the numbers of each sample that are counted and those that are lost in silence. A log of an
//! unknown trainer loses none.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use pulsetrain_formats::LogFormat;
use pulsetrain_record::SkipReason;
use regex::{Captures, Regex};

use crate::imported::{folder, is_golden, read, recognised};

/// The bytes of a sample that are read: enough for each kind of line, and few enough for a reading for each number.
const MAX_BYTES: usize = 6 << 10;
/// The most lines of a sample whose numbers are tried, one of each shape.
const MAX_LINES: usize = 40;
/// The most labels that are listed.
const MAX_LABELS: usize = 12;

/// A number under a label: `loss: 2.5`, `grad norm = 1e-3`.
static LABELLED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"["']?([A-Za-z_][\w/.\-]*)["']?\s*[:=]\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?:[\s,;|)\]}%"']|$)"#)
        .expect("the expression is valid")
});

/// The output of a log.
#[derive(PartialEq)]
struct Outcome {
    batches: Vec<Vec<u8>>,
    skipped: Vec<(SkipReason, u64)>,
}

impl Outcome {
    fn new(format: &LogFormat, log: &str) -> Self {
        let (batches, _, skipped) = read(format, log.as_bytes());
        Self {
            batches: batches.into_iter().map(|batch| batch.bytes).collect(),
            skipped: skipped.counts().collect(),
        }
    }
}

/// The numbers of a log.
#[derive(Default)]
struct Account {
    delivered: usize,
    counted: BTreeSet<String>,
    silent: BTreeSet<String>,
    counted_numbers: usize,
    silent_numbers: usize,
}

impl Account {
    fn new(format: &LogFormat, log: &str) -> Self {
        let base = Outcome::new(format, log);
        let mut account = Self::default();
        let mut shapes = BTreeSet::new();
        let mut start = 0;
        for line in log.split_inclusive('\n') {
            let at = start;
            start += line.len();
            let shape: String = line.chars().filter(|letter| letter.is_alphabetic()).collect();
            if shapes.len() >= MAX_LINES || !shapes.insert(shape) {
                continue;
            }
            for found in LABELLED.captures_iter(line) {
                let (label, number) = (&found[1], found.get(2).expect("it has a number"));
                // A place in the source, a shard, a process, or the share of a bar, which has its count too.
                let is_place = [".py", ".cc", ".bin", "pid"]
                    .iter()
                    .any(|end| label.ends_with(end));
                if is_place || line[number.end()..].starts_with("%|") {
                    continue;
                }
                let (before, after) = (&log[..at + number.start()], &log[at + number.end()..]);
                let other: String = number.as_str().chars().map(other_digit).collect();
                let is_delivered =
                    Outcome::new(format, &format!("{before}{other}{after}")).batches != base.batches;
                if is_delivered {
                    account.delivered += 1;
                } else if Outcome::new(format, &without(log, at, &found)) != base {
                    account.counted_numbers += 1;
                    account.counted.insert(label.to_owned());
                } else {
                    account.silent_numbers += 1;
                    account.silent.insert(label.to_owned());
                }
            }
        }
        account
    }

    fn line(&self, name: &str) -> String {
        let list = |labels: &BTreeSet<String>| {
            let shown: Vec<&str> = labels.iter().take(MAX_LABELS).map(String::as_str).collect();
            shown.join(", ")
        };
        let mut line = format!("{name}: {} delivered", self.delivered);
        if self.counted_numbers > 0 {
            line += &format!("; {} counted: {}", self.counted_numbers, list(&self.counted));
        }
        if self.silent_numbers > 0 {
            line += &format!("; {} silent: {}", self.silent_numbers, list(&self.silent));
        }
        line + "\n"
    }
}

/// Returns a log without a number and its label. An object stays an object.
fn without(log: &str, line: usize, found: &Captures<'_>) -> String {
    let (pair, number) = found.get(0).zip(found.get(2)).expect("it has a number");
    let (mut before, mut after) = (&log[..line + pair.start()], &log[line + number.end()..]);
    after = after.trim_start_matches(['"', '\'']);
    if let Some(rest) = after.strip_prefix(',') {
        after = rest.trim_start_matches(' ');
    } else if let Some(rest) = before.trim_end_matches(' ').strip_suffix(',') {
        before = rest;
    }
    [before, after].concat()
}

/// Returns a digit other than a given one, never zero.
fn other_digit(letter: char) -> char {
    match letter.to_digit(10) {
        Some(digit) => char::from_digit(digit % 9 + 1, 10).expect("it is a digit"),
        None => letter,
    }
}

#[test]
fn every_labelled_number_is_delivered_or_counted() {
    let (mut accounts, mut lost) = (BTreeMap::new(), Vec::new());
    for (name, bytes, format) in recognised() {
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        let end = text.floor_char_boundary(MAX_BYTES);
        let end = text[..end].rfind('\n').map_or(end, |newline| newline + 1);
        let account = Account::new(format, &text[..end]);
        if format.is_fallback() && !account.silent.is_empty() {
            lost.push(account.line(&name));
        }
        accounts.insert(name, account);
    }
    let page: String = accounts
        .iter()
        .map(|(name, account)| account.line(name))
        .collect();
    is_golden(folder("golden").join("accounts.txt"), &page);
    assert!(lost.is_empty(), "{lost:#?}");
}
