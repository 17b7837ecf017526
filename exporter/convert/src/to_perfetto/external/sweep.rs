//! Spans in the order of their starts, and which of them are open: each finds its parent among those, and whether it is
//! within it as `lanes` would have it.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use super::record::Record;
use crate::to_perfetto::{PerfettoSummary, lanes::DEEPEST};

/// What a closed span takes that is still remembered, and an open one, each with its place in a table that is half empty.
const CLOSED_BYTES: usize = 48;
const OPEN_BYTES: usize = 2 * size_of::<Open>() + 32;
/// The number of open spans that is allowed even in the smallest memory.
const LEAST_OPEN: usize = 1 << 10;

/// What the sweep finds out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SweepEvent {
    /// A span with its tree, which is over.
    Span(Record),
    /// A child that does not nest within its parent.
    Arrow {
        parent: u64,
        flow: u64,
        /// The resource and the start of the child.
        child: (u32, u64),
    },
}

/// The spans that are open at a time.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    open: HashMap<u64, Open>,
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    /// The groups of spans that were closed lately, and of those before them.
    closed: [HashMap<u64, (u32, u32)>; 2],
    most_closed: usize,
    /// The most open spans. Beyond that a span takes no children: they are next to it, with an arrow.
    most_open: usize,
    spreads_failures: bool,
    found: Vec<SweepEvent>,
    trees: u64,
    order: u64,
}

#[derive(Debug)]
struct Open {
    record: Record,
    /// From when on a child has room.
    free_from: u64,
    /// Its latest child: those before are done.
    latest: u64,
    is_done: bool,
    is_nested: bool,
}

impl Sweep {
    /// Holds open spans in `bytes`, and remembers closed ones in a quarter of that.
    pub(super) fn new(bytes: usize, spreads_failures: bool) -> Self {
        Self {
            most_closed: bytes / 4 / CLOSED_BYTES / 2,
            most_open: LEAST_OPEN.max(bytes / OPEN_BYTES),
            spreads_failures,
            ..Self::default()
        }
    }

    /// How many spans are worth holding until all that begin together are there.
    pub(super) fn most_together(&self) -> usize {
        self.most_open
    }

    /// Adds the spans with the same start, which is at or after the one before.
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
            self.add_one(record, scope_group, summary);
        }
    }

    /// What was found out since this was asked last.
    pub(super) fn take_found(&mut self) -> Vec<SweepEvent> {
        std::mem::take(&mut self.found)
    }

    /// Closes everything.
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
        if self.closed[0].len() >= self.most_closed {
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
        let is_full = self.open.len() >= self.most_open;
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

    /// The group of a parent, where that is of the same process.
    fn group_of(&self, parent: u64, resource: u32) -> Option<u32> {
        let open = self.open.get(&parent).map(|open| &open.record);
        let open = open.and_then(|parent| Some((parent.resource, parent.group?)));
        let known = open.or_else(|| self.closed.iter().find_map(|closed| closed.get(&parent).copied()))?;
        (known.0 == resource).then_some(known.1)
    }

    /// Puts a span within its parent, if it fits.
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
        if record.failed && self.spreads_failures {
            self.spread_failure(record.parent);
        }
        true
    }

    /// A span whose next sibling is there takes no more children, nor does what is within it.
    fn finish(&mut self, mut id: u64) {
        while let Some(open) = self.open.get_mut(&id).filter(|open| !open.is_done) {
            open.is_done = true;
            id = open.latest;
        }
    }

    fn spread_failure(&mut self, mut id: u64) {
        while let Some(open) = self.open.get_mut(&id).filter(|open| !open.record.failed) {
            open.record.failed = true;
            if !open.is_nested {
                return;
            }
            id = open.record.parent;
        }
    }
}

/// The arrow from a parent to a child, in the half of numbers that links do not have.
fn arrow(parent: u64, child: u64) -> u64 {
    let mixed = (parent ^ child.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 31) >> 1 | 1
}

/// Orders spans with the same start depth first: parent before child, short before long, and before
/// all what still fits at the end of what is deep. A circle begins with the span that came first.
fn depth_first(
    mut together: Vec<Record>,
    depth: impl Fn(u64) -> u32,
    summary: &mut PerfettoSummary,
) -> Vec<Record> {
    if together.len() < 2 {
        return together;
    }
    // From the last to the first, since they are taken from the end of a list.
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
    rest.sort_by_key(|place| together[*place].number);
    for place in rest {
        let before = std::mem::replace(&mut count, take(vec![place]));
        summary.cycles += u64::from(count > before);
    }
    ordered
}

/// The place of the span that came first with each id.
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
mod tests {
    use super::*;

    /// The tree and the depth of each span by its id, and the arrows to children.
    fn swept(spans: &[(u64, u64, u64, u64)]) -> (Vec<(u64, u64, u32)>, Vec<u64>) {
        let mut sweep = Sweep::new(1 << 10, false);
        let mut summary = PerfettoSummary::default();
        let mut records: Vec<Record> = (0..)
            .zip(spans)
            .map(|(number, &(id, parent, start, end))| Record {
                start,
                end,
                id,
                parent,
                number,
                ..Record::default()
            })
            .collect();
        records.sort_by_key(|record| record.start);
        for together in records.chunk_by(|one, other| one.start == other.start) {
            sweep.add(&mut together.to_vec(), &mut |_| 0, &mut summary);
        }
        sweep.end();
        let (mut places, mut arrows) = (Vec::new(), Vec::new());
        for found in sweep.take_found() {
            match found {
                SweepEvent::Span(record) => places.push((record.id, record.tree, record.depth)),
                SweepEvent::Arrow { parent, .. } => arrows.push(parent),
            }
        }
        places.sort_unstable();
        (places, arrows)
    }

    #[test]
    fn children_stand_within_their_parents_in_whatever_order_they_come() {
        let spans = [
            (3, 2, 0, 4),
            (2, 1, 0, 4),
            (4, 1, 4, 9),
            (1, 0, 0, 9),
            (5, 4, 9, 9),
        ];
        let expected = vec![(1, 1, 0), (2, 1, 1), (3, 1, 2), (4, 1, 1), (5, 1, 2)];
        assert_eq!(swept(&spans), (expected, vec![]));
    }

    #[test]
    fn what_crosses_or_comes_when_its_parent_is_done_has_a_tree_of_its_own_and_an_arrow() {
        // One crosses its sibling, one its parent, one comes late, one has a parent that nobody knows.
        let spans = [
            (1, 0, 0, 9),
            (2, 1, 0, 5),
            (3, 1, 4, 8),
            (4, 1, 8, 12),
            (5, 2, 20, 30),
            (6, 99, 40, 41),
        ];
        let (places, arrows) = swept(&spans);
        assert_eq!(
            places,
            [(1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 3, 0), (5, 4, 0), (6, 5, 0)]
        );
        assert_eq!(arrows, [1, 1, 2, 99]);
    }

    #[test]
    fn what_begins_where_others_end_stands_in_the_order_of_its_depth() {
        // 4 is at the end of 2 and before 3, which begins there too and ends 2.
        let spans = [
            (1, 0, 0, 9),
            (2, 1, 0, 5),
            (3, 1, 5, 5),
            (4, 2, 5, 5),
            (6, 1, 5, 8),
        ];
        let (places, _) = swept(&spans);
        assert_eq!(places, [(1, 1, 0), (2, 1, 1), (3, 1, 1), (4, 1, 2), (6, 1, 1)]);
    }

    #[test]
    fn a_span_beyond_those_that_can_be_held_open_is_drawn_and_takes_no_children() {
        let last = LEAST_OPEN as u64;
        let mut spans: Vec<_> = (1..=last).map(|id| (id, 0, id, 9_000)).collect();
        // The first span has room within it, and the one that is too many has none.
        spans.extend([
            (9_001, 1, 5_000, 5_001),
            (9_002, 0, 6_000, 7_000),
            (9_003, 9_002, 6_500, 6_600),
        ]);
        let (places, arrows) = swept(&spans);
        assert_eq!(places.len(), LEAST_OPEN + 3);
        let placed = |id: u64| places.iter().find(|place| place.0 == id).copied();
        assert_eq!(placed(9_001), Some((9_001, 1, 1)));
        assert_eq!(placed(9_002), Some((9_002, last + 1, 0)));
        assert_eq!(placed(9_003), Some((9_003, last + 2, 0)));
        assert_eq!(arrows, [9_002]);
    }

    #[test]
    fn a_circle_and_a_span_that_is_its_own_parent_are_cut_once() {
        let mut summary = PerfettoSummary::default();
        let record = |id, parent, number| Record {
            id,
            parent,
            number,
            ..Record::default()
        };
        let circle = vec![record(1, 2, 0), record(2, 1, 1), record(3, 3, 2)];
        let ordered = depth_first(circle, |_| 0, &mut summary);
        let ids: Vec<u64> = ordered.iter().map(|record| record.id).collect();
        assert_eq!((ids, summary.cycles), (vec![1, 2, 3], 2));
    }
}
