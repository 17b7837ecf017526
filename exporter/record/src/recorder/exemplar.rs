//! Links the duration of a step to its span with an exemplar.

use pulsetrain_otlp::write::{ExemplarParts, SpanLink, SpanParts};
use pulsetrain_semconv::metric::TRAIN_STEP_DURATION;

use super::Recorder;

impl Recorder<'_> {
    /// Adds the span of a step as the exemplar of its duration, if the same record has both.
    pub(super) fn link_exemplar_to_step(&mut self, span: &SpanParts<'_>) {
        let recorded = self.step_duration.take();
        let Some((time_unix_nanos, value)) = recorded.filter(|(time, _)| *time == span.end_unix_nanos) else {
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
        self.current
            .series
            .points()
            .exemplar(&TRAIN_STEP_DURATION, &exemplar);
    }
}
