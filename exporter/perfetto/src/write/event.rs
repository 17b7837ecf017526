//! The content of an event besides its track, time and name.

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

    /// Adds a category, by which viewers filter.
    #[inline]
    pub fn category(&mut self, name: impl AsRef<[u8]>) -> &mut Self {
        let Encoder {
            body, news, strings, ..
        } = &mut *self.encoder;
        body.uint(event::CATEGORY_IIDS, strings.category(name.as_ref(), news));
        self
    }

    /// Adds the event to a flow: viewers draw an arrow from each event of a flow to the next in time.
    pub fn flow(&mut self, id: u64) -> &mut Self {
        self.encoder.body.fixed64(event::FLOW_IDS, id);
        self
    }

    /// Makes the event the last of a flow, so that another flow may use the same id afterwards.
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

    /// Adds at most one annotation, which `add` writes and which depends only on `source`. If the annotation at the same index
    /// of the previous event on the sequence had the same source, its bytes are written again, and `add` is not called.
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
        // Only short annotations are kept. A text that is written inline may be interned the next time.
        if let Some(block) = self.encoder.short.take()
            && self.encoder.body.len() == start + block.len()
        {
            self.encoder.strings.memo.keep(place, source, block);
        }
        self
    }

    /// Returns the annotations, to which maps and lists can be added too.
    #[inline]
    pub fn annotations(&mut self) -> Annotations<'_> {
        Annotations::new(self.encoder, event::ANNOTATIONS)
    }
}
