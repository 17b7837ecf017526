//! The content of a trace, read once: descriptors stay in memory, events are sorted by track and time, log lines by process.

use std::{cmp::Ordering, io};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_perfetto::{LogItem, Time, TraceEvent};
use pulsetrain_pipeline::spill::{MemoryBudget, Sorted, Sorter};

use super::{
    metric_metadata::MetricMetadata,
    records,
    spill_codec::{self, pack_event, unpack_event},
    tracks::Tracks,
};

/// The collected content of a trace.
#[derive(Debug)]
pub(super) struct EventIndex {
    pub(super) tracks: Tracks,
    pub(super) metadata: MetricMetadata,
    events: Times,
    /// Events of clocks without a relation to the wall clock, by the time of their own clock.
    unplaced: Times,
    logs: Sorter,
    /// The last log line, unless an event followed it.
    line: Option<LogItem>,
    pub(super) room: MemoryBudget,
}

/// Events, and the range of their times.
#[derive(Debug)]
struct Times {
    all: Sorter,
    between: Option<(u64, u64)>,
}

impl EventIndex {
    /// Creates an empty index. Each of its three sorters gets an eighth of the budget, and so does `room`, for later steps.
    pub(super) fn new(room: &MemoryBudget) -> Self {
        let times = || Times {
            all: Sorter::new(room.share(8)),
            between: None,
        };
        Self {
            tracks: Tracks::default(),
            metadata: MetricMetadata::default(),
            events: times(),
            unplaced: times(),
            logs: Sorter::new(room.share(8)),
            line: None,
            room: room.share(8),
        }
    }

    pub(super) fn take(&mut self, mut event: TraceEvent) -> io::Result<()> {
        if let Some(line) = self.line.take() {
            if records::is_instant_of(&line, &event) {
                records::add_line(line, &mut event);
            } else {
                self.push_line(&line)?;
            }
        }
        let (times, nanos) = match event.time {
            Time::Unix(nanos) => (&mut self.events, nanos),
            Time::Clock { nanos, .. } => (&mut self.unplaced, nanos),
        };
        let (first, last) = times.between.unwrap_or((nanos, nanos));
        times.between = Some((first.min(nanos), last.max(nanos)));
        match self.metadata.take(event, &self.tracks) {
            Some(event) => times
                .all
                .push((event.track_uuid, nanos), |out| pack_event(&event, out)),
            None => Ok(()),
        }
    }

    /// Adds a log line unless the trace also contains its original record.
    pub(super) fn take_log(&mut self, line: LogItem) -> io::Result<()> {
        if self.metadata.knows_pid(line.pid) {
            return Ok(());
        }
        match self.line.replace(line) {
            Some(line) => self.push_line(&line),
            None => Ok(()),
        }
    }

    fn push_line(&mut self, line: &LogItem) -> io::Result<()> {
        self.logs.push((line.pid as u64, 0), |out| {
            let time = match line.time {
                Time::Unix(nanos) => nanos,
                Time::Clock { .. } => 0,
            };
            spill_codec::put_number(time, out);
            spill_codec::put_number(line.priority.into(), out);
            spill_codec::put_bytes(line.tag.as_bytes(), out);
            spill_codec::put_bytes(line.message.as_bytes(), out);
        })
    }

    /// Returns the events in their order, and the log lines. The first event of clocks without a relation to the wall clock is
    /// at `start_unix_nanos`.
    pub(super) fn sorted(
        mut self,
        start_unix_nanos: Option<UnixNanos>,
    ) -> io::Result<(Tracks, MetricMetadata, Timeline, Lines)> {
        if let Some(line) = self.line.take() {
            self.push_line(&line)?;
        }
        let first = self.unplaced.between.map(|(first, _)| first);
        let offset = match (start_unix_nanos, first) {
            (Some(start), Some(first)) => start.0.wrapping_sub(first),
            _ => 0,
        };
        let last = self.events.between.map(|(_, last)| last);
        let last_unplaced = self.unplaced.between.map(|(_, last)| last.wrapping_add(offset));
        let timeline = Timeline {
            placed: self.events.all.sorted()?,
            unplaced: self.unplaced.all.sorted()?,
            offset,
            is_undated: first.is_some() && start_unix_nanos.is_none(),
            last: last.max(last_unplaced).unwrap_or_default(),
        };
        Ok((self.tracks, self.metadata, timeline, Lines(self.logs.sorted()?)))
    }
}

/// Events sorted by track and time; events with the same time are in the order of the file.
#[derive(Debug)]
pub(super) struct Timeline {
    placed: Sorted,
    unplaced: Sorted,
    offset: u64,
    /// The latest time of all events.
    pub(super) last: u64,
    /// Whether times count from 1970 because their clock has no relation to the wall clock.
    pub(super) is_undated: bool,
}

impl Timeline {
    pub(super) fn next_event(&mut self) -> io::Result<Option<TraceEvent>> {
        loop {
            let offset = self.offset;
            let placed = self.placed.next_key();
            let unplaced = self
                .unplaced
                .next_key()
                .map(|(track, nanos)| (track, nanos.wrapping_add(offset)));
            let (key, from) = match (placed, unplaced) {
                (None, None) => return Ok(None),
                (Some(key), None) => (key, &mut self.placed),
                (None, Some(key)) => (key, &mut self.unplaced),
                (Some(placed), Some(unplaced)) => match placed.cmp(&unplaced) {
                    Ordering::Greater => (unplaced, &mut self.unplaced),
                    _ => (placed, &mut self.placed),
                },
            };
            let record = from.next_record()?.unwrap_or_default();
            if let Some(event) = unpack_event(key.0, key.1, record) {
                return Ok(Some(event));
            }
        }
    }

    pub(super) fn spilled_bytes(&self) -> u64 {
        self.placed.spilled_bytes() + self.unplaced.spilled_bytes()
    }
}

/// Log lines, grouped by process.
#[derive(Debug)]
pub(super) struct Lines(Sorted);

impl Lines {
    pub(super) fn next_line(&mut self) -> io::Result<Option<LogItem>> {
        let Some((pid, _)) = self.0.next_key() else {
            return Ok(None);
        };
        let mut record = self.0.next_record()?.unwrap_or_default();
        let from = &mut record;
        let mut line = || {
            Some(LogItem {
                time: Time::Unix(spill_codec::number(from)?),
                pid: pid as i32,
                priority: spill_codec::number(from)? as u32,
                tag: spill_codec::text(from)?,
                message: spill_codec::text(from)?,
            })
        };
        line()
            .map(Some)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    pub(super) fn spilled_bytes(&self) -> u64 {
        self.0.spilled_bytes()
    }
}
