//! The names under `train.custom`, whose number is limited.

use std::collections::HashSet;

use pulsetrain_otlp::{UnixNanos, write::AttributeValue};
use pulsetrain_semconv::{attribute::TRAIN_CUSTOM_NAME, metric::TRAIN_CUSTOM};

use super::Recorder;
use crate::{PreparedSeries, SkipReason};

/// The limit for the names of a run; each name is a series for the rest of the run.
pub const MAX_CUSTOM_NAMES: usize = 256;

/// The names that were admitted.
#[derive(Debug, Default)]
pub(super) struct CustomNames(HashSet<String>);

impl CustomNames {
    /// Returns whether values under `name` are kept, and adds the name if there is room.
    pub(super) fn admit(&mut self, name: &str) -> bool {
        self.0.contains(name) || (self.0.len() < MAX_CUSTOM_NAMES && self.0.insert(name.to_owned()))
    }
}

impl Recorder<'_> {
    /// Returns the series of values under a name that the registry does not know, or `None` beyond the limit.
    pub fn custom_series(&mut self, name: &str) -> Option<PreparedSeries> {
        let attributes = [(&TRAIN_CUSTOM_NAME, AttributeValue::Text(name))];
        let is_kept = self.custom.admit(name);
        is_kept.then(|| PreparedSeries::new(&TRAIN_CUSTOM, &attributes))
    }

    /// Records a value under a name that the registry does not know, as `train.custom`.
    pub fn record_custom(&mut self, time_unix_nanos: UnixNanos, name: &str, value: f64) {
        match self.custom_series(name) {
            Some(mut series) => self.record_prepared(&mut series, time_unix_nanos, value),
            None => self.skipped.count(SkipReason::TooManyCustomNames),
        }
    }
}
