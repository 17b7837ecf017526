//! What becomes of a record: which field is which metric, in which unit.
//!
//! A number is a row of a table. What is no number (a command, an option, a message) is an event; what no table knows is
//! kept under `train.custom`.

mod events;
pub(super) mod gpu;
mod leftover;
mod plan;

use std::borrow::Cow;

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use self::{gpu::GpuNames, plan::Plan};
use super::{
    numbers::{Kind, Numbers},
    record::Record,
};
use crate::logs::{
    fields::{Table, Tables},
    spans,
};
use pulsetrain_record::Recorder;

/// Maps the records of one run.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    gpus: GpuNames,
    plan: Plan,
    tables: Tables,
}

impl Mapping {
    /// Records everything that a record of an event says.
    pub(super) fn event(&mut self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
        match record.kind {
            "gpu-model" => {
                self.gpus.model(record, recorder);
                // Their points carry another id from now on.
                self.tables = Tables::default();
            }
            "allocator" => events::allocator(record, recorder),
            "abs-maxes" => events::abs_maxes(record, recorder),
            "cmd" => events::command(record, recorder),
            "option" => events::option(record, &mut self.plan, recorder),
            _ => events::message(record, recorder),
        }
    }

    /// Records everything that a record of numbers says.
    pub(super) fn numbers(&mut self, record: &Numbers<'_>, recorder: &mut Recorder<'_>) {
        let time = recorder.instant(record.time);
        match record.kind {
            Kind::Step => self.step(record, time, recorder),
            Kind::Eval => self.eval(record, time, recorder),
            Kind::Gpu => self.gpu(record, time, recorder),
            Kind::Dataset => self.dataset(record, time, recorder),
            Kind::Moe | Kind::Sol | Kind::Unknown => {
                let table = self.tables.of(record.kind.rows(), None);
                record_rows(record, time, table, &[], recorder);
            }
        }
        record_leftovers(record, time, recorder);
    }

    fn step(&mut self, record: &Numbers<'_>, time: u64, recorder: &mut Recorder<'_>) {
        let step = record.step;
        recorder.record(&metric::TRAIN_GLOBAL_STEP, time, step as f64, &[]);
        let tokens = record.number("step_tokens");
        if let Some(progress) = self.plan.progress(step, tokens) {
            recorder.record(&metric::TRAIN_PROGRESS, time, progress, &[]);
        }
        recorder.record(&metric::TRAIN_STEPS, time, 1.0, &[]);
        let table = self.tables.of(record.kind.rows(), None);
        let mut on_span = record_rows(record, time, table, &[], recorder);
        if let Some(phase) = record.label {
            recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
            on_span.push((&attribute::TRAIN_PHASE, Out::Text(phase)));
        }
        if let Some(ms) = record.number("duration_ms") {
            spans::step(step, time, ms / 1e3, &on_span, recorder);
        }
    }

    fn eval(&mut self, record: &Numbers<'_>, time: u64, recorder: &mut Recorder<'_>) {
        let table = self.tables.of(record.kind.rows(), None);
        let on_span = record_rows(record, time, table, &[], recorder);
        if let Some(ms) = record.number("duration_ms") {
            spans::eval(record.step, time, ms / 1e3, &on_span, recorder);
        }
    }

    fn gpu(&mut self, record: &Numbers<'_>, time: u64, recorder: &mut Recorder<'_>) {
        let index = record.gpu;
        // Runs that do not introduce their GPUs know them by their index only.
        let id = self
            .gpus
            .uuid(index)
            .map_or_else(|| index.to_string().into(), Cow::Borrowed);
        let attributes = gpu::attributes(&id, index);
        let table = self.tables.of(record.kind.rows(), Some(index));
        record_rows(record, time, table, &attributes, recorder);
        if let Some(reason) = record.label {
            gpu::record_throttle(reason, time, &attributes, recorder);
        }
    }

    fn dataset(&mut self, record: &Numbers<'_>, time: u64, recorder: &mut Recorder<'_>) {
        let split = record.label;
        if split == Some("train") {
            self.plan.dataset(record.number("tokens"));
        }
        let attributes = split.map(|split| (&attribute::DATA_SPLIT, Out::Text(split)));
        let table = self.tables.of(record.kind.rows(), None);
        record_rows(record, time, table, attributes.as_slice(), recorder);
    }
}

/// Records every number that has a row; returns the attributes of the record's span.
fn record_rows<'r>(
    record: &Numbers<'r>,
    time: u64,
    table: &mut Table,
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) -> Vec<Attribute<'r>> {
    let rows = record.kind.rows();
    let mut on_span = Vec::with_capacity(record.numbers.len() + 2);
    on_span.push((&attribute::TRAIN_STEP, Out::Int(record.step)));
    for (field, (key, number)) in record.numbers.iter().enumerate() {
        let Some(place) = table.find(field, key) else {
            continue;
        };
        let row = &rows[place];
        if let Some(value) = row.measured(*number, recorder) {
            table.record(place, time, value, attributes, recorder);
            on_span.extend(row.span_attribute(value));
        }
    }
    on_span
}

/// Keeps what no row knows: numbers as `train.custom`, everything else in one event.
fn record_leftovers(record: &Numbers<'_>, time: u64, recorder: &mut Recorder<'_>) {
    let rows = record.kind.rows();
    for (key, number) in &record.numbers {
        if rows.iter().all(|row| row.key() != *key) {
            let name = format!("surogate.{}.{key}", record.name);
            recorder.record_custom(time, &name, *number);
        }
    }
    leftover::record_others((record.name, record.step), time, &record.others, recorder);
}
