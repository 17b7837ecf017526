//! The first pass over a span: reads only the fields for linking, packing and filtering, and skips everything else.

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, KeyValue, Message, Status},
    wire::Reader,
};
use pulsetrain_semconv::attribute;

use super::PerfettoConfig;
use pulsetrain_otlp::json::value_text;

/// Tags of `Span`: the field's number and its wire type.
pub(super) mod tag {
    use pulsetrain_otlp::write::span_field;

    const fn bytes(number: u32) -> u32 {
        number << 3 | 2
    }

    const fn eight(number: u32) -> u32 {
        number << 3 | 1
    }

    pub(crate) const TRACE_ID: u32 = bytes(span_field::TRACE_ID);
    pub(crate) const SPAN_ID: u32 = bytes(span_field::SPAN_ID);
    pub(crate) const PARENT_SPAN_ID: u32 = bytes(span_field::PARENT_SPAN_ID);
    pub(crate) const NAME: u32 = bytes(span_field::NAME);
    pub(crate) const KIND: u32 = span_field::KIND << 3;
    pub(crate) const START: u32 = eight(span_field::START);
    pub(crate) const END: u32 = eight(span_field::END);
    pub(crate) const ATTRIBUTES: u32 = bytes(span_field::ATTRIBUTES);
    pub(crate) const EVENTS: u32 = bytes(span_field::EVENTS);
    pub(crate) const LINKS: u32 = bytes(span_field::LINKS);
    pub(crate) const STATUS: u32 = bytes(span_field::STATUS);
}

/// Tags as single bytes, as they are in a span.
const TRACE_ID: u8 = tag::TRACE_ID as u8;
const SPAN_ID: u8 = tag::SPAN_ID as u8;
const PARENT_SPAN_ID: u8 = tag::PARENT_SPAN_ID as u8;
const KIND: u8 = tag::KIND as u8;
const START: u8 = tag::START as u8;
const END: u8 = tag::END as u8;
const ATTRIBUTES: u8 = tag::ATTRIBUTES as u8;

/// The status of a span that failed (`Status.StatusCode`).
pub(super) const ERROR: i32 = 2;

/// The result of the first pass.
#[derive(Debug, Default)]
pub(super) struct Scanned<'a> {
    pub(super) trace_id: &'a [u8],
    pub(super) span_id: &'a [u8],
    pub(super) parent_span_id: &'a [u8],
    /// The offset of its name if everything that is drawn follows it, else 0.
    pub(super) name_at: u16,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) has_links: bool,
    pub(super) failed: bool,
    /// The label of the group from its attributes.
    pub(super) group: Option<String>,
    /// Whether it has an attribute for rows.
    pub(super) has_row: bool,
    /// Whether its own step is selected; `None` if it has no step.
    pub(super) asked: Option<bool>,
    /// The id of its thread.
    thread: Option<i64>,
}

/// The attributes of a thread: threads of one process often have the same name.
const THREAD_NAME: &str = "thread.name";
const THREAD_ID: &str = "thread.id";

/// Keys of at least this many bytes are checked regardless of their length.
const LONG: usize = 63;

/// The attributes that determine the row of a span, and whether the span is selected.
#[derive(Clone, Debug, Default)]
pub(super) struct AttributeFilter {
    keys: Vec<String>,
    /// A bit for each length of a key.
    lengths: u64,
}

impl AttributeFilter {
    pub(super) fn new(config: &PerfettoConfig) -> Self {
        let step = config.steps.is_some().then_some(attribute::TRAIN_STEP.name);
        let has_threads = config.rows.iter().any(|key| key == THREAD_NAME);
        let thread = has_threads.then_some(THREAD_ID);
        let keys = config.rows.iter().map(String::as_str).chain(step).chain(thread);
        let keys: Vec<String> = keys.map(str::to_owned).collect();
        let lengths = keys.iter().map(|key| 1 << key.len().min(LONG));
        Self {
            lengths: lengths.fold(0, |all, one| all | one),
            keys,
        }
    }

    /// Returns whether an attribute may be one of the wanted ones. Most keys have a different length.
    #[inline]
    fn may_match(&self, attribute: &[u8]) -> bool {
        match attribute {
            [0x0a, length, rest @ ..] if usize::from(*length) < LONG => {
                self.lengths >> length & 1 == 1 && self.has(rest, usize::from(*length))
            }
            _ => true,
        }
    }

    /// Returns whether an attribute that begins with a key of this length is one of the wanted ones.
    fn has(&self, attribute: &[u8], length: usize) -> bool {
        let key = attribute.get(..length);
        key.is_none_or(|key| self.keys.iter().any(|wanted| wanted.as_bytes() == key))
    }
}

impl<'a> Scanned<'a> {
    /// Scans a span.
    #[inline]
    pub(super) fn read(
        &mut self,
        bytes: &'a [u8],
        wanted: &AttributeFilter,
        config: &PerfettoConfig,
    ) -> Result<(), WireError> {
        let mut best = usize::MAX;
        // Whether neither a name nor any other drawn field was read so far.
        let mut nothing_yet = true;
        let mut name: &[u8] = &[];
        let mut reader = Reader::new(bytes);
        self.take_ids(&mut reader);
        while !reader.is_at_end() {
            match reader.tag()? {
                tag::TRACE_ID => self.trace_id = reader.delimited()?,
                tag::SPAN_ID => self.span_id = reader.delimited()?,
                tag::PARENT_SPAN_ID => self.parent_span_id = reader.delimited()?,
                tag::NAME => {
                    let place = u16::try_from(reader.position()).unwrap_or_default();
                    self.name_at = if nothing_yet { place } else { 0 };
                    nothing_yet = false;
                    name = reader.delimited()?;
                }
                tag::KIND => {
                    reader.varint()?;
                    nothing_yet = false;
                }
                tag::START => {
                    self.start = reader.fixed64()?;
                    if let Some(end) = reader.take_chunk(end) {
                        self.end = end;
                    }
                }
                tag::END => self.end = reader.fixed64()?,
                tag::ATTRIBUTES => {
                    let attribute = reader.delimited()?;
                    nothing_yet = false;
                    if wanted.may_match(attribute) {
                        self.look_at(&KeyValue::decode(attribute)?, config, &mut best);
                    }
                    reader.skip_short(ATTRIBUTES, |attribute| !wanted.may_match(attribute));
                }
                tag::LINKS => {
                    reader.delimited()?;
                    self.has_links = true;
                }
                tag::STATUS => {
                    self.failed = Status::decode(reader.delimited()?)?.code == ERROR;
                    nothing_yet = false;
                }
                tag::EVENTS => {
                    reader.delimited()?;
                    nothing_yet = false;
                }
                other => {
                    reader.value(other)?;
                }
            }
        }
        let key = config.rows.get(best).map(String::as_str);
        if let (Some(THREAD_NAME), Some(thread), Some(group)) = (key, self.thread, &mut self.group) {
            name_thread(group, thread);
        }
        if self.group.is_none() && self.parent_span_id.is_empty() {
            let mut rows = config.root_rows.iter();
            let row = rows.find(|(span, _)| span.as_bytes() == name);
            self.group = row.map(|(_, label)| label.clone());
        }
        Ok(())
    }

    /// Reads the ids if they are first, in order and of their usual lengths, as most writers have them.
    #[inline]
    fn take_ids(&mut self, reader: &mut Reader<'a>) {
        if let Some((trace_id, span_id)) = reader.take_chunk(ids) {
            (self.trace_id, self.span_id) = (trace_id, span_id);
            if let Some(id) = reader.take_chunk(parent_id) {
                self.parent_span_id = id;
            }
        }
    }

    /// Reads an attribute: of those that name a group, the first in the configuration counts.
    fn look_at(&mut self, attribute: &KeyValue<'_>, config: &PerfettoConfig, best: &mut usize) {
        let value = attribute.value.unwrap_or_default();
        let place = config.rows.iter().position(|key| attribute.key == key.as_str());
        self.has_row |= place.is_some();
        if let Some(place) = place.filter(|place| place < best) {
            *best = place;
            let kind = kind(&config.rows[place]);
            self.group = Some(format!("{kind} {}", value_text(value)));
        }
        if let AnyValue::Int(thread) = value
            && attribute.key == THREAD_ID
        {
            self.thread = Some(thread);
        }
        if let (Some(steps), AnyValue::Int(step)) = (&config.steps, value)
            && attribute.key == attribute::TRAIN_STEP.name
        {
            self.asked = Some(steps.contains(&step));
        }
    }
}

/// Appends the id of a thread to the label of its row, unless the label contains it.
fn name_thread(group: &mut String, thread: i64) {
    let number = thread.to_string();
    let mut numbers = group.split(|letter: char| !letter.is_ascii_digit());
    if !numbers.any(|has| has == number) {
        group.push(' ');
        group.push_str(&number);
    }
}

/// Returns the trace id and the span id if they are adjacent, with their tags and lengths.
#[inline]
fn ids(fields: &[u8; 28]) -> Option<(&[u8], &[u8])> {
    match fields.split_at(18) {
        ([TRACE_ID, 16, trace_id @ ..], [SPAN_ID, 8, span_id @ ..]) => Some((trace_id, span_id)),
        _ => None,
    }
}

/// Returns the id of a parent from a field with its tag and length.
#[inline]
fn parent_id(field: &[u8; 10]) -> Option<&[u8]> {
    match field {
        [PARENT_SPAN_ID, 8, id @ ..] => Some(id),
        _ => None,
    }
}

/// Returns the end time of a span from a field with its tag.
#[inline]
fn end(field: &[u8; 9]) -> Option<u64> {
    let [END, rest @ ..] = field else {
        return None;
    };
    Some(u64::from_le_bytes(*rest))
}

/// Returns the kind of a span if its kind and its times are between its name and its other drawn fields, as is usual.
#[inline]
pub(super) fn between_name_and_attributes(fields: &[u8; 20]) -> Option<u64> {
    match fields {
        [KIND, kind @ ..0x80, START, _, _, _, _, _, _, _, _, END, ..] => Some(u64::from(*kind)),
        _ => None,
    }
}

/// Returns the kind of a group for the key of its attribute: `device` for `device.id`, `timeline` for `perf.timeline`.
fn kind(key: &str) -> &str {
    match key.rsplit_once('.') {
        Some((of, "id" | "name")) => of,
        Some((_, kind)) => kind,
        None => key,
    }
}
