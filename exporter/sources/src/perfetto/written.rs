//! What a full trace says of what it was made of: resources and scopes, metrics, points and log records as they were
//! (`sinks/perfetto/identity.rs`, `metrics.rs`, `records.rs`).

use std::collections::{BTreeMap, HashMap, HashSet};

use pulsetrain_otlp::{
    Signal,
    descriptor::Kind,
    view::{InstrumentationScope, LogRecord, Message, Metric, Resource},
    write::Buffer,
};
use pulsetrain_perfetto::{CounterReading, TraceEvent, TrackKind};

use super::{
    envelope::{Around, Messages},
    message,
    slices::{Epoch, Instant, Slices},
    spans::KEY,
    tracks::Tracks,
    values::{self, Entries},
};

/// The fields of `Metric` that hold points (proto/metrics/v1/metrics.proto), by their names in OTLP/JSON.
const DATA: [&str; 5] = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"];
/// The field of the attributes of a resource.
const RESOURCE_ATTRIBUTES: u32 = 1;
/// The field of the attributes of a log record.
const LOG_ATTRIBUTES: u32 = 6;

/// What a trace says of its processes.
#[derive(Debug, Default)]
pub(super) struct Written<'a> {
    resources: HashMap<u64, &'a Instant>,
}

/// The metrics and points of a trace: by process and number, with what the metric says, and its points.
type Metrics<'a> = BTreeMap<(u64, u64), (Option<&'a Entries>, Buffer)>;

impl<'a> Written<'a> {
    pub(super) fn of(slices: &'a Slices) -> Self {
        let says = |instant: &&Instant| {
            said(instant).is_some_and(|said| values::number(said, "resource") == Some(1))
        };
        Self {
            resources: slices
                .instants
                .iter()
                .filter(says)
                .map(|instant| (instant.track_uuid, instant))
                .collect(),
        }
    }

    /// Whether a process says what it was.
    pub(super) fn has(&self, process: u64) -> bool {
        self.resources.contains_key(&process)
    }

    /// The numbers of the processes that say what they were, as log lines have them.
    pub(super) fn pids(&self, tracks: &Tracks) -> HashSet<i32> {
        let kinds = self.resources.keys().filter_map(|process| tracks.get(*process));
        let pid = |kind: &TrackKind| match kind {
            TrackKind::Process { pid, .. } => Some(*pid),
            _ => None,
        };
        kinds.filter_map(|track| pid(&track.kind)).collect()
    }

    /// The resource and the scope as the trace says that they were.
    pub(super) fn around(&self, process: u64, scope: u64) -> Option<Around> {
        let instant = self.resources.get(&process)?;
        let said = said(instant)?;
        let mut around = Around::default();
        values::attributes(
            RESOURCE_ATTRIBUTES,
            instant.annotations.iter().skip(1),
            &mut around.resource,
        );
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

    /// Adds the metrics that the trace says, and how many points they have.
    pub(super) fn metrics(
        &self,
        slices: &'a Slices,
        counters: &'a [TraceEvent],
        tracks: &Tracks,
        epoch: Epoch,
        messages: &mut Messages,
    ) -> u64 {
        let mut metrics = Metrics::new();
        for instant in &slices.instants {
            if let Some(said) = said(instant)
                && let Some(number) = values::number(said, "metric")
            {
                let key = (tracks.process(instant.track_uuid), number);
                metrics.entry(key).or_default().0 = Some(said);
            }
        }
        let mut points = 0;
        let carried = slices.instants.iter().map(Carried::of_instant);
        let counted = counters.iter().map(|event| Carried::of_counter(event, epoch));
        for point in carried.chain(counted).flatten() {
            let key = (tracks.process(point.track_uuid), point.metric);
            if let Some((Some(head), out)) = metrics.get_mut(&key) {
                points += 1;
                point.encode(head, out);
            }
        }
        for ((process, _), (head, points)) in &metrics {
            let Some(head) = head else { continue };
            let scope = values::number(head, "scope").unwrap_or_default();
            if let Some(around) = self.around(*process, scope) {
                around.push(Signal::Metrics, [metric(head, points)], messages);
            }
        }
        points
    }

    /// Adds the log records that the trace says, and how many they are.
    pub(super) fn logs(&self, slices: &Slices, tracks: &Tracks, messages: &mut Messages) -> u64 {
        let mut logs = BTreeMap::<(u64, u64), Vec<Buffer>>::new();
        for instant in &slices.instants {
            if let Some(said) = said(instant)
                && let Some(scope) = values::number(said, "log_of")
            {
                let mut out = Buffer::default();
                message::encode(LogRecord::descriptor(), said, &[], &mut out);
                values::attributes(LOG_ATTRIBUTES, instant.annotations.iter().skip(1), &mut out);
                let process = tracks.process(instant.track_uuid);
                logs.entry((process, scope)).or_default().push(out);
            }
        }
        let mut count = 0;
        for ((process, scope), records) in logs {
            if let Some(around) = self.around(process, scope) {
                count += records.len() as u64;
                around.push(Signal::Logs, records, messages);
            }
        }
        count
    }
}

fn said(instant: &Instant) -> Option<&Entries> {
    values::entries(&instant.annotations, KEY)
}

/// A point that the trace says.
struct Carried<'a> {
    track_uuid: u64,
    metric: u64,
    said: &'a Entries,
    /// What a counter shows, and when.
    shown: Option<(u64, Option<CounterReading>)>,
}

impl<'a> Carried<'a> {
    fn of_instant(instant: &'a Instant) -> Option<Self> {
        let said = said(instant)?;
        Some(Self {
            track_uuid: instant.track_uuid,
            metric: values::number(said, "point_of")?,
            said,
            shown: None,
        })
    }

    fn of_counter(event: &'a TraceEvent, epoch: Epoch) -> Option<Self> {
        let said = values::entries(&event.annotations, KEY)?;
        Some(Self {
            track_uuid: event.track_uuid,
            metric: values::number(said, "point_of")?,
            said,
            shown: Some((epoch.unix(event.time), event.value)),
        })
    }

    /// Adds the point to those of its metric. What it does not say, its counter shows.
    fn encode(&self, head: &Entries, points: &mut Buffer) {
        let Some(about) = data(head).and_then(|data| point_of(data.0)) else {
            return;
        };
        let mut out = Buffer::default();
        message::encode(about, self.said, &[], &mut out);
        let says = |key| values::get(self.said, key).is_some();
        if let (Some((time, value)), "NumberPoint") = (self.shown, about.name) {
            if !says("timeUnixNano") {
                out.fixed64(3, time);
            }
            if !says("asDouble") && !says("asInt") {
                match value {
                    Some(CounterReading::Double(value)) => out.double(4, value),
                    Some(CounterReading::Int(value)) => out.fixed64(6, value as u64),
                    None => {}
                }
            }
        }
        points.delimited(1, out.as_slice());
    }
}

/// The field of a metric that holds its points: its name, its number, and what it says besides.
fn data(head: &Entries) -> Option<(&'static str, u32, &pulsetrain_perfetto::AnnotationData)> {
    DATA.iter().find_map(|name| {
        let value = values::get(head, name)?;
        let (_, field) = Metric::descriptor().by_json_name(name.as_bytes())?;
        Some((*name, field.number, value))
    })
}

/// The message that the points of a metric are.
fn point_of(data: &str) -> Option<&'static pulsetrain_otlp::descriptor::MessageDescriptor> {
    let (_, field) = Metric::descriptor().by_json_name(data.as_bytes())?;
    let Kind::One(inner) = field.kind else {
        return None;
    };
    let (_, points) = inner().by_number(1)?;
    match points.kind {
        Kind::Many(point) => Some(point()),
        _ => None,
    }
}

/// A `Metric` message with its points.
fn metric(head: &Entries, points: &Buffer) -> Buffer {
    let mut out = Buffer::default();
    message::encode(Metric::descriptor(), head, &DATA, &mut out);
    if let Some((name, number, said)) = data(head) {
        let mut inner = Buffer::default();
        inner.append(points.as_slice());
        if let (Some((_, field)), pulsetrain_perfetto::AnnotationData::Map(said)) =
            (Metric::descriptor().by_json_name(name.as_bytes()), said)
            && let Kind::One(about) = field.kind
        {
            message::encode(about(), said, &[], &mut inner);
        }
        out.delimited(number, inner.as_slice());
    }
    out
}
