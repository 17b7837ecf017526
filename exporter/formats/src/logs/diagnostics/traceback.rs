//! Collects the lines of a stack trace of Python.

use pulsetrain_record::SourcePosition;

use super::beginning;
use crate::logs::{
    lines::{Line, LineTimes},
    prefix::Prefix,
    timestamp::DateOrder,
};

/// The longest stack trace in bytes. Of a longer one the beginning and the exception are kept.
const MAX_TEXT: usize = 16 << 10;

/// The text at the end of the first line.
const HEADING: &str = "Traceback (most recent call last):";

/// The lines of the source after the place of a frame, with their markers.
const MAX_SOURCE_LINES: usize = 4;
/// The lines of the log after which a stack trace has ended: its process is gone.
const MAX_DISTANCE: u64 = 1000;

/// The usual ends of the names of exceptions.
const USUAL_ENDS: [&str; 4] = ["Error", "Exception", "Exit", "Interrupt"];

/// A stack trace.
#[derive(Debug)]
pub(super) struct Traceback {
    text: String,
    /// The indentation of the first line, which launchers add to each.
    indentation: usize,
    start: SourcePosition,
    times: LineTimes,
    /// The lines of the source that can follow.
    source_lines: usize,
    /// Whether a line of another process is between the last frame and the next line.
    is_interrupted: bool,
    /// The line of the exception, which ends the stack trace.
    exception: Option<String>,
}

impl Traceback {
    /// Returns the text before the heading, if a line ends with one.
    pub(super) fn split_heading(text: &str) -> Option<&str> {
        let is_possible = text.ends_with(':');
        is_possible.then(|| text.strip_suffix(HEADING))?
    }

    /// Begins at a line, given the text before the heading.
    pub(super) fn new(first: &Line<'_>, before: &str) -> Self {
        Self {
            text: HEADING.to_owned(),
            indentation: if before.trim().is_empty() { before.len() } else { 0 },
            start: first.position(),
            times: first.times(),
            source_lines: 0,
            is_interrupted: false,
            exception: None,
        }
    }

    /// Adds the next line, and returns whether it is part of the stack trace.
    pub(super) fn add(&mut self, line: &str) -> bool {
        let line = self.without_margin(line);
        let is_frame = self.is_frame(line);
        let is_exception = !is_frame && is_exception(line, self.is_interrupted);
        self.is_interrupted = !is_frame;
        if is_frame && self.text.len() < MAX_TEXT || is_exception {
            self.text.push('\n');
            self.text.push_str(beginning(line, MAX_TEXT / 2));
        }
        if is_exception {
            self.exception = Some(beginning(line, MAX_TEXT / 2).to_owned());
        }
        is_frame || is_exception
    }

    /// Removes the indentation of the first line, and the prefix of a logger.
    fn without_margin<'l>(&self, line: &'l str) -> &'l str {
        let spaces = line.len() - line.trim_start_matches([' ', '\t']).len();
        let line = &line[spaces.min(self.indentation)..];
        if line.starts_with([' ', '\t']) {
            return line;
        }
        let prefix = Prefix::parse(line, self.times.observed, &DateOrder::default());
        match prefix.len {
            0 => line,
            len => prefix.gap.skip(&line[len..]),
        }
    }

    /// Returns whether a line is a frame or a line of its source: other lines of a trainer can be indented too.
    fn is_frame(&mut self, line: &str) -> bool {
        // The margin of a group of exceptions.
        let line = line.trim_start_matches(['|', '+']);
        let inner = line.trim_start_matches([' ', '\t', '|', '+']);
        if inner.is_empty() || inner.starts_with("[Previous line repeated") {
            return true;
        }
        if inner.starts_with("File \"") && line != inner {
            self.source_lines = MAX_SOURCE_LINES;
            return true;
        }
        let is_source = self.source_lines > 0 && (line.starts_with("    ") || line.starts_with('\t'));
        self.source_lines = if is_source { self.source_lines - 1 } else { 0 };
        is_source
    }

    /// Returns whether the trace is so far before a line that its end is lost.
    pub(super) fn is_abandoned(&self, position: SourcePosition) -> bool {
        position.line > self.start.line + MAX_DISTANCE
    }

    /// Returns whether the line of the exception is still to come.
    pub(super) fn is_open(&self) -> bool {
        self.exception.is_none()
    }

    pub(super) fn start(&self) -> SourcePosition {
        self.start
    }

    pub(super) fn times(&self) -> LineTimes {
        self.times
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

/// Returns whether a line is that of an exception. After lines of another process only a usual name shows it.
fn is_exception(line: &str, is_interrupted: bool) -> bool {
    exception_name(line).is_some_and(|name| {
        let class = name.split('(').next().unwrap_or(name);
        !is_interrupted || USUAL_ENDS.iter().any(|end| class.ends_with(end))
    })
}

/// Returns the type in the line of an exception: `torch.OutOfMemoryError: CUDA out of memory`, `KeyboardInterrupt`,
/// `ray.exceptions.RayTaskError(ValueError): ...`.
fn exception_name(line: &str) -> Option<&str> {
    let name = line.split(':').next()?.trim_end();
    let message = match line[name.len()..].strip_prefix(':') {
        Some(message) => message.trim_start(),
        None if line.len() == name.len() => "",
        None => return None,
    };
    let (path, cause) = match name.strip_suffix(')').and_then(|name| name.split_once('(')) {
        Some((path, cause)) => (path, Some(cause)),
        None => (name, None),
    };
    let is_identifier = |part: &str| {
        let is_start = part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        is_start
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_path = |path: &str| path.split('.').all(is_identifier);
    let class = path.rsplit('.').next()?;
    let is_usual = USUAL_ENDS.iter().any(|end| class.ends_with(end));
    let is_class = class.starts_with(|first: char| first.is_ascii_uppercase()) || path.contains('.');
    // `Loss: 2.5` and `train.loss: 2.5` are values.
    let is_value = message.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    let is_name = is_path(path) && cause.is_none_or(is_path);
    (is_name && is_class && (is_usual || !is_value)).then_some(name)
}
