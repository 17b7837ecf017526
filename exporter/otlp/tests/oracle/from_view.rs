//! Converts the views into prost types, field by field.

use opentelemetry_proto::tonic::{
    common::v1 as common,
    logs::v1 as logs,
    resource::v1 as resource,
    trace::v1::{self as trace, span},
};
use pulsetrain_otlp::view::{
    AnyValue, EntityRef, InstrumentationScope, KeyValue, LogRecord, LogsData, Message, Repeated, Resource,
    ResourceLogs, ResourceSpans, ScopeLogs, ScopeSpans, Span, SpanEvent, SpanLink, Status, Text, Texts,
    TracesData,
};

/// A view that has a prost type.
pub(crate) trait ToProst {
    type Prost;

    fn to_prost(&self) -> Self::Prost;
}

fn list<'a, M: Message<'a> + ToProst>(list: Repeated<'a, M>) -> Vec<M::Prost> {
    let length = list.len();
    let all: Vec<M::Prost> = list
        .into_iter()
        .map(|message| message.unwrap().to_prost())
        .collect();
    assert_eq!(all.len(), length);
    all
}

fn one<M: ToProst>(message: Option<M>) -> Option<M::Prost> {
    message.map(|message| message.to_prost())
}

fn text(text: Text<'_>) -> String {
    text.to_str().unwrap().to_owned()
}

fn texts(list: Texts<'_>) -> Vec<String> {
    list.iter().map(|item| text(item.unwrap())).collect()
}

fn id(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

fn same<T>(value: T) -> T {
    value
}

/// Implements [`ToProst`]: the function after each field converts it.
macro_rules! fields {
    ($($view:ident => $($prost:ident)::+ { $($field:ident: $convert:ident),* $(,)? })*) => {$(
        impl ToProst for $view<'_> {
            type Prost = $($prost)::+;

            fn to_prost(&self) -> Self::Prost {
                $($prost)::+ { $($field: $convert(self.$field)),* }
            }
        }
    )*};
}

// The path is spelled out because the fuzz targets include this file by its path too.
#[path = "from_view/metrics.rs"]
mod metrics;

fields! {
    TracesData => trace::TracesData { resource_spans: list }
    ResourceSpans => trace::ResourceSpans { resource: one, scope_spans: list, schema_url: text }
    ScopeSpans => trace::ScopeSpans { scope: one, spans: list, schema_url: text }
    Span => trace::Span {
        trace_id: id, span_id: id, trace_state: text, parent_span_id: id, flags: same, name: text,
        kind: same, start_time_unix_nano: same, end_time_unix_nano: same, attributes: list,
        dropped_attributes_count: same, events: list, dropped_events_count: same, links: list,
        dropped_links_count: same, status: one,
    }
    SpanEvent => span::Event {
        time_unix_nano: same, name: text, attributes: list, dropped_attributes_count: same,
    }
    SpanLink => span::Link {
        trace_id: id, span_id: id, trace_state: text, attributes: list, dropped_attributes_count: same,
        flags: same,
    }
    Status => trace::Status { message: text, code: same }
    LogsData => logs::LogsData { resource_logs: list }
    ResourceLogs => logs::ResourceLogs { resource: one, scope_logs: list, schema_url: text }
    ScopeLogs => logs::ScopeLogs { scope: one, log_records: list, schema_url: text }
    LogRecord => logs::LogRecord {
        time_unix_nano: same, observed_time_unix_nano: same, severity_number: same, severity_text: text,
        body: one, attributes: list, dropped_attributes_count: same, flags: same, trace_id: id, span_id: id,
        event_name: text,
    }
    Resource => resource::Resource { attributes: list, dropped_attributes_count: same, entity_refs: list }
    EntityRef => common::EntityRef { schema_url: text, r#type: text, id_keys: texts, description_keys: texts }
    InstrumentationScope => common::InstrumentationScope {
        name: text, version: text, attributes: list, dropped_attributes_count: same,
    }
    KeyValue => common::KeyValue { key: text, value: one, key_strindex: same }
}

impl ToProst for AnyValue<'_> {
    type Prost = common::AnyValue;

    fn to_prost(&self) -> Self::Prost {
        use common::any_value::Value;
        let value = match *self {
            Self::Empty => None,
            Self::String(value) => Some(Value::StringValue(text(value))),
            Self::Bool(value) => Some(Value::BoolValue(value)),
            Self::Int(value) => Some(Value::IntValue(value)),
            Self::Double(value) => Some(Value::DoubleValue(value)),
            Self::Array(values) => Some(Value::ArrayValue(common::ArrayValue { values: list(values) })),
            Self::Map(values) => Some(Value::KvlistValue(common::KeyValueList { values: list(values) })),
            Self::Bytes(value) => Some(Value::BytesValue(value.to_vec())),
            Self::StringIndex(value) => Some(Value::StringValueStrindex(value)),
        };
        common::AnyValue { value }
    }
}
