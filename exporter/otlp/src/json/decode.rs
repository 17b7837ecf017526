//! Decodes OTLP/JSON into protobuf bytes: one pass over the text, directly into the output.

use std::borrow::Cow;

use super::{
    error::{JsonError, JsonErrorKind},
    last_wins::{self, Repeat},
    order::{self, Order},
    output::Output,
    token::{Cursor, Raw},
};
use crate::{
    Signal,
    check::check,
    descriptor::{FieldDescriptor, MessageDescriptor, Role},
    limits::{Counts, Limit, Limits, MAX_DEPTH},
    lookup,
};

mod value;

/// The dialect of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// OTLP/JSON only.
    #[default]
    Otlp,
    /// Also the responses of trace stores, which follow protobuf's own JSON mapping: an id may be base64 (detected by its
    /// length), a trace id may lack leading zeros, an enum value may be its name, and `batches` may replace `resourceSpans`.
    Stored,
}

/// The result of decoding a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The signal, by the outermost name, or `None` if the object has none of the three and the output is empty.
    pub signal: Option<Signal>,
    /// The counts of the content that was written.
    pub counts: Counts,
    /// The number of fields that OTLP does not know; they are ignored.
    pub unknown_fields: u64,
    /// The first unknown field.
    pub first_unknown: Option<UnknownField>,
}

/// A field that OTLP does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The name as written in the text.
    pub name: String,
    /// The offset of the name, in bytes from the start of the text.
    pub offset: usize,
}

/// Appends the protobuf bytes of one OTLP/JSON object.
///
/// Numbers of 64 bits may be strings or numbers and stay exact; `null` is the same as no field; of a duplicate name the last
/// one counts. A field may have its JSON name or its name in the proto files (`trace_id`). Invalid UTF-8 and lone surrogates
/// become U+FFFD.
///
/// # Errors
///
/// Returns the first error, with its offset in `text`; `out` is then unchanged.
pub fn decode(text: &[u8], limits: &Limits, out: &mut Vec<u8>) -> Result<Decoded, JsonError> {
    decode_dialect(text, Dialect::Otlp, limits, out)
}

/// Appends the protobuf bytes of one object in a dialect, as [`decode`] does.
///
/// # Errors
///
/// As [`decode`].
pub fn decode_dialect(
    text: &[u8],
    dialect: Dialect,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<Decoded, JsonError> {
    let start = out.len();
    let decoded = Decoder::new(text, dialect, limits, out).document(start);
    if decoded.is_err() {
        out.truncate(start);
    }
    decoded
}

struct Decoder<'a> {
    cursor: Cursor<'a>,
    dialect: Dialect,
    limits: &'a Limits,
    output: Output<'a>,
    order: Order,
    is_utf8: bool,
    repeats: Vec<Repeat>,
    must_recount: bool,
    decoded: Decoded,
}

impl<'a> Decoder<'a> {
    fn new(text: &'a [u8], dialect: Dialect, limits: &'a Limits, out: &'a mut Vec<u8>) -> Self {
        Self {
            cursor: Cursor::new(text),
            dialect,
            limits,
            output: Output::new(out),
            order: Order::new(),
            is_utf8: text.is_ascii() || std::str::from_utf8(text).is_ok(),
            repeats: Vec::new(),
            must_recount: false,
            decoded: Decoded {
                signal: None,
                counts: Counts::default(),
                unknown_fields: 0,
                first_unknown: None,
            },
        }
    }

    fn document(mut self, start: usize) -> Result<Decoded, JsonError> {
        self.admit(Limit::Bytes, self.cursor.text_len() as u64)?;
        self.cursor.expect(b'{', "an object")?;
        self.enter(Role::Part, 1)?;
        let mut object = Object::at(&self);
        while let Some(name) = self.cursor.next_name(&mut object.first)? {
            match self.signal_named(&name)? {
                Some(signal) => self.member((0, &lookup::top(signal).fields[0]), 1, &mut object)?,
                None => self.unknown_field(&name, 1)?,
            }
        }
        self.end(&object);
        if self.cursor.peek().is_some() {
            return Err(self.error(JsonErrorKind::TrailingText));
        }
        if let (true, Some(signal)) = (self.must_recount, self.decoded.signal) {
            // Duplicate members were counted twice.
            let bytes = &self.output.bytes[start..];
            let limits = Limits {
                bytes: bytes.len(),
                ..self.limits.clone()
            };
            if let Ok(counts) = check(signal, bytes, &limits) {
                self.decoded.counts = counts;
            }
        }
        Ok(self.decoded)
    }

    fn signal_named(&mut self, name: &Raw<'a>) -> Result<Option<Signal>, JsonError> {
        let text = text_of(name)?;
        let signal = match lookup::signal_named(&text) {
            Some(signal) => signal,
            None if self.dialect == Dialect::Stored && *text == *b"batches" => Signal::Traces,
            None => return Ok(None),
        };
        if self
            .decoded
            .signal
            .replace(signal)
            .is_some_and(|other| other != signal)
        {
            return Err(JsonError::new(JsonErrorKind::TwoSignals, name.offset));
        }
        Ok(Some(signal))
    }

    fn message(&mut self, table: &'static MessageDescriptor, depth: usize) -> Result<(), JsonError> {
        self.cursor.expect(b'{', "an object")?;
        self.enter(table.role, depth)?;
        let mut object = Object::at(self);
        let mut before = order::START;
        loop {
            let guess = self.order.after(depth, before);
            if let Some(field) = table.fields.get(guess)
                && self.cursor.take_key(field.json_key, object.first)
            {
                object.first = false;
                self.member((guess, field), depth, &mut object)?;
                before = guess;
                continue;
            }
            let Some(name) = self.cursor.next_name(&mut object.first)? else {
                break;
            };
            match table.by_name(&text_of(&name)?) {
                Some((place, field)) => {
                    self.order.learn(depth, before, place);
                    self.member((place, field), depth, &mut object)?;
                    before = place;
                }
                None => self.unknown_field(&name, depth)?,
            }
        }
        self.end(&object);
        Ok(())
    }

    #[inline]
    fn member(
        &mut self,
        (place, field): (usize, &'static FieldDescriptor),
        depth: usize,
        object: &mut Object,
    ) -> Result<(), JsonError> {
        let bit = 1 << place;
        if object.seen & bit != 0 {
            let (number, from) = (field.number, self.output.len());
            last_wins::record(&mut self.repeats, object.repeats_from, Repeat { number, from });
        }
        object.seen |= bit;
        if self.cursor.peek() == Some(b'n') && self.cursor.take_word(b"null") {
            return Ok(());
        }
        self.value(field, depth)
            .map_err(|error| error.in_field(field.json_name))
    }

    #[inline]
    fn end(&mut self, object: &Object) {
        if self.repeats.len() > object.repeats_from {
            self.remove_repeated_fields(object);
        }
    }

    #[cold]
    fn remove_repeated_fields(&mut self, object: &Object) {
        let repeats = &self.repeats[object.repeats_from..];
        last_wins::cut(self.output.bytes, object.start, repeats);
        self.repeats.truncate(object.repeats_from);
        self.must_recount = true;
    }

    fn unknown_field(&mut self, name: &Raw<'a>, depth: usize) -> Result<(), JsonError> {
        self.decoded.unknown_fields += 1;
        self.decoded.first_unknown.get_or_insert_with(|| UnknownField {
            name: String::from_utf8_lossy(name.inside).into_owned(),
            offset: name.offset,
        });
        let below = self.limits.depth.min(MAX_DEPTH).saturating_sub(depth);
        self.cursor.skip_value(below)
    }

    #[inline]
    fn enter(&mut self, role: Role, depth: usize) -> Result<(), JsonError> {
        let counted = self.decoded.counts.enter(role, depth, self.limits);
        counted.map_err(|exceeded| self.error(JsonErrorKind::Exceeded(exceeded)))
    }

    #[inline]
    fn admit(&self, limit: Limit, count: u64) -> Result<(), JsonError> {
        let admitted = self.limits.admit(limit, count);
        admitted.map_err(|exceeded| self.error(JsonErrorKind::Exceeded(exceeded)))
    }

    #[cold]
    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError::new(kind, self.cursor.offset())
    }
}

/// An object that is being read.
struct Object {
    /// The offset of its fields in the output.
    start: usize,
    /// The index of the first entry for its duplicate names.
    repeats_from: usize,
    /// Whether no member has been read.
    first: bool,
    /// The indices of the fields that were read, as a bit set.
    seen: u32,
}

impl Object {
    fn at(decoder: &Decoder<'_>) -> Self {
        Self {
            start: decoder.output.len(),
            repeats_from: decoder.repeats.len(),
            first: true,
            seen: 0,
        }
    }
}

/// Returns the value of a string as bytes, which are borrowed unless the string has escapes.
#[inline]
fn text_of<'t>(raw: &Raw<'t>) -> Result<Cow<'t, [u8]>, JsonError> {
    if raw.escapes == 0 {
        return Ok(Cow::Borrowed(raw.inside));
    }
    let mut text = Vec::with_capacity(raw.inside.len());
    raw.unescape(&mut text)?;
    Ok(Cow::Owned(text))
}
