//! Parses torchtitan's structured log (`torchtitan/tools/structured_logger`): JSON lines with microseconds, for values and for
//! spans that have their duration at their end.

mod spans;

use pulsetrain_mapping::{
    CoverageRow, Field, FieldValue, MetricMapper, RecordMeta, RecordTable, coverage_rules,
};
use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};
use pulsetrain_semconv::{attribute, event, span};

use self::spans::{Mark, OpenSpans, SPANS};
use crate::logs::lines::{self, Line, LineFormat};
use crate::logs::{LogFormat, literal};
use pulsetrain_record::{Rank, Recorder, SkipReason};

/// The row of torchtitan's structured log in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "torchtitan-structured",
    brief: "structured log of torchtitan",
    framework: "torchtitan",
    continues_after_truncate: false,
    coverage: coverage_table,
    ..lines::row::<Structured>()
};

/// The rows of the values.
static VALUES: RecordTable = RecordTable::new("torchtitan", "structured");

/// Parses the JSON lines.
#[derive(Debug)]
struct Structured {
    fields: MetricMapper,
    spans: OpenSpans,
    /// The writers whose environment is recorded, by rank and source.
    writers: Vec<(Option<i64>, String)>,
}

/// The maximum number of writers of one log.
const MAX_WRITERS: usize = 1024;

impl Default for Structured {
    fn default() -> Self {
        Self {
            fields: MetricMapper::default().of_one_attempt(),
            spans: OpenSpans::default(),
            writers: Vec::new(),
        }
    }
}

impl LineFormat for Structured {
    const IS_JSON: bool = true;

    fn signature(text: &str) -> Option<&'static str> {
        let is_ours =
            text.starts_with('{') && text.contains("\"log_type_name\":") && text.contains("\"time_us\":");
        is_ours.then_some("JSON lines with \"log_type_name\" and \"time_us\"")
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let mut fields = Vec::new();
        let signature = Self::signature(line.text);
        let object = signature.and_then(|_| literal::read(line.text, 0, &mut fields));
        let time = object.and_then(|_| literal::number(&fields, "time_us"));
        let Some(time_us) = time else {
            let message =
                || "the line is not a complete JSON object with \"log_type_name\"; it is skipped".to_owned();
            recorder.report(SkipReason::MalformedRecord, line.position(), message);
            return false;
        };
        let time = UnixNanos((time_us as u64).saturating_mul(1000));
        let meta = line.meta_at(time, literal::number(&fields, "step").map(|step| step as i64));
        let rank = literal::number(&fields, "global_rank").or_else(|| literal::number(&fields, "rank"));
        let rank = rank.map(|rank| rank as i64).filter(|rank| *rank >= 0);
        recorder.of_rank(rank.map(Rank::OfJob));
        let kind = literal::text(&fields, "log_type_name").unwrap_or_default();
        let source = literal::text(&fields, "source").unwrap_or_default();
        if !self
            .writers
            .iter()
            .any(|(known, of)| (*known, of.as_str()) == (rank, source))
            && self.writers.len() < MAX_WRITERS
        {
            self.writers.push((rank, source.to_owned()));
            writer(&fields, meta, recorder);
        }
        let value = literal::number(&fields, "value");
        let is_event = literal::text(&fields, "log_type") == Some("event");
        let mark = |name| Mark {
            name,
            time_unix_nanos: meta.time_unix_nanos,
            step: meta.step,
            rank,
            source,
            task: literal::text(&fields, "task_name").unwrap_or_default(),
            tags: literal::text(&fields, "step_tags"),
        };
        match (
            kind.strip_suffix("_end").zip(value),
            literal::text(&fields, "event_name").zip(value),
        ) {
            (Some((name, ms)), _) => self.spans.end(mark(name), ms, recorder),
            (None, Some((name, value))) => record_value(&mut self.fields, name, value, meta, recorder),
            _ => match kind.strip_suffix("_start").filter(|_| is_event) {
                Some(name) => {
                    self.spans.start(mark(name), recorder);
                    recorder.skip_value(SkipReason::Ignored("start_told_by_end"));
                }
                // The message of an error has more detail than its name.
                None if is_event => {
                    message(literal::text(&fields, "message").unwrap_or(kind), meta, recorder);
                }
                None => message(kind, meta, recorder),
            },
        }
        true
    }
}

fn record_value(
    fields: &mut MetricMapper,
    name: &str,
    value: f64,
    meta: RecordMeta,
    recorder: &mut Recorder<'_>,
) {
    if let Some(step) = meta.step {
        fields.step(meta.time_unix_nanos, step, recorder);
    }
    let field: [Field<'_>; 1] = [(name.into(), FieldValue::Number(value))];
    fields.record(&VALUES, meta, &field, &[], recorder);
}

/// Records the environment of a writer.
fn writer(fields: &[Field<'_>], meta: RecordMeta, recorder: &mut Recorder<'_>) {
    let texts =
        ["source", "host_name"].map(|key| literal::text(fields, key).map(|text| (key, Out::Text(text))));
    let numbers = ["local_rank", "pid"]
        .map(|key| literal::number(fields, key).map(|number| (key, Out::Int(number as i64))));
    let entries: Vec<(&str, Out<'_>)> = texts.into_iter().chain(numbers).flatten().collect();
    if !entries.is_empty() {
        let body = Some(Out::Map(&entries));
        recorder.record_event(&event::RUN_ENVIRONMENT, meta.time_unix_nanos, body, &[]);
    }
}

/// Records any other line as a message.
fn message(text: &str, meta: RecordMeta, recorder: &mut Recorder<'_>) {
    let step = meta.step.map(|step| (&attribute::TRAIN_STEP, Out::Int(step)));
    let body = Some(Out::Text(text));
    recorder.record_event(&event::RUN_MESSAGE, meta.time_unix_nanos, body, step.as_slice());
}

fn coverage_table() -> Vec<CoverageRow> {
    let spans = SPANS
        .iter()
        .map(|(theirs, ours)| CoverageRow::rule(theirs, ours.name, "a span; its `value` is in milliseconds"));
    let others = coverage_rules! {
        CoverageRow::step("step", "value");
        "global_rank" => attribute::TRAIN_RANK.name, "of the resource";
        "every other *_end" => span::PERF_STAGE.name, "a span; its `value` is in milliseconds";
        "step_tags" => attribute::PERF_TAGS.name, "an attribute of spans that may have it";
        "source, task_name" => attribute::PERF_TIMELINE.name, "an attribute of spans that may have it";
        "source, host_name, local_rank, pid" => event::RUN_ENVIRONMENT.name, "one event a writer";
        "*_error" => event::RUN_MESSAGE.name, "one event, its body the message";
        "every other log_type_name" => event::RUN_MESSAGE.name, "one event";
        "delta_ms, tid, rank, relative_step, seq_id, caller, log_*, logger_name, time, time_ms" =>
            "(left out: they number and position the record)", "";
        "*_start" => "(left out: the end has its duration)", "";
    };
    RecordTable::coverage_of(&[&VALUES], spans.chain(others))
}
