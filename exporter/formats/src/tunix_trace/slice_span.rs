//! Records the span of a slice with its attributes.

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue, SpanLink, SpanParts},
};
use pulsetrain_semconv::attribute::{
    DEVICE_ID, PERF_CLOCK, PERF_STAGE, PERF_TAGS, PERF_TIMELINE, PERF_UNFINISHED, RL_GROUP_ID, RL_MESH,
    RL_PAIR_INDEX, RL_QUEUED, RL_ROLE, TRAIN_MICRO_BATCH, TRAIN_MINI_BATCH, TRAIN_STEP,
};

use super::{
    names::{self, SpanKind},
    slice_name::SliceName,
};
use pulsetrain_record::{Recorder, ids};

/// A timeline: a thread of the host or a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) name: String,
    /// The name of the device, if the track has one.
    pub(super) device: Option<String>,
    /// Whether the timeline is a device. Its times span the call on the host until the result was ready.
    pub(super) is_device: bool,
    /// The roles that share the devices of the mesh.
    pub(super) mesh: Vec<String>,
}

/// A slice to be recorded as a span.
#[derive(Debug)]
pub(super) struct SliceSpan<'a> {
    pub(super) kind: SpanKind,
    pub(super) parsed: &'a SliceName,
    /// The mini-batch and micro-batch of the slice, from its tags or its parent.
    pub(super) mini_batch: Option<i64>,
    pub(super) micro_batch: Option<i64>,
    pub(super) timeline: &'a Timeline,
    pub(super) step: Option<i64>,
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) start_unix_nanos: UnixNanos,
    pub(super) end_unix_nanos: UnixNanos,
    pub(super) is_unfinished: bool,
    /// The link of a slice that belongs to no step.
    pub(super) link: Option<SpanLink>,
}

impl SliceSpan<'_> {
    /// Records the span in the trace of its step, or in the trace of the run.
    pub(super) fn record(&self, recorder: &mut Recorder<'_>) {
        let run = recorder.run();
        let trace_id = match self.step {
            Some(step) => ids::step_trace(run, step),
            None => ids::lifecycle_trace(run),
        };
        let mesh: Vec<AttributeValue<'_>> = self
            .timeline
            .mesh
            .iter()
            .map(|role| AttributeValue::Text(role))
            .collect();
        let attributes = self.attributes(&mesh);
        let parts = SpanParts {
            span: self.kind.span,
            trace_id,
            span_id: self.id,
            parent_span_id: self.parent,
            start_unix_nanos: self.start_unix_nanos,
            end_unix_nanos: self.end_unix_nanos,
            attributes: &attributes,
        };
        recorder.record_linked_span(&parts, self.link.as_slice());
        recorder.end_of_record();
    }

    fn attributes<'b>(&'b self, mesh: &'b [AttributeValue<'b>]) -> Vec<Attribute<'b>> {
        let parsed = self.parsed;
        let text = |text: &'b Option<String>| text.as_deref().map(AttributeValue::Text);
        let int = |number: Option<i64>| number.map(AttributeValue::Int);
        let others = Some(parsed.others.as_str()).filter(|others| !others.is_empty());
        let queued = parsed
            .queued
            .as_deref()
            .map(|name| names::span_name(name).unwrap_or(name));
        let clock = if self.timeline.is_device {
            "block_until_ready"
        } else {
            "host"
        };
        let role = parsed
            .role
            .as_deref()
            .or(self.kind.role)
            .or_else(|| self.queued_role());
        let all = [
            (&TRAIN_STEP, int(self.step)),
            (&TRAIN_MINI_BATCH, int(self.mini_batch)),
            (&TRAIN_MICRO_BATCH, int(self.micro_batch)),
            (&RL_ROLE, role.map(AttributeValue::Text)),
            (&RL_GROUP_ID, text(&parsed.group_id)),
            (&RL_PAIR_INDEX, int(parsed.pair_index)),
            (&RL_QUEUED, queued.map(AttributeValue::Text)),
            (&DEVICE_ID, text(&self.timeline.device)),
            (&RL_MESH, (!mesh.is_empty()).then_some(AttributeValue::List(mesh))),
            (&PERF_TIMELINE, Some(AttributeValue::Text(&self.timeline.name))),
            (&PERF_CLOCK, Some(AttributeValue::Text(clock))),
            (
                &PERF_STAGE,
                (!self.kind.is_known).then_some(AttributeValue::Text(&parsed.name)),
            ),
            (&PERF_TAGS, others.map(AttributeValue::Text)),
            (
                &PERF_UNFINISHED,
                self.is_unfinished.then_some(AttributeValue::Bool(true)),
            ),
        ];
        let mut attributes = Vec::with_capacity(all.len());
        attributes.extend(
            all.into_iter()
                .filter_map(|(attribute, value)| Some((attribute, value?))),
        );
        attributes
    }

    fn queued_role(&self) -> Option<&'static str> {
        names::role(self.parsed.queued.as_deref()?)
    }
}
