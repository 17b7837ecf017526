//! Records the fields of records by the mapping tables.
//!
//! A number has a row in a table, or is kept under `train.custom`. Other records (a command, an option, a message) are events.

mod events;
pub(super) mod gpu;
mod plan;
mod unmapped_fields;

use pulsetrain_mapping::{MetricMapper, RecordContext, RecordMeta};
use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use self::{gpu::GpuNames, plan::Plan};
use super::{
    numbers::{Kind, Numbers},
    record::Record,
};
use crate::logs::spans;
use pulsetrain_record::{Recorder, SourcePosition};

/// Maps the records of one run.
#[derive(Debug)]
pub(super) struct Mapping {
    gpus: GpuNames,
    plan: Plan,
    mapper: MetricMapper,
}

impl Default for Mapping {
    fn default() -> Self {
        Self {
            gpus: GpuNames::default(),
            plan: Plan::default(),
            mapper: MetricMapper::new("surogate"),
        }
    }
}

impl Mapping {
    /// Records an event.
    pub(super) fn event(&mut self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
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
    pub(super) fn numbers(
        &mut self,
        record: &Numbers<'_>,
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) {
        let meta = RecordMeta {
            time_unix_nanos: recorder.instant(record.time),
            step: Some(record.step),
            position,
        };
        match record.kind {
            Kind::Step => self.step(record, meta, recorder),
            Kind::Eval => self.eval(record, meta, recorder),
            Kind::Gpu => self.gpu(record, meta, recorder),
            Kind::Dataset => self.dataset(record, meta, recorder),
            Kind::Moe | Kind::Sol | Kind::Unknown => {
                self.record(record, (None, &[]), meta, recorder);
            }
        }
        unmapped_fields::record_others(
            (record.name, record.step),
            meta.time_unix_nanos,
            &record.others,
            recorder,
        );
    }

    fn record(
        &mut self,
        record: &Numbers<'_>,
        (scope, attributes): (Option<i64>, &[Attribute<'_>]),
        meta: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) -> &mut Vec<Attribute<'static>> {
        let context = RecordContext {
            table: record.kind.rows(),
            kind: Some(record.name),
            scope,
            attributes,
        };
        self.mapper.record_in(&context, meta, &record.numbers, recorder)
    }

    fn step(&mut self, record: &Numbers<'_>, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let (step, time) = (record.step, meta.time_unix_nanos);
        recorder.record(&metric::TRAIN_GLOBAL_STEP, time, step as f64, &[]);
        let tokens = record.number("step_tokens");
        if let Some(progress) = self.plan.progress(step, tokens) {
            recorder.record(&metric::TRAIN_PROGRESS, time, progress, &[]);
        }
        recorder.record(&metric::TRAIN_STEPS, time, 1.0, &[]);
        let mut on_span: Vec<Attribute<'_>> = self.record(record, (None, &[]), meta, recorder).clone();
        if let Some(phase) = record.label {
            recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
            on_span.push((&attribute::TRAIN_PHASE, Out::Text(phase)));
        }
        if let Some(ms) = record.number("duration_ms") {
            spans::step(step, time, ms / 1e3, &on_span, recorder);
        }
    }

    fn eval(&mut self, record: &Numbers<'_>, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let on_span = self.record(record, (None, &[]), meta, recorder);
        if let Some(ms) = record.number("duration_ms") {
            spans::eval(record.step, meta.time_unix_nanos, ms / 1e3, on_span, recorder);
        }
    }

    fn gpu(&mut self, record: &Numbers<'_>, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let index = record.gpu;
        // Runs without records of GPU models know their GPUs only by index.
        let uuid = self.gpus.uuid(index).map(str::to_owned);
        let id = uuid.unwrap_or_else(|| index.to_string());
        let attributes = gpu::attributes(&id, index);
        self.record(record, (Some(index), &attributes), meta, recorder);
        if let Some(reason) = record.label {
            gpu::record_throttle(reason, meta.time_unix_nanos, &attributes, recorder);
        }
    }

    fn dataset(&mut self, record: &Numbers<'_>, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let split = record.label;
        if split == Some("train") {
            self.plan.dataset(record.number("tokens"));
        }
        let attributes = split.map(|split| (&attribute::DATA_SPLIT, Out::Text(split)));
        self.record(record, (None, attributes.as_slice()), meta, recorder);
    }
}
