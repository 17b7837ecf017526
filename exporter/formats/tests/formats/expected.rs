//! The contents of a sample, read by the test's own code.

use std::collections::BTreeMap;

/// A value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    /// The active state of a state set.
    State(String),
}

/// A value under its upstream name.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedValue {
    pub(crate) key: String,
    pub(crate) value: Value,
    /// The time in nanoseconds since 1970, if the sample has one.
    pub(crate) time: Option<u64>,
    /// Further attributes of the series: the GPU, the data set.
    pub(crate) attributes: Vec<(&'static str, String)>,
}

/// The contents of a sample.
#[derive(Debug, Default)]
pub(crate) struct ExpectedLog {
    pub(crate) values: Vec<ExpectedValue>,
    /// The steps in order, with repetitions.
    pub(crate) steps: Vec<f64>,
    pub(crate) events: usize,
    pub(crate) spans: usize,
    /// The number of values that each rule leaves out.
    pub(crate) left_out: BTreeMap<String, u64>,
    /// The time of the next values.
    pub(crate) time: Option<u64>,
    /// The attributes of the next values.
    pub(crate) attributes: Vec<(&'static str, String)>,
}

impl ExpectedLog {
    /// Adds a number under a key.
    pub(crate) fn number(&mut self, key: impl Into<String>, number: f64) {
        self.push(key.into(), Value::Number(number));
    }

    /// Adds a state under a key.
    pub(crate) fn state(&mut self, key: impl Into<String>, state: &str) {
        self.push(key.into(), Value::State(state.to_owned()));
    }

    /// Counts a value that a rule leaves out.
    pub(crate) fn leave_out(&mut self, rule: &str) {
        *self.left_out.entry(rule.to_owned()).or_default() += 1;
    }

    /// Adds the numbers of a JSON object under their keys with `prefix`. Keys in `others` are skipped.
    pub(crate) fn fields(&mut self, prefix: &str, object: &serde_json::Value, others: &[&str]) {
        for (key, value) in object.as_object().expect("a record is an object") {
            if others.contains(&key.as_str()) {
                continue;
            }
            let text = value.as_str().map(str::parse);
            match (value.as_f64(), text) {
                (Some(number), _) | (None, Some(Ok(number))) => self.number(format!("{prefix}{key}"), number),
                (None, Some(Err(_))) => {
                    self.state(format!("{prefix}{key}"), value.as_str().expect("it is text"));
                }
                (None, None) => panic!("{key} is neither number nor text"),
            }
        }
    }

    fn push(&mut self, key: String, value: Value) {
        self.values.push(ExpectedValue {
            key,
            value,
            time: self.time,
            attributes: self.attributes.clone(),
        });
    }
}

/// Parses the number at the beginning of a text, with any unit after it.
pub(crate) fn number(text: &str) -> f64 {
    let text = text.trim().replace(',', "");
    let lengths = (1..=text.len()).rev().filter(|len| text.is_char_boundary(*len));
    let mut numbers = lengths.filter_map(|len| text[..len].trim().parse().ok());
    numbers
        .next()
        .unwrap_or_else(|| panic!("{text} begins with no number"))
}

/// `00:33:13.624218` of 2026-11-21, the day of every sample, in nanoseconds since 1970.
pub(crate) fn clock(text: &str) -> u64 {
    let time: jiff::Timestamp = format!("2026-11-21T{text}Z").parse().expect("a time");
    u64::try_from(time.as_nanosecond()).expect("it is after 1970")
}

/// The lines of a text, at newlines and carriage returns, without colours.
pub(crate) fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut pieces = text.split('\u{1b}');
    let mut clean = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        clean.push_str(piece.split_once('m').expect("a colour ends").1);
    }
    clean.split(['\n', '\r']).map(str::to_owned).collect()
}
