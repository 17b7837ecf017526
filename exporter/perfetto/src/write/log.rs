//! Log lines, which viewers list apart from the tracks.

/// How much a log line matters, in the numbers of Android's log (`android/common/android_log_constants.proto`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogPriority {
    /// Of use to whoever looks into the last detail.
    Verbose = 2,
    /// Of use to whoever wrote the program.
    Debug = 3,
    /// Worth knowing.
    Info = 4,
    /// Perhaps wrong.
    Warn = 5,
    /// Wrong.
    Error = 6,
    /// The end.
    Fatal = 7,
}

/// A log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// How much it matters.
    pub priority: LogPriority,
    /// What wrote it.
    pub tag: &'a [u8],
    /// The message.
    pub message: &'a [u8],
}
