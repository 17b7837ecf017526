//! The retry policy: decides when a failed sink is retried, and when a batch is given up. A pure state machine: the
//! caller passes the time, and the policy never waits.
//!
//! Consecutive failures form one streak, whatever their batches, and share one backoff. [`GiveUp`] decides whether a
//! batch is ever dropped. With [`GiveUp::AfterOutage`] a long streak opens the circuit: batches are then dropped at once,
//! except for one probe per backoff interval. Any answer closes it.

mod pace;

use std::time::Duration;

use self::pace::Pace;
use crate::{
    DropReason,
    clock::{self, Instant},
};

/// The retry settings of a sink.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryConfig {
    /// The first backoff interval.
    pub initial: Duration,
    /// The factor by which each interval is longer than the one before.
    pub multiplier: f64,
    /// The longest backoff interval.
    pub max: Duration,
    /// The random part of an interval, 0 to 1: with 0.5 the wait is 50 to 100 % of the interval.
    pub jitter: f64,
    /// The limit on the wait that a receiver may request. Shorter requests are followed exactly.
    pub max_after: Duration,
    /// The condition on which a batch that cannot be delivered is dropped.
    pub give_up: GiveUp,
}

/// The condition on which a batch that cannot be delivered is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    /// Never: the batch waits in the queue, and a full queue pushes back.
    Never,
    /// When the batch is older than this and its queue has no room for another batch. A required sink keeps a batch that
    /// its source would replay: the source holds the data and waits.
    WhenFull(Duration),
    /// Once the sink has failed for this long, with all queued batches: for a job that has to end.
    AfterOutage(Duration),
}

impl Default for RetryConfig {
    /// Returns 1 s growing by 1.5 up to 30 s, half of it random; never gives up.
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            multiplier: 1.5,
            max: Duration::from_secs(30),
            jitter: 0.5,
            max_after: Duration::from_secs(300),
            give_up: GiveUp::Never,
        }
    }
}

impl RetryConfig {
    /// Returns the same policy without jitter, for tests.
    #[must_use]
    pub fn without_jitter(self) -> Self {
        Self { jitter: 0.0, ..self }
    }
}

/// The decision of the retry policy for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Deliver it at this time, which is now or later.
    TryAt(Instant),
    /// Drop it for this reason.
    GiveUp(DropReason),
}

/// The retry state of one sink.
#[derive(Debug)]
pub(crate) struct Retry {
    config: RetryConfig,
    chance: fastrand::Rng,
    streak: Option<Streak>,
    pace: Pace,
}

/// Consecutive failures without an answer between them.
#[derive(Clone, Copy, Debug)]
struct Streak {
    since: Instant,
    interval: Duration,
    next_try: Instant,
    /// Whether the receiver requested this wait.
    is_receiver_delay: bool,
    open: bool,
}

impl Retry {
    pub(crate) fn new(config: RetryConfig) -> Self {
        Self {
            config,
            chance: fastrand::Rng::new(),
            streak: None,
            pace: Pace::default(),
        }
    }

    /// Returns the decision for the next batch.
    pub(crate) fn next_batch(&self, now: Instant) -> Step {
        match self.streak {
            None => Step::TryAt(self.pace.next().map_or(now, |at| at.max(now))),
            Some(streak) if streak.open && now < streak.next_try => Step::GiveUp(DropReason::Unreachable),
            Some(streak) => Step::TryAt(streak.next_try.max(now)),
        }
    }

    /// Returns whether the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.streak.is_some()
    }

    /// Records the start of a request.
    pub(crate) fn record_start(&mut self, now: Instant) {
        self.pace.record_start(now);
    }

    /// Ends the streak, because the receiver answered, whether it accepted the batch or not.
    pub(crate) fn answered(&mut self) {
        self.pace.record_accepted(self.streak.is_some());
        self.streak = None;
    }

    /// Returns whether batches wait while the receiver refuses every request. A job that has to end loses them at once.
    pub(crate) fn holds_refused(&self) -> bool {
        !matches!(self.config.give_up, GiveUp::AfterOutage(_))
    }

    /// Returns the age from which a batch may be dropped to make room, or `None` if batches are never dropped for that.
    pub(crate) fn expires_after(&self) -> Option<Duration> {
        match self.config.give_up {
            GiveUp::WhenFull(age) => Some(age),
            GiveUp::Never | GiveUp::AfterOutage(_) => None,
        }
    }

    /// Ends the current wait, so that two probes follow each other.
    pub(crate) fn end_wait(&mut self, now: Instant) {
        if let Some(streak) = &mut self.streak {
            streak.next_try = now;
        }
    }

    /// Ends the current wait, because the drain begins, and resets the backoff. A wait that the receiver requested is
    /// kept.
    pub(crate) fn drain_begins(&mut self, now: Instant) {
        if let Some(streak) = self.streak.as_mut().filter(|streak| !streak.is_receiver_delay) {
            streak.next_try = now;
            streak.interval = self.config.initial.min(self.config.max);
        }
    }

    /// Records a failed delivery that may succeed later; `after` is the wait that the receiver requested.
    pub(crate) fn failed(&mut self, now: Instant, after: Option<Duration>) -> Step {
        let before = self.streak;
        if before.is_none() {
            self.pace.record_failure();
        }
        let since = before.map_or(now, |streak| streak.since);
        let interval = before.map_or(self.config.initial.min(self.config.max), |streak| {
            self.longer(streak.interval)
        });
        let next_try = clock::later(now, self.wait(interval, after));
        let lasted = now.saturating_duration_since(since);
        let open = matches!(self.config.give_up, GiveUp::AfterOutage(limit) if lasted >= limit);
        self.streak = Some(Streak {
            since,
            interval,
            next_try,
            is_receiver_delay: after.is_some_and(|after| !after.is_zero()),
            open,
        });
        match (open, before.is_some_and(|streak| streak.open)) {
            (false, _) => Step::TryAt(next_try),
            (true, false) => Step::GiveUp(DropReason::RetriesExhausted),
            (true, true) => Step::GiveUp(DropReason::Unreachable),
        }
    }

    /// Records a failed delivery that began before the streak, concurrently with others: the backoff does not grow, but a
    /// longer wait that the receiver requested is kept.
    pub(crate) fn failed_together(&mut self, now: Instant, after: Option<Duration>) -> Step {
        let Some(streak) = &mut self.streak else {
            return self.failed(now, after);
        };
        if let Some(after) = after.filter(|after| !after.is_zero()) {
            streak.next_try = streak
                .next_try
                .max(clock::later(now, after.min(self.config.max_after)));
            streak.is_receiver_delay = true;
        }
        if streak.open {
            Step::GiveUp(DropReason::Unreachable)
        } else {
            Step::TryAt(streak.next_try)
        }
    }

    fn longer(&self, interval: Duration) -> Duration {
        let longer = interval.as_secs_f64() * self.config.multiplier.max(1.0);
        Duration::try_from_secs_f64(longer).map_or(self.config.max, |longer| longer.min(self.config.max))
    }

    /// Returns the wait that the receiver requested, or else the interval minus its random part. A requested wait of zero
    /// is ignored: otherwise a failing receiver would be retried without a pause.
    fn wait(&mut self, interval: Duration, after: Option<Duration>) -> Duration {
        match after.filter(|after| !after.is_zero()) {
            Some(after) => after.min(self.config.max_after),
            None => {
                let certain = 1.0 - self.config.jitter.clamp(0.0, 1.0) * self.chance.f64();
                Duration::try_from_secs_f64(interval.as_secs_f64() * certain).unwrap_or(interval)
            }
        }
    }
}

#[cfg(test)]
mod tests;
