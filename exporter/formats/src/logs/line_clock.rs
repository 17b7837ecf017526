//! Assigns times to records without their own: the time at the beginning of the line, the read time in a growing log, else an
//! invented one.

use std::{cell::Cell, sync::Arc, time::Duration};

use super::{ReadTime, pace::Pace, timestamp::DateOrder};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{LocalClock, LoggedTime};

/// The minimum distance of two records without a time. It keeps their order and separates the points of a series.
pub(super) const TICK: Duration = Duration::from_millis(1);
const LIVE_TICK: Duration = Duration::from_micros(1);
/// A read time that is this much earlier than the last one means that the clock of the machine was set back. Smaller corrections only
/// compress the times.
const STEP_BACK: Duration = Duration::from_secs(5);

/// The clock of one log.
#[derive(Clone, Debug, Default)]
pub(super) struct LineClock {
    /// The last assigned time.
    last: Cell<UnixNanos>,
    /// The last read time of a growing log.
    last_read: Cell<UnixNanos>,
    /// The last time at the beginning of a line; unknown before the first.
    last_leading: Cell<UnixNanos>,
    /// The number of invented times.
    invented: Cell<u64>,
    /// The times of records without one, if the log allows to derive them.
    pace: Option<Pace>,
    /// The zone of times at the beginnings of lines.
    local: Arc<LocalClock>,
    /// The order of day and month in them.
    date_order: DateOrder,
}

impl LineClock {
    /// Returns the time of the next record, given that before its message. Call it once a record.
    pub(super) fn time(&self, leading: Option<LoggedTime>, read: ReadTime) -> UnixNanos {
        let next = |tick| self.last.get().saturating_add(tick);
        let time = match leading.map(|time| self.local.instant(time)) {
            // Many lines of one second.
            Some(time) if time == self.last_leading.replace(time) => next(TICK),
            Some(time) => time,
            None if read.is_live && self.has_stepped_back(read.unix_nanos) => read.unix_nanos,
            None if read.is_live => read.unix_nanos.max(next(LIVE_TICK)),
            None if self.last_leading.get().is_known() => next(TICK),
            None => self.invent(read.unix_nanos.max(next(TICK))),
        };
        self.last.set(time);
        time
    }

    /// Returns the instant of the time before a message.
    pub(super) fn instant(&self, leading: LoggedTime) -> UnixNanos {
        self.local.instant(leading)
    }

    /// Returns the time at which a line without its own was read: in a finished log, that of the record before it.
    pub(super) fn observed(&self, read: ReadTime) -> UnixNanos {
        let last = self.last.get();
        match () {
            () if read.is_live => read.unix_nanos,
            () if last.is_known() => last,
            () => self
                .pace
                .as_ref()
                .and_then(|pace| pace.time(0))
                .unwrap_or(read.unix_nanos),
        }
    }

    /// Records a read time, and returns whether the clock of the machine was set back since the last one. Later times follow the new
    /// clock, because otherwise they would all be the last time of the old one, for as long as the step.
    fn has_stepped_back(&self, read: UnixNanos) -> bool {
        read.saturating_add(STEP_BACK) < self.last_read.replace(read)
    }

    /// Returns the order of day and month in the times of the log.
    pub(super) fn date_order(&self) -> &DateOrder {
        &self.date_order
    }

    /// Returns the number of invented times so far.
    pub(super) fn invented(&self) -> u64 {
        self.invented.get()
    }

    /// Sets the zone of times at the beginnings of lines.
    pub(super) fn set_local(&mut self, local: &Arc<LocalClock>) {
        self.local = Arc::clone(local);
    }

    /// Sets the times of records without one.
    pub(super) fn set_pace(&mut self, pace: Pace) {
        self.pace = Some(pace);
    }

    fn invent(&self, otherwise: UnixNanos) -> UnixNanos {
        let index = self.invented.replace(self.invented.get() + 1);
        let paced = self.pace.as_ref().and_then(|pace| pace.time(index));
        paced.unwrap_or(otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::leading_time::leading_time;

    const FINISHED: ReadTime = ReadTime {
        unix_nanos: UnixNanos(5_000_000_000),
        is_live: false,
    };
    const SECOND: u64 = 1_000_000_000;

    fn leading(line: &str) -> Option<LoggedTime> {
        leading_time(line, FINISHED.unix_nanos, &DateOrder::default())
    }

    #[test]
    fn lines_within_one_second_keep_their_order() {
        let clock = LineClock::default();
        let lines = [
            "1970-01-01 00:00:01 a",
            "1970-01-01 00:00:01 b",
            "c",
            "1970-01-01 00:00:02 d",
        ];
        let times = lines.map(|line| clock.time(leading(line), FINISHED));
        let second = UnixNanos(SECOND);
        let expected = [
            second,
            second.saturating_add(TICK),
            second.saturating_add(2 * TICK),
            UnixNanos(2 * SECOND),
        ];
        assert_eq!(times, expected);
        assert_eq!(clock.invented(), 0, "the third is near the second");
    }

    #[test]
    fn finished_log_without_timestamps_gets_synthetic_times_that_are_counted() {
        let clock = LineClock::default();
        let read = FINISHED.unix_nanos;
        let times = ["a", "b"].map(|line| clock.time(leading(line), FINISHED));
        assert_eq!(times, [read, read.saturating_add(TICK)]);
        assert_eq!(clock.invented(), 2);
    }

    #[test]
    fn lines_of_a_growing_log_are_stamped_with_the_read_time() {
        let clock = LineClock::default();
        let live = ReadTime {
            is_live: true,
            ..FINISHED
        };
        let read = FINISHED.unix_nanos;
        let times = ["a", "b"].map(|line| clock.time(leading(line), live));
        assert_eq!(times, [read, read.saturating_add(LIVE_TICK)]);
        assert_eq!(clock.invented(), 0);
    }

    #[test]
    fn times_of_a_growing_log_follow_a_clock_that_is_set_back() {
        let clock = LineClock::default();
        let times = [100, 101, 99, 40, 41, 40, 200].map(|second| {
            let read = ReadTime {
                unix_nanos: UnixNanos(second * SECOND),
                is_live: true,
            };
            clock.time(None, read)
        });
        // A small correction keeps the order; a step back does not hold the times.
        let second = |second: u64| UnixNanos(second * SECOND);
        let (after_101, after_41) = (
            second(101).saturating_add(LIVE_TICK),
            second(41).saturating_add(LIVE_TICK),
        );
        let expected = [
            second(100),
            second(101),
            after_101,
            second(40),
            second(41),
            after_41,
            second(200),
        ];
        assert_eq!(times, expected);
    }
}
