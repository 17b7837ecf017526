//! Replays the events of each track: pairs begins with ends, and assigns instants to spans and points to metrics.
//!
//! The events of a track are ordered by time, and by their order in the file if times are equal, as in trace_processor.

use std::io;

use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::{LogRecord, Message},
    write::{Buffer, span_field},
};
use pulsetrain_perfetto::{AnnotationData, EventKind, Time, TraceEvent};

use super::{
    PerfettoConversion,
    event_index::{EventIndex, Timeline},
    flows::Flows,
    message,
    metric_metadata::{MetricMetadata, otel_fields},
    points::{CounterLabel, Gauge, Points},
    records,
    resource_batches::{BatchContext, BatchKey, ResourceBatches},
    span_assembly::{SpanAssembly, SpanKey},
    spans::{self, Ids},
    tracks::{Thread, Tracks},
    values,
};
use crate::ConvertError;

/// The key of the map of a slice that represents several spans.
const MERGED: &str = "merged";
/// The keys of instants that are not events of their slices: a log record, or a span that failed.
const NOT_EVENTS: [&str; 2] = [records::SEVERITY, ERROR_OF];
/// The key of an instant for a span that failed, which duplicates the span.
const ERROR_OF: &str = "error_of";

/// Returns whether an instant with these fields is a log record or a failure.
fn is_no_event(fields: &[(String, AnnotationData)]) -> bool {
    NOT_EVENTS.iter().any(|key| values::get(fields, key).is_some())
}

/// The field of the attributes of a log record.
const LOG_ATTRIBUTES: u32 = 6;

/// The results of the replay of all events.
pub(super) struct ReplayOutput {
    tracks: Tracks,
    metadata: MetricMetadata,
    pieces: SpanAssembly,
    points: Points,
}

/// The state of the replay.
pub(super) struct TrackReplay<'a> {
    file_name: &'a str,
    tracks: &'a Tracks,
    metadata: &'a MetricMetadata,
    pieces: SpanAssembly,
    points: Points,
    flows: Flows,
    /// The number of slices so far.
    slices: u64,
    last: u64,
}

/// The state of the current track.
#[derive(Default)]
struct OnTrack {
    uuid: u64,
    process: u64,
    /// Whether the original resource of the track's process is known.
    has_known_resource: bool,
    thread: Thread,
    counter: CounterLabel,
    gauge: Gauge,
    open: Vec<Open>,
}

/// An open slice.
struct Open {
    key: Option<SpanKey>,
    index: u64,
    ids: Ids,
    is_written: bool,
    /// The number of its events.
    events: u64,
}

impl<'a> TrackReplay<'a> {
    /// Replays every track. Complete items are added to their batches at once.
    pub(super) fn replay<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        gathered: EventIndex,
        file_name: &'a str,
        start_unix_nanos: Option<UnixNanos>,
        batches: &mut ResourceBatches<'_, D>,
        conversion: &mut PerfettoConversion,
    ) -> Result<ReplayOutput, E> {
        let room = gathered.room.clone();
        let sorted = gathered.sorted(start_unix_nanos);
        let (tracks, mut metadata, mut timeline, lines) = sorted.map_err(ConvertError::Temporary)?;
        conversion.is_undated = timeline.is_undated;
        conversion.spilled_bytes += timeline.spilled_bytes() + lines.spilled_bytes();
        let points = Points::new(room.clone(), &mut metadata, &tracks);
        let mut walk = TrackReplay {
            file_name,
            tracks: &tracks,
            metadata: &metadata,
            pieces: SpanAssembly::new(room.share(2)),
            points,
            flows: Flows::new(room.share(2)),
            slices: 0,
            last: timeline.last,
        };
        walk.go(&mut timeline, batches, conversion)?;
        let TrackReplay {
            mut pieces,
            points,
            flows,
            ..
        } = walk;
        let known = BatchContext {
            tracks: &tracks,
            metadata: &metadata,
        };
        drop(timeline);
        conversion.spilled_bytes += flows.link(&mut pieces).map_err(ConvertError::Temporary)?;
        records::send_lines(lines, known, batches, conversion)?;
        Ok(ReplayOutput {
            pieces,
            points,
            tracks,
            metadata,
        })
    }

    fn known(&self) -> BatchContext<'a> {
        BatchContext {
            tracks: self.tracks,
            metadata: self.metadata,
        }
    }

    fn go<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &mut self,
        timeline: &mut Timeline,
        batches: &mut ResourceBatches<'_, D>,
        conversion: &mut PerfettoConversion,
    ) -> Result<(), E> {
        let mut track: Option<OnTrack> = None;
        while let Some(event) = timeline.next_event().map_err(ConvertError::Temporary)? {
            if track.as_ref().is_none_or(|track| track.uuid != event.track_uuid) {
                self.leave(track.take(), batches, conversion)?;
            }
            let track = track.get_or_insert_with(|| self.enter(event.track_uuid));
            let time = match event.time {
                Time::Unix(nanos) | Time::Clock { nanos, .. } => nanos,
            };
            match event.kind {
                EventKind::Begin => self
                    .begin(track, &event, time)
                    .and_then(|()| self.follow(track, &event, time, conversion)),
                EventKind::End => self
                    .follow(track, &event, time, conversion)
                    .and_then(|()| self.end(track, &event, time, conversion)),
                EventKind::Instant => {
                    self.instant(track, &event, time, batches, conversion)?;
                    self.follow(track, &event, time, conversion)
                }
                EventKind::Counter => {
                    self.count(track, &event, time, batches, conversion)?;
                    Ok(())
                }
                EventKind::State => self.enter_state(track, &event, time),
                _ => Ok(()),
            }
            .map_err(ConvertError::Temporary)?;
        }
        self.leave(track, batches, conversion)
    }

    /// Records the flows of an event of the innermost slice.
    fn follow(
        &mut self,
        track: &OnTrack,
        event: &TraceEvent,
        time: u64,
        conversion: &mut PerfettoConversion,
    ) -> io::Result<()> {
        match track.open.last() {
            // The arrows of a trace with all fields are already in its original spans; a log record has the ids of its span.
            Some(open) if open.is_written => Ok(()),
            _ if otel_fields(&event.annotations).is_some_and(is_no_event) => Ok(()),
            None if track.has_known_resource => Ok(()),
            Some(Open {
                key: Some(key), ids, ..
            }) => event.flows.iter().try_for_each(|flow| {
                let is_last = event.ended_flows.contains(flow);
                self.flows.push(*flow, time, is_last, (*key, ids))
            }),
            _ => {
                conversion.flows_without_span += event.flows.len() as u64;
                Ok(())
            }
        }
    }

    fn enter(&self, uuid: u64) -> OnTrack {
        let process = self.tracks.process(uuid);
        OnTrack {
            uuid,
            process,
            has_known_resource: self.metadata.has(process),
            thread: self.tracks.thread(uuid),
            counter: CounterLabel::for_track(uuid, self.tracks),
            ..OnTrack::default()
        }
    }

    /// Ends the slices that are still open, at the end of the trace.
    fn leave<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &mut self,
        track: Option<OnTrack>,
        batches: &mut ResourceBatches<'_, D>,
        conversion: &mut PerfettoConversion,
    ) -> Result<(), E> {
        let Some(mut track) = track else {
            return Ok(());
        };
        conversion.unfinished += track.open.len() as u64;
        for open in track.open.drain(..) {
            if let Some(key) = open.key {
                let ended = self.pieces.end(key, open.index, self.last, &Buffer::default());
                ended.map_err(ConvertError::Temporary)?;
            }
        }
        self.send_gauge(&mut track, batches)
    }

    fn begin(&mut self, track: &mut OnTrack, event: &TraceEvent, time: u64) -> io::Result<()> {
        let index = self.slices;
        self.slices += 1;
        let parent = track.open.last().map(|open| &open.ids);
        let (key, batch_key, span) = match spans::span_fields(&event.annotations) {
            Some((fields, rest)) => {
                let number = values::number(fields, "span").unwrap_or_default();
                let scope = values::number(fields, "scope").unwrap_or_default();
                let span = spans::as_written(event, time, fields, rest);
                (SpanKey::written(number), Ok(scope), span)
            }
            // In a process with a known original resource, a slice without original fields is a state.
            None if track.has_known_resource && values::get(&event.annotations, MERGED).is_none() => {
                track.open.push(Open {
                    key: None,
                    index,
                    ids: parent.cloned().unwrap_or_default(),
                    is_written: true,
                    events: 0,
                });
                return Ok(());
            }
            None => {
                let category = event.categories.first().cloned().unwrap_or_default();
                let span = spans::as_shown(event, (self.file_name, index), time, parent, &track.thread);
                (SpanKey::shown(index), Err(category), span)
            }
        };
        let is_written = batch_key.is_ok();
        self.pieces
            .begin(key, index, &BatchKey::Process(track.process, batch_key), &span)?;
        track.open.push(Open {
            key: Some(key),
            index,
            ids: span.ids,
            is_written,
            events: 0,
        });
        Ok(())
    }

    fn end(
        &mut self,
        track: &mut OnTrack,
        event: &TraceEvent,
        time: u64,
        conversion: &mut PerfettoConversion,
    ) -> io::Result<()> {
        let Some(open) = track.open.pop() else {
            conversion.stray_ends += 1;
            return Ok(());
        };
        let Some(key) = open.key else {
            return Ok(());
        };
        let mut attributes = Buffer::default();
        values::attributes(span_field::ATTRIBUTES, &event.annotations, &mut attributes);
        self.pieces.end(key, open.index, time, &attributes)
    }

    /// Ends the current state of a track, and begins the next one if the event has a name.
    fn enter_state(&mut self, track: &mut OnTrack, event: &TraceEvent, time: u64) -> io::Result<()> {
        if let Some(open) = track.open.pop()
            && let Some(key) = open.key
        {
            self.pieces.end(key, open.index, time, &Buffer::default())?;
        }
        if event.name.is_empty() {
            return Ok(());
        }
        self.begin(track, event, time)
    }

    fn instant<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &mut self,
        track: &mut OnTrack,
        event: &TraceEvent,
        time: u64,
        batches: &mut ResourceBatches<'_, D>,
        conversion: &mut PerfettoConversion,
    ) -> Result<(), E> {
        let fields = otel_fields(&event.annotations);
        if let Some(fields) = fields {
            let taken = self.points.take(event, time, fields, track.process);
            if taken.map_err(ConvertError::Temporary)? {
                return Ok(());
            }
            if let Some(scope) = values::number(fields, "log_of") {
                let mut out = Buffer::default();
                message::encode(LogRecord::descriptor(), fields, &[], &mut out);
                values::attributes(LOG_ATTRIBUTES, event.annotations.iter().skip(1), &mut out);
                conversion.logs += 1;
                // A record on the row of its span can belong to another process.
                let pid = values::number(fields, "log_pid");
                let process = pid.and_then(|pid| self.metadata.process_of(pid));
                let batch_key = BatchKey::Process(process.unwrap_or(track.process), Ok(scope));
                return batches.push(Signal::Logs, batch_key, out.as_slice(), self.known());
            }
            if values::get(fields, records::SEVERITY).is_some() {
                conversion.logs += 1;
                let record = records::of_record(event, fields, time);
                let process = records::pid(fields).and_then(|pid| self.tracks.process_of(pid));
                let batch_key = BatchKey::Process(process.unwrap_or(track.process), Err(String::new()));
                return batches.push(Signal::Logs, batch_key, record.as_slice(), self.known());
            }
            if values::get(fields, ERROR_OF).is_some() {
                return Ok(());
            }
        }
        let of = fields.and_then(|fields| {
            let span = values::number(fields, "event_of")?;
            Some((SpanKey::written(span), values::number(fields, "place")?))
        });
        let around = track.open.last_mut().filter(|open| !open.is_written);
        let shown = around.and_then(|open| {
            open.events += 1;
            Some((open.key?, open.events))
        });
        if let Some((key, place)) = of.or(shown) {
            let event = spans::event(event, time);
            let taken = self.pieces.event(key, place, &event);
            taken.map_err(ConvertError::Temporary)?;
        } else if !track.has_known_resource {
            conversion.logs += 1;
            let record = records::of_instant(event, time, &track.thread);
            let category = event.categories.first().cloned().unwrap_or_default();
            let batch_key = BatchKey::Process(track.process, Err(category));
            batches.push(Signal::Logs, batch_key, record.as_slice(), self.known())?;
        }
        Ok(())
    }

    fn count<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &mut self,
        track: &mut OnTrack,
        event: &TraceEvent,
        time: u64,
        batches: &mut ResourceBatches<'_, D>,
        conversion: &mut PerfettoConversion,
    ) -> Result<(), E> {
        if let Some(fields) = otel_fields(&event.annotations) {
            let taken = self.points.take(event, time, fields, track.process);
            if taken.map_err(ConvertError::Temporary)? {
                return Ok(());
            }
        }
        // In a process with a known original resource, all points are in the annotations; other counters duplicate them.
        if track.has_known_resource {
            return Ok(());
        }
        conversion.points += 1;
        if track.gauge.take(event, time, &track.counter) {
            self.send_gauge(track, batches)?;
        }
        Ok(())
    }

    fn send_gauge<E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &self,
        track: &mut OnTrack,
        batches: &mut ResourceBatches<'_, D>,
    ) -> Result<(), E> {
        match track.gauge.end(&track.counter) {
            Some(gauge) => {
                let batch_key = BatchKey::Process(track.process, Err(String::new()));
                batches.push(Signal::Metrics, batch_key, gauge.as_slice(), self.known())
            }
            None => Ok(()),
        }
    }
}

impl ReplayOutput {
    /// Assembles spans and metrics and sends all waiting items.
    pub(super) fn assemble<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        self,
        batches: &mut ResourceBatches<'_, D>,
        conversion: &mut PerfettoConversion,
    ) -> Result<(), E> {
        let known = BatchContext {
            tracks: &self.tracks,
            metadata: &self.metadata,
        };
        let (spans, bytes) = self.pieces.assemble(batches, known)?;
        conversion.spans = spans;
        conversion.points += self.points.count;
        conversion.spilled_bytes += bytes + self.points.assemble(batches, known)?;
        batches.send_all(known)
    }
}
