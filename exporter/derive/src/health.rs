//! Health of runs: cross-rank signals, wall time by use, and verdicts.
//!
//! Facts of ranks, GPUs and intervals go to the [`RunHealth`] of their run. There, `align` brings the steps of the
//! ranks together, `straggler` compares them, `timeline` accounts for the wall time, and `verdicts` detects conditions on the
//! board of `verdict`; `report` writes what they find. Event time drives all of it, so recordings give the same verdicts as live telemetry.

mod align;
mod arrivals;
mod clean_time;
mod rank_step;
mod report;
mod restarts;
mod run;
mod sample;
mod straggler;
#[cfg(test)]
mod tests;
mod timeline;
mod verdict;
mod verdicts;

use std::{collections::HashMap, sync::Arc, time::Duration};

use pulsetrain_otlp::{
    UnixNanos,
    view::{KeyValue, Repeated},
};
use pulsetrain_run::{integer, label};
use pulsetrain_semconv::{Metric, attribute, metric};

use self::{align::AlignConfig, run::RunHealth, verdicts::GpuReading};
use crate::{
    config::SignalsConfig,
    signals::{Derivation, PointFacts, Signals},
    steps::{LifecycleFacts, RankInfo, StepFacts},
};

/// The maximum number of runs. Beyond it, the run that was silent for the longest time is evicted. A run uses
/// about 30 KB, and 1 KB for each rank and GPU.
const MAX_RUNS: usize = 256;
/// The minimum time that a step waits for its ranks.
const MIN_WAIT: Duration = Duration::from_secs(10);
/// The maximum number of steps that wait for their ranks, live and in recordings, where ranks may arrive one
/// after the other.
const MAX_OPEN: usize = 1024;
const MAX_OPEN_OFFLINE: usize = 65_536;
/// The wait from which on the telemetry counts as a recording.
const OFFLINE_WAIT: Duration = Duration::from_secs(3600);
/// The maximum age of a run's telemetry for which the run follows event time.
const FOLLOWS: Duration = Duration::from_secs(60);

/// Reasons of `gpu.throttle.*` that are heat or the power supply.
const HARMFUL: [&str; 5] = [
    "thermal_cap",
    "hw_slowdown",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
];

static SENDS: [&Metric; 8] = [
    &metric::TRAIN_STRAGGLER_SCORE,
    &metric::TRAIN_RANK_STEP_TIME,
    &metric::TRAIN_RANKS,
    &metric::PERF_DATA_WAIT_RATIO,
    &metric::TRAIN_WALL_TIME,
    &metric::TRAIN_GOODPUT,
    &metric::TRAIN_VERDICTS,
    &metric::TRAIN_OPENED_VERDICTS,
];

static POINTS: [&Metric; 7] = [
    &metric::GPU_UTILIZATION,
    &metric::GPU_POWER,
    &metric::GPU_THROTTLE_ACTIVE,
    &metric::GPU_THROTTLE_TIME,
    &metric::GPU_XID_ERRORS,
    &metric::GPU_FAULT_ACTIVE,
    &metric::TRAIN_GLOBAL_STEP,
];

/// Derives cross-rank signals, wall time and verdicts of all runs.
#[derive(Debug)]
pub(crate) struct Health {
    config: AlignConfig,
    runs: HashMap<Arc<str>, RunState>,
    watermark: UnixNanos,
}

#[derive(Debug)]
struct RunState {
    health: RunHealth,
    /// Whether the run's telemetry is current, so that event time of other runs applies to it.
    follows: bool,
}

/// A point of a GPU.
struct GpuPoint<'a> {
    id: &'a str,
    /// The attribute that distinguishes the series of its metric: a task, a reason, a fault, a reading.
    label: Option<&'a str>,
    code: Option<i64>,
}

impl Health {
    /// Creates the derivation without runs.
    pub(crate) fn new(config: &SignalsConfig) -> Self {
        let is_offline = config.wait >= OFFLINE_WAIT;
        Self {
            config: AlignConfig {
                wait: if is_offline {
                    Duration::MAX
                } else {
                    config.wait.max(MIN_WAIT)
                },
                max_open: if is_offline { MAX_OPEN_OFFLINE } else { MAX_OPEN },
            },
            runs: HashMap::new(),
            watermark: UnixNanos::default(),
        }
    }

    fn run(&mut self, run: &Arc<str>) -> &mut RunState {
        if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(run) {
            let silent = self.runs.iter().min_by_key(|(_, run)| run.health.newest());
            if let Some(silent) = silent.map(|(id, _)| Arc::clone(id)) {
                self.runs.remove(&silent);
            }
        }
        let config = self.config;
        self.runs.entry(Arc::clone(run)).or_insert_with(|| RunState {
            health: RunHealth::new(run, config),
            follows: false,
        })
    }

    /// Records whether new telemetry of a run is current or of the past.
    fn publish_news(state: &mut RunState, watermark: UnixNanos) {
        state.follows = state.health.newest().saturating_add(FOLLOWS) >= watermark;
    }

    fn on_gpu(&mut self, point: &PointFacts<'_>, out: &mut Signals) {
        let Some(gpu) = GpuPoint::from_attributes(point.attributes) else {
            return;
        };
        let Some(reading) = gpu.reading(point) else { return };
        let mut owner = point.origin.clone();
        // Attributes that cannot be decoded are ignored. The batch passes unchanged.
        let _ = owner.read(point.attributes);
        // An unclaimed GPU belongs to the only run.
        let run = match (owner.run_id, self.runs.len()) {
            (Some(run), _) => run,
            (None, 1) => match self.runs.keys().next() {
                Some(run) => Arc::clone(run),
                None => return,
            },
            _ => return,
        };
        let watermark = self.watermark;
        let state = self.run(&run);
        let id: Arc<str> = gpu.id.into();
        state
            .health
            .on_gpu((&id, owner.rank), point.time, reading, point.resource, out);
        Self::publish_news(state, watermark);
    }
}

impl Derivation for Health {
    fn sends(&self) -> &'static [&'static Metric] {
        &SENDS
    }

    fn points(&self) -> &'static [&'static Metric] {
        &POINTS
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let watermark = self.watermark;
        let state = self.run(&step.rank.run);
        state.health.on_step(step, out);
        Self::publish_news(state, watermark);
    }

    fn on_lifecycle(&mut self, interval: &LifecycleFacts, out: &mut Signals) {
        let watermark = self.watermark;
        let state = self.run(&interval.rank.run);
        state.health.on_lifecycle(interval, out);
        Self::publish_news(state, watermark);
    }

    fn on_point(&mut self, point: &PointFacts<'_>, out: &mut Signals) {
        let is_of_gpu = point.metric.ordinal != metric::TRAIN_GLOBAL_STEP.ordinal;
        if is_of_gpu && !point.is_end && point.value.is_finite() {
            self.on_gpu(point, out);
        }
    }

    fn on_rank_end(&mut self, rank: &Arc<RankInfo>, time: UnixNanos, out: &mut Signals) {
        if let Some(state) = self.runs.get_mut(&rank.run) {
            state.health.on_rank_end(rank.rank, time, out);
        }
    }

    fn on_watermark(&mut self, time: UnixNanos, out: &mut Signals) {
        self.watermark = self.watermark.max(time);
        for state in self.runs.values_mut() {
            let now = if state.follows {
                time
            } else {
                state.health.newest()
            };
            state.health.on_time(now, out);
        }
    }

    fn on_finish(&mut self, out: &mut Signals) {
        for state in self.runs.values_mut() {
            state.health.finish(out);
        }
    }

    fn needs_idle_ticks(&self) -> bool {
        self.runs
            .values()
            .any(|state| state.follows && state.health.is_active())
    }
}

impl<'a> GpuPoint<'a> {
    fn from_attributes(attributes: Repeated<'a, KeyValue<'a>>) -> Option<Self> {
        let mut found = Self {
            id: "",
            label: None,
            code: None,
        };
        for entry in attributes.iter().map_while(Result::ok) {
            let value = entry.value.unwrap_or_default();
            let is = |attribute: &pulsetrain_semconv::Attribute| entry.key == attribute.name;
            if is(&attribute::GPU_ID) {
                found.id = label(value)?;
            } else if is(&attribute::GPU_XID_CODE) {
                found.code = integer(value);
            } else if is(&attribute::GPU_TASK)
                || is(&attribute::GPU_THROTTLE_REASON)
                || is(&attribute::GPU_FAULT)
                || is(&attribute::GPU_POWER_READING)
            {
                found.label = label(value);
            }
        }
        (!found.id.is_empty()).then_some(found)
    }

    fn reading(&self, point: &PointFacts<'_>) -> Option<GpuReading<'a>> {
        let is = |metric: &Metric| point.metric.ordinal == metric.ordinal;
        let is_harmful = || self.label.filter(|reason| HARMFUL.contains(reason));
        let value = point.value;
        if is(&metric::GPU_THROTTLE_TIME) {
            return Some(GpuReading::ThrottleTime(is_harmful()?, point.series));
        }
        if is(&metric::GPU_XID_ERRORS) {
            return Some(GpuReading::Xids(self.code?, point.series));
        }
        // A delta of a state is ignored.
        if point.series.is_delta {
            return None;
        }
        if is(&metric::GPU_UTILIZATION) {
            let is_general_task = self.label.is_none_or(|task| task == "general");
            return is_general_task.then_some(GpuReading::Utilization(value));
        }
        if is(&metric::GPU_POWER) {
            return Some(GpuReading::Power(value));
        }
        if is(&metric::GPU_THROTTLE_ACTIVE) {
            return Some(GpuReading::Throttling(is_harmful()?, value > 0.0));
        }
        (self.label? == "lost").then_some(GpuReading::Lost(value > 0.0))
    }
}
