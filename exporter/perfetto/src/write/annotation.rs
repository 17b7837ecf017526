//! Debug annotations: the typed arguments of an event, encoded as they are added.

use super::intern::{RecentValues, Strings};
use crate::{
    field::annotation,
    wire::{Block, Buffer},
};

/// A value of an annotation.
///
/// Text is normally UTF-8; where it is not, viewers show U+FFFD. Perfetto has no type for bytes.
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

/// What one event is encoded into.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    /// The body of the `TrackEvent`.
    pub(super) body: Buffer,
    /// The body of the `InternedData` that goes with it.
    pub(super) news: Buffer,
    /// What the event's sequence has interned.
    pub(super) strings: Box<Strings>,
    /// The texts that came lately on any sequence.
    pub(super) seen: RecentValues,
    /// The annotation that was written last, if it fitted into a block.
    pub(super) short: Option<Block>,
}

impl<'a> Annotations<'a> {
    pub(super) fn new(encoder: &'a mut Encoder, field: u32) -> Self {
        Self { encoder, field }
    }

    /// Adds an annotation. trace_processor has its key with an underscore for each dot: `debug.train_step`.
    #[inline]
    pub fn add<'v>(&mut self, name: impl AsRef<[u8]>, value: impl Into<AnnotationValue<'v>>) {
        let Encoder { news, strings, .. } = &mut *self.encoder;
        let name = Block::uint(annotation::NAME_IID, strings.annotation_name(name.as_ref(), news));
        let value = self.encoder.value(value.into());
        self.encoder.annotation(self.field, name, value);
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
        let start = self.open();
        let value = self.encoder.value(value.into());
        self.encoder.write(value);
        self.encoder.body.close(start);
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

/// A value on its way out: most are a few bytes.
#[derive(Clone, Copy)]
enum Value<'v> {
    Short(Block),
    Text(&'v [u8]),
}

impl Encoder {
    #[inline]
    fn value<'v>(&mut self, value: AnnotationValue<'v>) -> Value<'v> {
        Value::Short(match value {
            AnnotationValue::Bool(value) => Block::uint(annotation::BOOL, u64::from(value)),
            AnnotationValue::Int(value) => Block::uint(annotation::INT, value as u64),
            AnnotationValue::Uint(value) => Block::uint(annotation::UINT, value),
            AnnotationValue::Double(value) => Block::fixed64(annotation::DOUBLE, value.to_bits()),
            AnnotationValue::Text(text) => {
                match self.strings.annotation_text(text, &mut self.seen, &mut self.news) {
                    Some(number) => Block::uint(annotation::STRING_IID, number),
                    None => return Value::Text(text),
                }
            }
        })
    }

    /// Writes an annotation that is no map and no list.
    #[inline]
    fn annotation(&mut self, field: u32, name: Block, value: Value<'_>) {
        if let Value::Short(value) = value
            && let head = Block::head(field, name.len() + value.len())
            && let Some(block) = head
                .checked_then(name)
                .and_then(|start| start.checked_then(value))
        {
            self.short = Some(block);
            return self.body.block(block);
        }
        let start = self.body.open(field);
        self.body.block(name);
        self.write(value);
        self.body.close(start);
    }

    #[inline]
    fn write(&mut self, value: Value<'_>) {
        match value {
            Value::Short(value) => self.body.block(value),
            Value::Text(text) => self.body.delimited(annotation::STRING, text),
        }
    }
}
