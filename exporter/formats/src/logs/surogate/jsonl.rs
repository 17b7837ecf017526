//! Parses the JSON lines of Surogate's `report_to: surogate` (`surogate/train/metrics_writer.py`): flat objects with a time in
//! seconds, appended and flushed one at a time.

use pulsetrain_mapping::{
    CoverageRow, Field, FieldValue, MetricMapper, RecordContext, RecordMeta, RecordTable, coverage_rules,
};
use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};
use pulsetrain_semconv::{attribute, event, metric};

use super::{mapping::gpu, tables::GPU};
use crate::logs::lines::{self, Line, LineFormat};
use crate::logs::{LogFormat, literal, spans};
use pulsetrain_record::{Recorder, SkipReason};

/// The row of Surogate's JSON lines in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "surogate-jsonl",
    brief: "surogate_metrics.jsonl of Surogate",
    framework: "surogate",
    continues_after_truncate: false,
    coverage: coverage_table,
    ..lines::row::<JsonLines>()
};

/// The rows of steps and evaluations.
static STEP: RecordTable = RecordTable::new("surogate", "jsonl");

/// Parses the JSON lines.
#[derive(Debug, Default)]
struct JsonLines {
    fields: MetricMapper,
}

impl LineFormat for JsonLines {
    const IS_JSON: bool = true;

    fn signature(text: &str) -> Option<&'static str> {
        let is_ours = text.starts_with('{')
            && text.contains("\"ts\":")
            && ["\"train/", "\"eval/", "\"type\": \"config\"", "\"type\": \"gpu\""]
                .iter()
                .any(|key| text.contains(key));
        is_ours.then_some("JSON lines with \"ts\" and \"train/\" or a \"type\"")
    }

    /// Parses `{"step": 3, "ts": 1795220321.5, "train/loss": 6.36434, ...}`. Of a key that occurs twice, the first counts.
    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let mut fields = Vec::with_capacity(32);
        let signature = Self::signature(line.text);
        let Some(object) = signature.and_then(|_| literal::read(line.text, 0, &mut fields)) else {
            let message = || "the line is not a complete JSON object with \"ts\"; it is skipped".to_owned();
            recorder.report(SkipReason::MalformedRecord, line.position(), message);
            return false;
        };
        let kind = RecordKind::from_fields(&fields);
        let header: Vec<Field<'_>> = fields.extract_if(.., |(key, _)| kind.is_header(key)).collect();
        let time = literal::number(&header, "ts").map(|secs| UnixNanos((secs * 1e9) as u64));
        let step = literal::number(&header, "step").map(|step| step as i64);
        let meta = line.meta_at(time.unwrap_or_else(|| line.read_time()), step);
        if kind != RecordKind::Config {
            recorder.skip_values(SkipReason::NotMeasured, object.nulls);
        }
        match kind {
            RecordKind::Config => config(&fields, meta, recorder),
            RecordKind::Gpu => self.gpu(&header, &fields, meta, recorder),
            RecordKind::Step => self.step(&header, &fields, meta, recorder),
        }
        true
    }
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RecordKind {
    Config,
    Gpu,
    /// A step or an evaluation.
    Step,
}

impl RecordKind {
    fn from_fields(fields: &[Field<'_>]) -> Self {
        match literal::text(fields, "type") {
            Some("config") => Self::Config,
            Some("gpu") => Self::Gpu,
            _ => Self::Step,
        }
    }

    /// Returns whether a field identifies the record.
    fn is_header(self, key: &str) -> bool {
        match key {
            "ts" | "step" | "type" => true,
            "gpu_id" | "throttle" => self == Self::Gpu,
            "train/phase" => self == Self::Step,
            _ => false,
        }
    }
}

impl JsonLines {
    fn step(
        &mut self,
        header: &[Field<'_>],
        values: &[Field<'_>],
        meta: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) {
        let time = meta.time_unix_nanos;
        let is_train = header
            .iter()
            .chain(values)
            .any(|(key, _)| key.starts_with("train/"));
        if let Some(step) = meta.step.filter(|_| is_train) {
            self.fields.step(time, step, recorder);
        }
        if let Some(phase) = literal::text(header, "train/phase") {
            recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
        }
        let spans = self.fields.record(&STEP, meta, values, &[], recorder);
        let step = meta.step.unwrap_or_default();
        if let Some(ms) = literal::number(values, "train/duration_ms") {
            spans::step(step, time, ms / 1e3, &spans.step, recorder);
        }
        if let Some(ms) = literal::number(values, "eval/duration_ms") {
            spans::eval(step, time, ms / 1e3, &spans.eval, recorder);
        }
    }

    fn gpu(
        &mut self,
        header: &[Field<'_>],
        values: &[Field<'_>],
        meta: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) {
        let index = literal::number(header, "gpu_id").unwrap_or_default() as i64;
        let id = index.to_string();
        let attributes = gpu::attributes(&id, index);
        if let Some(reason) = literal::text(header, "throttle") {
            gpu::record_throttle(reason, meta.time_unix_nanos, &attributes, recorder);
        }
        let context = RecordContext {
            table: &GPU,
            kind: None,
            scope: Some(index),
            attributes: &attributes,
        };
        self.fields.record_in(&context, meta, values, recorder);
    }
}

fn config(values: &[Field<'_>], meta: RecordMeta, recorder: &mut Recorder<'_>) {
    let entries = values.iter().map(|(key, value)| match value {
        FieldValue::Number(number) => (key.as_ref(), Out::Double(*number)),
        FieldValue::Text(text) => (key.as_ref(), Out::Text(text)),
    });
    let entries: Vec<(&str, Out<'_>)> = entries.collect();
    let attributes = [(&attribute::TRAIN_FRAMEWORK, Out::Text("surogate"))];
    let body = Some(Out::Map(&entries));
    recorder.record_event(&event::RUN_CONFIG, meta.time_unix_nanos, body, &attributes);
}

fn coverage_table() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        CoverageRow::step("step", "line");
        "train/phase" => metric::TRAIN_PHASE.name, "the state set is in this state";
        "throttle" => metric::GPU_THROTTLE_ACTIVE.name, "the state set is in this state";
        "type config" => event::RUN_CONFIG.name, "one event with all options";
    };
    RecordTable::coverage_of(&[&STEP, &GPU], rules)
}

#[cfg(test)]
mod tests;
