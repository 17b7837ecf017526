//! Packs spans on lanes: on each, slices nest, and no two cross.
//!
//! A child stays on its parent's lane if it is within the parent and begins at or after the end of the previous sibling there;
//! an instant stays if it is within the parent. Every other child is the root of a separate tree. Trees are packed by their
//! start on the first free lane.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use super::optional_index::OptionalIndex;

/// The depth limit: viewers stop nesting at 512.
pub(super) const DEEPEST: u32 = 500;

/// The properties of a span for packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u64,
    /// Not before `start`.
    pub(super) end: u64,
    /// The index of the parent, if the span may nest within it.
    pub(super) parent: Option<u32>,
    /// Whether it is an instant, which does not limit its siblings.
    pub(super) is_instant: bool,
}

/// The spans that nest within their parents.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    /// For each span its first nested child, and its next sibling within the same parent.
    first: Vec<OptionalIndex>,
    next: Vec<OptionalIndex>,
    nested: Vec<bool>,
    /// The number of spans that are roots only because of the depth limit.
    pub(super) too_deep: u64,
}

impl Nesting {
    /// Decides for each span whether it nests within its parent. Parents form no cycle.
    pub(super) fn new(count: usize, interval: impl Fn(u32) -> Interval) -> Self {
        let mut nesting = Self {
            first: vec![OptionalIndex::NONE; count],
            next: vec![OptionalIndex::NONE; count],
            nested: vec![false; count],
            too_deep: 0,
        };
        let roots = nesting.gather(&interval);
        nesting.nest(roots, &interval);
        nesting
    }

    /// Lists the children of every span by time, and returns the spans without a parent.
    fn gather(&mut self, interval: &impl Fn(u32) -> Interval) -> Vec<u32> {
        let (mut roots, mut unsorted) = (Vec::new(), Vec::new());
        for span in (0..self.first.len() as u32).rev() {
            let about = interval(span);
            let Some(parent) = about.parent else {
                roots.push(span);
                continue;
            };
            let first = &mut self.first[parent as usize];
            if let Some(next) = first.get()
                && interval(next).time() < about.time()
            {
                unsorted.push(parent);
            }
            self.next[span as usize] = std::mem::replace(first, span.into());
        }
        unsorted.sort_unstable();
        unsorted.dedup();
        for parent in unsorted {
            let mut children: Vec<u32> = self.children(parent).collect();
            children.sort_unstable_by_key(|&child| (interval(child).time(), child));
            self.set_children(parent, &children);
        }
        roots
    }

    fn set_children(&mut self, parent: u32, children: &[u32]) {
        let mut next = OptionalIndex::NONE;
        for &child in children.iter().rev() {
            self.next[child as usize] = next;
            next = child.into();
        }
        self.first[parent as usize] = next;
    }

    /// Traverses the spans from the roots and removes children that do not fit from the lists: they are roots too.
    fn nest(&mut self, roots: Vec<u32>, interval: &impl Fn(u32) -> Interval) {
        let mut open: Vec<(u32, u32)> = roots.into_iter().map(|root| (root, 1)).collect();
        while let Some((span, depth)) = open.pop() {
            let parent = interval(span);
            let mut free_from = parent.start;
            let mut latest = None;
            let mut next = self.first[span as usize];
            self.first[span as usize] = OptionalIndex::NONE;
            while let Some(child) = next.get() {
                next = std::mem::replace(&mut self.next[child as usize], OptionalIndex::NONE);
                let Interval {
                    start,
                    end,
                    is_instant,
                    ..
                } = interval(child);
                let from = if is_instant { parent.start } else { free_from };
                let fits = start >= from && end <= parent.end;
                let nested = fits && (is_instant || depth < DEEPEST);
                self.too_deep += u64::from(fits && !nested);
                if nested {
                    free_from = if is_instant { free_from } else { end };
                    self.append(span, &mut latest, child);
                }
                if self.first[child as usize] != OptionalIndex::NONE {
                    open.push((child, if nested { depth + 1 } else { 1 }));
                }
            }
        }
    }

    /// Appends a child to the children of its parent.
    fn append(&mut self, parent: u32, latest: &mut Option<u32>, child: u32) {
        self.nested[child as usize] = true;
        match latest.replace(child) {
            Some(before) => self.next[before as usize] = child.into(),
            None => self.first[parent as usize] = child.into(),
        }
    }

    /// Returns the first nested child of a span.
    #[inline]
    pub(super) fn first_child(&self, span: u32) -> OptionalIndex {
        self.first[span as usize]
    }

    /// Returns the next sibling of a span within the same parent.
    #[inline]
    pub(super) fn next_sibling(&self, span: u32) -> OptionalIndex {
        self.next[span as usize]
    }

    /// Iterates over the nested children of a span.
    fn children(&self, span: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first_child(span).get(), |child| {
            self.next_sibling(*child).get()
        })
    }

    /// Returns whether a span nests within its parent.
    #[inline]
    pub(super) fn is_nested(&self, span: u32) -> bool {
        self.nested[span as usize]
    }
}

impl Interval {
    fn time(&self) -> (u64, u64) {
        (self.start, self.end)
    }
}

/// The lanes of one group: trees are added by their start, and each is put on the lowest free lane.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    free: BTreeSet<u32>,
    count: u32,
}

impl Lanes {
    /// Allocates the lane for a tree, which is busy until [`Lanes::release`].
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

    /// Frees a lane from a time on.
    pub(super) fn release(&mut self, lane: u32, until: u64) {
        self.busy.push(Reverse((until, lane)));
    }

    /// Returns the number of lanes.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the trees on each lane, and the nesting.
    fn packed(spans: &[(u64, u64, Option<u32>)]) -> (Nesting, Vec<Vec<u32>>) {
        let interval = |&(start, end, parent)| Interval {
            start,
            end,
            parent,
            is_instant: false,
        };
        let spans: Vec<_> = spans.iter().map(interval).collect();
        let nesting = Nesting::new(spans.len(), |span| spans[span as usize]);
        let mut trees: Vec<u32> = (0..spans.len() as u32)
            .filter(|span| !nesting.is_nested(*span))
            .collect();
        trees.sort_by_key(|tree| (spans[*tree as usize].time(), *tree));
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
        nesting.children(span).collect()
    }

    #[test]
    fn child_is_nested_under_its_parent_if_it_fits() {
        let (nesting, lanes) = packed(&[(0, 10, None), (0, 4, Some(0)), (4, 10, Some(0)), (4, 4, Some(0))]);
        assert_eq!(lanes, [[0]]);
        assert_eq!(children(&nesting, 0), [1, 3, 2]);
    }

    #[test]
    fn child_that_overlaps_a_sibling_or_its_parent_gets_its_own_lane() {
        let (nesting, lanes) = packed(&[(0, 10, None), (0, 5, Some(0)), (4, 9, Some(0)), (9, 12, Some(0))]);
        assert_eq!(lanes, [vec![0], vec![2, 3]]);
        assert_eq!(children(&nesting, 0), [1]);
    }

    #[test]
    fn instant_is_nested_under_its_parent_and_does_not_displace_siblings() {
        let instants = [5, 0, 3, 10, 11].map(|time| (time, time, Some(0), true));
        let spans = [
            (0, 10, None, false),
            (2, 5, Some(0), false),
            (5, 8, Some(0), false),
        ];
        let all: Vec<_> = spans
            .into_iter()
            .chain(instants)
            .map(|(start, end, parent, is_instant)| Interval {
                start,
                end,
                parent,
                is_instant,
            })
            .collect();
        let nesting = Nesting::new(all.len(), |place| all[place as usize]);
        assert_eq!(children(&nesting, 0), [4, 1, 5, 3, 2, 6]);
        assert!(!nesting.is_nested(7));
    }

    #[test]
    fn chain_deeper_than_the_viewer_limit_continues_on_another_lane() {
        let chain: Vec<_> = (0..1200_u32).map(|depth| (0, 10, depth.checked_sub(1))).collect();
        let (nesting, lanes) = packed(&chain);
        assert_eq!(lanes, [[0], [500], [1000]]);
        assert_eq!(nesting.too_deep, 2);
    }

    #[test]
    fn unreleased_lane_is_never_reused() {
        let mut lanes = Lanes::default();
        assert_eq!([lanes.take(0), lanes.take(50)], [0, 1]);
        lanes.release(0, 20);
        assert_eq!([lanes.take(60), lanes.take(60)], [0, 2]);
    }
}
