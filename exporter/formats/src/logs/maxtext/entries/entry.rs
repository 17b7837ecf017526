//! Parses one entry of Cloud Logging, or its payload alone.

use pulsetrain_mapping::{Field, FieldValue};
use pulsetrain_otlp::UnixNanos;
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::xxh3_64;

use pulsetrain_record::SourcePosition;

/// The time keys that identify entries of the goodput recorder.
pub(super) const TIMES: [&str; 11] = [
    "\"step_start_time\"",
    "\"job_start_time\"",
    "\"job_end_time\"",
    "\"tpu_init_start_time\"",
    "\"tpu_init_end_time\"",
    "\"training_prep_start_time\"",
    "\"training_prep_end_time\"",
    "\"data_loading_start_time\"",
    "\"data_loading_end_time\"",
    "\"custom_badput_event_start_time\"",
    "\"elastic_slice_counts_timestamp\"",
];

/// The result of parsing an entry.
pub(super) enum Parsed {
    /// An entry of the goodput recorder, with the name of its job.
    Goodput(String, Entry),
    Another,
}

/// An entry of the goodput recorder.
#[derive(Debug)]
pub(super) struct Entry {
    /// The hash of its text, for dedup.
    pub(super) id: [u8; 8],
    pub(super) time_unix_nanos: UnixNanos,
    pub(super) mark: Mark,
    /// The other fields.
    pub(super) fields: Vec<Field<'static>>,
    /// The number of keys whose value is `null`.
    pub(super) nulls: u64,
    pub(super) position: SourcePosition,
}

/// The event that an entry marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The start of a step.
    Step(i64),
    Start(Work),
    End(Work),
    /// No event, only fields.
    Nothing,
}

/// A piece of work: the prefix of `_start_time`, and the name that an entry may have for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Work {
    pub(super) kind: String,
    pub(super) name: Option<String>,
}

impl Entry {
    /// Parses a `LogEntry` or its payload, whose source is `text`.
    pub(super) fn parse(object: &Json, text: &[u8], position: SourcePosition) -> Parsed {
        let payload = object.get("jsonPayload").unwrap_or(object);
        let read = || {
            let payload = payload.as_object()?;
            let job = payload.get("job_name")?.as_str()?.to_owned();
            Some((
                job,
                Self::of_payload(payload, xxh3_64(text).to_be_bytes(), position)?,
            ))
        };
        read().map_or(Parsed::Another, |(job, entry)| Parsed::Goodput(job, entry))
    }

    fn of_payload(payload: &Map<String, Json>, id: [u8; 8], position: SourcePosition) -> Option<Self> {
        let (key, secs) = payload.iter().find_map(|(key, value)| {
            let is_time = key.ends_with("_time") || key.ends_with("_timestamp");
            Some((key, value.as_f64().filter(|secs| is_time && *secs >= 0.0)?))
        })?;
        let kind = key
            .strip_suffix("_start_time")
            .or_else(|| key.strip_suffix("_end_time"));
        let named = kind.map(|kind| format!("{kind}_type"));
        // The type of a wait has the key of an event's type.
        let named_event = kind.map(|kind| format!("{kind}_event_type"));
        let name = |key: &Option<String>| payload.get(key.as_ref()?)?.as_str().map(str::to_lowercase);
        let work = |kind: &str| Work {
            kind: kind.to_owned(),
            name: name(&named).or_else(|| name(&named_event)),
        };
        let step = payload.get("step_count").and_then(Json::as_f64);
        let mark = match (kind, step) {
            (Some("step"), Some(step)) if key.ends_with("_start_time") => Mark::Step(step as i64),
            (Some(kind), _) if key.ends_with("_start_time") => Mark::Start(work(kind)),
            (Some(kind), _) => Mark::End(work(kind)),
            (None, _) => Mark::Nothing,
        };
        let is_consumed = |other: &str| {
            let named = [&named, &named_event];
            ["job_name", "step_count", key.as_str()].contains(&other)
                || named.iter().any(|named| named.as_deref() == Some(other))
        };
        let others = payload.iter().filter(|(key, _)| !is_consumed(key));
        let nulls = others.clone().filter(|(_, value)| value.is_null()).count();
        Some(Self {
            id,
            nulls: nulls as u64,
            time_unix_nanos: unix_nanos(secs),
            mark,
            fields: others.filter_map(|(key, value)| field(key, value)).collect(),
            position,
        })
    }
}

/// Returns the time of seconds since 1970. Python has microseconds.
fn unix_nanos(secs: f64) -> UnixNanos {
    let micros = (secs.fract() * 1e6).round() as u64;
    let nanos = (secs.trunc() as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(micros * 1_000);
    UnixNanos(nanos)
}

fn field(key: &str, value: &Json) -> Option<Field<'static>> {
    let value = match value {
        Json::Null => return None,
        Json::Number(number) => FieldValue::Number(number.as_f64()?),
        Json::Bool(is) => FieldValue::Number(f64::from(u8::from(*is))),
        Json::String(text) => FieldValue::Text(text.clone().into()),
        nested => FieldValue::Text(nested.to_string().into()),
    };
    Some((key.to_owned().into(), value))
}
