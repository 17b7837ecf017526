//! Which GPUs a step ran on.
//!
//! Every GPU of a run counts for one rank of its host, so that the steps of a host add up to what its GPUs took: for its own
//! rank where that tells steps, else for the lowest rank that does.

use std::collections::BTreeSet;

use super::{
    fleet::{Fleet, Gpu, Key, Owner},
    tellers::Tellers,
    window::Window,
};
use crate::origin::Origin;

/// How long before it is first seen, and after it was last seen, a process may have used a GPU.
const SLACK_NANOS: u64 = 5_000_000_000;

/// How the GPUs of a step were found (`gpu.step.attribution`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribution {
    /// They are the rank's own.
    Rank,
    /// Some are of ranks of the run that tell no steps.
    Run,
    /// They are of no run, on a host where only this run tells steps.
    Host,
}

/// The GPUs of a step.
pub(super) struct Share<'a> {
    pub(super) gpus: Vec<&'a Gpu>,
    pub(super) attribution: Attribution,
    /// Whether others used one of them in the step.
    pub(super) is_shared: bool,
    /// The ranks whose GPUs these are, and how many the run has.
    pub(super) ranks: usize,
    pub(super) world_size: Option<i64>,
}

impl Attribution {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Run => "run",
            Self::Host => "host",
        }
    }
}

impl<'a> Share<'a> {
    /// Which GPUs these are.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.gpus.iter().map(|gpu| gpu.key.clone()).collect()
    }

    /// The GPUs of a step that `origin` told; nothing where none is known.
    pub(super) fn of(fleet: &'a Fleet, tellers: &Tellers, origin: &Origin, window: Window) -> Option<Self> {
        let wide = Window {
            start: window.start.saturating_sub(SLACK_NANOS),
            end: window.end.saturating_add(SLACK_NANOS),
        };
        let claimed: Vec<_> = fleet
            .on(origin.host.as_deref())
            .filter_map(|gpu| Some((gpu, claim(gpu, origin, wide)?)))
            .collect();
        if claimed.is_empty() {
            return Self::of_host(fleet, tellers, origin, window);
        }
        Self::of_run(&claimed, tellers, origin, window)
    }

    /// Of the GPUs that the run claims, those that count for the rank.
    fn of_run(
        claimed: &[(&'a Gpu, &Owner)],
        tellers: &Tellers,
        origin: &Origin,
        window: Window,
    ) -> Option<Self> {
        let rank = origin.rank.unwrap_or_default();
        let is_first = tellers.first_rank(origin) == Some(rank);
        let counts = |owner: &Owner| match owner.rank {
            Some(owner) if owner == rank => true,
            Some(owner) => is_first && !tellers.tells(origin, owner),
            None => is_first,
        };
        let mine: Vec<_> = claimed.iter().filter(|(_, owner)| counts(owner)).collect();
        let is_own = |(_, owner): &&&(&Gpu, &Owner)| owner.rank.is_none_or(|owner| owner == rank);
        let ranks: BTreeSet<i64> = mine.iter().map(|(_, owner)| owner.rank.unwrap_or(rank)).collect();
        let share = Self {
            gpus: mine.iter().map(|(gpu, _)| *gpu).collect(),
            attribution: if mine.iter().all(|one| is_own(&one)) {
                Attribution::Rank
            } else {
                Attribution::Run
            },
            is_shared: mine.iter().any(|(gpu, owner)| is_shared(gpu, owner, window)),
            ranks: ranks.len(),
            world_size: mine
                .iter()
                .find_map(|(_, owner)| owner.world_size)
                .or(origin.world_size),
        };
        (!share.gpus.is_empty()).then_some(share)
    }

    /// The GPUs of the host that belong to nobody, where no other run could have used them.
    fn of_host(fleet: &'a Fleet, tellers: &Tellers, origin: &Origin, window: Window) -> Option<Self> {
        let is_first = tellers.first_rank(origin) == Some(origin.rank.unwrap_or_default());
        if !is_first || !tellers.is_only_run(origin) {
            return None;
        }
        let gpus: Vec<_> = fleet
            .on(origin.host.as_deref())
            .filter(|gpu| gpu.owners_in(window).next().is_none())
            .collect();
        (!gpus.is_empty()).then_some(Self {
            gpus,
            attribution: Attribution::Host,
            is_shared: false,
            ranks: 1,
            world_size: origin.world_size,
        })
    }
}

/// The claim of the run on a GPU, that of the rank itself before others.
fn claim<'a>(gpu: &'a Gpu, origin: &Origin, window: Window) -> Option<&'a Owner> {
    gpu.owners_in(window)
        .filter(|owner| origin.run.as_ref() == Some(&owner.run))
        .max_by_key(|owner| owner.rank == origin.rank)
}

/// Whether another run, or another rank of the run, claimed the GPU in the step.
fn is_shared(gpu: &Gpu, ours: &Owner, window: Window) -> bool {
    let is_other_rank =
        |other: &Owner| other.rank.is_some() && ours.rank.is_some() && other.rank != ours.rank;
    gpu.owners_in(window)
        .any(|other| other.run != ours.run || is_other_rank(other))
}
