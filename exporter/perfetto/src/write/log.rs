//! Log lines, which viewers list separately from the tracks.

/// The priority of a log line, with the numbers of Android's log (`android/common/android_log_constants.proto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogPriority {
    /// Details for tracing.
    Verbose = 2,
    /// Details for debugging.
    Debug = 3,
    /// Information.
    Info = 4,
    /// A possible error.
    Warn = 5,
    /// An error.
    Error = 6,
    /// An error that ends the program.
    Fatal = 7,
}

/// A log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// The priority.
    pub priority: LogPriority,
    /// The tag, which names the writer of the line.
    pub tag: &'a [u8],
    /// The message.
    pub message: &'a [u8],
}
