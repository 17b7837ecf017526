//! Computes the shift of each clock. Pairs of resources bound the difference of their clocks, and pairs with more calls take
//! precedence.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{CLIENT, SERVER, Times};

/// The shifts of a child's clock, in nanoseconds, for which all children are within their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    least: i64,
    most: i64,
    calls: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            least: i64::MIN,
            most: i64::MAX,
            calls: 0,
        }
    }
}

impl Bounds {
    /// Narrows the bounds by a parent and its child.
    ///
    /// No child begins before its parent. The server ends before its client; other children may outlive their parents.
    pub(super) fn add(&mut self, parent: &Times, child: &Times) {
        self.calls += 1;
        self.least = self.least.max(difference(parent.start, child.start));
        let is_call = (parent.kind, child.kind) == (CLIENT, SERVER);
        if is_call && child.end - child.start <= parent.end - parent.start {
            self.most = self.most.min(difference(parent.end, child.end));
        }
    }

    /// Returns the shift of the child's clock: 0 if the bounds allow it, else the middle of the bounds. `back` has the bounds
    /// of the calls in the other direction, for the shift of the parent's clock.
    ///
    /// The middle is the shift for which requests and responses take equally long. If the bounds contradict each other (clocks
    /// that drift), the shift ensures that no child begins before its parent, or that the calls of both directions do so by the
    /// same time.
    fn offset(self, back: Option<Self>) -> i64 {
        // To shift one clock is to shift the other one by the opposite.
        let (least_back, most_back) = back.map_or((i64::MIN, i64::MAX), |back| {
            (back.most.saturating_neg(), back.least.saturating_neg())
        });
        let (least, most) = (self.least.max(least_back), self.most.min(most_back));
        if least <= 0 && most >= 0 {
            0
        } else if least <= most && most < i64::MAX {
            least.midpoint(most)
        } else if self.least <= most_back {
            0_i64.clamp(self.least, most_back)
        } else {
            self.least.midpoint(most_back)
        }
    }
}

fn difference(one: u64, other: u64) -> i64 {
    (i128::from(one) - i128::from(other)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Returns the offset of each resource. The clock of the root resource of each group is not shifted.
pub(super) fn offsets(resources: usize, bounds: &BTreeMap<(u32, u32), Bounds>) -> Vec<i64> {
    let mut pairs: Vec<_> = bounds
        .iter()
        .filter_map(|(&(parent, child), &bounds_there)| {
            let back = bounds.get(&(child, parent)).copied();
            let calls_back = back.map_or(0, |back| back.calls);
            // The direction with more calls represents both.
            let is_first = (Reverse(bounds_there.calls), parent) < (Reverse(calls_back), child);
            let calls = bounds_there.calls + calls_back;
            is_first.then(|| (calls, (parent, child), bounds_there.offset(back)))
        })
        .collect();
    pairs.sort_by_key(|(calls, pair, _)| (Reverse(*calls), *pair));
    let mut groups = Groups {
        links: (0..resources as u32).map(|resource| (resource, 0)).collect(),
    };
    for (_, (parent, child), offset) in pairs {
        groups.join(parent, child, offset);
    }
    (0..resources as u32)
        .map(|resource| groups.find(resource).1)
        .collect()
}

/// Groups of resources with related clocks: a union-find structure with offsets.
struct Groups {
    /// The next resource on the path to the root of the group, and the offset from it.
    links: Vec<(u32, i64)>,
}

impl Groups {
    /// Returns the root of the group of a resource, and the offset from it.
    fn find(&mut self, resource: u32) -> (u32, i64) {
        let mut path = Vec::new();
        let mut root = resource;
        while self.links[root as usize].0 != root {
            path.push(root);
            root = self.links[root as usize].0;
        }
        let mut offset = 0_i64;
        // The resource next to the root is last.
        for place in path.into_iter().rev() {
            offset = offset.saturating_add(self.links[place as usize].1);
            self.links[place as usize] = (root, offset);
        }
        (root, offset)
    }

    /// Relates the clock of a child to that of its parent, unless both are already in one group.
    fn join(&mut self, parent: u32, child: u32, offset: i64) {
        let (parent_root, of_parent) = self.find(parent);
        let (child_root, of_child) = self.find(child);
        if parent_root != child_root {
            let of_root = of_parent.saturating_add(offset).saturating_sub(of_child);
            self.links[child_root as usize] = (parent_root, of_root);
        }
    }
}
