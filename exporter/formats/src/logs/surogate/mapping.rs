//! Records the fields of records by the mapping tables.
//!
//! A number has a row in a table, or is kept under `train.custom`. Other records (a command, an option, a message) are events.

mod events;
pub(super) mod gpu;
mod plan;
mod unmapped_fields;

use pulsetrain_mapping::{MetricMapper, RecordContext, RecordMeta, SpanAttributes};
use pulsetrain_otlp::write::{Attribute, AttributeValue as Out};
use pulsetrain_semconv::{attribute, metric};

use self::{gpu::GpuNames, plan::Plan};
use super::{
    numbers::{NumberKind, Numbers},
    record::Record,
};
use crate::logs::spans;
use pulsetrain_record::{Recorder, SourcePosition};

/// Maps the records of one run.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    gpus: GpuNames,
    plan: Plan,
    mapper: MetricMapper,
}

impl Mapping {
    /// Records a record: its numbers as points, or an event.
    pub(super) fn record(
        &mut self,
        record: &Record<'_>,
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) {
        match NumberKind::from_name(record.kind) {
            Some(kind) => self.numbers(&Numbers::new(kind, record), position, recorder),
            None => self.event(record, recorder),
        }
    }

    fn event(&mut self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
        match record.kind {
            "gpu-model" => {
                self.gpus.model(record, recorder);
                // The points of the GPUs have another id from now on.
                self.mapper.reset_scopes();
            }
            "allocator" => events::allocator(record, recorder),
            "abs-maxes" => events::abs_maxes(record, recorder),
            "cmd" => events::command(record, recorder),
            "option" => events::option(record, &mut self.plan, recorder),
            _ => events::message(record, recorder),
        }
    }

    /// Records the numbers of a record, and its other fields in one event.
    fn numbers(&mut self, numbers: &Numbers<'_, '_>, position: SourcePosition, recorder: &mut Recorder<'_>) {
        let record = numbers.record;
        let meta = RecordMeta {
            time_unix_nanos: record.time_unix_nanos,
            step: Some(record.step),
            position,
        };
        match numbers.kind {
            NumberKind::Step => self.step(numbers, meta, recorder),
            NumberKind::Eval => self.eval(numbers, meta, recorder),
            NumberKind::Gpu => self.gpu(numbers, meta, recorder),
            NumberKind::Dataset => self.dataset(numbers, meta, recorder),
            NumberKind::Moe | NumberKind::Sol | NumberKind::Unknown => {
                self.points(numbers, (None, &[]), meta, recorder);
            }
        }
        unmapped_fields::record_others(record, &numbers.others, recorder);
    }

    fn points(
        &mut self,
        numbers: &Numbers<'_, '_>,
        (scope, attributes): (Option<i64>, &[Attribute<'_>]),
        meta: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) -> &SpanAttributes {
        let context = RecordContext {
            table: numbers.kind.rows(),
            kind: Some(numbers.record.kind),
            scope,
            attributes,
        };
        self.mapper.record_in(&context, meta, &numbers.numbers, recorder)
    }

    fn step(&mut self, numbers: &Numbers<'_, '_>, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let (step, time) = (numbers.record.step, meta.time_unix_nanos);
        recorder.record(&metric::TRAIN_GLOBAL_STEP, time, step as f64, &[]);
        let tokens = numbers.number("step_tokens");
        if let Some(progress) = self.plan.progress(step, tokens) {
            recorder.record(&metric::TRAIN_PROGRESS, time, progress, &[]);
        }
        recorder.record(&metric::TRAIN_STEPS, time, 1.0, &[]);
        let mut on_span: Vec<Attribute<'_>> = self.points(numbers, (None, &[]), meta, recorder).step.clone();
        if let Some(phase) = numbers.label {
            recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
            on_span.push((&attribute::TRAIN_PHASE, Out::Text(phase)));
        }
        if let Some(ms) = numbers.number("duration_ms") {
            spans::step(step, time, ms / 1e3, &on_span, recorder);
        }
    }

    fn eval(&mut self, numbers: &Numbers<'_, '_>, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let spans = self.points(numbers, (None, &[]), meta, recorder);
        if let Some(ms) = numbers.number("duration_ms") {
            let (step, time) = (numbers.record.step, meta.time_unix_nanos);
            spans::eval(step, time, ms / 1e3, &spans.eval, recorder);
        }
    }

    fn gpu(&mut self, numbers: &Numbers<'_, '_>, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let index = numbers.gpu;
        // Runs without records of GPU models know their GPUs only by index.
        let uuid = self.gpus.uuid(index).map(str::to_owned);
        let id = uuid.unwrap_or_else(|| index.to_string());
        let attributes = gpu::attributes(&id, index);
        self.points(numbers, (Some(index), &attributes), meta, recorder);
        if let Some(reason) = numbers.label {
            gpu::record_throttle(reason, meta.time_unix_nanos, &attributes, recorder);
        }
    }

    fn dataset(&mut self, numbers: &Numbers<'_, '_>, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let split = numbers.label;
        if split == Some("train") {
            self.plan.dataset(numbers.number("tokens"));
        }
        let attributes = split.map(|split| (&attribute::DATA_SPLIT, Out::Text(split)));
        self.points(numbers, (None, attributes.as_slice()), meta, recorder);
    }
}
