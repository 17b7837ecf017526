//! Arrows: from a parent to a child that is not nested within it, from the target of a link to the span with the link, and
//! from a span to those of its log records that are not drawn on its row.
//!
//! The target of a link may be in a part of the input that is not in memory. The number of its arrow is therefore derived from
//! the ids at both ends: each end computes the number independently.

use std::hash::{DefaultHasher, Hash, Hasher};

use pulsetrain_otlp::view::{Message, Span};

use super::{
    PerfettoError, PerfettoSummary,
    identities::Identities,
    spans::{ItemKind, Spans},
};

/// The flag in the numbers of links; arrows from parents are numbered from 1.
const LINK: u64 = 1 << 63;

/// The flag in the numbers of the arrows from a span to its log records.
const LOG: u64 = 1 << 62;

/// A link, as stored for its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    /// The hashes of the target's trace and of the target.
    pub(super) trace: u64,
    pub(super) target: u64,
    pub(super) flow: u64,
}

/// Returns the number of the arrow from a span to all its log records, or `None` for a record that names no span.
pub(super) fn log_flow(trace_id: &[u8], span_id: &[u8]) -> Option<u64> {
    if span_id.is_empty() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (trace_id, span_id).hash(&mut hasher);
    Some(hasher.finish() & !LINK | LOG)
}

/// The arrows of the spans in memory: the flows of each span.
#[derive(Debug, Default)]
pub(super) struct Flows {
    flow_endpoints: Vec<(u32, u64)>,
    /// The numbers of arrows in the order of `flow_endpoints`, which are set by `close`.
    numbers: Vec<[u8; 8]>,
    parents: u64,
}

impl Flows {
    /// Removes the arrows and keeps their count.
    pub(super) fn clear(&mut self) {
        self.flow_endpoints.clear();
        self.numbers.clear();
    }

    /// Adds an arrow from a parent to a child.
    pub(super) fn add_parent(&mut self, from: u32, to: u32) {
        self.parents += 1;
        self.flow_endpoints
            .extend([(from, self.parents), (to, self.parents)]);
    }

    /// Adds the arrow from a span to its log records.
    pub(super) fn add_log(&mut self, span: u32, flow: u64) {
        // Records of one span are often adjacent.
        if self.flow_endpoints.last() != Some(&(span, flow)) {
            self.flow_endpoints.push((span, flow));
        }
    }

    /// Returns the links of all spans, for an input that fits into memory.
    pub(super) fn links(spans: &Spans) -> Result<Vec<Link>, PerfettoError> {
        let mut all = Vec::new();
        if !spans.has_links {
            return Ok(all);
        }
        for span in 0..spans.records.len() as u32 {
            all.extend(links_of(spans, span)?);
        }
        Ok(all)
    }

    /// Adds the links to spans in memory, and those of spans in memory.
    pub(super) fn add_links(
        &mut self,
        spans: &Spans,
        mut links: Vec<Link>,
        identities: &Identities,
        summary: &mut PerfettoSummary,
    ) -> Result<(), PerfettoError> {
        // The links of a duplicate span occur twice.
        links.sort_unstable();
        links.dedup();
        for link in links {
            match identities.get(link.target, &spans.ids) {
                Some(target) => {
                    self.flow_endpoints.push((target, link.flow));
                    summary.flows += 1;
                }
                None => summary.links_outside += 1,
            }
        }
        if !spans.has_links {
            return Ok(());
        }
        for span in 0..spans.records.len() as u32 {
            for link in links_of(spans, span)? {
                self.flow_endpoints.push((span, link.flow));
            }
        }
        Ok(())
    }

    /// Completes the list; no arrow may be added afterwards.
    pub(super) fn close(&mut self) {
        self.flow_endpoints.sort_unstable();
        self.flow_endpoints.dedup();
        self.numbers
            .extend(self.flow_endpoints.iter().map(|(_, flow)| flow.to_le_bytes()));
    }

    /// Returns the flows of a span.
    #[inline]
    pub(super) fn ids(&self, span: u32) -> &[[u8; 8]] {
        if self.flow_endpoints.is_empty() {
            return &[];
        }
        let start = self.flow_endpoints.partition_point(|(other, _)| *other < span);
        let count = self.flow_endpoints[start..]
            .iter()
            .take_while(|(other, _)| *other == span)
            .count();
        &self.numbers[start..start + count]
    }
}

/// Returns the links of a span.
pub(super) fn links_of(spans: &Spans, span: u32) -> Result<Vec<Link>, PerfettoError> {
    if spans.records[span as usize].kind != ItemKind::SpanWithLinks {
        return Ok(Vec::new());
    }
    links_in(spans, spans.bytes(span))
}

/// Returns the links in the message of a span.
pub(super) fn links_in(spans: &Spans, bytes: &[u8]) -> Result<Vec<Link>, PerfettoError> {
    let from = Span::decode(bytes)?;
    from.links
        .iter()
        .map(|link| {
            let link = link?;
            let (trace, target) = spans.hashes(link.trace_id, link.span_id);
            let mut hasher = DefaultHasher::new();
            (from.trace_id, from.span_id, link.trace_id, link.span_id).hash(&mut hasher);
            Ok(Link {
                trace,
                target,
                flow: hasher.finish() | LINK,
            })
        })
        .collect()
}
