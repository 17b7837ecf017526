//! The originals in a trace with all fields: resources, scopes, and the fields of metrics besides their points
//! (`to_perfetto/identity.rs`, `metrics.rs`). Like the mapper, this module holds them in memory.

use std::collections::{BTreeMap, HashMap};

use pulsetrain_otlp::view::{InstrumentationScope, Message, Resource};
use pulsetrain_perfetto::{AnnotationData, EventKind, TraceEvent, TrackKind};
use pulsetrain_semconv::attribute;

use super::{
    message,
    resource_batches::ResourceScope,
    tracks::Tracks,
    values::{self, Entries},
};
use pulsetrain_to_perfetto::vocabulary::TRACES;

/// The key of the map of original fields.
pub(super) const KEY: &str = "otel";

/// The name of the instant that shows the attributes of a resource.
const RESOURCE: &str = "resource";

/// The field of the attributes of a resource.
const RESOURCE_ATTRIBUTES: u32 = 1;

/// Fields of OTLP with their names.
type NamedFields = Vec<(String, AnnotationData)>;

/// The original resources, scopes and metrics of a trace.
#[derive(Debug, Default)]
pub(super) struct MetricMetadata {
    /// By the track of the process.
    resources: HashMap<u64, NamedFields>,
    /// The attributes of resources without other fields, by the track of the process.
    shown: HashMap<u64, NamedFields>,
    /// The track of each process by its number.
    pids: HashMap<i32, u64>,
    /// Whether this program wrote the trace.
    pub(super) is_own: bool,
    /// Whether the spans are on the rows of their traces.
    pub(super) is_by_trace: bool,
    /// By track and number.
    metrics: BTreeMap<(u64, u64), NamedFields>,
}

impl MetricMetadata {
    /// Stores an event that contains an original; returns any other event.
    pub(super) fn take(&mut self, event: TraceEvent, tracks: &Tracks) -> Option<TraceEvent> {
        if event.kind != EventKind::Instant {
            return Some(event);
        }
        let Some(fields) = otel_fields(&event.annotations) else {
            let process = tracks.get(event.track_uuid).map(|track| &track.kind);
            let has_service = event
                .annotations
                .iter()
                .any(|(key, _)| key == attribute::SERVICE_NAME.name);
            // Another program may write an event with this name.
            if event.name == RESOURCE
                && (self.is_own || has_service)
                && matches!(process, Some(TrackKind::Process { .. }))
            {
                // The rows of traces have a process without a resource. A service can have its name.
                let is_of_traces = self.is_by_trace
                    && event.annotations.is_empty()
                    && tracks.name(event.track_uuid) == TRACES;
                if !is_of_traces {
                    self.shown.insert(event.track_uuid, event.annotations);
                }
                return None;
            }
            return Some(event);
        };
        if values::number(fields, "resource") == Some(1) {
            if let Some(TrackKind::Process { pid, .. }) =
                tracks.get(event.track_uuid).map(|track| &track.kind)
            {
                self.pids.insert(*pid, event.track_uuid);
            }
            self.resources.insert(event.track_uuid, event.annotations);
        } else if let Some(number) = values::number(fields, "metric") {
            let fields = fields.to_vec();
            self.metrics.insert((event.track_uuid, number), fields);
        } else {
            return Some(event);
        }
        None
    }

    /// Returns the attributes of a resource from a trace without all fields.
    pub(super) fn shown(&self, process: u64) -> Option<&Entries> {
        self.shown.get(&process).map(Vec::as_slice)
    }

    /// Returns whether the original resource of a process is known.
    pub(super) fn has(&self, process: u64) -> bool {
        self.resources.contains_key(&process)
    }

    /// Returns whether the original resource of the process with this pid is known so far.
    pub(super) fn knows_pid(&self, pid: i32) -> bool {
        self.pids.contains_key(&pid)
    }

    /// Returns the track of the process with this pid if its original resource is known.
    pub(super) fn process_of(&self, pid: u64) -> Option<u64> {
        self.pids.get(&i32::try_from(pid).ok()?).copied()
    }

    /// Removes and returns the metrics by their processes and numbers.
    pub(super) fn metrics(&mut self, tracks: &Tracks) -> BTreeMap<(u64, u64), NamedFields> {
        let metrics = std::mem::take(&mut self.metrics).into_iter();
        metrics
            .map(|((track, number), fields)| ((tracks.process(track), number), fields))
            .collect()
    }

    /// Returns the original resource and scope.
    pub(super) fn around(&self, process: u64, scope: u64) -> Option<ResourceScope> {
        let resource = self.resources.get(&process)?;
        let fields = otel_fields(resource)?;
        let mut around = ResourceScope::default();
        values::attributes(RESOURCE_ATTRIBUTES, resource.iter().skip(1), &mut around.resource);
        message::encode(Resource::descriptor(), fields, &[], &mut around.resource);
        let entry =
            values::maps(fields, "scopes").find(|entry| values::number(entry, "number") == Some(scope));
        if let Some(entry) = entry {
            let text = |key| values::text(entry, key).unwrap_or_default().to_owned();
            around.schema_url = text("schemaUrl");
            around.resource_schema_url = text("resourceSchemaUrl");
            let scope = values::entries(entry, "scope").unwrap_or_default();
            message::encode(InstrumentationScope::descriptor(), scope, &[], &mut around.scope);
        }
        Some(around)
    }
}

/// Returns the map of original fields in the annotations.
pub(super) fn otel_fields(annotations: &Entries) -> Option<&Entries> {
    values::entries(annotations, KEY)
}
