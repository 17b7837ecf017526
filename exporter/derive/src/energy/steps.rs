//! Steps that wait until the counters of their GPUs have been read after their end.

use std::{collections::VecDeque, time::Duration};

use pulsetrain_otlp::view::{AnyValue, HistogramPoint, Span};
use pulsetrain_pipeline::{
    Batch,
    clock::{self, Instant},
};
use pulsetrain_semconv::{attribute, span};

use super::{
    EnergyConfig,
    fleet::Fleet,
    share::Share,
    tellers::{Tellers, ToldBy},
    window::Window,
};
use crate::{
    origin::{Origin, integer},
    spans::TakenSpan,
};

/// A step that waits.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) origin: Origin,
    pub(super) window: Window,
    /// Its number, where it has one.
    pub(super) number: Option<i64>,
    /// Its tokens over all devices, where they are said.
    pub(super) tokens: Option<f64>,
    pub(super) told: Told,
    /// Until when it may wait.
    deadline: Instant,
}

/// As what a step was told.
#[derive(Debug)]
pub(super) enum Told {
    /// As this span, which is held.
    Span(TakenSpan),
    /// As a point of a resource with these bytes.
    Point {
        resource: Vec<u8>,
        /// The batch that it came in, without its contents: its receipt watches over what is derived too.
        batch: Batch,
    },
}

/// The numbers of a step's span.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanFacts {
    window: Window,
    number: Option<i64>,
    tokens: Option<f64>,
}

/// The steps that wait, in the order in which they came; a bounded number of them.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    steps: VecDeque<Step>,
    /// How many of them only a reading or their deadline can let go.
    looked_at: usize,
}

impl SpanFacts {
    /// The facts of a span; nothing where it is no step, or where somebody has derived it before us.
    pub(super) fn of(span: &Span<'_>) -> Option<Self> {
        if span.name != span::TRAIN_STEP.name || span.end_time_unix_nano < span.start_time_unix_nano {
            return None;
        }
        let mut facts = Self {
            window: Window {
                start: span.start_time_unix_nano,
                end: span.end_time_unix_nano,
            },
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
    /// A step that was told as a span.
    pub(super) fn of_span(facts: SpanFacts, span: TakenSpan, deadline: Instant) -> Self {
        Self {
            origin: span.envelope.origin.clone(),
            window: facts.window,
            number: facts.number,
            tokens: facts.tokens,
            told: Told::Span(span),
            deadline,
        }
    }

    /// A step that was told as a point, which came at its end.
    pub(super) fn of_point(
        origin: &Origin,
        point: &HistogramPoint<'_>,
        duration_secs: f64,
        (resource, batch): (Vec<u8>, Batch),
        deadline: Instant,
    ) -> Self {
        let end = point.time_unix_nano;
        Self {
            origin: origin.clone(),
            window: Window {
                start: end.saturating_sub((duration_secs * 1e9).round() as u64),
                end,
            },
            number: None,
            tokens: None,
            told: Told::Point { resource, batch },
            deadline,
        }
    }

    /// The batch that told it, without its contents.
    pub(super) fn batch(&self) -> &Batch {
        match &self.told {
            Told::Span(span) => &span.envelope.batch,
            Told::Point { batch, .. } => batch,
        }
    }

    /// Whether no later reading can say more of it.
    fn is_settled(&self, fleet: &Fleet, tellers: &Tellers) -> bool {
        let is_read = |until: u64| until >= self.window.end;
        match Share::of(fleet, tellers, &self.origin, self.window) {
            Some(share) => share.gpus.iter().all(|gpu| is_read(gpu.read_until())),
            // None of them claims the step as far as they were heard. After a pause the claim comes behind the reading.
            None => fleet
                .on(self.origin.host.as_deref())
                .all(|gpu| is_read(gpu.read_until()) && !gpu.was_claimed(&self.origin, self.window)),
        }
    }

    /// Whether spans may still come that say the same as the points of this rank.
    fn may_be_told_again(&self, tellers: &Tellers, wait: Duration, now: Instant) -> bool {
        match (&self.told, tellers.told_by(&self.origin)) {
            (Told::Point { .. }, Some(ToldBy::Points(since))) => now < clock::later(since, wait),
            _ => false,
        }
    }

    /// Whether its rank turned out to tell its steps by spans as well.
    fn is_told_twice(&self, tellers: &Tellers) -> bool {
        matches!(self.told, Told::Point { .. }) && tellers.told_by(&self.origin) == Some(ToldBy::Spans)
    }
}

impl Waiting {
    /// Lets a step wait.
    pub(super) fn push(&mut self, step: Step) {
        self.steps.push_back(step);
    }

    /// When the first deadline is: they wait equally long, so it is that of the first.
    pub(super) fn due(&self) -> Option<Instant> {
        self.steps.front().map(|step| step.deadline)
    }

    /// Takes out the steps of which no more is to be learnt at `now`, and the oldest of more than may wait. Those that were
    /// looked at before are looked at again only after `news` of GPUs, so that many that wait cost nothing.
    pub(super) fn take_ready(
        &mut self,
        fleet: &Fleet,
        tellers: &Tellers,
        config: EnergyConfig,
        now: Instant,
        news: bool,
    ) -> Vec<Step> {
        let mut ready = self.take_oldest(config.max_waiting, now);
        let known = if news {
            0
        } else {
            self.looked_at.min(self.steps.len())
        };
        for step in self.steps.split_off(known) {
            let may_be_more = step.may_be_told_again(tellers, config.wait, now);
            if !may_be_more && step.is_settled(fleet, tellers) {
                ready.push(step);
            } else {
                self.steps.push_back(step);
            }
        }
        self.looked_at = self.steps.len();
        ready.retain(|step| !step.is_told_twice(tellers));
        ready
    }

    /// Takes out those that have waited for long enough, and the oldest of more than `most`.
    fn take_oldest(&mut self, most: usize, now: Instant) -> Vec<Step> {
        let late = self.steps.partition_point(|step| step.deadline <= now);
        let oldest = late.max(self.steps.len().saturating_sub(most));
        self.looked_at = self.looked_at.saturating_sub(oldest);
        self.steps.drain(..oldest).collect()
    }

    /// Takes out all steps.
    pub(super) fn take_all(&mut self, tellers: &Tellers) -> Vec<Step> {
        let all = std::mem::take(&mut self.steps).into_iter();
        all.filter(|step| !step.is_told_twice(tellers)).collect()
    }
}

fn number(value: AnyValue<'_>) -> Option<f64> {
    match value {
        AnyValue::Double(number) => Some(number),
        other => integer(other).map(|number| number as f64),
    }
}
