//! The GPUs that are heard of: what their counters and gauges said, and which runs claimed them when.

use std::{collections::BTreeMap, sync::Arc};

use pulsetrain_otlp::view::{KeyValue, NumberPoint, Repeated, Text};
use pulsetrain_semconv::{Metric, attribute, metric};

use super::{readings::Readings, told::ToldTime, window::Window};
use crate::{
    origin::{Origin, text},
    points::Point,
};

/// For how long after it was said last somebody has a GPU, where nothing newer is known: processes are looked at every 5 s.
const HOLDS_NANOS: u64 = 6_000_000_000;
/// What says whose a GPU is.
const BY_GPU: usize = 0;
const BY_PROCESS: usize = 1;

/// How many GPUs, and how many runs of one GPU, are kept in mind at most; the oldest go first.
const MOST_GPUS: usize = 4096;
const MOST_OWNERS: usize = 32;

/// The attribute by which `gpu.power` and `gpu.energy` told a GPU from its module and its memory before those were metrics of
/// their own. Readings of that time can be imported.
const FORMER_SCOPE: &str = "gpu.power.scope";

/// Reasons of `gpu.throttle.time` that hold nothing back which training wants.
const HARMLESS: [&str; 5] = [
    "none",
    "idle",
    "not_supported",
    "low_utilization",
    "applications_clocks_setting",
];

/// What a point of a GPU is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Energy,
    Power,
    Busy,
    Throttle,
    /// Only whose the GPU is.
    Claim,
}

/// All GPUs that are heard of.
#[derive(Debug, Default)]
pub(super) struct Fleet(BTreeMap<Key, Gpu>);

/// Which GPU: ids are unique by themselves unless they are but numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    host: Option<Arc<str>>,
    id: Arc<str>,
}

/// One GPU.
#[derive(Debug, Default)]
pub(super) struct Gpu {
    pub(super) key: Key,
    pub(super) energy: Readings,
    pub(super) power: Readings,
    pub(super) busy: Readings,
    pub(super) throttle: BTreeMap<Box<str>, Readings>,
    pub(super) told: ToldTime,
    owners: Vec<Owner>,
    /// When it was last said of the whole GPU, and of the processes on it, whose they are, if anybody's.
    said_last: [u64; 2],
    heard_unix_nanos: u64,
}

/// A rank that claimed a GPU, from the first time that it was said to the last.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) run: Arc<str>,
    pub(super) rank: Option<i64>,
    pub(super) world_size: Option<i64>,
    pub(super) said: Window,
    /// By what it was said last: its place in what the GPU keeps of that.
    by: usize,
}

impl Quantity {
    /// What the points of the metric of this name are about; nothing where they are of no use here.
    pub(super) fn of(name: Text<'_>) -> Option<Self> {
        const METRICS: [(&Metric, Quantity); 8] = [
            (&metric::GPU_ENERGY, Quantity::Energy),
            (&metric::GPU_POWER, Quantity::Power),
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

impl Fleet {
    /// Whether there is no GPU whose energy is counted.
    pub(super) fn is_empty(&self) -> bool {
        !self.0.values().any(Gpu::is_counted)
    }

    /// Takes in a point of a GPU, said by `origin` as far as the point does not say otherwise.
    pub(super) fn observe(&mut self, quantity: Quantity, origin: &Origin, point: &Point<'_>) {
        let Point::Number(number) = point else { return };
        let Some(labels) = Labels::of(number.attributes) else {
            return;
        };
        let (Some(value), true) = (value(number), labels.is_of_whole_gpu()) else {
            return;
        };
        let mut origin = origin.clone();
        origin.read(number.attributes);
        let key = Key {
            host: origin.host.clone(),
            id: labels.id.into(),
        };
        if self.0.len() >= MOST_GPUS && !self.0.contains_key(&key) {
            return;
        }
        let gpu = self.0.entry(key).or_insert_with_key(|key| Gpu {
            key: key.clone(),
            ..Gpu::default()
        });
        let time = number.time_unix_nano;
        gpu.heard_unix_nanos = gpu.heard_unix_nanos.max(time);
        let by = if quantity == Quantity::Claim {
            BY_PROCESS
        } else {
            BY_GPU
        };
        gpu.claim(&origin, time, by);
        match (quantity, labels.reason) {
            (Quantity::Energy, _) => gpu.energy.insert(time, value),
            (Quantity::Power, _) => gpu.power.insert(time, value),
            (Quantity::Busy, _) => gpu.busy.insert(time, value),
            (Quantity::Throttle, Some(reason)) if !HARMLESS.contains(&reason) => {
                gpu.throttle.entry(reason.into()).or_default().insert(time, value);
            }
            _ => {}
        }
    }

    /// Notes that it was said what these GPUs took in a stretch of time.
    pub(super) fn record_attributed(&mut self, keys: &[Key], window: Window) {
        for key in keys {
            if let Some(gpu) = self.0.get_mut(key) {
                gpu.told.record(window);
            }
        }
    }

    /// Forgets what was `history_nanos` before the newest of each GPU, and GPUs of which nothing was heard for as long.
    pub(super) fn forget(&mut self, history_nanos: u64, most_readings: usize) {
        let newest = self
            .0
            .values()
            .map(|gpu| gpu.heard_unix_nanos)
            .max()
            .unwrap_or_default();
        self.0
            .retain(|_, gpu| gpu.heard_unix_nanos >= newest.saturating_sub(history_nanos));
        for gpu in self.0.values_mut() {
            let horizon = gpu.heard_unix_nanos.saturating_sub(history_nanos);
            gpu.all_readings()
                .for_each(|readings| readings.forget(horizon, most_readings));
            gpu.told.forget(horizon);
            gpu.owners.retain(|owner| owner.said.end >= horizon);
        }
    }

    /// The GPUs that may be on a host: those of it, and where the host of one side is not known, all. Only those whose energy
    /// is counted: what else speaks of GPUs (a trainer's log) often means the same ones under other names.
    pub(super) fn on<'a, 'h>(&'a self, host: Option<&'h str>) -> impl Iterator<Item = &'a Gpu> + use<'a, 'h> {
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
    /// Until when its energy was read.
    pub(super) fn read_until(&self) -> u64 {
        self.energy.newest().unwrap_or_default()
    }

    fn is_counted(&self) -> bool {
        self.energy.newest().is_some()
    }

    /// Those that claimed it somewhere in `window`.
    pub(super) fn owners_in(&self, window: Window) -> impl Iterator<Item = &Owner> {
        self.owners
            .iter()
            .filter(move |owner| owner.said.start <= window.end && self.held_until(owner) >= window.start)
    }

    /// Until when an owner had it as far as is known: where it was not said again, until somebody looked again.
    fn held_until(&self, owner: &Owner) -> u64 {
        if self.said_last[owner.by] > owner.said.end {
            owner.said.end
        } else {
            owner.said.end.saturating_add(HOLDS_NANOS)
        }
    }

    /// Whether the run had claimed it before `window`, and may do so again.
    pub(super) fn was_claimed(&self, origin: &Origin, window: Window) -> bool {
        let is_of_run = |owner: &Owner| origin.run.as_ref() == Some(&owner.run);
        let mut owners = self.owners.iter().filter(|owner| is_of_run(owner));
        owners.any(|owner| owner.said.end < window.start)
    }

    fn claim(&mut self, origin: &Origin, unix_nanos: u64, by: usize) {
        self.said_last[by] = self.said_last[by].max(unix_nanos);
        let Some(run) = &origin.run else { return };
        let is_it = |owner: &&mut Owner| owner.run == *run && owner.rank == origin.rank;
        if let Some(owner) = self.owners.iter_mut().find(is_it) {
            owner.world_size = origin.world_size.or(owner.world_size);
            owner.said.start = owner.said.start.min(unix_nanos);
            if unix_nanos >= owner.said.end {
                owner.said.end = unix_nanos;
                owner.by = by;
            }
            return;
        }
        if self.owners.len() >= MOST_OWNERS {
            self.owners.remove(0);
        }
        self.owners.push(Owner {
            run: Arc::clone(run),
            rank: origin.rank,
            world_size: origin.world_size,
            said: Window {
                start: unix_nanos,
                end: unix_nanos,
            },
            by,
        });
    }

    fn all_readings(&mut self) -> impl Iterator<Item = &mut Readings> {
        [&mut self.energy, &mut self.power, &mut self.busy]
            .into_iter()
            .chain(self.throttle.values_mut())
    }
}

/// What tells a point of a GPU from others.
#[derive(Default)]
struct Labels<'a> {
    id: &'a str,
    scope: Option<&'a str>,
    task: Option<&'a str>,
    kind: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> Labels<'a> {
    fn of(attributes: Repeated<'a, KeyValue<'a>>) -> Option<Self> {
        let (mut labels, mut id) = (Self::default(), None);
        for entry in attributes.iter().map_while(Result::ok) {
            let Some(value) = text(entry.value.unwrap_or_default()) else {
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
            }
        }
        Some(Self { id: id?, ..labels })
    }

    /// Whether the point is of all that a GPU does, and not of its memory, of its video engines, or of something else.
    fn is_of_whole_gpu(&self) -> bool {
        self.scope.is_none_or(|scope| scope == "gpu")
            && self.task.is_none_or(|task| task == "general")
            && self.kind.is_none_or(|kind| kind == "gpu")
    }
}

/// The value of a point that has one.
fn value(point: &NumberPoint<'_>) -> Option<f64> {
    let is_end = point.flags & NumberPoint::NO_RECORDED_VALUE != 0;
    let value = point.value().filter(|_| !is_end)?.as_f64();
    value.is_finite().then_some(value)
}
