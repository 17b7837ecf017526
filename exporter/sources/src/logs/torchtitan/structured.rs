//! torchtitan's structured log (`torchtitan/tools/structured_logger`): JSON lines with microseconds, of values and of spans
//! that say at their end how long they took.

use pulsetrain_otlp::write::{SpanParts, Value as Out};
use pulsetrain_semconv::{self as semconv, attribute, event, metric, span};

use crate::{
    Recorder, SkipReason, ids,
    logs::{
        Begin, Covered, LogFormat,
        coverage::{self, covered},
        fields::{Field, Fields, Value, Written},
        lines::{self, Line, LineFormat, LineParser},
        literal::{self, Objects},
        row::{Row, row},
    },
    recorder::Rank,
};

/// The row of torchtitan's structured log in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "torchtitan-structured",
    brief: "structured log of torchtitan",
    framework: "torchtitan",
    shrinks: false,
    recognise: lines::recognise::<Structured>,
    identify: lines::identify::<Structured>,
    parser: Begin::Known(|| Box::new(LineParser::<Structured>::default())),
    coverage: coverage_table,
};

/// The values that it names.
static VALUES: &[Row] = &[
    row("num_trainable_tokens", &metric::TRAIN_REAL_TOKENS),
    row("batch_size", &metric::TRAIN_BATCH_SIZE),
    row("loss", &metric::TRAIN_LOSS),
    row("grad_norm", &metric::TRAIN_GRAD_NORM),
    row("learning_rate", &metric::TRAIN_LEARNING_RATE),
];

/// The spans that it names, and ours.
static SPANS: &[(&str, &semconv::Span)] = &[
    ("fwd_bwd", &span::PERF_FORWARD_BACKWARD),
    ("Optimizer", &span::PERF_OPTIMIZER),
    ("data_loading", &span::PERF_DATA),
    ("step", &span::TRAIN_STEP),
    ("checkpoint_save", &span::TRAIN_CHECKPOINT_SAVE),
    ("checkpoint_load", &span::TRAIN_CHECKPOINT_LOAD),
];

/// Reads the JSON lines.
#[derive(Debug)]
struct Structured {
    objects: Objects,
    fields: Fields,
}

impl Default for Structured {
    fn default() -> Self {
        Self {
            objects: Objects::signed(Self::sign),
            fields: Fields::of("torchtitan"),
        }
    }
}

impl LineFormat for Structured {
    fn sign(text: &str) -> Option<&'static str> {
        let is_ours =
            text.starts_with('{') && text.contains("\"log_type_name\":") && text.contains("\"time_us\":");
        is_ours.then_some("JSON lines with \"log_type_name\" and \"time_us\"")
    }

    fn is_whole(text: &str) -> bool {
        text.ends_with('}')
    }

    fn is_begun(text: &str) -> bool {
        text.starts_with('{')
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let mut fields = Vec::new();
        let object = self.objects.read(line.text, &mut fields);
        let time = object.and_then(|_| literal::number(&fields, "time_us"));
        let Some(time_us) = time else {
            let message = || "a line is no whole JSON object with \"log_type_name\"".to_owned();
            recorder.skip(SkipReason::MalformedRecord, line.place(), message);
            return false;
        };
        let written = Written {
            time_unix_nanos: (time_us as u64).saturating_mul(1000),
            step: literal::number(&fields, "step").map(|step| step as i64),
            place: line.place(),
        };
        let rank = literal::number(&fields, "global_rank").map(|rank| rank as i64);
        recorder.of_rank(rank.filter(|rank| *rank >= 0).map(Rank::OfJob));
        let kind = literal::text(&fields, "log_type_name").unwrap_or_default();
        let value = literal::number(&fields, "value");
        match (
            kind.strip_suffix("_end").zip(value),
            literal::text(&fields, "event_name").zip(value),
        ) {
            (Some((name, ms)), _) => span(name, ms, written, recorder),
            (None, Some((name, value))) => record_value(&mut self.fields, name, value, written, recorder),
            _ if kind.ends_with("_start") && literal::text(&fields, "log_type") == Some("event") => {
                recorder.skip_value(SkipReason::LeftOut("start_told_by_end"));
            }
            _ => message(kind, None, written, recorder),
        }
        true
    }
}

fn record_value(fields: &mut Fields, name: &str, value: f64, written: Written, recorder: &mut Recorder<'_>) {
    if let Some(step) = written.step {
        fields.step(written.time_unix_nanos, step, recorder);
    }
    let field: [Field<'_>; 1] = [(name.into(), Value::Number(value))];
    fields.record(VALUES, written, &field, &[], recorder);
}

fn span(name: &str, ms: f64, written: Written, recorder: &mut Recorder<'_>) {
    let known = SPANS
        .iter()
        .find(|(theirs, _)| *theirs == name)
        .map(|(_, ours)| *ours);
    let (Some(span), Some(step)) = (known, written.step) else {
        return message(name, Some(ms), written, recorder);
    };
    let run = recorder.run();
    let end = written.time_unix_nanos;
    let (trace_id, span_id) = (
        ids::step_trace(run, step),
        ids::part_span(run, span.name, step, end),
    );
    let attributes = [(&attribute::TRAIN_STEP, Out::Int(step))];
    recorder.record_span(&SpanParts {
        span,
        trace_id,
        span_id,
        parent_span_id: None,
        start_unix_nanos: end.saturating_sub((ms.max(0.0) * 1e6).round() as u64),
        end_unix_nanos: end,
        attributes: &attributes,
    });
}

/// What has no span of ours is told as a message.
fn message(name: &str, ms: Option<f64>, written: Written, recorder: &mut Recorder<'_>) {
    let mut attributes = Vec::with_capacity(2);
    attributes.extend(ms.map(|ms| (&attribute::RUN_MESSAGE_DURATION, Out::Double(ms / 1e3))));
    attributes.extend(written.step.map(|step| (&attribute::TRAIN_STEP, Out::Int(step))));
    let body = Some(Out::Text(name));
    recorder.record_event(&event::RUN_MESSAGE, written.time_unix_nanos, body, &attributes);
}

fn coverage_table() -> Vec<Covered> {
    let spans = SPANS
        .iter()
        .map(|(theirs, ours)| covered(theirs, ours.name, "a span; its `value` is in milliseconds"));
    let others = [
        covered(
            "step",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by the steps since the value before",
        ),
        covered("global_rank", attribute::TRAIN_RANK.name, "of the resource"),
        covered("every other log_type_name", event::RUN_MESSAGE.name, "one event"),
        covered("*_start", "(left out: the end says when it began)", ""),
    ];
    coverage::tables(&[VALUES])
        .into_iter()
        .chain(spans)
        .chain(others)
        .collect()
}
