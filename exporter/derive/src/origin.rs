//! The origin of telemetry: run, rank and host, from the attributes of a resource or of a point.

use std::sync::Arc;

use pulsetrain_otlp::view::{AnyValue, KeyValue, Repeated};
use pulsetrain_semconv::attribute;

/// Run, rank and host, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The run.
    pub(crate) run: Option<Arc<str>>,
    /// The rank in the job.
    pub(crate) rank: Option<i64>,
    /// The attempt of the run.
    pub(crate) attempt: Option<i64>,
    /// The number of ranks of the job.
    pub(crate) world_size: Option<i64>,
    /// The host.
    pub(crate) host: Option<Arc<str>>,
}

impl Origin {
    /// Reads attributes. Values without an attribute are kept, so that attributes of a point override those of its resource.
    pub(crate) fn read(&mut self, attributes: Repeated<'_, KeyValue<'_>>) {
        // Attributes that cannot be decoded are ignored. The batch passes unchanged.
        for attribute in attributes.iter().map_while(Result::ok) {
            let value = attribute.value.unwrap_or_default();
            if attribute.key == attribute::TRAIN_RUN_ID.name {
                self.run = text(value).map(Arc::from);
            } else if attribute.key == attribute::TRAIN_RANK.name {
                self.rank = integer(value);
            } else if attribute.key == attribute::TRAIN_ATTEMPT.name {
                self.attempt = integer(value);
            } else if attribute.key == attribute::TRAIN_WORLD_SIZE.name {
                self.world_size = integer(value);
            } else if attribute.key == attribute::HOST_NAME.name {
                self.host = text(value).map(Arc::from);
            }
        }
    }

    /// Returns the origin of these attributes.
    pub(crate) fn of(attributes: Repeated<'_, KeyValue<'_>>) -> Self {
        let mut origin = Self::default();
        origin.read(attributes);
        origin
    }
}

/// Returns the text of an attribute if it is a non-empty string.
pub(crate) fn text(value: AnyValue<'_>) -> Option<&str> {
    match value {
        AnyValue::String(text) => text.to_str().ok().filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// Returns the integer of an attribute if it is one.
pub(crate) fn integer(value: AnyValue<'_>) -> Option<i64> {
    match value {
        AnyValue::Int(number) => Some(number),
        AnyValue::Double(number) if number.fract() == 0.0 => Some(number as i64),
        AnyValue::String(text) => text.to_str().ok()?.trim().parse().ok(),
        _ => None,
    }
}
