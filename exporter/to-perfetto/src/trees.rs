//! The trees of a trace in the order of their starts: from the spans in memory, or from temporary files if the spans exceed
//! the budget.
//!
//! A tree is the content of one lane for some time: a span and those of its descendants that nest within it, depth first, with
//! the log records of all of them.

use std::io;

use pulsetrain_pipeline::spill::{Sorted, Sorter};

use super::{
    PerfettoConfig, PerfettoSummary,
    flows::{Flows, Link},
    lanes::{Interval, Nesting},
    optional_index::OptionalIndex,
    records,
    scopes::Scopes,
    span_trees,
    spans::Spans,
    spilled_trees::{HERE, Pieces, SpilledTrees},
    tree_span::{Packed, Tree, TreeSpan},
};
use crate::PerfettoError;

/// The trees of the spans in memory.
#[derive(Debug, Default)]
pub(super) struct Forest {
    nesting: Nesting,
    flows: Flows,
    /// The roots by start and end.
    roots: Vec<u32>,
}

impl Forest {
    /// Builds the trees of the spans in memory. `links` are the links to them; `None` means that all links are between them.
    /// Log records that are not drawn with their spans are put on `logs_row`.
    pub(super) fn build_trees(
        &mut self,
        spans: &mut Spans,
        links: Option<Vec<Link>>,
        logs_row: &mut Sorter,
        scopes: &Scopes,
        config: &PerfettoConfig,
        summary: &mut PerfettoSummary,
    ) -> Result<(), PerfettoError> {
        spans.retain_selected_spans(config, summary);
        let identities = span_trees::build_trees(spans, scopes, summary);
        self.nest(spans, config, summary);
        self.place_others(spans, logs_row, summary)?;
        let links = match links {
            Some(links) => links,
            None => Flows::links(spans)?,
        };
        self.flows.add_links(spans, links, &identities, summary)?;
        self.flows.close();
        if config.merge_below.is_some() {
            self.propagate_failures(spans);
        }
        Ok(())
    }

    /// Determines the spans and log records that nest within their parents.
    fn nest(&mut self, spans: &Spans, config: &PerfettoConfig, summary: &mut PerfettoSummary) {
        let records = &spans.records;
        self.nesting = Nesting::new(records.len(), |place| {
            let span = &records[place as usize];
            let is_instant = span.is_log_record();
            Interval {
                start: span.start,
                end: span.end,
                parent: span.parent.get().filter(|parent| {
                    let parent = &records[*parent as usize];
                    if is_instant {
                        !config.is_short(parent.start, parent.end)
                    } else {
                        (parent.resource, parent.group) == (span.resource, span.group)
                    }
                }),
                is_instant,
            }
        });
        summary.too_deep += self.nesting.too_deep;
    }

    /// Makes the spans that do not nest roots, and puts such log records on the row `logs`, with arrows from their parents.
    fn place_others(
        &mut self,
        spans: &Spans,
        logs_row: &mut Sorter,
        summary: &mut PerfettoSummary,
    ) -> Result<(), PerfettoError> {
        let items = &spans.records;
        self.flows.clear();
        self.roots.clear();
        for (place, span) in (0..).zip(items) {
            if self.nesting.is_nested(place) {
                continue;
            }
            if span.is_log_record() {
                let flow = records::put_on_row(spans.bytes(place), logs_row)?;
                if let (Some(parent), Some(flow)) = (span.parent.get(), flow) {
                    self.flows.add_log(parent, flow);
                }
                continue;
            }
            self.roots.push(place);
            if let Some(parent) = span.parent.get() {
                let from = &items[parent as usize];
                summary.add_child_flow((from.resource, from.start), (span.resource, span.start));
                self.flows.add_parent(parent, place);
            }
        }
        self.roots.sort_unstable_by_key(|root| {
            let span = &items[*root as usize];
            (span.start, span.end, *root)
        });
        Ok(())
    }

    /// Marks the ancestors of failed spans as failed.
    fn propagate_failures(&self, spans: &mut Spans) {
        for span in 0..spans.records.len() {
            let mut here = spans.records[span].failed.then_some(span as u32);
            while let Some(place) = here.filter(|place| self.nesting.is_nested(*place)) {
                here = spans.records[place as usize].parent.get();
                if let Some(parent) = here {
                    spans.records[parent as usize].failed = true;
                }
            }
        }
    }

    /// Returns the tree of a root.
    fn tree(&self, spans: &Spans, root: u32) -> Tree {
        let span = &spans.records[root as usize];
        Tree {
            resource: span.resource,
            group: span.group.get().unwrap_or_default(),
            start: span.start,
            end: span.end,
            failed: span.failed,
        }
    }

    /// Iterates over the spans of a tree, depth first.
    fn walk<'a>(&'a self, spans: &'a Spans, root: u32) -> Walk<'a> {
        Walk {
            forest: self,
            spans,
            root: Some(root),
            open: Vec::new(),
        }
    }

    /// Adds all trees to a sorter.
    pub(super) fn pack(&self, spans: &Spans, sorter: &mut Sorter) -> io::Result<()> {
        for &root in &self.roots {
            let tree = self.tree(spans, root);
            sorter.push((tree.start, tree.end), |out| {
                tree.pack(out);
                out.push(HERE);
                self.walk(spans, root).for_each(|span| span.pack(out));
            })?;
        }
        Ok(())
    }

    fn drawn<'a>(&'a self, spans: &'a Spans, (place, depth): (u32, u32), bytes: &'a [u8]) -> TreeSpan<'a> {
        let span = &spans.records[place as usize];
        TreeSpan {
            depth,
            scope: span.scope,
            start: span.start,
            end: span.end,
            number: spans.first_number + u64::from(place),
            failed: span.failed,
            flows: self.flows.ids(place),
            name_at: span.name_at,
            is_log_record: span.is_log_record(),
            bytes,
        }
    }
}

/// A traversal of a tree.
struct Walk<'a> {
    forest: &'a Forest,
    spans: &'a Spans,
    root: Option<u32>,
    /// The next sibling on each level, from the root down.
    open: Vec<OptionalIndex>,
}

impl Walk<'_> {
    /// Returns the index and the depth of the next span.
    fn step(&mut self) -> Option<(u32, u32)> {
        let place = self.next_place()?;
        let depth = self.open.len() as u32;
        self.open.push(self.forest.nesting.first_child(place));
        Some((place, depth))
    }

    fn next_place(&mut self) -> Option<u32> {
        if let Some(root) = self.root.take() {
            return Some(root);
        }
        while let Some(next) = self.open.last_mut() {
            match next.get() {
                Some(span) => {
                    *next = self.forest.nesting.next_sibling(span);
                    return Some(span);
                }
                None => drop(self.open.pop()),
            }
        }
        None
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = TreeSpan<'a>;

    fn next(&mut self) -> Option<TreeSpan<'a>> {
        let (place, depth) = self.step()?;
        if let Some(next) = self.open.iter().rev().find_map(|next| next.get()) {
            self.spans.prefetch_span(next);
        }
        let bytes = self.spans.bytes(place);
        Some(self.forest.drawn(self.spans, (place, depth), bytes))
    }
}

/// All trees of the input.
#[derive(Debug)]
pub(super) enum Trees {
    Held {
        forest: Box<Forest>,
        spans: Box<Spans>,
        next: usize,
    },
    Sorted {
        sorted: Sorted,
        long: Box<SpilledTrees>,
    },
}

impl Trees {
    /// Returns the start of the next tree.
    pub(super) fn next_time(&self) -> Option<u64> {
        match self {
            Self::Held { forest, spans, next } => {
                let root = forest.roots.get(*next)?;
                Some(spans.records[*root as usize].start)
            }
            Self::Sorted { sorted, .. } => sorted.next_key().map(|(start, _)| start),
        }
    }

    /// Passes the next tree to a sink.
    pub(super) fn emit_next(&mut self, sink: &mut impl TreeSink) -> Result<(), PerfettoError> {
        match self {
            Self::Held { forest, spans, next } => {
                let root = forest.roots[*next];
                *next += 1;
                if let Some(after) = forest.roots.get(*next) {
                    spans.prefetch_span(*after);
                }
                sink.tree(&forest.tree(spans, root), forest.walk(spans, root))
            }
            Self::Sorted { sorted, long } => {
                let Some((tree, rest)) = sorted.next_record()?.and_then(Tree::unpack) else {
                    return Ok(());
                };
                match rest.split_first() {
                    Some((&HERE, spans)) => sink.tree(&tree, Packed(spans)),
                    _ => sink.spilled_tree(&tree, long.pieces(rest)),
                }
            }
        }
    }
}

/// A receiver of trees.
pub(super) trait TreeSink {
    /// Receives a tree, whose spans are in depth-first order.
    fn tree<'s>(
        &mut self,
        tree: &Tree,
        spans: impl Iterator<Item = TreeSpan<'s>>,
    ) -> Result<(), PerfettoError>;

    /// Receives a tree beyond the memory budget, in pieces.
    fn spilled_tree(&mut self, tree: &Tree, pieces: Pieces<'_>) -> Result<(), PerfettoError>;
}
