//! Parses the JSON lines of NeMo Lens (`NEMO_LENS_EXPORTER=console`): the metrics and spans of OpenTelemetry's Python SDK, an object
//! a line. `mappings/nemo-lens.yaml` maps the metrics.

mod spans;

use std::collections::HashMap;

use pulsetrain_mapping::{CoverageRow, RecordMeta, ScalarMapper, coverage_rules, trainer};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Rank, Recorder, SkipReason, SourcePosition};
use pulsetrain_semconv::metric;
use serde_json::Value;

use self::spans::SPANS;
use crate::logs::lines::{self, Line, LineFormat};
use crate::logs::{
    LogFormat, RunHeader,
    python_json::{self, list, number},
};
use crate::tags;

/// The name of the mapping.
const NAME: &str = "nemo-lens";

/// The attribute of the resource that identifies the run; no other writer has it.
const RUN_ID: &str = "\"nemo.run.id\": \"";

/// The beginning of the metrics of Megatron-LM.
const MEGATRON: &str = "megatron.training.";

/// Metrics of reinforcement learning with the meaning of a metric of Megatron-LM. If a process reports both, these are kept as
/// `train.custom`: the values of one series would alternate.
const OF_BOTH: [&str; 3] = ["rl.grad_norm", "rl.learning_rate", "rl.throughput.tokens_per_sec"];

/// The most tags of one log.
const MAX_TAGS: usize = 4096;

/// The row of NeMo Lens in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: NAME,
    brief: "JSON lines of NeMo Lens",
    framework: "nemo_lens",
    splits: true,
    identify,
    coverage,
    ..lines::row::<Lens>()
};

/// The identity of the run is the same in the logs of all ranks.
fn identify(head: &[u8]) -> RunHeader {
    let text = String::from_utf8_lossy(head);
    let id = text.split_once(RUN_ID).and_then(|(_, rest)| rest.split_once('"'));
    let id = id.map(|(id, _)| id.to_owned());
    RunHeader {
        first_record: id.clone().unwrap_or_default().into_bytes(),
        run_name: id,
        ..RunHeader::default()
    }
}

/// Parses the lines.
#[derive(Debug)]
struct Lens {
    scalars: ScalarMapper,
    /// The number and the sum of the values of each histogram so far.
    histograms: HashMap<String, (f64, f64)>,
    /// Whether the log has metrics of Megatron-LM.
    has_megatron: bool,
}

impl Default for Lens {
    fn default() -> Self {
        Self {
            scalars: ScalarMapper::of_trainer(trainer(NAME)),
            histograms: HashMap::new(),
            has_megatron: false,
        }
    }
}

impl LineFormat for Lens {
    fn signature(text: &str) -> Option<&'static str> {
        (text.starts_with('{') && text.contains(RUN_ID)).then_some("JSON lines with \"nemo.run.id\"")
    }

    fn is_complete(text: &str) -> bool {
        text.ends_with('}')
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        if Self::signature(line.text).is_none() {
            return false;
        }
        let Some(object) = python_json::parse(line.text) else {
            recorder.report(SkipReason::MalformedRecord, line.position(), || {
                "the line is not a complete JSON object; it is skipped".to_owned()
            });
            return false;
        };
        if let Some(resources) = object["resource_metrics"].as_array() {
            for resource in resources {
                switch_rank(&resource["resource"], recorder);
                let scopes = list(&resource["scope_metrics"]).iter();
                let metrics = scopes.flat_map(|scope| list(&scope["metrics"]));
                let mut names = metrics.clone().filter_map(|metric| metric["name"].as_str());
                self.has_megatron |= names.any(|name| name.starts_with(MEGATRON));
                metrics.for_each(|metric| self.metric(metric, line.position(), recorder));
            }
            return true;
        }
        switch_rank(&object["resource"], recorder);
        let is_span = spans::record(&object, recorder);
        if !is_span {
            recorder.skip_value(SkipReason::Ignored("log_record"));
        }
        is_span
    }
}

impl Lens {
    /// Records the points of a metric. A histogram is the mean of its values since the export before.
    fn metric(&mut self, metric: &Value, position: SourcePosition, recorder: &mut Recorder<'_>) {
        for point in list(&metric["data"]["data_points"]) {
            let Some((name, time)) = metric["name"].as_str().zip(point["time_unix_nano"].as_u64()) else {
                continue;
            };
            // The only attribute that separates numbers of different kinds.
            let tag = match point["attributes"]["gen_ai.token.type"].as_str() {
                Some(kind) => format!("{name}.{kind}"),
                None => name.to_owned(),
            };
            if !self.scalars.admits(&tag, MAX_TAGS) {
                recorder.skip_value(SkipReason::TooManyCustomNames);
                continue;
            }
            let value = number(&point["value"]).or_else(|| self.mean(&tag, point));
            let meta = RecordMeta {
                time_unix_nanos: UnixNanos(time),
                step: None,
                position,
            };
            match value {
                Some(value) if self.has_megatron && OF_BOTH.contains(&name) => {
                    recorder.record_custom(meta.time_unix_nanos, name, value);
                }
                Some(value) => {
                    self.scalars.record(&tag, meta, value, recorder);
                }
                None => {}
            }
        }
    }

    /// Returns the mean of the values since the export before, or `None` without new values.
    fn mean(&mut self, tag: &str, point: &Value) -> Option<f64> {
        let now = (number(&point["count"])?, number(&point["sum"])?);
        let before = self.histograms.insert(tag.to_owned(), now).unwrap_or_default();
        // A lower count is that of a new process.
        let (count, sum) = match now.0 < before.0 {
            true => now,
            false => (now.0 - before.0, now.1 - before.1),
        };
        (count > 0.0).then(|| sum / count)
    }
}

fn switch_rank(resource: &Value, recorder: &mut Recorder<'_>) {
    let rank = resource["attributes"]["dl.rank"].as_i64();
    recorder.of_rank(rank.filter(|rank| *rank >= 0).map(Rank::OfJob));
}

fn coverage() -> Vec<CoverageRow> {
    let spans = SPANS
        .iter()
        .map(|(theirs, ours)| CoverageRow::rule(theirs, ours.name, "a span with its own ids"));
    let rules = coverage_rules! {
        "spans of other names" => "perf.stage", "a span with its own ids";
        "a histogram" => "the metric of its name", "the mean of the values since the previous export";
        "rl.grad_norm, rl.learning_rate, rl.throughput.tokens_per_sec" => metric::TRAIN_CUSTOM.name, "in a log with megatron.training.*";
        "log records" => "(left out: log_record)", "";
    };
    spans.chain(rules).chain(tags::coverage_of(NAME)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::sampled::Sampled;

    fn export(name: &str, point: &str) -> String {
        format!(
            "{{\"resource_metrics\": [{{\"resource\": {{\"attributes\": {{\"dl.rank\": 3, {RUN_ID}r1\"}}}}, \"scope_metrics\": [{{\"metrics\": \
             [{{\"name\": \"{name}\", \"data\": {{\"data_points\": [{{\"attributes\": {{}}, \"time_unix_nano\": 5, {point}}}]}}}}]}}]}}]}}\n"
        )
    }

    #[test]
    fn a_histogram_is_the_mean_of_its_new_values() {
        let name = "rl.rollout.duration_ms";
        let text: String = [(1, 2000.0), (1, 2000.0), (3, 8000.0), (1, 500.0)]
            .map(|(count, sum)| export(name, &format!("\"count\": {count}, \"sum\": {sum}")))
            .concat();
        let read = Sampled::read(&FORMAT, &text);
        assert_eq!(read.counts.records, 4);
        // The points of a histogram are cumulative.
        assert_eq!(read.values("perf.rollout_time").len(), 3);
    }

    #[test]
    fn non_finite_loss_is_recorded() {
        let text = export("megatron.training.loss", "\"value\": NaN")
            + &export("rl.entropy", "\"value\": -Infinity");
        let read = Sampled::read(&FORMAT, &text);
        assert!(read.values("train.loss")[0].is_nan());
        assert_eq!(read.values("rl.entropy"), [f64::NEG_INFINITY]);
    }

    #[test]
    fn metrics_of_reinforcement_learning_are_separate_from_those_of_megatron() {
        let rl = export("rl.grad_norm", "\"value\": 0.25");
        let alone = Sampled::read(&FORMAT, &rl);
        assert_eq!(alone.values("train.grad_norm"), [0.25]);
        let both = export("megatron.training.grad_norm", "\"value\": 0.5") + &rl;
        let read = Sampled::read(&FORMAT, &both);
        assert_eq!(read.values("train.grad_norm"), [0.5]);
        assert_eq!(
            read.attributes("train.custom"),
            ["train.custom.name=rl.grad_norm"]
        );
    }

    #[test]
    fn a_partial_line_is_reported() {
        let text = export("megatron.training.loss", "\"value\": 2.5");
        let read = Sampled::read(&FORMAT, &format!("{text}{}", &text[..text.len() - 20]));
        assert_eq!(read.values("train.loss"), [2.5]);
        assert!(read.skipped.has_losses());
    }
}
