//! Field numbers of Perfetto's trace format, one module a message.
//!
//! They are those of `protos/perfetto/trace/` in <https://github.com/google/perfetto> at v58.2; the file is named at each
//! module. Enumerations are next to the field that carries them.

/// `trace.proto`, `Trace`.
pub(crate) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

/// `trace_packet.proto`, `TracePacket`.
pub(crate) mod packet {
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const ANDROID_LOG: u32 = 39;
    pub(crate) const COMPRESSED_PACKETS: u32 = 50;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(crate) const DEFAULTS: u32 = 59;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const FIRST_ON_SEQUENCE: u32 = 87;
    pub(crate) const TRACE_ATTRIBUTES: u32 = 126;
    pub(crate) const ZSTD_COMPRESSED_PACKETS: u32 = 133;

    pub(crate) const STATE_CLEARED: u64 = 1;
    pub(crate) const NEEDS_STATE: u64 = 2;
}

/// `trace_packet_defaults.proto`, `TracePacketDefaults`, and `track_event/track_event.proto`, `TrackEventDefaults`.
pub(crate) mod defaults {
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(crate) const EVENT_TRACK_UUID: u32 = 11;
    pub(crate) const EXTRA_COUNTER_TRACK_UUIDS: u32 = 31;
    pub(crate) const EXTRA_DOUBLE_COUNTER_TRACK_UUIDS: u32 = 45;
}

/// `clock_snapshot.proto`, `ClockSnapshot` and its `Clock`; clocks are those of `common/builtin_clock.proto`.
pub(crate) mod clock {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY: u32 = 2;
    pub(crate) const ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
    pub(crate) const IS_INCREMENTAL: u32 = 3;
    pub(crate) const UNIT_MULTIPLIER_NS: u32 = 4;

    pub(crate) const REALTIME: u64 = 1;
    pub(crate) const BOOTTIME: u64 = 6;
    /// The first id of the clocks that belong to one sequence.
    pub(crate) const FIRST_OF_SEQUENCE: u64 = 64;
    /// The first id of the custom clocks that are global to the trace.
    pub(crate) const FIRST_GLOBAL: u64 = 128;
}

/// `track_event/track_descriptor.proto`, `TrackDescriptor`.
pub(crate) mod track {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT_UUID: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const STATIC_NAME: u32 = 10;
    pub(crate) const CHILD_ORDERING: u32 = 11;
    pub(crate) const SIBLING_ORDER_RANK: u32 = 12;
    pub(crate) const DESCRIPTION: u32 = 14;
    pub(crate) const STATE: u32 = 18;
    pub(crate) const PROCESS_ORDERING: u32 = 19;

    pub(crate) const ORDER_EXPLICIT: u64 = 3;
    pub(crate) const PROCESS_ORDER_EXPLICIT: u64 = 1;
    /// The track above all processes.
    pub(crate) const ROOT_UUID: u64 = 0;
}

/// `track_event/process_descriptor.proto`, `ProcessDescriptor`.
pub(crate) mod process {
    pub(crate) const PID: u32 = 1;
    pub(crate) const LEGACY_SORT_INDEX: u32 = 3;
    pub(crate) const NAME: u32 = 6;
    pub(crate) const LABELS: u32 = 8;
}

/// `track_event/thread_descriptor.proto`, `ThreadDescriptor`.
pub(crate) mod thread {
    pub(crate) const PID: u32 = 1;
    pub(crate) const TID: u32 = 2;
    pub(crate) const NAME: u32 = 5;
}

/// `track_event/counter_descriptor.proto`, `CounterDescriptor`.
pub(crate) mod counter {
    pub(crate) const UNIT: u32 = 3;
    pub(crate) const UNIT_MULTIPLIER: u32 = 4;
    pub(crate) const IS_INCREMENTAL: u32 = 5;
    pub(crate) const UNIT_NAME: u32 = 6;
    pub(crate) const Y_AXIS_SHARE_KEY: u32 = 7;

    pub(crate) const UNIT_TIME_NS: u64 = 1;
    pub(crate) const UNIT_COUNT: u64 = 2;
    pub(crate) const UNIT_SIZE_BYTES: u64 = 3;
}

/// `track_event/track_event.proto`, `TrackEvent`.
pub(crate) mod event {
    pub(crate) const CATEGORY_IIDS: u32 = 3;
    pub(crate) const ANNOTATIONS: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const EXTRA_COUNTER_VALUES: u32 = 12;
    pub(crate) const CATEGORIES: u32 = 22;
    pub(crate) const NAME: u32 = 23;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const EXTRA_COUNTER_TRACK_UUIDS: u32 = 31;
    pub(crate) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(crate) const EXTRA_DOUBLE_COUNTER_TRACK_UUIDS: u32 = 45;
    pub(crate) const EXTRA_DOUBLE_COUNTER_VALUES: u32 = 46;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
    pub(crate) const CORRELATION_ID: u32 = 52;
    pub(crate) const CALLSTACK: u32 = 55;

    pub(crate) const SLICE_BEGIN: u64 = 1;
    pub(crate) const SLICE_END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
    pub(crate) const STATE: u64 = 5;
}

/// `track_event/track_event.proto`, `TrackEvent.Callstack` and its `Frame`.
pub(crate) mod callstack {
    pub(crate) const FRAMES: u32 = 1;
    pub(crate) const FUNCTION_NAME: u32 = 1;
    pub(crate) const SOURCE_FILE: u32 = 2;
    pub(crate) const LINE_NUMBER: u32 = 3;
}

/// `track_event/debug_annotation.proto`, `DebugAnnotation`.
pub(crate) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const UINT: u32 = 3;
    pub(crate) const INT: u32 = 4;
    pub(crate) const DOUBLE: u32 = 5;
    pub(crate) const STRING: u32 = 6;
    pub(crate) const POINTER: u32 = 7;
    pub(crate) const LEGACY_JSON: u32 = 9;
    pub(crate) const NAME: u32 = 10;
    pub(crate) const DICT_ENTRIES: u32 = 11;
    pub(crate) const ARRAY_VALUES: u32 = 12;
    pub(crate) const STRING_IID: u32 = 17;
}

/// `interned_data/interned_data.proto`, `InternedData`, and its entries.
pub(crate) mod interned {
    pub(crate) const CATEGORIES: u32 = 1;
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const ANNOTATION_NAMES: u32 = 3;
    pub(crate) const ANNOTATION_STRINGS: u32 = 29;

    pub(crate) const ENTRY_IID: u32 = 1;
    pub(crate) const ENTRY_TEXT: u32 = 2;
}

/// `android/android_log.proto`, `AndroidLogPacket` and its `LogEvent`.
pub(crate) mod log {
    pub(crate) const EVENTS: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const TID: u32 = 3;
    pub(crate) const TIMESTAMP: u32 = 5;
    pub(crate) const TAG: u32 = 6;
    pub(crate) const PRIORITY: u32 = 7;
    pub(crate) const MESSAGE: u32 = 8;
}

/// `trace_attributes.proto`, `TraceAttributes` and its `TraceAttribute`.
pub(crate) mod attributes {
    pub(crate) const ATTRIBUTE: u32 = 1;
    pub(crate) const KEY: u32 = 1;
    pub(crate) const LONG_VALUE: u32 = 2;
    pub(crate) const STRING_VALUE: u32 = 3;
}
