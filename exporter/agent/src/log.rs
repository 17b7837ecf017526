//! The log of a command: every message at or above a level on standard error, as text or as JSON lines.
//!
//! Level and format belong to the process, because libraries report messages from any thread. The flags of the command line
//! override the configuration, also after a reload.

use std::{
    fmt::Display,
    io::Write,
    panic,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use clap::{Args, ValueEnum};
use pulsetrain_pipeline::clock;
use serde::{Deserialize, Serialize};

use crate::terminal;

static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);
static IS_JSON: AtomicBool = AtomicBool::new(false);
static ARGUMENTS: OnceLock<LogArguments> = OnceLock::new();

/// How severe a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Something failed or was lost.
    Error,
    /// Something needs attention, or is retried.
    Warn,
    /// A state that changed.
    Info,
    /// A step of the agent's own work.
    Debug,
}

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// `pulsetrain: sink tempo: delivers`.
    Text,
    /// One object a line: `time` (RFC 3339, UTC), `level`, `message`, and `sink` or `source`.
    Json,
}

/// The subject of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// The command.
    Program,
    /// A place that is part of the message, such as `agent.yaml:3:7`: text has no prefix, so that editors recognise it.
    Place,
    /// The sink of this name.
    Sink(&'a str),
    /// The source of this name.
    Source(&'a str),
}

/// The flags of the commands that log.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct LogArguments {
    /// The minimum level of messages on standard error [default: log.level of the configuration, else info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Level>,

    /// The format of messages on standard error: text, or one JSON object per line [default: log.format of the configuration, else
    /// text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,
}

/// A line of JSON.
#[derive(Serialize)]
struct Record<'a> {
    time: String,
    level: Level,
    #[serde(skip_serializing_if = "Option::is_none")]
    sink: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    message: &'a str,
}

/// Sets level and format from the command line, for the rest of the process.
pub(crate) fn start(arguments: LogArguments) {
    // A process has one command line.
    let _ = ARGUMENTS.set(arguments);
    configure(Level::Info, Format::Text);
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if is_json() {
            error(Subject::Program, panicked);
        } else {
            default_hook(panicked);
        }
    }));
}

/// Sets level and format from the configuration, unless a flag sets them.
pub(crate) fn configure(level: Level, format: Format) {
    let arguments = ARGUMENTS.get().copied().unwrap_or_default();
    let level = arguments.log_level.unwrap_or(level);
    let format = arguments.log_format.unwrap_or(format);
    LEVEL.store(level as u8, Ordering::Relaxed);
    IS_JSON.store(format == Format::Json, Ordering::Relaxed);
}

/// Returns whether messages are JSON lines.
pub(crate) fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// Logs a failure or a loss.
pub(crate) fn error(subject: Subject<'_>, message: impl Display) {
    write(Level::Error, subject, message);
}

/// Logs an event that needs attention, or is retried.
pub(crate) fn warn(subject: Subject<'_>, message: impl Display) {
    write(Level::Warn, subject, message);
}

/// Logs a change of state.
pub(crate) fn info(subject: Subject<'_>, message: impl Display) {
    write(Level::Info, subject, message);
}

/// Logs a step of the agent's own work.
pub(crate) fn debug(subject: Subject<'_>, message: impl Display) {
    write(Level::Debug, subject, message);
}

/// Logs a message of this level.
pub(crate) fn write(level: Level, subject: Subject<'_>, message: impl Display) {
    if level as u8 <= LEVEL.load(Ordering::Relaxed) {
        emit(level, subject, message);
    }
}

fn emit(level: Level, subject: Subject<'_>, message: impl Display) {
    let message = message.to_string();
    let line = if is_json() {
        json(level, subject, &message, clock::unix_now().as_nanos())
    } else {
        text(subject, &message)
    };
    // One write per line, so that lines of several threads do not mix. A failed write to the log is ignored.
    let _ = terminal::stderr().write_all(line.as_bytes());
}

/// Logs each line of a text, such as a summary, as a separate record.
pub(crate) fn write_lines(level: Level, text: &str) {
    text.lines().for_each(|line| write(level, Subject::Place, line));
}

/// Like [`write_lines`], regardless of the log level: the user requested the text.
pub(crate) fn print_lines(level: Level, text: &str) {
    text.lines().for_each(|line| emit(level, Subject::Place, line));
}

fn text(subject: Subject<'_>, message: &str) -> String {
    match subject {
        Subject::Program => format!("pulsetrain: {message}\n"),
        Subject::Place => format!("{message}\n"),
        Subject::Sink(name) => format!("pulsetrain: sink {name}: {message}\n"),
        Subject::Source(name) => format!("pulsetrain: source {name}: {message}\n"),
    }
}

fn json(level: Level, subject: Subject<'_>, message: &str, unix_nanos: u128) -> String {
    let micros = i64::try_from(unix_nanos / 1_000).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or_default();
    let record = Record {
        time: format!("{time:.6}"),
        level,
        sink: match subject {
            Subject::Sink(name) => Some(name),
            _ => None,
        },
        source: match subject {
            Subject::Source(name) => Some(name),
            _ => None,
        },
        message,
    };
    terminal::json_line(&record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_log_line_has_time_level_message_and_subject() {
        let line = json(
            Level::Warn,
            Subject::Sink("tempo"),
            "fails: \"401\"\nnow",
            1_700_000_000_000_001_500,
        );
        assert_eq!(
            line,
            "{\"time\":\"2023-11-14T22:13:20.000001Z\",\"level\":\"warn\",\"sink\":\"tempo\",\"message\":\"fails: \\\"401\\\"\\nnow\"}\n"
        );
        let line = json(Level::Debug, Subject::Source("gpu"), "m", 0);
        assert!(
            line.contains("\"source\":\"gpu\"") && !line.contains("sink"),
            "{line}"
        );
    }

    #[test]
    fn text_log_line_names_the_subject_or_starts_with_the_location() {
        assert_eq!(text(Subject::Program, "ready"), "pulsetrain: ready\n");
        assert_eq!(
            text(Subject::Sink("o"), "delivers"),
            "pulsetrain: sink o: delivers\n"
        );
        assert_eq!(text(Subject::Source("gpu"), "m"), "pulsetrain: source gpu: m\n");
        assert_eq!(text(Subject::Place, "agent.yaml:1:2: m"), "agent.yaml:1:2: m\n");
    }
}
