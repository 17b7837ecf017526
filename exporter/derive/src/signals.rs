//! The stage that derives signals: assembles steps from passing batches and passes them to derivations.
//!
//! Every batch passes at once and unchanged. Derived batches follow it, under the ack of the batch with the
//! step, so that both are replayed together after a kill.

mod derivation;
mod idle;
#[cfg(test)]
mod tests;
mod writer;

use std::{fmt, sync::Arc};

use pulsetrain_otlp::{Signal, UnixNanos, WireError, walk};
use pulsetrain_pipeline::{Batch, MemoryUse, Stage, clock::Instant};
use pulsetrain_run::RunOrigin;

use self::idle::IdleClock;
use pulsetrain_semconv::metric;

pub(crate) use self::{
    derivation::{Derivation, EventFacts, PointFacts},
    writer::Signals,
};
use crate::{
    config::{MAX_REMEMBERED_BYTES, MAX_RESOURCE_BYTES, SignalsConfig},
    health::Health,
    rank_signals,
    steps::{
        Interests, LifecycleFacts, RankInfo, StepFacts,
        assembler::{Assembler, handle, resource_bytes},
    },
};

/// Derives signals from steps; a [`Stage`] of the pipeline.
pub struct SignalsStage {
    assembler: Assembler,
    derivations: Vec<Box<dyn Derivation>>,
    signals: Signals,
    watcher: Option<Watcher>,
    watermark: UnixNanos,
    idle: IdleClock,
    memory: MemoryUse,
}

/// Called with every batch that the stage adds.
type Watcher = Box<dyn Fn(&Batch) + Send>;

impl SignalsStage {
    /// Returns a stage with all derivations.
    pub fn new(config: SignalsConfig) -> Self {
        Self::with(config, derivations(&config))
    }

    /// Returns a stage with these derivations, at most 32.
    pub(crate) fn with(config: SignalsConfig, derivations: Vec<Box<dyn Derivation>>) -> Self {
        let interests = Interests::new(
            derivations
                .iter()
                .map(|derivation| (derivation.sends(), derivation.points())),
        );
        Self {
            assembler: Assembler::new(interests, config),
            derivations,
            signals: Signals::default(),
            watcher: None,
            watermark: UnixNanos::default(),
            idle: IdleClock::default(),
            memory: MemoryUse::default(),
        }
    }

    /// The maximum number of bytes of the resources that the stage remembers.
    pub const MAX_BYTES: usize = 3 * MAX_REMEMBERED_BYTES;

    /// Returns the memory that the resources use.
    pub fn memory(&self) -> MemoryUse {
        self.memory.clone()
    }

    /// Calls `watch`, which must not block, with every batch that the stage adds.
    #[must_use]
    pub fn watched(self, watch: impl Fn(&Batch) + Send + 'static) -> Self {
        Self {
            watcher: Some(Box::new(watch)),
            ..self
        }
    }

    /// Decodes a batch and passes its facts to the derivations. Returns the ranks that it ends. A malformed
    /// batch passes unchanged.
    fn read(&mut self, batch: &Batch, now: Instant) -> Vec<(Arc<RankInfo>, UnixNanos)> {
        let Self {
            assembler,
            derivations,
            signals,
            ..
        } = self;
        let (mut intervals, mut ended) = (Vec::new(), Vec::new());
        match batch.signal() {
            Signal::Metrics => {
                let mut given = Vec::new();
                let mut on_point = |wanted_by: u32, point: &PointFacts<'_>| {
                    if point.is_end
                        && point.metric.ordinal == metric::TRAIN_GLOBAL_STEP.ordinal
                        && let Some(rank) = point.rank
                    {
                        ended.push((Arc::clone(rank), point.time));
                    }
                    for (place, derivation) in derivations.iter_mut().enumerate() {
                        if wanted_by & (1 << place) != 0 {
                            derivation.on_point(point, signals);
                        }
                    }
                };
                let mut on_suppressed = |resource: &[u8], metric| given.push((resource.to_vec(), metric));
                let _ = assembler.read_points(batch, now, &mut on_point, &mut on_suppressed);
                for (resource, metric) in given {
                    signals.resource(&resource).suppress(metric);
                }
            }
            Signal::Traces => {
                let _ = assembler.read_spans(batch, now, &mut intervals);
            }
            Signal::Logs => {
                let _ = self.read_events(batch);
            }
        }
        for interval in intervals {
            self.on_lifecycle(&interval);
        }
        ended
    }

    /// Closes the steps of ended ranks, and ends their derived series.
    fn end(&mut self, ended: &[(Arc<RankInfo>, UnixNanos)], out: &mut Vec<Batch>) {
        for (rank, time) in ended {
            let mut steps = Vec::new();
            self.assembler.close_rank(rank.id, &mut steps);
            self.derive(&steps, out);
            for derivation in &mut self.derivations {
                derivation.on_rank_end(rank, *time, &mut self.signals);
            }
            self.signals.resource(&rank.resource).end(*time);
        }
    }

    fn on_lifecycle(&mut self, interval: &LifecycleFacts) {
        for derivation in &mut self.derivations {
            derivation.on_lifecycle(interval, &mut self.signals);
        }
    }

    fn read_events(&mut self, batch: &Batch) -> Result<(), WireError> {
        let Self {
            assembler,
            derivations,
            signals,
            ..
        } = self;
        if derivations
            .iter()
            .all(|derivation| derivation.events().is_empty())
        {
            return Ok(());
        }
        for resource in walk::records(batch.bytes()) {
            let resource = resource?;
            if resource_bytes(resource.bytes).len() > MAX_RESOURCE_BYTES {
                continue;
            }
            let mut origin = None;
            for record in resource.items() {
                let record = record?;
                let time = UnixNanos(record.time_unix_nano);
                for derivation in derivations.iter_mut() {
                    let mut wanted = derivation.events().iter();
                    if !wanted.any(|event| record.event_name == event.name) {
                        continue;
                    }
                    assembler.observe_time(time);
                    let facts = EventFacts {
                        origin: origin
                            .get_or_insert_with(|| RunOrigin::from_attributes(resource.attributes())),
                        resource: resource_bytes(resource.bytes),
                        time,
                        record: &record,
                    };
                    derivation.on_event(&facts, signals);
                }
            }
        }
        Ok(())
    }

    /// Passes closed steps to the derivations. Batches go to `out` at each change of the ack and at the size
    /// limit.
    fn derive(&mut self, steps: &[StepFacts], out: &mut Vec<Batch>) {
        let mut before: Option<&Batch> = None;
        for step in steps {
            if let Some(before) = before
                && (!before.can_share_batch_with(&step.batch) || self.signals.is_full())
            {
                self.flush(before, out);
            }
            self.signals.set_source(step.batch.source());
            self.signals.bind(&step.rank.resource);
            let resource = self.signals.resource(&step.rank.resource);
            resource.starts_at(step.start.unwrap_or(step.end));
            for derivation in &mut self.derivations {
                derivation.on_step(step, &mut self.signals);
            }
            before = Some(&step.batch);
        }
        if let Some(before) = before {
            self.flush(before, out);
        }
        for rank in self.assembler.take_evicted() {
            for derivation in &mut self.derivations {
                derivation.forget(rank);
            }
        }
    }

    /// Passes the newest event time to the derivations.
    fn advance(&mut self, now: Instant) {
        let newest = self.assembler.newest();
        if newest > self.watermark {
            self.advance_to(newest);
            self.idle.on_telemetry(newest, now);
        }
    }

    /// Updates whether event time follows the clock, as a derivation may request.
    fn update_idle_clock(&mut self) {
        let needs_idle_ticks = self
            .derivations
            .iter()
            .any(|derivation| derivation.needs_idle_ticks());
        self.idle.set_enabled(needs_idle_ticks);
    }

    fn advance_to(&mut self, time: UnixNanos) {
        self.watermark = time;
        for derivation in &mut self.derivations {
            derivation.on_watermark(time, &mut self.signals);
        }
    }

    fn flush(&mut self, batch: &Batch, out: &mut Vec<Batch>) {
        let watch = self.watcher.as_ref().map(|watch| &**watch as &dyn Fn(&Batch));
        self.signals.flush(batch, watch, out);
    }
}

/// Returns all derivations. Another derived signal is another line.
fn derivations(config: &SignalsConfig) -> Vec<Box<dyn Derivation>> {
    let mut derivations = rank_signals::all();
    derivations.push(Box::new(Health::new(config)));
    derivations
}

impl Stage for SignalsStage {
    fn pass(&mut self, batch: Batch, now: Instant, out: &mut Vec<Batch>) {
        self.signals.set_arrival(now);
        self.signals.set_source(batch.source());
        let ended = self.read(&batch, now);
        let mut steps = Vec::new();
        self.assembler.close_touched(now, &mut steps);
        let handle = handle(&batch);
        out.push(batch);
        self.flush(&handle, out);
        self.derive(&steps, out);
        self.signals.set_source(handle.source());
        self.end(&ended, out);
        self.advance(now);
        self.flush(&handle, out);
        self.update_idle_clock();
        self.memory.record(
            self.assembler.remembered_bytes() + self.signals.remembered_bytes(),
            self.assembler.evictions() + self.signals.evictions(),
        );
    }

    fn due(&self) -> Option<Instant> {
        self.assembler.due().into_iter().chain(self.idle.due()).min()
    }

    fn release(&mut self, now: Instant, out: &mut Vec<Batch>) {
        self.signals.set_arrival(now);
        let mut steps = Vec::new();
        self.assembler.close_late(now, &mut steps);
        self.derive(&steps, out);
        if let Some(time) = self.idle.tick(now) {
            self.advance_to(time.max(self.watermark));
            self.flush(&Batch::new(Signal::Metrics, 0, Vec::new()), out);
        }
        self.update_idle_clock();
    }

    fn finish(&mut self, out: &mut Vec<Batch>) {
        let mut steps = Vec::new();
        self.assembler.close_all(&mut steps);
        self.derive(&steps, out);
        for derivation in &mut self.derivations {
            derivation.on_finish(&mut self.signals);
        }
        self.flush(&Batch::new(Signal::Metrics, 0, Vec::new()), out);
    }
}

impl fmt::Debug for SignalsStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalsStage")
            .field("assembler", &self.assembler)
            .finish_non_exhaustive()
    }
}
