//! Parses the JSON lines of Surogate's `report_to: surogate` (`surogate/train/metrics_writer.py`): flat objects with a time in
//! seconds, appended and flushed one at a time.

use pulsetrain_mapping::{
    CoverageRow, Field, FieldValue, MetricMapper, RecordContext, RecordMeta, RecordTable, coverage_rules,
};
use pulsetrain_otlp::{UnixNanos, write::Value as Out};
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
#[derive(Debug)]
struct JsonLines {
    fields: MetricMapper,
}

impl Default for JsonLines {
    fn default() -> Self {
        Self {
            fields: MetricMapper::new("surogate"),
        }
    }
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

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some(record) = JsonRecord::parse(line.text) else {
            let message = || "the line is not a complete JSON object with \"ts\"; it is skipped".to_owned();
            recorder.report(SkipReason::MalformedRecord, line.position(), message);
            return false;
        };
        let secs = record.number("ts");
        let meta = RecordMeta {
            time_unix_nanos: secs.map_or_else(|| line.read_time(), |secs| UnixNanos((secs * 1e9) as u64)),
            step: record.number("step").map(|step| step as i64),
            position: line.position(),
        };
        match record.kind {
            Kind::Config => record.config(meta, recorder),
            Kind::Gpu => {
                recorder.skip_values(SkipReason::NotMeasured, record.nulls);
                record.gpu(&mut self.fields, meta, recorder);
            }
            Kind::Step => {
                recorder.skip_values(SkipReason::NotMeasured, record.nulls);
                record.step(&mut self.fields, meta, recorder);
            }
        }
        true
    }
}

/// The object of a line.
#[derive(Debug)]
struct JsonRecord<'l> {
    kind: Kind,
    /// The fields that identify the record, such as `ts`.
    header: Vec<Field<'l>>,
    values: Vec<Field<'l>>,
    /// The number of keys whose value is `null`.
    nulls: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Kind {
    Config,
    Gpu,
    /// A step or an evaluation.
    #[default]
    Step,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "config" => Self::Config,
            "gpu" => Self::Gpu,
            _ => Self::Step,
        }
    }

    /// Returns whether a field identifies the record.
    fn is_header(self, key: &str) -> bool {
        match key {
            "ts" | "step" | "type" => true,
            "gpu_id" | "throttle" => matches!(self, Self::Gpu),
            "train/phase" => matches!(self, Self::Step),
            _ => false,
        }
    }
}

impl<'l> JsonRecord<'l> {
    /// Parses `{"step": 3, "ts": 1795220321.5, "train/loss": 6.36434, ...}`. Of a key that occurs twice, the first counts.
    fn parse(text: &'l str) -> Option<Self> {
        JsonLines::signature(text)?;
        let (mut fields, mut nulls) = (Vec::with_capacity(32), 0);
        literal::each_value(text, |key, value, _| match value {
            Some(value) => fields.push((key, value)),
            None => nulls += 1,
        })?;
        let kind = literal::text(&fields, "type").map_or(Kind::Step, Kind::of);
        let header = fields.extract_if(.., |(key, _)| kind.is_header(key)).collect();
        Some(Self {
            kind,
            header,
            values: fields,
            nulls,
        })
    }

    fn number(&self, key: &str) -> Option<f64> {
        literal::number(&self.header, key)
    }

    fn step(&self, known: &mut MetricMapper, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let time = meta.time_unix_nanos;
        let phase = literal::text(&self.header, "train/phase");
        let mut fields = self.header.iter().chain(&self.values);
        let is_train = fields.any(|(key, _)| key.starts_with("train/"));
        if let Some(step) = meta.step.filter(|_| is_train) {
            known.step(time, step, recorder);
        }
        if let Some(phase) = phase {
            recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
        }
        let spans = known.record(&STEP, meta, &self.values, &[], recorder);
        let step = meta.step.unwrap_or_default();
        if let Some(ms) = literal::number(&self.values, "train/duration_ms") {
            spans::step(step, time, ms / 1e3, &spans.step, recorder);
        }
        if let Some(ms) = literal::number(&self.values, "eval/duration_ms") {
            spans::eval(step, time, ms / 1e3, &spans.eval, recorder);
        }
    }

    fn gpu(&self, known: &mut MetricMapper, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let index = self.number("gpu_id").unwrap_or_default() as i64;
        let id = index.to_string();
        let attributes = gpu::attributes(&id, index);
        if let Some(reason) = literal::text(&self.header, "throttle") {
            gpu::record_throttle(reason, meta.time_unix_nanos, &attributes, recorder);
        }
        let context = RecordContext {
            table: &GPU,
            kind: None,
            scope: Some(index),
            attributes: &attributes,
        };
        known.record_in(&context, meta, &self.values, recorder);
    }

    fn config(&self, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let entries: Vec<(&str, Out<'_>)> = self
            .values
            .iter()
            .map(|(key, value)| match value {
                FieldValue::Number(number) => (key.as_ref(), Out::Double(*number)),
                FieldValue::Text(text) => (key.as_ref(), Out::Text(text)),
            })
            .collect();
        let attributes = [(&attribute::TRAIN_FRAMEWORK, Out::Text("surogate"))];
        let body = Some(Out::Map(&entries));
        recorder.record_event(&event::RUN_CONFIG, meta.time_unix_nanos, body, &attributes);
    }
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
