//! Assignment of GPUs to the steps of ranks.
//!
//! Every GPU of a run counts for exactly one rank of its host, so that the energy of the steps of a host adds up to that of its
//! GPUs: for its own rank if that rank reports steps, else for the lowest rank that does.

use std::{collections::BTreeSet, time::Duration};

use pulsetrain_run::RunOrigin;

use super::{
    gpu_readings::{Gpu, GpuClaim, GpuKey, GpuReadings},
    reporters::StepReporters,
    window::Window,
};

/// How long before its first and after its last observation a process may have used a GPU.
const SLACK: Duration = Duration::from_secs(5);

/// How the GPUs of a step were assigned (`gpu.step.attribution`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribution {
    /// All belong to the rank.
    Rank,
    /// Some belong to ranks of the run that report no steps.
    Run,
    /// They belong to no run, and only this run reports steps on their host.
    Host,
}

/// The GPUs of a step.
pub(super) struct GpuAssignment<'a> {
    pub(super) gpus: Vec<&'a Gpu>,
    pub(super) attribution: Attribution,
    /// Whether another run or rank used one of them in the step.
    pub(super) is_shared: bool,
    /// The number of ranks whose GPUs these are, and the number of ranks of the run.
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

impl<'a> GpuAssignment<'a> {
    /// Returns the keys of the GPUs.
    pub(super) fn keys(&self) -> impl Iterator<Item = GpuKey> {
        self.gpus.iter().map(|gpu| gpu.key.clone())
    }

    /// Returns the GPUs of a step that `origin` reported, or `None` if none is known.
    pub(super) fn new(
        gpus: &'a GpuReadings,
        reporters: &StepReporters,
        origin: &RunOrigin,
        window: Window,
    ) -> Option<Self> {
        let wide = Window::new(
            window.start.saturating_sub(SLACK),
            window.end.saturating_add(SLACK),
        );
        let claimed: Vec<_> = gpus
            .on_host(origin.host.as_deref())
            .filter_map(|gpu| Some((gpu, claim(gpu, origin, wide)?)))
            .collect();
        if claimed.is_empty() {
            return Self::of_host(gpus, reporters, origin, window);
        }
        Self::of_run(&claimed, reporters, origin, window)
    }

    /// Returns those of the GPUs claimed by the run that count for the rank.
    fn of_run(
        claimed: &[(&'a Gpu, &GpuClaim)],
        reporters: &StepReporters,
        origin: &RunOrigin,
        window: Window,
    ) -> Option<Self> {
        let rank = origin.rank.unwrap_or_default();
        let is_first = reporters.first_rank(origin) == Some(rank);
        let counts = |owner: &GpuClaim| match owner.rank {
            Some(owner) if owner == rank => true,
            Some(owner) => is_first && !reporters.reports(origin, owner),
            None => is_first,
        };
        let mine: Vec<_> = claimed.iter().filter(|(_, owner)| counts(owner)).collect();
        let is_own = |(_, owner): &&&(&Gpu, &GpuClaim)| owner.rank.is_none_or(|owner| owner == rank);
        let ranks: BTreeSet<i64> = mine.iter().map(|(_, owner)| owner.rank.unwrap_or(rank)).collect();
        let assignment = Self {
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
        (!assignment.gpus.is_empty()).then_some(assignment)
    }

    /// Returns the GPUs of the host that no run claims, or `None` if another run could have used them.
    fn of_host(
        gpus: &'a GpuReadings,
        reporters: &StepReporters,
        origin: &RunOrigin,
        window: Window,
    ) -> Option<Self> {
        let is_first = reporters.first_rank(origin) == Some(origin.rank.unwrap_or_default());
        if !is_first || !reporters.is_only_run(origin) {
            return None;
        }
        let gpus: Vec<_> = gpus
            .on_host(origin.host.as_deref())
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

/// Returns the claim of the run on a GPU; that of the rank itself has precedence.
fn claim<'a>(gpu: &'a Gpu, origin: &RunOrigin, window: Window) -> Option<&'a GpuClaim> {
    gpu.owners_in(window)
        .filter(|owner| origin.run_id.as_ref() == Some(&owner.run))
        .max_by_key(|owner| owner.rank == origin.rank)
}

/// Returns whether another run, or another rank of the run, claimed the GPU in the step.
fn is_shared(gpu: &Gpu, ours: &GpuClaim, window: Window) -> bool {
    let is_other_rank =
        |other: &GpuClaim| other.rank.is_some() && ours.rank.is_some() && other.rank != ours.rank;
    gpu.owners_in(window)
        .any(|other| other.run != ours.run || is_other_rank(other))
}
