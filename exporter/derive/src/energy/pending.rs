//! Steps that wait until the energy counters of their GPUs have been read after the end of the step.

use std::{collections::VecDeque, time::Duration};

use pulsetrain_otlp::{
    UnixNanos,
    view::{AnyValue, Span},
};
use pulsetrain_pipeline::{
    Batch,
    clock::{self, Instant},
};
use pulsetrain_run::{RunOrigin, integer};
use pulsetrain_semconv::{attribute, span};

use super::{
    EnergyConfig,
    assignment::GpuAssignment,
    gpu_readings::GpuReadings,
    reporters::{ReportedBy, StepReporters},
    window::Window,
};
use crate::spans::ExtractedSpan;

/// The maximum number of bytes that waiting steps hold back together. Beyond it, the oldest is sent with the known energy.
const MAX_HELD_BYTES: usize = 8 << 20;

/// A step that waits for readings.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) origin: RunOrigin,
    pub(super) window: Window,
    /// The step number, if the step has one.
    pub(super) number: Option<i64>,
    /// Its tokens over all devices, if they are reported.
    pub(super) tokens: Option<f64>,
    pub(super) source: StepSource,
    /// The end of its wait.
    deadline: Instant,
}

/// The telemetry item that reported a step.
#[derive(Debug)]
pub(super) enum StepSource {
    /// A span, which is held back.
    Span(ExtractedSpan),
    /// A point of a resource with these bytes.
    Point {
        resource: Vec<u8>,
        /// The batch of the point, without its contents: derived points belong to the ack of that batch.
        batch: Batch,
    },
}

/// Time, number and tokens of a step's span.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanFacts {
    window: Window,
    number: Option<i64>,
    tokens: Option<f64>,
}

/// The steps that wait, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct PendingSteps {
    steps: VecDeque<Step>,
    /// The bytes that the steps hold back.
    bytes: usize,
    /// The number of steps at the front that were checked; they wait for a reading or for their deadline.
    checked: usize,
}

impl SpanFacts {
    /// Returns the facts of a span, or `None` if it is not a step or has an energy status already.
    pub(super) fn from_span(span: &Span<'_>) -> Option<Self> {
        if span.name != span::TRAIN_STEP.name || span.end_time_unix_nano < span.start_time_unix_nano {
            return None;
        }
        let mut facts = Self {
            window: Window::new(
                UnixNanos(span.start_time_unix_nano),
                UnixNanos(span.end_time_unix_nano),
            ),
            number: None,
            tokens: None,
        };
        for entry in span.attributes.iter().map_while(Result::ok) {
            let value = entry.value.unwrap_or_default();
            if entry.key == attribute::GPU_STEP_ENERGY_STATUS.name {
                return None;
            } else if entry.key == attribute::TRAIN_STEP.name {
                facts.number = integer(value);
            } else if entry.key == attribute::TRAIN_TOKENS.name {
                facts.tokens = number(value);
            }
        }
        Some(facts)
    }
}

impl Step {
    /// Returns a step that was reported as a span.
    pub(super) fn of_span(facts: SpanFacts, span: ExtractedSpan, deadline: Instant) -> Self {
        Self {
            origin: span.envelope.origin.clone(),
            window: facts.window,
            number: facts.number,
            tokens: facts.tokens,
            source: StepSource::Span(span),
            deadline,
        }
    }

    /// Returns a step that was reported as a point with the time of its end.
    pub(super) fn of_point(
        origin: &RunOrigin,
        window: Window,
        (resource, batch): (Vec<u8>, Batch),
        deadline: Instant,
    ) -> Self {
        Self {
            origin: origin.clone(),
            window,
            number: None,
            tokens: None,
            source: StepSource::Point { resource, batch },
            deadline,
        }
    }

    /// Returns the bytes that the step holds back.
    fn held_bytes(&self) -> usize {
        match &self.source {
            StepSource::Span(span) => span.held_bytes(),
            StepSource::Point { resource, .. } => resource.len(),
        }
    }

    /// Returns the batch that reported the step, without its contents.
    pub(super) fn batch(&self) -> &Batch {
        match &self.source {
            StepSource::Span(span) => &span.envelope.batch,
            StepSource::Point { batch, .. } => batch,
        }
    }

    /// Returns whether later readings cannot change the energy of the step.
    fn is_complete(&self, gpus: &GpuReadings, reporters: &StepReporters) -> bool {
        let is_read = |until: UnixNanos| until >= self.window.end;
        match GpuAssignment::new(gpus, reporters, &self.origin, self.window) {
            Some(assignment) => assignment.gpus.iter().all(|gpu| is_read(gpu.read_until())),
            // No GPU claims the step so far. After a pause the claim arrives later than the reading.
            None => gpus
                .on_host(self.origin.host.as_deref())
                .all(|gpu| is_read(gpu.read_until()) && !gpu.was_claimed(&self.origin, self.window)),
        }
    }

    /// Returns whether this step, which was reported as a point, may still arrive as a span.
    fn may_arrive_as_span(&self, reporters: &StepReporters, wait: Duration, now: Instant) -> bool {
        match (&self.source, reporters.reported_by(&self.origin)) {
            (StepSource::Point { .. }, Some(ReportedBy::Points(since))) => now < clock::later(since, wait),
            _ => false,
        }
    }

    /// Returns whether this step was reported as a point by a rank that reports its steps as spans too.
    fn is_duplicate(&self, reporters: &StepReporters) -> bool {
        matches!(self.source, StepSource::Point { .. })
            && reporters.reported_by(&self.origin) == Some(ReportedBy::Spans)
    }
}

impl PendingSteps {
    /// Adds a step.
    pub(super) fn push(&mut self, step: Step) {
        self.bytes += step.held_bytes();
        self.steps.push_back(step);
    }

    /// Returns the first deadline. All steps wait for the same time, so it is that of the first step.
    pub(super) fn due(&self) -> Option<Instant> {
        self.steps.front().map(|step| step.deadline)
    }

    /// Removes and returns the steps whose readings are complete, those past their deadline, and the oldest above the limit. Steps that
    /// were checked before are checked again only if `has_readings`, so that many waiting steps cost nothing.
    pub(super) fn take_ready(
        &mut self,
        gpus: &GpuReadings,
        reporters: &StepReporters,
        config: EnergyConfig,
        now: Instant,
        has_readings: bool,
    ) -> Vec<Step> {
        let mut ready = self.take_oldest(config.max_waiting, now);
        let first = if has_readings {
            0
        } else {
            self.checked.min(self.steps.len())
        };
        for step in self.steps.split_off(first) {
            let may_be_more = step.may_arrive_as_span(reporters, config.wait, now);
            if !may_be_more && step.is_complete(gpus, reporters) {
                self.bytes -= step.held_bytes();
                ready.push(step);
            } else {
                self.steps.push_back(step);
            }
        }
        self.checked = self.steps.len();
        ready.retain(|step| !step.is_duplicate(reporters));
        ready
    }

    /// Removes and returns the steps past their deadline, and the oldest above `most` or [`MAX_HELD_BYTES`].
    fn take_oldest(&mut self, most: usize, now: Instant) -> Vec<Step> {
        let late = self.steps.partition_point(|step| step.deadline <= now);
        let oldest = late.max(self.steps.len().saturating_sub(most));
        let mut taken = Vec::new();
        while taken.len() < oldest || self.bytes > MAX_HELD_BYTES {
            let Some(step) = self.steps.pop_front() else { break };
            self.bytes -= step.held_bytes();
            taken.push(step);
        }
        self.checked = self.checked.saturating_sub(taken.len());
        taken
    }

    /// Removes and returns all steps.
    pub(super) fn take_all(&mut self, reporters: &StepReporters) -> Vec<Step> {
        self.bytes = 0;
        let all = std::mem::take(&mut self.steps).into_iter();
        all.filter(|step| !step.is_duplicate(reporters)).collect()
    }
}

fn number(value: AnyValue<'_>) -> Option<f64> {
    match value {
        AnyValue::Double(number) => Some(number),
        other => integer(other).map(|number| number as f64),
    }
}
