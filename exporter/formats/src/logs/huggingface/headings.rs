//! What stands under the Trainer's headings: `***** Running training *****` and the settings that follow it, and
//! `***** eval metrics *****` with what the example scripts say at their end.
//!
//! [INFO|trainer.py:2410] 2026-11-21 00:20:58,123 >>   Num examples = 1,000

use pulsetrain_mapping::{FieldValue, RecordMeta, number_text, record_option};
use std::borrow::Cow;

use pulsetrain_otlp::write::Value as Out;

use super::{SAID_AGAIN, keys::Dictionaries};
use crate::logs::lines::Line;
use pulsetrain_record::{Recorder, SkipReason};

/// The settings under `Running ...`.
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

/// The most settings that are remembered; further ones are recorded each time that they come.
const MOST_TOLD: usize = 1024;

/// Which heading was the last, and what was told of it.
#[derive(Debug, Default)]
pub(super) struct Headings {
    /// `training` of `Running training`, `eval metrics`.
    section: String,
    /// The settings, with their values: those of each evaluation are the same.
    told: Vec<(String, String)>,
}

impl Headings {
    /// Takes in a line; answers whether it says something.
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
            None => self.measured(name, value, line, dictionaries, recorder),
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
        if self.told.contains(&setting) {
            recorder.skip_value(SkipReason::Ignored(SAID_AGAIN));
            return false;
        }
        let value = match number_text::any(value) {
            Some(number) if number.fract() == 0.0 => Out::Int(number as i64),
            Some(number) => Out::Double(number),
            None => Out::Text(value),
        };
        record_option(&setting.0, value, line.read_time(), recorder);
        if self.told.len() < MOST_TOLD {
            self.told.push(setting);
        }
        true
    }

    /// What was measured: nearly all of it was in the dictionaries, with more digits.
    fn measured(
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
                let written = RecordMeta {
                    time_unix_nanos: line.read_time(),
                    step: None,
                    position: line.position(),
                };
                let field = (Cow::Borrowed("eval_perplexity"), FieldValue::Number(number));
                dictionaries.record(written, vec![field], recorder);
                true
            }
            (_, _, Some(number)) if key.ends_with("_samples") => {
                record_option(key, Out::Int(number as i64), line.read_time(), recorder);
                true
            }
            _ if key.contains(' ') => false,
            _ => {
                recorder.skip_value(SkipReason::Ignored(SAID_AGAIN));
                false
            }
        }
    }
}

/// What stands between the stars.
fn heading(text: &str) -> Option<&str> {
    let (_, heading) = text.split_once("***** ")?;
    let heading = heading.trim_ascii_end().strip_suffix(" *****")?;
    let is_ours = heading.starts_with("Running ") || heading.ends_with(" metrics");
    is_ours.then_some(heading)
}
