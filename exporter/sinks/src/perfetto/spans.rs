//! The spans of an input: what packing and linking need of each, and where its bytes are.

use std::hash::{BuildHasher, Hasher};

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashMap};
use pulsetrain_otlp::{
    WireError,
    view::{Message, ResourceSpans, ScopeSpans, TracesData},
    wire::{Reader, Value},
};

use super::{
    PerfettoConfig, PerfettoSummary,
    labels::Labels,
    resources::Resources,
    scan::{self, Wanted},
    scopes::Scopes,
};

/// What making trees needs for each span: its place by its ids, its times, its children.
const TREE_BYTES: usize = 64;

/// The spans of an input, or of a part of it.
#[derive(Debug, Default)]
pub(super) struct Spans {
    batches: Vec<Bytes>,
    batch_bytes: usize,
    pub(super) records: Vec<SpanRecord>,
    /// The names of groups, each once.
    pub(super) labels: Labels,
    /// The earliest and the latest time that any span has.
    pub(super) times: Option<(u64, u64)>,
    /// How many spans went before these.
    pub(super) first_number: u64,
    hasher: DefaultHashBuilder,
    wanted: Wanted,
    /// The traces that have a span of a step that is asked for.
    asked_traces: hashbrown::HashSet<u64>,
}

/// A span as far as it must be known all the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanRecord {
    batch: u32,
    offset: u32,
    length: u32,
    pub(super) resource: u32,
    pub(super) scope: u32,
    /// When it is drawn to begin and to end.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) trace: u64,
    /// The hash of its ids; 0 where it has none.
    id: u64,
    parent_id: u64,
    /// Its parent, once it is known.
    pub(super) parent: Option<u32>,
    /// The label of its group: its own, and once it is known, its parent's.
    pub(super) group: Option<u32>,
    pub(super) has_links: bool,
    /// Whether it, or once that is known anything below it, has failed.
    pub(super) failed: bool,
    /// Whether its own step is asked for; none where it says no step.
    asked: Option<bool>,
}

/// What spans stand in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub(super) resource: u32,
    pub(super) scope: u32,
}

impl Spans {
    pub(super) fn new(config: &PerfettoConfig) -> Self {
        Self {
            wanted: Wanted::of(config),
            ..Self::default()
        }
    }

    /// Takes in a batch of traces.
    pub(super) fn add(
        &mut self,
        batch: Bytes,
        config: &PerfettoConfig,
        resources: &mut Resources,
        scopes: &mut Scopes,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        let outcome = self.add_resources(&batch, config, resources, scopes, summary);
        self.keep(batch);
        outcome
    }

    /// Keeps the bytes that the newest records are in.
    pub(super) fn keep(&mut self, batch: Bytes) {
        self.batch_bytes += batch.len();
        self.batches.push(batch);
    }

    fn add_resources(
        &mut self,
        batch: &[u8],
        config: &PerfettoConfig,
        resources: &mut Resources,
        scopes: &mut Scopes,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        let mut all = TracesData::decode(batch)?.resource_spans.iter();
        while let Some(bytes) = all.next_bytes() {
            let bytes = bytes?;
            let within = ResourceSpans::decode(bytes)?;
            let resource = resources.number(first(bytes, 1), config)?;
            let shown = config.shows_rank(resources.get(resource).rank);
            let mut each = within.scope_spans.iter();
            while let Some(bytes) = each.next_bytes() {
                let bytes = bytes?;
                let spans = ScopeSpans::decode(bytes)?;
                if !shown {
                    summary.filtered += spans.spans.len() as u64;
                    continue;
                }
                let scope = scopes.number_of(bytes, spans.schema_url, within.schema_url)?;
                resources.has_scope(resource, scope);
                self.add_scope(&spans, batch, Around { resource, scope }, config, summary)?;
            }
        }
        Ok(())
    }

    fn add_scope(
        &mut self,
        spans: &ScopeSpans<'_>,
        batch: &[u8],
        around: Around,
        config: &PerfettoConfig,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        let mut each = spans.spans.iter();
        while let Some(bytes) = each.next_bytes() {
            let bytes = bytes?;
            let offset = bytes.as_ptr() as usize - batch.as_ptr() as usize;
            if !self.add_span(bytes, offset, around, config)? {
                summary.filtered += 1;
            }
        }
        Ok(())
    }

    /// Takes in a span of the batch that is kept next; false where its time is not asked for.
    #[inline]
    pub(super) fn add_span(
        &mut self,
        bytes: &[u8],
        offset: usize,
        around: Around,
        config: &PerfettoConfig,
    ) -> Result<bool, WireError> {
        let found = scan::scan(bytes, &self.wanted, config)?;
        if found.end != 0 && !config.shows_time(found.start, found.end) {
            return Ok(false);
        }
        for time in [found.start, found.end].into_iter().filter(|time| *time != 0) {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        let trace = self.hasher.hash_one(found.trace_id);
        if found.asked == Some(true) {
            self.asked_traces.insert(trace);
        }
        self.records.push(SpanRecord {
            batch: self.batches.len() as u32,
            offset: offset as u32,
            length: bytes.len() as u32,
            resource: around.resource,
            scope: around.scope,
            start: found.start,
            end: found.end,
            trace,
            id: id_hash(trace, found.span_id),
            parent_id: id_hash(trace, found.parent_span_id),
            parent: None,
            group: found.group.map(|group| self.labels.number(group)),
            has_links: found.has_links,
            failed: found.failed,
            asked: found.asked,
        });
        Ok(true)
    }

    /// How much memory the spans take, with what making trees of them needs.
    pub(super) fn held_bytes(&self) -> usize {
        self.batch_bytes + self.records.len() * (size_of::<SpanRecord>() + TREE_BYTES)
    }

    /// Forgets the spans and remembers what all spans share.
    pub(super) fn clear(&mut self) {
        self.first_number += self.records.len() as u64;
        self.batches.clear();
        self.batch_bytes = 0;
        self.records.clear();
        self.asked_traces.clear();
    }

    /// Forgets the spans and how many they were: they come again from where they went.
    pub(super) fn start_anew(&mut self) {
        self.clear();
        self.first_number = 0;
    }

    /// Leaves only the spans of the steps that are asked for: those that say so, and those that say nothing in their traces.
    pub(super) fn leave_asked(&mut self, config: &PerfettoConfig, summary: &mut PerfettoSummary) {
        if config.steps.is_none() {
            return;
        }
        let before = self.records.len();
        let traces = &self.asked_traces;
        self.records
            .retain(|span| span.asked.unwrap_or_else(|| traces.contains(&span.trace)));
        summary.filtered += (before - self.records.len()) as u64;
    }

    /// The bytes of a span.
    pub(super) fn bytes(&self, span: u32) -> &[u8] {
        self.record_bytes(&self.records[span as usize])
    }

    fn record_bytes(&self, record: &SpanRecord) -> &[u8] {
        let start = record.offset as usize;
        &self.batches[record.batch as usize][start..start + record.length as usize]
    }

    /// The place of the span that each pair of ids belongs to; spans that come twice are left once.
    pub(super) fn identify(&mut self, summary: &mut PerfettoSummary) -> Identities {
        let mut index = Identities::with_capacity_and_hasher(self.records.len(), Hashed);
        let mut repeated = Vec::new();
        for (place, record) in self.records.iter().enumerate() {
            if record.id == 0 {
                continue;
            }
            let known = *index.entry(record.id).or_insert(place as u32);
            if known as usize != place {
                let other = &self.records[known as usize];
                let same = other.resource == record.resource
                    && self.record_bytes(other) == self.record_bytes(record);
                summary.duplicates += u64::from(same);
                summary.same_ids += u64::from(!same);
                if same {
                    repeated.push(place);
                }
            }
        }
        if !repeated.is_empty() {
            self.leave_out(&repeated, &mut index);
        }
        index
    }

    /// Takes out the records at these places, which are sorted, and numbers the others anew.
    fn leave_out(&mut self, places: &[usize], index: &mut Identities) {
        for known in index.values_mut() {
            *known -= places.partition_point(|place| *place < *known as usize) as u32;
        }
        let mut place = 0;
        self.records.retain(|_| {
            place += 1;
            places.binary_search(&(place - 1)).is_err()
        });
    }

    /// The parent that a span names; none where it names none, `Err` where it is not in the input.
    #[inline]
    pub(super) fn named_parent(&self, span: u32, identities: &Identities) -> Result<Option<u32>, ()> {
        match self.records[span as usize].parent_id {
            0 => Ok(None),
            id => identities.get(&id).map(|parent| Some(*parent)).ok_or(()),
        }
    }

    /// The hashes of a trace's id, and of a span's ids in it.
    pub(super) fn hashes(&self, trace_id: &[u8], span_id: &[u8]) -> (u64, u64) {
        let trace = self.hasher.hash_one(trace_id);
        (trace, id_hash(trace, span_id))
    }
}

/// A number for a span's id within its trace; 0 where the id says nothing.
#[inline]
fn id_hash(trace: u64, span_id: &[u8]) -> u64 {
    let number = match span_id.first_chunk::<8>() {
        Some(id) if span_id.len() == 8 => u64::from_le_bytes(*id),
        _ => span_id
            .iter()
            .fold(0, |all, byte| all << 8 ^ u64::from(*byte) ^ all >> 56),
    };
    if number == 0 {
        return 0;
    }
    // The trace's hash is random, so that nobody can make ids that fall together; one multiplication mixes both halves.
    let product = u128::from(trace ^ number) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
    ((product >> 64) as u64 ^ product as u64).max(1)
}

/// Which span has which ids, by their hash.
pub(super) type Identities = HashMap<u64, u32, Hashed>;

/// Keys that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hashed;

/// Hands on the one number that it is given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Number(u64);

impl BuildHasher for Hashed {
    type Hasher = Number;

    fn build_hasher(&self) -> Number {
        Number::default()
    }
}

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |all, byte| all << 8 | u64::from(*byte));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// The first occurrence of a message field; an absent message is an empty one.
pub(super) fn first(bytes: &[u8], number: u32) -> &[u8] {
    Reader::new(bytes)
        .filter_map(Result::ok)
        .find_map(|field| match field.value {
            Value::Bytes(found) if field.number == number => Some(found),
            _ => None,
        })
        .unwrap_or_default()
}
