//! The zone of a log's local times, and whether the log contains any.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use pulsetrain_otlp::UnixNanos;

use super::Recorder;
use crate::timezone::{LoggedTime, UsedTimezone};

/// The clock of the writer of a log.
#[derive(Debug, Default)]
pub struct LocalClock {
    timezone: UsedTimezone,
    was_used: AtomicBool,
}

impl LocalClock {
    /// Returns the instant of a time in the log.
    pub fn instant(&self, time: LoggedTime) -> UnixNanos {
        if matches!(time, LoggedTime::Local(_)) {
            self.was_used.store(true, Ordering::Relaxed);
        }
        self.timezone.instant(time)
    }
}

impl Recorder<'_> {
    /// Sets the zone of times without a zone.
    #[must_use]
    pub fn in_timezone(mut self, timezone: UsedTimezone) -> Self {
        self.local_clock = Arc::new(LocalClock {
            timezone,
            was_used: AtomicBool::new(false),
        });
        self
    }

    /// Returns the clock of the writer of the log.
    pub fn local_clock(&self) -> &Arc<LocalClock> {
        &self.local_clock
    }

    /// Returns the zone of local times.
    pub fn timezone(&self) -> &UsedTimezone {
        &self.local_clock.timezone
    }

    /// Returns the zone of local times, if the log had any.
    pub fn timezone_used(&self) -> Option<UsedTimezone> {
        let clock = &self.local_clock;
        let was_used = clock.was_used.load(Ordering::Relaxed);
        was_used.then(|| clock.timezone.clone())
    }

    /// Returns the instant of a time in the log.
    pub fn instant(&self, time: LoggedTime) -> UnixNanos {
        self.local_clock.instant(time)
    }
}
