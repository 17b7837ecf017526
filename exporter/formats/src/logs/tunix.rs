//! Parses Tunix's standard error: absl lines of its trainers (`tunix/sft/peft_trainer.py`, `tunix/rl/rl_cluster.py`).
//!
//! Prompts, completions and the ids of trajectories are left out, because they may be private. [`otel`] parses the
//! OpenTelemetry exports.

pub(super) mod otel;

use pulsetrain_mapping::{
    CoverageRow, Field, FieldValue, MetricMapper, RecordTable, coverage_rules, number_text, record_option,
};
use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};
use pulsetrain_semconv::{attribute, event};

use super::delimited::split;
use super::lines::{self, Line, LineFormat};
use super::{LogFormat, absl};
use pulsetrain_record::{LoggedTime, Recorder, SkipReason};

/// The row of Tunix's lines in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "tunix",
    brief: "standard error of Tunix",
    framework: "tunix",
    coverage: coverage_table,
    ..lines::row::<Tunix>()
};

static STEP: RecordTable = RecordTable::new("tunix", "step");

static CACHE: RecordTable = RecordTable::new("tunix", "cache");

const STRINGS: &str = "Rollout string metric ";
const OPTIONS: &str = "Training with full_batch_size=";
const FINISHED: &str = "Train loop finished in: ";

/// Parses Tunix's lines.
#[derive(Debug, Default)]
struct Tunix {
    fields: MetricMapper,
}

impl LineFormat for Tunix {
    const HAS_PRIVATE_LINES: bool = true;

    fn signature(text: &str) -> Option<&'static str> {
        let (file, text) = absl::file_and_text(text)?;
        let is_ours = match file {
            "peft_trainer.py" => {
                step(text).is_some() || text.starts_with(FINISHED) || text.starts_with("Compiled ")
            }
            "rl_cluster.py" => text.starts_with(STRINGS),
            "rl_learner.py" => text.starts_with(OPTIONS),
            _ => false,
        };
        is_ours.then_some("lines that peft_trainer.py or rl_learner.py of Tunix wrote")
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        // Most lines are of other programs. Parsing a time costs more than comparing a name.
        if Self::signature(line.text).is_none() {
            return false;
        }
        let Some((prefix, text)) = absl::split(line.text, line.near_unix_nanos()) else {
            return false;
        };
        let time_unix_nanos = recorder.instant(LoggedTime::Local(prefix.local_unix_nanos));
        let meta = |step| line.meta_at(time_unix_nanos, step);
        if let Some((step, fields)) = step(text) {
            if fields.iter().any(|(key, _)| key == "training loss") {
                self.fields.step(time_unix_nanos, step, recorder);
            }
            self.fields
                .record(&STEP, meta(Some(step)), &fields, &[], recorder);
        } else if let Some(rest) = text.strip_prefix(FINISHED) {
            let secs = rest.split(' ').next().and_then(number_text::any);
            let duration = secs.map(|secs| (&attribute::RUN_MESSAGE_DURATION, Out::Double(secs)));
            let body = Some(Out::Text("Train loop finished"));
            recorder.record_event(&event::RUN_MESSAGE, time_unix_nanos, body, duration.as_slice());
        } else if text.starts_with(OPTIONS) {
            options(text, time_unix_nanos, recorder);
        } else if text.starts_with(STRINGS) {
            recorder.skip_value(SkipReason::Ignored("private_content"));
            return false;
        } else if let Some((key, size)) = text.split_once(": ") {
            let fields = [(key.into(), FieldValue::parse(size))];
            self.fields.record(&CACHE, meta(None), &fields, &[], recorder);
        }
        true
    }
}

/// `Train step 8 training loss: -0.027751  - training perplexity: 0.972631`.
fn step(text: &str) -> Option<(i64, Vec<Field<'_>>)> {
    let (step, rest) = text.strip_prefix("Train step ")?.split_once(' ')?;
    let fields = split(rest, " - ", ": ").map(|(key, text)| (key.into(), FieldValue::parse(text)));
    Some((step.parse().ok()?, fields.collect()))
}

fn options(text: &str, time_unix_nanos: UnixNanos, recorder: &mut Recorder<'_>) {
    let text = text.strip_prefix("Training with ").unwrap_or(text);
    for (name, value) in split(text, ", ", "=") {
        let name = name.trim_start_matches("self._");
        record_option(name, Out::Text(value), time_unix_nanos, recorder);
    }
}

fn coverage_table() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        CoverageRow::step("Train step N training", "line");
        "Train loop finished in" => event::RUN_MESSAGE.name, "one event, with its duration";
        "Training with full_batch_size" => event::RUN_OPTION.name, "one event an option";
        "eval loss, eval perplexity" =>
            "eval.loss, eval.perplexity", "upstream prints the mean of all evaluations so far; its event file has each";
        "Rollout string metric" => "(left out: it may be private)", "";
    };
    RecordTable::coverage_of(&[&STEP, &CACHE], rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::sampled::check;

    const CASES: &str = "
## steps, evaluations, other programs and private texts
I1121 00:12:04.391063 140567410772864 peft_trainer.py:770] Train step 1 training loss: -0.027751  - training perplexity: 0.972631
I1121 00:12:04.391063 140567410772864 peft_trainer.py:1217] Train step 0 eval loss: 0.000000 - eval perplexity: 1.000000
I1121 00:12:04.391063 140567410772864 other.py:1] Train step 5 training loss: 1.0
I1121 00:12:04.267470 140567410772864 rl_cluster.py:606] Rollout string metric prompts: [['a']
-> train.loss -0.027751, train.global_step 1, eval.perplexity 1, points 6, records 2, events 0
";

    #[test]
    fn lines_have_their_values() {
        check(&FORMAT, CASES);
    }
}
