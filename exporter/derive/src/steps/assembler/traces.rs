//! Decodes a batch of spans: steps, their phases, and intervals outside of steps.

use std::sync::Arc;

use pulsetrain_otlp::{
    UnixNanos, WireError,
    view::{AnyValue, Span},
    walk,
};
use pulsetrain_pipeline::{Batch, clock::Instant};
use pulsetrain_run::{integer, label};
use pulsetrain_semconv::attribute;

use super::{Assembler, resource_bytes};
use crate::steps::{
    Lifecycle, LifecycleFacts, RankId, RankInfo,
    interest::SpanRole,
    pending::{RankSteps, StepSpan},
};

impl Assembler {
    /// Decodes a batch of spans. Intervals outside of steps go to `out`.
    ///
    /// # Errors
    /// Bytes that are not spans. The spans before them are added.
    pub(crate) fn read_spans(
        &mut self,
        batch: &Batch,
        now: Instant,
        out: &mut Vec<LifecycleFacts>,
    ) -> Result<(), WireError> {
        for resource in walk::spans(batch.bytes()) {
            let resource = resource?;
            let known = self.known_resource(resource_bytes(resource.bytes), now);
            let Some(rank) = known.and_then(|known| known.rank) else {
                continue;
            };
            for span in resource.items() {
                let span = span?;
                if let Some(role) = SpanRole::from_name(span.name) {
                    self.take_span(rank, role, &span, (batch, now), out);
                }
            }
        }
        Ok(())
    }

    fn take_span(
        &mut self,
        id: RankId,
        role: SpanRole,
        span: &Span<'_>,
        (batch, now): (&Batch, Instant),
        out: &mut Vec<LifecycleFacts>,
    ) {
        if span.end_time_unix_nano < span.start_time_unix_nano {
            return;
        }
        let deadline = self.deadline(now);
        let of_step = StepSpan {
            number: attribute_of(span, attribute::TRAIN_STEP.name).and_then(integer),
            trace: span.trace_id.try_into().ok(),
            start: UnixNanos(span.start_time_unix_nano),
            end: UnixNanos(span.end_time_unix_nano),
        };
        self.observe_time(of_step.end);
        let is_step = !matches!(role, SpanRole::Lifecycle(_));
        let repeats_a_step = |rank: &RankSteps| rank.repeats_a_step(of_step.number, of_step.start);
        if is_step && self.ranks.get(&id).is_some_and(repeats_a_step) {
            self.close_before_restart(id);
        }
        let Some(rank) = self.ranks.get_mut(&id) else {
            return;
        };
        let opened = match role {
            SpanRole::Lifecycle(kind) => {
                rank.newest = rank.newest.max(of_step.end);
                out.push(interval(kind, span, &of_step, &rank.info));
                return;
            }
            SpanRole::Child(phase) => rank.add_child(phase, of_step, batch, deadline),
            SpanRole::Step => {
                let Some((draft, opened)) = rank.add_span(of_step, batch, deadline) else {
                    return;
                };
                for entry in span.attributes.iter().map_while(Result::ok) {
                    let place = self.interests.kept(entry.key);
                    if let (Some(place), Some(value)) = (place, entry.value.and_then(number)) {
                        draft.span_values.set_missing(place, value);
                    }
                }
                opened
            }
        };
        self.opened(id, opened, deadline);
    }
}

fn interval(kind: Lifecycle, span: &Span<'_>, of: &StepSpan, rank: &Arc<RankInfo>) -> LifecycleFacts {
    LifecycleFacts {
        rank: Arc::clone(rank),
        kind,
        start: of.start,
        end: of.end,
        step: of.number,
        is_device_init: attribute_of(span, attribute::TRAIN_BADPUT_CAUSE.name).and_then(label)
            == Some("tpu_initialization"),
    }
}

fn attribute_of<'a>(span: &Span<'a>, name: &str) -> Option<AnyValue<'a>> {
    let mut attributes = span.attributes.iter().map_while(Result::ok);
    attributes.find(|entry| entry.key == *name)?.value
}

fn number(value: AnyValue<'_>) -> Option<f64> {
    match value {
        AnyValue::Double(number) => Some(number),
        AnyValue::Int(number) => Some(number as f64),
        _ => None,
    }
}
