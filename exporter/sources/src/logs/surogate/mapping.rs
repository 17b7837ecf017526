//! What becomes of a record: which field is which metric, in which unit.
//!
//! A number is a row of a table. What is no number (a command, an option, a message) is an event; what no table knows is
//! kept under `train.custom`.

pub(super) mod gpu;
mod leftover;
mod plan;

use pulsetrain_otlp::write::{Attribute, SpanParts, Value as Out};
use pulsetrain_semconv::{self as semconv, attribute, event, metric, span};

use self::{gpu::GpuNames, leftover::Leftovers, plan::Plan};
use super::record::{Record, Value};
use crate::{
    Recorder, SkipReason, ids,
    logs::{
        Covered,
        coverage::{self, covered},
        row::{Row, find, row},
    },
};

/// Fields of a `step` record; those of a mixture of experts follow the others.
static STEP: &[Row] = &[
    row("epoch", &metric::TRAIN_EPOCH).on_span(&attribute::TRAIN_EPOCH),
    row("step_tokens", &metric::TRAIN_TOKENS).on_span(&attribute::TRAIN_TOKENS),
    row("duration_ms", &metric::TRAIN_STEP_DURATION).divided_by(1e3),
    row("norm", &metric::TRAIN_GRAD_NORM).on_span(&attribute::TRAIN_GRAD_NORM),
    row("loss", &metric::TRAIN_LOSS).on_span(&attribute::TRAIN_LOSS),
    row("lr", &metric::TRAIN_LEARNING_RATE).on_span(&attribute::TRAIN_LEARNING_RATE),
    row("kd_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[(&attribute::TRAIN_COMPONENT, Out::Text("kd"))]),
    row("moe_aux_loss", &metric::MOE_AUX_LOSS).on_span(&attribute::MOE_AUX_LOSS),
    row("moe_z_loss", &metric::MOE_Z_LOSS).on_span(&attribute::MOE_Z_LOSS),
    row("moe_load_imbalance", &metric::MOE_LOAD_IMBALANCE).on_span(&attribute::MOE_LOAD_IMBALANCE),
    row("moe_expert_utilization", &metric::MOE_EXPERT_UTILIZATION)
        .on_span(&attribute::MOE_EXPERT_UTILIZATION),
    row("moe_active_experts", &metric::MOE_ACTIVE_EXPERTS).on_span(&attribute::MOE_ACTIVE_EXPERTS),
    row("moe_max_expert_fraction", &metric::MOE_MAX_EXPERT_FRACTION)
        .on_span(&attribute::MOE_MAX_EXPERT_FRACTION),
    row(
        "moe_min_active_expert_fraction",
        &metric::MOE_MIN_ACTIVE_EXPERT_FRACTION,
    )
    .on_span(&attribute::MOE_MIN_ACTIVE_EXPERT_FRACTION),
    row("moe_load_cv", &metric::MOE_LOAD_CV).on_span(&attribute::MOE_LOAD_CV),
    row("moe_router_entropy", &metric::MOE_ROUTER_ENTROPY).on_span(&attribute::MOE_ROUTER_ENTROPY),
    row("moe_router_confidence", &metric::MOE_ROUTER_CONFIDENCE).on_span(&attribute::MOE_ROUTER_CONFIDENCE),
];

/// Fields of a `moe` record.
static MOE: &[Row] = &[
    row("aux_loss", &metric::MOE_AUX_LOSS),
    row("z_loss", &metric::MOE_Z_LOSS),
    row("expert_utilization", &metric::MOE_EXPERT_UTILIZATION),
    row("load_imbalance", &metric::MOE_LOAD_IMBALANCE),
    row("active_experts", &metric::MOE_ACTIVE_EXPERTS),
    row("max_expert_fraction", &metric::MOE_MAX_EXPERT_FRACTION),
    row(
        "min_active_expert_fraction",
        &metric::MOE_MIN_ACTIVE_EXPERT_FRACTION,
    ),
    row("load_cv", &metric::MOE_LOAD_CV),
    row("router_entropy", &metric::MOE_ROUTER_ENTROPY),
    row("router_confidence", &metric::MOE_ROUTER_CONFIDENCE),
];

/// Fields of an `eval` record.
static EVAL: &[Row] = &[
    row("epoch", &metric::TRAIN_EPOCH).on_span(&attribute::TRAIN_EPOCH),
    row("eval_tokens", &metric::EVAL_TOKENS).on_span(&attribute::EVAL_TOKENS),
    row("duration_ms", &metric::EVAL_DURATION).divided_by(1e3),
    row("loss", &metric::EVAL_LOSS).on_span(&attribute::EVAL_LOSS),
];

/// Fields of a `dataset` record.
static DATASET: &[Row] = &[
    row("files", &metric::DATA_FILES),
    row("tokens", &metric::DATA_TOKENS),
    row("file_index", &metric::DATA_FILE_INDEX),
    row("chunk_index", &metric::DATA_CHUNK_INDEX),
    row("seed", &metric::DATA_SEED),
];

/// Fields of a `sol` (speed of light) record; -1 where a figure is not known.
static SOL: &[Row] = &[
    row("blocks", &metric::TRAIN_FLOPS_PER_TOKEN)
        .with(&[(&attribute::TRAIN_FLOPS_PART, Out::Text("blocks"))]),
    row("lm_head", &metric::TRAIN_FLOPS_PER_TOKEN)
        .with(&[(&attribute::TRAIN_FLOPS_PART, Out::Text("lm_head"))]),
    row("attention", &metric::TRAIN_FLOPS_PER_TOKEN)
        .with(&[(&attribute::TRAIN_FLOPS_PART, Out::Text("attention"))]),
    row("tps", &metric::TRAIN_EXPECTED_THROUGHPUT).unless(-1.0),
    row("tf32_peak", &metric::GPU_PEAK_FLOPS)
        .times(1e12)
        .unless(-1.0)
        .with(&[precision("tf32")]),
    row("bf16_peak", &metric::GPU_PEAK_FLOPS)
        .times(1e12)
        .unless(-1.0)
        .with(&[precision("bf16")]),
    row("fp16_peak", &metric::GPU_PEAK_FLOPS)
        .times(1e12)
        .unless(-1.0)
        .with(&[precision("fp16")]),
    row("fp8_peak", &metric::GPU_PEAK_FLOPS)
        .times(1e12)
        .unless(-1.0)
        .with(&[precision("fp8")]),
];

const fn precision(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_PRECISION, Out::Text(name))
}

/// What becomes of every field, as the coverage table says it.
pub(super) fn coverage() -> Vec<Covered> {
    let rules = [
        covered(
            "step.step",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by one a record",
        ),
        covered(
            "option.max_steps",
            metric::TRAIN_PROGRESS.name,
            "the share of them that is done, at every step",
        ),
        covered(
            "option.num_epochs",
            metric::TRAIN_PROGRESS.name,
            "without `max_steps`: each has as many steps as `step.step_tokens` go into `dataset.tokens`",
        ),
        covered(
            "step.phase",
            metric::TRAIN_PHASE.name,
            "the state set is in this state",
        ),
        covered(
            "gpu.throttle",
            metric::GPU_THROTTLE_ACTIVE.name,
            "the state set is in this state",
        ),
        covered("gpu-model", event::RUN_GPU_MODEL.name, "one event a GPU"),
        covered(
            "allocator.stats",
            metric::MEMORY_SEGMENT_SIZE.name,
            "one series a segment and kind of memory",
        ),
        covered(
            "abs-maxes",
            event::TRAIN_TENSOR_ABS_MAX.name,
            "one event with all tensors",
        ),
        covered("cmd", event::RUN_COMMAND.name, "one event"),
        covered("option", event::RUN_OPTION.name, "one event an option"),
        covered("info", event::RUN_MESSAGE.name, "one event a message"),
    ];
    let mut all = coverage::tables(&[STEP, MOE, EVAL, DATASET, SOL, gpu::GPU]);
    all.extend(rules);
    all
}

/// Maps the records of one run.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    gpus: GpuNames,
    plan: Plan,
}

impl Mapping {
    /// Records everything that a record says.
    pub(super) fn map(&mut self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
        match record.kind {
            "step" => step(record, &self.plan, recorder),
            "eval" => eval(record, recorder),
            "moe" => numbers(record, MOE, &[], recorder),
            "gpu" => self.gpus.gauges(record, recorder),
            "gpu-model" => self.gpus.model(record, recorder),
            "dataset" => {
                self.plan.dataset(record);
                dataset(record, recorder);
            }
            "sol" => sol(record, recorder),
            "allocator" => allocator(record, recorder),
            "abs-maxes" => abs_maxes(record, recorder),
            "cmd" => command(record, recorder),
            "option" => option(record, &mut self.plan, recorder),
            "info" => message(record, recorder),
            _ => numbers(record, &[], &[], recorder),
        }
    }
}

fn step(record: &Record<'_>, plan: &Plan, recorder: &mut Recorder<'_>) {
    let time = record.time_unix_nanos;
    recorder.record(&metric::TRAIN_GLOBAL_STEP, time, record.step as f64, &[]);
    if let Some(progress) = plan.progress(record) {
        recorder.record(&metric::TRAIN_PROGRESS, time, progress, &[]);
    }
    recorder.record(&metric::TRAIN_STEPS, time, 1.0, &[]);
    let mut seen = record_rows(record, STEP, &[], recorder);
    if let Some(phase) = seen.leftovers.take_text("phase") {
        recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
        seen.span_attributes
            .push((&attribute::TRAIN_PHASE, Out::Text(phase)));
    }
    seen.leftovers.record(record, recorder);
    let ids = (
        ids::step_trace(recorder.run(), record.step),
        ids::step_span(recorder.run(), record.step),
    );
    timed_span(record, &span::TRAIN_STEP, ids, &seen.span_attributes, recorder);
}

fn eval(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let seen = record_rows(record, EVAL, &[], recorder);
    seen.leftovers.record(record, recorder);
    let run = recorder.run();
    let ids = (
        ids::lifecycle_trace(run),
        ids::eval_span(run, record.step, record.time_unix_nanos),
    );
    timed_span(record, &span::EVAL_RUN, ids, &seen.span_attributes, recorder);
}

/// Records the span that a record's duration makes: it ended when the record was written.
fn timed_span(
    record: &Record<'_>,
    span: &'static semconv::Span,
    (trace_id, span_id): ([u8; 16], [u8; 8]),
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) {
    let duration = record
        .fields
        .iter()
        .find(|(key, _)| *key == "duration_ms")
        .and_then(|(_, value)| value.as_f64());
    let Some(duration_ms) = duration.filter(|duration| duration.is_finite() && *duration >= 0.0) else {
        return;
    };
    recorder.record_span(&SpanParts {
        span,
        trace_id,
        span_id,
        parent_span_id: None,
        start_unix_nanos: record.time_unix_nanos.saturating_sub((duration_ms * 1e6) as u64),
        end_unix_nanos: record.time_unix_nanos,
        attributes,
    });
}

fn dataset(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let split = record.fields.iter().find_map(|(key, value)| match value {
        Value::Text(split) if *key == "split" => Some(*split),
        _ => None,
    });
    let attributes = split.map(|split| (&attribute::DATA_SPLIT, Out::Text(split)));
    let mut seen = record_rows(record, DATASET, attributes.as_slice(), recorder);
    seen.leftovers.take_text("split");
    seen.leftovers.record(record, recorder);
}

fn sol(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut seen = record_rows(record, SOL, &[], recorder);
    seen.leftovers.take("rank");
    seen.leftovers.record(record, recorder);
}

/// Bytes of every segment of the allocator, by kind of memory.
fn allocator(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut leftovers = Leftovers::of(record);
    let stats = leftovers.take("stats");
    for segment in stats.iter().flat_map(|stats| list(stats)) {
        let Value::Map(fields) = segment else { continue };
        let name = fields.iter().find_map(|(key, value)| match value {
            Value::Text(name) if *key == "name" => Some(*name),
            _ => None,
        });
        for (kind, bytes) in fields
            .iter()
            .filter_map(|(kind, value)| value.as_f64().map(|bytes| (*kind, bytes)))
        {
            let attributes = [
                (
                    &attribute::MEMORY_SEGMENT_NAME,
                    Out::Text(name.unwrap_or_default()),
                ),
                (&attribute::MEMORY_KIND, Out::Text(kind)),
            ];
            recorder.record(
                &metric::MEMORY_SEGMENT_SIZE,
                record.time_unix_nanos,
                bytes,
                &attributes,
            );
        }
    }
    leftovers.record(record, recorder);
}

/// The largest absolute value of every tensor: names of a model's own, so an event and not a metric.
fn abs_maxes(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut leftovers = Leftovers::of(record);
    let maxes = leftovers.take("abs_maxes");
    let entries: Vec<(&str, Out<'_>)> = maxes
        .iter()
        .flat_map(|maxes| list(maxes))
        .filter_map(named_value)
        .collect();
    let body = Out::Map(&entries);
    recorder.record_event(
        &event::TRAIN_TENSOR_ABS_MAX,
        record.time_unix_nanos,
        Some(body),
        &[step_of(record)],
    );
    leftovers.record(record, recorder);
}

/// `{"name": "x", "value": 1.5}` as an entry of a map.
fn named_value<'a>(entry: &Value<'a>) -> Option<(&'a str, Out<'a>)> {
    let Value::Map(fields) = entry else { return None };
    let name = fields.iter().find_map(|(key, value)| match value {
        Value::Text(name) if *key == "name" => Some(*name),
        _ => None,
    })?;
    let value = fields.iter().find(|(key, _)| *key == "value")?.1.as_f64()?;
    Some((name, Out::Double(value)))
}

fn command(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut leftovers = Leftovers::of(record);
    let command = leftovers.take("cmd");
    let words: Vec<Out<'_>> = command
        .iter()
        .flat_map(|command| list(command))
        .filter_map(|word| {
            if let Value::Text(word) = word {
                Some(Out::Text(word))
            } else {
                None
            }
        })
        .collect();
    let attributes = [(&attribute::RUN_COMMAND, Out::List(&words))];
    recorder.record_event(&event::RUN_COMMAND, record.time_unix_nanos, None, &attributes);
    leftovers.record(record, recorder);
}

fn option(record: &Record<'_>, plan: &mut Plan, recorder: &mut Recorder<'_>) {
    let mut leftovers = Leftovers::of(record);
    let name = leftovers.take_text("name").unwrap_or_default();
    let value = leftovers.take("value");
    plan.option(name, value);
    let value = value.map_or(Out::Text(""), scalar);
    let attributes = [
        (&attribute::RUN_OPTION_NAME, Out::Text(name)),
        (&attribute::RUN_OPTION_VALUE, value),
    ];
    recorder.record_event(&event::RUN_OPTION, record.time_unix_nanos, None, &attributes);
    leftovers.record(record, recorder);
}

fn message(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut leftovers = Leftovers::of(record);
    let body = leftovers.take_text("message").map(Out::Text);
    let duration = leftovers
        .take("duration_ms")
        .and_then(|duration| duration.as_f64());
    let mut attributes = vec![step_of(record)];
    attributes.extend(duration.map(|ms| (&attribute::RUN_MESSAGE_DURATION, Out::Double(ms / 1e3))));
    recorder.record_event(&event::RUN_MESSAGE, record.time_unix_nanos, body, &attributes);
    leftovers.record(record, recorder);
}

/// Records the numbers of a record that is nothing but numbers.
fn numbers(record: &Record<'_>, rows: &[Row], attributes: &[Attribute<'_>], recorder: &mut Recorder<'_>) {
    record_rows(record, rows, attributes, recorder)
        .leftovers
        .record(record, recorder);
}

/// What [`record_rows`] leaves for its caller.
struct Seen<'r, 'a> {
    /// The values that the record's span carries.
    span_attributes: Vec<Attribute<'a>>,
    /// The fields that no row knows.
    leftovers: Leftovers<'r, 'a>,
}

/// Records every field that has a row.
fn record_rows<'r, 'a>(
    record: &'r Record<'a>,
    rows: &[Row],
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) -> Seen<'r, 'a> {
    let mut span_attributes = Vec::with_capacity(rows.len() + 2);
    span_attributes.push(step_of(record));
    let mut leftovers = Leftovers::default();
    let mut expected = 0;
    for field in &record.fields {
        let (key, value) = field;
        let found = find(rows, key, &mut expected).zip(value.as_f64());
        let Some((place, value)) = found else {
            leftovers.push(field);
            continue;
        };
        let row = &rows[place];
        if row.unknown == Some(value) {
            recorder.skip_value(SkipReason::NotMeasured);
            continue;
        }
        let value = row.convert(value);
        row.record(record.time_unix_nanos, value, attributes, recorder);
        span_attributes.extend(row.span_attribute(value));
    }
    Seen {
        span_attributes,
        leftovers,
    }
}

fn step_of(record: &Record<'_>) -> Attribute<'static> {
    (&attribute::TRAIN_STEP, Out::Int(record.step))
}

/// The elements of a list; none of anything else.
fn list<'v, 'a>(value: &'v Value<'a>) -> &'v [Value<'a>] {
    if let Value::List(values) = value {
        values
    } else {
        &[]
    }
}

/// A single value; lists and maps, which no option has, are told by their text.
fn scalar<'a>(value: &Value<'a>) -> Out<'a> {
    match value {
        Value::Int(value) => Out::Int(*value),
        Value::Double(value) => Out::Double(*value),
        Value::Bool(value) => Out::Bool(*value),
        Value::Text(text) => Out::Text(text),
        Value::List(_) | Value::Map(_) => Out::Text(""),
    }
}
