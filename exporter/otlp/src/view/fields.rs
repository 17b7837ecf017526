//! Field types of the views: text, repeated messages and packed numbers, all borrowed from the input.

use std::{borrow::Cow, fmt, marker::PhantomData};

use crate::{
    descriptor::MessageDescriptor,
    wire::{Reader, WireError},
};

/// A message that can be viewed in place.
pub trait Message<'a>: Sized {
    /// Returns the descriptor of the message.
    fn descriptor() -> &'static MessageDescriptor;

    /// Reads the fields of a message. Offsets in errors count from the start of `bytes`.
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError>;
}

/// A string field. Its bytes may be invalid UTF-8, which a telemetry pipeline must accept.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text<'a>(pub(crate) &'a [u8]);

impl<'a> Text<'a> {
    /// Returns the bytes as they are on the wire.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns whether the text is empty.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text if it is valid UTF-8.
    pub fn to_str(self) -> Result<&'a str, std::str::Utf8Error> {
        std::str::from_utf8(self.0)
    }

    /// Returns the text, with U+FFFD for invalid UTF-8.
    pub fn to_str_lossy(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str_lossy(), f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str_lossy())
    }
}

/// The range of a message from the first to the last occurrence of one field.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch<'a> {
    bytes: &'a [u8],
    start: usize,
    tag: u32,
    count: u32,
}

impl<'a> Stretch<'a> {
    /// Adds one more occurrence, which `reader` has just read.
    #[inline]
    fn push(&mut self, reader: &Reader<'a>, tag: u32, start: usize) {
        if self.count == 0 {
            self.start = start;
            self.tag = tag;
        }
        self.bytes = reader.between(self.start, reader.position());
        self.count += 1;
    }
}

/// A repeated message field.
#[derive(Clone, Copy)]
pub struct Repeated<'a, M> {
    stretch: Stretch<'a>,
    message: PhantomData<fn() -> M>,
}

impl<'a, M> Repeated<'a, M> {
    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.stretch.count as usize
    }

    /// Returns whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.stretch.count == 0
    }

    /// Iterates over the messages in their order; each is decoded when the iterator reaches it.
    pub fn iter(&self) -> RepeatedIter<'a, M> {
        RepeatedIter {
            reader: Reader::new(self.stretch.bytes),
            tag: self.stretch.tag,
            message: PhantomData,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, reader: &Reader<'a>, tag: u32, start: usize) {
        self.stretch.push(reader, tag, start);
    }
}

impl<M> Default for Repeated<'_, M> {
    fn default() -> Self {
        Self {
            stretch: Stretch::default(),
            message: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Repeated<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} x {}]", self.len(), std::any::type_name::<M>())
    }
}

impl<'a, M: Message<'a>> IntoIterator for Repeated<'a, M> {
    type Item = Result<M, WireError>;
    type IntoIter = RepeatedIter<'a, M>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterates over the messages of a [`Repeated`] field; ends after an error.
#[derive(Clone, Debug)]
pub struct RepeatedIter<'a, M> {
    reader: Reader<'a>,
    tag: u32,
    message: PhantomData<fn() -> M>,
}

impl<'a, M> RepeatedIter<'a, M> {
    /// Returns the bytes of the next message, not yet decoded.
    #[inline]
    pub fn next_bytes(&mut self) -> Option<Result<&'a [u8], WireError>> {
        while !self.reader.is_at_end() {
            match next_occurrence(&mut self.reader, self.tag) {
                Ok(None) => {}
                Ok(Some(bytes)) => return Some(Ok(bytes)),
                Err(error) => {
                    self.reader = Reader::new(&[]);
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// Returns the value of the next field if its tag is `wanted`.
#[inline(always)]
fn next_occurrence<'a>(reader: &mut Reader<'a>, wanted: u32) -> Result<Option<&'a [u8]>, WireError> {
    let tag = reader.tag()?;
    if tag == wanted {
        return reader.delimited().map(Some);
    }
    reader.value(tag).map(|_| None)
}

impl<'a, M: Message<'a>> Iterator for RepeatedIter<'a, M> {
    type Item = Result<M, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_bytes().map(|bytes| bytes.and_then(M::decode))
    }
}

/// A `repeated string` field.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts<'a> {
    stretch: Stretch<'a>,
}

impl<'a> Texts<'a> {
    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.stretch.count as usize
    }

    /// Returns whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.stretch.count == 0
    }

    /// Iterates over the strings in their order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Text<'a>, WireError>> + use<'a> {
        let mut bytes = RepeatedIter::<()> {
            reader: Reader::new(self.stretch.bytes),
            tag: self.stretch.tag,
            message: PhantomData,
        };
        std::iter::from_fn(move || bytes.next_bytes()).map(|bytes| bytes.map(Text))
    }

    #[inline]
    pub(super) fn push(&mut self, reader: &Reader<'a>, tag: u32, start: usize) {
        self.stretch.push(reader, tag, start);
    }
}

/// A repeated number field, packed or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packed<'a, N> {
    stretch: Stretch<'a>,
    number: PhantomData<N>,
}

/// A number type of packed fields.
pub trait PackedNumber: Sized {
    /// Reads one number.
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError>;
}

/// A `fixed64` of a packed field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed(pub u64);

impl PackedNumber for Fixed {
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        reader.fixed64().map(Fixed)
    }
}

impl PackedNumber for u64 {
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        reader.varint()
    }
}

impl PackedNumber for f64 {
    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        reader.fixed64().map(f64::from_bits)
    }
}

impl<'a, N: PackedNumber> Packed<'a, N> {
    /// Returns whether there are no numbers.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Iterates over the numbers in their order.
    pub fn iter(&self) -> PackedIter<'a, N> {
        PackedIter {
            fields: Reader::new(self.stretch.bytes),
            number: self.stretch.tag >> 3,
            run: Reader::new(&[]),
            kind: PhantomData,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, reader: &Reader<'a>, tag: u32, start: usize) {
        self.stretch.push(reader, tag, start);
    }
}

/// Iterates over the numbers of a [`Packed`] field; ends after an error.
#[derive(Clone, Debug)]
pub struct PackedIter<'a, N> {
    fields: Reader<'a>,
    number: u32,
    run: Reader<'a>,
    kind: PhantomData<N>,
}

impl<N: PackedNumber> PackedIter<'_, N> {
    fn step(&mut self) -> Result<Option<N>, WireError> {
        loop {
            if !self.run.is_at_end() {
                return N::read(&mut self.run).map(Some);
            }
            if self.fields.is_at_end() {
                return Ok(None);
            }
            let tag = self.fields.tag()?;
            match (tag >> 3 == self.number, tag & 7) {
                (true, 2) => self.run = Reader::new(self.fields.delimited()?),
                (true, _) => return N::read(&mut self.fields).map(Some),
                (false, _) => drop(self.fields.value(tag)?),
            }
        }
    }
}

impl<N: PackedNumber> Iterator for PackedIter<'_, N> {
    type Item = Result<N, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.run = Reader::new(&[]);
            self.fields = Reader::new(&[]);
        }
        step.transpose()
    }
}
