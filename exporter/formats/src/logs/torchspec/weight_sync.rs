//! Measures the transfer of the draft model's weights to the engines (`_maybe_sync_draft_weights` of
//! `torchspec/controller/loop.py`): the model is saved to a folder, the engines load it, and the folder is removed.

use pulsetrain_otlp::{
    UnixNanos,
    write::{AttributeValue, SpanParts},
};
use pulsetrain_semconv::{attribute, metric, span};

use pulsetrain_record::{Recorder, ids};

/// The step and the start time of the current transfer.
#[derive(Debug, Default)]
pub(super) struct WeightSync(Option<(i64, UnixNanos)>);

impl WeightSync {
    /// Processes a message of the loop. The last message of a successful transfer records a span and a duration.
    pub(super) fn line(&mut self, message: &str, time_unix_nanos: UnixNanos, recorder: &mut Recorder<'_>) {
        if message.starts_with("Cleaned up temp dir ") {
            if let Some((step, start)) = self.0.take() {
                record(step, start, time_unix_nanos.max(start), recorder);
            }
            return;
        }
        let step_message = message
            .strip_prefix("Step ")
            .and_then(|rest| rest.split_once(": "));
        match step_message {
            Some((step, what)) if what.starts_with("saving draft model to ") => {
                self.0 = step.parse().ok().map(|step| (step, time_unix_nanos));
            }
            Some((_, what)) if what.starts_with("weight sync failed") => self.0 = None,
            _ => {}
        }
    }
}

fn record(step: i64, start_unix_nanos: UnixNanos, end_unix_nanos: UnixNanos, recorder: &mut Recorder<'_>) {
    let secs = end_unix_nanos.secs_since(start_unix_nanos);
    recorder.record(&metric::PERF_WEIGHT_SYNC_TIME, end_unix_nanos, secs, &[]);
    let run = recorder.run();
    let name = span::RL_WEIGHT_SYNC.name;
    let (trace_id, span_id) = (
        ids::lifecycle_trace(run),
        ids::part_span(run, name, step, end_unix_nanos),
    );
    recorder.record_span(&SpanParts {
        span: &span::RL_WEIGHT_SYNC,
        trace_id,
        span_id,
        parent_span_id: None,
        start_unix_nanos,
        end_unix_nanos,
        attributes: &[(&attribute::TRAIN_STEP, AttributeValue::Int(step))],
    });
}
