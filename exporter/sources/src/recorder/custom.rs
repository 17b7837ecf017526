//! The names under `train.custom`: a bounded number of them.

use pulsetrain_otlp::write::{PointAttributes, Value};
use pulsetrain_semconv::attribute::TRAIN_CUSTOM_NAME;

use crate::in_order::InOrder;

/// How many names a run may bring along; each is a series for ever.
const LIMIT: usize = 256;

/// The names that were admitted, each with the attributes of its points.
#[derive(Debug, Default)]
pub(super) struct CustomNames {
    names: InOrder<PointAttributes>,
}

impl CustomNames {
    /// The attributes of the points under `name`; nothing where they are not kept.
    pub(super) fn admit(&mut self, name: &str) -> Option<&PointAttributes> {
        let place = match self.names.place(name) {
            Some(place) => place,
            None if self.names.len() >= LIMIT => return None,
            None => {
                let attributes = PointAttributes::of(&[(&TRAIN_CUSTOM_NAME, Value::Text(name))]);
                self.names.add(name, attributes)
            }
        };
        Some(self.names.at(place))
    }
}
