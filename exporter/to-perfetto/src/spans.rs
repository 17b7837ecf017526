//! The spans of an input: the data for packing and linking, and the position of their bytes. Log records that name a span are
//! stored with them, as children without a duration.

use bytes::Bytes;
use pulsetrain_otlp::{
    WireError,
    view::{LogRecord, Message, Span},
};

use super::{
    PerfettoConfig, PerfettoSummary,
    identities::{self, IdHasher, Identities, SpanIds},
    labels::Labels,
    optional_index::OptionalIndex,
    prefetch, records,
    scan::{AttributeFilter, Scanned},
    span_trees::LATEST,
    walk::{Input, ItemContext},
};

/// The memory for building trees, per span: its slot in the table of ids, and its children.
const TREE_BYTES: usize = 20;
/// The approximate memory per span. The lists have capacity for all spans within the budget from the beginning: unused
/// capacity costs no memory, but growing a list moves its records.
const BYTES_A_SPAN: usize = 256;
const MAX_CAPACITY: usize = 1 << 20;

/// The spans of an input, or of a part of it.
#[derive(Debug, Default)]
pub(super) struct Spans {
    batches: Vec<Bytes>,
    batch_bytes: usize,
    pub(super) records: Vec<SpanRecord>,
    /// The ids of the same spans, by index.
    pub(super) ids: Vec<SpanIds>,
    /// Whether the step of each span is selected, `None` for a span without a step. Empty if the configuration selects no steps.
    asked: Vec<Option<bool>>,
    /// Whether any span has times that cannot be drawn as they are.
    pub(super) needs_repair: bool,
    /// Whether any span has links.
    pub(super) has_links: bool,
    /// Whether any span so far has an attribute for rows.
    pub(super) has_rows: bool,
    /// The interned names of groups.
    pub(super) labels: Labels,
    /// The earliest and the latest time of any span.
    pub(super) times: Option<(u64, u64)>,
    /// The number of spans before these.
    pub(super) first_number: u64,
    hasher: IdHasher,
    wanted: AttributeFilter,
    /// The traces that have a span of a selected step.
    selected_traces: hashbrown::HashSet<u64>,
}

/// The data of a span that is always in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanRecord {
    batch: u32,
    offset: u32,
    length: u32,
    pub(super) resource: u32,
    pub(super) scope: u32,
    /// Its parent, once known.
    pub(super) parent: OptionalIndex,
    /// The label of its group: its own, or once known, its parent's.
    pub(super) group: OptionalIndex,
    /// The offset of its name in its bytes if everything that is drawn follows it, else 0.
    pub(super) name_at: u16,
    pub(super) kind: ItemKind,
    /// Whether the span, or once known any of its descendants, has failed.
    pub(super) failed: bool,
    /// Its drawn start and end.
    pub(super) start: u64,
    pub(super) end: u64,
}

/// The kind of an item that is kept with the spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Span,
    SpanWithLinks,
    LogRecord,
}

/// The index data of a span whose message is not in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScannedSpan {
    pub(super) ids: SpanIds,
    pub(super) around: ItemContext,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The label of its own group.
    pub(super) group: Option<u32>,
    pub(super) name_at: u16,
    pub(super) has_links: bool,
    pub(super) failed: bool,
    /// Whether its step is selected; `None` if it has no step.
    pub(super) asked: Option<bool>,
}

impl SpanRecord {
    #[inline]
    pub(super) fn is_log_record(&self) -> bool {
        self.kind == ItemKind::LogRecord
    }
}

impl Spans {
    pub(super) fn new(config: &PerfettoConfig) -> Self {
        let room = (config.memory_bytes / BYTES_A_SPAN).min(MAX_CAPACITY);
        Self {
            records: Vec::with_capacity(room),
            ids: Vec::with_capacity(room),
            wanted: AttributeFilter::new(config),
            ..Self::default()
        }
    }

    /// Adds a batch of traces.
    pub(super) fn add(&mut self, batch: Bytes, input: &mut Input<'_>) -> Result<(), WireError> {
        let config = input.config;
        let outcome = input.each_item(&batch, |bytes, around, _, summary| {
            let offset = bytes.as_ptr() as usize - batch.as_ptr() as usize;
            if !self.add_span(bytes, offset, around, config)? {
                summary.filtered += 1;
            }
            Ok(())
        });
        self.keep(batch);
        outcome
    }

    /// Stores the bytes that contain the newest records.
    pub(super) fn keep(&mut self, batch: Bytes) {
        self.batch_bytes += batch.len();
        self.batches.push(batch);
    }

    /// Adds a span of the batch that is stored next; returns `false` if its time is not selected.
    #[inline]
    pub(super) fn add_span(
        &mut self,
        bytes: &[u8],
        offset: usize,
        around: ItemContext,
        config: &PerfettoConfig,
    ) -> Result<bool, WireError> {
        let mut found = Scanned::default();
        found.read(bytes, &self.wanted, config)?;
        // A span without an end lasts until the end of the trace.
        let end = if found.end == 0 { u64::MAX } else { found.end };
        if !config.shows_time(found.start, end) {
            return Ok(false);
        }
        for time in [found.start, found.end]
            .into_iter()
            .filter(|time| (1..=LATEST).contains(time))
        {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        self.has_links |= found.has_links;
        self.has_rows |= found.has_row;
        self.needs_repair |= found.start == 0 || found.end < found.start || found.end > LATEST;
        let ids = self
            .hasher
            .ids(found.trace_id, found.span_id, found.parent_span_id);
        if config.steps.is_some() {
            self.asked.push(found.asked);
            if found.asked == Some(true) {
                self.selected_traces.insert(ids.trace);
            }
        }
        let group = match config.by_trace {
            true => Some(self.trace_row(&found, bytes)?),
            false => found.group.take().map(|group| self.labels.number(group)),
        };
        self.ids.push(ids);
        self.records.push(SpanRecord {
            batch: self.batches.len() as u32,
            offset: offset as u32,
            length: bytes.len() as u32,
            resource: around.resource,
            scope: around.scope,
            parent: OptionalIndex::NONE,
            group: group.into(),
            name_at: found.name_at,
            kind: match found.has_links {
                true => ItemKind::SpanWithLinks,
                false => ItemKind::Span,
            },
            failed: found.failed,
            start: found.start,
            end: found.end,
        });
        Ok(true)
    }

    /// Adds a log record that names a span. It is stored from `start` to `end` in the bytes that are stored next.
    pub(super) fn add_record(
        &mut self,
        record: &LogRecord<'_>,
        (start, end): (usize, usize),
        config: &PerfettoConfig,
    ) {
        let time = records::logged_time(record);
        if config.steps.is_some() {
            self.asked.push(Some(true));
        }
        self.ids.push(self.record_ids(record));
        self.records.push(SpanRecord {
            batch: self.batches.len() as u32,
            offset: start as u32,
            length: (end - start) as u32,
            resource: 0,
            scope: 0,
            parent: OptionalIndex::NONE,
            // The record is drawn in the group of its span.
            group: Some(0).into(),
            name_at: 0,
            kind: ItemKind::LogRecord,
            failed: false,
            start: time,
            end: time,
        });
    }

    /// Returns the hashes of a log record, whose parent is the span that it names.
    pub(super) fn record_ids(&self, record: &LogRecord<'_>) -> SpanIds {
        let (trace, parent) = self.hashes(record.trace_id, record.span_id);
        SpanIds { trace, id: 0, parent }
    }

    /// Returns the label for the row of a trace: the name of its root, once known, and digits of its id.
    fn trace_row(&mut self, span: &Scanned<'_>, bytes: &[u8]) -> Result<u32, WireError> {
        let id: String = span.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let label = self.labels.number(id.clone());
        if span.parent_span_id.is_empty() {
            let name = Span::decode(bytes)?.name.to_str_lossy();
            self.labels
                .show(label, format!("{name} {}", identities::shown_digits(&id)));
        }
        Ok(label)
    }

    /// Scans a span without storing it; returns `None` if its time is not selected.
    pub(super) fn scan(
        &mut self,
        bytes: &[u8],
        around: ItemContext,
        config: &PerfettoConfig,
    ) -> Result<Option<ScannedSpan>, WireError> {
        self.add_span(bytes, 0, around, config)?;
        let asked = self.asked.pop().flatten();
        let (Some(record), Some(ids)) = (self.records.pop(), self.ids.pop()) else {
            return Ok(None);
        };
        Ok(Some(ScannedSpan {
            ids,
            around,
            start: record.start,
            end: record.end,
            group: record.group.get(),
            name_at: record.name_at,
            has_links: record.kind == ItemKind::SpanWithLinks,
            failed: record.failed,
            asked,
        }))
    }

    /// Returns whether a span is selected by its step, or by that of another span of its trace, after all spans were scanned.
    pub(super) fn is_selected_span(&self, asked: Option<bool>, trace: u64, config: &PerfettoConfig) -> bool {
        config.steps.is_none() || asked.unwrap_or_else(|| self.selected_traces.contains(&trace))
    }

    /// Returns the memory that the spans take, including that for building their trees.
    pub(super) fn held_bytes(&self) -> usize {
        self.batch_bytes + self.records.len() * (size_of::<SpanRecord>() + size_of::<SpanIds>() + TREE_BYTES)
    }

    /// Removes the spans and keeps the state that all spans share.
    pub(super) fn clear(&mut self) {
        self.first_number += self.records.len() as u64;
        self.batches.clear();
        self.batch_bytes = 0;
        self.records.clear();
        self.ids.clear();
        self.asked.clear();
        self.selected_traces.clear();
        self.needs_repair = false;
        self.has_links = false;
    }

    /// Removes the spans and resets their count, since they are read again from the temporary file.
    pub(super) fn reset(&mut self) {
        self.clear();
        self.first_number = 0;
    }

    /// Keeps only the spans of selected steps: those with such a step, and those without a step in the same traces. Log records
    /// are kept.
    pub(super) fn retain_selected_spans(&mut self, config: &PerfettoConfig, summary: &mut PerfettoSummary) {
        if config.steps.is_none() {
            return;
        }
        let before = self.records.len();
        let in_asked = |ids: &SpanIds| self.selected_traces.contains(&ids.trace);
        let keep = self.asked.iter().zip(&self.ids);
        let keep: Vec<bool> = keep
            .map(|(asked, ids)| asked.unwrap_or_else(|| in_asked(ids)))
            .collect();
        self.retain(|place| keep[place]);
        summary.filtered += (before - self.records.len()) as u64;
    }

    /// Keeps the spans at the indices for which `keep` returns true.
    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut place = 0..;
        self.records.retain(|_| place.next().is_some_and(&keep));
        let mut place = 0..;
        self.ids.retain(|_| place.next().is_some_and(&keep));
    }

    /// Returns the bytes of a span.
    pub(super) fn bytes(&self, span: u32) -> &[u8] {
        let record = &self.records[span as usize];
        let start = record.offset as usize;
        &self.batches[record.batch as usize][start..start + record.length as usize]
    }

    /// Prefetches the bytes of a span while the previous one is written.
    #[inline]
    pub(super) fn prefetch_span(&self, span: u32) {
        prefetch::prefetch_bytes(self.bytes(span));
    }

    /// Indexes the spans by their ids, and removes duplicates.
    pub(super) fn identify(&mut self, summary: &mut PerfettoSummary) -> Identities {
        let mut identities = Identities::with_capacity(self.records.len());
        let mut repeated = Vec::new();
        for place in 0..self.ids.len() as u32 {
            if self.ids[place as usize].id == 0 {
                continue;
            }
            if let Some(known) = identities.add(place, &self.ids) {
                let same = self.is_same(known, place);
                summary.duplicates += u64::from(same);
                summary.same_ids += u64::from(!same);
                if same {
                    repeated.push(place as usize);
                }
            }
        }
        if !repeated.is_empty() {
            identities.renumber(|known| repeated.partition_point(|place| *place < known as usize) as u32);
            self.retain(|place| repeated.binary_search(&place).is_err());
        }
        identities
    }

    fn is_same(&self, one: u32, other: u32) -> bool {
        let resource = |span: u32| self.records[span as usize].resource;
        resource(one) == resource(other) && self.bytes(one) == self.bytes(other)
    }

    /// Returns the hashes of a trace id, and of a span's ids in that trace.
    pub(super) fn hashes(&self, trace_id: &[u8], span_id: &[u8]) -> (u64, u64) {
        let trace = self.hasher.trace(trace_id);
        (trace, identities::id_hash(trace, span_id))
    }
}
