//! Records events: the command of the run, its options, its messages, and statistics of tensors and memory.

use pulsetrain_mapping::record_option;
use pulsetrain_otlp::write::{Attribute, AttributeValue as Out};
use pulsetrain_semconv::{attribute, event, metric};

use super::{
    super::record::{self, Record, RecordValue},
    plan::Plan,
    unmapped_fields::UnmappedFields,
};
use pulsetrain_record::Recorder;

/// Records the bytes of every segment of the allocator, by kind of memory.
pub(super) fn allocator(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut unmapped = UnmappedFields::new(record);
    let stats = unmapped.take("stats");
    let (metric, time) = (&metric::MEMORY_SEGMENT_SIZE, record.time_unix_nanos);
    for segment in stats.iter().flat_map(|stats| list(stats)) {
        let RecordValue::Map(fields) = segment else {
            continue;
        };
        let name = record::text(fields, "name").unwrap_or_default();
        for (kind, bytes) in fields
            .iter()
            .filter_map(|(kind, value)| value.as_f64().map(|bytes| (*kind, bytes)))
        {
            let attributes = [
                (&attribute::MEMORY_SEGMENT_NAME, Out::Text(name)),
                (&attribute::MEMORY_KIND, Out::Text(kind)),
            ];
            recorder.record(metric, time, bytes, &attributes);
        }
    }
    unmapped.record(recorder);
}

/// The largest absolute value of every tensor: names of a model's own, so an event and not a metric.
pub(super) fn abs_maxes(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut unmapped = UnmappedFields::new(record);
    let maxes = unmapped.take("abs_maxes");
    let entries: Vec<(&str, Out<'_>)> = maxes
        .iter()
        .flat_map(|maxes| list(maxes))
        .filter_map(named_value)
        .collect();
    let (event, time) = (&event::TRAIN_TENSOR_ABS_MAX, record.time_unix_nanos);
    recorder.record_event(event, time, Some(Out::Map(&entries)), &[step_of(record)]);
    unmapped.record(recorder);
}

/// Converts `{"name": "x", "value": 1.5}` to an entry of a map.
fn named_value<'a>(entry: &RecordValue<'a>) -> Option<(&'a str, Out<'a>)> {
    let RecordValue::Map(fields) = entry else {
        return None;
    };
    let value = record::field(fields, "value")?.as_f64()?;
    Some((record::text(fields, "name")?, Out::Double(value)))
}

pub(super) fn command(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut unmapped = UnmappedFields::new(record);
    let command = unmapped.take("cmd");
    let words: Vec<Out<'_>> = command
        .iter()
        .flat_map(|command| list(command))
        .filter_map(|word| word.text().map(Out::Text))
        .collect();
    let attributes = [(&attribute::RUN_COMMAND, Out::List(&words))];
    recorder.record_event(&event::RUN_COMMAND, record.time_unix_nanos, None, &attributes);
    unmapped.record(recorder);
}

pub(super) fn option(record: &Record<'_>, plan: &mut Plan, recorder: &mut Recorder<'_>) {
    let mut unmapped = UnmappedFields::new(record);
    let name = unmapped.take_text("name").unwrap_or_default();
    let value = unmapped.take("value");
    plan.option(name, value);
    let nested = value.and_then(RecordValue::nested_text);
    let value = value.map_or(Out::Text(""), |value| value.as_out(nested.as_deref()));
    record_option(name, value, record.time_unix_nanos, recorder);
    unmapped.record(recorder);
}

pub(super) fn message(record: &Record<'_>, recorder: &mut Recorder<'_>) {
    let mut unmapped = UnmappedFields::new(record);
    let body = unmapped.take_text("message").map(Out::Text);
    let duration = unmapped
        .take("duration_ms")
        .and_then(|duration| duration.as_f64());
    let mut attributes = vec![step_of(record)];
    attributes.extend(duration.map(|ms| (&attribute::RUN_MESSAGE_DURATION, Out::Double(ms / 1e3))));
    recorder.record_event(&event::RUN_MESSAGE, record.time_unix_nanos, body, &attributes);
    unmapped.record(recorder);
}

fn step_of(record: &Record<'_>) -> Attribute<'static> {
    (&attribute::TRAIN_STEP, Out::Int(record.step))
}

/// Returns the elements of a list, or nothing for any other value.
fn list<'v, 'a>(value: &'v RecordValue<'a>) -> &'v [RecordValue<'a>] {
    if let RecordValue::List(values) = value {
        values
    } else {
        &[]
    }
}
