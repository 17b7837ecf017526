//! Assembles spans from pieces. The begin, the events and the end of a slice may be far apart in a trace. Each piece is
//! therefore stored separately and sorted by span, and the spans are assembled at the end.

use std::io;

use pulsetrain_otlp::{
    Signal,
    write::{Buffer, span_field as field},
};
use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};

use super::{
    resource_batches::{BatchContext, BatchKey, ResourceBatches},
    spans::SpanBegin,
    spill_codec::{byte, bytes, number, put_bytes, put_number, text},
};
use crate::ConvertError;

/// The flag in the numbers of slices without an original span, which are numbered here.
const SHOWN: u64 = 1 << 63;

/// The kinds of pieces.
const BEGIN: u8 = 0;
const END: u8 = 1;
const EVENT: u8 = 2;
const LINK: u8 = 3;

/// The key of all pieces of a span: the number of the span in the trace, or the index of its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanKey(u64);

impl SpanKey {
    pub(super) fn written(number: u64) -> Self {
        Self(number & !SHOWN)
    }

    pub(super) fn shown(index: u64) -> Self {
        Self(index | SHOWN)
    }

    /// Returns the key as a number.
    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn of_number(number: u64) -> Self {
        Self(number)
    }
}

/// The pieces of spans.
#[derive(Debug)]
pub(super) struct SpanAssembly(Sorter);

/// A span that is being assembled.
struct Assembling {
    index: u64,
    batch_key: BatchKey,
    span: SpanBegin,
    end: u64,
}

impl SpanAssembly {
    pub(super) fn new(room: MemoryBudget) -> Self {
        Self(Sorter::new(room))
    }

    /// Adds the begin of the slice with an index among all slices.
    pub(super) fn begin(
        &mut self,
        key: SpanKey,
        index: u64,
        batch_key: &BatchKey,
        span: &SpanBegin,
    ) -> io::Result<()> {
        self.0.push((key.0, 0), |out| {
            out.push(BEGIN);
            put_number(index, out);
            let BatchKey::Process(process, scope) = batch_key else {
                return;
            };
            put_number(*process, out);
            match scope {
                Ok(number) => {
                    out.push(0);
                    put_number(*number, out);
                }
                Err(name) => {
                    out.push(1);
                    put_bytes(name.as_bytes(), out);
                }
            }
            put_number(span.end.is_some().into(), out);
            put_number(span.end.unwrap_or_default(), out);
            for part in [&span.before, &span.attributes, &span.after] {
                put_bytes(part.as_slice(), out);
            }
        })
    }

    /// Adds the end of a slice, with its attributes.
    pub(super) fn end(&mut self, key: SpanKey, index: u64, time: u64, attributes: &Buffer) -> io::Result<()> {
        self.0.push((key.0, 1), |out| {
            out.push(END);
            put_number(index, out);
            put_number(time, out);
            put_bytes(attributes.as_slice(), out);
        })
    }

    /// Adds an event of a span, with its index among the events of the span.
    pub(super) fn event(&mut self, key: SpanKey, place: u64, event: &Buffer) -> io::Result<()> {
        self.0.push((key.0, place.saturating_add(2)), |out| {
            out.push(EVENT);
            put_bytes(event.as_slice(), out);
        })
    }

    /// Adds a link of a span.
    pub(super) fn link(&mut self, key: SpanKey, link: &Buffer) -> io::Result<()> {
        self.0.push((key.0, u64::MAX), |out| {
            out.push(LINK);
            put_bytes(link.as_slice(), out);
        })
    }

    /// Assembles the spans and adds them to their batches. Returns their number and the number of bytes that were written to a
    /// file.
    pub(super) fn assemble<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        self,
        batches: &mut ResourceBatches<'_, D>,
        known: BatchContext<'_>,
    ) -> Result<(u64, u64), E> {
        let mut sorted = self.0.sorted().map_err(ConvertError::Temporary)?;
        let (mut spans, mut count) = (Vec::new(), 0);
        let mut events = Buffer::default();
        while let Some((key, _)) = sorted.next_key() {
            let record = sorted.next_record().map_err(ConvertError::Temporary)?;
            let _ = take(record.unwrap_or_default(), &mut spans, &mut events);
            if sorted.next_key().is_none_or(|(next, _)| next != key) {
                count += spans.len() as u64;
                for span in spans.drain(..) {
                    let (batch_key, span) = span.finish(&events);
                    batches.push(Signal::Traces, batch_key, span.as_slice(), known)?;
                }
                events.clear();
            }
        }
        Ok((count, sorted.spilled_bytes()))
    }
}

/// Decodes a piece and adds it to its span. Returns `None` if the piece is malformed.
fn take(mut record: &[u8], spans: &mut Vec<Assembling>, events: &mut Buffer) -> Option<()> {
    let from = &mut record;
    match byte(from)? {
        BEGIN => spans.push(begun(from)?),
        END => {
            let (index, time, attributes) = (number(from)?, number(from)?, bytes(from)?);
            let span = spans.iter_mut().find(|span| span.index == index)?;
            span.end = time;
            span.span.attributes.append(attributes);
        }
        LINK => events.delimited(field::LINKS, bytes(from)?),
        _ => events.delimited(field::EVENTS, bytes(from)?),
    }
    Some(())
}

fn begun(from: &mut &[u8]) -> Option<Assembling> {
    let index = number(from)?;
    let process = number(from)?;
    let scope = match byte(from)? {
        0 => Ok(number(from)?),
        _ => Err(text(from)?),
    };
    let (says_end, end) = (number(from)? != 0, number(from)?);
    let mut part = || {
        let mut part = Buffer::default();
        part.append(bytes(from)?);
        Some(part)
    };
    Some(Assembling {
        index,
        batch_key: BatchKey::Process(process, scope),
        span: SpanBegin {
            end: says_end.then_some(end),
            before: part()?,
            attributes: part()?,
            after: part()?,
            ..SpanBegin::default()
        },
        end: 0,
    })
}

impl Assembling {
    fn finish(self, events: &Buffer) -> (BatchKey, Buffer) {
        let mut out = self.span.before;
        out.fixed64(field::END, self.span.end.unwrap_or(self.end));
        out.append(self.span.attributes.as_slice());
        out.append(events.as_slice());
        out.append(self.span.after.as_slice());
        (self.batch_key, out)
    }
}
