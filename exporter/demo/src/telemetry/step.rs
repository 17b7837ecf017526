//! A step of a rank: its duration and phases as metrics and as spans, its memory, and on rank 0 the training metrics.

use pulsetrain_otlp::{
    UnixNanos,
    write::{AttributeValue, SpanParts},
};
use pulsetrain_record::{step_span, step_trace};
use pulsetrain_semconv::{Metric, Span, attribute, metric, span};

use super::{
    rank::{Rank, span_id},
    seconds, step_attribute,
};
use crate::{
    faults::Effects,
    gpus::GPUS_PER_HOST,
    job::{MoeValues, Phase, StepRun},
};

/// Memory of the framework's allocator and of the host, in bytes, without a leak.
const ALLOCATED: u64 = 52 << 30;
const RESERVED: u64 = 61 << 30;
const HOST_USED: u64 = 96 << 30;
/// Memory of a host in bytes.
const HOST_MEMORY: u64 = 2 << 40;
/// The range in which the allocated memory varies from step to step, in bytes.
const VARIES: u64 = 256 << 20;

impl Rank {
    /// Records a step with these effects of faults; `rank` is the index of the rank in the step.
    pub(super) fn record_step(&mut self, step: &StepRun, rank: usize, effects: &Effects) {
        let own = &step.ranks[rank];
        let end = own.end_unix_nanos;
        let duration = seconds(own.start_unix_nanos, end);
        self.recorder()
            .record(&metric::TRAIN_GLOBAL_STEP, end, step.step as f64, &[]);
        self.recorder()
            .record(&metric::TRAIN_STEP_DURATION, end, duration, &[]);
        for (phase, start, phase_end) in own.phases() {
            self.recorder()
                .record(duration_of(phase), end, seconds(start, phase_end), &[]);
        }
        self.record_memory(step.step, end, rank, effects);
        if rank == 0 {
            self.record_values(step, end);
        }
        self.record_step_span(step, rank);
        self.recorder().end_of_record();
    }

    fn record_memory(&mut self, step: u64, time_unix_nanos: UnixNanos, rank: usize, effects: &Effects) {
        let leaked_bytes = effects.leaked_bytes[rank];
        let varied = span_id(self.run(), metric::MEMORY_FRAMEWORK_ALLOCATED.name, step);
        let varied = u64::from_be_bytes(varied) % VARIES;
        let allocated = ALLOCATED + varied + leaked_bytes;
        let reserved = RESERVED.max(allocated + (1 << 30));
        let host = HOST_USED + varied / 4 + leaked_bytes;
        let failed = f64::from(effects.failed_allocations[rank]);
        for (metric, value) in [
            (&metric::MEMORY_FRAMEWORK_ALLOCATED, allocated as f64),
            (&metric::MEMORY_FRAMEWORK_RESERVED, reserved as f64),
            (&metric::MEMORY_FRAMEWORK_OOMS, failed),
            (&metric::MEMORY_HOST_USED, host as f64),
        ] {
            self.recorder().record(metric, time_unix_nanos, value, &[]);
        }
        if self.local_rank() == 0 {
            let ranks = u64::from(GPUS_PER_HOST).min(effects.leaked_bytes.len() as u64);
            let own = (ranks * HOST_USED + leaked_bytes) as f64 / HOST_MEMORY as f64;
            let available = HOST_MEMORY as f64 * (1.0 - own.max(effects.host_memory_used));
            for (metric, value) in [
                (&metric::MEMORY_HOST_LIMIT, HOST_MEMORY as f64),
                (&metric::MEMORY_HOST_AVAILABLE, available),
            ] {
                self.recorder().record(metric, time_unix_nanos, value, &[]);
            }
        }
    }

    fn record_values(&mut self, step: &StepRun, time_unix_nanos: UnixNanos) {
        let values = &step.values;
        for (metric, value) in [
            (&metric::TRAIN_LOSS, values.loss),
            (&metric::TRAIN_GRAD_NORM, values.grad_norm),
            (&metric::TRAIN_LEARNING_RATE, values.learning_rate),
            (&metric::TRAIN_LOSS_SCALE, values.loss_scale),
            (&metric::TRAIN_EPOCH, values.epoch),
            (&metric::TRAIN_STEPS, 1.0),
            (
                &metric::TRAIN_SKIPPED_STEPS,
                f64::from(u8::from(values.is_skipped)),
            ),
            (&metric::TRAIN_TOKENS, values.tokens as f64),
            (&metric::TRAIN_SAMPLES, values.samples as f64),
        ] {
            self.recorder().record(metric, time_unix_nanos, value, &[]);
        }
        self.recorder().record_state(
            &metric::TRAIN_PHASE,
            &attribute::TRAIN_PHASE,
            time_unix_nanos,
            values.phase,
            &[],
        );
        if let Some(moe) = &values.moe {
            self.record_moe(moe, time_unix_nanos);
        }
        if let (Some(rl), Some(rollout)) = (&values.rl, &step.rollout) {
            self.record_rl(rl, rollout, values.samples, time_unix_nanos);
        }
    }

    fn record_moe(&mut self, moe: &MoeValues, time_unix_nanos: UnixNanos) {
        for (metric, value) in [
            (&metric::MOE_AUX_LOSS, moe.aux_loss),
            (&metric::MOE_Z_LOSS, moe.z_loss),
            (&metric::MOE_LOAD_IMBALANCE, moe.load_imbalance),
            (&metric::MOE_EXPERT_UTILIZATION, moe.expert_utilization),
            (&metric::MOE_ROUTER_ENTROPY, moe.router_entropy),
        ] {
            self.recorder().record(metric, time_unix_nanos, value, &[]);
        }
    }

    /// Records the span of the step, and the spans of its phases as its children.
    fn record_step_span(&mut self, step: &StepRun, rank: usize) {
        let own = &step.ranks[rank];
        let (run, number) = (self.run().clone(), step.step as i64);
        let (trace_id, root) = (step_trace(&run, number), step_span(&run, number));
        let values = &step.values;
        let attributes = [
            step_attribute(step.step),
            (&attribute::TRAIN_LOSS, AttributeValue::Double(values.loss)),
            (
                &attribute::TRAIN_GRAD_NORM,
                AttributeValue::Double(values.grad_norm),
            ),
            (
                &attribute::TRAIN_LEARNING_RATE,
                AttributeValue::Double(values.learning_rate),
            ),
            (&attribute::TRAIN_EPOCH, AttributeValue::Double(values.epoch)),
            (
                &attribute::TRAIN_TOKENS,
                AttributeValue::Int(values.tokens as i64),
            ),
        ];
        let own_attributes = if rank == 0 {
            &attributes[..]
        } else {
            &attributes[..1]
        };
        self.recorder().record_span(&SpanParts {
            span: &span::TRAIN_STEP,
            trace_id,
            span_id: root,
            parent_span_id: None,
            start_unix_nanos: own.start_unix_nanos,
            end_unix_nanos: own.end_unix_nanos,
            attributes: own_attributes,
        });
        let mut child = |span: &'static Span, start_unix_nanos, end_unix_nanos| {
            self.recorder().record_span(&SpanParts {
                span,
                trace_id,
                span_id: span_id(&run, span.name, step.step),
                parent_span_id: Some(root),
                start_unix_nanos,
                end_unix_nanos,
                attributes: &attributes[..1],
            });
        };
        for (phase, start, end) in own.phases().filter(|(_, start, end)| end > start) {
            child(span_of(phase), start, end);
        }
        if let Some(rollout) = step.rollout.as_ref().filter(|_| rank == 0) {
            let end = own.start_unix_nanos.saturating_add(rollout.generation);
            child(
                &span::RL_ROLLOUT,
                own.start_unix_nanos,
                end.min(own.end_unix_nanos),
            );
        }
    }
}

/// Returns the metric of the duration of a phase.
fn duration_of(phase: Phase) -> &'static Metric {
    match phase {
        Phase::DispatchWait => &metric::PERF_DISPATCH_WAIT,
        Phase::Data => &metric::PERF_DATA_TIME,
        Phase::ReferenceInference => &metric::PERF_REFER_INFERENCE_TIME,
        Phase::Forward => &metric::PERF_FORWARD_TIME,
        Phase::Backward => &metric::PERF_BACKWARD_TIME,
        Phase::Optimizer => &metric::PERF_OPTIMIZER_TIME,
        Phase::WeightSync => &metric::PERF_WEIGHT_SYNC_TIME,
    }
}

fn span_of(phase: Phase) -> &'static Span {
    match phase {
        Phase::DispatchWait => &span::PERF_DISPATCH_WAIT,
        Phase::Data => &span::PERF_DATA,
        Phase::ReferenceInference => &span::RL_REFERENCE_INFERENCE,
        Phase::Forward => &span::PERF_FORWARD,
        Phase::Backward => &span::PERF_BACKWARD,
        Phase::Optimizer => &span::PERF_OPTIMIZER,
        Phase::WeightSync => &span::RL_WEIGHT_SYNC,
    }
}
