//! Who says something: run, rank and host, from the attributes of a resource or of a point.

use std::sync::Arc;

use pulsetrain_otlp::view::{AnyValue, KeyValue, Repeated, Text};
use pulsetrain_semconv::attribute;

/// What is known of who speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The run.
    pub(crate) run: Option<Arc<str>>,
    /// The rank in the whole job.
    pub(crate) rank: Option<i64>,
    /// The attempt of the run.
    pub(crate) attempt: Option<i64>,
    /// The ranks of the whole job.
    pub(crate) world_size: Option<i64>,
    /// The host.
    pub(crate) host: Option<Arc<str>>,
}

impl Origin {
    /// Reads attributes; what they do not say stays as it is, so that those of a point go before those of its resource.
    pub(crate) fn read(&mut self, attributes: Repeated<'_, KeyValue<'_>>) {
        // What cannot be read says nothing; the batch goes on as it is.
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

    /// The origin that these attributes tell.
    pub(crate) fn of(attributes: Repeated<'_, KeyValue<'_>>) -> Self {
        let mut origin = Self::default();
        origin.read(attributes);
        origin
    }
}

/// The text of an attribute that has some.
pub(crate) fn text(value: AnyValue<'_>) -> Option<&str> {
    match value {
        AnyValue::String(text) => some_text(text),
        _ => None,
    }
}

/// The number of an attribute that has one.
pub(crate) fn integer(value: AnyValue<'_>) -> Option<i64> {
    match value {
        AnyValue::Int(number) => Some(number),
        AnyValue::Double(number) if number.fract() == 0.0 => Some(number as i64),
        AnyValue::String(text) => text.to_str().ok()?.trim().parse().ok(),
        _ => None,
    }
}

fn some_text(text: Text<'_>) -> Option<&str> {
    text.to_str().ok().filter(|text| !text.is_empty())
}
