//! What a full trace says of what it was made of: resources and scopes as they were, and what metrics are beside their points
//! (`sinks/perfetto/identity.rs`, `metrics.rs`). It is held in memory, as the sink holds it.

use std::collections::{BTreeMap, HashMap, HashSet};

use pulsetrain_otlp::view::{InstrumentationScope, Message, Resource};
use pulsetrain_perfetto::{AnnotationData, EventKind, TraceEvent, TrackKind};
use pulsetrain_semconv::attribute;

use super::{
    envelope::Around,
    message,
    tracks::Tracks,
    values::{self, Entries},
};

/// The key of the map that says what something was.
pub(super) const KEY: &str = "otel";

/// The name of the instant that shows the attributes of a resource.
const RESOURCE: &str = "resource";

/// The field of the attributes of a resource.
const RESOURCE_ATTRIBUTES: u32 = 1;

type Said = Vec<(String, AnnotationData)>;

/// What a trace says of its processes and metrics.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By the track of the process.
    resources: HashMap<u64, Said>,
    /// The attributes of resources that say nothing else, by the track of the process.
    shown: HashMap<u64, Said>,
    pids: HashSet<i32>,
    /// By track and number.
    metrics: BTreeMap<(u64, u64), Said>,
}

impl Heads {
    /// Takes an event that says what something is; any other is given back.
    pub(super) fn take(&mut self, event: TraceEvent, tracks: &Tracks) -> Option<TraceEvent> {
        if event.kind != EventKind::Instant {
            return Some(event);
        }
        let Some(said) = said(&event.annotations) else {
            let process = tracks.get(event.track_uuid).map(|track| &track.kind);
            let has_service = event
                .annotations
                .iter()
                .any(|(key, _)| key == attribute::SERVICE_NAME.name);
            // Another program may have an event of this name.
            if event.name == RESOURCE && has_service && matches!(process, Some(TrackKind::Process { .. })) {
                self.shown.insert(event.track_uuid, event.annotations);
                return None;
            }
            return Some(event);
        };
        if values::number(said, "resource") == Some(1) {
            if let Some(TrackKind::Process { pid, .. }) =
                tracks.get(event.track_uuid).map(|track| &track.kind)
            {
                self.pids.insert(*pid);
            }
            self.resources.insert(event.track_uuid, event.annotations);
        } else if let Some(number) = values::number(said, "metric") {
            let said = said.to_vec();
            self.metrics.insert((event.track_uuid, number), said);
        } else {
            return Some(event);
        }
        None
    }

    /// The attributes of a resource that a lean trace shows.
    pub(super) fn shown(&self, process: u64) -> Option<&Entries> {
        self.shown.get(&process).map(Vec::as_slice)
    }

    /// Whether a process says what it was.
    pub(super) fn has(&self, process: u64) -> bool {
        self.resources.contains_key(&process)
    }

    /// Whether the process of this number says what it was, as far as is known.
    pub(super) fn knows_pid(&self, pid: i32) -> bool {
        self.pids.contains(&pid)
    }

    /// The metrics by their processes and numbers.
    pub(super) fn metrics(&mut self, tracks: &Tracks) -> BTreeMap<(u64, u64), Said> {
        let metrics = std::mem::take(&mut self.metrics).into_iter();
        metrics
            .map(|((track, number), said)| ((tracks.process(track), number), said))
            .collect()
    }

    /// The resource and the scope as the trace says that they were.
    pub(super) fn around(&self, process: u64, scope: u64) -> Option<Around> {
        let resource = self.resources.get(&process)?;
        let said = said(resource)?;
        let mut around = Around::default();
        values::attributes(RESOURCE_ATTRIBUTES, resource.iter().skip(1), &mut around.resource);
        message::encode(Resource::descriptor(), said, &[], &mut around.resource);
        let entry = values::maps(said, "scopes").find(|entry| values::number(entry, "number") == Some(scope));
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

/// What annotations say beside what a viewer shows.
pub(super) fn said(annotations: &Entries) -> Option<&Entries> {
    values::entries(annotations, KEY)
}
