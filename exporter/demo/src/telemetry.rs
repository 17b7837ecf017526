//! The telemetry of the ranks, recorded as a real source records it: metrics, spans of one trace per step, events.
//!
//! `rank` is one rank with its recorder, `step` records its steps, `reinforcement` the metrics of reinforcement learning. Only
//! rank 0 records the values of the run.

mod rank;
mod reinforcement;
mod step;

use std::{cell::RefCell, rc::Rc};

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue},
};
use pulsetrain_pipeline::Batch;
use pulsetrain_record::series::REPEAT_AFTER;
use pulsetrain_semconv::{attribute, event, metric, span};

use self::rank::Rank;
pub(crate) use self::rank::run_id;
use crate::{
    config::DemoConfig,
    job::{Activity, Segment, samples_of_step},
};

/// Parameters of the model.
const PARAMETERS: f64 = 30.5e9;
/// Floating-point operations of a token by part of the model: 6 for each parameter that it uses, and attention.
const FLOPS_PER_TOKEN: [(&str, f64); 3] = [("blocks", 18.2e9), ("lm_head", 1.9e9), ("attention", 0.9e9)];
/// Peak of an H100 SXM in bf16 without sparsity (NVIDIA H100 data sheet).
const PEAK_FLOPS: f64 = 989.4e12;
const PRECISION: &str = "bf16";

/// The batches that are not sent yet.
pub(crate) type Outbox = Rc<RefCell<Vec<Batch>>>;

/// The telemetry of all ranks.
pub(crate) struct Telemetry {
    ranks: Vec<Rank>,
    constants: Constants,
    outbox: Outbox,
    attempt: i64,
    constants_unix_nanos: UnixNanos,
}

/// The constant properties of the run.
#[derive(Clone, Debug)]
struct Constants {
    command: Vec<String>,
    planned_steps: u64,
    samples: u64,
    gpu_ids: Vec<String>,
}

impl Telemetry {
    /// Returns the telemetry of a job, which puts its batches into `outbox`.
    pub(crate) fn new(config: &DemoConfig, gpu_ids: &[String], outbox: Outbox) -> Self {
        let rank = |rank| Rank::new(config, rank, Rc::clone(&outbox));
        Self {
            ranks: (0..config.ranks).map(rank).collect(),
            constants: Constants {
                command: ["pulsetrain", "demo", "--workload", config.workload.as_str()]
                    .map(str::to_owned)
                    .into(),
                planned_steps: config.steps,
                samples: samples_of_step(config),
                gpu_ids: gpu_ids.to_vec(),
            },
            outbox,
            attempt: 0,
            constants_unix_nanos: UnixNanos::UNKNOWN,
        }
    }

    /// Records a segment that has ended.
    pub(crate) fn record(&mut self, segment: &Segment) {
        if segment.attempt != self.attempt {
            self.attempt = segment.attempt;
            self.constants_unix_nanos = UnixNanos::UNKNOWN;
            for rank in &mut self.ranks {
                rank.begin_attempt(segment.attempt, segment.start_unix_nanos);
            }
        }
        match &segment.activity {
            Activity::Init => self.record_init(segment),
            Activity::Compile => self.record_spans(segment, &span::RUN_COMPILE, &framework()),
            Activity::Load { step } => {
                self.record_spans(segment, &span::TRAIN_CHECKPOINT_LOAD, &[step_attribute(*step)]);
            }
            Activity::Save { step } => self.record_save(segment, *step),
            Activity::Eval { step, loss } => self.record_eval(segment, *step, *loss),
            Activity::Step(step) => {
                let is_due = segment.end_unix_nanos >= self.constants_unix_nanos.saturating_add(REPEAT_AFTER);
                for (rank, record) in self.ranks.iter_mut().enumerate() {
                    if !segment.effects.silent[rank] {
                        record.record_step(step, rank, &segment.effects);
                    }
                }
                if is_due && !segment.effects.silent[0] {
                    self.record_constants(segment.end_unix_nanos);
                }
            }
            Activity::Stalled | Activity::Hanging { .. } => {}
            Activity::Down { .. } => self.end_series(),
        }
        self.flush();
    }

    /// Ends the series of all ranks, as at the end of a run.
    pub(crate) fn end_series(&mut self) {
        self.ranks.iter_mut().for_each(Rank::end_series);
        self.flush();
    }

    fn flush(&mut self) {
        self.ranks.iter_mut().for_each(Rank::flush);
    }

    fn record_init(&mut self, segment: &Segment) {
        let command: Vec<AttributeValue<'_>> = self
            .constants
            .command
            .iter()
            .map(|part| AttributeValue::Text(part))
            .collect();
        let attributes = [(&attribute::RUN_COMMAND, AttributeValue::List(&command))];
        let start = segment.start_unix_nanos;
        self.ranks[0]
            .recorder()
            .record_event(&event::RUN_COMMAND, start, None, &attributes);
        self.record_spans(segment, &span::RUN_INIT, &framework());
        self.record_constants(segment.end_unix_nanos);
    }

    fn record_constants(&mut self, time_unix_nanos: UnixNanos) {
        self.constants_unix_nanos = time_unix_nanos;
        let Self { ranks, constants, .. } = self;
        let devices = ranks.len() as f64;
        let recorder = ranks[0].recorder();
        let mut gauge = |metric, value| recorder.record(metric, time_unix_nanos, value, &[]);
        gauge(&metric::TRAIN_PLANNED_STEPS, constants.planned_steps as f64);
        gauge(&metric::TRAIN_BATCH_SIZE, constants.samples as f64);
        gauge(&metric::RUN_DEVICES, devices);
        gauge(&metric::RUN_PARAMETERS, PARAMETERS);
        for (part, flops) in FLOPS_PER_TOKEN {
            let attributes = [(&attribute::TRAIN_FLOPS_PART, AttributeValue::Text(part))];
            recorder.record(
                &metric::TRAIN_FLOPS_PER_TOKEN,
                time_unix_nanos,
                flops,
                &attributes,
            );
        }
        for (rank, id) in ranks.iter_mut().zip(&constants.gpu_ids) {
            let index = rank.local_rank();
            let attributes = [
                (&attribute::GPU_ID, AttributeValue::Text(id)),
                (&attribute::GPU_INDEX, AttributeValue::Int(index)),
                (&attribute::GPU_PRECISION, AttributeValue::Text(PRECISION)),
            ];
            rank.recorder()
                .record(&metric::GPU_PEAK_FLOPS, time_unix_nanos, PEAK_FLOPS, &attributes);
        }
    }

    fn record_save(&mut self, segment: &Segment, step: u64) {
        let seconds = seconds(segment.start_unix_nanos, segment.end_unix_nanos);
        for (rank, record) in self.ranks.iter_mut().enumerate() {
            if !segment.effects.silent[rank] {
                record.recorder().record(
                    &metric::PERF_CHECKPOINT_TIME,
                    segment.end_unix_nanos,
                    seconds,
                    &[],
                );
            }
        }
        self.record_spans(segment, &span::TRAIN_CHECKPOINT_SAVE, &[step_attribute(step)]);
    }

    fn record_eval(&mut self, segment: &Segment, step: u64, loss: f64) {
        if !segment.effects.silent[0] {
            let (end, recorder) = (segment.end_unix_nanos, self.ranks[0].recorder());
            recorder.record(&metric::EVAL_LOSS, end, loss, &[]);
            recorder.record(&metric::EVAL_PERPLEXITY, end, loss.exp(), &[]);
            let seconds = seconds(segment.start_unix_nanos, end);
            recorder.record(&metric::EVAL_DURATION, end, seconds, &[]);
        }
        let attributes = [
            step_attribute(step),
            (&attribute::EVAL_LOSS, AttributeValue::Double(loss)),
        ];
        self.record_spans(segment, &span::EVAL_RUN, &attributes);
    }

    /// Records a span of every rank in the trace of the run's life.
    fn record_spans(
        &mut self,
        segment: &Segment,
        span: &'static pulsetrain_semconv::Span,
        attributes: &[Attribute<'_>],
    ) {
        for (rank, record) in self.ranks.iter_mut().enumerate() {
            if !segment.effects.silent[rank] {
                record.record_lifecycle(
                    span,
                    (segment.start_unix_nanos, segment.end_unix_nanos),
                    attributes,
                );
            }
        }
    }

    /// Takes the batches so far.
    pub(crate) fn take_batches(&self) -> Vec<Batch> {
        std::mem::take(&mut *self.outbox.borrow_mut())
    }
}

fn framework() -> [Attribute<'static>; 1] {
    [(&attribute::TRAIN_FRAMEWORK, AttributeValue::Text(rank::FRAMEWORK))]
}

fn step_attribute(step: u64) -> Attribute<'static> {
    (&attribute::TRAIN_STEP, AttributeValue::Int(step as i64))
}

/// Returns the seconds from one time to another.
fn seconds(start_unix_nanos: UnixNanos, end_unix_nanos: UnixNanos) -> f64 {
    end_unix_nanos.nanos_since(start_unix_nanos) as f64 / 1e9
}
