//! Parses the lines under the Trainer's headings: the settings under `***** Running training *****`, and the results under
//! `***** eval metrics *****` that the example scripts print at their end.
//!
//! [INFO|trainer.py:2410] 2026-11-21 00:20:58,123 >>   Num examples = 1,000

use pulsetrain_mapping::{FieldValue, number_text, record_option};
use std::borrow::Cow;

use pulsetrain_otlp::write::AttributeValue as Out;

use super::{DUPLICATE, keys::Dictionaries};
use crate::logs::lines::Line;
use pulsetrain_record::{Recorder, SkipReason};

/// The names of the settings under `Running ...`.
const SETTINGS: [&str; 10] = [
    "Num examples",
    "Num Epochs",
    "Num update steps per epoch",
    "Instantaneous batch size per device",
    "Total train batch size (w. parallel, distributed & accumulation)",
    "Training with DataParallel so batch size has been adjusted to",
    "Gradient Accumulation steps",
    "Total optimization steps",
    "Number of trainable parameters",
    "Batch size",
];

/// The limit for stored settings. Further ones are recorded each time.
const MAX_SETTINGS: usize = 1024;

/// The current heading and the recorded settings.
#[derive(Debug, Default)]
pub(super) struct Headings {
    /// The text of the heading: `Running training`, `eval metrics`.
    section: String,
    /// The recorded settings with their values. Every evaluation repeats them.
    settings: Vec<(String, String)>,
}

impl Headings {
    /// Parses a line and returns whether it has a value.
    pub(super) fn line(
        &mut self,
        line: &Line<'_>,
        dictionaries: &mut Dictionaries,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        if let Some(heading) = heading(line.text) {
            heading.clone_into(&mut self.section);
            return false;
        }
        if self.section.is_empty() {
            return false;
        }
        let Some((name, value)) = line
            .text
            .split_once(" = ")
            .map(|(name, value)| (name, value.trim_ascii()))
        else {
            return false;
        };
        match self.section.strip_prefix("Running ") {
            Some(_) => self.setting(name, value, line, recorder),
            None => self.result(name, value, line, dictionaries, recorder),
        }
    }

    fn setting(&mut self, name: &str, value: &str, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some(name) = SETTINGS.iter().find(|known| {
            name.strip_suffix(**known)
                .is_some_and(|before| before.ends_with("  "))
        }) else {
            return false;
        };
        let section = self.section.trim_start_matches("Running ").to_ascii_lowercase();
        let setting = (format!("{section}.{name}"), value.to_owned());
        if self.settings.contains(&setting) {
            recorder.skip_value(SkipReason::Ignored(DUPLICATE));
            return false;
        }
        let value = match number_text::any(value) {
            Some(number) if number.fract() == 0.0 => Out::Int(number as i64),
            Some(number) => Out::Double(number),
            None => Out::Text(value),
        };
        record_option(&setting.0, value, line.read_time(), recorder);
        if self.settings.len() < MAX_SETTINGS {
            self.settings.push(setting);
        }
        true
    }

    /// Records a result. Nearly all results were in the dictionaries, with more digits.
    fn result(
        &self,
        name: &str,
        value: &str,
        line: &Line<'_>,
        dictionaries: &mut Dictionaries,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let split = self.section.strip_suffix(" metrics").unwrap_or_default();
        let key = name.strip_prefix("  ").map_or("", str::trim_ascii_end);
        match (split, key, number_text::any(value)) {
            (_, "", _) => false,
            ("eval", "perplexity", Some(number)) => {
                let field = (Cow::Borrowed("eval_perplexity"), FieldValue::Number(number));
                dictionaries.record(line.meta(None), vec![field], recorder);
                true
            }
            (_, _, Some(number)) if key.ends_with("_samples") => {
                record_option(key, Out::Int(number as i64), line.read_time(), recorder);
                true
            }
            _ if key.contains(' ') => false,
            _ => {
                recorder.skip_value(SkipReason::Ignored(DUPLICATE));
                false
            }
        }
    }
}

/// Returns the text between the stars.
fn heading(text: &str) -> Option<&str> {
    let (_, heading) = text.split_once("***** ")?;
    let heading = heading.trim_ascii_end().strip_suffix(" *****")?;
    let is_ours = heading.starts_with("Running ") || heading.ends_with(" metrics");
    is_ours.then_some(heading)
}
