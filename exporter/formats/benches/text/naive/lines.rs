//! Lines by regular expressions: one for the line, one for the pairs in it.

use jiff::{civil::DateTime, tz::TimeZone};
use regex::{Captures, Regex};

use super::Points;

/// The expressions of a format.
pub(crate) struct Grammar {
    /// The lines that are records, with the groups `time` or `absl`, `step` and `fields`.
    pub(crate) lines: &'static [&'static str],
    /// The pairs in `fields`: `key` and `value`, and an optional `total`.
    pub(crate) pairs: &'static [&'static str],
    /// The parts that are removed from a line first.
    pub(crate) before: Option<&'static str>,
}

/// The expressions, compiled.
pub(crate) struct Compiled {
    lines: Vec<Regex>,
    pairs: Vec<Regex>,
    before: Option<Regex>,
}

impl Grammar {
    pub(super) fn compile(&self) -> Compiled {
        let compile = |patterns: &[&str]| {
            patterns
                .iter()
                .map(|pattern| Regex::new(pattern).unwrap())
                .collect()
        };
        Compiled {
            lines: compile(self.lines),
            pairs: compile(self.pairs),
            before: self.before.map(|pattern| Regex::new(pattern).unwrap()),
        }
    }
}

impl Compiled {
    pub(super) fn read(&self, input: &[u8]) -> u64 {
        let mut points = Points::default();
        let text = String::from_utf8_lossy(input);
        for line in text.split(['\n', '\r']) {
            match &self.before {
                Some(before) => self.line(&before.replace_all(line, ""), &mut points),
                None => self.line(line, &mut points),
            }
        }
        points.finish()
    }

    fn line(&self, line: &str, points: &mut Points) {
        for found in self.lines.iter().filter_map(|pattern| pattern.captures(line)) {
            let time = time(&found).unwrap_or_default();
            if let Some(step) = found.name("step").and_then(|step| step.as_str().parse().ok()) {
                points.push_step(time, step);
            }
            for pair in self
                .pairs
                .iter()
                .flat_map(|pairs| pairs.captures_iter(&found["fields"]))
            {
                if let Some(value) = number(&pair["value"]) {
                    points.push(&pair["key"], time, value);
                }
                if let Some(total) = pair.name("total").and_then(|total| number(total.as_str())) {
                    points.push("total", time, total);
                }
            }
        }
    }
}

fn number(text: &str) -> Option<f64> {
    if let Some((minutes, seconds)) = text.split_once(':') {
        return Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?);
    }
    text.replace(',', "").parse().ok()
}

fn time(found: &Captures<'_>) -> Option<u64> {
    let date: DateTime = if let Some(absl) = found.name("absl") {
        let text = absl.as_str();
        format!("2026-{}-{}T{}", &text[..2], &text[2..4], &text[5..])
            .parse()
            .ok()?
    } else {
        found.name("time")?.as_str().replace(',', ".").parse().ok()?
    };
    let nanos = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_nanosecond();
    u64::try_from(nanos).ok()
}
