//! Parses MaxText's `metrics_file` and the windows of its `gcs_metrics`: one JSON object a step, without a time.
//!
//! MaxText truncates `metrics_file` at every step 0, also that of an evaluation, and continues to write. So a file that shrinks
//! belongs to the same run, and all its records are new. Windows are separate files; those of one run have only the run's name
//! in common.

use pulsetrain_mapping::{CoverageRow, FieldValue, MetricMapper, coverage_rules, trainer};
use pulsetrain_semconv::{attribute, metric};

use crate::logs::lines::{self, Line, LineFormat};
use crate::logs::{LogFormat, RunHeader, literal};
use crate::tags::{self, Scalars};
use pulsetrain_record::{Recorder, SkipReason};

/// The row of MaxText's JSON lines in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "maxtext-metrics",
    brief: "metrics_file and gcs_metrics of MaxText",
    framework: "maxtext",
    splits: true,
    identify,
    coverage,
    ..lines::row::<MetricsFile>()
};

/// Fields that are not metrics: the name of the run is in the resource, and the step is that of the record.
const NOT_VALUES: [&str; 2] = ["step", "run_name"];

fn identify(head: &[u8]) -> RunHeader {
    let header = lines::identify::<MetricsFile>(head);
    let first = String::from_utf8_lossy(&header.first_record).into_owned();
    let object = literal::object(first.trim());
    let name = object.and_then(|(fields, _)| literal::text(&fields, "run_name").map(str::to_owned));
    let name = name.filter(|name| !name.is_empty());
    RunHeader {
        first_record: name
            .as_ref()
            .map_or(header.first_record, |name| name.as_bytes().to_vec()),
        run_name: name,
        ..RunHeader::default()
    }
}

#[derive(Debug)]
struct MetricsFile {
    steps: MetricMapper,
    /// Records the values. Their keys are those of MaxText's TensorBoard tags.
    scalars: Scalars,
}

impl Default for MetricsFile {
    fn default() -> Self {
        Self {
            steps: MetricMapper::default(),
            scalars: Scalars::of_trainer(trainer("maxtext")),
        }
    }
}

impl LineFormat for MetricsFile {
    const IS_JSON: bool = true;

    fn signature(text: &str) -> Option<&'static str> {
        let is_ours = text.starts_with("{\"")
            && (text.contains("\"learning/") || text.contains("\"perf/") || text.contains("\"eval/"))
            && text.contains("\"step\": ")
            && text.contains("\"run_name\": ");
        is_ours.then_some("JSON lines with \"learning/\" or \"eval/\", \"step\" and \"run_name\"")
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let mut fields = Vec::new();
        let signature = Self::signature(line.text);
        let Some(object) = signature.and_then(|_| literal::read(line.text, 0, &mut fields)) else {
            let message = || "the line is not a complete JSON object with a step of MaxText".to_owned();
            recorder.report(SkipReason::MalformedRecord, line.position(), message);
            return false;
        };
        recorder.skip_values(SkipReason::NotMeasured, object.nulls);
        let step = literal::number(&fields, "step").map(|step| step as i64);
        fields.retain(|(key, _)| !NOT_VALUES.contains(&key.as_ref()));
        let meta = line.meta(None);
        let is_eval = fields.iter().any(|(key, _)| key.starts_with("eval/"));
        if let Some(step) = step.filter(|_| !is_eval) {
            self.steps.step(meta.time_unix_nanos, step, recorder);
        }
        for (key, value) in &fields {
            match (value.number(), value) {
                (Some(number), _) => self.scalars.record(key, meta, number, recorder),
                (None, FieldValue::Text(text)) => self.scalars.record_text(key, meta, text, recorder),
                (None, FieldValue::Number(_)) => {}
            }
        }
        true
    }
}

fn coverage() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        "step" => metric::TRAIN_GLOBAL_STEP.name, "as it is, except for evaluations, which count their own";
        "run_name" => attribute::TRAIN_RUN_NAME.name, "of the resource";
    };
    tags::coverage_of("maxtext").into_iter().chain(rules).collect()
}
