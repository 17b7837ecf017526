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

// The path is spelled out because the fuzz targets include this file by its path too.
#[path = "from_view/metrics.rs"]
mod metrics;

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

impl ToProst for TracesData<'_> {
    type Prost = trace::TracesData;

    fn to_prost(&self) -> Self::Prost {
        trace::TracesData {
            resource_spans: list(self.resource_spans),
        }
    }
}

impl ToProst for ResourceSpans<'_> {
    type Prost = trace::ResourceSpans;

    fn to_prost(&self) -> Self::Prost {
        trace::ResourceSpans {
            resource: one(self.resource),
            scope_spans: list(self.scope_spans),
            schema_url: text(self.schema_url),
        }
    }
}

impl ToProst for ScopeSpans<'_> {
    type Prost = trace::ScopeSpans;

    fn to_prost(&self) -> Self::Prost {
        trace::ScopeSpans {
            scope: one(self.scope),
            spans: list(self.spans),
            schema_url: text(self.schema_url),
        }
    }
}

impl ToProst for Span<'_> {
    type Prost = trace::Span;

    fn to_prost(&self) -> Self::Prost {
        trace::Span {
            trace_id: self.trace_id.to_vec(),
            span_id: self.span_id.to_vec(),
            trace_state: text(self.trace_state),
            parent_span_id: self.parent_span_id.to_vec(),
            flags: self.flags,
            name: text(self.name),
            kind: self.kind,
            start_time_unix_nano: self.start_time_unix_nano,
            end_time_unix_nano: self.end_time_unix_nano,
            attributes: list(self.attributes),
            dropped_attributes_count: self.dropped_attributes_count,
            events: list(self.events),
            dropped_events_count: self.dropped_events_count,
            links: list(self.links),
            dropped_links_count: self.dropped_links_count,
            status: one(self.status),
        }
    }
}

impl ToProst for SpanEvent<'_> {
    type Prost = span::Event;

    fn to_prost(&self) -> Self::Prost {
        span::Event {
            time_unix_nano: self.time_unix_nano,
            name: text(self.name),
            attributes: list(self.attributes),
            dropped_attributes_count: self.dropped_attributes_count,
        }
    }
}

impl ToProst for SpanLink<'_> {
    type Prost = span::Link;

    fn to_prost(&self) -> Self::Prost {
        span::Link {
            trace_id: self.trace_id.to_vec(),
            span_id: self.span_id.to_vec(),
            trace_state: text(self.trace_state),
            attributes: list(self.attributes),
            dropped_attributes_count: self.dropped_attributes_count,
            flags: self.flags,
        }
    }
}

impl ToProst for Status<'_> {
    type Prost = trace::Status;

    fn to_prost(&self) -> Self::Prost {
        trace::Status {
            message: text(self.message),
            code: self.code,
        }
    }
}

impl ToProst for LogsData<'_> {
    type Prost = logs::LogsData;

    fn to_prost(&self) -> Self::Prost {
        logs::LogsData {
            resource_logs: list(self.resource_logs),
        }
    }
}

impl ToProst for ResourceLogs<'_> {
    type Prost = logs::ResourceLogs;

    fn to_prost(&self) -> Self::Prost {
        logs::ResourceLogs {
            resource: one(self.resource),
            scope_logs: list(self.scope_logs),
            schema_url: text(self.schema_url),
        }
    }
}

impl ToProst for ScopeLogs<'_> {
    type Prost = logs::ScopeLogs;

    fn to_prost(&self) -> Self::Prost {
        logs::ScopeLogs {
            scope: one(self.scope),
            log_records: list(self.log_records),
            schema_url: text(self.schema_url),
        }
    }
}

impl ToProst for LogRecord<'_> {
    type Prost = logs::LogRecord;

    fn to_prost(&self) -> Self::Prost {
        logs::LogRecord {
            time_unix_nano: self.time_unix_nano,
            observed_time_unix_nano: self.observed_time_unix_nano,
            severity_number: self.severity_number,
            severity_text: text(self.severity_text),
            body: one(self.body),
            attributes: list(self.attributes),
            dropped_attributes_count: self.dropped_attributes_count,
            flags: self.flags,
            trace_id: self.trace_id.to_vec(),
            span_id: self.span_id.to_vec(),
            event_name: text(self.event_name),
        }
    }
}

impl ToProst for Resource<'_> {
    type Prost = resource::Resource;

    fn to_prost(&self) -> Self::Prost {
        resource::Resource {
            attributes: list(self.attributes),
            dropped_attributes_count: self.dropped_attributes_count,
            entity_refs: list(self.entity_refs),
        }
    }
}

impl ToProst for EntityRef<'_> {
    type Prost = common::EntityRef;

    fn to_prost(&self) -> Self::Prost {
        common::EntityRef {
            schema_url: text(self.schema_url),
            r#type: text(self.r#type),
            id_keys: texts(self.id_keys),
            description_keys: texts(self.description_keys),
        }
    }
}

impl ToProst for InstrumentationScope<'_> {
    type Prost = common::InstrumentationScope;

    fn to_prost(&self) -> Self::Prost {
        common::InstrumentationScope {
            name: text(self.name),
            version: text(self.version),
            attributes: list(self.attributes),
            dropped_attributes_count: self.dropped_attributes_count,
        }
    }
}

impl ToProst for KeyValue<'_> {
    type Prost = common::KeyValue;

    fn to_prost(&self) -> Self::Prost {
        common::KeyValue {
            key: text(self.key),
            value: one(self.value),
            key_strindex: self.key_strindex,
        }
    }
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
