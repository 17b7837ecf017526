//! Builds the spans of torchtitan's structured log: `x_start` opens one, `x_end` has its duration. The nesting follows from the
//! order of an asyncio task (`task_name`), as in torchtitan's own Gantt chart.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue as Out, SpanParts},
};
use pulsetrain_semconv::{self as semconv, attribute, span};

use pulsetrain_record::{Rank, Recorder, ids};

use crate::logs::spans::listed;

/// torchtitan's spans and ours. A span without a row is a `perf.stage`.
pub(super) static SPANS: &[(&str, &semconv::Span)] = &[
    ("step", &span::TRAIN_STEP),
    ("fwd_bwd", &span::PERF_FORWARD_BACKWARD),
    ("optim", &span::PERF_OPTIMIZER),
    ("Optimizer", &span::PERF_OPTIMIZER),
    ("fetching_batch", &span::PERF_DATA),
    ("data_loading", &span::PERF_DATA),
    ("eval", &span::EVAL_RUN),
    ("checkpoint_save", &span::TRAIN_CHECKPOINT_SAVE),
    ("checkpoint_load", &span::TRAIN_CHECKPOINT_LOAD),
    ("torch_distributed_init", &span::RUN_INIT),
    // Spans of reinforcement learning.
    ("train_step", &span::TRAIN_STEP),
    ("forward_backward", &span::PERF_FORWARD_BACKWARD),
    ("model_forward", &span::PERF_FORWARD),
    ("model_backward", &span::PERF_BACKWARD),
    ("optim_step", &span::PERF_OPTIMIZER),
    ("validate", &span::EVAL_RUN),
    ("save_checkpoint", &span::TRAIN_CHECKPOINT_SAVE),
    ("push_model_state_dict", &span::RL_WEIGHT_SYNC),
    ("pull_model_state_dict", &span::RL_WEIGHT_SYNC),
];

/// The maximum number of tasks with open spans, and of open spans of a task. Spans beyond it have no parent.
const MAX_TASKS: usize = 4096;
const MAX_DEPTH: usize = 64;

/// A record of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'m> {
    pub(super) name: &'m str,
    pub(super) time_unix_nanos: UnixNanos,
    pub(super) step: Option<i64>,
    pub(super) rank: Option<i64>,
    /// The program of the span: `training`, `generator`.
    pub(super) source: &'m str,
    pub(super) task: &'m str,
    /// The tags of the step, as the log writes them.
    pub(super) tags: Option<&'m str>,
}

/// The open spans.
#[derive(Debug, Default)]
pub(super) struct OpenSpans {
    of_tasks: BTreeMap<(Option<i64>, String), Vec<Open>>,
}

#[derive(Clone, Debug)]
struct Open {
    name: Cow<'static, str>,
    span: &'static semconv::Span,
    step: Option<i64>,
    trace_id: [u8; 16],
    span_id: [u8; 8],
}

impl OpenSpans {
    /// Opens a span.
    pub(super) fn start(&mut self, mark: Mark<'_>, recorder: &mut Recorder<'_>) {
        let key = (mark.rank, mark.task.to_owned());
        if self.of_tasks.len() >= MAX_TASKS && !self.of_tasks.contains_key(&key) {
            return;
        }
        let open = self.of_tasks.entry(key).or_default();
        if open.len() < MAX_DEPTH {
            let enclosing = open.last().map(|open| open.span);
            open.push(Open::new(mark, enclosing, recorder));
        }
    }

    /// Ends and records a span with its duration in milliseconds.
    pub(super) fn end(&mut self, mark: Mark<'_>, ms: f64, recorder: &mut Recorder<'_>) {
        let start_unix_nanos = mark
            .time_unix_nanos
            .saturating_sub(Duration::from_nanos((ms.max(0.0) * 1e6).round() as u64));
        let key = (mark.rank, mark.task.to_owned());
        let (ended, outer) = match self.of_tasks.get_mut(&key) {
            Some(open) => {
                let position = open.iter().rposition(|open| open.name == mark.name);
                // Spans inside it have ended too, without a line.
                let ended = position.and_then(|position| open.drain(position..).next());
                let outer = open.last().cloned();
                if open.is_empty() {
                    self.of_tasks.remove(&key);
                }
                (ended, outer)
            }
            None => (None, None),
        };
        let ended = ended.unwrap_or_else(|| {
            let started = Mark {
                time_unix_nanos: start_unix_nanos,
                ..mark
            };
            Open::new(started, outer.as_ref().map(|outer| outer.span), recorder)
        });
        let parent = outer.filter(|outer| outer.trace_id == ended.trace_id);
        let timeline = match mark.task {
            "" => Cow::Borrowed(mark.source),
            task => Cow::Owned(format!("{}/{task}", mark.source)),
        };
        let attributes = attributes(&ended, &timeline, mark.tags);
        recorder.record_span(&SpanParts {
            span: ended.span,
            trace_id: ended.trace_id,
            span_id: ended.span_id,
            parent_span_id: parent.map(|parent| parent.span_id),
            start_unix_nanos,
            end_unix_nanos: mark.time_unix_nanos,
            attributes: &attributes,
        });
    }
}

impl Open {
    fn new(mark: Mark<'_>, enclosing: Option<&'static semconv::Span>, recorder: &mut Recorder<'_>) -> Self {
        recorder.of_rank(mark.rank.map(Rank::OfJob));
        let run = recorder.run();
        let known = SPANS.iter().find(|(theirs, _)| *theirs == mark.name);
        let name = known.map_or_else(
            || Cow::Owned(mark.name.to_owned()),
            |(theirs, _)| Cow::Borrowed(*theirs),
        );
        let known = known.map_or(&span::PERF_STAGE, |(_, ours)| *ours);
        // A part of some work is not counted as that work again.
        let span = if enclosing == Some(known) {
            &span::PERF_STAGE
        } else {
            known
        };
        let (trace_id, span_id) = match mark.step {
            Some(step) if mark.name == "step" => (ids::step_trace(run, step), ids::step_span(run, step)),
            step => {
                let trace = step.map_or_else(|| ids::lifecycle_trace(run), |step| ids::step_trace(run, step));
                let timeline = format!("{}/{}/{}", mark.source, mark.rank.unwrap_or_default(), mark.task);
                let id = ids::work_span(run, &timeline, mark.name, mark.time_unix_nanos.0, 0);
                (trace, id)
            }
        };
        Self {
            name,
            span,
            step: mark.step,
            trace_id,
            span_id,
        }
    }
}

/// Returns the attributes that the registry lists for the span.
fn attributes<'a>(ended: &'a Open, timeline: &'a str, tags: Option<&'a str>) -> Vec<Attribute<'a>> {
    let all = [
        ended.step.map(|step| (&attribute::TRAIN_STEP, Out::Int(step))),
        Some((&attribute::PERF_STAGE, Out::Text(&ended.name))),
        Some((&attribute::PERF_TIMELINE, Out::Text(timeline))).filter(|_| !timeline.is_empty()),
        tags.map(|tags| (&attribute::PERF_TAGS, Out::Text(tags))),
    ];
    listed(all.into_iter().flatten(), ended.span)
}
