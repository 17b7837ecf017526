//! Debug annotations: the typed arguments of an event, encoded as they are added.

use super::intern::{RecentValues, Strings};
use crate::{
    field::annotation,
    wire::{Block, Buffer},
};

/// A value of an annotation.
///
/// Text is normally UTF-8. Viewers show U+FFFD for invalid sequences. Perfetto has no type for bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnnotationValue<'a> {
    /// True or false.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating point number; NaN and the infinities are values.
    Double(f64),
    /// Text.
    Text(&'a [u8]),
}

macro_rules! from {
    ($($source:ty => $variant:ident),* $(,)?) => {$(
        impl From<$source> for AnnotationValue<'_> {
            fn from(value: $source) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from!(bool => Bool, i32 => Int, i64 => Int, u32 => Uint, u64 => Uint, f32 => Double, f64 => Double);

impl<'a> From<&'a str> for AnnotationValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl<'a> From<&'a String> for AnnotationValue<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for AnnotationValue<'a> {
    fn from(text: &'a [u8]) -> Self {
        Self::Text(text)
    }
}

/// The annotations of an event, or the entries of a map among them.
pub struct Annotations<'a> {
    encoder: &'a mut Encoder,
    field: u32,
}

/// The values of a list among the annotations.
pub struct AnnotationList<'a> {
    encoder: &'a mut Encoder,
}

/// The buffers that one event is encoded into, and the state of its sequence.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// The body of the `TrackEvent`.
    pub(super) body: Buffer,
    /// The body of the `InternedData` message for strings that the event defines.
    pub(super) news: Buffer,
    /// The interned strings of the event's sequence.
    pub(super) strings: Box<Strings>,
    /// The texts that were written recently, with their sequences.
    pub(super) seen: RecentValues,
    /// The last annotation, if it fits into a block.
    pub(super) short: Option<Block>,
}

impl<'a> Annotations<'a> {
    pub(super) fn new(encoder: &'a mut Encoder, field: u32) -> Self {
        Self { encoder, field }
    }

    /// Adds an annotation. In trace_processor its key has an underscore for each dot: `debug.train_step`.
    #[inline]
    pub fn add<'v>(&mut self, name: impl AsRef<[u8]>, value: impl Into<AnnotationValue<'v>>) {
        self.encoder.named(self.field, name.as_ref(), value.into());
    }

    /// Adds a map, whose entries `fill` adds.
    pub fn map(&mut self, name: impl AsRef<[u8]>, fill: impl FnOnce(&mut Annotations<'_>)) {
        let start = self.open(name.as_ref());
        fill(&mut Annotations::new(self.encoder, annotation::DICT_ENTRIES));
        self.encoder.body.close(start);
    }

    /// Adds a list, whose values `fill` adds.
    pub fn list(&mut self, name: impl AsRef<[u8]>, fill: impl FnOnce(&mut AnnotationList<'_>)) {
        let start = self.open(name.as_ref());
        fill(&mut AnnotationList {
            encoder: self.encoder,
        });
        self.encoder.body.close(start);
    }

    #[inline]
    fn open(&mut self, name: &[u8]) -> usize {
        let Encoder {
            body, news, strings, ..
        } = &mut *self.encoder;
        let start = body.open(self.field);
        body.uint(annotation::NAME_IID, strings.annotation_name(name, news));
        start
    }
}

impl AnnotationList<'_> {
    /// Adds a value.
    pub fn push<'v>(&mut self, value: impl Into<AnnotationValue<'v>>) {
        self.encoder
            .annotation(annotation::ARRAY_VALUES, Block::EMPTY, value.into());
    }

    /// Adds a map, whose entries `fill` adds.
    pub fn map(&mut self, fill: impl FnOnce(&mut Annotations<'_>)) {
        let start = self.open();
        fill(&mut Annotations::new(self.encoder, annotation::DICT_ENTRIES));
        self.encoder.body.close(start);
    }

    /// Adds a list, whose values `fill` adds.
    pub fn list(&mut self, fill: impl FnOnce(&mut AnnotationList<'_>)) {
        let start = self.open();
        fill(&mut AnnotationList {
            encoder: self.encoder,
        });
        self.encoder.body.close(start);
    }

    fn open(&mut self) -> usize {
        self.encoder.body.open(annotation::ARRAY_VALUES)
    }
}

impl Encoder {
    /// Writes an annotation that is neither a map nor a list. `name` may be empty.
    #[inline(always)]
    fn annotation(&mut self, field: u32, name: Block, value: AnnotationValue<'_>) {
        let mut text: &[u8] = &[];
        let value = match value {
            AnnotationValue::Bool(value) => Block::uint(annotation::BOOL, u64::from(value)),
            AnnotationValue::Int(value) => Block::uint(annotation::INT, value as u64),
            AnnotationValue::Uint(value) => Block::uint(annotation::UINT, value),
            AnnotationValue::Double(value) => Block::fixed64(annotation::DOUBLE, value.to_bits()),
            AnnotationValue::Text(value) => {
                match self
                    .strings
                    .annotation_text(value, &mut self.seen, &mut self.news)
                {
                    Some(number) => Block::uint(annotation::STRING_IID, number),
                    None => {
                        text = value;
                        Block::head(annotation::STRING, text.len())
                    }
                }
            }
        };
        let head = Block::head(field, name.len() + value.len() + text.len());
        let start = head.checked_then(name);
        match start.and_then(|start| start.checked_then(value)) {
            Some(block) => {
                self.body.block(block);
                self.short = text.is_empty().then_some(block);
            }
            None => [head, name, value]
                .into_iter()
                .for_each(|block| self.body.block(block)),
        }
        self.body.append(text);
    }

    /// Writes an annotation with a name that is neither a map nor a list.
    #[inline(never)]
    fn named(&mut self, field: u32, name: &[u8], value: AnnotationValue<'_>) {
        let name = Block::uint(
            annotation::NAME_IID,
            self.strings.annotation_name(name, &mut self.news),
        );
        self.annotation(field, name, value);
    }
}
