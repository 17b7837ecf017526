//! Views of `opentelemetry/proto/trace/v1/trace.proto`.

use super::{InstrumentationScope, KeyValue, Resource, message::messages};

messages! {
    /// The outermost message of spans; also the body of an export request.
    Part TracesData {
        1 resource_spans: many ResourceSpans,
    }

    /// The spans of one resource.
    Part ResourceSpans {
        1 resource: one Resource,
        2 scope_spans: many ScopeSpans,
        3 schema_url: string,
    }

    /// The spans of one instrumentation scope.
    Part ScopeSpans {
        1 scope: one InstrumentationScope,
        2 spans: many Span,
        3 schema_url: string,
    }

    /// One operation of a trace.
    Item Span {
        1 trace_id: id,
        2 span_id: id,
        3 trace_state: string,
        4 parent_span_id: id,
        16 flags: fixed32,
        5 name: string,
        6 kind: int32,
        7 start_time_unix_nano: fixed64,
        8 end_time_unix_nano: fixed64,
        9 attributes: many KeyValue,
        10 dropped_attributes_count: uint32,
        11 events: many SpanEvent,
        12 dropped_events_count: uint32,
        13 links: many SpanLink,
        14 dropped_links_count: uint32,
        15 status: one Status,
    }

    /// An event during a span (`Span.Event`).
    Part SpanEvent {
        1 time_unix_nano: fixed64,
        2 name: string,
        3 attributes: many KeyValue,
        4 dropped_attributes_count: uint32,
    }

    /// A pointer from one span to another (`Span.Link`).
    Part SpanLink {
        1 trace_id: id,
        2 span_id: id,
        3 trace_state: string,
        4 attributes: many KeyValue,
        5 dropped_attributes_count: uint32,
        6 flags: fixed32,
    }

    /// The status of a span.
    Part Status {
        2 message: string,
        3 code: int32,
    }
}
