//! Collects the lines of a stack trace of Python.

use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::SourcePosition;

use super::beginning;
use crate::logs::{lines::Line, prefix::Prefix, timestamp::DateOrder};

/// The longest stack trace in bytes. Of a longer one the beginning and the exception are kept.
const MAX_TEXT: usize = 16 << 10;

/// The text at the end of the first line.
const HEADING: &str = "Traceback (most recent call last):";

/// A stack trace.
#[derive(Debug)]
pub(super) struct Traceback {
    text: String,
    /// The indentation of the first line, which launchers add to each.
    indentation: usize,
    start: SourcePosition,
    time_unix_nanos: UnixNanos,
    /// The line of the exception, which ends the stack trace.
    exception: Option<String>,
}

impl Traceback {
    /// Returns whether a line is the first one of a stack trace.
    pub(super) fn begins(text: &str) -> bool {
        text.ends_with(':') && text.ends_with(HEADING)
    }

    pub(super) fn new(first: &Line<'_>) -> Self {
        Self {
            text: HEADING.to_owned(),
            indentation: first.text.len() - first.text.trim_start().len(),
            start: first.position(),
            time_unix_nanos: first.approximate_time(),
            exception: None,
        }
    }

    /// Adds the next line, and returns whether it is part of the stack trace.
    pub(super) fn add(&mut self, line: &str) -> bool {
        let spaces = line.len() - line.trim_start().len();
        let line = &line[spaces.min(self.indentation)..];
        let prefix = match line.starts_with([' ', '\t']) {
            true => Prefix::default(),
            false => Prefix::parse(line, self.time_unix_nanos, &DateOrder::default()),
        };
        let line = match prefix.len {
            0 => line,
            len => prefix.gap.skip(&line[len..]),
        };
        let is_frame = line.is_empty() || line.starts_with([' ', '\t', '|', '+']);
        let is_exception = !is_frame && exception_name(line).is_some();
        if is_frame && self.text.len() < MAX_TEXT || is_exception {
            self.text.push('\n');
            self.text.push_str(beginning(line, MAX_TEXT / 2));
        }
        if is_exception {
            self.exception = Some(beginning(line, MAX_TEXT / 2).to_owned());
        }
        is_frame || is_exception
    }

    /// Returns whether the line of the exception is still to come.
    pub(super) fn is_open(&self) -> bool {
        self.exception.is_none()
    }

    pub(super) fn start(&self) -> SourcePosition {
        self.start
    }

    pub(super) fn time(&self) -> UnixNanos {
        self.time_unix_nanos
    }

    /// Returns all lines.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the line of the exception, or the last line of a stack trace without one.
    pub(super) fn summary(&self) -> &str {
        let last = || self.text.lines().next_back().unwrap_or_default().trim();
        self.exception.as_deref().unwrap_or_else(last)
    }

    /// Returns the type of the exception.
    pub(super) fn type_name(&self) -> Option<&str> {
        exception_name(self.exception.as_deref()?)
    }

    /// Returns the message of the exception.
    pub(super) fn message(&self) -> Option<&str> {
        Some(self.exception.as_deref()?.split_once(": ")?.1.trim())
    }
}

/// Returns the type in the line of an exception: `torch.OutOfMemoryError: CUDA out of memory`, `KeyboardInterrupt`.
fn exception_name(line: &str) -> Option<&str> {
    let name = line.split(':').next()?.trim_end();
    let is_name = |part: &str| {
        let is_start = part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        is_start
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let class = name.rsplit('.').next()?;
    let message = match line[name.len()..].strip_prefix(':') {
        Some(message) => message.trim_start(),
        None if line.len() == name.len() => "",
        None => return None,
    };
    // `Loss: 2.5` is no exception.
    let is_usual = ["Error", "Exception", "Exit", "Interrupt"]
        .iter()
        .any(|end| class.ends_with(end));
    let is_class = class.starts_with(|first: char| first.is_ascii_uppercase())
        && (is_usual || !message.starts_with(|first: char| first.is_ascii_digit() || first == '-'));
    (is_class && name.split('.').all(is_name)).then_some(name)
}
