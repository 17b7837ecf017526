//! Adds spans: steps with their phases, and marks such as checkpoints.

use pulsetrain_otlp::{UnixNanos, WireError, view::Span, walk};
use pulsetrain_run::integer;
use pulsetrain_semconv::attribute;

use super::{
    super::{
        events::{RunEvent, bounded},
        history::History,
        layout,
        steps::{SpanIds, StepKey},
    },
    origin::{Origin, find},
};

/// The status of a failed span (OpenTelemetry trace API, "Set Status").
const FAILED: i32 = 2;

/// The severities of a mark and of a failed mark (OpenTelemetry logs data model, "SeverityNumber").
const INFO: i32 = 9;
const ERROR: i32 = 17;

/// Adds a batch of spans.
pub(crate) fn spans(history: &mut History, bytes: &[u8], now_millis: i64) -> Result<(), WireError> {
    for resource in walk::spans(bytes) {
        let resource = resource?;
        let origin = Origin::from_attributes(resource.attributes())?;
        for span in resource.items() {
            add(history, &origin, &span?, now_millis)?;
        }
    }
    Ok(())
}

fn add(history: &mut History, origin: &Origin, span: &Span<'_>, now_millis: i64) -> Result<(), WireError> {
    let name = span.name.to_str_lossy();
    let is_step = name == layout::STEP.name;
    let config = history.config.clone();
    let run = match origin.run(history, is_step, now_millis) {
        Ok(Some(run)) => run,
        Ok(None) => return Ok(()),
        Err(rejection) => {
            history.counts.rejected.count(rejection);
            return Ok(());
        }
    };
    let (max_steps, max_events) = (run.max_steps(&config), run.max_events(&config));
    run.revision += 1;
    let step = find(&span.attributes, &attribute::TRAIN_STEP)?.and_then(integer);
    let (start, end) = (
        UnixNanos(span.start_time_unix_nano),
        UnixNanos(span.end_time_unix_nano),
    );
    if let Some(mark) = layout::mark(&name) {
        let has_failed = span.status.is_some_and(|status| status.code == FAILED);
        let text = span.status.map(|status| bounded(&status.message.to_str_lossy()));
        run.events.push(
            RunEvent {
                name: mark.into(),
                time_nanos: start,
                end_nanos: Some(end),
                step,
                rank: origin.rank,
                text: text.unwrap_or_default(),
                severity: if has_failed { ERROR } else { INFO },
                ..RunEvent::default()
            },
            max_events,
        );
        return Ok(());
    }
    let rank = origin.rank.unwrap_or(0);
    let ids = SpanIds {
        trace: span.trace_id,
        span: span.span_id,
        parent: span.parent_span_id,
    };
    let Some(number) = step.or_else(|| run.steps.of_trace(span.trace_id, rank)) else {
        if !is_step && !span.parent_span_id.is_empty() {
            run.steps.wait((origin.attempt(), rank), ids, &name, start, end);
        }
        return Ok(());
    };
    let key = StepKey {
        number,
        attempt: origin.attempt(),
        rank,
    };
    if is_step {
        run.steps.step(key, ids, start, end, max_steps);
        run.clock.record(end, number);
        if end >= run.last_step_nanos {
            run.last_step_nanos = end;
            run.step = Some(number);
        }
        run.last_nanos = run.last_nanos.max(end);
        if !run.first_nanos.is_known() || start < run.first_nanos {
            run.first_nanos = start;
        }
    } else if !span.parent_span_id.is_empty() {
        run.steps.phase(key, ids, &name, start, end, max_steps);
    }
    Ok(())
}
