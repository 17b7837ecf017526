//! Maps the slice names of both of Tunix's formats to spans of the registry.
//!
//! The names are defined in `tunix/perf/experimental/constants.py` (version 2). Version 1 uses literals at every `span` and
//! `span_group` of `tunix/rl` and `tunix/sft`.

use pulsetrain_mapping::{CoverageRow, coverage_rules};
use std::collections::HashSet;

use pulsetrain_semconv::{
    self as semconv, attribute, metric,
    span::{
        PERF_DATA, PERF_STAGE, RL_ACTOR_TRAIN, RL_ACTOR_TRAIN_LOOP, RL_ADVANTAGE, RL_CRITIC_TRAIN,
        RL_CRITIC_TRAIN_LOOP, RL_ENVIRONMENT, RL_OLD_ACTOR_INFERENCE, RL_QUEUE, RL_REFERENCE_INFERENCE,
        RL_ROLLOUT, RL_WEIGHT_SYNC, TRAIN_MICRO_BATCHES, TRAIN_MINI_BATCH, TRAIN_STEP,
    },
};

use super::slice_name::SliceName;
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

/// One name of a slice and its span.
#[derive(Debug)]
struct Name {
    upstream: &'static str,
    span: &'static semconv::Span,
    /// The role that does such work, or `None` if several do.
    role: Option<&'static str>,
}

const fn name(upstream: &'static str, span: &'static semconv::Span, role: Option<&'static str>) -> Name {
    Name { upstream, span, role }
}

pub(super) const STEP: &str = "global_step";
pub(super) const MINI_BATCH: &str = "mini_batch_step";
pub(super) const MICRO_BATCHES: &str = "micro_batch_steps";
pub(super) const ACTOR_LOOP: &str = "actor_training";
pub(super) const CRITIC_LOOP: &str = "critic_training";

static NAMES: &[Name] = &[
    name(STEP, &TRAIN_STEP, None),
    name(MINI_BATCH, &TRAIN_MINI_BATCH, None),
    name(MICRO_BATCHES, &TRAIN_MICRO_BATCHES, None),
    name(ACTOR_LOOP, &RL_ACTOR_TRAIN_LOOP, Some("actor")),
    name(CRITIC_LOOP, &RL_CRITIC_TRAIN_LOOP, Some("critic")),
    name("data_loading", &PERF_DATA, None),
    name("rollout", &RL_ROLLOUT, Some("rollout")),
    name("refer_inference", &RL_REFERENCE_INFERENCE, Some("reference")),
    name("reference_inference", &RL_REFERENCE_INFERENCE, Some("reference")),
    name("old_actor_inference", &RL_OLD_ACTOR_INFERENCE, Some("actor")),
    name("advantage_computation", &RL_ADVANTAGE, None),
    name("peft_train_step", &RL_ACTOR_TRAIN, Some("actor")),
    name("peft_train", &RL_ACTOR_TRAIN, Some("actor")),
    name("weight_sync", &RL_WEIGHT_SYNC, None),
    name("environment", &RL_ENVIRONMENT, None),
    name("queue", &RL_QUEUE, None),
];

/// The span for a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanKind {
    pub(super) span: &'static semconv::Span,
    pub(super) role: Option<&'static str>,
    /// Whether the table has the name.
    pub(super) is_known: bool,
}

/// Returns the span of a slice. `is_of_critic` selects the critic's training.
pub(super) fn span_kind(parsed: &SliceName, is_of_critic: bool) -> SpanKind {
    let is_of_critic = is_of_critic || parsed.role.as_deref() == Some("critic");
    let (span, role, is_known) = match find(&parsed.name) {
        None => (&PERF_STAGE, None, false),
        Some(name) if is_of_critic && name.span.name == RL_ACTOR_TRAIN.name => {
            (&RL_CRITIC_TRAIN, Some("critic"), true)
        }
        Some(name) => (name.span, name.role, true),
    };
    SpanKind { span, role, is_known }
}

/// The unknown names that have been reported.
#[derive(Debug, Default)]
pub(super) struct UnknownNames(HashSet<String>);

impl UnknownNames {
    /// Reports the name of a slice once if the table lacks it.
    pub(super) fn report_once(&mut self, parsed: &SliceName, recorder: &mut Recorder<'_>) {
        let is_new =
            find(&parsed.name).is_none() && !self.0.contains(&parsed.name) && self.0.len() < MAX_UNKNOWN;
        if is_new {
            recorder.report(SkipReason::UnknownName, SourcePosition::default(), || {
                parsed.name.clone()
            });
            self.0.insert(parsed.name.clone());
        }
    }
}

/// The most unknown names that are reported. A trace with more has variable parts in its names.
const MAX_UNKNOWN: usize = 1000;

/// Returns the span name of a slice name.
pub(super) fn span_name(upstream: &str) -> Option<&'static str> {
    find(upstream).map(|name| name.span.name)
}

/// Returns the role that does the work of this name.
pub(super) fn role(upstream: &str) -> Option<&'static str> {
    find(upstream)?.role
}

/// Returns whether slices of this name contain others in a trace of version 1 (`span_group`). Unknown names may.
pub(super) fn is_group(upstream: &str) -> bool {
    matches!(
        upstream,
        STEP | MINI_BATCH | MICRO_BATCHES | ACTOR_LOOP | CRITIC_LOOP
    ) || find(upstream).is_none()
}

/// Returns whether a group that was open when a slice began can be the slice's parent. A training loop is opened on all
/// threads, and concurrent work of other threads is not part of it.
pub(super) fn may_contain(group: &str, slice: &str) -> bool {
    let is_loop = matches!(group, ACTOR_LOOP | CRITIC_LOOP);
    !is_loop || find(slice).is_none_or(|name| name.span.name == RL_ACTOR_TRAIN.name)
}

fn find(upstream: &str) -> Option<&'static Name> {
    NAMES.iter().find(|name| name.upstream == upstream)
}

/// Returns the coverage table: every name, tag and track with its conversion.
pub(super) fn coverage() -> Vec<CoverageRow> {
    let names = NAMES.iter().map(|name| CoverageRow {
        record: "",
        key: name.upstream.into(),
        name: name.span.name.into(),
        attributes: name
            .role
            .map_or_else(String::new, |role| format!("{}={role}", attribute::RL_ROLE.name)),
        conversion: "a span".to_owned(),
    });
    let others = coverage_rules! {
        "(any other name)" =>
            PERF_STAGE.name, "a span whose `perf.stage` is the name; each name is reported once";
        "step" =>
            attribute::TRAIN_STEP.name, "version 2: the tag; version 1: steps count from 0 in their order in the file";
        "mini_batch" =>
            attribute::TRAIN_MINI_BATCH.name, "version 2: the tag; version 1: the number of the group inside its step";
        "micro_batch" =>
            attribute::TRAIN_MICRO_BATCH.name, "version 2: the tag; version 1: the number of the loop inside its mini-batch";
        "role" => attribute::RL_ROLE.name, "the tag; else the role that does such work";
        "group_id" => attribute::RL_GROUP_ID.name, "as text";
        "pair_index" => attribute::RL_PAIR_INDEX.name, "as it is";
        "name" => attribute::RL_QUEUED.name, "the name of the span that waited";
        "(any other tag)" => attribute::PERF_TAGS.name, "as it is written";
        "Main, Main -- thread N, Rollout, Reference, Actor, host-N, tpuN, tpuN_queue" =>
            attribute::PERF_TIMELINE.name, "the name of the track; lanes are merged";
        "tpuN" => attribute::DEVICE_ID.name, "on the tracks of devices";
        "Actor, Reference Cluster" => attribute::RL_MESH.name, "the roles, each in lower case";
        "global_step on every thread" => "(left out but once: a group is opened on all timelines)", "";
        "perf/global_step_time" => metric::PERF_GLOBAL_STEP_TIME.name, "computed, version 1";
        "perf/weight_sync_time" =>
            metric::PERF_WEIGHT_SYNC_TIME.name, "computed; zero in version 1 if nothing is synchronised";
        "perf/sum/rollout_time, perf/mean/rollout_time" => metric::PERF_ROLLOUT_TIME.name, "computed";
        "perf/sum/refer_inference_time, perf/mean/refer_inference_time" =>
            metric::PERF_REFER_INFERENCE_TIME.name, "computed";
        "old_actor_inference" =>
            metric::PERF_OLD_ACTOR_INFERENCE_TIME.name, "computed; upstream has no such metric";
        "perf/sum/actor_train_time, perf/mean/actor_train_time" =>
            metric::PERF_ACTOR_TRAIN_TIME.name, "computed, version 1";
        "perf/sum/actor_train_step_time, perf/mean/actor_train_step_time" =>
            metric::PERF_ACTOR_TRAIN_STEP_TIME.name, "computed";
        "perf/first_micro_batch_rollout_time" =>
            metric::PERF_FIRST_MICRO_BATCH_ROLLOUT_TIME.name, "computed, version 1";
        "perf/rollout_idle_time" => metric::PERF_ROLLOUT_IDLE_TIME.name, "computed";
        "perf/sum/between_micro_batch_gap_time, perf/mean/between_micro_batch_gap_time" =>
            metric::PERF_BETWEEN_MICRO_BATCH_GAP_TIME.name, "computed from version 1, by another formula than upstream: see TUNIX_TRACES.md";
        "perf/sum/refer_gap_time, perf/mean/refer_gap_time" =>
            metric::PERF_REFER_GAP_TIME.name, "computed, by another formula than upstream: see TUNIX_TRACES.md";
        "perf/sum/actor_gap_time, perf/mean/actor_gap_time" =>
            metric::PERF_ACTOR_GAP_TIME.name, "computed from version 1, by another formula than upstream: see TUNIX_TRACES.md";
    };
    names.chain(others).collect()
}
