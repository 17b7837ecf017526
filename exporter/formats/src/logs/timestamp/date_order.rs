//! The order of day and month in the dates of a log.

use std::cell::Cell;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::LoggedTime;

use super::FUTURE;

/// The order of day and month in the dates of a log with slashes; unknown before the first.
#[derive(Clone, Debug, Default)]
pub(in crate::logs) struct DateOrder {
    is_day_first: Cell<Option<bool>>,
}

impl DateOrder {
    /// Returns the reading of a date with slashes or dots.
    pub(super) fn choose(
        &self,
        month_first: Option<LoggedTime>,
        day_first: Option<LoggedTime>,
        has_slashes: bool,
        near: UnixNanos,
    ) -> Option<LoggedTime> {
        let (Some(month), Some(day)) = (month_first, day_first) else {
            let found = month_first.or(day_first)?;
            self.is_day_first.set(Some(day_first.is_some()));
            return Some(found);
        };
        let is_day_first = self.is_day_first.get().unwrap_or_else(|| {
            let is_future = |time| nanos_of(time) > near.0.saturating_add(FUTURE);
            match (is_future(month), is_future(day)) {
                (true, false) => true,
                (false, true) => false,
                _ => !has_slashes,
            }
        });
        self.is_day_first.set(Some(is_day_first));
        Some(if is_day_first { day } else { month })
    }
}

pub(super) fn nanos_of(time: LoggedTime) -> u64 {
    match time {
        LoggedTime::Utc(time) => time.0,
        LoggedTime::Local(nanos) => nanos,
    }
}
