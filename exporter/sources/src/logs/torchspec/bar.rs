//! One drawing of the progress bar:
//! `Training:  50%|█████     | 20/40 [00:03<00:03,  5.99step/s, loss=1.053, thru=44.3, wait=0.1s, epoch=1/2]`.

use crate::{
    cut,
    logs::{
        fields::{Field, Value},
        number_text,
        printed::{Printed, Signs},
    },
};

/// What a bar says.
#[derive(Debug)]
pub(super) struct Bar<'a> {
    /// Steps done.
    pub(super) step: i64,
    /// Seconds since the bar was first drawn.
    pub(super) elapsed_secs: Option<u64>,
    /// Everything that it says but its step.
    pub(super) fields: Vec<Field<'a>>,
}

const VALUES: Signs = Signs {
    between: ", ",
    within: b"=",
};

/// The fields of a bar with performance metrics.
const FIELDS: usize = 16;

impl<'a> Bar<'a> {
    /// The bar in some text.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (_, bar) = cut::once(text, "Training:")?;
        let (_, numbers) = cut::last(bar, "| ")?;
        let (done, rest) = cut::once(numbers, " [")?;
        let (step, total) = cut::once(done, "/")?;
        let (step, total) = (step.trim_ascii().parse().ok()?, number_text::any(total)?);
        let (times, _) = cut::last(rest, "]")?;
        let (times, values) = cut::once(times, ",").unwrap_or((times, ""));
        let (elapsed, remaining) = cut::once(times, "<")?;
        let (rate, values) = cut::once(values, ",").unwrap_or((values, ""));
        let elapsed_secs = clock(elapsed);
        let own = [
            ("n/total", (total > 0.0).then(|| step as f64 / total)),
            ("elapsed", elapsed_secs.map(|secs| secs as f64)),
            ("remaining", clock(remaining).map(|secs| secs as f64)),
            ("step/s", steps_per_sec(rate.trim_ascii())),
        ];
        let mut fields = Vec::with_capacity(FIELDS);
        for (key, number) in own {
            fields.extend(number.map(|number| (key.into(), Value::Number(number))));
        }
        for value in VALUES.fields(values.trim_ascii_start()) {
            fields.push((value.key.into(), shown(value)));
        }
        Some(Self {
            step,
            elapsed_secs,
            fields,
        })
    }

    /// The number that the bar shows for `key`.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let (_, value) = self.fields.iter().find(|(name, _)| cut::same(name, key))?;
        value.number()
    }

    /// The seconds that a turn of the loop takes without a wait.
    pub(super) fn work_secs(&self, wait_secs: f64) -> Option<f64> {
        let turn = 1.0 / self.number("step/s").filter(|rate| *rate > 0.0)?;
        Some((turn - wait_secs).max(0.0))
    }
}

/// Of `5.99step/s` or `1.20s/step`.
fn steps_per_sec(rate: &str) -> Option<f64> {
    if let Some(rate) = rate.strip_suffix("step/s") {
        return number_text::any(rate);
    }
    let secs = number_text::any(rate.strip_suffix("s/step")?)?;
    Some(1.0 / secs)
}

/// A number in seconds or without a unit, or the first of `1/2`.
fn shown(value: Printed<'_>) -> Value<'_> {
    match cut::once(value.text, "/") {
        Some((first, _)) => super::seconds(first),
        None => value.value(&["s"]),
    }
}

/// `MM:SS` or `H:MM:SS` in seconds.
fn clock(text: &str) -> Option<u64> {
    cut::each(text.trim_ascii(), ":").try_fold(0_u64, |secs, part| {
        secs.checked_mul(60)?.checked_add(part.parse().ok()?)
    })
}
