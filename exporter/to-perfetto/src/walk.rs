//! Iterates over the items of a batch: the same for spans, metrics and log records.
//!
//! The iteration numbers resources and scopes, and counts the items of ranks that are not selected.

use pulsetrain_otlp::{
    WireError,
    view::{Message, ResourceSpans, ScopeSpans, TracesData},
    wire::{Reader, WireValue},
};

use super::{PerfettoConfig, PerfettoSummary, resources::Resources, scopes::Scopes};

/// The resource and the scope of an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemContext {
    pub(super) resource: u32,
    pub(super) scope: u32,
}

/// The parts of the input that are known so far.
pub(super) struct Input<'m> {
    pub(super) config: &'m PerfettoConfig,
    pub(super) resources: &'m mut Resources,
    pub(super) scopes: &'m mut Scopes,
    pub(super) summary: &'m mut PerfettoSummary,
    /// Whether items are spans that share the rows of their traces.
    pub(super) by_trace: bool,
}

impl Input<'_> {
    /// Passes the bytes of each item of a batch to `take`, and the scopes so far. The enclosing messages have the same fields in
    /// every signal, so the views of spans are used for all signals.
    #[inline]
    pub(super) fn each_item<'b, E: From<WireError>>(
        &mut self,
        batch: &'b [u8],
        mut take: impl FnMut(&'b [u8], ItemContext, &Scopes, &mut PerfettoSummary) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut all = TracesData::decode(batch)?.resource_spans.iter();
        while let Some(bytes) = all.next_bytes() {
            let bytes = bytes?;
            let within = ResourceSpans::decode(bytes)?;
            let resource = self.resources.number(first(bytes, 1), self.config)?;
            let shown = self.config.shows_rank(self.resources.get(resource).rank);
            let mut each = within.scope_spans.iter();
            while let Some(bytes) = each.next_bytes() {
                let bytes = bytes?;
                let part = ScopeSpans::decode(bytes)?;
                if !shown {
                    self.summary.filtered += part.spans.len() as u64;
                    continue;
                }
                let (resource, scope) = if self.by_trace {
                    let service = self.scopes.number_of_process(&self.resources.get(resource).name);
                    (self.resources.of_traces(), service)
                } else {
                    let scope = self.scopes.number_of(bytes, part.schema_url, within.schema_url)?;
                    (resource, scope)
                };
                self.resources.has_scope(resource, scope);
                let mut items = part.spans.iter();
                while let Some(item) = items.next_bytes() {
                    take(item?, ItemContext { resource, scope }, self.scopes, self.summary)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the first occurrence of a message field, or an empty message if it is absent.
pub(super) fn first(bytes: &[u8], number: u32) -> &[u8] {
    Reader::new(bytes)
        .filter_map(Result::ok)
        .find_map(|field| match field.value {
            WireValue::Bytes(found) if field.number == number => Some(found),
            _ => None,
        })
        .unwrap_or_default()
}
