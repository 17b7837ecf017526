//! The interval between two requests to a receiver that limits its rate.
//!
//! Such a receiver accepts a request after a wait and refuses the next one. Without a pace each accepted request would cost several
//! refused ones.

use std::time::Duration;

use crate::clock::{self, Instant};

/// The maximum number of accepted requests between two series of failures of a receiver that limits its rate.
const FEW: u32 = 8;

/// The part of the interval that is left after each accepted request.
const DECAY: f64 = 0.95;

/// An interval below this is zero.
const MIN: Duration = Duration::from_millis(20);

/// The interval, and the evidence for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    interval: Duration,
    /// The start of the last request.
    started: Option<Instant>,
    /// The start of the last accepted request.
    accepted_from: Option<Instant>,
    /// The accepted requests since the last failure that followed an accepted request; `None` before the first failure.
    accepted: Option<u32>,
    is_limited: bool,
}

impl Pace {
    /// Returns the time from which the next request may start.
    pub(super) fn next(&self) -> Option<Instant> {
        let started = self.started.filter(|_| !self.interval.is_zero())?;
        Some(clock::later(started, self.interval))
    }

    /// Records the start of a request.
    pub(super) fn record_start(&mut self, now: Instant) {
        self.started = Some(now);
    }

    /// Records the first of consecutive failures.
    pub(super) fn record_failure(&mut self) {
        self.is_limited = self
            .accepted
            .is_some_and(|accepted| (1..=FEW).contains(&accepted));
        self.accepted = Some(0);
    }

    /// Records an accepted request; `is_recovery` if it ends consecutive failures.
    pub(super) fn record_accepted(&mut self, is_recovery: bool) {
        let accepted = self.accepted.get_or_insert(FEW);
        *accepted = accepted.saturating_add(1);
        let (Some(started), before) = (self.started, self.accepted_from) else {
            return;
        };
        self.accepted_from = Some(started);
        if is_recovery && self.is_limited {
            self.interval = before.map_or(Duration::ZERO, |before| started.saturating_duration_since(before));
        } else {
            let shorter = self.interval.mul_f64(DECAY);
            self.interval = if shorter < MIN { Duration::ZERO } else { shorter };
        }
    }
}
