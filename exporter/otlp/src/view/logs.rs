//! Views of `opentelemetry/proto/logs/v1/logs.proto`.

use super::{AnyValue, InstrumentationScope, KeyValue, Resource, message::messages};

messages! {
    /// The outermost message of log records; also the body of an export request.
    Part LogsData {
        1 resource_logs: many ResourceLogs,
    }

    /// The log records of one resource.
    Part ResourceLogs {
        1 resource: one Resource,
        2 scope_logs: many ScopeLogs,
        3 schema_url: string,
    }

    /// The log records of one instrumentation scope.
    Part ScopeLogs {
        1 scope: one InstrumentationScope,
        2 log_records: many LogRecord,
        3 schema_url: string,
    }

    /// A log record; an event if it has an event name.
    Item LogRecord {
        1 time_unix_nano: fixed64,
        11 observed_time_unix_nano: fixed64,
        2 severity_number: int32,
        3 severity_text: string,
        5 body: one AnyValue,
        6 attributes: many KeyValue,
        7 dropped_attributes_count: uint32,
        8 flags: fixed32,
        9 trace_id: id,
        10 span_id: id,
        12 event_name: string,
    }
}
