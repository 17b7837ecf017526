//! The one retry policy: when a sink that failed is tried again, and when it is given up. A pure state machine; it
//! knows the time only from its caller and never waits.
//!
//! Failures in a row are one streak, whatever batches they were of. A streak that lasts longer than `give_up` opens the
//! circuit: batches are then dropped at once, but for one probe a backoff interval. Any answer closes it.

use std::time::Duration;

use crate::{
    DropReason,
    clock::{self, Instant},
};

/// How failing sinks are retried.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryConfig {
    /// The first backoff interval.
    pub initial: Duration,
    /// How much longer each interval is than the one before.
    pub multiplier: f64,
    /// The longest backoff interval.
    pub max: Duration,
    /// The part of an interval that is left to chance, 0 to 1: with 0.5 the wait is 50 to 100 % of the interval.
    pub jitter: f64,
    /// The longest wait that a receiver may ask for. Shorter ones are kept to exactly.
    pub max_after: Duration,
    /// How long a streak of failures may last before batches are given up.
    pub give_up: Duration,
}

impl Default for RetryConfig {
    /// 1 s growing by 1.5 up to 30 s, half of it by chance; given up after 5 minutes.
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            multiplier: 1.5,
            max: Duration::from_secs(30),
            jitter: 0.5,
            max_after: Duration::from_secs(300),
            give_up: Duration::from_secs(300),
        }
    }
}

impl RetryConfig {
    /// The same policy with nothing left to chance: for tests.
    #[must_use]
    pub fn without_jitter(self) -> Self {
        Self { jitter: 0.0, ..self }
    }
}

/// What the policy says about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Deliver it at this time, which is now or later.
    TryAt(Instant),
    /// Drop it for this reason.
    GiveUp(DropReason),
}

/// Where one sink stands.
#[derive(Debug)]
pub(crate) struct Retry {
    config: RetryConfig,
    chance: fastrand::Rng,
    streak: Option<Streak>,
}

/// Failures in a row, with no answer between them.
#[derive(Clone, Copy, Debug)]
struct Streak {
    since: Instant,
    interval: Duration,
    next_try: Instant,
    open: bool,
}

impl Retry {
    pub(crate) fn new(config: RetryConfig) -> Self {
        Self {
            config,
            chance: fastrand::Rng::new(),
            streak: None,
        }
    }

    /// What to do with the next batch.
    pub(crate) fn next_batch(&self, now: Instant) -> Step {
        match self.streak {
            None => Step::TryAt(now),
            Some(streak) if streak.open && now < streak.next_try => Step::GiveUp(DropReason::Unreachable),
            Some(streak) => Step::TryAt(streak.next_try.max(now)),
        }
    }

    /// The receiver answered, whether it took the batch or not: the streak is over.
    pub(crate) fn answered(&mut self) {
        self.streak = None;
    }

    /// The delivery failed, and may work later; `after` is what the receiver asked for.
    pub(crate) fn failed(&mut self, now: Instant, after: Option<Duration>) -> Step {
        let before = self.streak;
        let since = before.map_or(now, |streak| streak.since);
        let interval = before.map_or(self.config.initial.min(self.config.max), |streak| {
            self.longer(streak.interval)
        });
        let next_try = clock::later(now, self.wait(interval, after));
        let open = now.saturating_duration_since(since) >= self.config.give_up;
        self.streak = Some(Streak {
            since,
            interval,
            next_try,
            open,
        });
        match (open, before.is_some_and(|streak| streak.open)) {
            (false, _) => Step::TryAt(next_try),
            (true, false) => Step::GiveUp(DropReason::RetriesExhausted),
            (true, true) => Step::GiveUp(DropReason::Unreachable),
        }
    }

    fn longer(&self, interval: Duration) -> Duration {
        let longer = interval.as_secs_f64() * self.config.multiplier.max(1.0);
        Duration::try_from_secs_f64(longer).map_or(self.config.max, |longer| longer.min(self.config.max))
    }

    /// What the receiver asked for, or else the interval less its part of chance. To ask for no wait at all is not to ask:
    /// otherwise a receiver in trouble would be tried without a pause.
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
