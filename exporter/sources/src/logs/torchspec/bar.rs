//! One drawing of the progress bar:
//! `Training:  50%|█████     | 20/40 [00:03<00:03,  5.99step/s, loss=1.053, thru=44.3, wait=0.1s, epoch=1/2]`.

use super::tables;
use crate::{
    cut,
    logs::{
        fields::Value,
        number_text,
        printed::{Printed, Signs},
        template::{Drawing, How, Sketch},
    },
};

/// What a bar says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar<'a>(&'a Sketch<Places>);

/// The places of the fields of a bar that are looked at.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Places {
    elapsed: Option<usize>,
    rate: Option<usize>,
    pub(super) infer: Option<usize>,
    pub(super) train: Option<usize>,
    pub(super) wait: Option<usize>,
    pub(super) pool: Option<usize>,
    /// Whether the terminal was too narrow for the bar: what stood at its edge is not among the fields.
    pub(super) is_cut: bool,
}

const VALUES: Signs = Signs {
    between: ", ",
    within: b"=",
};

impl<'a> Bar<'a> {
    /// The bar of a sketch.
    pub(super) fn of(sketch: &'a Sketch<Places>) -> Self {
        Self(sketch)
    }

    /// The numbers of the bar in some text: all that stands behind what is drawn.
    pub(super) fn numbers(text: &str) -> Option<&str> {
        let (_, bar) = cut::once(text, "Training:")?;
        let (_, drawn) = cut::once(bar, "%|")?;
        Some(cut::once(drawn, "| ")?.1)
    }

    /// `20/40 [00:03<00:03,  5.99step/s, loss=1.053, thru=44.3, wait=0.1s, epoch=1/2]`.
    pub(super) fn draw(numbers: &str) -> Option<Sketch<Places>> {
        let (done, rest) = cut::once(numbers, " [")?;
        let (step, total) = cut::once(done, "/")?;
        let total = number_text::any(total)?;
        let (times, is_cut) = match cut::last(rest, "]") {
            Some((times, _)) => (times, false),
            None => (cut::last(rest, ", ")?.0, true),
        };
        let (times, values) = cut::once(times, ",").unwrap_or((times, ""));
        let (elapsed, remaining) = cut::once(times, "<")?;
        let (rate, values) = cut::once(values, ",").unwrap_or((values, ""));
        let mut drawing = Drawing::of(numbers, Places::default());
        let step = drawing.count(step.trim_ascii())?;
        if total > 0.0 {
            drawing.reads("n/total", step, How::Over(total));
        }
        clock("elapsed", elapsed, &mut drawing);
        clock("remaining", remaining, &mut drawing);
        steps_per_sec(rate.trim_ascii(), &mut drawing);
        for value in VALUES.fields(values.trim_ascii_start()) {
            shown(value, &mut drawing);
        }
        let place = |key| drawing.sketch().place(key);
        let places = Places {
            elapsed: place("elapsed"),
            rate: place("step/s"),
            infer: place("I"),
            train: place("T"),
            wait: place("wait"),
            pool: place("pool"),
            is_cut,
        };
        *drawing.more() = places;
        Some(drawing.finish(tables::BAR))
    }

    /// Steps done.
    pub(super) fn step(self) -> i64 {
        self.0.number(0) as i64
    }

    /// Seconds since the bar was first drawn.
    pub(super) fn elapsed_secs(self) -> Option<u64> {
        self.number(self.0.more.elapsed).map(|secs| secs as u64)
    }

    /// Everything that it says.
    pub(super) fn sketch(self) -> &'a Sketch<Places> {
        self.0
    }

    /// Where the fields stand that are looked at.
    pub(super) fn places(self) -> &'a Places {
        &self.0.more
    }

    /// The number of the field at this place.
    pub(super) fn number(self, place: Option<usize>) -> Option<f64> {
        self.0.number_at(place)
    }

    /// The seconds that a turn of the loop takes without a wait.
    pub(super) fn work_secs(self, wait_secs: f64) -> Option<f64> {
        let turn = 1.0 / self.number(self.0.more.rate).filter(|rate| *rate > 0.0)?;
        Some((turn - wait_secs).max(0.0))
    }
}

/// `5.99step/s` or `1.20s/step`.
fn steps_per_sec<'l>(rate: &'l str, drawing: &mut Drawing<'l, Places>) {
    let key = "step/s";
    if let Some(rate) = rate.strip_suffix("step/s") {
        if number_text::any(rate).is_some() {
            drawing.number(key, rate, 1.0);
        }
    } else if let Some(secs) = rate.strip_suffix("s/step")
        && !drawing.made(key, &[secs], How::Inverse)
        && let Some(secs) = number_text::any(secs)
    {
        drawing.constant(key, Value::Number(1.0 / secs));
    }
}

/// A number in seconds or without a unit, or the first of `1/2`.
fn shown<'l>(value: Printed<'l>, drawing: &mut Drawing<'l, Places>) {
    let first = cut::once(value.text, "/").map(|(first, _)| first);
    drawing.measured(value.key, first.unwrap_or(value.text), super::SECONDS);
}

/// `MM:SS` or `H:MM:SS`, if it is known.
fn clock<'l>(key: &str, text: &'l str, drawing: &mut Drawing<'l, Places>) {
    let parts: Vec<&str> = cut::each(text.trim_ascii(), ":").collect();
    drawing.made(key, &parts, How::Sixtieths(parts.len(), 1.0));
}
