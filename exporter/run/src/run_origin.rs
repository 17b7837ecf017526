//! The origin of telemetry: run, rank and host, from the attributes of a resource or of a point.

use std::sync::Arc;

use pulsetrain_otlp::{
    WireError,
    view::{KeyValue, Repeated},
};
use pulsetrain_semconv::attribute;

use crate::{attribute_value::is_name, integer, text};

/// The run, rank and host of telemetry, as far as its attributes name them. A text that is empty, or longer than
/// [`MAX_NAME_BYTES`](crate::MAX_NAME_BYTES), is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrigin {
    /// The id of the run (`train.run.id`).
    pub run_id: Option<Arc<str>>,
    /// The display name of the run (`train.run.name`).
    pub run_name: Option<Arc<str>>,
    /// The rank in the job (`train.rank`).
    pub rank: Option<i64>,
    /// The rank on its host (`train.local_rank`).
    pub local_rank: Option<i64>,
    /// The number of ranks of the job (`train.world_size`).
    pub world_size: Option<i64>,
    /// The attempt of the run (`train.attempt`).
    pub attempt: Option<i64>,
    /// The framework of the run (`train.framework`).
    pub framework: Option<Arc<str>>,
    /// The host (`host.name`).
    pub host: Option<Arc<str>>,
    /// The name of the program (`service.name`).
    pub service: Option<Arc<str>>,
    /// The instance of the program (`service.instance.id`).
    pub instance: Option<Arc<str>>,
}

impl RunOrigin {
    /// Returns the origin that attributes name. An attribute that cannot be decoded and those after it are ignored.
    #[inline]
    pub fn from_attributes(attributes: Repeated<'_, KeyValue<'_>>) -> Self {
        let mut origin = Self::default();
        // The part before the error is the result.
        let _ = origin.read(attributes);
        origin
    }

    /// Adds the attributes of a part of this origin, such as a point of a resource: they replace those that are known.
    ///
    /// # Errors
    /// An attribute that is not valid protobuf. Those before it are added.
    pub fn read(&mut self, attributes: Repeated<'_, KeyValue<'_>>) -> Result<(), WireError> {
        for pair in attributes {
            let pair = pair?;
            let value = pair.value.unwrap_or_default();
            let own_text = || text(value).filter(|text| is_name(text)).map(Arc::from);
            let key = pair.key;
            if key == attribute::TRAIN_RUN_ID.name {
                self.run_id = own_text();
            } else if key == attribute::TRAIN_RANK.name {
                self.rank = integer(value);
            } else if key == attribute::TRAIN_ATTEMPT.name {
                self.attempt = integer(value);
            } else if key == attribute::TRAIN_WORLD_SIZE.name {
                self.world_size = integer(value);
            } else if key == attribute::HOST_NAME.name {
                self.host = own_text();
            } else if key == attribute::SERVICE_NAME.name {
                self.service = own_text();
            } else if key == attribute::SERVICE_INSTANCE_ID.name {
                self.instance = own_text();
            } else if key == attribute::TRAIN_FRAMEWORK.name {
                self.framework = own_text();
            } else if key == attribute::TRAIN_LOCAL_RANK.name {
                self.local_rank = integer(value);
            } else if key == attribute::TRAIN_RUN_NAME.name {
                self.run_name = own_text();
            }
        }
        Ok(())
    }

    /// Returns the id of the run, or of a program that reports no run: its instance, or its name.
    pub fn id(&self) -> Option<&Arc<str>> {
        self.run_id
            .as_ref()
            .or(self.instance.as_ref())
            .or(self.service.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::{
        UnixNanos,
        view::NumberValue,
        walk,
        write::{AttributeValue, Envelope, MetricsWriter},
    };
    use pulsetrain_semconv::metric;

    use super::*;

    /// Returns the origin of a resource with these attributes.
    fn origin(attributes: &[(&str, AttributeValue<'_>)]) -> RunOrigin {
        let mut writer = MetricsWriter::default();
        writer.measured(&metric::TRAIN_LOSS, UnixNanos(1), NumberValue::Double(2.5));
        let message = writer.finish(&Envelope::new(attributes, "", "", "")).unwrap();
        let resource = walk::metrics(&message.bytes).next().unwrap().unwrap();
        RunOrigin::from_attributes(resource.attributes())
    }

    #[test]
    fn numbers_are_equal_as_string_integer_and_double() {
        let keys = [
            "train.rank",
            "train.local_rank",
            "train.world_size",
            "train.attempt",
        ];
        let with = |value: AttributeValue<'static>| origin(&keys.map(|key| (key, value)));
        let expected = RunOrigin {
            rank: Some(3),
            local_rank: Some(3),
            world_size: Some(3),
            attempt: Some(3),
            ..RunOrigin::default()
        };
        assert_eq!(with(AttributeValue::Int(3)), expected);
        assert_eq!(with(AttributeValue::Text("3")), expected);
        assert_eq!(with(AttributeValue::Double(3.0)), expected);
        assert_eq!(with(AttributeValue::Text("three")), RunOrigin::default());
    }

    #[test]
    fn id_is_that_of_the_run_or_else_of_the_program() {
        let all = [
            ("service.name", AttributeValue::Text("trainer")),
            ("service.instance.id", AttributeValue::Text("run/0")),
            ("train.run.id", AttributeValue::Int(42)),
        ];
        let ids = [1, 2, 3].map(|count| origin(&all[..count]).id().map(ToString::to_string));
        assert_eq!(ids, ["trainer", "run/0", "42"].map(|id| Some(id.to_owned())));
        assert_eq!(origin(&[("train.run.id", AttributeValue::Text(""))]).id(), None);
    }

    #[test]
    fn later_attributes_replace_earlier_ones() {
        let mut writer = MetricsWriter::default();
        writer.measured(&metric::TRAIN_LOSS, UnixNanos(1), NumberValue::Double(2.5));
        let attributes = [("train.rank", AttributeValue::Text("1"))];
        let message = writer.finish(&Envelope::new(&attributes, "", "", "")).unwrap();
        let resource = walk::metrics(&message.bytes).next().unwrap().unwrap();
        let mut origin = RunOrigin {
            rank: Some(0),
            host: Some("node".into()),
            ..RunOrigin::default()
        };
        origin.read(resource.attributes()).unwrap();
        assert_eq!((origin.rank, origin.host.as_deref()), (Some(1), Some("node")));
    }
}
