//! Keys of annotations for values without a Perfetto type; a reader of full traces needs them too.

/// The key of a map that holds bytes as base64.
pub const BYTES: &str = "otel.bytes";

/// The key of a map that represents an empty value: its text is `null`, `list` or `map`.
pub const EMPTY: &str = "otel.empty";

/// The attribute of a trace whose spans are on the rows of their traces.
pub const BY_TRACE: &str = "pulsetrain.by";

/// The attribute of a trace with the version of the program that wrote it.
pub const VERSION: &str = "pulsetrain.version";

/// The name of the process for the rows of traces.
pub const TRACES: &str = "traces";
