//! Splits a message that is too large for its receiver at the borders of resources, scopes, metrics and items.
//!
//! The split works on the wire format. A part repeats the fields of every enclosing message: resource, scope, name and
//! temporality of a metric, schema URLs, and unknown fields. No values are decoded.

use crate::{
    Signal, WireError,
    wire::{Reader, WireValue},
    write::{Buffer, delimited_len},
};

/// The limit for the total size of the parts, as a multiple of the message's size: repeated fields must not grow without
/// bound.
const MAX_GROWTH: usize = 4;

/// The maximum size of the tag and the length of a nested message: field numbers below 16, lengths below 2^35.
const FIELD_OVERHEAD: usize = 6;

/// The depth at which a message of `MetricsData` is a metric.
const METRIC: usize = 3;

/// A part of a message, itself a complete message of the same signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of spans, points or log records.
    pub items: u32,
    /// The protobuf bytes.
    pub bytes: Vec<u8>,
}

/// Splits `message` into parts of at most `max_bytes` each, in order. A single larger item is a part of its own. Returns an
/// empty list if the message fits, or cannot be split: it has only one item, or repeating the fields common to its items would
/// make it more than four times as large.
///
/// ```
/// # use pulsetrain_otlp::{Signal, split};
/// // A resource with one scope that has two log records of two bytes each.
/// let message = [0x0a, 10, 0x12, 8, 0x12, 2, 0x08, 1, 0x12, 2, 0x08, 2];
/// let parts = split::split(Signal::Logs, &message, 10)?;
/// assert_eq!(parts.len(), 2);
/// assert_eq!(parts[0].bytes, [0x0a, 6, 0x12, 4, 0x12, 2, 0x08, 1]);
/// assert!(split::split(Signal::Logs, &parts[0].bytes, 1)?.is_empty());
/// # Ok::<(), pulsetrain_otlp::WireError>(())
/// ```
///
/// # Errors
/// The message is not valid protobuf, in the parts that the split has to read.
pub fn split(signal: Signal, message: &[u8], max_bytes: usize) -> Result<Vec<Part>, WireError> {
    if message.len() <= max_bytes {
        return Ok(Vec::new());
    }
    let mut splitter = Splitter {
        signal,
        max_bytes,
        left: message.len().saturating_mul(MAX_GROWTH),
        path: Vec::with_capacity(5),
        part: Size::default(),
        parts: Vec::new(),
    };
    match splitter.message(0, message) {
        Ok(()) if splitter.parts.len() > 1 => Ok(splitter.parts),
        Ok(()) | Err(SplitError::TooMuch) => Ok(Vec::new()),
        Err(SplitError::Wire(error)) => Err(error),
    }
}

struct Splitter {
    signal: Signal,
    max_bytes: usize,
    /// The number of bytes left for further parts.
    left: usize,
    /// The messages that are being read, the outermost first.
    path: Vec<Level>,
    part: Size,
    parts: Vec<Part>,
}

/// A message that is being read, and its copy in the current part.
struct Level {
    /// The number of its field in the enclosing message.
    number: u32,
    /// All of its fields except those that are split.
    head: Vec<u8>,
    /// The split fields that belong to the current part.
    body: Vec<u8>,
    /// Whether the current part contains a piece of it.
    is_open: bool,
}

/// The current part.
#[derive(Default)]
struct Size {
    /// An upper bound of its size.
    bytes: usize,
    items: u32,
}

/// The reason why a split ends early.
enum SplitError {
    Wire(WireError),
    /// The total size of the parts exceeds the limit.
    TooMuch,
}

/// A message, divided into the fields that are split and all others.
struct Divided<'m> {
    head: Vec<u8>,
    children: Vec<(u32, &'m [u8])>,
}

impl Splitter {
    /// Splits a message that is field `number` of its enclosing message.
    fn message(&mut self, number: u32, message: &[u8]) -> Result<(), SplitError> {
        let depth = self.path.len();
        let Some(numbers) = split_fields(self.signal, depth) else {
            return self.leaf(number, message, 1);
        };
        let Divided { head, children } = divide(message, numbers).map_err(SplitError::Wire)?;
        let is_metric = self.signal == Signal::Metrics && depth == METRIC;
        // The last of several `oneof` fields counts, so they must be in the same part.
        if depth > 0 && (children.is_empty() || is_metric && children.len() > 1) {
            let items = if is_metric {
                points(&children).map_err(SplitError::Wire)?
            } else {
                0
            };
            return self.leaf(number, message, items);
        }
        self.path.push(Level {
            number,
            head,
            body: Vec::new(),
            is_open: false,
        });
        for (number, child) in children {
            self.message(number, child)?;
        }
        self.leave()
    }

    /// Adds a field that is not split to the current part, or to the next one if it does not fit.
    fn leaf(&mut self, number: u32, value: &[u8], items: u32) -> Result<(), SplitError> {
        let size = delimited_len(number, value.len());
        let is_too_large = self.part.bytes + self.closed_bytes() + size > self.max_bytes;
        if is_too_large && self.part.bytes > 0 {
            self.end_part()?;
        }
        self.part.bytes += self.closed_bytes() + size;
        self.part.items = self.part.items.saturating_add(items);
        for level in &mut self.path {
            level.is_open = true;
        }
        if let Some(level) = self.path.last_mut() {
            level.push(number, value);
        }
        Ok(())
    }

    /// Returns the number of bytes that opening the closed levels adds to the current part.
    fn closed_bytes(&self) -> usize {
        let closed = self.path.iter().filter(|level| !level.is_open);
        closed.map(|level| level.head.len() + FIELD_OVERHEAD).sum()
    }

    /// Ends the innermost message.
    fn leave(&mut self) -> Result<(), SplitError> {
        if self.path.len() == 1 {
            if self.part.bytes > 0 {
                self.end_part()?;
            }
            self.path.clear();
        } else if let Some(level) = self.path.pop()
            && level.is_open
            && let Some(outer) = self.path.last_mut()
        {
            outer.push(level.number, &level.message());
        }
        Ok(())
    }

    /// Ends the current part; the next one opens the same messages again.
    fn end_part(&mut self) -> Result<(), SplitError> {
        let mut inner: Option<(u32, Vec<u8>)> = None;
        for level in self.path.iter_mut().rev() {
            if let Some((number, bytes)) = inner.take() {
                level.push(number, &bytes);
            }
            if level.is_open {
                inner = Some((level.number, level.message()));
            }
            level.body.clear();
            level.is_open = false;
        }
        let Size { items, .. } = std::mem::take(&mut self.part);
        if let Some((_, bytes)) = inner {
            self.left = self.left.checked_sub(bytes.len()).ok_or(SplitError::TooMuch)?;
            self.parts.push(Part { items, bytes });
        }
        Ok(())
    }
}

impl Level {
    fn push(&mut self, number: u32, value: &[u8]) {
        let mut field = Buffer::with_capacity(FIELD_OVERHEAD);
        field.varint(u64::from(number << 3 | 2));
        field.varint(value.len() as u64);
        self.body.extend_from_slice(field.as_slice());
        self.body.extend_from_slice(value);
    }

    fn message(&self) -> Vec<u8> {
        [self.head.as_slice(), &self.body].concat()
    }
}

/// Returns the fields by which a message at this depth is split, or `None` for an item.
fn split_fields(signal: Signal, depth: usize) -> Option<&'static [u32]> {
    const DATA: &[u32] = &[5, 7, 9, 10, 11];
    match (depth, signal) {
        // The resources of a message, the points of a metric's data.
        (0, _) | (4, Signal::Metrics) => Some(&[1]),
        // The scopes of a resource, the spans, metrics or records of a scope.
        (1 | 2, _) => Some(&[2]),
        (METRIC, Signal::Metrics) => Some(DATA),
        _ => None,
    }
}

/// Divides a message into the fields with these numbers and all others.
fn divide<'m>(message: &'m [u8], numbers: &[u32]) -> Result<Divided<'m>, WireError> {
    let mut divided = Divided {
        head: Vec::new(),
        children: Vec::new(),
    };
    let mut reader = Reader::new(message);
    while !reader.is_at_end() {
        let start = reader.position();
        let tag = reader.tag()?;
        match reader.value(tag)? {
            WireValue::Bytes(bytes) if numbers.contains(&(tag >> 3)) => {
                divided.children.push((tag >> 3, bytes));
            }
            _ => divided
                .head
                .extend_from_slice(reader.between(start, reader.position())),
        }
    }
    Ok(divided)
}

/// Returns the number of points in the data of a metric.
fn points(data: &[(u32, &[u8])]) -> Result<u32, WireError> {
    let mut points = 0;
    for (_, data) in data {
        points += divide(data, &[1])?.children.len();
    }
    Ok(u32::try_from(points).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
