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
    /// The place of the parent, if it is among the intervals.
    pub(super) parent: Option<u32>,
}

/// Where the spans are drawn.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// The trees of each lane by their root, in their order.
    pub(super) lanes: Vec<Vec<u32>>,
    /// For each span its children on its lane, in their order.
    children: Children,
    /// How many spans begin a tree only because they are too deep.
    pub(super) too_deep: u64,
    nested: Vec<bool>,
}

impl Lanes {
    /// The next child that is drawn under a span; `from` is where to go on, 0 at first.
    pub(super) fn next_child(&self, span: u32, from: &mut usize) -> Option<u32> {
        let rest = self.children.of(span).get(*from..)?;
        let ahead = rest.iter().position(|child| self.nested[*child as usize])?;
        *from += ahead + 1;
        rest.get(ahead).copied()
    }

    /// Whether a span is drawn under its parent.
    pub(super) fn is_nested(&self, span: u32) -> bool {
        self.nested[span as usize]
    }
}

/// Packs spans, whose parents form no circle.
pub(super) fn pack(spans: &[Interval]) -> Lanes {
    let mut lanes = Lanes {
        children: Children::new(spans),
        nested: vec![false; spans.len()],
        ..Lanes::default()
    };
    nest(spans, &mut lanes);
    lanes.lanes = spread(spans, &lanes.nested);
    lanes
}

/// Decides of each child whether it stays under its parent.
fn nest(spans: &[Interval], lanes: &mut Lanes) {
    let roots = (0..spans.len() as u32).filter(|&span| spans[span as usize].parent.is_none());
    let mut open: Vec<(u32, u32)> = roots.map(|root| (root, 1)).collect();
    while let Some((span, depth)) = open.pop() {
        let parent = spans[span as usize];
        let mut free_from = parent.start;
        for &child in lanes.children.of(span) {
            let Interval { start, end, .. } = spans[child as usize];
            let fits = start >= free_from && end <= parent.end;
            let nested = fits && depth < DEEPEST;
            lanes.too_deep += u64::from(fits && !nested);
            lanes.nested[child as usize] = nested;
            if nested {
                free_from = end;
            }
            open.push((child, if nested { depth + 1 } else { 1 }));
        }
    }
}

/// Puts trees on lanes, the lowest that is free first.
fn spread(spans: &[Interval], nested: &[bool]) -> Vec<Vec<u32>> {
    let mut trees: Vec<u32> = (0..spans.len() as u32)
        .filter(|&span| !nested[span as usize])
        .collect();
    trees.sort_unstable_by_key(|&span| by_time(spans, span));
    let mut lanes: Vec<Vec<u32>> = Vec::new();
    let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut free = BTreeSet::new();
    for tree in trees {
        let Interval { start, end, .. } = spans[tree as usize];
        while let Some(&Reverse((until, lane))) = busy.peek()
            && until <= start
        {
            busy.pop();
            free.insert(lane);
        }
        let lane = free.pop_first().unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[lane].push(tree);
        busy.push(Reverse((end, lane)));
    }
    lanes
}

fn by_time(spans: &[Interval], span: u32) -> (u64, u64, u32) {
    let Interval { start, end, .. } = spans[span as usize];
    (start, end, span)
}

/// The children of every span, by time, in one piece of memory.
#[derive(Debug, Default)]
struct Children {
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Children {
    fn new(spans: &[Interval]) -> Self {
        let mut all: Vec<u32> = (0..spans.len() as u32)
            .filter(|&span| spans[span as usize].parent.is_some())
            .collect();
        all.sort_unstable_by_key(|&span| (spans[span as usize].parent, by_time(spans, span)));
        let mut starts = vec![0u32; spans.len() + 1];
        for &child in &all {
            if let Some(parent) = spans[child as usize].parent {
                starts[parent as usize + 1] += 1;
            }
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        Self { starts, all }
    }

    fn of(&self, span: u32) -> &[u32] {
        let (start, end) = (self.starts[span as usize], self.starts[span as usize + 1]);
        &self.all[start as usize..end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(spans: &[(u64, u64, Option<u32>)]) -> Lanes {
        let interval = |&(start, end, parent)| Interval { start, end, parent };
        pack(&spans.iter().map(interval).collect::<Vec<_>>())
    }

    fn children(lanes: &Lanes, span: u32) -> Vec<u32> {
        let mut from = 0;
        std::iter::from_fn(|| lanes.next_child(span, &mut from)).collect()
    }

    #[test]
    fn a_child_stays_under_its_parent_where_it_fits() {
        let lanes = packed(&[(0, 10, None), (0, 4, Some(0)), (4, 10, Some(0)), (4, 4, Some(0))]);
        assert_eq!(lanes.lanes, [[0]]);
        assert_eq!(children(&lanes, 0), [1, 3, 2]);
    }

    #[test]
    fn a_child_that_crosses_its_sibling_or_its_parent_has_a_lane_of_its_own() {
        let lanes = packed(&[(0, 10, None), (0, 5, Some(0)), (4, 9, Some(0)), (9, 12, Some(0))]);
        assert_eq!(lanes.lanes, [vec![0], vec![2, 3]]);
        assert_eq!(children(&lanes, 0), [1]);
    }

    #[test]
    fn a_chain_deeper_than_viewers_nest_goes_on_beside_it() {
        let chain: Vec<_> = (0..1200_u32).map(|depth| (0, 10, depth.checked_sub(1))).collect();
        let lanes = packed(&chain);
        assert_eq!(lanes.lanes, [[0], [500], [1000]]);
        assert_eq!(lanes.too_deep, 2);
    }
}
