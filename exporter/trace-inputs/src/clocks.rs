//! Aligns the clocks of processes: shifts their times so that the children of a remote call are within their parents.
//!
//! All messages are stored in a temporary file while parents and children are compared. Then they are read again, and their
//! times are changed in place. [`offsets`](self::offsets) computes the shift of each clock.

mod offsets;
mod times;

use std::{
    collections::{BTreeMap, HashMap},
    io,
};

use pulsetrain_otlp::{
    Signal, WireError,
    json::value_text,
    view::{Message, Resource, Span, TracesData},
    wire::Reader,
};
use pulsetrain_pipeline::spill::{Extent, ExtentReader, MemoryBudget, Sorter, SpillFile};
use pulsetrain_semconv::attribute;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use self::offsets::{Bounds, offsets};
use crate::ConvertError;

/// The limit for the pairs of resources that are compared.
const MAX_PAIRS: usize = 1 << 16;

/// The number of bytes that are read from the temporary file at once.
const CHUNK: usize = 256 << 10;

/// The sort order of a span as a parent, before its children.
const PARENT: u64 = 0;
const CHILD: u64 = 1;

/// `SPAN_KIND_SERVER` and `SPAN_KIND_CLIENT` (proto/trace/v1/trace.proto).
const SERVER: i32 = 2;
const CLIENT: i32 = 3;

/// The field of the resource in `ResourceSpans` and its counterparts.
const RESOURCE: u32 = 1 << 3 | 2;

/// Collects messages and aligns the clocks of their resources.
#[derive(Debug)]
pub struct ClockAlignment {
    messages: SpillFile,
    /// Each span under its own ids, and again under the ids of its parent.
    spans: Sorter,
    /// The numbers of the resources by the hash of their attributes.
    resources: HashMap<u64, u32>,
    names: Vec<String>,
}

/// A clock that was shifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedClock {
    /// The service, and its instance if it has one.
    pub name: String,
    /// The offset that was added to its times, in nanoseconds.
    pub nanos: i64,
}

/// The times of a span, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    resource: u32,
    kind: i32,
    start: u64,
    end: u64,
}

impl ClockAlignment {
    /// Creates an alignment with the memory budget `room`.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be created.
    pub fn new(room: &MemoryBudget) -> Result<Self, ConvertError> {
        Ok(Self {
            messages: room.spill().map_err(ConvertError::Temporary)?,
            spans: Sorter::new(room.share(4)),
            resources: HashMap::new(),
            names: Vec::new(),
        })
    }

    /// Adds a message.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be written. If the message is not valid OTLP, the spans before the error are compared.
    pub fn add(&mut self, signal: Signal, message: &[u8]) -> Result<(), ConvertError> {
        self.store(signal, message).map_err(ConvertError::Temporary)
    }

    /// Passes all messages to `deliver`, with aligned times, and returns the clocks that were shifted.
    ///
    /// # Errors
    ///
    /// A temporary file cannot be read, or `deliver` fails.
    pub fn align<E: From<ConvertError>>(
        mut self,
        deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
    ) -> Result<Vec<MovedClock>, E> {
        let bounds = self.bounds().map_err(ConvertError::Temporary)?;
        let offsets = offsets(self.names.len(), &bounds);
        let mut stored = ExtentReader::new(
            Extent {
                start: 0,
                end: self.messages.len(),
            },
            CHUNK,
        );
        while !stored.is_at_end() {
            let (signal, mut message) = self.stored(&mut stored).map_err(ConvertError::Temporary)?;
            self.change(signal, &mut message, &offsets);
            deliver(signal, message)?;
        }
        let moved = self.names.into_iter().zip(offsets);
        let moved = moved.filter(|(_, nanos)| *nanos != 0);
        Ok(moved.map(|(name, nanos)| MovedClock { name, nanos }).collect())
    }

    fn store(&mut self, signal: Signal, message: &[u8]) -> io::Result<()> {
        self.messages.append(&[signal as u8])?;
        self.messages.append(&(message.len() as u64).to_le_bytes())?;
        self.messages.append(message)?;
        if signal != Signal::Traces {
            return Ok(());
        }
        let mut outcome = Ok(());
        // Invalid OTLP is reported when the message is drawn.
        let _ = spans_of(message, |resource, span| {
            if outcome.is_ok() {
                outcome = self.compare(resource, span);
            }
        });
        outcome
    }

    /// Stores the times of a span for the comparison with its children and its parent.
    fn compare(&mut self, resource: &[u8], span: &Span<'_>) -> io::Result<()> {
        let times = Times {
            resource: self.number(resource),
            kind: span.kind,
            start: span.start_time_unix_nano,
            end: span.end_time_unix_nano,
        };
        if times.start == 0 || times.end < times.start || span.span_id.is_empty() {
            return Ok(());
        }
        let own = (id(span.trace_id, span.span_id), PARENT);
        self.spans.push(own, |out| times.write(out))?;
        if !span.parent_span_id.is_empty() {
            let parent = (id(span.trace_id, span.parent_span_id), CHILD);
            self.spans.push(parent, |out| times.write(out))?;
        }
        Ok(())
    }

    /// Returns the number of a resource, which does not depend on the order of its attributes.
    fn number(&mut self, resource: &[u8]) -> u32 {
        let next = self.names.len() as u32;
        let names = &mut self.names;
        *self.resources.entry(resource_hash(resource)).or_insert_with(|| {
            names.push(name(resource));
            next
        })
    }

    /// Returns the bounds for the shift of each child's clock relative to its parent's clock.
    fn bounds(&mut self) -> io::Result<BTreeMap<(u32, u32), Bounds>> {
        self.messages.flush()?;
        let mut sorted = std::mem::take(&mut self.spans).sorted()?;
        let mut bounds = BTreeMap::new();
        let mut parent: Option<(u64, Times)> = None;
        while let Some((id, order)) = sorted.next_key() {
            let Some(times) = sorted.next_record()?.and_then(Times::read) else {
                break;
            };
            match parent {
                _ if order == PARENT => parent = Some((id, times)),
                Some((parent_id, parent)) if parent_id == id && parent.resource != times.resource => {
                    let pair = (parent.resource, times.resource);
                    if bounds.len() < MAX_PAIRS || bounds.contains_key(&pair) {
                        bounds
                            .entry(pair)
                            .or_insert_with(Bounds::default)
                            .add(&parent, &times);
                    }
                }
                _ => {}
            }
        }
        Ok(bounds)
    }

    fn stored(&self, stored: &mut ExtentReader) -> io::Result<(Signal, Vec<u8>)> {
        let [signal] = stored.array(&self.messages)?;
        let length: [u8; 8] = stored.array(&self.messages)?;
        let mut message = Vec::new();
        stored.take(&self.messages, u64::from_le_bytes(length) as usize, &mut message)?;
        let signal = Signal::ALL.into_iter().find(|known| *known as u8 == signal);
        Ok((signal.unwrap_or(Signal::Traces), message))
    }

    /// Shifts the times of a message by the offsets of its resources.
    fn change(&self, signal: Signal, message: &mut [u8], offsets: &[i64]) {
        // A message that is not valid OTLP is changed only before the error, which the next reader reports.
        for (start, end) in times::resources(message) {
            let resource = resource_of(&message[start..end]).unwrap_or_default();
            let number = self.resources.get(&resource_hash(resource));
            let offset = number.map_or(0, |number| offsets[*number as usize]);
            if offset != 0 {
                times::shift(signal, &mut message[start..end], offset);
            }
        }
    }
}

impl Times {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.resource.to_le_bytes());
        out.extend_from_slice(&self.kind.to_le_bytes());
        out.extend_from_slice(&self.start.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
    }

    fn read(record: &[u8]) -> Option<Self> {
        let (resource, record) = record.split_first_chunk()?;
        let (kind, record) = record.split_first_chunk()?;
        let (start, record) = record.split_first_chunk()?;
        Some(Self {
            resource: u32::from_le_bytes(*resource),
            kind: i32::from_le_bytes(*kind),
            start: u64::from_le_bytes(*start),
            end: u64::from_le_bytes(*record.first_chunk()?),
        })
    }
}

/// Calls `take` with every span and the bytes of its resource.
fn spans_of(message: &[u8], mut take: impl FnMut(&[u8], &Span<'_>)) -> Result<(), WireError> {
    for (start, end) in times::resources(message) {
        let resource = resource_of(&message[start..end]).unwrap_or_default();
        let of_resource = pulsetrain_otlp::view::ResourceSpans::decode(&message[start..end])?;
        for scope in of_resource.scope_spans.iter() {
            for span in scope?.spans.iter() {
                take(resource, &span?);
            }
        }
    }
    TracesData::decode(message).map(drop)
}

/// Returns the bytes of the resource in a `ResourceSpans` or a counterpart.
fn resource_of(bytes: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(bytes);
    let mut resource = None;
    while !reader.is_at_end() {
        match reader.tag().ok()? {
            RESOURCE => resource = Some(reader.delimited().ok()?),
            other => drop(reader.value(other).ok()?),
        }
    }
    resource
}

fn resource_hash(resource: &[u8]) -> u64 {
    let mut attributes = Vec::new();
    if let Ok(resource) = Resource::decode(resource) {
        let mut all = resource.attributes.iter();
        while let Some(Ok(bytes)) = all.next_bytes() {
            attributes.push(bytes);
        }
    }
    attributes.sort_unstable();
    let mut hasher = Xxh3::new();
    attributes.iter().for_each(|bytes| hasher.update(bytes));
    hasher.digest()
}

/// Returns the service of a resource, with its instance.
fn name(resource: &[u8]) -> String {
    let keys = [attribute::SERVICE_NAME.name, attribute::SERVICE_INSTANCE_ID.name];
    let mut parts = [String::new(), String::new()];
    for pair in Resource::decode(resource)
        .unwrap_or_default()
        .attributes
        .iter()
        .flatten()
    {
        let key = keys.iter().position(|key| pair.key.as_bytes() == key.as_bytes());
        if let Some(key) = key {
            parts[key] = value_text(pair.value.unwrap_or_default()).into_owned();
        }
    }
    match parts {
        [service, instance] if service.is_empty() && instance.is_empty() => {
            "a process without a name".to_owned()
        }
        [service, instance] if instance.is_empty() => service,
        [service, instance] => format!("{service} ({instance})"),
    }
}

fn id(trace_id: &[u8], span_id: &[u8]) -> u64 {
    xxh3_64(&[trace_id, span_id].concat())
}

#[cfg(test)]
mod tests;
