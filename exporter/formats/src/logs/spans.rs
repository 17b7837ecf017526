//! Records spans from the durations in a log. A span ends when its line was written.

use pulsetrain_otlp::write::{Attribute, SpanParts};
use pulsetrain_semconv::{self as semconv, Span, span};

use pulsetrain_record::{Recorder, ids};

/// Records the span of a step that ended at `end_unix_nanos`. Records nothing if the duration is negative or not finite.
pub(super) fn step(
    step: i64,
    end_unix_nanos: u64,
    duration_secs: f64,
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) {
    let Some(start_unix_nanos) = start(end_unix_nanos, duration_secs) else {
        return;
    };
    let attributes = &listed(attributes, &span::TRAIN_STEP);
    let (trace_id, span_id) = recorder.step_ids(step);
    recorder.record_span(&SpanParts {
        span: &span::TRAIN_STEP,
        trace_id,
        span_id,
        parent_span_id: None,
        start_unix_nanos,
        end_unix_nanos,
        attributes,
    });
}

/// Records the span of an evaluation that ended at `end_unix_nanos`.
pub(super) fn eval(
    step: i64,
    end_unix_nanos: u64,
    duration_secs: f64,
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) {
    let Some(start_unix_nanos) = start(end_unix_nanos, duration_secs) else {
        return;
    };
    let attributes = &listed(attributes, &span::EVAL_RUN);
    let run = recorder.run();
    let (trace_id, span_id) = (
        ids::lifecycle_trace(run),
        ids::eval_span(run, step, end_unix_nanos),
    );
    recorder.record_span(&SpanParts {
        span: &span::EVAL_RUN,
        trace_id,
        span_id,
        parent_span_id: None,
        start_unix_nanos,
        end_unix_nanos,
        attributes,
    });
}

/// Returns the attributes that the registry lists for a span.
fn listed<'a>(attributes: &[Attribute<'a>], span: &Span) -> Vec<Attribute<'a>> {
    let is_listed = |attribute: &semconv::Attribute| {
        span.attributes
            .iter()
            .any(|used| used.attribute.name == attribute.name)
    };
    let attributes = attributes.iter().copied();
    attributes.filter(|(attribute, _)| is_listed(attribute)).collect()
}

fn start(end_unix_nanos: u64, duration_secs: f64) -> Option<u64> {
    let is_duration = duration_secs.is_finite() && duration_secs >= 0.0;
    // Rounded: 0.119 s is 118,999,999.99 ns in binary.
    is_duration.then(|| end_unix_nanos.saturating_sub((duration_secs * 1e9).round() as u64))
}
