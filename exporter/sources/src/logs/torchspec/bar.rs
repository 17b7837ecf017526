//! One drawing of the progress bar:
//! `Training:  50%|█████     | 20/40 [00:03<00:03,  5.99step/s, loss=1.053, thru=44.3, wait=0.1s, epoch=1/2]`.

use crate::{
    cut,
    logs::{
        fields::{self, Field, Value},
        number_text,
    },
};

/// What a bar says.
#[derive(Debug)]
pub(super) struct Bar<'a> {
    /// Steps done.
    pub(super) step: i64,
    total: f64,
    /// Seconds since the bar was first drawn.
    pub(super) elapsed_secs: Option<u64>,
    remaining_secs: Option<u64>,
    /// `5.99step/s` or `1.20s/step`.
    rate: &'a str,
    /// What it shows behind the rate, by their names.
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Bar<'a> {
    /// The bar in some text.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (_, bar) = cut::once(text, "Training:")?;
        let (_, numbers) = cut::last(bar, "| ")?;
        let (done, rest) = cut::once(numbers, " [")?;
        let (step, total) = done.split_once('/')?;
        let (times, _) = rest.rsplit_once(']')?;
        let (times, values) = times.split_once(',').unwrap_or((times, ""));
        let (elapsed, remaining) = times.split_once('<')?;
        let (rate, values) = values.split_once(',').unwrap_or((values, ""));
        Some(Self {
            step: step.trim().parse().ok()?,
            total: number_text::any(total)?,
            elapsed_secs: clock(elapsed),
            remaining_secs: clock(remaining),
            rate: rate.trim(),
            values: fields::split(values.trim_start(), ", ", "=").collect(),
        })
    }

    /// The number that the bar shows for `key`.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let (_, text) = self.values.iter().find(|(name, _)| *name == key)?;
        number_text::with_suffix(text).map(|(number, _)| number)
    }

    /// Everything that the bar says but its step.
    pub(super) fn fields(&self) -> Vec<Field<'a>> {
        let own = [
            (
                "n/total",
                (self.total > 0.0).then(|| self.step as f64 / self.total),
            ),
            ("elapsed", self.elapsed_secs.map(|secs| secs as f64)),
            ("remaining", self.remaining_secs.map(|secs| secs as f64)),
            ("step/s", self.steps_per_sec()),
        ];
        let mut fields = Vec::with_capacity(own.len() + self.values.len());
        for (key, number) in own {
            fields.extend(number.map(|number| (key.into(), Value::Number(number))));
        }
        fields.extend(self.values.iter().map(|(key, text)| ((*key).into(), shown(text))));
        fields
    }

    /// The seconds that a turn of the loop takes without a wait.
    pub(super) fn work_secs(&self, wait_secs: f64) -> Option<f64> {
        let turn = 1.0 / self.steps_per_sec().filter(|rate| *rate > 0.0)?;
        Some((turn - wait_secs).max(0.0))
    }

    fn steps_per_sec(&self) -> Option<f64> {
        if let Some(rate) = self.rate.strip_suffix("step/s") {
            return number_text::any(rate);
        }
        let secs = number_text::any(self.rate.strip_suffix("s/step")?)?;
        Some(1.0 / secs)
    }
}

/// A number with its unit, or the first of `1/2`.
fn shown(text: &str) -> Value<'_> {
    let text = text.split('/').next().unwrap_or(text);
    match number_text::with_suffix(text) {
        Some((number, "" | "s")) => Value::Number(number),
        _ => Value::of(text),
    }
}

/// `MM:SS` or `H:MM:SS` in seconds.
fn clock(text: &str) -> Option<u64> {
    text.trim().split(':').try_fold(0_u64, |secs, part| {
        secs.checked_mul(60)?.checked_add(part.parse().ok()?)
    })
}
