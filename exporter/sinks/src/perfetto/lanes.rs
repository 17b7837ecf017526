//! Packs spans on lanes: on each, slices nest, and no two cross.
//!
//! A child stays on its parent's lane where it lies within the parent and begins at or after the end of the sibling before
//! it there. Every other child begins a tree of its own. Trees are put, by their start, on the first lane that is free.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

/// Viewers stop nesting at 512.
const DEEPEST: u32 = 500;

/// A span as far as packing needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u64,
    /// Not before `start`.
    pub(super) end: u64,
    /// The place of the parent, if it may be drawn within that.
    pub(super) parent: Option<u32>,
}

/// Which spans are drawn within their parents.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    /// For each span its children, in their order.
    children: Children,
    /// How many spans begin a tree only because they are too deep.
    pub(super) too_deep: u64,
    nested: Vec<bool>,
}

impl Nesting {
    /// Decides of each child whether it stays within its parent. Parents form no circle.
    pub(super) fn of(spans: &[Interval]) -> Self {
        let mut nesting = Self {
            children: Children::new(spans),
            nested: vec![false; spans.len()],
            too_deep: 0,
        };
        nesting.nest(spans);
        nesting
    }

    fn nest(&mut self, spans: &[Interval]) {
        let roots = (0..spans.len() as u32).filter(|&span| spans[span as usize].parent.is_none());
        let mut open: Vec<(u32, u32)> = roots.map(|root| (root, 1)).collect();
        while let Some((span, depth)) = open.pop() {
            let parent = spans[span as usize];
            let mut free_from = parent.start;
            for &child in self.children.of(span) {
                let Interval { start, end, .. } = spans[child as usize];
                let fits = start >= free_from && end <= parent.end;
                let nested = fits && depth < DEEPEST;
                self.too_deep += u64::from(fits && !nested);
                self.nested[child as usize] = nested;
                if nested {
                    free_from = end;
                }
                if !self.children.of(child).is_empty() {
                    open.push((child, if nested { depth + 1 } else { 1 }));
                }
            }
        }
    }

    /// The next child that is drawn within a span; `from` is where to go on, 0 at first.
    #[inline]
    pub(super) fn next_child(&self, span: u32, from: &mut usize) -> Option<u32> {
        let rest = self.children.of(span).get(*from..)?;
        let ahead = rest.iter().position(|child| self.nested[*child as usize])?;
        *from += ahead + 1;
        rest.get(ahead).copied()
    }

    /// Whether a span is drawn within its parent.
    #[inline]
    pub(super) fn is_nested(&self, span: u32) -> bool {
        self.nested[span as usize]
    }
}

/// The children of every span, by time, in one piece of memory.
#[derive(Debug, Default)]
struct Children {
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Children {
    fn new(spans: &[Interval]) -> Self {
        let mut starts = vec![0u32; spans.len() + 1];
        for parent in spans.iter().filter_map(|span| span.parent) {
            starts[parent as usize + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut all = vec![0; starts.last().map_or(0, |count| *count as usize)];
        let mut next = starts.clone();
        for (child, span) in spans.iter().enumerate() {
            if let Some(parent) = span.parent {
                let place = &mut next[parent as usize];
                all[*place as usize] = child as u32;
                *place += 1;
            }
        }
        let mut children = Self { starts, all };
        for span in 0..spans.len() {
            children
                .of_mut(span)
                .sort_unstable_by_key(|&child| by_time(spans, child));
        }
        children
    }

    #[inline]
    fn of(&self, span: u32) -> &[u32] {
        let (start, end) = (self.starts[span as usize], self.starts[span as usize + 1]);
        &self.all[start as usize..end as usize]
    }

    fn of_mut(&mut self, span: usize) -> &mut [u32] {
        let (start, end) = (self.starts[span], self.starts[span + 1]);
        &mut self.all[start as usize..end as usize]
    }
}

fn by_time(spans: &[Interval], span: u32) -> (u64, u64, u32) {
    let Interval { start, end, .. } = spans[span as usize];
    (start, end, span)
}

/// The lanes of one group: trees come by their start, and each is put on the lowest lane that is free.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    free: BTreeSet<u32>,
    count: u32,
}

impl Lanes {
    /// The lane for a tree, which is then taken until [`Lanes::release`].
    pub(super) fn take(&mut self, start: u64) -> u32 {
        while let Some(&Reverse((until, lane))) = self.busy.peek()
            && until <= start
        {
            self.busy.pop();
            self.free.insert(lane);
        }
        self.free.pop_first().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// Gives a lane back from a time on.
    pub(super) fn release(&mut self, lane: u32, until: u64) {
        self.busy.push(Reverse((until, lane)));
    }

    /// How many lanes there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which trees are on which lane, and how many spans were too deep.
    fn packed(spans: &[(u64, u64, Option<u32>)]) -> (Nesting, Vec<Vec<u32>>) {
        let interval = |&(start, end, parent)| Interval { start, end, parent };
        let spans: Vec<_> = spans.iter().map(interval).collect();
        let nesting = Nesting::of(&spans);
        let mut trees: Vec<u32> = (0..spans.len() as u32)
            .filter(|span| !nesting.is_nested(*span))
            .collect();
        trees.sort_by_key(|tree| by_time(&spans, *tree));
        let (mut lanes, mut rows) = (Lanes::default(), Vec::new());
        for tree in trees {
            let lane = lanes.take(spans[tree as usize].start);
            lanes.release(lane, spans[tree as usize].end);
            rows.resize(lanes.count() as usize, Vec::new());
            rows[lane as usize].push(tree);
        }
        (nesting, rows)
    }

    fn children(nesting: &Nesting, span: u32) -> Vec<u32> {
        let mut from = 0;
        std::iter::from_fn(|| nesting.next_child(span, &mut from)).collect()
    }

    #[test]
    fn a_child_stays_under_its_parent_where_it_fits() {
        let (nesting, lanes) = packed(&[(0, 10, None), (0, 4, Some(0)), (4, 10, Some(0)), (4, 4, Some(0))]);
        assert_eq!(lanes, [[0]]);
        assert_eq!(children(&nesting, 0), [1, 3, 2]);
    }

    #[test]
    fn a_child_that_crosses_its_sibling_or_its_parent_has_a_lane_of_its_own() {
        let (nesting, lanes) = packed(&[(0, 10, None), (0, 5, Some(0)), (4, 9, Some(0)), (9, 12, Some(0))]);
        assert_eq!(lanes, [vec![0], vec![2, 3]]);
        assert_eq!(children(&nesting, 0), [1]);
    }

    #[test]
    fn a_chain_deeper_than_viewers_nest_goes_on_beside_it() {
        let chain: Vec<_> = (0..1200_u32).map(|depth| (0, 10, depth.checked_sub(1))).collect();
        let (nesting, lanes) = packed(&chain);
        assert_eq!(lanes, [[0], [500], [1000]]);
        assert_eq!(nesting.too_deep, 2);
    }

    #[test]
    fn a_lane_that_is_not_given_back_is_not_taken_again() {
        let mut lanes = Lanes::default();
        assert_eq!([lanes.take(0), lanes.take(50)], [0, 1]);
        lanes.release(0, 20);
        assert_eq!([lanes.take(60), lanes.take(60)], [0, 2]);
    }
}
