//! Builds steps, work and spans from entries in the order of time.
//!
//! A step lasts from its start to that of the next one. Its duration excludes the trainer's own events in between, as the
//! library counts it. Data loading in between is a part of the step's span.

use pulsetrain_mapping::{MetricMapper, RecordMeta, RecordTable};
use std::collections::BTreeMap;

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue, SpanParts},
};
use pulsetrain_semconv::{self as semconv, attribute, metric, span};

use super::entry::{Entry, Mark, Work};
use pulsetrain_record::{Recorder, SkipReason, ids};

const UNFINISHED: SkipReason = SkipReason::Ignored("work_without_an_end");
const UNBEGUN: SkipReason = SkipReason::Ignored("work_without_a_start");

fn cause(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_BADPUT_CAUSE, AttributeValue::Text(name))
}

const HOST: Attribute<'static> = (&attribute::PERF_CLOCK, AttributeValue::Text("host"));

/// The rows of the numbers of elastic training.
pub(super) static COUNTS: RecordTable = RecordTable::new("maxtext", "slices");

/// Work at the start or restart of a job. No step lasts across it.
const STARTUP_WORK: [&str; 4] = ["job", "tpu_init", "training_prep", "elastic_reinit"];

/// The maximum number of open pieces of work.
const MAX_OPEN: usize = 256;

/// A completed piece of work.
#[derive(Clone, Copy, Debug)]
struct Done {
    start: UnixNanos,
    end: UnixNanos,
}

/// A step without an end.
#[derive(Clone, Copy, Debug)]
struct Step {
    number: i64,
    start: UnixNanos,
    span_id: [u8; 8],
}

/// The state of a job between entries.
#[derive(Debug)]
pub(super) struct Timeline {
    fields: MetricMapper,
    /// The current step.
    step: Option<Step>,
    /// The highest step so far.
    furthest: Option<i64>,
    /// The duration of the trainer's own events in the current step.
    events_nanos: u64,
    open: BTreeMap<Work, UnixNanos>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            fields: MetricMapper::default().of_one_attempt(),
            step: None,
            furthest: None,
            events_nanos: 0,
            open: BTreeMap::new(),
        }
    }
}

impl Timeline {
    /// Processes the next entry.
    pub(super) fn take(&mut self, entry: &Entry, recorder: &mut Recorder<'_>) {
        let time = entry.time_unix_nanos;
        match &entry.mark {
            Mark::Step(step) => {
                self.end_step(Some((*step, time)), recorder);
                self.begin_step(*step, time, recorder);
            }
            Mark::Start(work) => {
                if STARTUP_WORK.contains(&work.kind.as_str()) {
                    self.end_step(None, recorder);
                }
                let is_one_too_many = self.open.len() >= MAX_OPEN && !self.open.contains_key(work);
                if is_one_too_many || self.open.insert(work.clone(), time).is_some() {
                    recorder.skip_value(UNFINISHED);
                }
            }
            Mark::End(work) => match self.open.remove(work) {
                Some(start) => self.done(work, Done { start, end: time }, recorder),
                None => recorder.skip_value(UNBEGUN),
            },
            Mark::Nothing => {}
        }
        let meta = RecordMeta {
            time_unix_nanos: time,
            step: None,
            position: entry.position,
        };
        recorder.skip_values(SkipReason::NotMeasured, entry.nulls);
        self.fields.record(&COUNTS, meta, &entry.fields, &[], recorder);
    }

    /// Ends the timeline: no entry follows.
    pub(super) fn end(&mut self, recorder: &mut Recorder<'_>) {
        self.end_step(None, recorder);
        for _ in std::mem::take(&mut self.open) {
            recorder.skip_value(UNFINISHED);
        }
    }

    /// Starts a step. A step that is repeated after a restart gets another span id.
    fn begin_step(&mut self, number: i64, start: UnixNanos, recorder: &mut Recorder<'_>) {
        self.fields.step(start, number, recorder);
        let is_new = self.furthest.is_none_or(|furthest| number > furthest);
        self.furthest = self.furthest.max(Some(number));
        let run = recorder.run();
        let span_id = if is_new {
            ids::step_span(run, number)
        } else {
            ids::part_span(run, span::TRAIN_STEP.name, number, start)
        };
        self.step = Some(Step {
            number,
            start,
            span_id,
        });
    }

    /// Ends the current step at the start of the next one. It has no end if its successor is missing.
    fn end_step(&mut self, next: Option<(i64, UnixNanos)>, recorder: &mut Recorder<'_>) {
        let events_nanos = std::mem::take(&mut self.events_nanos);
        let (Some(step), Some((next, end))) = (self.step.take(), next) else {
            return;
        };
        if step.number.checked_add(1) != Some(next) || end < step.start {
            return;
        }
        let secs = end.nanos_since(step.start).saturating_sub(events_nanos) as f64 / 1e9;
        recorder.record(&metric::TRAIN_STEP_DURATION, end, secs, &[]);
        let attributes = [(&attribute::TRAIN_STEP, AttributeValue::Int(step.number))];
        let done = Done {
            start: step.start,
            end,
        };
        let (number, ids) = (Some(step.number), (step.span_id, None));
        record(&span::TRAIN_STEP, number, ids, done, &attributes, recorder);
    }

    /// Records data loading as a child span of the current step.
    fn loaded(&self, done: Done, recorder: &mut Recorder<'_>) {
        let secs = done.end.nanos_since(done.start) as f64 / 1e9;
        recorder.record(&metric::PERF_DATA_TIME, done.end, secs, &[HOST]);
        let step = self
            .step
            .map(|step| (&attribute::TRAIN_STEP, AttributeValue::Int(step.number)));
        let attributes: Vec<Attribute<'_>> = step.into_iter().chain([HOST]).collect();
        let number = self.step.map(|step| step.number);
        let name = span::PERF_DATA.name;
        let ids = (
            ids::work_span(recorder.run(), "data_loading", name, done.start.0, 0),
            self.step.map(|step| step.span_id),
        );
        record(&span::PERF_DATA, number, ids, done, &attributes, recorder);
    }

    fn done(&mut self, work: &Work, done: Done, recorder: &mut Recorder<'_>) {
        let secs = done.end.nanos_since(done.start) as f64 / 1e9;
        if work.kind == "data_loading" {
            return self.loaded(done, recorder);
        }
        if work.kind == EVENT {
            self.events_nanos += done.end.nanos_since(done.start);
        }
        let step = self
            .step
            .map(|step| (&attribute::TRAIN_STEP, AttributeValue::Int(step.number)));
        let stage = work.name.as_deref().unwrap_or(&work.kind);
        let (span, own): (_, Option<Attribute<'_>>) = match (work.kind.as_str(), work.name.as_deref()) {
            ("job", _) => (&span::TRAIN_RUN, None),
            ("tpu_init", _) => (&span::RUN_INIT, Some(cause("tpu_initialization"))),
            ("training_prep", _) => (&span::RUN_INIT, Some(cause("training_prep"))),
            (EVENT, Some("eval_step")) => {
                recorder.record(&metric::EVAL_DURATION, done.end, secs, &[]);
                (&span::EVAL_RUN, step)
            }
            _ => (
                &span::PERF_STAGE,
                Some((&attribute::PERF_STAGE, AttributeValue::Text(stage))),
            ),
        };
        let of_stage = step.filter(|_| span.name == span::PERF_STAGE.name);
        let attributes: Vec<Attribute<'_>> = own.into_iter().chain(of_stage).collect();
        let span_id = ids::work_span(recorder.run(), &work.kind, stage, done.start.0, 0);
        record(span, None, (span_id, None), done, &attributes, recorder);
    }
}

const EVENT: &str = "custom_badput_event";

/// Records a span in the trace of its step, or in the trace of the run's lifecycle.
fn record(
    span: &'static semconv::Span,
    step: Option<i64>,
    (span_id, parent_span_id): ([u8; 8], Option<[u8; 8]>),
    done: Done,
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) {
    let run = recorder.run();
    let trace_id = match step {
        Some(step) => ids::step_trace(run, step),
        None => ids::lifecycle_trace(run),
    };
    recorder.record_span(&SpanParts {
        span,
        trace_id,
        span_id,
        parent_span_id,
        start_unix_nanos: done.start,
        end_unix_nanos: done.end.max(done.start),
        attributes,
    });
}
