//! The zone of a log's local times, and whether the log contains any.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use pulsetrain_otlp::UnixNanos;

use super::Recorder;
use crate::timezone::{LoggedTime, UsedTimezone};

/// Lines of several ranks or threads can be this much out of order, in nanoseconds.
const OUT_OF_ORDER: u64 = 5 * 60 * 1_000_000_000;

/// The clock of the writer of a log. Local times that occur twice, at the end of daylight-saving time, are read in the order of the
/// log.
#[derive(Debug, Default)]
pub struct LocalClock {
    timezone: UsedTimezone,
    was_used: AtomicBool,
    /// The instant of the last local time, in nanoseconds since 1970.
    last: AtomicU64,
    /// The number of local times that occur twice.
    ambiguous: AtomicU64,
}

impl LocalClock {
    /// Returns the instant of a time in the log.
    pub fn instant(&self, time: LoggedTime) -> UnixNanos {
        let local = match time {
            LoggedTime::Utc(time) => return time,
            LoggedTime::Local(local) => local,
        };
        self.was_used.store(true, Ordering::Relaxed);
        let (first, second) = self.timezone.zone.instants(local);
        let instant = if first == second {
            first
        } else {
            self.ambiguous.fetch_add(1, Ordering::Relaxed);
            let last = self.last.load(Ordering::Relaxed);
            let is_past = first.0.saturating_add(OUT_OF_ORDER) < last;
            if is_past { second } else { first }
        };
        self.last.store(instant.0, Ordering::Relaxed);
        instant
    }

    /// Resets the count of local times that occur twice.
    pub(super) fn restart_counts(&self) {
        self.ambiguous.store(0, Ordering::Relaxed);
    }
}

impl Recorder<'_> {
    /// Sets the zone of times without a zone.
    #[must_use]
    pub fn in_timezone(mut self, timezone: UsedTimezone) -> Self {
        self.set_timezone(timezone);
        self
    }

    /// Sets the zone of the next times without a zone. They are after `last_local_unix_nanos`.
    pub fn set_timezone(&mut self, timezone: UsedTimezone) {
        let clock = &self.local_clock;
        self.local_clock = Arc::new(LocalClock {
            was_used: clock.was_used.load(Ordering::Relaxed).into(),
            last: timezone.last_local_unix_nanos.into(),
            ambiguous: clock.ambiguous.load(Ordering::Relaxed).into(),
            timezone,
        });
    }

    /// Returns the clock of the writer of the log.
    pub fn local_clock(&self) -> &Arc<LocalClock> {
        &self.local_clock
    }

    /// Returns the zone of local times, with the last one.
    pub fn timezone(&self) -> UsedTimezone {
        let clock = &self.local_clock;
        UsedTimezone {
            ambiguous_times: clock.ambiguous.load(Ordering::Relaxed),
            last_local_unix_nanos: clock.last.load(Ordering::Relaxed),
            ..clock.timezone.clone()
        }
    }

    /// Returns the zone of local times, if the log had any.
    pub fn timezone_used(&self) -> Option<UsedTimezone> {
        let was_used = self.local_clock.was_used.load(Ordering::Relaxed);
        was_used.then(|| self.timezone())
    }

    /// Returns the instant of a time in the log.
    pub fn instant(&self, time: LoggedTime) -> UnixNanos {
        self.local_clock.instant(time)
    }
}
