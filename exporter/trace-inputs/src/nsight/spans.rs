//! Converts records, in the order of their start, to spans: a span of a thread is a child of the innermost span that contains
//! it.

use pulsetrain_otlp::{
    Signal,
    wire::{Reader, WireValue},
    write::{Buffer, span_field as field},
};
use pulsetrain_perfetto::AnnotationData;
use pulsetrain_pipeline::spill::MemoryBudget;
use xxhash_rust::xxh3::xxh3_128;

use super::{
    NsightConversion,
    batches::Batches,
    names::{Names, Owner, ThreadId},
    rows::{Record, RowKind, Rows, Track},
};
use crate::{ConvertError, from_perfetto::values};

/// The field of the attributes of `Span.Event` and `LogRecord`, and other fields of these messages (proto/trace/v1 and
/// proto/logs/v1).
pub(super) const EVENT_ATTRIBUTES: u32 = 3;
const LOG_ATTRIBUTES: u32 = 6;
const EVENT_NAME: u32 = 12;

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u64 = 1;

/// The minimum budget for the bytes of open spans.
const MAX_HELD_BYTES: usize = 16 << 20;

/// The limit for open spans that a span is compared with. On the row of a thread, the innermost open span contains it.
const MAX_COMPARED_SPANS: usize = 1000;

/// The limit for open spans that can have children.
const MAX_OPEN: usize = 1 << 16;

/// The state of the open spans.
pub(super) struct Spans<'a> {
    tracks: &'a [Track],
    scopes: &'a [String],
    /// The attributes of each row.
    rows: Vec<Buffer>,
    /// The open spans of each row, outermost first.
    open: Vec<Vec<Open>>,
    open_count: usize,
    /// The number of spans that begin while too many are open.
    too_many_open: u64,
    trace: [u8; 16],
    held_bytes: usize,
    max_held_bytes: usize,
}

/// An open span, which may get events.
struct Open {
    id: u64,
    end: u64,
    scope: usize,
    /// The span so far; `None` if it was already sent, because too many are open.
    span: Option<Buffer>,
}

impl<'a> Spans<'a> {
    /// Sends the records.
    pub(super) fn send<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        rows: Rows<'_>,
        file: &str,
        names: &Names,
        room: &MemoryBudget,
        batches: &mut Batches<'_, D>,
        conversion: &mut NsightConversion,
    ) -> Result<(), E> {
        let (tracks, scopes) = (&rows.tracks.values, &rows.scopes.values);
        let mut spans = Spans {
            tracks,
            scopes,
            rows: tracks.iter().map(|track| row(track, names)).collect(),
            open: tracks.iter().map(|_| Vec::new()).collect(),
            open_count: 0,
            too_many_open: 0,
            trace: xxh3_128(format!("{file}\0trace").as_bytes()).max(1).to_be_bytes(),
            held_bytes: 0,
            max_held_bytes: MAX_HELD_BYTES.max(room.bytes / 4),
        };
        let mut sorted = rows.sorter.sorted().map_err(ConvertError::Temporary)?;
        while let Some((start, _)) = sorted.next_key() {
            let record = sorted.next_record().map_err(ConvertError::Temporary)?;
            let Some(mut record) = record.and_then(Record::read) else {
                continue;
            };
            if record.kind == RowKind::Unfinished {
                record.end = rows.latest;
            }
            spans.close(record.track, start, batches)?;
            match record.kind {
                RowKind::Mark => spans.mark(&record, start, batches)?,
                _ => spans.begin(&record, start, batches)?,
            }
        }
        for track in 0..tracks.len() {
            spans.close(track, u64::MAX, batches)?;
        }
        conversion.spilled_bytes = sorted.spilled_bytes();
        conversion.too_many_open = spans.too_many_open;
        Ok(())
    }

    /// Sends the spans of a row whose end is not after `time`.
    fn close<E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &mut self,
        track: usize,
        time: u64,
        batches: &mut Batches<'_, D>,
    ) -> Result<(), E> {
        while let Some(open) = self.open[track].pop_if(|open| open.end <= time) {
            self.open_count -= 1;
            if let Some(span) = open.span {
                self.held_bytes -= span.len();
                self.push(Signal::Traces, track, open.scope, &span, batches)?;
            }
        }
        Ok(())
    }

    fn begin<E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &mut self,
        record: &Record<'_>,
        start: u64,
        batches: &mut Batches<'_, D>,
    ) -> Result<(), E> {
        let is_of_thread = matches!(self.tracks[record.track], Track::Thread(_));
        let nests = is_of_thread && self.open_count < MAX_OPEN;
        self.too_many_open += u64::from(is_of_thread && !nests);
        let mut around = self.open[record.track].iter().rev().take(MAX_COMPARED_SPANS);
        let parent = around.find(|open| open.end >= record.end).map(|open| open.id);
        let span = self.span(record, start, parent);
        let is_held = nests && self.held_bytes < self.max_held_bytes;
        if !is_held {
            self.push(Signal::Traces, record.track, record.scope, &span, batches)?;
        }
        if nests {
            let span = is_held.then_some(span);
            self.held_bytes += span.as_ref().map_or(0, Buffer::len);
            self.open_count += 1;
            self.open[record.track].push(Open {
                id: record.id,
                end: record.end,
                scope: record.scope,
                span,
            });
        }
        Ok(())
    }

    /// Adds a mark to the innermost open span of its row, or sends it as a log record without such a span.
    fn mark<E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &mut self,
        record: &Record<'_>,
        time: u64,
        batches: &mut Batches<'_, D>,
    ) -> Result<(), E> {
        let mut event = Buffer::default();
        event.fixed64(1, time);
        let innermost = self.open[record.track].last_mut();
        if let Some(span) = innermost.and_then(|open| open.span.as_mut()) {
            event.text(2, record.name);
            event.append(record.attributes);
            let before = span.len();
            span.delimited(field::EVENTS, event.as_slice());
            self.held_bytes += span.len() - before;
            return Ok(());
        }
        for attribute in Reader::new(record.attributes).flatten() {
            if let WireValue::Bytes(attribute) = attribute.value {
                event.delimited(LOG_ATTRIBUTES, attribute);
            }
        }
        for attribute in Reader::new(self.rows[record.track].as_slice()).flatten() {
            if let WireValue::Bytes(attribute) = attribute.value {
                event.delimited(LOG_ATTRIBUTES, attribute);
            }
        }
        event.text(EVENT_NAME, record.name);
        self.push(Signal::Logs, record.track, record.scope, &event, batches)
    }

    fn span(&self, record: &Record<'_>, start: u64, parent: Option<u64>) -> Buffer {
        let mut out = Buffer::default();
        out.delimited(field::TRACE_ID, &self.trace);
        out.delimited(field::SPAN_ID, &record.id.to_be_bytes());
        if let Some(parent) = parent {
            out.delimited(field::PARENT_SPAN_ID, &parent.to_be_bytes());
        }
        out.text(field::NAME, record.name);
        out.uint(field::KIND, INTERNAL);
        out.fixed64(field::START, start);
        out.fixed64(field::END, record.end);
        out.append(record.attributes);
        out.append(self.rows[record.track].as_slice());
        if record.launch != 0 {
            let mut link = Buffer::default();
            link.delimited(1, &self.trace);
            link.delimited(2, &record.launch.to_be_bytes());
            out.delimited(field::LINKS, link.as_slice());
        }
        out
    }

    fn push<E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        &self,
        signal: Signal,
        track: usize,
        scope: usize,
        item: &Buffer,
        batches: &mut Batches<'_, D>,
    ) -> Result<(), E> {
        let owner = match &self.tracks[track] {
            Track::Thread(thread) => Owner::Process(thread.process()),
            Track::Named(owner, _) => *owner,
        };
        batches.push(signal, owner, &self.scopes[scope], item.as_slice())
    }
}

/// Returns the attributes of the spans on a row.
fn row(track: &Track, names: &Names) -> Buffer {
    let mut out = Buffer::default();
    let (name, id) = match track {
        Track::Thread(thread) => (names.thread(*thread), Some(ThreadId::tid(*thread))),
        Track::Named(_, name) => (Some(name.clone()), None),
    };
    for (key, value) in [
        ("thread.name", name.map(AnnotationData::Text)),
        ("thread.id", id.map(AnnotationData::Int)),
    ] {
        if let Some(value) = value {
            values::attribute(field::ATTRIBUTES, key, &value, &mut out);
        }
    }
    out
}
