//! Generates messages with every field of OTLP from random bytes.

use opentelemetry_proto::tonic::{
    common::v1::{
        AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList, any_value::Value,
    },
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
    resource::v1::Resource,
    trace::v1::{
        ResourceSpans, ScopeSpans, Span, Status, TracesData,
        span::{Event, Link},
    },
};

use crate::source::Source;

mod metrics;

/// The depth limit of nested values.
const DEPTH: u8 = 5;

/// The content that messages may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Any content.
    Any,
    /// Content that survives the serde of the prost types: no NaN and no infinities, no empty keys, no list values without
    /// elements, no fields that only profiles have.
    Serde,
}

pub(crate) struct Generator<'s> {
    source: Source<'s>,
    shape: Shape,
}

impl<'s> Generator<'s> {
    pub(crate) fn new(source: Source<'s>, shape: Shape) -> Self {
        Self { source, shape }
    }

    pub(crate) fn traces(&mut self) -> TracesData {
        TracesData {
            resource_spans: self.list(3, |this| ResourceSpans {
                resource: this.resource(),
                scope_spans: this.list(3, |this| ScopeSpans {
                    scope: this.scope(),
                    spans: this.list(4, Self::span),
                    schema_url: this.source.text(),
                }),
                schema_url: this.source.text(),
            }),
        }
    }

    pub(crate) fn logs(&mut self) -> LogsData {
        LogsData {
            resource_logs: self.list(3, |this| ResourceLogs {
                resource: this.resource(),
                scope_logs: this.list(3, |this| ScopeLogs {
                    scope: this.scope(),
                    log_records: this.list(4, Self::record),
                    schema_url: this.source.text(),
                }),
                schema_url: this.source.text(),
            }),
        }
    }

    fn span(&mut self) -> Span {
        Span {
            trace_id: self.source.bytes(),
            span_id: self.source.bytes(),
            trace_state: self.source.text(),
            parent_span_id: self.source.bytes(),
            flags: self.source.u32(),
            name: self.source.text(),
            kind: self.source.i32(),
            start_time_unix_nano: self.source.u64(),
            end_time_unix_nano: self.source.u64(),
            attributes: self.attributes(),
            dropped_attributes_count: self.source.u32(),
            events: self.list(3, |this| Event {
                time_unix_nano: this.source.u64(),
                name: this.source.text(),
                attributes: this.attributes(),
                dropped_attributes_count: this.source.u32(),
            }),
            dropped_events_count: self.source.u32(),
            links: self.list(3, |this| Link {
                trace_id: this.source.bytes(),
                span_id: this.source.bytes(),
                trace_state: this.source.text(),
                attributes: this.attributes(),
                dropped_attributes_count: this.source.u32(),
                flags: this.source.u32(),
            }),
            dropped_links_count: self.source.u32(),
            status: self.maybe(|this| Status {
                message: this.source.text(),
                code: this.source.i32(),
            }),
        }
    }

    fn record(&mut self) -> LogRecord {
        LogRecord {
            time_unix_nano: self.source.u64(),
            observed_time_unix_nano: self.source.u64(),
            severity_number: self.source.i32(),
            severity_text: self.source.text(),
            body: self.maybe(|this| this.any_value(DEPTH)),
            attributes: self.attributes(),
            dropped_attributes_count: self.source.u32(),
            flags: self.source.u32(),
            trace_id: self.source.bytes(),
            span_id: self.source.bytes(),
            event_name: self.source.text(),
        }
    }

    fn resource(&mut self) -> Option<Resource> {
        self.maybe(|this| Resource {
            attributes: this.attributes(),
            dropped_attributes_count: this.source.u32(),
            entity_refs: this.list(2, |this| EntityRef {
                schema_url: this.key(),
                r#type: this.key(),
                id_keys: this.values(Self::key),
                description_keys: this.values(Self::key),
            }),
        })
    }

    fn scope(&mut self) -> Option<InstrumentationScope> {
        self.maybe(|this| InstrumentationScope {
            name: this.source.text(),
            version: this.source.text(),
            attributes: this.attributes(),
            dropped_attributes_count: this.source.u32(),
        })
    }

    fn attributes(&mut self) -> Vec<KeyValue> {
        self.list(5, |this| this.attribute(DEPTH))
    }

    fn attribute(&mut self, depth: u8) -> KeyValue {
        let key_strindex = if self.shape == Shape::Any {
            self.source.i32()
        } else {
            0
        };
        KeyValue {
            key: self.key(),
            value: self.maybe(|this| this.any_value(depth)),
            key_strindex,
        }
    }

    fn any_value(&mut self, depth: u8) -> AnyValue {
        let value = match self.source.below(if depth == 0 { 7 } else { 9 }) {
            0 => None,
            1 => Some(Value::StringValue(self.source.text())),
            2 => Some(Value::BoolValue(self.source.chance())),
            3 => Some(Value::IntValue(self.source.i64())),
            4 => Some(Value::DoubleValue(self.double())),
            5 => Some(Value::BytesValue(self.source.bytes())),
            6 if self.shape == Shape::Any => Some(Value::StringValueStrindex(self.source.i32())),
            7 => Some(Value::ArrayValue(ArrayValue {
                values: self.values(|this| this.any_value(depth - 1)),
            })),
            8 => Some(Value::KvlistValue(KeyValueList {
                values: self.values(|this| this.attribute(depth - 1)),
            })),
            _ => None,
        };
        AnyValue { value }
    }

    fn double(&mut self) -> f64 {
        self.source.f64(self.shape == Shape::Any)
    }

    fn key(&mut self) -> String {
        let text = self.source.text();
        if text.is_empty() && self.shape == Shape::Serde {
            "key".to_owned()
        } else {
            text
        }
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.source.below(4) != 0).then(|| make(self))
    }

    fn list<T>(&mut self, end: u8, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = self.source.below(end);
        (0..length).map(|_| make(self)).collect()
    }

    /// Returns a list that is not empty if serde requires that.
    fn values<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let list = self.list(4, &mut make);
        if list.is_empty() && self.shape == Shape::Serde {
            vec![make(self)]
        } else {
            list
        }
    }
}
