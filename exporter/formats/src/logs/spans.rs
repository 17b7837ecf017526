//! Records spans from the durations in a log. A span ends when its line was written.

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, SpanParts},
};
use pulsetrain_semconv::{self as semconv, Span, span};

use pulsetrain_record::{Recorder, ids};

/// Records the span of a step, as [`ended`] does.
pub(super) fn step(
    step: i64,
    end_unix_nanos: UnixNanos,
    duration_secs: f64,
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) {
    let (ids, work) = (recorder.step_ids(step), (end_unix_nanos, duration_secs));
    ended(&span::TRAIN_STEP, ids, work, attributes, recorder);
}

/// Records the span of an evaluation, as [`ended`] does.
pub(super) fn eval(
    step: i64,
    end_unix_nanos: UnixNanos,
    duration_secs: f64,
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) {
    let run = recorder.run();
    let span_id = ids::eval_span(run, step, end_unix_nanos);
    let (ids, work) = (
        (ids::lifecycle_trace(run), span_id),
        (end_unix_nanos, duration_secs),
    );
    ended(&span::EVAL_RUN, ids, work, attributes, recorder);
}

/// Records the span of work that ended at a time after a duration, by the ids of its trace and span. Records nothing if the
/// duration is negative or not finite.
pub(super) fn ended(
    span: &'static Span,
    (trace_id, span_id): ([u8; 16], [u8; 8]),
    (end_unix_nanos, duration_secs): (UnixNanos, f64),
    attributes: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) {
    if !(duration_secs.is_finite() && duration_secs >= 0.0) {
        return;
    }
    recorder.record_span(&SpanParts {
        span,
        trace_id,
        span_id,
        parent_span_id: None,
        start_unix_nanos: end_unix_nanos.minus_secs(duration_secs),
        end_unix_nanos,
        attributes,
    });
}

/// Returns the attributes that the registry lists for a span.
pub(super) fn listed<'a>(attributes: impl Iterator<Item = Attribute<'a>>, span: &Span) -> Vec<Attribute<'a>> {
    let is_listed = |attribute: &semconv::Attribute| {
        span.attributes
            .iter()
            .any(|used| used.attribute.name == attribute.name)
    };
    attributes.filter(|(attribute, _)| is_listed(attribute)).collect()
}
