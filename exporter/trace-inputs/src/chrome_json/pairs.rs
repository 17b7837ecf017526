//! Pairs begins and ends of slices into complete events: the duration of a slice determines the row that it can be on.

use std::{collections::BTreeMap, io};

use pulsetrain_pipeline::spill::{MemoryBudget, Sorted, Sorter};

use super::event::{Event, RowKey};

/// The duration of a slice that never ends.
pub(super) const UNFINISHED: u64 = u64::MAX;

/// The minimum budget for the bytes of open begins.
const MAX_HELD_BYTES: usize = 16 << 20;

/// The size of the head of a record: the duration, and the length of the event that begins the slice.
const HEAD: usize = 16;

/// Collects the events of a trace in the order of their times and pairs begins with ends.
pub(super) struct Pairs {
    open: BTreeMap<RowKey, Vec<Begin>>,
    /// The bytes of the open begins.
    held_bytes: usize,
    max_held_bytes: usize,
    complete: Sorter,
    /// Ends of slices that never began.
    pub(super) stray_ends: u64,
}

/// The begin of an open slice.
struct Begin {
    nanos: u64,
    /// `None` if the slice was written without an end, because too many slices were open.
    text: Option<Box<[u8]>>,
}

/// An event, or a pair of a begin and its end.
pub(super) struct Complete<'a> {
    pub(super) event: Event<'a>,
    /// The duration of a slice; 0 for other events.
    pub(super) duration: u64,
    /// The event that ends the slice of a begin.
    pub(super) end: Option<Event<'a>>,
}

impl Pairs {
    pub(super) fn new(room: &MemoryBudget) -> Self {
        Self {
            open: BTreeMap::new(),
            held_bytes: 0,
            max_held_bytes: MAX_HELD_BYTES.max(room.bytes / 4),
            complete: Sorter::new(room.share(2)),
            stray_ends: 0,
        }
    }

    /// Adds an event. Events are added in the order of their times.
    pub(super) fn add(&mut self, event: &Event<'_>, nanos: u64, text: &[u8]) -> io::Result<()> {
        match &*event.phase {
            "B" | "b" | "S" => self.begin(event, nanos, text),
            "E" | "e" | "F" => self.end(event, nanos, text),
            "X" => {
                // The duration was validated when the event was sorted.
                let duration = event.duration().unwrap_or_default();
                self.push_slice(nanos, duration, text, b"")
            }
            // An arrow comes before the slice that begins at the same time, all other events come after it.
            "s" | "t" | "f" => self.push((nanos, 0), 0, text, b""),
            _ => self.push((nanos, u64::MAX), 0, text, b""),
        }
    }

    /// Returns the events sorted by time, a longer slice before a shorter one.
    pub(super) fn sorted(mut self) -> io::Result<Sorted> {
        for begin in std::mem::take(&mut self.open).into_values().flatten() {
            if let Some(text) = begin.text {
                self.push_slice(begin.nanos, UNFINISHED, &text, b"")?;
            }
        }
        self.complete.sorted()
    }

    fn begin(&mut self, event: &Event<'_>, nanos: u64, text: &[u8]) -> io::Result<()> {
        let is_held = self.held_bytes + text.len() <= self.max_held_bytes;
        if is_held {
            self.held_bytes += text.len();
        } else {
            self.push_slice(nanos, UNFINISHED, text, b"")?;
        }
        let text = is_held.then(|| text.into());
        self.open
            .entry(event.pairing())
            .or_default()
            .push(Begin { nanos, text });
        Ok(())
    }

    /// Ends the innermost slice of a row that was begun by a separate event.
    fn end(&mut self, event: &Event<'_>, nanos: u64, text: &[u8]) -> io::Result<()> {
        let Some(begin) = self.open.get_mut(&event.pairing()).and_then(Vec::pop) else {
            self.stray_ends += 1;
            return Ok(());
        };
        let Some(begun) = begin.text else {
            return Ok(());
        };
        self.held_bytes -= begun.len();
        self.push_slice(begin.nanos, nanos - begin.nanos, &begun, text)
    }

    fn push_slice(&mut self, nanos: u64, duration: u64, text: &[u8], end: &[u8]) -> io::Result<()> {
        // Order 0 is reserved for arrows.
        let order = (u64::MAX - 1 - duration.min(u64::MAX - 2)).max(1);
        self.push((nanos, order), duration, text, end)
    }

    fn push(&mut self, key: (u64, u64), duration: u64, text: &[u8], end: &[u8]) -> io::Result<()> {
        self.complete.push(key, |out| {
            out.extend_from_slice(&duration.to_le_bytes());
            out.extend_from_slice(&(text.len() as u64).to_le_bytes());
            out.extend_from_slice(text);
            out.extend_from_slice(end);
        })
    }
}

impl<'a> Complete<'a> {
    /// Reads a record of [`Pairs::sorted`], or returns `None` if it contains no event.
    pub(super) fn read(record: &'a [u8]) -> Option<Self> {
        let (head, texts) = record.split_at_checked(HEAD)?;
        let (duration, length) = head.split_first_chunk::<8>()?;
        let length = u64::from_le_bytes(*length.first_chunk()?) as usize;
        let (text, end) = texts.split_at_checked(length)?;
        Some(Self {
            event: serde_json::from_slice(text).ok()?,
            duration: u64::from_le_bytes(*duration),
            end: serde_json::from_slice(end).ok(),
        })
    }
}
