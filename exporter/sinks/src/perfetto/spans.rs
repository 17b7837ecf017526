//! The spans of an input: what packing and linking need of each, and where its bytes are.

use std::hash::BuildHasher;

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashMap};
use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, Message, ResourceSpans, ScopeSpans, Span, TracesData},
    wire::{Reader, Value},
};
use pulsetrain_semconv::attribute;

use super::{
    PerfettoConfig, PerfettoSummary,
    resources::Resources,
    scopes::{ScopeEntry, Scopes},
    values::short_text,
};

/// The spans of an input.
#[derive(Debug, Default)]
pub(super) struct Spans {
    batches: Vec<Bytes>,
    pub(super) records: Vec<SpanRecord>,
    /// The names of groups, each once.
    pub(super) labels: Labels,
    hasher: DefaultHashBuilder,
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
    trace: u64,
    /// The hash of its ids; 0 where it has none.
    id: u64,
    parent_id: u64,
    /// Its parent, once it is known.
    pub(super) parent: Option<u32>,
    /// The label of its group: its own, and once it is known, its parent's.
    pub(super) group: Option<u32>,
    pub(super) has_links: bool,
    /// Whether its own step is asked for; none where it says no step.
    asked: Option<bool>,
}

/// Texts, each once.
#[derive(Debug, Default)]
pub(super) struct Labels {
    index: HashMap<String, u32>,
    all: Vec<String>,
}

impl Labels {
    pub(super) fn number(&mut self, label: String) -> u32 {
        let next = self.all.len() as u32;
        *self.index.entry(label).or_insert_with_key(|label| {
            self.all.push(label.clone());
            next
        })
    }

    pub(super) fn get(&self, number: u32) -> &str {
        &self.all[number as usize]
    }
}

/// What the spans of one batch stand in.
struct Around<'a> {
    batch: &'a Bytes,
    resource: u32,
    scope: u32,
}

impl Spans {
    /// Takes in a batch of traces.
    pub(super) fn add(
        &mut self,
        batch: Bytes,
        config: &PerfettoConfig,
        resources: &mut Resources,
        scopes: &mut Scopes,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        let mut all = TracesData::decode(&batch)?.resource_spans.iter();
        while let Some(bytes) = all.next_bytes() {
            let bytes = bytes?;
            let within = ResourceSpans::decode(bytes)?;
            let resource = resources.number(first(bytes, 1))?;
            let shown = config.shows_rank(resources.get(resource).rank);
            let mut each = within.scope_spans.iter();
            while let Some(bytes) = each.next_bytes() {
                let bytes = bytes?;
                let spans = ScopeSpans::decode(bytes)?;
                if !shown {
                    summary.filtered += spans.spans.len() as u64;
                    continue;
                }
                let scope = scopes.number(ScopeEntry {
                    bytes: first(bytes, 1).to_vec(),
                    schema_url: spans.schema_url.as_bytes().to_vec(),
                    resource_schema_url: within.schema_url.as_bytes().to_vec(),
                })?;
                let around = Around {
                    batch: &batch,
                    resource,
                    scope,
                };
                self.add_scope(&spans, &around, config, summary)?;
            }
        }
        self.batches.push(batch);
        Ok(())
    }

    fn add_scope(
        &mut self,
        spans: &ScopeSpans<'_>,
        around: &Around<'_>,
        config: &PerfettoConfig,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        let mut each = spans.spans.iter();
        while let Some(bytes) = each.next_bytes() {
            let bytes = bytes?;
            let span = Span::decode(bytes)?;
            let record = self.record(bytes, &span, around, config)?;
            if span.end_time_unix_nano != 0 && !config.shows_time(record.start, record.end) {
                summary.filtered += 1;
                continue;
            }
            if record.asked == Some(true) {
                self.asked_traces.insert(record.trace);
            }
            self.records.push(record);
        }
        Ok(())
    }

    fn record(
        &mut self,
        bytes: &[u8],
        span: &Span<'_>,
        around: &Around<'_>,
        config: &PerfettoConfig,
    ) -> Result<SpanRecord, WireError> {
        let (group, asked) = self.look_at_attributes(span, config)?;
        Ok(SpanRecord {
            batch: self.batches.len() as u32,
            offset: (bytes.as_ptr() as usize - around.batch.as_ptr() as usize) as u32,
            length: bytes.len() as u32,
            resource: around.resource,
            scope: around.scope,
            start: span.start_time_unix_nano,
            end: span.end_time_unix_nano,
            trace: self.hasher.hash_one(span.trace_id),
            id: self.hash(span.trace_id, span.span_id),
            parent_id: self.hash(span.trace_id, span.parent_span_id),
            parent: None,
            group,
            has_links: !span.links.is_empty(),
            asked,
        })
    }

    /// The group that a span names, and whether its step is asked for.
    fn look_at_attributes(
        &mut self,
        span: &Span<'_>,
        config: &PerfettoConfig,
    ) -> Result<(Option<u32>, Option<bool>), WireError> {
        let mut named: Option<(usize, AnyValue<'_>)> = None;
        let mut asked = None;
        for attribute in span.attributes {
            let attribute = attribute?;
            let value = attribute.value.unwrap_or_default();
            let place = config
                .group_by
                .iter()
                .position(|key| attribute.key == key.as_str());
            if let Some(place) = place
                && named.is_none_or(|(best, _)| place < best)
            {
                named = Some((place, value));
            }
            if let (Some(steps), AnyValue::Int(step)) = (&config.steps, value)
                && attribute.key == attribute::TRAIN_STEP.name
            {
                asked = Some(steps.contains(&step));
            }
        }
        let group = named.map(|(place, value)| {
            let kind = config.group_by[place].split('.').next().unwrap_or_default();
            self.labels.number(format!("{kind} {}", short_text(value)))
        });
        Ok((group, asked))
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
        let mut index = HashMap::<u64, u32>::with_capacity(self.records.len());
        let records = std::mem::take(&mut self.records);
        let mut left: Vec<SpanRecord> = Vec::with_capacity(records.len());
        for record in records {
            if record.id != 0 {
                let next = left.len() as u32;
                let known = *index.entry(record.id).or_insert(next);
                if known != next {
                    let other = left[known as usize];
                    if other.resource == record.resource
                        && self.record_bytes(&other) == self.record_bytes(&record)
                    {
                        summary.duplicates += 1;
                        continue;
                    }
                    summary.same_ids += 1;
                }
            }
            left.push(record);
        }
        self.records = left;
        Identities(index)
    }

    /// The parent that a span names; none where it names none, `Err` where it is not in the input.
    pub(super) fn named_parent(&self, span: u32, identities: &Identities) -> Result<Option<u32>, ()> {
        match self.records[span as usize].parent_id {
            0 => Ok(None),
            id => identities.0.get(&id).map(|parent| Some(*parent)).ok_or(()),
        }
    }

    /// The span with these ids.
    pub(super) fn find(&self, trace_id: &[u8], span_id: &[u8], identities: &Identities) -> Option<u32> {
        identities.0.get(&self.hash(trace_id, span_id)).copied()
    }

    /// A number for a pair of ids; 0 where the second says nothing.
    fn hash(&self, trace_id: &[u8], span_id: &[u8]) -> u64 {
        if span_id.iter().all(|byte| *byte == 0) {
            return 0;
        }
        self.hasher.hash_one((trace_id, span_id)).max(1)
    }
}

/// Which span has which ids.
#[derive(Debug, Default)]
pub(super) struct Identities(HashMap<u64, u32>);

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
