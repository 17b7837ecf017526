//! Parses the progress bar: `Training:  50%|█████     | 20/40 [00:03<00:03,  5.99step/s, loss=1.053, thru=44.3, wait=0.1s,
//! epoch=1/2]`.

use crate::logs::delimited::Delimiters;
use crate::logs::literal;
use pulsetrain_mapping::{Field, FieldValue, number_text};

/// The fields of a bar.
#[derive(Clone, Debug)]
pub(super) struct Bar<'a> {
    /// The number of completed steps.
    pub(super) step: i64,
    pub(super) fields: Vec<Field<'a>>,
    /// Whether the terminal was too narrow for the bar. The field at its edge is not among the fields.
    pub(super) is_cut: bool,
}

const VALUES: Delimiters = Delimiters {
    pair: ", ",
    key: b"=",
};

impl<'a> Bar<'a> {
    /// Returns the text of a bar after its drawing.
    pub(super) fn numbers(text: &str) -> Option<&str> {
        let (_, bar) = text.split_once("Training:")?;
        let (_, drawn) = bar.split_once("%|")?;
        Some(drawn.split_once("| ")?.1)
    }

    /// `20/40 [00:03<00:03,  5.99step/s, loss=1.053, thru=44.3, wait=0.1s, epoch=1/2]`.
    pub(super) fn parse(numbers: &'a str) -> Option<Self> {
        let (done, rest) = numbers.split_once(" [")?;
        let (step, total) = done.split_once('/')?;
        let total = number_text::any(total)?;
        let (times, is_cut) = match rest.rsplit_once(']') {
            Some((times, _)) => (times, false),
            None => (rest.rsplit_once(", ")?.0, true),
        };
        let (times, values) = times.split_once(',').unwrap_or((times, ""));
        let (elapsed, remaining) = times.split_once('<')?;
        let (rate, values) = values.split_once(',').unwrap_or((values, ""));
        let step = number_text::count(step.trim_ascii())?;
        let times = [
            ("n/total", (total > 0.0).then(|| step / total)),
            ("elapsed", clock(elapsed)),
            ("remaining", clock(remaining)),
            ("step/s", steps_per_sec(rate.trim_ascii())),
        ];
        let known = times.into_iter().filter_map(|(key, number)| Some((key, number?)));
        let mut fields: Vec<Field<'a>> = known
            .map(|(key, number)| (key.into(), FieldValue::Number(number)))
            .collect();
        fields.extend(VALUES.fields(values.trim_ascii_start()).map(|field| {
            // The first number of `1/2`.
            let first = field.text.split_once('/').map_or(field.text, |(first, _)| first);
            (field.key.into(), FieldValue::measured(first, super::SECONDS))
        }));
        Some(Self {
            step: step as i64,
            fields,
            is_cut,
        })
    }

    /// Returns the seconds since the bar was first drawn.
    pub(super) fn elapsed_secs(&self) -> Option<u64> {
        self.number("elapsed").map(|secs| secs as u64)
    }

    /// Returns the number of a field.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        literal::number(&self.fields, key)
    }

    /// Returns the seconds of an iteration of the loop without the wait.
    pub(super) fn work_secs(&self, wait_secs: f64) -> Option<f64> {
        let turn = 1.0 / self.number("step/s").filter(|rate| *rate > 0.0)?;
        Some((turn - wait_secs).max(0.0))
    }
}

/// Parses `5.99step/s` or `1.20s/step` to steps a second.
fn steps_per_sec(rate: &str) -> Option<f64> {
    match rate.strip_suffix("step/s") {
        Some(rate) => number_text::any(rate),
        None => Some(1.0 / number_text::any(rate.strip_suffix("s/step")?)?),
    }
}

/// Parses `MM:SS` or `H:MM:SS` to seconds; `None` for an unknown time.
fn clock(text: &str) -> Option<f64> {
    let mut parts = text.trim_ascii().split(':');
    parts.try_fold(0.0, |seconds, part| {
        Some(seconds * 60.0 + number_text::count(part)?)
    })
}
