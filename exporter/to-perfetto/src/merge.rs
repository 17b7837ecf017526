//! Merges short spans: neighbours that are too short to be visible become one slice with their number, their total duration,
//! and both for each name. Failed spans and their ancestors are never merged.

use std::collections::BTreeMap;

use pulsetrain_perfetto::Annotations;

use super::tree_span::TreeSpan;

/// The name of a slice of merged spans with several names.
const MIXED: &[u8] = b"short spans";
/// The limit for names that are counted separately.
const MAX_NAMES: usize = 32;
/// The name for all further names.
const OTHERS: &[u8] = b"...";

/// Neighbours that are drawn as one slice.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) depth: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The numbers of spans, and of spans nested within them.
    pub(super) count: u64,
    pub(super) within: u64,
    nanos: u64,
    names: BTreeMap<Vec<u8>, (u64, u64)>,
    flows: Vec<[u8; 8]>,
    first: First,
}

/// The first span of a run, which is drawn as such if no other follows.
#[derive(Debug)]
struct First {
    scope: u32,
    number: u64,
    name_at: u16,
    bytes: Vec<u8>,
}

impl Run {
    pub(super) fn new(span: &TreeSpan<'_>, name: &[u8]) -> Self {
        let mut run = Self {
            depth: span.depth,
            start: span.start,
            end: span.end,
            count: 0,
            within: 0,
            nanos: 0,
            names: BTreeMap::new(),
            flows: Vec::new(),
            first: First {
                scope: span.scope,
                number: span.number,
                name_at: span.name_at,
                bytes: span.bytes.to_vec(),
            },
        };
        run.add(span, name);
        run
    }

    /// Returns whether a span with this depth and start is a neighbour.
    pub(super) fn reaches(&self, depth: u32, start: u64, gap: u64) -> bool {
        self.depth == depth && start <= self.end.saturating_add(gap)
    }

    pub(super) fn add(&mut self, span: &TreeSpan<'_>, name: &[u8]) {
        let nanos = span.end - span.start;
        self.end = self.end.max(span.end);
        self.count += 1;
        self.nanos = self.nanos.saturating_add(nanos);
        self.flows.extend_from_slice(span.flows);
        let known = self.names.len() < MAX_NAMES || self.names.contains_key(name);
        let (count, total) = self
            .names
            .entry(if known { name } else { OTHERS }.to_vec())
            .or_default();
        *count += 1;
        *total = total.saturating_add(nanos);
    }

    /// Returns the only span of the run, or `None` if there are more.
    pub(super) fn single(&self) -> Option<TreeSpan<'_>> {
        (self.count == 1 && self.within == 0).then(|| TreeSpan {
            depth: self.depth,
            scope: self.first.scope,
            start: self.start,
            end: self.end,
            number: self.first.number,
            failed: false,
            flows: &self.flows,
            name_at: self.first.name_at,
            is_log_record: false,
            bytes: &self.first.bytes,
        })
    }

    pub(super) fn scope(&self) -> u32 {
        self.first.scope
    }

    pub(super) fn flows(&self) -> &[[u8; 8]] {
        &self.flows
    }

    /// Returns the common name of all spans, or the one for several names.
    pub(super) fn name(&self) -> &[u8] {
        match self.names.first_key_value() {
            Some((name, _)) if self.names.len() == 1 => name,
            _ => MIXED,
        }
    }

    /// Writes the number of merged spans and their duration.
    pub(super) fn describe(&self, out: &mut Annotations<'_>) {
        out.map("merged", |map| {
            map.add("count", self.count);
            map.add("duration_nanos", self.nanos);
            if self.within > 0 {
                map.add("within", self.within);
            }
            if self.names.len() > 1 {
                map.map("names", |names| {
                    for (name, (count, nanos)) in &self.names {
                        names.map(name, |map| {
                            map.add("count", *count);
                            map.add("duration_nanos", *nanos);
                        });
                    }
                });
            }
        });
    }
}
