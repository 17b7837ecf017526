//! A sweep over spans in the order of their starts, with the set of open spans. Each span finds its parent in that set, and
//! whether it nests within its parent by the rules of `lanes`.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use super::record::Record;
use crate::{PerfettoConfig, PerfettoSummary, lanes::DEEPEST};

/// The memory for a closed span that is still known, and for an open one, each with its slot in a hash table that is half
/// full.
const CLOSED_BYTES: usize = 48;
const OPEN_BYTES: usize = 2 * size_of::<Open>() + 32;
/// The minimum limit for open spans, even for the smallest budget.
const MIN_OPEN_LIMIT: usize = 1 << 10;

/// A result of the sweep.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SweepEvent {
    /// A closed span with its tree.
    Span(Record),
    /// A log record whose span is missing or does not contain its time.
    LogOnRow(Record),
    /// A child that does not nest within its parent.
    Arrow {
        parent: u64,
        flow: u64,
        /// The resource and the start of the child.
        child: (u32, u64),
    },
}

/// The spans that are open at a time.
#[derive(Debug)]
pub(super) struct Sweep<'a> {
    config: &'a PerfettoConfig,
    open: HashMap<u64, Open>,
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    /// The groups of recently closed spans, in two generations.
    closed: [HashMap<u64, (u32, u32)>; 2],
    max_closed: usize,
    /// The limit for open spans. Spans beyond it get no nested children: these are roots with an arrow from their parent.
    max_open: usize,
    found: Vec<SweepEvent>,
    trees: u64,
    order: u64,
}

#[derive(Debug)]
struct Open {
    record: Record,
    /// The time from which on a child nests.
    free_from: u64,
    /// Its latest child; earlier children are done.
    latest: u64,
    is_done: bool,
    is_nested: bool,
}

impl<'a> Sweep<'a> {
    /// Creates a sweep that holds open spans in `bytes`, and the groups of closed ones in a quarter of that.
    pub(super) fn new(bytes: usize, config: &'a PerfettoConfig) -> Self {
        Self {
            config,
            open: HashMap::new(),
            ends: BinaryHeap::new(),
            closed: Default::default(),
            max_closed: bytes / 4 / CLOSED_BYTES / 2,
            max_open: MIN_OPEN_LIMIT.max(bytes / OPEN_BYTES),
            found: Vec::new(),
            trees: 0,
            order: 0,
        }
    }

    /// Returns the limit for spans with the same start that are held together.
    pub(super) fn max_spans_held_together(&self) -> usize {
        self.max_open
    }

    /// Adds the spans with the same start, which is not before the previous start.
    pub(super) fn add(
        &mut self,
        together: &mut Vec<Record>,
        scope_group: &mut impl FnMut(u32) -> u32,
        summary: &mut PerfettoSummary,
    ) {
        if let Some(first) = together.first() {
            self.close_before(first.start);
        }
        let depth = |parent| self.open.get(&parent).map_or(0, |open| open.record.depth);
        for record in depth_first(std::mem::take(together), depth, summary) {
            if record.is_log_record {
                self.add_log_record(record);
            } else {
                self.add_one(record, scope_group, summary);
            }
        }
    }

    /// Returns the results since the last call.
    pub(super) fn take_found(&mut self) -> Vec<SweepEvent> {
        std::mem::take(&mut self.found)
    }

    /// Closes all spans.
    pub(super) fn end(&mut self) {
        while let Some(Reverse((_, id))) = self.ends.pop() {
            self.close(id);
        }
    }

    fn close_before(&mut self, time: u64) {
        while let Some(&Reverse((end, id))) = self.ends.peek()
            && end < time
        {
            self.ends.pop();
            self.close(id);
        }
    }

    fn close(&mut self, id: u64) {
        let Some(Open { record, .. }) = self.open.remove(&id) else {
            return;
        };
        if self.closed[0].len() >= self.max_closed {
            self.closed.swap(0, 1);
            self.closed[0].clear();
        }
        if let Some(group) = record.group {
            self.closed[0].insert(id, (record.resource, group));
        }
        self.found.push(SweepEvent::Span(record));
    }

    fn add_one(
        &mut self,
        mut record: Record,
        scope_group: &mut impl FnMut(u32) -> u32,
        summary: &mut PerfettoSummary,
    ) {
        let group = record
            .group
            .or_else(|| self.group_of(record.parent, record.resource));
        record.group = Some(group.unwrap_or_else(|| scope_group(record.scope)));
        self.order += 1;
        record.order = self.order;
        let is_nested = self.nest(&mut record, summary);
        if !is_nested {
            self.trees += 1;
            (record.tree, record.depth) = (self.trees, 0);
            if record.parent != 0 {
                record.flow = arrow(record.parent, record.number);
                self.found.push(SweepEvent::Arrow {
                    parent: record.parent,
                    flow: record.flow,
                    child: (record.resource, record.start),
                });
            }
        }
        let is_full = self.open.len() >= self.max_open;
        if is_full || record.id == 0 || self.open.contains_key(&record.id) {
            self.found.push(SweepEvent::Span(record));
            return;
        }
        self.ends.push(Reverse((record.end, record.id)));
        let open = Open {
            record,
            free_from: record.start,
            latest: 0,
            is_done: false,
            is_nested,
        };
        self.open.insert(record.id, open);
    }

    /// Adds a log record to its span. It does not affect the nesting of the span's children.
    fn add_log_record(&mut self, mut record: Record) {
        self.order += 1;
        record.order = self.order;
        let takes = |span: &&Open| !span.is_done && !self.config.is_short(span.record.start, span.record.end);
        let found = match self.open.get(&record.parent).filter(takes) {
            Some(Open { record: span, .. }) => {
                (record.tree, record.depth) = (span.tree, span.depth + 1);
                SweepEvent::Span(record)
            }
            None => SweepEvent::LogOnRow(record),
        };
        self.found.push(found);
    }

    /// Returns the group of a parent, if the parent is in the same process.
    fn group_of(&self, parent: u64, resource: u32) -> Option<u32> {
        let open = self.open.get(&parent).map(|open| &open.record);
        let open = open.and_then(|parent| Some((parent.resource, parent.group?)));
        let known = open.or_else(|| self.closed.iter().find_map(|closed| closed.get(&parent).copied()))?;
        (known.0 == resource).then_some(known.1)
    }

    /// Nests a span within its parent, if it fits.
    fn nest(&mut self, record: &mut Record, summary: &mut PerfettoSummary) -> bool {
        let Some(parent) = self.open.get_mut(&record.parent) else {
            return false;
        };
        let around = &parent.record;
        let fits = (around.resource, around.group) == (record.resource, record.group)
            && record.start >= parent.free_from
            && record.end <= around.end
            && !parent.is_done;
        if !fits || around.depth + 1 >= DEEPEST {
            summary.too_deep += u64::from(fits);
            return false;
        }
        (record.tree, record.depth) = (around.tree, around.depth + 1);
        parent.free_from = record.end;
        let before = std::mem::replace(&mut parent.latest, record.id);
        self.finish(before);
        if record.failed && self.config.merge_below.is_some() {
            self.propagate_failure(record.parent);
        }
        true
    }

    /// Marks a span with a later sibling, and its last descendants, as done: they get no more nested children.
    fn finish(&mut self, mut id: u64) {
        while let Some(open) = self.open.get_mut(&id).filter(|open| !open.is_done) {
            open.is_done = true;
            id = open.latest;
        }
    }

    fn propagate_failure(&mut self, mut id: u64) {
        while let Some(open) = self.open.get_mut(&id).filter(|open| !open.record.failed) {
            open.record.failed = true;
            if !open.is_nested {
                return;
            }
            id = open.record.parent;
        }
    }
}

/// Returns the number of the arrow from a parent to a child, in the half of the numbers that links do not use.
fn arrow(parent: u64, child: u64) -> u64 {
    let mixed = (parent ^ child.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 31) >> 1 | 1
}

/// Orders spans with the same start depth first: parents before children, and spans that end early before others. Among the
/// roots, those with the deepest open parents are first, since they still fit at the end of these parents. A cycle begins with
/// its first span in the input.
fn depth_first(
    mut together: Vec<Record>,
    depth: impl Fn(u64) -> u32,
    summary: &mut PerfettoSummary,
) -> Vec<Record> {
    if together.len() < 2 {
        return together;
    }
    // Sorted in descending order, since spans are popped from the end of a list.
    together.sort_by_key(|record| Reverse((record.end, record.number)));
    let places = first_with_each_id(&together);
    let mut children = vec![Vec::new(); together.len()];
    let mut roots = Vec::new();
    for (place, record) in together.iter().enumerate() {
        match places.get(&record.parent).filter(|_| record.parent != 0) {
            Some(parent) => children[*parent].push(place),
            None => roots.push(place),
        }
    }
    roots.sort_by_key(|root| depth(together[*root].parent));
    let mut is_left = vec![true; together.len()];
    let mut ordered = Vec::with_capacity(together.len());
    let mut take = |mut next: Vec<usize>| {
        while let Some(place) = next.pop() {
            if std::mem::replace(&mut is_left[place], false) {
                ordered.push(together[place]);
                next.extend_from_slice(&children[place]);
            }
        }
        ordered.len()
    };
    let mut count = take(roots);
    let mut rest: Vec<usize> = (0..together.len()).collect();
    // A cycle is cut at a span, not at a log record within it.
    rest.sort_by_key(|place| (together[*place].is_log_record, together[*place].number));
    for place in rest {
        let before = std::mem::replace(&mut count, take(vec![place]));
        summary.cycles += u64::from(count > before);
    }
    ordered
}

/// Returns the index of the first span in the input with each id.
fn first_with_each_id(records: &[Record]) -> HashMap<u64, usize> {
    let mut places = HashMap::with_capacity(records.len());
    for (place, record) in records.iter().enumerate() {
        let known = places.entry(record.id).or_insert(place);
        if record.number < records[*known].number {
            *known = place;
        }
    }
    places
}

#[cfg(test)]
mod tests;
