//! From a duration to the span that it is the duration of.

use pulsetrain_otlp::write::{ExemplarParts, SpanLink, SpanParts};
use pulsetrain_semconv::metric::TRAIN_STEP_DURATION;

use super::Recorder;

impl Recorder<'_> {
    /// Has the duration that the same record told of this step lead to its span.
    pub(super) fn lead_to_step(&mut self, span: &SpanParts<'_>) {
        let told = self.step_duration.take();
        let Some((time_unix_nanos, value)) = told.filter(|(time, _)| *time == span.end_unix_nanos) else {
            return;
        };
        let exemplar = ExemplarParts {
            time_unix_nanos,
            value,
            span: SpanLink {
                trace_id: span.trace_id,
                span_id: span.span_id,
            },
        };
        self.metrics.exemplar(&TRAIN_STEP_DURATION, &exemplar);
    }
}
