//! What an event carries besides its track, its time and its name.

use super::annotation::{AnnotationValue, Annotations, Encoder};
use crate::field::{callstack, event};

/// A frame of a callstack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrame<'a> {
    /// The name of the function.
    pub function: &'a str,
    /// The path of its source file, or an empty text.
    pub file: &'a str,
    /// The line in the file, from 1, or 0 if it is unknown.
    pub line: u32,
}

/// An event that is being written.
pub struct Event<'a> {
    encoder: &'a mut Encoder,
}

impl<'a> Event<'a> {
    pub(super) fn new(encoder: &'a mut Encoder) -> Self {
        Self { encoder }
    }

    /// Puts the event into a category, by which viewers filter.
    #[inline]
    pub fn category(&mut self, name: impl AsRef<[u8]>) -> &mut Self {
        let Encoder {
            body, news, strings, ..
        } = &mut *self.encoder;
        body.uint(event::CATEGORY_IIDS, strings.category(name.as_ref(), news));
        self
    }

    /// Makes the event a station of a flow: viewers draw an arrow from each station of an id to the next in time.
    pub fn flow(&mut self, id: u64) -> &mut Self {
        self.encoder.body.fixed64(event::FLOW_IDS, id);
        self
    }

    /// Makes the event the last station of a flow, so that its id may be used for another flow afterwards.
    pub fn last_of_flow(&mut self, id: u64) -> &mut Self {
        self.encoder.body.fixed64(event::TERMINATING_FLOW_IDS, id);
        self
    }

    /// Sets the correlation id of the event. Viewers give events with the same id the same colour.
    pub fn correlation(&mut self, id: u64) -> &mut Self {
        self.encoder.body.uint(event::CORRELATION_ID, id);
        self
    }

    /// Adds the calls in which the event occurred, the outermost first. trace_processor v55.3 reads them; older viewers ignore them.
    pub fn callstack<'f>(&mut self, frames: impl IntoIterator<Item = StackFrame<'f>>) -> &mut Self {
        self.encoder.body.message(event::CALLSTACK, |out| {
            for frame in frames {
                out.message(callstack::FRAMES, |out| {
                    out.delimited(callstack::FUNCTION_NAME, frame.function.as_bytes());
                    if !frame.file.is_empty() {
                        out.delimited(callstack::SOURCE_FILE, frame.file.as_bytes());
                    }
                    if frame.line != 0 {
                        out.uint(callstack::LINE_NUMBER, frame.line.into());
                    }
                });
            }
        });
        self
    }

    /// Adds one annotation.
    #[inline]
    pub fn annotate<'v>(
        &mut self,
        name: impl AsRef<[u8]>,
        value: impl Into<AnnotationValue<'v>>,
    ) -> &mut Self {
        self.annotations().add(name, value);
        self
    }

    /// Adds what `add` adds for `source`, which must be the same for the same source, and one annotation at most. Where the
    /// event before on the track had the same source in the same place, its bytes are written again, and `add` is not called.
    #[inline]
    pub fn annotate_from(&mut self, source: &[u8], add: impl FnOnce(&mut Annotations<'_>)) -> &mut Self {
        let (known, place) = self.encoder.strings.memo.next(source);
        if let Some(block) = known {
            self.encoder.body.block(block);
            return self;
        }
        self.encoder.short = None;
        let start = self.encoder.body.len();
        add(&mut self.annotations());
        // Text that is written as it is may have a number the next time.
        if let Some(block) = self.encoder.short.take()
            && self.encoder.body.len() == start + block.len()
        {
            self.encoder.strings.memo.keep(place, source, block);
        }
        self
    }

    /// The annotations, to add to: maps and lists too.
    #[inline]
    pub fn annotations(&mut self) -> Annotations<'_> {
        Annotations::new(self.encoder, event::ANNOTATIONS)
    }
}
