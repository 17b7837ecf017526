//! The names under `train.custom`: a bounded number of them.

use pulsetrain_otlp::write::{EncodedSeries, Value};
use pulsetrain_semconv::{attribute::TRAIN_CUSTOM_NAME, metric::TRAIN_CUSTOM};

use crate::key_cache::KeyCache;

/// How many names a run may bring along; each is a series for ever.
const LIMIT: usize = 256;

/// The names that were admitted, each with the series of its points.
#[derive(Debug, Default)]
pub(super) struct CustomNames {
    names: KeyCache<EncodedSeries>,
}

impl CustomNames {
    /// Returns the series of the points under `name`, or `None` if they are not kept.
    pub(super) fn admit(&mut self, name: &str) -> Option<&EncodedSeries> {
        let index = match self.names.index_of(name) {
            Some(index) => index,
            None if self.names.len() >= LIMIT => return None,
            None => {
                let attributes = [(&TRAIN_CUSTOM_NAME, Value::Text(name))];
                self.names
                    .add(name, EncodedSeries::new(&TRAIN_CUSTOM, &attributes))
            }
        };
        Some(self.names.at(index))
    }
}
