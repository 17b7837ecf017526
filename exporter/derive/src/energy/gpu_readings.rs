//! Readings of the counters and gauges of each GPU, and the runs that claimed it, with times.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pulsetrain_otlp::{
    UnixNanos,
    view::{KeyValue, Repeated, Text},
    walk::AnyPoint,
};
use pulsetrain_run::{RunOrigin, SeriesPoint, label};
use pulsetrain_semconv::{Metric, attribute, metric};

use super::{
    attributed::AttributedIntervals,
    delta_total::DeltaTotal,
    energy_counter::EnergyCounter,
    readings::Readings,
    run_energy::{OutsideEnergy, RunEnergies},
    window::Window,
};
use crate::config::MAX_REASONS;

/// How long a claim holds after its last point if no newer point of the GPU is known: processes are polled every 5 s.
const CLAIM_LIFETIME: Duration = Duration::from_secs(6);
/// The kinds of points that name the run of a GPU, as an index of `last_claims`.
const CLAIM_BY_GPU: usize = 0;
const CLAIM_BY_PROCESS: usize = 1;

/// The most GPUs, and the most claims of one GPU, that are kept; the oldest claim is deleted first.
const MAX_GPUS: usize = 4096;
const MAX_OWNERS: usize = 32;

/// The attribute that distinguished GPU, module and memory in `gpu.power` and `gpu.energy` before they were separate metrics.
/// Recordings with it can still be imported.
const FORMER_SCOPE: &str = "gpu.power.scope";

/// The kind of the power limit in force, one of those of `gpu.power_limit`.
const ENFORCED: &str = "enforced";

/// Reasons of `gpu.throttle.time` that do not slow training.
const HARMLESS: [&str; 5] = [
    "none",
    "idle",
    "not_supported",
    "low_utilization",
    "applications_clocks_setting",
];

/// The quantity of a point of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Energy,
    Power,
    PowerLimit,
    Busy,
    Throttle,
    /// No reading: the point only names the run that uses the GPU.
    Claim,
}

/// The readings of all GPUs.
#[derive(Debug, Default)]
pub(super) struct GpuReadings(BTreeMap<GpuKey, Gpu>);

/// Identifies a GPU. An id that is only a number is unique on its host.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GpuKey {
    host: Option<Arc<str>>,
    id: Arc<str>,
}

/// One GPU.
#[derive(Debug, Default)]
pub(super) struct Gpu {
    pub(super) key: GpuKey,
    pub(super) energy: EnergyCounter,
    pub(super) power: Readings,
    pub(super) busy: Readings,
    pub(super) throttle: BTreeMap<Box<str>, Readings>,
    /// The totals of the counters that are sent as deltas, by the reason of throttling. The energy has no reason.
    delta_totals: BTreeMap<Box<str>, DeltaTotal>,
    pub(super) attributed: AttributedIntervals,
    runs: RunEnergies,
    owners: Vec<GpuClaim>,
    /// The times of the last points of the GPU, and of the processes on it, whether or not they named a run.
    last_claims: [UnixNanos; 2],
    last_seen_unix_nanos: UnixNanos,
}

/// A rank that claimed a GPU, with the times of its first and its last claim.
#[derive(Clone, Debug)]
pub(super) struct GpuClaim {
    pub(super) run: Arc<str>,
    pub(super) rank: Option<i64>,
    pub(super) world_size: Option<i64>,
    pub(super) claimed: Window,
    /// The kind of point of its last claim.
    by: usize,
}

impl Quantity {
    /// Returns the quantity of a metric, or `None` if the stage does not use it.
    pub(super) fn from_metric_name(name: Text<'_>) -> Option<Self> {
        const METRICS: [(&Metric, Quantity); 9] = [
            (&metric::GPU_ENERGY, Quantity::Energy),
            (&metric::GPU_POWER, Quantity::Power),
            (&metric::GPU_POWER_LIMIT, Quantity::PowerLimit),
            (&metric::GPU_UTILIZATION, Quantity::Busy),
            (&metric::GPU_THROTTLE_TIME, Quantity::Throttle),
            (&metric::GPU_PROCESS_MEMORY, Quantity::Claim),
            (&metric::HW_ENERGY, Quantity::Energy),
            (&metric::HW_POWER, Quantity::Power),
            (&metric::HW_GPU_UTILIZATION, Quantity::Busy),
        ];
        let found = METRICS.iter().find(|(metric, _)| name == metric.name)?;
        Some(found.1)
    }
}

impl GpuReadings {
    /// Returns whether no GPU has an energy counter.
    pub(super) fn is_empty(&self) -> bool {
        !self.0.values().any(Gpu::is_counted)
    }

    /// Records a point of a GPU. Attributes of the point override those of `origin`.
    pub(super) fn observe(&mut self, quantity: Quantity, origin: &RunOrigin, point: &AnyPoint<'_, '_>) {
        let value = point.number().map(|number| number.as_f64());
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        let labels = Labels::from_attributes(point.attributes());
        let Some(labels) = labels.filter(Labels::is_gpu_wide) else {
            return;
        };
        let mut origin = origin.clone();
        // Attributes that cannot be decoded are ignored. The batch passes unchanged.
        let _ = origin.read(point.attributes());
        let key = GpuKey {
            host: origin.host.clone(),
            id: labels.id.into(),
        };
        if self.0.len() >= MAX_GPUS && !self.0.contains_key(&key) {
            return;
        }
        let gpu = self.0.entry(key).or_insert_with_key(|key| Gpu {
            key: key.clone(),
            ..Gpu::default()
        });
        let time = point.time();
        gpu.last_seen_unix_nanos = gpu.last_seen_unix_nanos.max(time);
        let by = if quantity == Quantity::Claim {
            CLAIM_BY_PROCESS
        } else {
            CLAIM_BY_GPU
        };
        gpu.claim(&origin, time, by);
        if !point.kind.is_delta() {
            gpu.record(quantity, &labels, time, value);
        } else if matches!(quantity, Quantity::Energy | Quantity::Throttle)
            && let Some(delta) = SeriesPoint::from_point(point)
        {
            let reason = labels.reason.unwrap_or_default();
            if gpu.delta_totals.len() >= MAX_REASONS && !gpu.delta_totals.contains_key(reason) {
                return;
            }
            let total = gpu.delta_totals.entry(reason.into()).or_default();
            for (time, value) in total.add(&delta) {
                gpu.record(quantity, &labels, time, value);
            }
        }
    }

    /// Attributes the energy of these GPUs in `window` to a step of a run. Returns the energy of the run outside of its steps
    /// since the last call.
    pub(super) fn record_attributed(
        &mut self,
        energies: &[(GpuKey, f64)],
        of_run: (&Arc<str>, &[u8]),
        window: Window,
    ) -> f64 {
        let mut outside = 0.0;
        for (key, joules) in energies {
            if let Some(gpu) = self.0.get_mut(key) {
                gpu.attributed.record(window);
                let others = gpu.owners.iter().filter(|owner| owner.run != *of_run.0);
                let free_from = others
                    .map(|owner| gpu.held_until(owner))
                    .max()
                    .unwrap_or_default();
                outside += gpu.runs.add_step(of_run, &gpu.energy, window, *joules, free_from);
            }
        }
        outside
    }

    /// Returns the energy since the last step of each run that no longer uses a GPU, or of all runs.
    pub(super) fn end_runs(&mut self, all: bool) -> Vec<OutsideEnergy> {
        self.0.values_mut().flat_map(|gpu| gpu.end_runs(all)).collect()
    }

    /// Deletes readings that are `history` older than the newest of their GPU, and GPUs without readings for that time.
    pub(super) fn expire(&mut self, history: Duration, most_readings: usize) {
        let newest = self
            .0
            .values()
            .map(|gpu| gpu.last_seen_unix_nanos)
            .max()
            .unwrap_or_default();
        self.0
            .retain(|_, gpu| gpu.last_seen_unix_nanos >= newest.saturating_sub(history));
        for gpu in self.0.values_mut() {
            let horizon = gpu.last_seen_unix_nanos.saturating_sub(history);
            gpu.all_readings()
                .for_each(|readings| readings.expire(horizon, most_readings));
            gpu.runs.advance(&gpu.energy, horizon);
            gpu.energy.expire(horizon, most_readings);
            gpu.attributed.expire(horizon);
            gpu.owners.retain(|owner| owner.claimed.end >= horizon);
        }
    }

    /// Returns the GPUs that may be on a host; if one of both hosts is unknown, a GPU may be. Only GPUs with an energy counter are
    /// returned: other sources, such as a trainer's log, often have the same GPUs under other names.
    pub(super) fn on_host<'a, 'h>(
        &'a self,
        host: Option<&'h str>,
    ) -> impl Iterator<Item = &'a Gpu> + use<'a, 'h> {
        self.0.iter().filter_map(move |(key, gpu)| {
            let is_there = match (&key.host, host) {
                (Some(one), Some(other)) => **one == *other,
                _ => true,
            };
            (is_there && gpu.is_counted()).then_some(gpu)
        })
    }
}

impl Gpu {
    /// Returns the time of the newest energy reading.
    pub(super) fn read_until(&self) -> UnixNanos {
        self.energy.newest().unwrap_or_default()
    }

    fn record(&mut self, quantity: Quantity, labels: &Labels<'_>, time: UnixNanos, value: f64) {
        match (quantity, labels.reason) {
            (Quantity::Energy, _) => self.energy.insert(time, value),
            (Quantity::Power, _) => self.power.insert(time, value),
            (Quantity::PowerLimit, _) if labels.limit == Some(ENFORCED) => self.energy.set_limit(value),
            (Quantity::Busy, _) => self.busy.insert(time, value),
            (Quantity::Throttle, Some(reason))
                if !HARMLESS.contains(&reason)
                    && (self.throttle.len() < MAX_REASONS || self.throttle.contains_key(reason)) =>
            {
                self.throttle
                    .entry(reason.into())
                    .or_default()
                    .insert(time, value);
            }
            _ => {}
        }
    }

    fn is_counted(&self) -> bool {
        self.energy.newest().is_some()
    }

    /// Returns the ranks that claimed it at any time in `window`.
    pub(super) fn owners_in(&self, window: Window) -> impl Iterator<Item = &GpuClaim> {
        self.owners
            .iter()
            .filter(move |owner| owner.claimed.start <= window.end && self.held_until(owner) >= window.start)
    }

    /// Returns until when an owner held the GPU: until its last claim if a newer point did not repeat it, else a while longer.
    fn held_until(&self, owner: &GpuClaim) -> UnixNanos {
        if self.last_claims[owner.by] > owner.claimed.end {
            owner.claimed.end
        } else {
            owner.claimed.end.saturating_add(CLAIM_LIFETIME)
        }
    }

    /// Returns whether the run claimed it before `window`, so that it may claim it again.
    pub(super) fn was_claimed(&self, origin: &RunOrigin, window: Window) -> bool {
        let is_of_run = |owner: &GpuClaim| origin.run_id.as_ref() == Some(&owner.run);
        let mut owners = self.owners.iter().filter(|owner| is_of_run(owner));
        owners.any(|owner| owner.claimed.end < window.start)
    }

    fn end_runs(&mut self, all: bool) -> Vec<OutsideEnergy> {
        let newest = self.read_until();
        let claimed_until = |run: &Arc<str>| {
            let of_run = self.owners.iter().filter(|owner| owner.run == *run);
            of_run
                .map(|owner| (self.held_until(owner), owner.claimed.end))
                .max()
        };
        // A GPU without a claim is the run's for as long as it has steps.
        let ends: Vec<_> = self
            .runs
            .names()
            .filter_map(|run| match claimed_until(run) {
                Some((held, end)) => (all || held < newest).then(|| (Arc::clone(run), end.min(newest))),
                None => all.then(|| (Arc::clone(run), UnixNanos::UNKNOWN)),
            })
            .collect();
        let end = |run: &Arc<str>| ends.iter().find(|(name, _)| name == run).map(|(_, end)| *end);
        self.runs.end(&self.energy, end)
    }

    fn claim(&mut self, origin: &RunOrigin, unix_nanos: UnixNanos, by: usize) {
        self.last_claims[by] = self.last_claims[by].max(unix_nanos);
        let Some(run) = &origin.run_id else { return };
        self.runs.begin(run, unix_nanos);
        let is_it = |owner: &&mut GpuClaim| owner.run == *run && owner.rank == origin.rank;
        if let Some(owner) = self.owners.iter_mut().find(is_it) {
            owner.world_size = origin.world_size.or(owner.world_size);
            owner.claimed.start = owner.claimed.start.min(unix_nanos);
            if unix_nanos >= owner.claimed.end {
                owner.claimed.end = unix_nanos;
                owner.by = by;
            }
            return;
        }
        if self.owners.len() >= MAX_OWNERS {
            self.owners.remove(0);
        }
        self.owners.push(GpuClaim {
            run: Arc::clone(run),
            rank: origin.rank,
            world_size: origin.world_size,
            claimed: Window::new(unix_nanos, unix_nanos),
            by,
        });
    }

    fn all_readings(&mut self) -> impl Iterator<Item = &mut Readings> {
        [&mut self.power, &mut self.busy]
            .into_iter()
            .chain(self.throttle.values_mut())
    }
}

/// The attributes that identify a point of a GPU.
#[derive(Default)]
struct Labels<'a> {
    id: &'a str,
    scope: Option<&'a str>,
    task: Option<&'a str>,
    kind: Option<&'a str>,
    reason: Option<&'a str>,
    limit: Option<&'a str>,
}

impl<'a> Labels<'a> {
    fn from_attributes(attributes: Repeated<'a, KeyValue<'a>>) -> Option<Self> {
        let (mut labels, mut id) = (Self::default(), None);
        for entry in attributes.iter().map_while(Result::ok) {
            let Some(value) = label(entry.value.unwrap_or_default()) else {
                continue;
            };
            let is = |attribute: &pulsetrain_semconv::Attribute| entry.key == attribute.name;
            if is(&attribute::GPU_ID) || is(&attribute::HW_ID) {
                id = Some(value);
            } else if entry.key == FORMER_SCOPE {
                labels.scope = Some(value);
            } else if is(&attribute::GPU_TASK) || is(&attribute::HW_GPU_TASK) {
                labels.task = Some(value);
            } else if is(&attribute::HW_TYPE) {
                labels.kind = Some(value);
            } else if is(&attribute::GPU_THROTTLE_REASON) {
                labels.reason = Some(value);
            } else if is(&attribute::GPU_POWER_LIMIT_KIND) {
                labels.limit = Some(value);
            }
        }
        Some(Self { id: id?, ..labels })
    }

    /// Returns whether the point is of the GPU as a unit, and not of its memory, its video engines or another device.
    fn is_gpu_wide(&self) -> bool {
        self.scope.is_none_or(|scope| scope == "gpu")
            && self.task.is_none_or(|task| task == "general")
            && self.kind.is_none_or(|kind| kind == "gpu")
    }
}
